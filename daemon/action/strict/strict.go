// Package strict reads a small YAML document into Go values and reports every
// fault of it at once, with line and column. What a document says twice, in
// another type, or by a key that nobody knows is a fault, never a guess. Pure: it
// opens no file. What the values mean is decided by whoever reads them.
package strict

import (
	"errors"
	"fmt"
	"reflect"
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

// Bounds of a document. The parser's time grows with the square of a mapping's
// keys and its stack with the nesting, hence both.
const (
	MaxBytes    = 256 << 10
	maxLines    = 4000
	maxDepth    = 64 // brackets, and indentation in steps of two
	maxText     = 8 << 10
	maxProblems = 100
)

// Problem is one fault at a place, 1-based.
type Problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	What   string `json:"what"`
	Hint   string `json:"hint,omitempty"`
}

// Doc is a document that was read: it knows where each value stood.
type Doc struct {
	Problems []Problem
	places   map[string]token.Position
	source   []string
}

// Decode reads data into v, a pointer to a struct whose fields carry yaml tags.
// Values that the document does not name keep what v holds. The document is of
// use only when Problems is empty.
func Decode(data []byte, v any) (d *Doc) {
	d = &Doc{places: map[string]token.Position{}, source: strings.Split(string(data[:min(len(data), MaxBytes)]), "\n")}
	defer func() {
		if p := recover(); p != nil { // the parser is not ours, and no file may stop the program
			d.Problems = []Problem{{1, 1, "this is not YAML that can be read", ""}}
		}
	}()
	if !d.sane(data) {
		return d
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil {
			d.add(ye.GetToken().Position, ye.GetMessage(), "")
		} else {
			d.add(nil, "this is not YAML that can be read", "")
		}
		return d
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		d.add(nil, "the file is empty", "begin with version: 1")
	case 1:
		d.value(bodies[0], reflect.ValueOf(v).Elem(), "", "the file")
	default:
		d.add(place(bodies[1]), "a second document is not allowed", "")
	}
	return d
}

// sorted keeps faults in the order of the file, whatever found them.
func (d *Doc) sorted() {
	sort.SliceStable(d.Problems, func(i, j int) bool {
		a, b := d.Problems[i], d.Problems[j]
		if a.Line != b.Line || a.Column != b.Column {
			return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
		}
		return a.What < b.What
	})
}

// Fault adds a fault at the value under path, like rules[2].when.program; where
// the document does not hold it, at the nearest one around it.
func (d *Doc) Fault(path, what, hint string) {
	for {
		if p, ok := d.places[path]; ok {
			d.add(&p, what, hint)
			return
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			d.add(nil, what, hint)
			return
		}
		path = path[:i]
	}
}

// Text shows all faults with the line that each stands in and a caret below it.
func (d *Doc) Text(file string) string {
	var b strings.Builder
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "%s:%d:%d: %s", file, p.Line, p.Column, p.What)
		if p.Hint != "" {
			b.WriteString("; " + p.Hint)
		}
		b.WriteByte('\n')
		if p.Line <= len(d.source) {
			line := strings.Map(func(r rune) rune {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					return ' '
				}
				return r
			}, strings.TrimRight(d.source[p.Line-1], "\r"))
			if utf8.RuneCountInString(line) <= 200 {
				fmt.Fprintf(&b, "  %s\n  %s^\n", line, strings.Repeat(" ", min(p.Column-1, utf8.RuneCountInString(line))))
			}
		}
	}
	return b.String()
}

func (d *Doc) add(p *token.Position, what, hint string) {
	line, col := 1, 1
	if p != nil {
		line, col = max(p.Line, 1), max(p.Column, 1)
	}
	if len(d.Problems) < maxProblems {
		d.Problems = append(d.Problems, Problem{line, col, what, hint})
		d.sorted()
	}
}

// sane refuses, before it is parsed, what would cost the parser its stack or its time.
func (d *Doc) sane(data []byte) bool {
	switch {
	case len(data) > MaxBytes:
		d.add(nil, fmt.Sprintf("the file is larger than %d bytes", MaxBytes), "")
	case !utf8.Valid(data):
		d.add(nil, "this is not valid UTF-8", "")
	case len(d.source) > maxLines:
		d.add(nil, fmt.Sprintf("more than %d lines", maxLines), "")
	default:
		depth := 0
		for n, line := range d.source {
			marks := 0
			for i := range len(line) {
				switch line[i] {
				case '[', '{':
					depth++
				case ']', '}':
					depth = max(depth-1, 0)
				case '-', '?', ':', '!', '&', '*':
					marks++
				}
			}
			if indent := len(line) - len(strings.TrimLeft(line, " ")); depth > maxDepth || indent > 2*maxDepth || marks > 1000 {
				d.add(&token.Position{Line: n + 1, Column: 1}, "the file is nested too deeply", "")
				return false
			}
		}
		return true
	}
	return false
}

