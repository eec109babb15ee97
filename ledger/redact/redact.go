// Package redact takes secrets out of bytes before they are written, exported
// or logged. It knows tokens by their shape, passwords by where they stand
// (URLs, connection strings, command lines, headers, key = value), and private
// key blocks. It replaces the secret and nothing else, by a marker that names
// the rule.
//
// The package is pure: no I/O, no clock, no configuration read from the text
// itself, so nothing inside a text can switch it off. What happens with a hit
// (an event on the chain) is the caller's business. The secret, or a hash of
// it, never leaves this package.
package redact

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// Span is a place in the bytes that were given, end exclusive.
type Span struct{ Start, End int }

// Hit says which rule took how many secrets out, and where. Rule ids are stable.
type Hit struct {
	Rule  string
	Count int
	Spans []Span
}

// Engine is safe for concurrent use and costs little to share.
type Engine struct{ auto *automaton }

// The automaton is the same for every engine, so it is built once, on first use.
var shared = sync.OnceValue(func() *automaton {
	var words []keyword
	for i := range tokenRules {
		for _, k := range tokenRules[i].keywords {
			words = append(words, keyword{k, trigger{rule: i}})
		}
	}
	for _, m := range matchers {
		for _, k := range m.keywords {
			words = append(words, keyword{k, trigger{rule: -1, match: m.match}})
		}
	}
	return build(words)
})

// New returns an engine with every rule.
func New() *Engine { return &Engine{auto: shared()} }

const (
	markOpen  = "[redacted:"
	markClose = ']'

	// maxPasses bounds the search for a fixed point. A pass only ever shrinks
	// what is still readable, so two are the rule and three a curiosity.
	maxPasses = 6
)

// Mark is what stands where rule took a secret out.
func Mark(rule string) string { return markOpen + rule + string(markClose) }

// String is Bytes for strings; without a hit it returns s itself.
func (e *Engine) String(s string) (string, []Hit) {
	out, hits := e.Bytes([]byte(s))
	if len(hits) == 0 {
		return s, nil
	}
	return string(out), hits
}

// Bytes returns b without its secrets, and what was taken. Without a hit it
// returns b itself. b is never changed. Redacting the result again changes
// nothing.
func (e *Engine) Bytes(b []byte) ([]byte, []Hit) {
	all, text := e.settled(b, &memory{})
	if len(all) == 0 {
		return b, nil
	}
	return text, tally(all)
}

// settled finds everything that has to go, in order, and what remains: passes
// over the text until one finds nothing more.
func (e *Engine) settled(b []byte, m *memory) ([]found, []byte) {
	var all []found // places in b
	text := b
	var segs []segment // how text maps back to b, after the first pass
	for pass := range maxPasses {
		if pass == 1 && e.quietNear(text, segs) {
			break
		}
		spans := e.find(text, m)
		if len(spans) == 0 {
			break
		}
		for _, f := range spans {
			s, t := back(segs, f.start), back(segs, f.end)
			all = append(all, found{s, t, f.rule})
		}
		sortFound(all)
		text, segs = replace(b, all)
	}
	return all, text
}

// near is how far from a replacement a second look goes, in bytes. What it leaves
// out is as it was in the first pass.
const near = 1 << 10

// quietNear reports that the second pass over a long text has nothing to look at:
// there is nothing to find near what the first one replaced. It decides nothing
// itself, since a part that is cut out may look like what it is not.
func (e *Engine) quietNear(text []byte, segs []segment) bool {
	from, to := 0, 0 // a window that is not looked at yet
	for _, s := range segs {
		if s.out-near > to {
			if len(e.findAt(text[from:to], 0, &memory{})) > 0 {
				return false
			}
			from = max(s.out-near, 0)
		}
		to = min(s.out+near, len(text))
	}
	return to-from < len(text) && len(e.findAt(text[from:to], 0, &memory{})) == 0
}

// segment says that from out on, output offsets are input offsets plus shift.
type segment struct{ out, in int }

func back(segs []segment, at int) int {
	i, found := slices.BinarySearchFunc(segs, at, func(s segment, at int) int { return cmp.Compare(s.out, at) })
	if !found {
		i--
	}
	if i < 0 {
		return at
	}
	return segs[i].in + at - segs[i].out
}

func replace(b []byte, spans []found) ([]byte, []segment) {
	out := make([]byte, 0, len(b)+24*len(spans))
	segs := make([]segment, 0, len(spans))
	at := 0
	for _, f := range spans {
		out = append(out, b[at:f.start]...)
		out = append(out, markOpen...)
		out = append(out, f.rule...)
		out = append(out, markClose)
		at = f.end
		segs = append(segs, segment{len(out), at})
	}
	return append(out, b[at:]...), segs
}

func tally(spans []found) []Hit {
	var hits []Hit
	for _, f := range spans {
		i := slices.IndexFunc(hits, func(h Hit) bool { return h.Rule == f.rule })
		if i < 0 {
			hits = append(hits, Hit{Rule: f.rule})
			i = len(hits) - 1
		}
		hits[i].Count++
		hits[i].Spans = append(hits[i].Spans, Span{f.start, f.end})
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Compare(a.Rule, b.Rule) })
	return hits
}

// Merge adds up hits of several texts; the spans are left out, for they would
// mean nothing without their text.
func Merge(hits ...[]Hit) []Hit {
	var out []Hit
	for _, hs := range hits {
		for _, h := range hs {
			i := slices.IndexFunc(out, func(o Hit) bool { return o.Rule == h.Rule })
			if i < 0 {
				out = append(out, Hit{Rule: h.Rule, Count: h.Count})
				continue
			}
			out[i].Count += h.Count
		}
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Compare(a.Rule, b.Rule) })
	return out
}

type found struct {
	start, end int
	rule       string
}

func sortFound(fs []found) {
	slices.SortFunc(fs, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.rule, b.rule))
	})
}

// settle orders spans, joins those that overlap (the one that starts first
// names the rule) and drops what touches a marker that stands already.
func settle(text []byte, fs []found) []found {
	sortFound(fs)
	out := fs[:0]
	for _, f := range fs {
		if f.end <= f.start {
			continue
		}
		if n := len(out); n > 0 && f.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, f.end)
			continue
		}
		out = append(out, f)
	}
	if !bytes.Contains(text, []byte(markOpen)) {
		return out
	}
	marks := markers(text)
	return slices.DeleteFunc(out, func(f found) bool {
		i, _ := slices.BinarySearchFunc(marks, f.start, func(s Span, at int) int { return cmp.Compare(s.End, at+1) })
		return i < len(marks) && marks[i].Start < f.end
	})
}

// markers finds what looks exactly like our own marker: a rule id is lower
// case letters, digits, dash and dot, at most 64 bytes, so that a forged
// marker cannot shelter much.
func markers(text []byte) []Span {
	var out []Span
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(markOpen))
		if i < 0 {
			return out
		}
		start := at + i
		end := start + len(markOpen)
		for end < len(text) && end-start < 80 && (isLower(text[end]) || isDigit(text[end]) || text[end] == '-' || text[end] == '.') {
			end++
		}
		at = end
		if end < len(text) && text[end] == markClose && knownRule(string(text[start+len(markOpen):end])) {
			out = append(out, Span{start, end + 1})
		}
	}
}
