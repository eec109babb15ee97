package redact

import (
	"bytes"
	"fmt"
	"testing"
)

// FuzzAutomaton: the machine that skips finds what a search for each keyword at
// each place finds, and repeated secrets are found wherever they stand.
func FuzzAutomaton(f *testing.F) {
	f.Add([]byte("password=x PASS -u -U --user apikey AKIA sk-proj- kkey tokentoken ://://"), 3, 9)
	f.Add([]byte("-"), 0, 1)
	f.Add([]byte("passpassword-----BEGIN basic bearer authorizatio-n"), 0, 8)
	a := shared()
	var words []string
	for i := range tokenRules {
		words = append(words, tokenRules[i].keywords...)
	}
	for _, m := range matchers {
		words = append(words, m.keywords...)
	}
	f.Fuzz(func(t *testing.T, text []byte, from, length int) {
		if len(text) > 512 {
			return
		}
		// A word in the midst of the text: fuzzing alone rarely writes one.
		if n := len(words); len(text) > 0 && from >= 0 {
			text = append(bytes.Clone(text[:from%len(text)]), words[from%n]...)
			text = append(text, words[(from/n)%n]...)
		}
		got := map[string]int{}
		a.run(text, func(end int, hits []hitword) {
			for _, h := range hits {
				got[fmt.Sprint(end, h.length)]++
			}
		})
		want := map[string]int{}
		folded := bytes.Clone(text)
		for i, c := range folded { // as the machine folds: ASCII alone
			if isUpper(c) {
				folded[i] = c - 'A' + 'a'
			}
		}
		for _, w := range words {
			for at := 0; at+len(w) <= len(folded); at++ {
				if string(folded[at:at+len(w)]) == w {
					want[fmt.Sprint(at+len(w), len(w))]++
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: found %v, want %v", text, got, want)
		}
		if length < repeatMin || length > len(text) {
			return
		}
		m := &memory{secrets: [][]byte{text[:length], text[len(text)-length:]}}
		s := &scan{text: append(append([]byte("x "), text...), text...)}
		end := 0
		var naive []found
		for at := 0; at+repeatMin <= len(s.text); at++ {
			for _, secret := range m.secrets {
				if bytes.HasPrefix(s.text[at:], secret) {
					naive = append(naive, found{at, at + len(secret), "repeated"})
					end = at + len(secret)
					break
				}
			}
			at = max(at, end-1)
		}
		if spans := s.repeated(nil, m); fmt.Sprint(spans) != fmt.Sprint(naive) {
			t.Fatalf("%q: repeated at %v, want %v", s.text, spans, naive)
		}
	})
}

// Text without secrets costs no memory by the line: a log of a megabyte is read
// with what a page of it takes.
func TestAllocations(t *testing.T) {
	e := New()
	page := func(lines int) []byte {
		return bytes.Repeat([]byte("2026-01-02T10:00:00Z INFO request finished method=GET path=/api/items/7 max_tokens=4096 key_count=3 user=app\n"+
			"commit 0123456789abcdef0123456789abcdef01234567\n    if err := store.Put(ctx, key, value); err != nil {\n"), lines)
	}
	count := func(text []byte) float64 { return testing.AllocsPerRun(5, func() { e.Bytes(text) }) }
	small, large := count(page(10)), count(page(1000))
	if large > small+16 {
		t.Errorf("%v allocations for 10 lines, %v for 1000", small, large)
	}
}
