package redact

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// matcher finds secrets by where they stand. Each has keywords of its own and
// looks only round them.
type matcher struct {
	keywords []string
	match    func(s *scan, start, end int)
}

var matchers = []matcher{
	{keywords: secretWords(), match: (*scan).keyValue},
	{keywords: []string{"://"}, match: (*scan).url},
	{keywords: []string{"bearer", "basic ", "authorization", "negotiate "}, match: (*scan).authorization},
	{keywords: []string{"cookie:", `cookie":`}, match: (*scan).cookie},
	{keywords: []string{"-u", "--user", "--proxy-user"}, match: (*scan).userFlag},
	{keywords: []string{"-----begin"}, match: (*scan).pem},
	{keywords: []string{"kind:"}, match: (*scan).kubernetesSecret},
	{keywords: []string{"@tcp(", "@unix("}, match: (*scan).dataSource},
	{keywords: []string{":5432:", ":5433:", ":6432:", ":*:"}, match: (*scan).passwordFile},
}

// extraRules are the ids that matchers use.
var extraRules = []string{
	"password", "secret", "url-userinfo", "authorization", "basic-auth", "cookie", "user-flag", "private-key", "base64", "kubernetes-secret", "repeated",
}

var ruleNames = sync.OnceValue(func() map[string]bool {
	m := make(map[string]bool)
	for _, r := range extraRules {
		m[r] = true
	}
	for i := range tokenRules {
		m[tokenRules[i].id] = true
	}
	return m
})

func knownRule(id string) bool { return ruleNames()[id] }

// scan is one pass over one text.
type scan struct {
	e     *Engine
	text  []byte
	spans []found
	done  []int // per rule: where its windows have been searched to
	depth int   // of base64 inside base64
	kvEnd int   // end of the last key looked at, so that SECRET_TOKEN is one key

	// What bounds the work on repetitive text: each of these has read up to
	// an end already, and how often it began again before that.
	kv, urls, auth, cookies, manifests, pems, users run
	tries                                           []run // per rule
}

// run counts how often a matcher began inside of what it had read before.
type run struct {
	end   int
	again int
}

// againMost is how many nested beginnings are looked at: a URL in a URL is
// common, the hundredth is not.
const againMost = 32

// enter reports whether a look that begins at start may go on.
func (r *run) enter(start int) bool {
	if start >= r.end {
		r.again = 0
		return true
	}
	r.again++
	return r.again <= againMost
}

// left records how far the look went.
func (r *run) left(end int) { r.end = max(r.end, end) }

func (s *scan) add(start, end int, rule string) {
	if start < end {
		s.spans = append(s.spans, found{start, end, rule})
	}
}

// find returns the spans of one pass, in order and disjoint.
func (e *Engine) find(text []byte, m *memory) []found {
	return e.findAt(text, 0, m)
}

func (e *Engine) findAt(text []byte, depth int, m *memory) []found {
	s := &scan{e: e, text: text, depth: depth}
	e.auto.run(text, func(end int, words []hitword) {
		for _, w := range words {
			if w.do.rule < 0 {
				w.do.match(s, end-w.length, end)
				continue
			}
			if s.done == nil {
				s.done = make([]int, len(tokenRules))
				s.tries = make([]run, len(tokenRules))
			}
			s.token(w.do.rule, end-w.length, end)
		}
	})
	if depth < maxDepth {
		s.encoded()
	}
	if len(s.spans) == 0 && (m == nil || len(m.secrets) == 0) {
		return nil
	}
	out := settle(text, s.spans)
	if depth == 0 {
		out = settle(text, s.repeated(out, m))
	}
	return out
}

const (
	repeatMin  = 8
	repeatMost = 64
)

// memory holds the secrets that were found by their context, so that later
// parts of one stream know them too. It belongs to whoever scans that stream.
type memory struct{ secrets [][]byte }

// repeated adds the other places of secrets that were found by their context:
// the same password is no less secret where nothing names it. One pass serves
// all secrets.
func (s *scan) repeated(spans []found, m *memory) []found {
	n := len(spans)
	for _, f := range spans {
		secret := s.text[f.start:f.end]
		if len(secret) >= repeatMin && len(secret) <= 512 && len(m.secrets) < repeatMost && telling(secret) && !containsBytes(m.secrets, secret) {
			m.secrets = append(m.secrets, bytes.Clone(secret))
		}
	}
	if len(m.secrets) == 0 {
		return spans
	}
	var table skips
	table.fill(m.secrets)
	next := 0 // first span that ends behind at
	for at := 0; at+repeatMin <= len(s.text); {
		b := block(s.text[at+repeatMin-blockLen:])
		if n := int(table.far[b]); n > 0 {
			at += n
			continue
		}
		end := 0
		for i := table.first[b]; i > 0; i = table.after[i-1] {
			if secret := m.secrets[i-1]; bytes.HasPrefix(s.text[at:], secret) {
				end = at + len(secret)
				break
			}
		}
		if end == 0 {
			at++
			continue
		}
		for next < n && spans[next].end <= at {
			next++
		}
		if next == n || spans[next].start >= end {
			spans = append(spans, found{at, end, "repeated"})
		}
		at = end
	}
	return spans
}

// blockLen is how many bytes decide how far a search may go on.
const blockLen = 4

// skips is Wu and Manber's (1994) table: for a block of text that ends where the
// first repeatMin bytes of a secret might, how far the next such place is at
// least. Blocks share entries, which makes some of them smaller than need be.
// Where it is 0, first begins the list of the secrets that it may be, by their
// numbers from 1; after goes on.
type skips struct {
	far, first [1 << 12]uint8
	after      [repeatMost]uint8
}

func (t *skips) fill(secrets [][]byte) {
	for i := range t.far {
		t.far[i] = repeatMin - blockLen + 1
	}
	for n, secret := range slices.Backward(secrets) {
		for i := range repeatMin - blockLen + 1 {
			b := block(secret[i:])
			t.far[b] = min(t.far[b], uint8(repeatMin-blockLen-i))
		}
		b := block(secret[repeatMin-blockLen:])
		t.after[n] = t.first[b]
		t.first[b] = uint8(n + 1)
	}
}

// block is the table's entry of the first bytes of b.
func block(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) * 2654435761 >> 20
}

func containsBytes(set [][]byte, b []byte) bool {
	for _, s := range set {
		if bytes.Equal(s, b) {
			return true
		}
	}
	return false
}

// telling reports whether b is unlikely to occur by chance: a name with one
// number in it or an expression of a program may, a random string may not.
func telling(b []byte) bool {
	if callLike(b) || memberLike(b) && alternations(b) < 4 {
		return false
	}
	letters, digits, others, spaces := kinds(b)
	if spaces > 2 || letters == 0 {
		return false
	}
	return alternations(b) >= 3 && entropy(b) >= 2.8 || digits > 0 && others > 0 && !identifierLike(b) && entropy(b) >= 2.8
}

// entropy is Shannon's, in bits per byte.
func entropy(b []byte) float64 {
	if len(b) == 0 {
		return 0
	}
	var n [256]int
	for _, c := range b {
		n[c]++
	}
	e, total := 0.0, float64(len(b))
	for _, k := range n {
		if k > 0 {
			p := float64(k) / total
			e -= p * math.Log2(p)
		}
	}
	return e
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isWord(c byte) bool  { return isAlnum(c) || c == '_' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}
