package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// makes are the ways in which people and programs make secrets.
var makes = []struct {
	name  string
	token bool // is also what keys and tokens look like
	of    func(r *rand.Rand) string
}{
	{"mixed", false, func(r *rand.Rand) string { return letters(r, alnum+"^!#%*+_=?", 9+r.IntN(9)) }},
	{"alnum", true, func(r *rand.Rand) string { return letters(r, alnum, 16+r.IntN(16)) }},
	{"lower", false, func(r *rand.Rand) string { return letters(r, "abcdefghijklmnopqrstuvwxyz0123456789", 8+r.IntN(16)) }},
	{"hex", true, func(r *rand.Rand) string { return letters(r, lower, 32) }},
	{"long hex", true, func(r *rand.Rand) string { return letters(r, lower, 64) }},
	{"base64", true, func(r *rand.Rand) string {
		b := make([]byte, 24)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}},
	{"human", false, func(r *rand.Rand) string {
		return []string{"Sommer", "Dragon", "Tr0ub4dor", "letmein", "blue"}[r.IntN(5)] + []string{"2024!", "#99", "_x1", "123", "!!7"}[r.IntN(5)]
	}},
	{"words", false, func(r *rand.Rand) string {
		w := []string{"horse", "battery", "green", "tiger", "river"}
		return w[r.IntN(5)] + "-" + w[r.IntN(5)] + "-" + w[r.IntN(5)] + "-" + w[r.IntN(5)]
	}},
	{"letters", false, func(r *rand.Rand) string {
		return letters(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 12+r.IntN(8))
	}},
}

func letters(r *rand.Rand, from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

// Random secrets of every make, in every place where secrets stand, go, and go
// as a whole. A few are meant to look like something else: a password of plain
// letters behind a word may be a variable.
func TestShapes(t *testing.T) {
	data, err := os.ReadFile("testdata/shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := New()
	r := rand.New(rand.NewPCG(11, 12))
	n, leaked := 0, 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		kind, shape, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		shape = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(shape)
		here := 0
		for _, m := range makes {
			if kind == "tok" && !m.token {
				continue
			}
			for range 20 {
				secret := m.of(r)
				text := "before\n" + strings.Replace(shape, "{}", secret, 1) + "\nafter\n"
				out, _ := e.String(text)
				n++
				if strings.Contains(out, secret) || strings.Contains(out, secret[:len(secret)*3/4]) || strings.Contains(out, secret[len(secret)/4:]) {
					leaked++
					if here++; here <= 2 {
						t.Logf("%s in %q leaves %q", m.name, shape, out)
					}
				}
			}
		}
		if here > 12 {
			t.Errorf("%d secrets leak in %q", here, shape)
		}
	}
	t.Logf("%d of %d secrets leak", leaked, n)
	if n < 5000 || leaked*200 > n {
		t.Errorf("%d of %d secrets leak, at most one of 200 may", leaked, n)
	}
}
