package route

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
)

// MACRoom is how many bytes a message for MAC leaves free at its start.
const MACRoom = sha256.BlockSize

// MAC is HMAC-SHA256 (RFC 2104) of msg[MACRoom:]. It uses the free bytes, and
// allocates nothing: names are made several times for each request.
func MAC(key, msg []byte) [sha256.Size]byte {
	var block [sha256.BlockSize]byte
	if len(key) > len(block) {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	copy(block[:], key)
	for i := range block {
		msg[i] = block[i] ^ 0x36
	}
	inner := sha256.Sum256(msg)
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range block {
		outer[i] = block[i] ^ 0x5c
	}
	copy(outer[sha256.BlockSize:], inner[:])
	return sha256.Sum256(outer[:])
}

// name is a 32-digit hex name of fields under the local key: session ids and
// texts never stand on the chain themselves.
func name(key []byte, fields ...string) string {
	msg := scratch.Get().(*[]byte)
	defer give(msg)
	for _, f := range fields {
		*msg = field(*msg, f)
	}
	sum := MAC(key, *msg)
	return hex.EncodeToString(sum[:16])
}

// scratch is room for messages of MAC, which are as long as prompts.
var scratch = sync.Pool{New: func() any { return new(make([]byte, MACRoom, 4<<10)) }}

func give(msg *[]byte) {
	clear(*msg) // nothing holds on to a prompt
	*msg = (*msg)[:MACRoom]
	scratch.Put(msg)
}

// field appends a field with its length, so that no two lists of fields run together.
func field(msg []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(msg, uint64(len(s))), s...)
}

// put writes a field into a hash.
func put(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	_, _ = io.WriteString(h, s)
}

// Credential is the SHA-256 of what the client authenticates with, in hex: enough
// to tell callers apart, nothing to steal.
func Credential(h Headers) string {
	var room [512]byte
	b := append(room[:0], h("Authorization")...)
	b = append(b, 0)
	b = append(b, h("X-Api-Key")...)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// KeyInput is what a turn's key is made of.
type KeyInput struct {
	Credential   string // hash of the credential, never the credential
	Upstream     string
	Conversation string
	Ordinal      int
	Text         string // newest person text
	SubagentRoot string
	Turn         string // the client's own name for the turn, stands for the ordinal
}

// Key is a turn's identity under the local key: equal for a resend and for
// every lap of the same turn, 64 hex digits.
func Key(key []byte, in KeyInput) string {
	which := strconv.Itoa(in.Ordinal)
	if in.Turn != "" { // a compaction within the turn may drop older prompts
		which = "turn " + in.Turn
	}
	fields := [...]string{"turn", in.Credential, in.Upstream, in.Conversation, which}
	room := scratch.Get().(*[]byte)
	defer give(room)
	msg := *room
	for _, f := range fields {
		msg = field(msg, f)
	}
	at := len(msg)
	msg = appendWords(append(msg, 0, 0, 0, 0, 0, 0, 0, 0), in.Text)
	binary.BigEndian.PutUint64(msg[at:], uint64(len(msg)-at-8))
	*room = field(msg, in.SubagentRoot)
	sum := MAC(key, *room)
	return hex.EncodeToString(sum[:])
}

// appendWords appends the words of s, as strings.Fields sees them, with one space
// between. Prompts are long and nearly all of their lines stand right already:
// those are copied whole.
func appendWords(dst []byte, s string) []byte {
	start := len(dst)
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.Trim(line, " \t\r"); spaced(line) {
			dst = appendWord(dst, start, line)
			continue
		}
		for w := range strings.FieldsSeq(line) {
			dst = appendWord(dst, start, w)
		}
	}
	return dst
}

// appendWord appends w after a space, unless it is the first behind start.
func appendWord(dst []byte, start int, w string) []byte {
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	return append(dst, w...)
}

// spaced reports whether a line surely has single spaces and no other white
// space between its words, and at least one word.
func spaced(line string) bool {
	var odd byte
	for i := range len(line) {
		odd |= unspaced[line[i]]
	}
	return line != "" && odd == 0 && !strings.Contains(line, "  ")
}

// unspaced marks the bytes that may be white space other than a space.
var unspaced = func() (t [256]byte) {
	for i := range t {
		if i >= utf8.RuneSelf || i != ' ' && unicode.IsSpace(rune(i)) {
			t[i] = 1
		}
	}
	return t
}()

// KeyOf fills a KeyInput from a route.
func KeyOf(key []byte, credential, upstream string, rt Route) string {
	return Key(key, KeyInput{credential, upstream, rt.Conversation, rt.Ordinal, rt.PersonText, rt.SubagentRoot, rt.Turn})
}

