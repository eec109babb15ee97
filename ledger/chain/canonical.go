package chain

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is 2^53: above it RFC 8785 maps different integers to one form, and
// then two different entries would share a hash.
const maxInteger = 1 << 53

// Canonical returns the RFC 8785 form of one JSON value. It refuses what that
// form cannot carry faithfully: duplicate names, invalid UTF-8, lone surrogates
// and integers beyond 2^53. Numbers with a fraction or an exponent are doubles,
// as the RFC has them. src is not changed.
func Canonical(src []byte) ([]byte, error) {
	out, err := jsontext.AppendFormat(make([]byte, 0, len(src)), src,
		jsontext.CanonicalizeRawInts(true),
		jsontext.CanonicalizeRawFloats(true),
		jsontext.ReorderRawObjects(true))
	if err != nil {
		return nil, fmt.Errorf("canonicalise: %w: %w", ErrFormat, err)
	}
	if at := bigInteger(src); at >= 0 {
		return nil, fmt.Errorf("canonicalise: %w: integer beyond 2^53 at byte %d", ErrFormat, at)
	}
	return out, nil
}

// bigInteger returns where valid JSON holds an integer literal beyond 2^53, else -1.
func bigInteger(b []byte) int {
	const digits = len("9007199254740992")
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case c >= '0' && c <= '9':
			from, v := i, uint64(0)
			for i < len(b) && b[i] >= '0' && b[i] <= '9' {
				if i-from < digits {
					v = v*10 + uint64(b[i]-'0')
				}
				i++
			}
			float := i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E')
			if n := i - from; !float && (n > digits || n == digits && v > maxInteger) {
				return from
			}
			// Fraction and exponent digits are no integers of their own.
			for float && i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E' || b[i] == '+' || b[i] == '-' || b[i] >= '0' && b[i] <= '9') {
				i++
			}
			i--
		}
	}
	return -1
}
