// Package prompt looks for attempts to talk a model out of its instructions, in
// texts of people and of tools. It is a weak floor: phrases can always be said
// another way (see Scan for what it catches). Pure. What follows from a match is
// decided in package action.
package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxScan bounds the text that is looked at, in bytes.
const maxScan = 256 << 10

// confusables are letters of other scripts that look like Latin ones (Unicode
// TR39, the common part). They count only in words that hold Latin letters, too:
// a Russian word stays Russian.
var confusables = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h', 'ӏ': 'l', 'в': 'b', 'к': 'k', 'м': 'm', 'н': 'h', 'т': 't', 'г': 'r', 'п': 'n',
	'α': 'a', 'ο': 'o', 'ρ': 'p', 'ν': 'v', 'ι': 'i', 'κ': 'k', 'τ': 't', 'υ': 'u', 'ε': 'e', 'η': 'n', 'χ': 'x', 'ω': 'w', 'ꭓ': 'x', 'ı': 'i', 'ɡ': 'g', 'ո': 'n', 'ս': 'u', 'օ': 'o', 'ց': 'g', 'հ': 'h', 'ɑ': 'a', 'ⅼ': 'l', 'ǀ': 'l',
}

// text is a normalised text whose bytes know where they came from.
type text struct {
	s    []byte
	from []int32 // for each byte of s the byte of the original that it stands for
	end  []int32 // and where that rune ends there
}

// normalise lowers s, unfolds what only looks different (NFKD), drops accents,
// format characters and control characters, and runs of white space become one
// space (B11). Digits that stand for letters are left alone.
func normalise(s string) text {
	if len(s) > maxScan {
		s = s[:maxScan]
	}
	t := text{s: make([]byte, 0, len(s)), from: make([]int32, 0, len(s)), end: make([]int32, 0, len(s))}
	word := 0 // where the word that is being written begins in t.s
	latin, foreign := false, false
	put := func(r rune, i, n int) {
		var b [utf8.UTFMax]byte
		k := utf8.EncodeRune(b[:], r)
		for j := range k {
			t.s, t.from, t.end = append(t.s, b[j]), append(t.from, int32(i)), append(t.end, int32(i+n)) //nolint:gosec // maxScan fits
		}
	}
	finish := func() {
		if latin && foreign {
			t.latinise(word)
		}
		latin, foreign = false, false
	}
	one := func(r rune, i, n int) {
		switch {
		case unicode.IsSpace(r):
			finish()
			if k := len(t.s); k > 0 && t.s[k-1] != ' ' {
				put(' ', i, n)
			}
			word = len(t.s)
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r):
		default:
			r = unicode.ToLower(r)
			switch {
			case r >= 'a' && r <= 'z':
				latin = true
			case r >= utf8.RuneSelf:
				foreign = true
			}
			put(r, i, n)
		}
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < utf8.RuneSelf {
			one(r, i, n)
		} else {
			for _, d := range norm.NFKD.String(s[i : i+n]) {
				one(d, i, n)
			}
		}
		i += n
	}
	finish()
	return t
}

// latinise replaces look-alikes from byte k on.
func (t *text) latinise(k int) {
	word := string(t.s[k:])
	from, end := t.from[k:], t.end[k:]
	out := text{s: t.s[:k:k], from: t.from[:k:k], end: t.end[:k:k]}
	for i, r := range word {
		if c, ok := confusables[r]; ok {
			r = c
		}
		var b [utf8.UTFMax]byte
		for j := range utf8.EncodeRune(b[:], r) {
			out.s, out.from, out.end = append(out.s, b[j]), append(out.from, from[i]), append(out.end, end[i])
		}
	}
	*t = out
}

// Words cuts a text into its words, normalised as Scan does it, punctuation away.
func Words(s string) []string {
	return strings.FieldsFunc(string(normalise(s).s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
}
