package verdict

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// condition is a falsifier in comparable form, or the reason for dropping it.
type condition struct {
	rule    string
	key     string
	op      lemma.Operator
	value   string
	lit     spec.Type // the type that the literal itself has
	warning string
}

// falsifiers lists what would prove the claim false according to the lemma.
func falsifiers(claim *sentence, c Claim, s *spec.Sensor, ev spec.Evidence) []condition {
	if c.Lemma == nil {
		return nil
	}
	var out []condition
	if fo := c.Lemma.FalsifyingObservation; fo != nil && (fo.Sensor == s.ID || fo.Sensor == s.Qualified()) && valueOf(ev, fo.Key) != nil {
		if f, ok := observed(fo); ok {
			out = append(out, f)
		}
	}
	if f, ok := prose(c.Lemma.Falsifier, s, ev); ok {
		out = append(out, f)
	}
	for i := range out {
		f := &out[i]
		t := f.compareType(valueOf(ev, f.key))
		if asserts(claim, f.key, f.op, f.value, t) {
			f.warning = f.rule + ": the claim itself asserts this observation"
		}
	}
	return out
}

// WrongWay reports whether the observation is what the claim itself asserts:
// it would contradict the claim exactly when the claim is true. t is the type
// of the observed key, "" when it is not known.
func WrongWay(text string, fo *lemma.FalsifyingObservation, t spec.Type) bool {
	f, ok := observed(fo)
	if !ok {
		return false
	}
	if t == "" {
		t = f.lit
	}
	claim := readSentence(text)
	return asserts(&claim, f.key, f.op, f.value, t)
}

func observed(fo *lemma.FalsifyingObservation) (condition, bool) {
	f := condition{rule: RuleObservation, key: fo.Key, op: fo.Operator, lit: spec.String}
	switch v := fo.Value.(type) {
	case string:
		f.value = v
	case bool:
		f.value, f.lit = strconv.FormatBool(v), spec.Bool
	case json.Number:
		f.value, f.lit = v.String(), spec.Number
	case float64:
		f.value, f.lit = strconv.FormatFloat(v, 'f', -1, 64), spec.Number
	case int:
		f.value, f.lit = strconv.Itoa(v), spec.Number
	case int64:
		f.value, f.lit = strconv.FormatInt(v, 10), spec.Number
	default:
		return f, false
	}
	return f, fo.Operator.Valid() && strings.TrimSpace(f.value) != ""
}

func (f condition) compareType(v *spec.Value) spec.Type {
	if v.TypeSet {
		return v.Type
	}
	if wordBool(f.value, true) && wordBool(v.Text, false) {
		return spec.Bool
	}
	return f.lit
}

// wordBool: text is on or off in words; plain true or false when strict.
func wordBool(text string, strict bool) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "false":
		return true
	case "on", "off", "yes", "no", "t", "f":
		return !strict
	}
	return false
}

// judge contradicts when the condition is met under every reading of both
// sides, and says nothing otherwise.
func (f condition) judge(r Result, claim *sentence, ev spec.Evidence) Result {
	v := valueOf(ev, f.key)
	r.Rule, r.Key, r.Operator, r.Claimed = f.rule, f.key, f.op, oneLine(f.value)
	r.Type = f.compareType(v)
	out, why := compareValue(r.Type, v, f.op, f.value, claim.some)
	r.Measured, r.Place = shown(v), v.Place
	switch {
	case out == unknown:
		return r.unsettled(lemma.Inconclusive, why)
	case out != yes, r.Type == spec.String && (f.op == lemma.Ne || f.op == lemma.NotContains) && alike(v, f.value):
		return r.unsettled(lemma.Unjudged, "falsifier_not_met")
	}
	r.Verdict = lemma.Contradicted
	return r
}

