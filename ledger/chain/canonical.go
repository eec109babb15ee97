package chain

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf8"

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
	if IsCanonical(src) {
		return append(make([]byte, 0, len(src)), src...), nil
	}
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

// IsCanonical reports that src surely is its own canonical form. It allocates
// nothing. False says nothing: Canonical tells.
func IsCanonical(src []byte) bool { return canonicalValue(src, 0, 0) == len(src) }

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

// The functions below tell whether bytes are canonical in one pass and without
// writing anything. They say yes only to what they fully understand, which is
// nearly every entry: names in ASCII, short integers, two-character escapes. For
// anything else they say no, and the caller compares with Canonical.

// canonicalValue returns where the value that starts at i ends, -1 for not sure.
func canonicalValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > 64 {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		end, _ := canonicalString(b, i)
		return end
	case c == '{':
		return canonicalObject(b, i+1, depth+1)
	case c == '[':
		if i++; i < len(b) && b[i] == ']' {
			return i + 1
		}
		for {
			if i = canonicalValue(b, i, depth+1); i < 0 || i >= len(b) {
				return -1
			}
			switch b[i] {
			case ']':
				return i + 1
			case ',':
				i++
			default:
				return -1
			}
		}
	case c == '-' || c >= '0' && c <= '9':
		return canonicalInteger(b, i)
	}
	for _, word := range []string{"null", "true", "false"} {
		if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
			return i + len(word)
		}
	}
	return -1
}

func canonicalObject(b []byte, i, depth int) int {
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	var last []byte
	for first := true; ; first = false {
		start := i
		end, plain := canonicalString(b, i)
		if end < 0 || !plain || end >= len(b) || b[end] != ':' {
			return -1
		}
		// ASCII names sort the same by bytes as by UTF-16 units.
		name := b[start+1 : end-1]
		if !first && string(last) >= string(name) {
			return -1
		}
		last = name
		if i = canonicalValue(b, end+1, depth); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

// canonicalString returns where the string ends; plain says that it is ASCII
// without an escape.
func canonicalString(b []byte, i int) (end int, plain bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	plain = true
	start := i + 1
	ascii := true
	for i = start; i < len(b); i++ {
		if i += plainBytes(b[i:]); i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(b[start:i]) {
				return -1, false
			}
			return i + 1, plain
		case c < 0x20:
			return -1, false
		case c >= 0x80:
			ascii, plain = false, false
		case c == '\\':
			plain = false
			if i++; i >= len(b) {
				return -1, false
			}
			switch b[i] {
			case '"', '\\', 'b', 'f', 'n', 'r', 't':
			default:
				return -1, false
			}
		}
	}
	return -1, false
}

// plainBytes returns a number of bytes at the start of b that are ASCII and
// neither quote, backslash nor control character: as many as whole words of
// eight show, so it may stop up to seven bytes early.
func plainBytes(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for len(b)-n >= 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// A byte x below 0x80 borrows in x-1 only when it is 0, in x-0x20 only
		// when it is a control character. A borrow can reach the byte above, which
		// then is looked at for nothing.
		if (w|(w-ones*0x20)|(quote-ones)|(slash-ones))&highs != 0 {
			return n
		}
		n += 8
	}
	return n
}

// canonicalInteger accepts integers of up to 15 digits.
func canonicalInteger(b []byte, i int) int {
	if b[i] == '-' {
		if i++; i >= len(b) || b[i] == '0' {
			return -1
		}
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if n := i - start; n == 0 || n > 15 || n > 1 && b[start] == '0' {
		return -1
	}
	if i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E') {
		return -1
	}
	return i
}
