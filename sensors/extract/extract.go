// Package extract turns the bytes that a sensor printed into typed values:
// one file per way of finding a value, one for the types. Pure: it sees bytes
// and a definition, nothing else. What a value means for a claim is decided in
// sensors/verdict; running and redacting belong to sensors. An output is
// untrusted: every match is bounded, and whatever is unclear becomes a Problem
// on the value, never a guess.
package extract

import (
	"gettier.dev/gettierd/sensors/spec"
)

// Problems of a value.
const (
	Missing   = "missing_value"
	Ambiguous = "ambiguous_value"
	Mismatch  = "type_mismatch"
)

// maxMatches bounds the matches kept for one value; more than that is unclear.
const maxMatches = 1000

// maxText bounds one value. A longer text is kept cut and marked Mismatch,
// since comparing half a value would be a guess.
const maxText = 4096

// match is one place where an output says a value.
type match struct {
	text  string
	place string
}

// found is what a finder saw. unclear is set when a part of the output that
// may hold the value could not be read.
type found struct {
	matches []match
	unclear bool
}

// Extract reads every value of s.Extract from raw, in that order. exit is the
// process's exit code, which only the exit kind reads.
func Extract(s *spec.Sensor, raw []byte, exit int) []spec.Value {
	doc := newDocument(raw)
	out := make([]spec.Value, 0, len(s.Extract))
	for i := range s.Extract {
		e := &s.Extract[i]
		out = append(out, settle(e, find(e, doc, exit)))
	}
	return out
}

// Typed makes the value that e would yield had the output said text once: map,
// type and problem as in Extract. Judge examples are read through it.
func Typed(e *spec.Extract, text string) spec.Value {
	return settle(e, found{matches: []match{{text: text}}})
}

// ValueType is the type that e's values compare as, and whether the registry
// fixes it: written, or given by the kind (a count and an exit code are
// numbers).
func ValueType(e *spec.Extract) (spec.Type, bool) {
	if e.TypeSet && e.Type != "" {
		return e.Type, true
	}
	if e.Lines != "" || e.Exit {
		return spec.Number, true
	}
	if e.Type == "" {
		return spec.String, false
	}
	return e.Type, e.Type != spec.String
}
