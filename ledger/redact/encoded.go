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
	if !textual(run) {
		return false
	}
	if !bytes.ContainsAny(run[:min(len(run), 64)], "0123456789") && n16(run) {
		return false
	}
	plain, ok := decode(run[:16])
	if !ok {
		return false
	}
	return allBytes(plain, func(c byte) bool { return plainByte[c] })
}

// base64Value is what a character stands for, in either alphabet.
var base64Value = func() (t [256]uint32) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(digits) {
		t[digits[i]] = uint32(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return
}()

// plainByte: what a run that holds text decodes to.
var plainByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c == '\r'
	}
	return
}()

// textual is readable's first look: whatever the alphabet, the first bytes are
// text. Nearly every run ends here.
func textual(run []byte) bool {
	for i := 0; i < 16; i += 4 {
		v := base64Value[run[i]]<<18 | base64Value[run[i+1]]<<12 | base64Value[run[i+2]]<<6 | base64Value[run[i+3]]
		if !plainByte[byte(v>>16)] || !plainByte[byte(v>>8)] || !plainByte[byte(v)] {
			return false
		}
	}
	return true
}

// n16: a run in lower case only is a word or a name.
func n16(run []byte) bool {
	return allBytes(run[:16], func(c byte) bool { return isLower(c) || c == '-' || c == '_' || c == '/' })
}
