package sensors

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine makes foreign text fit for one line: no control or invisible
// characters, runs of blanks as one, at most n bytes and whole characters.
func oneLine(s string, n int) string {
	var b strings.Builder
	blank := false
	for _, c := range s {
		if c == utf8.RuneError || unicode.IsControl(c) || unicode.IsSpace(c) {
			blank = b.Len() > 0
			continue
		}
		if unicode.Is(unicode.Cf, c) {
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(c)
		if b.Len() > 4*n {
			break
		}
	}
	out := b.String()
	if len(out) <= n {
		return out
	}
	const more = "…"
	cut := n - len(more)
	for cut > 0 && !utf8.RuneStart(out[cut]) {
		cut--
	}
	return out[:cut] + more
}