func place(n ast.Node) *token.Position {
	if n == nil {
		return nil
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return m.Values[0].Key.GetToken().Position
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return m.Key.GetToken().Position
	}
	if t := n.GetToken(); t != nil {
		return t.Position
	}
	return nil
}

func (d *Doc) value(n ast.Node, v reflect.Value, path, what string) {
	if p := place(n); p != nil {
		d.places[path] = *p
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.add(place(n), "anchors, aliases and tags are not allowed", "write the value out; quote a text that begins with &, * or !")
		return
	case nil, *ast.NullNode:
		d.add(place(n), what+" is empty", "leave the key out, or give it a value")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, what)
	case reflect.Struct:
		d.mapping(n, what, known(v.Type()), func(key string, val ast.Node) {
			if f, ok := field(v, key); ok {
				d.value(val, f, join(path, key), key)
			}
		})
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		d.mapping(n, what, nil, func(key string, val ast.Node) {
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(val, e, join(path, key), key)
			v.SetMapIndex(reflect.ValueOf(key), e)
		})
	case reflect.Slice:
		items := []ast.Node{n}
		if s, ok := n.(*ast.SequenceNode); ok {
			items = s.Values
		} else if v.Type().Elem().Kind() != reflect.String {
			d.add(place(n), what+" must be a list", "")
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, len(items)))
		for i, it := range items {
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(it, e, path+"["+strconv.Itoa(i)+"]", what)
			v.Set(reflect.Append(v, e))
		}
	default:
		d.scalar(n, v, what)
	}
}

func (d *Doc) scalar(n ast.Node, v reflect.Value, what string) {
	var s string
	kind := "text"
	switch x := n.(type) {
	case *ast.StringNode:
		s = x.Value
	case *ast.LiteralNode:
		if x.Value != nil {
			s = strings.TrimRight(x.Value.Value, "\n")
		}
	case *ast.IntegerNode, *ast.FloatNode:
		s, kind = x.GetToken().Value, "number"
	case *ast.BoolNode:
		s, kind = x.GetToken().Value, "bool"
	default:
		d.add(place(n), what+" must be a single value", "")
		return
	}
	if w := hidden(s); w != "" {
		d.add(place(n), what+": "+w, "")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		if kind != "bool" || s != "true" && s != "false" {
			d.add(place(n), what+" must be true or false", "")
			return
		}
		v.SetBool(s == "true")
	case reflect.Int:
		i, err := strconv.Atoi(s)
		if kind != "number" || err != nil || strings.HasPrefix(s, "+") || len(s) > 1 && s[0] == '0' {
			d.add(place(n), what+" must be a whole number", "")
			return
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if kind != "number" || err != nil || f != f {
			d.add(place(n), what+" must be a number", "")
			return
		}
		v.SetFloat(f)
	default:
		panic("strict: no way to read a " + v.Kind().String())
	}
}

func (d *Doc) mapping(n ast.Node, what string, keys []string, each func(string, ast.Node)) {
	var vals []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		vals = m.Values
	case *ast.MappingValueNode:
		vals = []*ast.MappingValueNode{m}
	default:
		d.add(place(n), what+" must be a mapping", "")
		return
	}
	seen := map[string]bool{}
	for _, m := range vals {
		t := m.Key.GetToken()
		switch m.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		default:
			d.add(t.Position, "a key must be plain text", "")
			continue
		}
		key := t.Value
		switch w := hidden(key); {
		case w != "":
			d.add(t.Position, w, "")
		case seen[key]:
			d.add(t.Position, fmt.Sprintf("%q stands twice", key), "")
		case keys != nil && !contains(keys, key):
			d.add(t.Position, fmt.Sprintf("%s has no key %q", what, cut(key)), Meant(key, keys))
		default:
			each(key, m.Value)
		}
		seen[key] = true
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func known(t reflect.Type) []string {
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func field(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// hidden names what must not stand in a text that a person approves by reading it.
func hidden(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("a text is longer than %d bytes", maxText)
	}
	for _, c := range s {
		if unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Cf, c) {
			return fmt.Sprintf("the invisible character %U is not allowed", c)
		}
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func cut(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}

// Meant is the "did you mean" of the nearest known word, "" when none is near.
func Meant(s string, words []string) string {
	if len(s) > 64 {
		return ""
	}
	best, least := "", 3
	for _, w := range words {
		if n := distance(strings.ToLower(s), w); n < least && n < max(len(w), len(s)) {
			best, least = w, n
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is Levenshtein's, a swap of neighbours counting as one.
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
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
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
