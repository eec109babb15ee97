package probe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

var errYAML = errors.New("it cannot be read as YAML")

// maxNesting keeps the parser's recursion within its stack.
const maxNesting = 1000

// yamlNode is a node of a file that other programs wrote. Aliases and merges are
// not followed, since a few bytes of them can stand for gigabytes: what they
// would bring is not told.
type yamlNode struct{ n ast.Node }

func parseYAML(text string) (doc yamlNode, err error) {
	if strings.Count(text, "[")+strings.Count(text, "{") > 20*maxNesting || deep(text) {
		return yamlNode{}, fmt.Errorf("%w: nested too deep", errYAML)
	}
	defer func() {
		if r := recover(); r != nil { // the parser's own faults are the file's here
			doc, err = yamlNode{}, errYAML
		}
	}()
	f, err := parser.ParseBytes([]byte(text), 0)
	if err != nil || len(f.Docs) == 0 || f.Docs[0] == nil {
		return yamlNode{}, errYAML
	}
	return yamlNode{f.Docs[0].Body}, nil
}

// deep reports lines that are indented, or brackets that are nested, beyond reason.
func deep(text string) bool {
	open, most := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	for l := range strings.SplitSeq(text, "\n") {
		if len(l)-len(strings.TrimLeft(l, " \t-?:")) > maxNesting {
			return true
		}
	}
	return most > maxNesting
}

func (y yamlNode) entries() []*ast.MappingValueNode {
	switch n := y.n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	case *ast.TagNode:
		return yamlNode{n.Value}.entries()
	case *ast.AnchorNode:
		return yamlNode{n.Value}.entries()
	}
	return nil
}

// at is the value of a key, a node of nothing when there is none.
func (y yamlNode) at(key string) yamlNode {
	for _, e := range y.entries() {
		if (yamlNode{e.Key}).text() == key {
			return yamlNode{e.Value}
		}
	}
	return yamlNode{}
}

func (y yamlNode) keys() []string {
	var out []string
	for _, e := range y.entries() {
		out = append(out, yamlNode{e.Key}.text())
	}
	return out
}

func (y yamlNode) items() []yamlNode {
	s, ok := y.n.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	out := make([]yamlNode, 0, len(s.Values))
	for _, v := range s.Values {
		out = append(out, yamlNode{v})
	}
	return out
}

// text is a scalar's value, "" for anything else.
func (y yamlNode) text() string {
	switch n := y.n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.MappingKeyNode:
		return yamlNode{n.Value}.text()
	case *ast.AnchorNode:
		return yamlNode{n.Value}.text()
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return ""
}