// Anchor names the history up to and including item upto: cache_control and our
// own blocks left out, a one-block array equal to the plain string. "" when
// upto is out of range.
func Anchor(r *wire.Request, upto int) string {
	if upto < 0 || upto >= len(r.Items) {
		return ""
	}
	return anchors(r, upto+1)[upto]
}

// Anchors returns the anchor of every item in one pass.
func Anchors(r *wire.Request) []string { return anchors(r, len(r.Items)) }

func anchors(r *wire.Request, n int) []string {
	out := make([]string, n)
	var chain [sha256.Size]byte
	h := sha256.New()
	var scratch []byte
	for i := range n {
		h.Reset()
		h.Write(chain[:])
		it := &r.Items[i]
		put(h, it.Role)
		empty := true
		ours := false
		for k := range it.Parts {
			p := &it.Parts[k]
			if p.Kind == wire.Text {
				switch {
				case wire.IsBlock(p.Text):
					ours = true
					continue
				case p.Text == "", strings.HasPrefix(p.Text, tellCompaction) && len(it.Parts) > 1:
					// Compaction appends its prompt to the entry that stood last.
					continue
				}
				put(h, "text")
				put(h, strings.TrimRight(p.Text, "\n"))
				empty = false
				continue
			}
			put(h, string(p.Kind))
			raw := r.Body[p.Span.Start:p.Span.End]
			if bytes.Contains(raw, cacheControl) {
				scratch = withoutCacheControl(scratch[:0], raw)
				raw = scratch
			}
			h.Write(raw)
			empty = false
		}
		if empty && ours { // an item that is only a block of ours is not there
			out[i] = hex.EncodeToString(chain[:])
			continue
		}
		h.Sum(chain[:0])
		out[i] = hex.EncodeToString(chain[:])
	}
	return out
}

var cacheControl = []byte(`"cache_control"`)

// withoutCacheControl appends raw without any member cache_control, at any depth.
func withoutCacheControl(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		j := stringEnd(raw, i)
		if bytes.Equal(raw[i:j], cacheControl) {
			if k := skipSpace(raw, j); k < len(raw) && raw[k] == ':' {
				k = valueEnd(raw, skipSpace(raw, k+1))
				k = skipSpace(raw, k)
				if k < len(raw) && raw[k] == ',' {
					k++
				} else { // the last member: the comma before it goes
					dst = bytes.TrimRight(dst, " \t\r\n")
					dst = bytes.TrimSuffix(dst, []byte{','})
				}
				i = k
				continue
			}
		}
		dst = append(dst, raw[i:j]...)
		i = j
	}
	return dst
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// BodyEqual reports whether two bodies say the same: equal as JSON whatever the
// order of keys, with the top level's stream (and what only stands beside it)
// left out.
func BodyEqual(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !gjson.ValidBytes(a) || !gjson.ValidBytes(b) {
		return false
	}
	return equal(gjson.ParseBytes(a), gjson.ParseBytes(b), 0)
}

// maxNesting bounds the recursion over foreign JSON.
const maxNesting = 200

func equal(a, b gjson.Result, depth int) bool {
	if depth > maxNesting || a.Type != b.Type {
		return false
	}
	switch a.Type {
	case gjson.String:
		return a.Str == b.Str
	case gjson.Number:
		return a.Raw == b.Raw || len(a.Raw) < 16 && len(b.Raw) < 16 && a.Num == b.Num
	case gjson.JSON:
		if a.Raw == b.Raw {
			return true
		}
		if a.IsArray() != b.IsArray() {
			return false
		}
		if a.IsArray() {
			x, y := a.Array(), b.Array()
			if len(x) != len(y) {
				return false
			}
			for i := range x {
				if !equal(x[i], y[i], depth+1) {
					return false
				}
			}
			return true
		}
		x, okX := members(a, depth == 0)
		y, okY := members(b, depth == 0)
		if !okX || !okY || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !equal(v, w, depth+1) {
				return false
			}
		}
	}
	return true
}

// members maps an object's keys; a key that stands twice makes it equal to nothing.
func members(o gjson.Result, top bool) (map[string]gjson.Result, bool) {
	m := map[string]gjson.Result{}
	ok := true
	o.ForEach(func(k, v gjson.Result) bool {
		if top && (k.Str == "stream" || k.Str == "stream_options") {
			return true
		}
		if _, twice := m[k.Str]; twice {
			ok = false
		}
		m[k.Str] = v
		return ok
	})
	return m, ok
}

// argumentIs reports whether one of a call's string arguments is text.
func argumentIs(args []byte, text string) bool {
	text = strings.TrimSpace(text)
	if len(text) < 2 || !gjson.ValidBytes(args) {
		return false
	}
	found := false
	gjson.ParseBytes(args).ForEach(func(_, v gjson.Result) bool {
		found = v.Type == gjson.String && strings.TrimSpace(v.Str) == text
		return !found
	})
	return found
}
