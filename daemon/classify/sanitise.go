package classify

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/redact"
)

// kept is how much of a text stands as sent, in bytes: fingerprints are the
// starts of texts.
const kept = 24

// Sanitiser takes out of requests what is nobody's business: secrets, ids,
// names of users, and the prose of vendors and people beyond the first bytes of a
// text. What a rule could look at stays: structure, names of members, tags,
// paths, lines, lengths, and equality: a text or an id that stands in two places
// is the same in both afterwards. What came out cannot be had back without the
// key, which should be drawn for one recording and forgotten.
type Sanitiser struct {
	key    []byte
	engine *redact.Engine
}

// NewSanitiser replaces under key, which should have 32 random bytes.
func NewSanitiser(key []byte) *Sanitiser { return &Sanitiser{key, redact.New()} }

const uuid = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`

var (
	idPattern = regexp.MustCompile(`(?:\b(?:ses|prt|msg|resp|toolu|call|fc|rs|ctc|req|thread|sess|conv|user|org|acct)_)?(?:` + uuid + `)|\b[0-9a-f]{32,64}\b|\b(?:ses|prt|msg|resp|toolu|call|fc|rs|ctc|req|thread|sess|conv|user|org|acct)_[A-Za-z0-9]{8,}`)
	homeOf    = regexp.MustCompile(`(/(?:home|Users)/)([A-Za-z0-9._-]+)`)
	tagStart  = regexp.MustCompile(`^\s*</?[A-Za-z][A-Za-z0-9_ -]*>`)
)

// secretHeaders hold credentials.
var secretHeaders = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|set-cookie|.*api-?key.*|.*token.*|.*secret.*)$`)

// Request returns a copy of q that may be shown to anyone.
func (s *Sanitiser) Request(q Request) (Request, error) {
	out := Request{Method: q.Method, Path: s.text(q.Path), Header: http.Header{}, PID: q.PID}
	if q.Answer != nil {
		out.Answer = &Answer{Failed: q.Answer.Failed}
		for _, c := range q.Answer.Calls {
			args := c.Args
			if json.Valid(args) {
				args = s.body(args, 0)
			}
			out.Answer.Calls = append(out.Answer.Calls, Call{s.text(c.ID), c.Name, args})
		}
	}
	if out.Method == "" {
		out.Method = http.MethodPost
	}
	for k, vs := range q.Header {
		for _, v := range vs {
			switch {
			case k == "Content-Length", k == "Content-Encoding", k == "Transfer-Encoding":
				continue
			case secretHeaders.MatchString(k):
				if scheme, rest, ok := strings.Cut(v, " "); ok && rest != "" && len(scheme) < 12 {
					v = scheme + " REDACTED"
				} else {
					v = "REDACTED"
				}
			default:
				v = s.text(v)
			}
			out.Header[k] = append(out.Header[k], v)
		}
	}
	if len(q.Body) == 0 {
		return out, nil
	}
	if !json.Valid(q.Body) {
		return out, fmt.Errorf("the body is no JSON")
	}
	out.Body = s.body(q.Body, 0)
	if !json.Valid(out.Body) {
		return out, fmt.Errorf("the sanitised body is no JSON any more")
	}
	return out, nil
}

// text replaces ids, users and secrets in a text that is kept otherwise.
func (s *Sanitiser) text(t string) string {
	if clean, hits := s.engine.String(t); len(hits) > 0 {
		t = clean
	}
	t = idPattern.ReplaceAllStringFunc(t, func(id string) string {
		head := ""
		if i := strings.IndexByte(id, '_'); i > 0 {
			head, id = id[:i+1], id[i+1:]
		}
		// A UUID of version 7 begins with its time, by which clients' items are
		// told to belong to a turn.
		if len(id) == 36 && id[8] == '-' && id[14] == '7' {
			return head + id[:15] + s.letters("id", id, id[15:])
		}
		return head + s.letters("id", id, id)
	})
	return homeOf.ReplaceAllStringFunc(t, func(m string) string {
		i := strings.LastIndexByte(m, '/') + 1
		if m[i:] == "dev" {
			return m
		}
		return m[:i] + strings.ToLower(s.letters("user", m[i:], m[i:]))
	})
}

// letters replaces every letter and digit of t by one of its class, under a seed:
// hexadecimal stays so.
func (s *Sanitiser) letters(use, seed, t string) string {
	hex := strings.Trim(t, "0123456789abcdefABCDEF-") == ""
	var b []byte
	var block []byte
	for i := 0; i < len(t); i++ {
		if i%sha256.Size == 0 {
			m := hmac.New(sha256.New, s.key)
			fmt.Fprintf(m, "%s\x00%s\x00%d", use, seed, i)
			block = m.Sum(nil)
		}
		r, c := block[i%sha256.Size], t[i]
		switch {
		case c >= '0' && c <= '9':
			c = '0' + r%10
		case hex && c >= 'a' && c <= 'f':
			c = 'a' + r%6
		case hex && c >= 'A' && c <= 'F':
			c = 'A' + r%6
		case c >= 'a' && c <= 'z':
			c = 'a' + r%26
		case c >= 'A' && c <= 'Z':
			c = 'A' + r%26
		case c >= 0x80:
			c = 'x'
		}
		b = append(b, c)
	}
	return string(b)
}

