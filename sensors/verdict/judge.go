package verdict

import (
	"strconv"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Judge holds a claim against one sensor's evidence. The first that settles
// wins: curated rules in order, symbols, the declared observation, the prose
// falsifier; the last three can only contradict. An expectation is judged by
// itself. A compound claim settles nothing.
func Judge(c Claim, s *spec.Sensor, ev spec.Evidence) Result {
	base := Result{Sensor: s.ID, Invocation: ev.Invocation}
	if c.Expect != nil {
		return judgeExpect(base, c.Expect, ev)
	}
	claim := readSentence(c.text())
	if claim.text == "" {
		return base.unsettled(lemma.Unjudged, NoRule)
	}
	if claim.compound != "" {
		return base.unsettled(lemma.Unjudged, Compound+":"+claim.compound)
	}

	var stuck *Result // a rule applied and could not conclude
	skipped := ""     // why a rule that reads the claim was left out
	note := func(r Result) {
		if stuck == nil {
			stuck = &r
		}
	}
	for i := range s.Judge {
		b, why := bind(&claim, &s.Judge[i])
		if b == nil {
			if skipped == "" {
				skipped = why
			}
			continue
		}
		r := base
		r.Rule = "judge[" + strconv.Itoa(i+1) + "]"
		switch r = b.judge(r, &claim, ev); {
		case r.settled():
			return r
		case r.Verdict == lemma.Inconclusive:
			note(r)
		case skipped == "":
			skipped = r.Reason
		}
	}
	if r, ok := judgeSymbols(base, &claim, c); ok {
		return r
	}
	unmet := false
	var warnings []string
	for _, f := range falsifiers(&claim, c, s, ev) {
		if f.warning != "" {
			warnings = append(warnings, f.warning)
			continue
		}
		r := f.judge(base, &claim, ev)
		switch {
		case r.settled():
			r.Warnings = warnings
			return r
		case r.Verdict == lemma.Inconclusive:
			note(r)
		default:
			unmet = true
		}
	}
	out := base
	switch {
	case stuck != nil:
		out = *stuck
	case unmet:
		out = base.unsettled(lemma.Unjudged, "falsifier_not_met")
	case skipped != "":
		out = base.unsettled(lemma.Unjudged, skipped)
	default:
		out = base.unsettled(lemma.Unjudged, NoRule)
	}
	out.Warnings = warnings
	return out
}

// JudgeSymbols judges the symbols of a claim that no sensor matched.
func JudgeSymbols(c Claim) (Result, bool) {
	claim := readSentence(c.text())
	if claim.compound != "" {
		return Result{}, false
	}
	return judgeSymbols(Result{}, &claim, c)
}

// maxSymbols is contract 1's limit.
const maxSymbols = 8

// judgeSymbols contradicts a plain statement that rests on something which is
// known to be absent. Existing proves nothing.
func judgeSymbols(base Result, claim *sentence, c Claim) (Result, bool) {
	if c.Symbols == nil || c.Lemma == nil || claim.negated > 0 || len(claim.hedges) > 0 {
		return Result{}, false
	}
	for _, path := range c.Lemma.Symbols[:min(len(c.Lemma.Symbols), maxSymbols)] {
		if p, place := c.Symbols.Presence(path); p == Absent {
			base.Verdict, base.Rule = lemma.Contradicted, RuleSymbols
			base.Key, base.Measured, base.Claimed = oneLine(path), "absent", "exists"
			base.Operator, base.Type, base.Place = lemma.Eq, spec.String, place
			return base, true
		}
	}
	return Result{}, false
}

func judgeExpect(base Result, e *spec.Expect, ev spec.Evidence) Result {
	base.Rule, base.Key, base.Operator, base.Claimed = RuleExpect, e.Key, e.Operator, e.Value
	v := valueOf(ev, e.Key)
	base.Type = literalType(e.Value)
	if v != nil && v.TypeSet {
		base.Type = v.Type
	}
	return base.conclude(v, false)
}

// valueOf is the value that ev has for key.
func valueOf(ev spec.Evidence, key string) *spec.Value {
	for i := range ev.Values {
		if ev.Values[i].Key == key {
			return &ev.Values[i]
		}
	}
	return nil
}

func (r Result) settled() bool {
	return r.Verdict == lemma.Confirmed || r.Verdict == lemma.Contradicted
}

func (r Result) unsettled(v lemma.Verdict, reason string) Result {
	r.Verdict, r.Reason = v, reason
	return r
}

// conclude compares and fills verdict, measured and place: true is confirmed,
// true under one of two readings too, false is contradicted.
func (r Result) conclude(v *spec.Value, some bool) Result {
	out, why := compareValue(r.Type, v, r.Operator, r.Claimed, some)
	if v != nil {
		r.Measured, r.Place = shown(v), v.Place
	}
	switch out {
	case yes, either:
		r.Verdict, r.Reason = lemma.Confirmed, ""
	case no:
		r.Verdict, r.Reason = lemma.Contradicted, ""
	default:
		r.Verdict, r.Reason = lemma.Inconclusive, why
	}
	return r
}

// shown is a value as a person reads it; of several, each different one once.
func shown(v *spec.Value) string {
	if len(v.All) < 2 {
		return oneLine(v.Text)
	}
	var parts []string
	seen := map[string]bool{}
	for _, t := range v.All {
		if !seen[t] && len(parts) < 16 {
			seen[t] = true
			parts = append(parts, t)
		}
	}
	return oneLine(strings.Join(parts, ", "))
}

// bound is a rule applied to a claim: what the claim says in the rule's terms.
type bound struct {
	rule    *spec.Rule
	claimed string
	partial bool // only the first components of a version were taken
	numeric bool // claimed was taken from a number of the claim
	word    bool // claimed is one word of the claim, no number
}

// template finds the placeholders of a rule's value.
var template = mustTemplate()

// bind applies a rule. Without a binding, why says what left the rule out; it
// is "" when the rule does not read this claim at all.
func bind(claim *sentence, r *spec.Rule) (b *bound, why string) {
	re, err := patterns.Compile(r.When)
	if err != nil || r.When == "" {
		return nil, ""
	}
	at := re.FindStringSubmatchIndex(claim.text)
	if at == nil {
		return nil, ""
	}
	if r.Unless != "" {
		if not, err := patterns.Compile(r.Unless); err != nil || not.MatchString(claim.text) {
			return nil, "unless"
		}
	}
	b = &bound{rule: r}
	rest := maskGroups(claim.text, at, re.SubexpNames())
	neg := readSentence(rest)
	turns := neg.negated
	if !r.Negated {
		for _, d := range neg.denials {
			if names(r.When, stem(d)) {
				turns--
			}
		}
	}
	switch {
	case turns > 1:
		return nil, Negated + ":twice"
	case turns == 1 && !r.Negated:
		return nil, Negated + ":" + neg.negWord
	case turns == 0 && r.Negated:
		return nil, Negated + ":not"
	}
	for _, h := range neg.hedges {
		if !names(r.When, h) {
			return nil, Hedged + ":" + h
		}
	}
	ok := true
	taken := false
	names := re.SubexpNames()
	b.claimed = template.ReplaceAllStringFunc(r.Value, func(m string) string {
		name := strings.TrimSpace(m[2 : len(m)-2])
		taken = true
		for i, n := range names {
			if n != name || at[2*i] < 0 {
				continue
			}
			lo, hi := at[2*i], at[2*i+1]
			if w := b.take(claim, lo, hi, at[0], at[1]); w != "" {
				ok, why = false, w
			}
			return claim.text[lo:hi]
		}
		ok, why = false, MissingValue
		return ""
	})
	if !ok {
		return nil, why
	}
	if !taken {
		if w := constantBounds(claim, r); w != "" {
			return nil, w
		}
	}
	return b, ""
}

// names: the rule's own pattern speaks of the word, so its author meant it.
func names(when, word string) bool {
	if strings.IndexFunc(word, wordRune) < 0 {
		return false
	}
	return strings.Contains(" "+classes.Replace(strings.ToLower(when)), " "+word)
}

// classes blanks what an expression has between its words.
var classes = strings.NewReplacer(`\b`, " ", `\s+`, " ", `\s*`, " ", `\s`, " ", `\w`, " ", `\d`, " ", "(", " ", ")", " ", "|", " ", "[", " ", "?:", " ", ".*", " ", ".+", " ")

// stem is a denial without its ending, as `rejects?` or `reject(s|ed)` begin.
func stem(word string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(word, end); ok {
			return s
		}
	}
	return word
}

