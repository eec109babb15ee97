package spec

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxFileBytes is the largest registry file that is read.
const MaxFileBytes = 1 << 20

// maxNesting bounds recursion in the YAML parser, whose stack overflow could
// not be recovered. Brackets inside quoted text count too, hence so high.
const maxNesting = 2000

// maxProblems bounds what is reported at once.
const maxProblems = 200

// maxText bounds one scalar of a registry.
const maxText = 4096

// reader walks the syntax tree and collects every fault on the way.
type reader struct {
	problems []Problem
	warnings []Problem
}

func at(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

func pos(n ast.Node) Pos {
	if n == nil {
		return Pos{1, 1}
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return at(m.Values[0].Key.GetToken()) // the node's own token is the colon
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return at(m.Key.GetToken())
	}
	return at(n.GetToken())
}

func (r *reader) fault(p Pos, what, hint string) {
	if len(r.problems) >= maxProblems {
		return
	}
	r.problems = append(r.problems, Problem{Pos: p, What: what, Hint: hint})
}

func (r *reader) warn(p Pos, what, hint string) {
	r.warnings = append(r.warnings, Problem{Pos: p, What: what, Hint: hint})
}

// document parses YAML into the root mapping of its single document, or
// reports why not.
func (r *reader) document(data []byte) (root ast.Node, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors put a mark in front
	switch {
	case len(data) > MaxFileBytes:
		r.fault(Pos{1, 1}, fmt.Sprintf("the file is larger than %d bytes", MaxFileBytes), "split it, or keep data out of it")
		return nil, false
	case !utf8.Valid(data):
		r.fault(invalidAt(data), "this is not valid UTF-8", "")
		return nil, false
	}
	if p, what := unwieldy(data); what != "" {
		r.fault(p, what, "")
		return nil, false
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		p, what := Pos{1, 1}, ""
		var ye yaml.Error
		if errors.As(err, &ye) { // its Error quotes the file, which takes for ever in a long one
			p, what = at(ye.GetToken()), ye.GetMessage()
		} else {
			what = err.Error()
		}
		hint := templateHint(data, p)
		if hint != "" {
			what = "an unquoted template reads as a mapping"
		} else {
			hint = syntaxHint(what)
		}
		r.fault(p, what, hint)
		return nil, false
	}
	var docs []*ast.DocumentNode
	for _, d := range f.Docs {
		if _, dir := d.Body.(*ast.DirectiveNode); dir {
			r.fault(pos(d.Body), "YAML directives are not allowed", "delete this line")
			return nil, false
		}
		if d.Body != nil || d.Start != nil {
			docs = append(docs, d)
		}
	}
	switch {
	case len(docs) == 0 || docs[0].Body == nil && len(docs) == 1:
		r.fault(Pos{1, 1}, "the file is empty", "begin with version: 1")
		return nil, false
	case len(docs) > 1:
		p := Pos{1, 1}
		if docs[1].Start != nil {
			p = at(docs[1].Start)
		} else if docs[1].Body != nil {
			p = pos(docs[1].Body)
		}
		r.fault(p, "a second document is not allowed", "keep everything under one version: 1")
		return nil, false
	}
	ast.Walk(plainOnly{r}, docs[0].Body)
	return docs[0].Body, true
}

// guarded turns a panic over a file into a fault of the file: the parser is not
// ours, and neither is the form of the trees that it makes. No file may stop the
// daemon.
func (r *reader) guarded(read func()) {
	defer func() {
		if p := recover(); p != nil {
			r.problems = nil // what was found up to there is of no use
			r.fault(Pos{1, 1}, fmt.Sprintf("this is not YAML that can be read (%v)", p), "")
		}
	}()
	read()
}

// plainOnly refuses what makes a definition differ from how it looks.
type plainOnly struct{ r *reader }

func (p plainOnly) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode:
		p.r.fault(pos(n), "anchors are not allowed", "write the value out")
	case *ast.AliasNode:
		p.r.fault(pos(n), "aliases are not allowed", "write the value out; quote a text that begins with *")
	case *ast.TagNode:
		p.r.fault(pos(n), "tags are not allowed", "quote a text that begins with !")
	case *ast.MergeKeyNode:
		p.r.fault(pos(n), "merge keys are not allowed", "write the keys out")
	}
	return p
}

func invalidAt(data []byte) Pos {
	line, col := 1, 1
	for len(data) > 0 {
		c, n := utf8.DecodeRune(data)
		if c == utf8.RuneError && n == 1 {
			break
		}
		if col++; c == '\n' {
			line, col = line+1, 1
		}
		data = data[n:]
	}
	return Pos{line, col}
}

