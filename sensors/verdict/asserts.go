package verdict

import (
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// asserts reports whether the observation (key op value) is met by something
// that the claim itself says: then meeting it proves nothing. What a claim says
// is read cautiously; where it cannot be read, the observation stands.
func asserts(claim *sentence, key string, op lemma.Operator, value string, t spec.Type) bool {
	turned := claim.negated%2 == 1
	if want, ok := extract.Bool(value); ok && (op == lemma.Eq || op == lemma.Ne) && (t == spec.Bool || wordBool(value, false)) {
		if !speaksOf(claim, key) {
			return false
		}
		state := !turned
		for _, w := range claim.tokens {
			if offWords[w] {
				state = !state
				break
			}
		}
		if op == lemma.Ne {
			want = !want
		}
		return state == want
	}
	if !extract.Ordered(t) {
		if !mentions(claim, value) {
			return false
		}
		positive := op == lemma.Eq || op == lemma.Contains
		return positive != turned
	}
	q, before, one := quantity1(claim, t)
	if !one {
		return false
	}
	same := compare(t, q, lemma.Eq, value)
	if t == spec.Number && same != yes && !speaksOf(claim, key) {
		return false // the number may be about something else: a port, a year
	}
	says, words := side(before)
	if strings.HasPrefix(words, "no") {
		turned = !turned // the denial is part of the bound: no more than
	}
	if says == "" {
		says = lemma.Eq
		if t != spec.Version && isCapable(claim) {
			says = lemma.Ge
		}
	}
	if turned {
		says = map[lemma.Operator]lemma.Operator{
			lemma.Eq: lemma.Ne, lemma.Gt: lemma.Le, lemma.Ge: lemma.Lt, lemma.Lt: lemma.Ge, lemma.Le: lemma.Gt,
		}[says]
	}
	is := func(op lemma.Operator) bool { // at the claim's own value
		r := compare(t, q, op, value)
		return r == yes || r == either
	}
	if t == spec.Bytes { // both in the same thousands
		n, _ := extract.Bytes(q)
		v, ok := extract.Bytes(claimedForm(t, value))
		if !ok {
			return false
		}
		is = func(op lemma.Operator) bool {
			if op == lemma.Ne {
				return n.Cmp(v) != 0
			}
			return ordered(n.Cmp(v), op) == yes
		}
	}
	switch says {
	case lemma.Eq:
		return is(op)
	case lemma.Ne:
		return !(op == lemma.Eq && is(lemma.Eq))
	case lemma.Ge, lemma.Gt:
		switch op {
		case lemma.Gt, lemma.Ge, lemma.Ne:
			return true
		case lemma.Eq:
			return is(lemma.Lt) || says == lemma.Ge && is(lemma.Eq)
		case lemma.Le:
			return is(lemma.Lt) || says == lemma.Ge && is(lemma.Eq)
		}
		return is(lemma.Lt)
	default: // at most
		switch op {
		case lemma.Lt, lemma.Le, lemma.Ne:
			return true
		case lemma.Eq, lemma.Ge:
			return is(lemma.Gt) || says == lemma.Le && is(lemma.Eq)
		}
		return is(lemma.Gt)
	}
}

// fillers are parts of keys that say nothing about what the key is about.
var fillers = words(`is has are enabled active use uses using the value setting current effective server`)

// speaksOf: the words that make up the key stand in the claim. A key of fillers
// alone (active) is about whatever its sensor is about.
func speaksOf(claim *sentence, key string) bool {
	for part := range strings.FieldsFuncSeq(strings.ToLower(key), func(r rune) bool { return r == '_' || r == '.' || r == '-' || r == ' ' || r == '/' }) {
		if fillers[part] {
			continue
		}
		found := false
		for _, w := range claim.tokens {
			if w == part || len(part) >= 4 && len(w) >= 4 && (strings.HasPrefix(w, part) || strings.HasPrefix(part, w)) || w == part+"s" || w+"s" == part {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// mentions: the value stands in the claim as whole words.
func mentions(claim *sentence, value string) bool {
	want := tokens(plain(value))
	if len(want) == 0 {
		return strings.Contains(claim.lower, strings.ToLower(strings.TrimSpace(value)))
	}
	for i := 0; i+len(want) <= len(claim.tokens); i++ {
		if slices.Equal(claim.tokens[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// quantity1 is the claim's only quantity of type t and the text before it.
func quantity1(claim *sentence, t spec.Type) (q, before string, ok bool) {
	re := aNumber
	switch t {
	case spec.Bytes:
		re = sizeText
	case spec.Duration:
		re = timeText
	}
	for _, at := range re.FindAllStringIndex(claim.lower, 16) {
		text := claim.lower[at[0]:at[1]]
		if t == spec.Number || t == spec.Version {
			if at[0] > 0 && joins(claim.lower[at[0]-1]) {
				continue
			}
			text = claimedForm(spec.Number, strings.TrimRight(text, "."))
		}
		if !extract.Parses(t, text) {
			continue
		}
		if ok {
			return "", "", false
		}
		q, before, ok = text, claim.lower[:at[0]], true
	}
	return q, before, ok
}

func isCapable(claim *sentence) bool {
	for _, w := range claim.tokens {
		if capable[w] {
			return true
		}
	}
	return false
}
