package verdict

import (
	"fmt"
	"regexp"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// numberIn finds the part of a claim that a suggested rule would take.
var numberIn = map[spec.Type]string{
	spec.Bytes:    `\d+\s*[kmgt]?(i?b)?`,
	spec.Duration: `\d+\s*(ms|s|seconds?|m|min|minutes?|h|hours?|d|days?)`,
	spec.Version:  `\d+(\.\d+)*`,
	spec.Number:   `\d+`,
}

// Suggest writes the judge rule that would read this claim, as a line for
// sensors.yaml, after a reading that no rule could judge. It is a draft for a
// person: nothing uses it before it is approved. ok is false when the claim
// holds no single quantity that some value of the reading could be compared to.
func Suggest(claim string, s *spec.Sensor, ev spec.Evidence) (line string, ok bool) {
	read := readSentence(claim)
	if read.compound != "" || read.negated > 0 || len(read.hedges) > 0 {
		return "", false
	}
	for _, v := range ev.Values {
		if v.Problem != "" {
			continue
		}
		t := v.Type
		if !v.TypeSet {
			t = guessType(v.Text)
		}
		number, known := numberIn[t]
		if !known {
			continue
		}
		when, found := around(read.lower, number)
		if !found {
			continue
		}
		r := spec.Rule{When: when, Key: v.Key, Type: t, Operator: lemma.Eq, Value: "{{v}}"}
		if t != spec.Version && isCapable(&read) {
			r.Operator = lemma.Ge
		}
		trial := *s
		trial.Judge = []spec.Rule{r}
		if !Judge(Claim{Text: claim}, &trial, ev).settled() {
			continue
		}
		return fmt.Sprintf(`- { when: '%s', key: %s, operator: "%s", value: "{{v}}", type: %s }`,
			strings.ReplaceAll(when, "'", "''"), yamlName(v.Key), r.Operator, t), true
	}
	return "", false
}

// guessType is the narrowest ordered type that an untyped value reads as.
func guessType(text string) spec.Type {
	for _, t := range []spec.Type{spec.Number, spec.Bytes, spec.Duration, spec.Version} {
		if extract.Parses(t, text) && !strings.EqualFold(strings.TrimSpace(text), extract.Unlimited) {
			if t == spec.Number && strings.Contains(text, ".") {
				return spec.Version
			}
			return t
		}
	}
	return spec.String
}

// around builds an expression from the number and the two words before it.
func around(lower, number string) (string, bool) {
	at := regexp.MustCompile(`\b`+number+`\b`).FindAllStringIndex(lower, 3)
	if len(at) != 1 {
		return "", false
	}
	before := tokens(lower[:at[0][0]])
	if len(before) == 0 {
		return "", false
	}
	before = before[max(0, len(before)-2):]
	for i, w := range before {
		before[i] = regexp.QuoteMeta(w)
	}
	return `(?i)\b` + strings.Join(before, `\W+`) + `\W+(?P<v>` + number + `)\b`, true
}

// yamlName quotes a key that is not a plain word.
func yamlName(key string) string {
	if key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && !isDigit(key[0]) {
		return key
	}
	return "'" + strings.ReplaceAll(key, "'", "''") + "'"
}