// alike: two texts that differ as strings and may yet mean the same (on, true;
// 14, PostgreSQL 14.11), so that "unlike" is not shown.
func alike(v *spec.Value, claimed string) bool {
	c := strings.ToLower(strings.TrimSpace(claimed))
	for _, text := range append([]string{v.Text}, v.All...) {
		m := strings.ToLower(strings.TrimSpace(text))
		if strings.Contains(m, c) || m != "" && strings.Contains(c, m) {
			return true
		}
		for _, t := range []spec.Type{spec.Bool, spec.Number, spec.Bytes, spec.Duration, spec.Version} {
			if holds := compare(t, text, lemma.Eq, claimed); holds == yes || holds == either {
				return true
			}
		}
		if extract.Parses(spec.Version, text) && extract.Parses(spec.Version, claimed) && compare(spec.Version, text, lemma.Eq, claimed) == unknown {
			return true
		}
	}
	return false
}

// proseFrame are the words that may stand before the key in a falsifier: they
// name the reading, and nothing that could narrow or turn the sentence.
var proseFrame = words(`the a an sensor sensors output reading result value of from in returns return returning shows show showing reports report
	reporting says say prints print gives that observing observation measured query command setting key field`)

var (
	proseOp      = regexp.MustCompile("^(?:`|\"|')?\\s*(==|=|<=|>=|<|>|is\\b|equals\\b|returns\\b|shows\\b)\\s*")
	proseLiteral = regexp.MustCompile("^(?:\"([^\"]+)\"|'([^']+)'|`([^`]+)`|(-?[\\w][\\w.+:/@%-]*(?: (?i:[kmgt]i?b|bytes|ms|s|sec|seconds|min|minutes|h|hours|days))?))")
)

// prose reads a falsifier of exactly one clause: a key that this sensor
// extracted, an operator, a literal. Anything beside that is skipped: a misread
// sentence would make up a contradiction.
func prose(text string, s *spec.Sensor, ev spec.Evidence) (condition, bool) {
	none := condition{}
	text = strings.TrimRight(plain(text), trailers)
	keys := make([]string, 0, len(ev.Values))
	for _, v := range ev.Values {
		if v.Key != "" {
			keys = append(keys, v.Key)
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return len(b) - len(a) })
	for _, key := range keys {
		at := wholeIndex(text, key)
		if at < 0 {
			continue
		}
		before, after := text[:at], text[at+len(key):]
		if !framed(before, s) {
			return none, false
		}
		m := proseOp.FindStringSubmatch(after)
		if m == nil {
			return none, false
		}
		rest := after[len(m[0]):]
		lit := proseLiteral.FindStringSubmatch(rest)
		if lit == nil || strings.TrimRight(rest[len(lit[0]):], trailers) != "" {
			return none, false
		}
		f := condition{rule: RuleFalsifier, key: key, lit: spec.String, op: lemma.Operator(m[1])}
		switch m[1] {
		case "==", "is", "equals", "returns", "shows":
			f.op = lemma.Eq
		}
		if f.value = lit[1] + lit[2] + lit[3]; f.value == "" {
			f.value = lit[4]
			low := strings.ToLower(f.value)
			if negations[low] && low != "false" && low != "no" && low != "none" && low != "never" || compounds[low] || hedges[low] ||
				slices.Contains(keys, f.value) {
				return none, false
			}
			f.lit = literalType(f.value)
		}
		return f, true
	}
	return none, false
}

// wholeIndex finds key where it first stands by itself.
func wholeIndex(text, key string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], key)
		if i < 0 {
			return -1
		}
		i += from
		from = i + len(key)
		if !(i > 0 && joins(text[i-1])) && !(from < len(text) && joins(text[from])) {
			return i
		}
	}
}

// joins: the byte belongs to a longer name.
func joins(c byte) bool { return c >= 0x80 || strings.IndexByte(nameBytes, c) >= 0 }

const nameBytes = "_-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// framed: only words that introduce a reading, the sensor's own names included.
func framed(before string, s *spec.Sensor) bool {
	own := map[string]bool{}
	for _, t := range tokens(s.ID + " " + s.Source) {
		own[t] = true
	}
	for _, w := range s.Argv {
		for _, t := range tokens(w.Text) {
			own[t] = true
		}
	}
	for _, t := range tokens(before) {
		if !proseFrame[t] && !own[t] || negations[t] || compounds[t] {
			return false
		}
	}
	return !strings.ContainsAny(before, ";,()!=<>?")
}
