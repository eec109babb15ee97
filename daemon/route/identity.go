package route

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
)

// name is a 32-digit hex name of fields under the local key: session ids and
// texts never stand on the chain themselves.
func name(key []byte, fields ...string) string {
	h := hmac.New(sha256.New, key)
	for _, f := range fields {
		put(h, f)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// put writes a field with its length, so that no two lists of fields run together.
func put(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	_, _ = io.WriteString(h, s)
}

// Credential is the SHA-256 of what the client authenticates with, in hex: enough
// to tell callers apart, nothing to steal.
func Credential(h Headers) string {
	d := sha256.New()
	_, _ = io.WriteString(d, h("Authorization"))
	_, _ = io.WriteString(d, "\x00")
	_, _ = io.WriteString(d, h("X-Api-Key"))
	return hex.EncodeToString(d.Sum(nil))
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
	h := hmac.New(sha256.New, key)
	which := strconv.Itoa(in.Ordinal)
	if in.Turn != "" { // a compaction within the turn may drop older prompts
		which = "turn " + in.Turn
	}
	for _, f := range [...]string{"turn", in.Credential, in.Upstream, in.Conversation, which, strings.Join(strings.Fields(in.Text), " "), in.SubagentRoot} {
		put(h, f)
	}
	return hex.EncodeToString(h.Sum(nil))
}

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
