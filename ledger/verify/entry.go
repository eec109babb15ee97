package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// ErrEntry is wrapped by every refusal of bytes that are no entry.
var ErrEntry = errors.New("not an entry")

const maxEntry = 65535

// Digest is a SHA-256 value.
type Digest = [sha256.Size]byte

// Entry is what a verifier needs of one.
type Entry struct {
	Seq  uint64
	Kind string
	Prev string
	Body []byte
}

// LeafHash is SHA-256(0x00 ‖ raw): an entry's hash and its leaf in the tree.
func LeafHash(raw []byte) (sum Digest) {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(raw)
	h.Sum(sum[:0])
	return sum
}

// ParseEntry reads an entry and refuses all bytes but the canonical ones.
func ParseEntry(raw []byte) (Entry, error) {
	bad := func(what string) (Entry, error) { return Entry{}, fmt.Errorf("%w: %s", ErrEntry, what) }
	if len(raw) > maxEntry {
		return bad("too large")
	}
	p := parser{src: raw}
	canon, err := p.document(make([]byte, 0, len(raw)))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	if !bytes.Equal(canon, raw) || raw[0] != '{' {
		return bad("not a canonical object")
	}
	want := []string{"body", "kind", "prev", "seq", "tenant", "ts", "turn", "v"}
	if len(p.top) == len(want)-1 {
		want = []string{"body", "kind", "prev", "seq", "tenant", "ts", "v"}
	}
	if len(p.top) != len(want) {
		return bad("members too few or too many")
	}
	values := map[string][]byte{}
	for i, m := range p.top {
		if name := string(raw[m.start+1 : m.value-2]); name != want[i] {
			return bad("no " + want[i])
		}
		values[want[i]] = raw[m.value:m.end]
	}
	if string(values["v"]) != "1" {
		return bad("not version 1")
	}
	if values["body"][0] != '{' {
		return bad("body is no object")
	}
	text := func(name string) string {
		if v := values[name]; len(v) >= 2 && v[0] == '"' {
			return string(v[1 : len(v)-1])
		}
		return ""
	}
	e := Entry{Kind: text("kind"), Prev: text("prev"), Body: values["body"]}
	if !word(e.Kind, "._") || !word(text("tenant"), "._-") || values["turn"] != nil && !word(text("turn"), "_") {
		return bad("kind, tenant or turn")
	}
	if len(e.Prev) != 64 || !word(e.Prev[:32], "") || !word(e.Prev[32:], "") || !isHex(e.Prev) {
		return bad("prev")
	}
	if e.Seq, err = strconv.ParseUint(string(values["seq"]), 10, 64); err != nil || e.Seq >= maxInteger {
		return bad("seq")
	}
	if e.Seq == 0 && e.Prev != noLink {
		return bad("prev of the first entry")
	}
	if !validTime(text("ts")) {
		return bad("ts")
	}
	return e, nil
}

const noLink = "0000000000000000000000000000000000000000000000000000000000000000"

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if c > 'f' {
			return false
		}
	}
	return true
}

// word reports 1 to 64 lower-case letters, digits and marks.
func word(s, marks string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !bytes.ContainsRune([]byte(marks), rune(c)) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 64
}

// validTime reports YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ of the calendar.
func validTime(s string) bool {
	const form = "0000-00-00T00:00:00.000000000Z"
	if len(s) != len(form) {
		return false
	}
	for i := range len(form) {
		if digit := s[i] >= '0' && s[i] <= '9'; digit != (form[i] == '0') || !digit && s[i] != form[i] {
			return false
		}
	}
	num := func(from, to int) int {
		n := 0
		for _, c := range []byte(s[from:to]) {
			n = 10*n + int(c-'0')
		}
		return n
	}
	year, month, day := num(0, 4), num(5, 7), num(8, 10)
	if month < 1 || month > 12 || num(11, 13) > 23 || num(14, 16) > 59 || num(17, 19) > 59 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days = 29
	}
	return day >= 1 && day <= days
}

// blobsOf lists the blobs that a body names: 64 lower-case hex digits in a member whose
// name ends in _blob.
func blobsOf(body []byte) (sums []Digest) {
	for _, part := range bytes.Split(body, []byte(`_blob":"`))[1:] {
		digits, _, _ := bytes.Cut(part, []byte(`"`))
		if raw, err := hex.DecodeString(string(digits)); err == nil && len(raw) == sha256.Size && !bytes.ContainsAny(digits, "ABCDEF") {
			sums = append(sums, Digest(raw))
		}
	}
	return sums
}

// forgotten is the sequence number up to which a blob.forgotten says that blobs
// may be gone.
func forgotten(body []byte) (uint64, bool) {
	p := parser{src: body}
	if _, err := p.document(nil); err != nil {
		return 0, false
	}
	for _, m := range p.top {
		if string(body[m.start:m.value]) == `"through":` {
			n, err := strconv.ParseUint(string(body[m.value:m.end]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// listed is what a request.forgotten says is gone: the hashes in its sums. A
// list that holds anything else says nothing. The body is canonical, so a list of
// such texts has one spelling.
func listed(body []byte) (sums []Digest) {
	p := parser{src: body}
	if _, err := p.document(nil); err != nil {
		return nil
	}
	for _, m := range p.top {
		if string(body[m.start:m.value]) != `"sums":` {
			continue
		}
		list := body[m.value:m.end]
		if len(list) < 2 || list[0] != '[' {
			return nil
		}
		for _, part := range bytes.Split(list[1:len(list)-1], []byte(",")) {
			if len(part) != 66 || part[0] != '"' || part[65] != '"' || !word(string(part[1:65]), "") || !isHex(string(part[1:65])) {
				return nil
			}
			raw, err := hex.DecodeString(string(part[1:65]))
			if err != nil {
				return nil
			}
			sums = append(sums, Digest(raw))
		}
	}
	return sums
}
