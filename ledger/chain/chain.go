// Package chain is the pure core of the log: canonical JSON, the entry and its
// hash link, the Merkle tree over entries, and signed checkpoints. It is what an
// auditor reads. It must never touch a file, a socket, a clock or randomness,
// and it knows nothing of what the bodies mean.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Version is the only value of an entry's v.
const Version = 1

// MaxEntry is the largest encoded entry in bytes: a 16-bit length can hold it,
// and C2SP tlog-tiles entry bundles frame entries with one.
const MaxEntry = 65535

// MaxSeq is the last sequence number whose decimal form RFC 8785 keeps exact.
const MaxSeq = maxInteger - 1

// nameMax bounds kind, tenant and turn.
const nameMax = 64

// tsLayout is RFC 3339 in UTC with nine fractional digits.
const tsLayout = "2006-01-02T15:04:05.000000000Z"

// Digest is a SHA-256 value.
type Digest = [32]byte

// ErrFormat is wrapped by every refusal of bytes that are no entry, checkpoint
// or canonical JSON.
var ErrFormat = errors.New("bad format")

// ErrTooLarge says that an entry would not fit MaxEntry.
var ErrTooLarge = errors.New("entry too large")

// Entry is one record of the log. Prev is the lower-case hex hash of the entry
// before, 64 zeros for the first. Turn is empty where there is none.
type Entry struct {
	V      int             `json:"v"`
	Seq    uint64          `json:"seq"`
	TS     string          `json:"ts"`
	Kind   string          `json:"kind"`
	Tenant string          `json:"tenant"`
	Turn   string          `json:"turn,omitempty"`
	Prev   string          `json:"prev"`
	Body   json.RawMessage `json:"body"`
}

// ZeroPrev is the link of the first entry.
const ZeroPrev = "0000000000000000000000000000000000000000000000000000000000000000"

// Hash is the hash of an entry's bytes: SHA-256(0x00 ‖ raw). One value
// serves as the link of the next entry and as the tree's leaf (RFC 6962, 2.1).
func Hash(raw []byte) Digest {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(raw)
	var sum Digest
	h.Sum(sum[:0])
	return sum
}

