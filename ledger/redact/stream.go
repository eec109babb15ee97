package redact

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// What a stream keeps of its text. A rule reads at most 64 KiB ahead of where a
// secret begins (a key block, a run of base64) and as far back (the kind of a
// manifest below its data), and a little round that.
const (
	holdBack = 80 << 10 // not written yet: a secret may still begin there
	lookBack = 80 << 10 // written, kept as context for what follows
	stretch  = 1 << 20  // text scanned at once
)

// Stream redacts what is written to it and passes it on, in bounded memory. It
// holds the last 80 KiB back until more text or Close has shown what they are,
// so nothing is written that a later byte would have made a secret. Two things
// differ from Bytes over the whole text: a secret that was named once is known
// in everything after, but not in text before it that has already left; and
// what reaches farther than the hold-back is not seen as one thing.
//
// A Stream is for one goroutine. After an error of the writer below it accepts
// nothing more.
type Stream struct {
	e       *Engine
	w       io.Writer
	buf     []byte
	written int // buf[:written] has left
	known   memory
	hits    []Hit
	err     error
}

// NewStream returns a stream that writes to w.
func (e *Engine) NewStream(w io.Writer) *Stream { return &Stream{e: e, w: w} }

// Write takes text; the error is that of the writer below.
func (s *Stream) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && s.err == nil {
		part := p[:min(len(p), stretch)]
		s.buf = append(s.buf, part...)
		p, n = p[len(part):], n+len(part)
		if len(s.buf)-s.written >= stretch+holdBack {
			s.pass(len(s.buf)-holdBack, false)
		}
	}
	return n, s.err
}

// Close writes what was held back. It does not close the writer below.
func (s *Stream) Close() error {
	if s.err == nil {
		s.pass(len(s.buf), true)
		s.buf, s.written = nil, 0
	}
	return s.err
}

// Hits counts what was taken out so far, per rule. There are no spans.
func (s *Stream) Hits() []Hit { return slices.Clone(s.hits) }

// pass scans what is there and writes it up to cut, or to the beginning of a
// secret that reaches beyond.
func (s *Stream) pass(cut int, last bool) {
	all, _ := s.e.settled(s.buf, &s.known)
	if !last {
		for _, f := range all {
			if f.start < cut && f.end > cut && f.start > s.written {
				cut = f.start
			}
		}
	}
	out := make([]byte, 0, cut-s.written+24*len(all))
	at := s.written
	for _, f := range all {
		if f.end <= at || f.start >= cut {
			continue
		}
		out = append(out, s.buf[at:max(at, f.start)]...)
		out = append(out, Mark(f.rule)...)
		at = min(f.end, cut)
		s.count(f.rule)
	}
	if at < cut {
		out = append(out, s.buf[at:cut]...)
	}
	if _, err := s.w.Write(out); err != nil {
		s.err = fmt.Errorf("write redacted text: %w", err)
		return
	}
	drop := max(0, cut-lookBack)
	s.buf = append(s.buf[:0], s.buf[drop:]...)
	s.written = cut - drop
}

// count keeps the rules in order, as Merge does.
func (s *Stream) count(rule string) {
	i, found := slices.BinarySearchFunc(s.hits, rule, func(h Hit, rule string) int { return cmp.Compare(h.Rule, rule) })
	if !found {
		s.hits = slices.Insert(s.hits, i, Hit{Rule: rule})
	}
	s.hits[i].Count++
}
