package verdict

import (
	"math/big"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// patterns keeps the compiled expressions of judge rules.
var patterns = extract.NewPatterns(1024)

// truth is a comparison's outcome. Some sides read in two ways (25 MB is 10⁶
// or 2²⁰ bytes each; 14 is 14.0 or any 14): either means true one way only.
type truth int

const (
	unknown truth = iota
	no
	yes
	either
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) not() truth {
	switch t {
	case yes, either:
		return no
	case no:
		return yes
	}
	return unknown
}

// merge is the truth over two readings.
func merge(a, b truth) truth {
	if a == b {
		return a
	}
	return either
}

// Compare asks whether measured OPERATOR claimed holds, both sides read as t.
// ok is false where that settles nothing: a side that does not read as t, an
// order asked of what has none, a measured version that says less than the
// claim does. A claimed size is read in powers of 1000 and of 1024 and holds
// when one of them does.
func Compare(t spec.Type, measured string, op lemma.Operator, claimed string) (holds, ok bool) {
	switch compare(t, measured, op, claimed) {
	case yes, either:
		return true, true
	case no:
		return false, true
	}
	return false, false
}

func compare(t spec.Type, measured string, op lemma.Operator, claimed string) truth {
	switch op {
	case lemma.Ne:
		return compare(t, measured, lemma.Eq, claimed).not()
	case lemma.NotContains:
		return compare(t, measured, lemma.Contains, claimed).not()
	}
	measured, claimed = strings.TrimSpace(measured), strings.TrimSpace(claimed)
	if claimed == "" {
		return unknown
	}
	if !extract.Ordered(t) {
		switch {
		case t == spec.Bool && op == lemma.Eq:
			m, ok1 := extract.Bool(measured)
			c, ok2 := extract.Bool(claimed)
			if !ok1 || !ok2 {
				return unknown
			}
			return truthOf(m == c)
		case t != spec.Bool && op == lemma.Eq:
			return truthOf(measured == claimed)
		case t != spec.Bool && op == lemma.Contains:
			return truthOf(strings.Contains(measured, claimed))
		}
		return unknown
	}
	if op == lemma.Contains {
		return unknown
	}
	if strings.EqualFold(measured, extract.Unlimited) {
		if !extract.Parses(t, claimedForm(t, claimed)) || strings.EqualFold(claimed, extract.Unlimited) {
			return unknown
		}
		switch op {
		case lemma.Gt, lemma.Ge:
			return yes
		case lemma.Lt, lemma.Le:
			return no
		}
		return unknown
	}
	if t == spec.Version {
		return compareVersions(measured, op, claimed)
	}
	m, ok := quantity(t, measured)
	if !ok {
		return unknown
	}
	if t == spec.Bytes {
		n, unit, ok := extract.Size(claimedForm(t, claimed))
		if !ok {
			return unknown
		}
		if mn, mu, ok := extract.Size(measured); ok && op == lemma.Eq && mu.Power == unit.Power && mn.Cmp(n) == 0 {
			return yes // spelled alike, meant alike
		}
		binary := ordered(m.Cmp(extract.Scale(n, 1024, unit.Power)), op)
		if unit.Exact || unit.Power == 0 {
			return binary
		}
		return merge(binary, ordered(m.Cmp(extract.Scale(n, 1000, unit.Power)), op))
	}
	c, ok := quantity(t, claimedForm(t, claimed))
	if !ok {
		return unknown
	}
	return ordered(m.Cmp(c), op)
}

func quantity(t spec.Type, text string) (*big.Rat, bool) {
	switch t {
	case spec.Bytes:
		return extract.Bytes(text)
	case spec.Duration:
		return extract.Duration(text)
	}
	return extract.Number(text)
}

func ordered(cmp int, op lemma.Operator) truth {
	switch op {
	case lemma.Eq:
		return truthOf(cmp == 0)
	case lemma.Lt:
		return truthOf(cmp < 0)
	case lemma.Le:
		return truthOf(cmp <= 0)
	case lemma.Gt:
		return truthOf(cmp > 0)
	case lemma.Ge:
		return truthOf(cmp >= 0)
	}
	return unknown
}

// compareVersions: = holds when the claimed components begin the measured ones;
// order pads with zeros and drops suffixes. Where the two disagree (is 14.11
// newer than 14?) the outcome is either.
func compareVersions(measured string, op lemma.Operator, claimed string) truth {
	m, ok1 := extract.ParseVersion(measured)
	c, ok2 := extract.ParseVersion(claimed)
	if !ok1 || !ok2 {
		return unknown
	}
	prefix := true
	for i, p := range c.Parts {
		if i >= len(m.Parts) {
			break
		}
		prefix = prefix && m.Parts[i] == p
	}
	if op == lemma.Eq {
		if prefix && (len(c.Parts) > len(m.Parts) || c.Suffix != "" && c.Suffix != m.Suffix) {
			return unknown // the reading says less than the claim, or a suffix that need not match
		}
		return truthOf(prefix)
	}
	padded := ordered(compareParts(m.Parts, c.Parts), op)
	if prefix && len(c.Parts) < len(m.Parts) && (op == lemma.Le || op == lemma.Gt) {
		return merge(padded, ordered(0, op))
	}
	if prefix && len(c.Parts) > len(m.Parts) && compareParts(m.Parts, c.Parts) != 0 {
		return unknown
	}
	return padded
}

func compareParts(a, b []string) int {
	for i := range max(len(a), len(b)) {
		x, y := "0", "0"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// spelled are the numerals that claims use.
var spelled = map[string]string{
	"a": "1", "an": "1", "one": "1", "single": "1", "a single": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
	"seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "zero": "0",
}

// claimedForm reads a spelled numeral; a reading never has one.
func claimedForm(t spec.Type, claimed string) string {
	low := strings.ToLower(strings.TrimSpace(claimed))
	if n, ok := spelled[low]; ok && t == spec.Number {
		return n
	}
	if word, rest, ok := strings.Cut(low, " "); ok && (t == spec.Duration || t == spec.Bytes) {
		if n, ok := spelled[word]; ok {
			return n + " " + rest
		}
	}
	return claimed
}

// literalType is the type that a bare literal has in YAML or JSON.
func literalType(text string) spec.Type {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "false":
		return spec.Bool
	}
	if _, ok := extract.Number(text); ok {
		return spec.Number
	}
	return spec.String
}

// compareValue compares an extracted value; reason says why it is unknown.
// Under which: all every value must agree with the claim; some of several is
// left open where the claim is about some only.
func compareValue(t spec.Type, v *spec.Value, op lemma.Operator, claimed string, some bool) (truth, string) {
	if v == nil {
		return unknown, MissingValue
	}
	if v.Problem != "" && !(v.Problem == TypeMismatch && t != v.Type) {
		return unknown, v.Problem
	}
	all := []string{v.Text}
	if v.Which == "all" && len(v.All) > 0 {
		all = v.All
	}
	universal := op
	switch op { // the exact negations
	case lemma.Ne:
		universal = lemma.Eq
	case lemma.NotContains:
		universal = lemma.Contains
	}
	yesses, nos, eithers := 0, 0, 0
	for _, text := range all {
		if redacted(text) {
			return unknown, MissingValue
		}
		switch compare(t, text, universal, claimed) {
		case yes:
			yesses++
		case no:
			nos++
		case either:
			eithers++
		default:
			if t == spec.Version && extract.Parses(t, text) && extract.Parses(t, claimed) {
				return unknown, AmbiguousValue
			}
			return unknown, TypeMismatch
		}
	}
	var out truth
	switch {
	case nos > 0 && (yesses > 0 || eithers > 0) && some:
		return unknown, AmbiguousValue
	case nos > 0:
		out = no
	case eithers > 0:
		out = either
	default:
		out = yes
	}
	if universal != op {
		out = out.not()
	}
	return out, ""
}

// redacted: what a secret left behind is no value.
func redacted(text string) bool {
	return strings.Contains(text, "[redacted")
}