// names are members whose values are names of the protocol, never prose.
var names = map[string]bool{"type": true, "role": true, "model": true, "name": true, "id": true, "call_id": true, "tool_use_id": true, "tool_call_id": true, "effort": true, "media_type": true}

// maxDepth bounds JSON inside strings.
const maxDepth = 4

// body sanitises every string of a JSON text in its place; all other bytes stay.
func (s *Sanitiser) body(b []byte, depth int) []byte {
	var out bytes.Buffer
	name, isName := "", false // the member whose value comes next
	for i := 0; i < len(b); {
		if b[i] != '"' {
			out.WriteByte(b[i])
			i++
			continue
		}
		end := i + 1
		for end < len(b) && b[end] != '"' {
			if b[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(b))
		after := end
		for after < len(b) && (b[after] == ' ' || b[after] == '\n' || b[after] == '\t' || b[after] == '\r') {
			after++
		}
		isName = after < len(b) && b[after] == ':'
		raw := b[i:end]
		t := string(wire.Unquote(raw))
		switch {
		case isName:
			// Member names are the protocol's, but maps by path or id are not.
			if clean := s.text(t); clean != t {
				out.Write(wire.Quote(clean))
			} else {
				out.Write(raw)
			}
			name = t
		case names[name]:
			if clean := s.text(t); clean != t {
				out.Write(wire.Quote(clean))
			} else {
				out.Write(raw)
			}
		default:
			clean := s.prose(t, depth)
			if clean == t {
				out.Write(raw)
			} else {
				out.Write(wire.Quote(clean))
			}
		}
		if !isName {
			name = ""
		}
		i = end
	}
	return out.Bytes()
}

// prose sanitises the value of a string.
func (s *Sanitiser) prose(t string, depth int) string {
	if depth < maxDepth && len(t) > 1 && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
		return string(s.body([]byte(t), depth+1))
	}
	t = s.text(t)
	if len(t) <= kept || strings.HasPrefix(t, "x-anthropic-billing-header:") || strings.HasPrefix(t, "data:") && len(t) < 64 {
		return t
	}
	lines := strings.SplitAfter(t, "\n")
	for n, l := range lines {
		from := 0
		if n == 0 {
			from = runeStart(l, kept)
		}
		if tag := tagStart.FindString(l); len(tag) > 0 { // what follows a tag is a start of its own
			from = max(from, min(len(l), runeStart(l, len(tag)+kept)))
		}
		lines[n] = l[:from] + s.filler(l[from:])
	}
	return strings.Join(lines, "")
}

func runeStart(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	for i > 0 && s[i]&0xC0 == 0x80 {
		i--
	}
	return i
}

// stays are stretches of prose that a rule may look at: tags, paths, what has
// been replaced already, and the marks that clients write inside a text.
var stays = regexp.MustCompile(`</?[A-Za-z][A-Za-z0-9_ -]{0,40}>|(?:~|\.{0,2})/[A-Za-z0-9._/@-]+|\[redacted:[a-z_-]+\]|cc_[a-z_]+=[a-z0-9.]+|(?:(?:Primary |Current )?[Ww]orking [Dd]irectory|Workspace root folder): `)

// filler replaces the words of a stretch; equal lines stay equal.
func (s *Sanitiser) filler(l string) string {
	places := append(stays.FindAllStringIndex(l, -1), idPattern.FindAllStringIndex(l, -1)...)
	slices.SortFunc(places, func(a, b []int) int { return a[0] - b[0] })
	var b strings.Builder
	at := 0
	for _, p := range places {
		if p[0] < at {
			continue
		}
		b.WriteString(s.letters("line "+strconv.Itoa(at), l, l[at:p[0]]))
		b.WriteString(l[p[0]:p[1]])
		at = p[1]
	}
	b.WriteString(s.letters("line "+strconv.Itoa(at), l, l[at:]))
	return b.String()
}

// HTTP is the request as it would come over a socket, headers in order of name.
func HTTP(q Request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", q.Method, q.Path)
	keys := make([]string, 0, len(q.Header))
	for k := range q.Header {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, v := range q.Header[k] {
			fmt.Fprintf(&b, "%s: %s\r\n", k, oneLine(v))
		}
	}
	if len(q.Body) > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(q.Body))
	}
	b.WriteString("\r\n")
	b.Write(q.Body)
	return b.Bytes()
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
