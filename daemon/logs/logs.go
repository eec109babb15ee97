// Package logs is the door of the daemon's own log: a slog handler that lets
// through fields it knows, in the form it knows, and hides everything else. The
// record of what models, sensors and people said is the ledger; none of it
// belongs in a log file that people paste into reports.
//
// Where lines go, and what a secret looks like, is ruled elsewhere.
package logs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// form tells how a field's value may look.
type form int

const (
	number form = iota // integer, float, bool, time or duration
	word               // id, kind or name: letters, digits and ._:/-, at most wordMax bytes
	text               // our own words, with foreign ones in quotes
)

// fields is the allowlist. A field is added here together with its first use.
var fields = map[string]form{
	"turn": word, "stage": word, "kind": word, "method": word, "path": word,
	"error": text, "err": text, "why": text, "panic": text,
	"at": number,
}

const (
	wordMax = 128
	textMax = 300
	// quoteMax is the longest quoted name that a text may keep.
	quoteMax = 64
)

// Hidden stands for a value that did not come through.
const Hidden = "[hidden]"

// Handler passes records on with their message and fields checked.
type Handler struct {
	next   slog.Handler
	inside bool // of a group: no group is on the list, nor is anything in one
}

// New puts the door before next. A door before a door is one.
func New(next slog.Handler) slog.Handler {
	if h, ok := next.(Handler); ok {
		return h
	}
	return Handler{next: next}
}

// Enabled implements slog.Handler.
func (h Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.field(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	checked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		checked[i] = h.field(a)
	}
	return Handler{h.next.WithAttrs(checked), h.inside}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler {
	return Handler{h.next.WithGroup(wordOr(name, "group")), h.inside || name != ""}
}

// field returns a as it may be written.
func (h Handler) field(a slog.Attr) slog.Attr {
	f, known := fields[a.Key]
	v := a.Value.Resolve()
	if !known || h.inside {
		return slog.String(wordOr(a.Key, "field"), Hidden)
	}
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindBool, slog.KindTime, slog.KindDuration:
		return slog.Attr{Key: a.Key, Value: v}
	}
	s := v.String()
	if err, ok := v.Any().(error); ok {
		s = err.Error()
	}
	switch f {
	case word:
		return slog.String(a.Key, wordOr(s, Hidden))
	case text:
		return slog.String(a.Key, Text(s))
	}
	return slog.String(a.Key, Hidden)
}

func wordOr(s, other string) string {
	if s == "" || len(s) > wordMax {
		return other
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._:/-", rune(c)) {
			return other
		}
	}
	return s
}

// Text returns a message or an error as one line of at most textMax bytes. What
// stands in quotes, brackets or braces is foreign: a name stays, anything else —
// a sentence, a body, a value — gives way to its length. So does the rest of a
// text whose quote does not end.
func Text(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i] + " …"
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "\"`{[“")
		if j := quoteStart(s); j >= 0 && (i < 0 || j < i) {
			i = j
		}
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		n, mark := closed(s)
		if mark > 0 && name(s[mark:n-mark]) {
			b.WriteString(s[:n])
		} else {
			fmt.Fprintf(&b, "[%d bytes hidden]", n)
		}
		s = s[n:]
	}
	out := strings.ToValidUTF8(b.String(), "�")
	if len(out) > textMax {
		cut := textMax
		for !utf8.RuneStart(out[cut]) {
			cut--
		}
		out = out[:cut] + "…"
	}
	return out
}

// quoteStart finds a ' that opens a quotation; one behind a letter is an apostrophe.
func quoteStart(s string) int {
	for i := range len(s) {
		if s[i] == '\'' && (i == 0 || s[i-1] == ' ' || s[i-1] == ':' || s[i-1] == '=') {
			return i
		}
	}
	return -1
}

// closed returns the length of the quotation that s starts with and of its
// marks; one that does not end is all of s, and mark is 0.
func closed(s string) (n, mark int) {
	switch s[0] {
	case '"', '`', '\'':
		for i := 1; i < len(s); i++ {
			if s[i] == '\\' && s[0] == '"' {
				i++
			} else if s[i] == s[0] {
				return i + 1, 1
			}
		}
	case '{', '[':
		end := byte('}')
		if s[0] == '[' {
			end = ']'
		}
		depth := 0
		for i := range len(s) {
			switch s[i] {
			case s[0]:
				depth++
			case end:
				if depth--; depth == 0 {
					return i + 1, 1
				}
			}
		}
	default:
		if i := strings.Index(s, "”"); i >= 0 {
			return i + len("”"), len("“")
		}
	}
	return len(s), 0
}

// name reports whether quoted text may stay: a host, a path, a key of the
// configuration. It has no space, so it is no sentence.
func name(s string) bool {
	return s == "" || len(s) <= quoteMax && wordOr(s, "") != ""
}
