package chain

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is 2^53: above it RFC 8785 maps different integers to one form, and
// then two different entries would share a hash.
const maxInteger = 1 << 53

// Canonical returns the RFC 8785 form of one JSON value. It refuses what that
// form cannot carry faithfully: duplicate names, invalid UTF-8, lone surrogates,
// integers beyond 2^53 and numbers beyond the doubles. Numbers with a
// fraction or an exponent are doubles, as the RFC has them. src is not changed.
func Canonical(src []byte) ([]byte, error) {
	out, err := jsontext.AppendFormat(make([]byte, 0, len(src)), src,
		jsontext.CanonicalizeRawInts(true),
		jsontext.CanonicalizeRawFloats(true),
		jsontext.ReorderRawObjects(true))
	if err != nil {
		return nil, fmt.Errorf("canonicalise: %w: %w", ErrFormat, err)
	}
	if at := unfaithful(src); at >= 0 {
		return nil, fmt.Errorf("canonicalise: %w: number out of range at byte %d", ErrFormat, at)
	}
	return out, nil
}

// unfaithful returns where valid JSON holds an integer literal beyond 2^53 or a
// number beyond the doubles, else -1.
func unfaithful(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case c >= '0' && c <= '9':
			from, integer := i, true
			for ; i < len(b) && numeric(b[i]); i++ {
				integer = integer && b[i] >= '0' && b[i] <= '9'
			}
			// Nearly all numbers are shorter than the limit.
			if integer && i-from < len("9007199254740992") {
				i--
				continue
			}
			if integer {
				if v, err := strconv.ParseUint(string(b[from:i]), 10, 64); err != nil || v > maxInteger {
					return from
				}
			} else if _, err := strconv.ParseFloat(string(b[from:i]), 64); err != nil {
				return from
			}
			i--
		}
	}
	return -1
}

func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}
