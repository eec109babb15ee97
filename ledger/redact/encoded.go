package redact

import "bytes"

const (
	// maxDepth is how often base64 is looked into; an auth file in a secret in
	// a manifest is two.
	maxDepth = 2
	// encodedMin is the shortest run that could hide a password with its name.
	encodedMin  = 20
	encodedMost = 64 << 10
)

func isBase64(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_' }

// base64Table saves the loop below four comparisons a byte.
var base64Table = func() (t [256]bool) {
	for c := range 256 {
		t[c] = isBase64(byte(c))
	}
	return
}()

// encoded decodes runs of base64 that hold text and looks into them. A run
// with a secret inside goes as a whole: cutting a part out of it would leave
// bytes that decode to something else.
func (s *scan) encoded() {
	t := s.text
	for at := encodedMin - 1; at < len(t); at += encodedMin {
		if !base64Table[t[at]] {
			continue
		}
		a, b := at, at+1
		for a > 0 && base64Table[t[a-1]] {
			a--
		}
		for b < len(t) && base64Table[t[b]] {
			b++
		}
		n := b - a
		if n >= encodedMin && n <= encodedMost && readable(t[a:b]) {
			if plain, ok := decode(t[a:b]); ok && printable(plain) && len(s.e.findAt(plain, s.depth+1, nil)) > 0 {
				e := b
				for e < len(t) && e-b < 2 && t[e] == '=' {
					e++
				}
				s.add(a, e, "base64")
			}
		}
		// The next byte to look at is the last of the shortest run after b.
		if b > at {
			at = b - 1
		}
	}
}

// readable decodes the first bytes of a run: binary data and plain words,
// which decode to noise, go no further.
func readable(run []byte) bool {
	if !bytes.ContainsAny(run[:min(len(run), 64)], "0123456789") && n16(run) {
		return false
	}
	plain, ok := decode(run[:16])
	if !ok {
		return false
	}
	return allBytes(plain, func(c byte) bool { return c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c == '\r' })
}

// n16: a run in lower case only is a word or a name.
func n16(run []byte) bool {
	return allBytes(run[:16], func(c byte) bool { return isLower(c) || c == '-' || c == '_' || c == '/' })
}
