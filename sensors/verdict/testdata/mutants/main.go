// Command mutants changes the judge in one place at a time and runs its tables against
// each change: a mutant that breaks no row is a rule that no row holds. Run in
// this directory; it prints the survivors and exits with 1 if there are any that
// are not listed in equivalent.txt:
//
//	go run . [-every N] [FILE…]
//
// All mutants are compiled into one test binary, in which the environment picks
// one. The working tree is not touched: changes go through the compiler's overlay.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// judging are the files whose every change has to show.
var judging = []string{"judge.go", "compare.go", "asserts.go", "bounds.go", "falsify.go", "words.go", "verdict.go"}

// tests are run in this order; the second takes longer.
var tests = [][]string{{"-test.skip", catch}, {"-test.run", catch}}

const catch = "^TestNoFabricatedCatch$"

// limit is how long the tables may take with a mutant: some never end.
const limit = 30 * time.Second

// mutant is one change: text in place of an expression.
type mutant struct {
	id   int
	file string
	line int
	text string
	what string
	key  string // names it independently of line numbers, by the expression's own text
}

var swaps = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<"}, token.GTR: {">=", "<="}, token.GEQ: {">"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
}

// source is one file with its mutants.
type source struct {
	name string
	src  []byte
	fset *token.FileSet
	at   map[ast.Expr][]mutant // what may stand in place of an expression
	all  []*mutant
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) text(n ast.Node) string { return string(s.src[s.offset(n.Pos()):s.offset(n.End())]) }

func (s *source) add(e ast.Expr, pos token.Pos, id *int, text, what string) {
	*id++
	key := s.name + ": " + what + ": " + strings.Join(strings.Fields(s.text(e)), " ")
	m := mutant{*id, s.name, s.fset.Position(pos).Line, text, what, key}
	s.at[e] = append(s.at[e], m)
	s.all = append(s.all, &m)
}

// read finds a file's mutants and renders it with all of them in.
func read(dir, name string, id *int) (*source, []byte, error) {
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	s := &source{name: name, src: src, fset: token.NewFileSet(), at: map[ast.Expr][]mutant{}}
	tree, err := parser.ParseFile(s.fset, name, src, 0)
	if err != nil {
		return nil, nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			x, y := s.text(n.X), s.text(n.Y)
			for _, op := range swaps[n.Op] {
				s.add(n, n.OpPos, id, "("+x+") "+op+" ("+y+")", n.Op.String()+" is "+op)
			}
		case *ast.IfStmt:
			if _, binary := n.Cond.(*ast.BinaryExpr); !binary {
				s.add(n.Cond, n.Cond.Pos(), id, "!("+s.text(n.Cond)+")", "condition is turned")
			}
		case *ast.Ident:
			switch n.Name {
			case "true":
				s.add(n, n.Pos(), id, "false", "true is false")
			case "false":
				s.add(n, n.Pos(), id, "true", "false is true")
			}
		case *ast.GenDecl:
			return n.Tok != token.VAR && n.Tok != token.CONST // tables
		}
		return true
	})
	return s, s.render(), nil
}

// render writes the file with a choice at each expression that has mutants. An
// alternative is the original text: no two mutants are in force at once.
func (s *source) render() []byte {
	type edit struct {
		at    int
		open  bool
		width int // of the expression, so that the outer one opens first and closes last
		text  string
	}
	var edits []edit
	for e, ms := range s.at {
		a, b := s.offset(e.Pos()), s.offset(e.End())
		open := "func() bool { switch theMutant {"
		for _, m := range ms {
			open += fmt.Sprintf(" case %d: return %s;", m.id, strings.ReplaceAll(m.text, "\n", " "))
		}
		edits = append(edits, edit{a, true, b - a, open + " }; return bool("}, edit{b, false, b - a, ") }()"})
	}
	slices.SortFunc(edits, func(x, y edit) int {
		if c := cmp.Compare(x.at, y.at); c != 0 {
			return c
		}
		if x.open != y.open { // what ends here closes before another opens
			if x.open {
				return 1
			}
			return -1
		}
		if x.open {
			return cmp.Compare(y.width, x.width)
		}
		return cmp.Compare(x.width, y.width)
	})
	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(s.src[last:e.at])
		out.WriteString(e.text)
		last = e.at
	}
	out.Write(s.src[last:])
	return out.Bytes()
}

func main() {
	every := flag.Int("every", 1, "run each N-th mutant only")
	flag.Parse()
	files := flag.Args()
	if len(files) == 0 {
		files = judging
	}
	survivors, n, err := run(files, max(*every, 1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	fmt.Printf("%d of %d mutants break no row\n", survivors, n)
	if survivors > 0 {
		os.Exit(1)
	}
}

// build compiles the tests with every mutant in them.
func build(dir, work string, files []string) (binary string, all []*mutant, err error) {
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		replace[filepath.Join(dir, name)] = filepath.Join(work, name)
		return os.WriteFile(filepath.Join(work, name), text, 0o600)
	}
	id := 0
	for _, f := range files {
		s, text, err := read(dir, f, &id)
		if err != nil {
			return "", nil, err
		}
		if err := put(f, text); err != nil {
			return "", nil, err
		}
		all = append(all, s.all...)
	}
	const choice = "package verdict\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar theMutant, _ = strconv.Atoi(os.Getenv(\"MUTANT\"))\n"
	if err := put("the_mutant.go", []byte(choice)); err != nil {
		return "", nil, err
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return "", nil, err
	}
	binary = filepath.Join(work, "verdict.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%w: %s", err, out)
	}
	if !survives(dir, binary, 0) {
		return "", nil, fmt.Errorf("the tables fail without any mutant")
	}
	return binary, all, nil
}

func run(files []string, every int) (survivors, n int, err error) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		return 0, 0, err
	}
	listed, err := os.ReadFile("equivalent.txt")
	if err != nil {
		return 0, 0, err
	}
	equivalent := strings.Split(string(listed), "\n")
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(work)
	binary, all, err := build(dir, work, files)
	if err != nil {
		return 0, 0, err
	}
	for i, l := range equivalent {
		known := l == "" || l[0] == '#' || !slices.Contains(files, strings.SplitN(l, ":", 2)[0])
		if !known && !slices.ContainsFunc(all, func(m *mutant) bool { return m.key == l }) {
			return 0, 0, fmt.Errorf("equivalent.txt:%d: no such mutant", i+1)
		}
	}
	jobs := make(chan *mutant)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for m := range jobs {
				if survives(dir, binary, m.id) {
					mu.Lock()
					survivors++
					fmt.Printf("%d: %s\n", m.line, m.key)
					mu.Unlock()
				}
			}
		})
	}
	for i, m := range all {
		if i%every == 0 && !slices.Contains(equivalent, m.key) {
			n++
			jobs <- m
		}
	}
	close(jobs)
	wg.Wait()
	return survivors, n, nil
}

// survives reports whether the tables pass with the mutant.
func survives(dir, binary string, id int) bool {
	for _, t := range tests {
		cmd := exec.Command(binary, append(t, "-test.failfast", "-test.timeout", limit.String())...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id))
		if cmd.Run() != nil {
			return false
		}
	}
	return true
}
