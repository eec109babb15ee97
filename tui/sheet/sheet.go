// Package sheet is knowledge as a page of YAML that a person edits: it prints
// one, and reads one strictly, with the place of every fault. What is done with
// the changes is decided by who asks; nothing here talks to a daemon.
package sheet

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"gettier.dev/gettierd/ledger/lemma"
)

// Max is how many bytes of a page are read.
const Max = 2 << 20

// Row is a piece of knowledge on a page and where it stands, from 1.
type Row struct {
	ID, Scope, Text, Sensitivity string
	Topics                       []string
	Line                         int
}

// Same reports whether the row says what k does.
func (r Row) Same(k lemma.Knowledge) bool {
	return r.Scope == k.Scope && r.Text == k.Text && r.Sensitivity == k.Sensitivity && slices.Equal(r.Topics, k.Topics)
}

// Fault is one thing that is wrong with a page.
type Fault struct {
	Line, Column int // from 1; 0 for the page as a whole
	What         string
}

// Faults are all of a page, in the order of its lines.
type Faults []Fault

func (fs Faults) Error() string {
	out := make([]string, len(fs))
	for i, f := range fs {
		if out[i] = f.What; f.Line > 0 {
			out[i] = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.What)
		}
	}
	return strings.Join(out, "\n")
}

// Explain prints faults with the line each is about and a caret under the place.
func (fs Faults) Explain(page []byte) string {
	lines := strings.Split(strings.ToValidUTF8(string(page), "\uFFFD"), "\n")
	var b strings.Builder
	for _, f := range fs {
		if f.Line < 1 || f.Line > len(lines) {
			b.WriteString(f.What + "\n")
			continue
		}
		fmt.Fprintf(&b, "line %d, column %d: %s\n", f.Line, f.Column, f.What)
		text := []rune(strings.ReplaceAll(strings.TrimRight(lines[f.Line-1], "\r"), "\t", " "))
		at := min(max(f.Column-1, 0), len(text))
		from := max(at-60, 0)
		fmt.Fprintf(&b, "  %s\n  %s^\n", string(text[from:min(len(text), from+100)]), strings.Repeat(" ", at-from))
	}
	return b.String()
}

// head is what a page says of itself.
const head = `# What gettier tells a model when a prompt touches it: as your word, never as measured.
# A piece that you take out is removed, one without an id is new. The order does not count.
#   scope        host, or project:NAME
#   text         one sentence, at most 400 bytes
#   topics       words or categories (db.target) that call it up, beside those of the text
#   sensitivity  public: every model may read it · internal: trusted upstreams · secret: none
`

// Print writes a page. Each line of note stands above it as a comment, and each of
// a piece's own notes, by its id, above the piece.
func Print(rows []Row, note string, notes map[string]string) []byte {
	var b strings.Builder
	b.WriteString(head)
	comment(&b, "", note)
	if len(rows) == 0 {
		b.WriteString("knowledge: []\n#  - {scope: host, text: \"…\", topics: []}\n")
		return []byte(b.String())
	}
	b.WriteString("knowledge:\n")
	for _, r := range rows {
		comment(&b, "  ", notes[r.ID])
		lead := "  - "
		field := func(name, value string) {
			b.WriteString(lead + name + ": " + value + "\n")
			lead = "    "
		}
		if r.ID != "" {
			field("id", scalar(r.ID))
		}
		field("scope", scalar(r.Scope))
		field("text", scalar(r.Text))
		topics := make([]string, len(r.Topics))
		for i, t := range r.Topics {
			topics[i] = scalar(t)
		}
		field("topics", "["+strings.Join(topics, ", ")+"]")
		field("sensitivity", scalar(r.Sensitivity))
	}
	return []byte(b.String())
}

func comment(b *strings.Builder, indent, text string) {
	for l := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(indent+"# "+l, " \n") + "\n")
	}
}

// scalar is a YAML scalar: plain where nothing of it could be read as something
// else, else in double quotes.
func scalar(s string) string {
	if s != "" && !strings.ContainsAny(s[:1], "-?:,[]{}#&*!|>'\"%@` ~=0123456789.+") && !strings.ContainsAny(s, "\"\\#,[]{}\n\t") &&
		!strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") && !strings.HasSuffix(s, " ") && !word(s) && printable(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\uFEFF':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\uFEFF'
	})
}

// word reports whether YAML takes s for something else than text.
func word(s string) bool {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return true
	}
	return false
}

// Parse reads a page. The error is Faults: all of them at once. A page with
// nothing but comments has no rows and is no fault; ok is false then, so that a
// lost page is not taken for an empty shelf.
func Parse(page []byte) (rows []Row, ok bool, err error) {
	switch {
	case len(page) > Max:
		return nil, false, Faults{{What: fmt.Sprintf("the page has %d bytes, at most %d are read", len(page), Max)}}
	case !utf8.Valid(page):
		return nil, false, Faults{{What: "the page is not UTF-8"}}
	}
	if i := slices.IndexFunc(page, func(c byte) bool { return c < 0x20 && c != '\n' && c != '\r' && c != '\t' }); i >= 0 {
		return nil, false, Faults{{What: fmt.Sprintf("the page has the control character 0x%02x at byte %d", page[i], i)}}
	}
	if strings.Count(string(page), "[")+strings.Count(string(page), "{") > 100_000 || nested(page) {
		return nil, false, Faults{{What: "the page is nested too deeply"}}
	}
	p := &reader{}
	defer func() {
		// The parser is not ours; a page that breaks it is a bad page.
		if v := recover(); v != nil {
			rows, ok, err = nil, false, Faults{{What: "the page cannot be read as YAML"}}
		}
	}()
	file, perr := parser.ParseBytes(page, 0)
	if perr != nil {
		return nil, false, Faults{syntax(perr)}
	}
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case body != nil:
			p.fault(d.Body, "a page is one document")
		default:
			body = d.Body
		}
	}
	if body == nil || body.Type() == ast.NullType {
		return nil, false, p.err()
	}
	ok = p.page(body)
	return p.rows, ok, p.err()
}

// nested reports brackets inside brackets beyond what a page can have.
func nested(page []byte) bool {
	depth := 0
	for _, c := range page {
		switch c {
		case '[', '{':
			if depth++; depth > 100 {
				return true
			}
		case ']', '}', '\n':
			depth = max(depth-1, 0)
		}
	}
	return false
}
