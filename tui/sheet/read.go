package sheet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"gettier.dev/gettierd/ledger/lemma"
)

// reader walks a page.
type reader struct {
	rows   []Row
	faults Faults
}

func (p *reader) fault(n ast.Node, format string, args ...any) {
	f := Fault{What: fmt.Sprintf(format, args...)}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		f.Line, f.Column = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	p.faults = append(p.faults, f)
}

func (p *reader) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(p.faults, func(a, b Fault) int { return (a.Line-b.Line)<<12 + a.Column - b.Column })
	return p.faults
}

// syntax is the parser's error without its own picture of the place.
func syntax(err error) Fault {
	f := Fault{What: "it is no YAML: " + first(err.Error())}
	var y yaml.Error
	if errors.As(err, &y) {
		f.What = "it is no YAML: " + y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			f.Line, f.Column = t.Position.Line, t.Position.Column
		}
	}
	return f
}

func first(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// members are the pairs of a mapping; ok is false when n is none.
func members(n ast.Node) (out []*ast.MappingValueNode, ok bool) {
	switch v := n.(type) {
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	return nil, false
}

func keyOf(m *ast.MappingValueNode) string {
	if s, ok := m.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return m.Key.String()
}

func (p *reader) page(n ast.Node) bool {
	top, ok := members(n)
	if !ok {
		p.fault(n, "a page begins with knowledge:")
		return false
	}
	seen := false
	for _, m := range top {
		switch {
		case keyOf(m) != "knowledge":
			p.fault(m.Key, "%.60q is no part of a page; it has knowledge: only", keyOf(m))
		case seen:
			p.fault(m.Key, "knowledge stands there twice")
		default:
			seen = true
			p.list(m.Value)
		}
	}
	return seen
}

func (p *reader) list(n ast.Node) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if n != nil && n.Type() != ast.NullType {
			p.fault(n, "knowledge is a list: each piece begins with a dash")
			return
		}
		p.fault(n, "knowledge is a list; when all is to be removed, write knowledge: []")
		return
	}
	ids := map[string]bool{}
	for _, v := range seq.Values {
		m, ok := members(v)
		if !ok {
			p.fault(v, "a piece has id, scope, text, topics and sensitivity")
			continue
		}
		if r, ok := p.row(v, m); ok {
			if r.ID != "" && ids[r.ID] {
				p.fault(v, "the id %s stands there twice; a copy has no id", r.ID)
			}
			ids[r.ID] = true
			p.rows = append(p.rows, r)
		}
	}
}

func (p *reader) row(n ast.Node, ms []*ast.MappingValueNode) (Row, bool) {
	r := Row{Sensitivity: "internal", Topics: []string{}}
	before := len(p.faults)
	at := map[string]ast.Node{"": n}
	for _, m := range ms {
		name := keyOf(m)
		if r.Line == 0 && m.Key.GetToken() != nil {
			r.Line = m.Key.GetToken().Position.Line
		}
		if at[name] != nil {
			p.fault(m.Key, "%.60s stands there twice", name)
			continue
		}
		at[name] = m.Value
		switch name {
		case "id":
			r.ID = p.text(m)
		case "scope":
			r.Scope = p.text(m)
		case "text":
			r.Text = strings.TrimSpace(p.text(m))
		case "sensitivity":
			r.Sensitivity = p.text(m)
		case "topics":
			r.Topics = p.topics(m)
		default:
			p.fault(m.Key, "%.60q is no part of a piece: id, scope, text, topics, sensitivity", name)
		}
	}
	for _, name := range []string{"scope", "text"} {
		if at[name] == nil {
			p.fault(n, "the piece has no %s", name)
		}
	}
	if len(p.faults) > before {
		return r, false
	}
	// The bounds are the ledger's own; its words say which one broke.
	k := lemma.Knowledge{Scope: r.Scope, Text: r.Text, Topics: r.Topics, Sensitivity: r.Sensitivity}
	if err := k.Check(); err != nil {
		what := strings.TrimPrefix(err.Error(), lemma.ErrKnowledge.Error()+": ")
		name := ""
		for _, w := range []string{"sensitivity", "scope", "topic", "text"} {
			if strings.Contains(what, w) {
				name = w
				break
			}
		}
		if name == "topic" {
			name = "topics"
		}
		where := at[name]
		if where == nil {
			where = n
		}
		p.fault(where, "%s", what)
		return r, false
	}
	return r, true
}

// text is a scalar as it was written: 20.10 stays 20.10.
func (p *reader) text(m *ast.MappingValueNode) string { return p.scalar(m.Value, keyOf(m)) }

func (p *reader) scalar(n ast.Node, name string) string {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return strings.Join(strings.Fields(v.Value.Value), " ")
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	case nil, *ast.NullNode:
		p.fault(n, "%.60s is empty", name)
	default:
		p.fault(n, "%.60s is one line of text", name)
	}
	return ""
}

func (p *reader) topics(m *ast.MappingValueNode) []string {
	out := []string{}
	switch v := m.Value.(type) {
	case *ast.SequenceNode:
		for _, t := range v.Values {
			out = append(out, strings.TrimSpace(p.scalar(t, "topic")))
		}
	case nil, *ast.NullNode:
	default:
		p.fault(m.Value, "topics are a list: [one, two]")
	}
	return out
}