// unwieldy finds, without parsing, what would exhaust the YAML parser's stack
// or time, which grows with the square of a mapping's keys: deep nesting, very
// long mappings, and more entries than any registry has.
func unwieldy(data []byte) (Pos, string) {
	depth, commas := 0, 0
	var counts [256]int // lines by indentation, since a line stood further left
	for n, line := range bytes.Split(data, []byte("\n")) {
		p := Pos{n + 1, 1}
		text := bytes.TrimLeft(line, " ")
		inline := 0
		for i, c := range text {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case ',':
				commas++
			case '!', '&', '*':
				inline++ // tags, anchors and aliases nest, too
			case '-', '?', ':':
				if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
					inline++
				}
			}
		}
		if depth > maxNesting || inline > maxNesting {
			return p, "the file is nested too deeply"
		}
		if commas > maxEntries || n > maxEntries {
			return p, fmt.Sprintf("more than %d entries", maxEntries)
		}
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		indent := min(len(line)-len(text), len(counts)-1)
		clear(counts[indent+1:])
		if text[0] == '-' {
			continue // an entry of a list begins a mapping of its own
		}
		if counts[indent]++; counts[indent] > maxKeys {
			return p, fmt.Sprintf("more than %d lines in one mapping", maxKeys)
		}
	}
	return Pos{}, ""
}

// maxKeys bounds one mapping, maxEntries the lines and the commas of a file.
const (
	maxKeys    = 2000
	maxEntries = 20_000
)

// templateHint looks for an unquoted {{name}} on the faulty line, the most
// common mistake in these files.
func templateHint(data []byte, p Pos) string {
	lines := strings.Split(string(data), "\n")
	if p.Line-1 < len(lines) && bareTemplate(lines[p.Line-1]) {
		return `quote the template: "{{name}}"`
	}
	return ""
}

// bareTemplate reports whether {{ stands outside of quotes on a line.
func bareTemplate(line string) bool {
	quote := rune(0)
	for i, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case (c == '"' || c == '\'') && (i == 0 || strings.ContainsRune(" ,[{", rune(line[i-1]))):
			quote = c
		case strings.HasPrefix(line[i:], "{{"):
			return true
		}
	}
	return false
}

// syntaxHint says what to do about the parser's commonest complaints.
func syntaxHint(what string) string {
	switch {
	case strings.Contains(what, "already defined"), strings.Contains(what, "duplicate key"):
		return "write each key once"
	case strings.Contains(what, "character '\t'"):
		return "indent with spaces, not with tabs"
	}
	return ""
}

// entry is one key of a mapping.
type entry struct {
	key string
	pos Pos
	val ast.Node
}

// mapping reads n as a mapping; with known keys, others are faults.
func (r *reader) mapping(n ast.Node, what string, known ...string) ([]entry, bool) {
	var vals []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		vals = m.Values
	case *ast.MappingValueNode:
		vals = []*ast.MappingValueNode{m}
	default:
		r.wrong(n, what, "a mapping")
		return nil, false
	}
	out := make([]entry, 0, len(vals))
	for _, v := range vals {
		k, p := v.Key, at(v.Key.GetToken())
		var text string
		switch k := k.(type) {
		case *ast.MergeKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			continue // reported by plainOnly
		case *ast.StringNode:
			text = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			text = k.GetToken().Value
		default:
			r.fault(p, "a key must be plain text", templateHintFor(k))
			continue
		}
		if w := badText(text); w != "" {
			r.fault(p, w, "")
			continue
		}
		if known != nil && !contains(known, text) {
			r.fault(p, fmt.Sprintf("%s has no key %q", what, clip(text)), meant(text, known))
			continue
		}
		out = append(out, entry{text, p, v.Value})
	}
	return out, true
}

func templateHintFor(n ast.Node) string {
	if _, ok := n.(*ast.MappingNode); ok {
		return `quote the template: "{{name}}"`
	}
	return ""
}

// sequence reads n as a list.
func (r *reader) sequence(n ast.Node, what string) ([]ast.Node, bool) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.wrong(n, what, "a list")
		return nil, false
	}
	return s.Values, true
}

// form is how a scalar was written.
type form int

const (
	absent form = iota
	text
	number
	boolean
)

// scalar returns a scalar's source text: 20.10 stays 20.10.
func (r *reader) scalar(n ast.Node, what string) (string, form) {
	var s string
	f := text
	switch v := n.(type) {
	case nil:
		r.fault(Pos{1, 1}, what+" is empty", "")
		return "", absent
	case *ast.StringNode:
		s = v.Value
	case *ast.LiteralNode:
		if v.Value != nil {
			s = strings.TrimRight(v.Value.Value, "\n")
		}
	case *ast.IntegerNode, *ast.FloatNode:
		s, f = v.GetToken().Value, number
	case *ast.BoolNode:
		s, f = v.GetToken().Value, boolean
	case *ast.InfinityNode, *ast.NanNode:
		s = v.GetToken().Value
	case *ast.NullNode:
		r.fault(pos(n), what+" is empty", "leave the key out, or give it a value")
		return "", absent
	default:
		r.wrong(n, what, "a single value")
		return "", absent
	}
	if w := badText(s); w != "" {
		r.fault(pos(n), what+": "+w, "")
		return "", absent
	}
	return s, f
}

