package scenarios

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const (
	maxYAML     = 32 << 10
	maxBrackets = 2000 // the parser recurses by bracket, and a stack cannot be recovered
)

// decode reads one plain YAML document into v: unknown keys, anchors, aliases,
// tags and a second document are errors. The decoder panics on some malformed
// input (found by fuzzing), which is an error of the file, too.
func decode(data []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is not YAML that can be read (%v)", p)
		}
	}()
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxBrackets {
		return fmt.Errorf("more than %d brackets", maxBrackets)
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return err
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return errors.New("want exactly one document")
	}
	var p plain
	ast.Walk(&p, f.Docs[0].Body)
	if p.what != "" {
		return fmt.Errorf("line %d: %s", p.line, p.what)
	}
	return yaml.NodeToValue(f.Docs[0].Body, v, yaml.Strict())
}

// plain finds what makes a file differ from how it looks.
type plain struct {
	what string
	line int
}

// Visit implements ast.Visitor.
func (p *plain) Visit(n ast.Node) ast.Visitor {
	what := ""
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		what = "anchors and aliases are not allowed: write the value out"
	case *ast.TagNode:
		what = "tags are not allowed"
	}
	if what != "" && p.what == "" {
		p.what = what
		if t := n.GetToken(); t != nil && t.Position != nil {
			p.line = t.Position.Line
		}
	}
	return p
}
