// Command mutants changes the judge in one place at a time and runs its tables against
// each change: a mutant that breaks no row is a rule that no row holds. Run in
// this directory; it prints the survivors and exits with 1 if there are any that
// are not listed in equivalent.txt:
//
//	go run . [FILE…]
//
// The working tree is not touched: changes go through the compiler's overlay.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// judging are the files whose every change has to show.
var judging = []string{"judge.go", "compare.go", "asserts.go", "bounds.go", "falsify.go", "words.go", "verdict.go"}

const tests = "^(TestClaims|TestCompare|TestNoFabricatedCatch|TestCombine|TestI[0-9]+.*|TestSymbols.*|TestExpect.*)$"

// mutant is one change: text in place of src[from:to].
type mutant struct {
	file     string
	line     int
	from, to int
	text     string
	what     string
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d %s", m.file, m.line, m.what) }

// key names a mutant independently of line numbers: the line's own text.
func (m mutant) key(src []byte) string {
	a := bytes.LastIndexByte(src[:m.from], '\n') + 1
	b := len(src)
	if n := bytes.IndexByte(src[m.from:], '\n'); n >= 0 {
		b = m.from + n
	}
	return m.file + ": " + m.what + ": " + strings.TrimSpace(string(src[a:b]))
}

var swaps = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<"}, token.GTR: {">=", "<="}, token.GEQ: {">"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
}

func mutants(file string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		return nil, err
	}
	var out []mutant
	add := func(from, to token.Pos, text, what string) {
		p := fset.Position(from)
		out = append(out, mutant{file, p.Line, p.Offset, fset.Position(to).Offset, text, what})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			for _, op := range swaps[n.Op] {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op, n.Op.String()+" is "+op)
			}
		case *ast.IfStmt:
			a, b := fset.Position(n.Cond.Pos()).Offset, fset.Position(n.Cond.End()).Offset
			if _, binary := n.Cond.(*ast.BinaryExpr); !binary {
				add(n.Cond.Pos(), n.Cond.End(), "!("+string(src[a:b])+")", "condition is turned")
			}
		case *ast.Ident:
			switch n.Name {
			case "true":
				add(n.Pos(), n.End(), "false", "true is false")
			case "false":
				add(n.Pos(), n.End(), "true", "false is true")
			}
		case *ast.GenDecl:
			return n.Tok != token.VAR && n.Tok != token.CONST // tables
		}
		return true
	})
	return out, nil
}

func main() {
	files := os.Args[1:]
	if len(files) == 0 {
		files = judging
	}
	survivors, n, err := run(files)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	fmt.Printf("%d of %d mutants break no row\n", len(survivors), n)
	if len(survivors) > 0 {
		os.Exit(1)
	}
}

func run(files []string) (survivors []string, n int, err error) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		return nil, 0, err
	}
	listed, err := os.ReadFile("equivalent.txt")
	if err != nil {
		return nil, 0, err
	}
	equivalent := strings.Split(string(listed), "\n")
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(work)
	type job struct {
		m   mutant
		src []byte
	}
	jobs := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for j := range jobs {
				alive, e := survives(dir, filepath.Join(work, fmt.Sprint(i)), j.m, j.src)
				mu.Lock()
				switch {
				case e != nil && err == nil:
					err = e
				case alive:
					survivors = append(survivors, j.m.String())
					fmt.Printf("%d: %s\n", j.m.line, j.m.key(j.src))
				}
				mu.Unlock()
			}
		})
	}
	for _, f := range files {
		src, e := os.ReadFile(filepath.Join(dir, f))
		if e != nil {
			return nil, 0, e
		}
		ms, e := mutants(f, src)
		if e != nil {
			return nil, 0, e
		}
		for _, m := range ms {
			if slices.Contains(equivalent, m.key(src)) {
				continue
			}
			n++
			jobs <- job{m, src}
		}
	}
	close(jobs)
	wg.Wait()
	return survivors, n, err
}

// survives reports whether the tables pass with the change. What does not
// compile is no mutant.
func survives(dir, work string, m mutant, src []byte) (bool, error) {
	changed := append(append(append([]byte{}, src[:m.from]...), m.text...), src[m.to:]...)
	file, overlay := work+".go", work+".json"
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return false, err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, m.file): file}})
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return false, err
	}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-timeout=60s", "-overlay", overlay, "-run", tests, ".")
	cmd.Dir = dir
	return cmd.Run() == nil, nil
}