func (r *reader) wrong(n ast.Node, what, want string) {
	hint := ""
	switch m := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return // reported by plainOnly
	case *ast.MappingNode:
		if m.IsFlowStyle {
			hint = `a template is quoted: "{{name}}"`
		}
	}
	if n == nil || n.Type() == ast.NullType {
		r.fault(pos(n), what+" is empty", "leave the key out, or give it "+want)
		return
	}
	r.fault(pos(n), fmt.Sprintf("%s must be %s", what, want), hint)
}

// str reads a non-empty text; bools and numbers count as their source text.
func (r *reader) str(n ast.Node, what string) (string, bool) {
	s, f := r.scalar(n, what)
	if f == absent {
		return "", false
	}
	if strings.TrimSpace(s) == "" {
		r.fault(pos(n), what+" is empty", "")
		return "", false
	}
	return s, true
}

func (r *reader) oneOf(n ast.Node, what string, values ...string) (string, bool) {
	s, ok := r.str(n, what)
	if ok && !contains(values, s) {
		hint := meant(s, values)
		if hint == "" {
			hint = "one of: " + strings.Join(values, ", ")
		}
		r.fault(pos(n), fmt.Sprintf("%s cannot be %q", what, clip(s)), hint)
		return "", false
	}
	return s, ok
}

func (r *reader) boolean(n ast.Node, what string) (bool, bool) {
	s, f := r.scalar(n, what)
	if f == absent {
		return false, false
	}
	if f != boolean || s != "true" && s != "false" {
		r.fault(pos(n), what+" must be true or false", "")
		return false, false
	}
	return s == "true", true
}

// integer reads a plain decimal number within bounds.
func (r *reader) integer(n ast.Node, what string, lo, hi int) (int, bool) {
	s, f := r.scalar(n, what)
	if f == absent {
		return 0, false
	}
	digits := strings.TrimPrefix(s, "-")
	if f == number && len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789") == "" {
		r.fault(pos(n), fmt.Sprintf("%s: %s is octal in one YAML and decimal in the next", what, clip(s)), "write it without the leading zero")
		return 0, false
	}
	v, err := strconv.Atoi(s)
	if f != number || err != nil || strings.HasPrefix(s, "+") {
		hint := ""
		if what == "ttl" || what == "timeout" {
			hint = "in seconds, digits only"
		}
		r.fault(pos(n), fmt.Sprintf("%s must be a whole number", what), hint)
		return 0, false
	}
	if v < lo || v > hi {
		r.fault(pos(n), fmt.Sprintf("%s must lie between %d and %d", what, lo, hi), "")
		return 0, false
	}
	return v, true
}

func (r *reader) float(n ast.Node, what string) *float64 {
	s, f := r.scalar(n, what)
	if f == absent {
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if f != number || err != nil || v != v {
		r.fault(pos(n), what+" must be a number", "")
		return nil
	}
	return &v
}

// texts reads a list of non-empty texts.
func (r *reader) texts(n ast.Node, what string, most int) []string {
	seq, ok := r.sequence(n, what)
	if !ok {
		return nil
	}
	if len(seq) > most {
		r.fault(pos(n), fmt.Sprintf("%s has more than %d entries", what, most), "")
		return nil
	}
	out := make([]string, 0, len(seq))
	for _, e := range seq {
		if s, ok := r.str(e, what); ok {
			out = append(out, s)
		}
	}
	return out
}

// badText names what must not stand in any text of a registry: people approve
// what they see, so nothing invisible may hide in it.
func badText(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("text longer than %d bytes", maxText)
	}
	for _, c := range s {
		if unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Cf, c) {
			return fmt.Sprintf("the invisible character %U is not allowed", c)
		}
	}
	return ""
}

// clip shortens text of a file for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}

// meant is the "did you mean" of one of the known words, or "".
func meant(s string, known []string) string {
	best, dist := "", 3
	sorted := append([]string(nil), known...)
	sort.Strings(sorted)
	if len(s) > 64 {
		return ""
	}
	for _, k := range sorted {
		d := distance(strings.ToLower(s), k)
		if strings.HasPrefix(k, strings.ToLower(s)) && len(s) >= 3 {
			d = min(d, 2)
		}
		if d < dist && d < max(len(k), len(s)) {
			best, dist = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is Levenshtein's, a swap of neighbours counting as one.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
