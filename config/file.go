package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// fileMost is far above any real file and far below what could exhaust the
// parser's stack.
const fileMost = 64 << 10

// depthMost is deeper than the table by half.
const depthMost = 8

// Problem is one fault of a file, a variable or a flag.
type Problem struct {
	Source string // path, variable or flag
	Line   int    // from 1; 0 outside files
	Column int
	Key    string
	Text   string
	Hint   string
}

func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Problems are all faults of a load at once, in the order of the file.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Warning is something that was read and should be changed.
type Warning struct {
	Source string
	Line   int
	Key    string
	Text   string
}

func (w Warning) String() string {
	at := w.Source
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d", w.Source, w.Line)
	}
	return fmt.Sprintf("%s: %s: %s", at, w.Key, w.Text)
}

// leaf is a value of the file with its place.
type leaf struct {
	node   ast.Node
	line   int
	column int
}

// reader walks one file.
type reader struct {
	path     string
	problems Problems
	warnings []Warning
	leaves   map[string]leaf
}

func (r *reader) fault(n ast.Node, key, text, hint string) {
	p := Problem{Source: r.path, Key: key, Text: text, Hint: hint}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		p.Line, p.Column = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	r.problems = append(r.problems, p)
}

// readFile yields the leaves of data by concrete key, or problems.
func readFile(path string, data []byte) (r *reader) {
	r = &reader{path: path, leaves: make(map[string]leaf)}
	if len(data) > fileMost {
		r.fault(nil, "", fmt.Sprintf("is %d bytes long, at most %d are read", len(data), fileMost), "")
		return r
	}
	if i := slices.IndexFunc(data, func(b byte) bool { return b < 0x20 && b != '\n' && b != '\r' && b != '\t' }); i >= 0 {
		r.fault(nil, "", fmt.Sprintf("holds the control character 0x%02x at byte %d", data[i], i), "")
		return r
	}
	if tooDeep(data) {
		r.fault(nil, "", "is nested too deeply", "")
		return r
	}
	defer func() {
		// The parser is not ours; a file that breaks it is a bad file, no
		// reason for the daemon to stop.
		if v := recover(); v != nil {
			r.fault(nil, "", "cannot be read as YAML", "")
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		p := Problem{Source: path}
		var se yaml.Error
		if !errors.As(err, &se) {
			p.Text = err.Error()
		} else { // its Error quotes the file, which takes long in a long one
			p.Text = se.GetMessage()
			if t := se.GetToken(); t != nil && t.Position != nil {
				p.Line, p.Column = t.Position.Line, t.Position.Column
			}
		}
		r.problems = append(r.problems, p)
		return r
	}
	docs := 0
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if docs++; docs > 1 {
			r.fault(d.Body, "", "a second document", "one file holds one configuration")
			return r
		}
		r.walk("", d.Body, 0)
	}
	if _, ok := r.leaves["version"]; !ok && len(r.problems) == 0 {
		r.problems = append(r.problems, Problem{Source: path, Line: 1, Column: 1, Key: "version", Text: "is missing", Hint: "begin the file with: version: 1"})
	}
	return r
}

// tooDeep bounds flow nesting before the recursive parser sees it, and
// indentation with it.
func tooDeep(data []byte) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > 64 {
				return true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return strings.Contains(string(data), strings.Repeat("- ", 64)) || strings.Contains(string(data), strings.Repeat("? ", 16))
}

// walk descends mappings and keeps leaves that the table knows.
func (r *reader) walk(prefix string, n ast.Node, depth int) {
	if depth > depthMost {
		r.fault(n, prefix, "is nested too deeply", "")
		return
	}
	var entries []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		entries = m.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{m}
	case *ast.NullNode:
		return // an empty section
	case *ast.CommentGroupNode:
		return
	default:
		if prefix == "" {
			r.fault(n, "", "is no mapping", "write keys and values, such as version: 1")
			return
		}
		r.fault(n, prefix, "is a section, not a value", "its keys are "+strings.Join(children(prefix), ", "))
		return
	}
	seen := make(map[string]bool)
	for _, e := range entries {
		if _, merge := e.Key.(*ast.MergeKeyNode); merge {
			r.fault(e.Key, prefix, "merge keys are not read", "write the values out")
			continue
		}
		name := e.Key.GetToken().Value
		key := name
		if prefix != "" {
			key = prefix + "." + name
		}
		if seen[name] {
			r.fault(e.Key, key, "stands here twice", "")
			continue
		}
		seen[name] = true
		if to, ok := renames[key]; ok {
			r.warnings = append(r.warnings, Warning{r.path, e.Key.GetToken().Position.Line, key, "is called " + to + " now"})
			key = to
		}
		r.entry(prefix, name, key, e, depth)
	}
}

func (r *reader) entry(prefix, name, key string, e *ast.MappingValueNode, depth int) {
	switch e.Value.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		r.fault(e.Value, key, "anchors and aliases are not read", "write the value out")
		return
	case *ast.TagNode:
		r.fault(e.Value, key, "tags are not read", "")
		return
	}
	if prefix == "upstreams" && !validName(name) {
		r.fault(e.Key, key, "is no name for an upstream", "use lower-case letters, digits, - and _, at most 32")
		return
	}
	if k := keyOf(key); k.Name != "" {
		if _, null := e.Value.(*ast.NullNode); null && k.Type != Roots && k.Type != List && k.Type != Hosts && k.Type != Headers {
			r.fault(e.Key, key, "has no value", "leave the line out to get the default")
			return
		}
		pos := e.Value.GetToken().Position
		if _, twice := r.leaves[key]; twice {
			r.fault(e.Key, key, "is set twice, once by its earlier name", "")
			return
		}
		r.leaves[key] = leaf{e.Value, pos.Line, pos.Column}
		return
	}
	if len(children(key)) > 0 {
		r.walk(key, e.Value, depth+1)
		return
	}
	hint := "see gettier config show for all keys"
	if near := nearest(name, children(prefix)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if full := elsewhere(name); full != "" {
		hint = fmt.Sprintf("did you mean %s?", full)
	}
	r.fault(e.Key, key, "is not a key", hint)
}

// children lists the names that may stand under a section.
func children(section string) []string {
	pattern := section
	if name := upstreamOf(section); name != "" {
		pattern = upstreamPrefix + "*" + section[len(upstreamPrefix)+len(name):]
	}
	if pattern != "" {
		pattern += "."
	}
	var out []string
	for _, k := range Keys {
		if rest, ok := strings.CutPrefix(k.Name, pattern); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// elsewhere finds a key of that last name in another section.
func elsewhere(name string) string {
	for _, k := range Keys {
		if strings.HasSuffix(k.Name, "."+name) {
			return strings.Replace(k.Name, "*", "NAME", 1)
		}
	}
	return ""
}

func validName(s string) bool {
	if s == "" || len(s) > 32 || !(s[0] >= 'a' && s[0] <= 'z') {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// nearest returns the candidate within two edits of word, if one is nearest.
func nearest(word string, candidates []string) string {
	best, at := "", 3
	for _, c := range candidates {
		if c == "*" {
			continue
		}
		if d := distance(word, c); d < at && d < len(c) {
			best, at = c, d
		}
	}
	return best
}

// distance is Levenshtein's with swaps of neighbours counted as one edit.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
