package lemma

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// IDKind is the letter that an id starts with.
type IDKind byte

const (
	IDTurn       IDKind = 't'
	IDHold       IDKind = 'h'
	IDFact       IDKind = 'f'
	IDSeal       IDKind = 's'
	IDInvocation IDKind = 'i'
	IDEntry      IDKind = 'e'
	IDRun        IDKind = 'r'
	IDKnowledge  IDKind = 'k'
	IDReview     IDKind = 'p'
	IDAccess     IDKind = 'a'
)

// NewID makes an id: a letter, an underscore and 26 lower-case Crockford
// characters of a ULID. Time and entropy come in, so a test can fix both.
func NewID(k IDKind, now time.Time, entropy io.Reader) (string, error) {
	var b [16]byte // 48 bits of milliseconds, 80 bits of entropy
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	if _, err := io.ReadFull(entropy, b[6:]); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	// 128 bits are read from the top as 26 digits of 5 bits, two zero bits first.
	out := make([]byte, 0, 28)
	out = append(out, byte(k), '_')
	for i := range 26 {
		var v byte
		for bit := i*5 - 2; bit < i*5+3; bit++ {
			v <<= 1
			if bit >= 0 {
				v |= b[bit/8] >> (7 - bit%8) & 1
			}
		}
		out = append(out, crockford[v])
	}
	return string(out), nil
}

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// TimeFormat is how times stand on the chain: RFC 3339, UTC, nine digits.
const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// Time renders t for the chain.
func Time(t time.Time) string { return t.UTC().Format(TimeFormat) }

// ShortLen is how many last characters of an id people see at least.
const ShortLen = 4

// Short returns the last characters of id that no other id of all shares, at
// least ShortLen of them.
func Short(id string, all []string) string {
	for n := ShortLen; n < len(id); n++ {
		tail, unique := id[len(id)-n:], true
		for _, o := range all {
			if o != id && strings.HasSuffix(o, tail) {
				unique = false
				break
			}
		}
		if unique {
			return tail
		}
	}
	return id
}