// maskGroups blanks what named groups took: a captured `false` or `no` is a
// value, not a negation. Only groups that hold one word are masked.
func maskGroups(text string, at []int, names []string) string {
	out := []byte(text)
	for i, name := range names {
		if lo, hi := at[2*i], at[2*i+1]; name != "" && lo > at[0] && !strings.ContainsAny(text[lo:hi], " \n") {
			for j := lo; j < hi; j++ {
				out[j] = '_'
			}
		}
	}
	return string(out)
}

// judge compares what the claim says with what was measured.
func (b *bound) judge(r Result, claim *sentence, ev spec.Evidence) Result {
	base := Result{Sensor: r.Sensor, Invocation: r.Invocation}
	v := valueOf(ev, b.rule.Key)
	r.Key, r.Operator, r.Claimed = b.rule.Key, b.rule.Operator, b.claimed
	r.Type = ruleType(b.rule, v)
	if b.numeric && (r.Type == spec.Bytes || r.Type == spec.Duration) && quantities(claim.lower, r.Type) > 1 {
		// 10 MB here, 25 MB there: which of them is meant?
		return r.unsettled(lemma.Inconclusive, AmbiguousValue)
	}
	if r.Type == spec.Version {
		for _, w := range claim.tokens {
			if compatibility[w] && !names(b.rule.When, w) {
				return base.unsettled(lemma.Unjudged, Hedged+":"+w)
			}
		}
	}
	r = r.conclude(v, claim.some)
	if b.word && r.Verdict == lemma.Contradicted && r.Type == spec.String && participle(b.claimed) != "" && participle(b.claimed) != participle(r.Measured) {
		return base.unsettled(lemma.Unjudged, AmbiguousValue) // it is vendored: no name of anything that is measured here
	}
	if b.partial && (r.Verdict == lemma.Confirmed || r.Operator != lemma.Eq || r.Type != spec.Version) && r.settled() {
		return r.unsettled(lemma.Inconclusive, AmbiguousValue)
	}
	return r
}

// ruleType: the rule's, else the extract's, else that of the literal.
func ruleType(r *spec.Rule, v *spec.Value) spec.Type {
	switch {
	case r.Type != "":
		return r.Type
	case v != nil && v.TypeSet:
		return v.Type
	case !template.MatchString(r.Value):
		return literalType(r.Value)
	}
	return spec.String
}

// quantities counts the different sizes or time spans in a claim.
func quantities(lower string, t spec.Type) int {
	re := sizeText
	if t == spec.Duration {
		re = timeText
	}
	seen := map[string]struct{}{}
	for _, m := range re.FindAllString(lower, -1) {
		key := m
		if t == spec.Bytes {
			if r, ok := extract.Bytes(m); ok {
				key = r.String()
			}
		} else if r, ok := extract.Duration(m); ok {
			key = r.String()
		}
		seen[key] = struct{}{}
	}
	return len(seen)
}
