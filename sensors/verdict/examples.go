package verdict

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// CheckExamples runs a sensor's judge examples, and finds rules that could
// never conclude. The registry loader calls it: a rule whose own examples fail
// is not loaded.
func CheckExamples(s *spec.Sensor) []spec.Problem {
	var out []spec.Problem
	report := func(at spec.Pos, hint, format string, args ...any) {
		out = append(out, spec.Problem{Pos: at, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	for i := range s.Judge {
		r := &s.Judge[i]
		name := fmt.Sprintf("judge rule %d of %s", i+1, s.ID)
		e := extractOf(s, r.Key)
		if e == nil {
			report(r.Pos, "extract it, or name one of: "+strings.Join(keysOf(s), ", "), "%s compares %q, which is not extracted", name, r.Key)
			continue
		}
		if what := unreadable(r, e); what != "" {
			report(r.Pos, "", "%s %s", name, what)
			continue
		}
		alone := *s
		alone.Judge = s.Judge[i : i+1]
		for _, x := range r.Examples {
			ev := spec.Evidence{Sensor: s.ID, Values: []spec.Value{extract.Typed(e, x.Measured)}}
			got := Judge(Claim{Text: x.Claim}, &alone, ev)
			if word := exampleWord(got); word != x.Verdict {
				report(x.Pos, why(got), "%s: example %q with %q gives %s, not %s", name, x.Claim, x.Measured, word, x.Verdict)
				continue
			}
			if !got.settled() {
				continue
			}
			if all := Judge(Claim{Text: x.Claim}, s, ev); all.Verdict != got.Verdict {
				report(x.Pos, "rules apply in order", "%s: example %q is %s by %s first", name, x.Claim, exampleWord(all), all.Rule)
			}
		}
	}
	return out
}

// exampleWord is the verdict in an example's words: skip is no rule applied.
func exampleWord(r Result) string {
	if r.Verdict == lemma.Unjudged {
		return "skip"
	}
	return string(r.Verdict)
}

func why(r Result) string {
	if r.Reason == "" {
		return ""
	}
	return "reason: " + r.Reason
}

// unreadable says why a rule can never settle anything.
func unreadable(r *spec.Rule, e *spec.Extract) string {
	re, err := patterns.Compile(r.When)
	switch {
	case r.When == "":
		return "has no when"
	case err != nil:
		return "when: " + err.Error()
	}
	if r.Unless != "" {
		if _, err := patterns.Compile(r.Unless); err != nil {
			return "unless: " + err.Error()
		}
	}
	if !r.Operator.Valid() {
		return fmt.Sprintf("has no operator %q", r.Operator)
	}
	for _, m := range template.FindAllString(r.Value, -1) {
		if name := strings.TrimSpace(m[2 : len(m)-2]); re.SubexpIndex(name) < 0 {
			return fmt.Sprintf("uses {{%s}}, but when has no group of that name", name)
		}
	}
	t, set := extract.ValueType(e)
	v := spec.Value{Type: t, TypeSet: set}
	rt := ruleType(r, &v)
	switch r.Operator {
	case lemma.Lt, lemma.Le, lemma.Gt, lemma.Ge:
		if !extract.Ordered(rt) {
			return fmt.Sprintf("orders by %s, but a %s has no order: set type", r.Operator, rt)
		}
	case lemma.Contains, lemma.NotContains:
		if rt != spec.String {
			return fmt.Sprintf("asks %s of a %s", r.Operator, rt)
		}
	}
	if !template.MatchString(r.Value) && !extract.Parses(rt, claimedForm(rt, r.Value)) {
		return fmt.Sprintf("has the value %q, which is no %s", r.Value, rt)
	}
	return ""
}

func keysOf(s *spec.Sensor) []string {
	keys := make([]string, len(s.Extract))
	for i, e := range s.Extract {
		keys[i] = e.Name
	}
	return keys
}

// Unreachable lists the categories of a sensor that no phrase leads to: only a
// suggested sensor or an observation can reach it through them.
func Unreachable(s *spec.Sensor, own map[string][]string) []spec.Problem {
	var out []spec.Problem
	for _, c := range s.Verifies {
		if !Known(c, own) {
			out = append(out, spec.Problem{Pos: s.Pos, What: fmt.Sprintf("category %s has no keywords: only suggested_sensor can reach it", c),
				Hint: "add phrases under matching:"})
		}
	}
	return out
}