// Encode canonicalises the body and returns the entry's bytes.
func Encode(e Entry) ([]byte, error) {
	body, err := Canonical(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	e.Body = body
	return AppendEntry(make([]byte, 0, len(body)+256), e)
}

// AppendEntry appends the bytes of e to dst. The body must already be canonical:
// a writer prepares bodies before it knows sequence number and link.
func AppendEntry(dst []byte, e Entry) ([]byte, error) {
	if err := check(e); err != nil {
		return nil, err
	}
	return appendFrame(dst, e, e.Prev)
}

// AppendNext is AppendEntry with the hash of the entry before instead of its
// spelling: a writer has that at hand, and a string for each entry would be made
// for nothing. e.Prev is not read.
func AppendNext(dst []byte, e Entry, prev Digest) ([]byte, error) {
	if err := checkMembers(e); err != nil {
		return nil, err
	}
	if e.Seq == 0 && prev != (Digest{}) {
		return nil, fmt.Errorf("check entry 0: %w: prev of the first entry", ErrFormat)
	}
	var link [2 * sha256.Size]byte
	hex.Encode(link[:], prev[:])
	return appendFrame(dst, e, link[:])
}

// appendFrame puts the members of a checked entry around its body.
func appendFrame[T string | []byte](dst []byte, e Entry, prev T) ([]byte, error) {
	from := len(dst)
	// The members stand in RFC 8785 order, and no value below needs an escape.
	dst = append(dst, `{"body":`...)
	dst = append(dst, e.Body...)
	dst = append(dst, `,"kind":"`...)
	dst = append(dst, e.Kind...)
	dst = append(dst, `","prev":"`...)
	dst = append(dst, prev...)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"tenant":"`...)
	dst = append(dst, e.Tenant...)
	dst = append(dst, `","ts":"`...)
	dst = append(dst, e.TS...)
	if e.Turn != "" {
		dst = append(dst, `","turn":"`...)
		dst = append(dst, e.Turn...)
	}
	dst = append(dst, `","v":1}`...)
	if n := len(dst) - from; n > MaxEntry {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d fit", ErrTooLarge, e.Kind, n, MaxEntry)
	}
	return dst, nil
}

// Overhead is the most that an entry of this kind, tenant and turn adds to its
// body, whatever its sequence number.
func Overhead(kind, tenant, turn string) int {
	n := len(`{"body":,"kind":"","prev":"","seq":,"tenant":"","ts":"","v":1}`) +
		len(kind) + len(tenant) + 2*sha256.Size + len("9007199254740992") + len(tsLayout)
	if turn != "" {
		n += len(`,"turn":""`) + len(turn)
	}
	return n
}

// Decode reads an entry and refuses anything that Encode would not have written,
// byte for byte. The entry's body aliases raw.
func Decode(raw []byte) (Entry, error) {
	e, sure, err := split(raw)
	if err != nil {
		return Entry{}, err
	}
	if sure {
		return e, nil
	}
	canon, err := Canonical(raw)
	if err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	if !bytes.Equal(canon, raw) {
		return Entry{}, fmt.Errorf("decode entry: %w: not canonical", ErrFormat)
	}
	return e, nil
}

// split reads the fixed frame around the body. The frame has only one spelling,
// so the entry is canonical when its body is; sure says that the body surely is.
func split(raw []byte) (e Entry, sure bool, err error) {
	bad := func(what string) (Entry, bool, error) {
		return Entry{}, false, fmt.Errorf("decode entry: %w: %s", ErrFormat, what)
	}
	if len(raw) > MaxEntry {
		return bad("too large")
	}
	const open = `{"body":`
	if len(raw) <= len(open) || string(raw[:len(open)]) != open || raw[len(open)] != '{' {
		return bad("no body")
	}
	end := canonicalObject(raw, len(open)+1, 2)
	if sure = end >= 0; !sure {
		n := objectEnd(raw[len(open):])
		if n < 0 {
			return bad("body is no object")
		}
		end = len(open) + n
	}
	e = Entry{V: Version, Body: json.RawMessage(raw[len(open):end:end])}
	// One string for the whole frame: the members are parts of it.
	rest := string(raw[end:])
	var ok bool
	if e.Kind, rest, ok = cutString(rest, `,"kind":"`); !ok {
		return bad("no kind")
	}
	if e.Prev, rest, ok = cutString(rest, `,"prev":"`); !ok {
		return bad("no prev")
	}
	if rest, ok = strings.CutPrefix(rest, `,"seq":`); !ok {
		return bad("no seq")
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if e.Seq, err = strconv.ParseUint(rest[:digits], 10, 64); err != nil || digits > 1 && rest[0] == '0' {
		return bad("seq is no number")
	}
	rest = rest[digits:]
	if e.Tenant, rest, ok = cutString(rest, `,"tenant":"`); !ok {
		return bad("no tenant")
	}
	if e.TS, rest, ok = cutString(rest, `,"ts":"`); !ok {
		return bad("no ts")
	}
	if turn, after, ok := cutString(rest, `,"turn":"`); ok {
		if turn == "" {
			return bad("empty turn")
		}
		e.Turn, rest = turn, after
	}
	if rest != `,"v":1}` {
		return bad("not version 1")
	}
	if err := check(e); err != nil {
		return Entry{}, false, err
	}
	return e, sure, nil
}

// cutString takes a member's string value from the front of rest. open is all up
// to the value's first character.
func cutString(rest, open string) (value, after string, ok bool) {
	after, ok = strings.CutPrefix(rest, open)
	if !ok {
		return "", rest, false
	}
	end := strings.IndexByte(after, '"')
	if end < 0 {
		return "", rest, false
	}
	return after[:end], after[end+1:], true
}

// objectEnd returns the length of the object that b starts with, -1 if it does
// not start with a closed one. It only balances; Canonical validates.
func objectEnd(b []byte) int {
	if len(b) == 0 || b[0] != '{' {
		return -1
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// check holds the rules for the members around the body.
func check(e Entry) error {
	if err := checkMembers(e); err != nil {
		return err
	}
	if !lowerHex(e.Prev) {
		return fmt.Errorf("check entry %d: %w: prev", e.Seq, ErrFormat)
	}
	if e.Seq == 0 && e.Prev != ZeroPrev {
		return fmt.Errorf("check entry 0: %w: prev of the first entry", ErrFormat)
	}
	return nil
}

// checkMembers is check without the link.
func checkMembers(e Entry) error {
	bad := func(what string) error { return fmt.Errorf("check entry %d: %w: %s", e.Seq, ErrFormat, what) }
	if e.V != Version {
		return bad("version " + strconv.Itoa(e.V))
	}
	if e.Seq > MaxSeq {
		return bad("seq beyond 2^53")
	}
	if !name(e.Kind, isDot|isUnder) {
		return bad("kind")
	}
	if !name(e.Tenant, isDot|isUnder|isDash) {
		return bad("tenant")
	}
	if e.Turn != "" && !name(e.Turn, isUnder) {
		return bad("turn")
	}
	if !instant(e.TS) {
		return bad("ts")
	}
	if len(e.Body) < 2 || e.Body[0] != '{' {
		return bad("body is no object")
	}
	return nil
}

// instant reports whether s is in tsLayout.
func instant(s string) bool {
	const form = "0000-00-00T00:00:00.000000000Z"
	if len(s) != len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] != '0' && s[i] != form[i] || form[i] == '0' && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	if two(11) > 23 || two(14) > 59 || two(17) > 59 {
		return false
	}
	// Every month has 28 days; how many more is a question for the calendar.
	if m, d := two(5), two(8); m >= 1 && m <= 12 && d >= 1 && d <= 28 {
		return true
	}
	_, err := time.Parse(tsLayout, s)
	return err == nil
}

// Classes of bytes, one bit each.
const (
	isAlnum = 1 << iota // lower-case letter or digit
	isHex               // digit of lower-case hex
	isUnder
	isDot
	isDash
)

// classes holds the bits of every byte.
var classes = func() (t [256]uint8) {
	for c := '0'; c <= '9'; c++ {
		t[c] = isAlnum | isHex
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] = isAlnum
	}
	for c := 'a'; c <= 'f'; c++ {
		t[c] |= isHex
	}
	t['_'], t['.'], t['-'] = isUnder, isDot, isDash
	return t
}()

// name reports whether s is made of lower-case letters, digits and marks.
func name(s string, marks uint8) bool {
	if s == "" || len(s) > nameMax {
		return false
	}
	for i := range len(s) {
		if classes[s[i]]&(isAlnum|marks) == 0 {
			return false
		}
	}
	return true
}

func lowerHex(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	both := uint8(isHex)
	for i := range len(s) {
		both &= classes[s[i]]
	}
	return both != 0
}

// Link renders h as an entry's prev.
func Link(h Digest) string { return hex.EncodeToString(h[:]) }
