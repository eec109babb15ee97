package shell

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// walker reads one text and everything that is nested in it.
type walker struct {
	src     string
	steps   int
	depth   int
	vars    map[string]word
	args    []word // $1, $2 …, nil when they are not known
	funcs   map[string]*syntax.Stmt
	active  map[string]int // functions being walked
	cwd     string
	cmds    []Command
	paths   []string
	effect  Effect
	rest    Effect // without removals that name all they remove
	lost    bool   // a cd may or may not have happened
	rule    string
	why     string
	opaque  bool
	wraps   []string
	start   int
	end     int
	branch  int // inside if, case, loop: an assignment there may not have happened
	files   Files
	written []File // what this text has written, as far as it is known
	scripts int    // inside a script of this session
	quiet   int    // inside a substitution whose output is being computed
}

// stream is what is known of a command's standard input or output.
type stream struct {
	kind streamKind
	text string
	// secret is a file of credentials that its bytes come from, "" for none.
	secret string
}

type streamKind int

const (
	none    streamKind = iota // a terminal or nothing
	known                     // text is all of it
	unknown                   // a pipe whose bytes are known only when it runs
)

// call is one command about to be classified.
type call struct {
	args  []word
	env   []string
	in    stream
	piped bool // its output feeds another command
	bg    bool
}

func (w *walker) step() bool {
	w.steps--
	if w.steps < 0 {
		w.note(Opaque, "budget", "too much to read")
		w.opaque = true
		return false
	}
	return true
}

// note raises the effect of the whole reading.
func (w *walker) note(e Effect, rule, why string) {
	if e == Opaque {
		if w.opaque = true; w.scripts > 0 && quietly(rule) {
			e = Mutate
		}
	}
	w.rest = Join(w.rest, e)
	if w.effect == "" || e.Rank() > w.effect.Rank() {
		w.effect, w.rule, w.why = e, rule, why
	}
}

func (w *walker) reading() Reading {
	r := Reading{Effect: w.effect, Rest: w.rest, Commands: w.cmds, Paths: w.paths, Opaque: w.opaque, Rule: w.rule, Why: w.why, Wrote: w.written}
	if r.Effect == "" {
		r.Effect, r.Rest, r.Rule, r.Why = ReadOnly, ReadOnly, "nothing", "runs nothing"
	}
	return r
}

func (w *walker) path(p string) {
	if p == "" || len(w.paths) >= maxPaths {
		return
	}
	for _, q := range w.paths {
		if q == p {
			return
		}
	}
	if len(p) > maxWord {
		p = p[:maxWord]
	}
	w.paths = append(w.paths, p)
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

func parse(src string) (f *syntax.File, err error) {
	p := parsers.Get().(*syntax.Parser)
	f, err = p.Parse(strings.NewReader(src), "")
	parsers.Put(p)
	if err == nil {
		return f, nil
	}
	for _, v := range []syntax.LangVariant{syntax.LangZsh, syntax.LangPOSIX} {
		if f, e := syntax.NewParser(syntax.Variant(v)).Parse(strings.NewReader(src), ""); e == nil {
			return f, nil
		}
	}
	return nil, err
}

// text reads src as a script.
func (w *walker) text(src string, depth int) {
	if len(src) > maxText {
		w.note(Opaque, "size", "command text is longer than 64 KiB")
		return
	}
	if depth > maxDepth {
		w.note(Opaque, "depth", "nested too deep")
		return
	}
	if strings.IndexByte(src, 0) >= 0 {
		w.note(Opaque, "parse", "holds a NUL byte")
		return
	}
	var list [maxPlainCommands]plainCommand
	words, n, ok := plainText(src, &list)
	if !ok {
		w.parsed(src, depth)
		return
	}
	outer, outerDepth := w.src, w.depth
	w.src, w.depth = src, depth
	w.steps -= len(words)
	w.plain(words, list[:n])
	w.src, w.depth = outer, outerDepth
}

// parsed is text by the parser.
func (w *walker) parsed(src string, depth int) {
	f, err := parse(src)
	if err != nil {
		if one := strings.TrimSpace(src); strings.HasSuffix(one, ">") && strings.IndexByte(one, '\n') < 0 {
			// One line is parsed wholly before any of it runs.
			w.note(Mutate, "parse.refused", "ends in a redirection to nowhere, which every shell refuses")
		} else {
			w.note(Opaque, "parse", "no shell can parse it")
		}
		w.scanText(src)
		return
	}
	outer, outerDepth := w.src, w.depth
	w.src, w.depth = src, depth
	w.stmts(f.Stmts, stream{})
	w.src, w.depth = outer, outerDepth
}

// nested reads src as a script that a command of this one runs.
func (w *walker) nested(src string, in stream) {
	start, end := w.start, w.end
	quiet := w.quiet
	w.text(src, w.depth+1)
	w.start, w.end, w.quiet = start, end, quiet
}

// scanText looks for the unmistakable in a text that does not parse.
func (w *walker) scanText(src string) {
	for line := range strings.SplitSeq(src, "\n") {
		f := strings.Fields(line)
		for i := range f {
			if base(strings.Trim(f[i], `"'();&|`)) == "rm" && i+1 < len(f) && strings.HasPrefix(f[i+1], "-") && strings.ContainsAny(f[i+1], "rR") {
				w.note(Destroy, "rm.recursive", "unparsable text with rm -r in it")
			}
		}
	}
}

func (w *walker) stmts(ss []*syntax.Stmt, in stream) stream {
	var out stream
	var b strings.Builder
	for i, s := range ss {
		o := w.stmt(s, in, false)
		if len(ss) == 1 {
			return o
		}
		if o.kind == unknown || out.kind == unknown {
			out = stream{kind: unknown}
			continue
		}
		b.WriteString(o.text)
		if i == len(ss)-1 {
			out = stream{kind: known, text: b.String()}
		}
	}
	return out
}

func (w *walker) stmt(s *syntax.Stmt, in stream, piped bool) stream {
	if s == nil || !w.step() {
		return stream{kind: unknown}
	}
	if w.quiet == 0 && w.depth == 0 {
		w.start, w.end = int(s.Pos().Offset()), int(s.End().Offset())
	}
	in, targets, more := w.redirs(s.Redirs, in)
	out := w.command(s.Cmd, in, piped, s.Background)
	if targets != nil {
		if out.kind == known && out.text == "" {
			w.emptied(targets)
		}
		for _, t := range targets {
			w.wrote(t, out, false)
		}
		for _, t := range more {
			w.wrote(t, out, true)
		}
		return stream{kind: known}
	}
	return out
}

func (w *walker) command(c syntax.Command, in stream, piped, bg bool) stream {
	switch c := c.(type) {
	case nil:
		return stream{kind: known}
	case *syntax.CallExpr:
		return w.callExpr(c, in, piped, bg)
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			out := w.stmt(c.X, in, true)
			if out.kind == none {
				out = stream{kind: unknown}
			}
			return w.stmt(c.Y, out, piped)
		}
		a := w.stmt(c.X, in, piped)
		w.branch++
		b := w.stmt(c.Y, in, piped)
		w.branch--
		if a.kind == unknown || b.kind == unknown || c.Op == syntax.OrStmt {
			return stream{kind: unknown}
		}
		return stream{kind: known, text: a.text + b.text}
	case *syntax.Subshell:
		cwd := w.cwd
		out := w.stmts(c.Stmts, in)
		w.cwd = cwd
		return out
	case *syntax.Block:
		return w.stmts(c.Stmts, in)
	case *syntax.IfClause:
		w.branch++
		for i := c; i != nil; i = i.Else {
			w.stmts(i.Cond, in)
			w.stmts(i.Then, in)
		}
		w.branch--
	case *syntax.WhileClause:
		w.branch++
		w.stmts(c.Cond, in)
		w.stmts(c.Do, in)
		w.branch--
	case *syntax.ForClause:
		w.forLoop(c, in)
	case *syntax.CaseClause:
		w.word(c.Word)
		w.branch++
		for _, it := range c.Items {
			for _, p := range it.Patterns {
				w.word(p)
			}
			w.stmts(it.Stmts, in)
		}
		w.branch--
	case *syntax.FuncDecl:
		if w.funcs == nil {
			w.funcs, w.active = map[string]*syntax.Stmt{}, map[string]int{}
		}
		names := c.Names
		if c.Name != nil {
			names = append(names, c.Name)
		}
		for _, n := range names {
			w.funcs[n.Value] = c.Body
		}
		return stream{kind: known}
	case *syntax.TimeClause:
		return w.stmt(c.Stmt, in, piped)
	case *syntax.CoprocClause:
		// coproc bash <<< x: what looks like a name is the program.
		if _, pipe := c.Stmt.Cmd.(*syntax.BinaryCmd); c.Name != nil && pipe {
			if from, to := int(c.Name.Pos().Offset()), int(c.End().Offset()); from < to && to <= len(w.src) {
				w.nested(w.src[from:to], in)
			}
			return stream{kind: unknown}
		}
		if inner, ok := c.Stmt.Cmd.(*syntax.CallExpr); c.Name != nil && (ok || c.Stmt.Cmd == nil) {
			words := []*syntax.Word{c.Name}
			if inner != nil {
				words = append(words, inner.Args...)
			}
			in, _, _ = w.redirs(c.Stmt.Redirs, in)
			w.exec(call{args: w.words(words), in: in, bg: true})
			return stream{kind: unknown}
		}
		return w.stmt(c.Stmt, in, piped)
	case *syntax.DeclClause:
		for _, a := range c.Args {
			w.assign(a)
			w.quoted(a)
		}
		w.note(ReadOnly, "builtin", "sets shell variables")
		return stream{kind: known}
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		w.hidden(c)
		w.note(ReadOnly, "builtin", "tests a condition")
		return stream{kind: known}
	default:
		w.note(Opaque, "syntax", "a form of command that is not understood")
	}
	return stream{kind: unknown}
}

func (w *walker) forLoop(c *syntax.ForClause, in stream) {
	w.branch++
	defer func() { w.branch-- }()
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.hidden(c.Loop)
		w.stmts(c.Do, in)
		return
	}
	items := w.words(it.Items)
	if len(items) == 0 || len(items) > 8 {
		w.set(it.Name.Value, word{s: "$" + it.Name.Value, dyn: true})
		w.stmts(c.Do, in)
		return
	}
	for _, v := range items {
		v.many = v.glob
		w.set(it.Name.Value, v)
		w.stmts(c.Do, in)
	}
}

func (w *walker) set(name string, v word) {
	if w.vars == nil {
		w.vars = map[string]word{}
	}
	w.vars[name] = v
}

// assign remembers NAME=value. In a branch the old value may stand as well, so
// nothing is known then unless both agree.
func (w *walker) assign(a *syntax.Assign) {
	if a.Name == nil {
		w.word(a.Value)
		return
	}
	if a.Index != nil {
		w.hidden(a.Index)
	}
	name := a.Name.Value
	var v word
	switch {
	case a.Naked:
		return
	case a.Array != nil:
		for _, e := range a.Array.Elems {
			w.word(e.Value)
		}
		v.dyn = true
	default:
		v = w.word(a.Value)
	}
	if a.Index != nil {
		v.dyn = true
	}
	if !a.Append && a.Index == nil && a.Array == nil && name != "IFS" && hijack(name+"="+v.s) {
		w.note(Opaque, "env.hijack", "changes what later commands run by "+name)
	}
	old, had := w.vars[name]
	if a.Append {
		v = word{s: old.s + v.s, dyn: v.dyn || old.dyn || !had}
	}
	if w.branch > 0 && had && old.s != v.s {
		v.dyn = true
	}
	w.set(name, v)
}

// hidden walks the commands that stand inside arithmetic, tests and expansions.
func (w *walker) hidden(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if n == nil || !w.step() {
			return false
		}
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.subst(n.Stmts)
			return false
		case *syntax.ProcSubst:
			w.subst(n.Stmts)
			return false
		case *syntax.SglQuoted:
			w.evaluated(n.Value)
		}
		return true
	})
}

// subst walks a command substitution; its output is known when every part of it is.
func (w *walker) subst(ss []*syntax.Stmt) (string, bool) {
	cwd := w.cwd
	w.quiet++
	out := w.stmts(ss, stream{})
	w.quiet--
	w.cwd = cwd
	return out.text, out.kind == known && len(ss) > 0
}

func (w *walker) callExpr(c *syntax.CallExpr, in stream, piped, bg bool) stream {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.assign(a)
		}
		w.note(ReadOnly, "builtin", "sets shell variables")
		return stream{kind: known}
	}
	var env []string
	for _, a := range c.Assigns {
		v := w.word(a.Value)
		if a.Name != nil {
			env = append(env, a.Name.Value+"="+v.s)
		}
	}
	return w.exec(call{args: w.words(c.Args), env: env, in: in, piped: piped, bg: bg})
}

// output is what a few builtins print, when that is certain.
func output(argv []word, in stream) stream {
	for _, a := range argv {
		if a.dyn || a.glob {
			return stream{kind: unknown}
		}
	}
	switch base(argv[0].s) {
	case "echo":
		args, esc, nl := argv[1:], false, "\n"
		for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' && strings.Trim(args[0].s[1:], "neE") == "" {
			esc = esc || strings.IndexByte(args[0].s, 'e') > 0
			if strings.IndexByte(args[0].s, 'n') > 0 {
				nl = ""
			}
			args = args[1:]
		}
		s := joinWords(args)
		if esc {
			s = ansiC(s)
		}
		return stream{kind: known, text: s + nl}
	case "printf":
		args := argv[1:]
		if len(args) > 0 && args[0].s == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			return stream{kind: known}
		}
		return stream{kind: known, text: printf(args[0].s, args[1:])}
	case "true", ":", "cd", "export":
		return stream{kind: known}
	case "cat", "tee":
		if len(argv) == 2 && argv[1].s == "/dev/null" && base(argv[0].s) == "cat" {
			return stream{kind: known}
		}
		if in.kind == known && (len(argv) == 1 || argv[1].s == "-" || base(argv[0].s) == "tee") {
			return in
		}
	case "rev":
		if in.kind == known && len(argv) == 1 {
			return stream{kind: known, text: reverseLines(in.text)}
		}
	case "base64":
		if in.kind == known && len(argv) == 2 && (argv[1].s == "-d" || argv[1].s == "-D" || argv[1].s == "--decode") {
			if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.text), "")); err == nil {
				return stream{kind: known, text: string(b)}
			}
		}
	case "xxd":
		if in.kind == known && len(argv) >= 2 && strings.Contains(argv[1].s, "r") {
			if b, err := hex.DecodeString(strings.Join(strings.Fields(in.text), "")); err == nil {
				return stream{kind: known, text: string(b)}
			}
		}
	}
	return stream{kind: unknown}
}

func joinWords(ws []word) string {
	ss := make([]string, len(ws))
	for i := range ws {
		ss[i] = ws[i].s
	}
	return strings.Join(ss, " ")
}

func reverseLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		r := []rune(l)
		for a, b := 0, len(r)-1; a < b; a, b = a+1, b-1 {
			r[a], r[b] = r[b], r[a]
		}
		lines[i] = string(r)
	}
	return strings.Join(lines, "\n")
}

// printf formats %s, %b, %d, %c and the escapes, reusing the format as long as
// there are arguments.
func printf(format string, args []word) string {
	var b strings.Builder
	for {
		used := false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 >= len(format) {
				j := strings.IndexByte(format[i+1:], '%')
				if j < 0 {
					j = len(format) - i - 1
				}
				b.WriteString(ansiC(format[i : i+1+j])) // an escaped % is no directive
				i += j
				continue
			}
			i++
			for i < len(format)-1 && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
				i++
			}
			if format[i] == '%' {
				b.WriteByte('%')
				continue
			}
			if len(args) > 0 {
				s := args[0].s
				if format[i] == 'b' {
					s = ansiC(s)
				}
				if format[i] == 'c' && s != "" {
					s = s[:1]
				}
				b.WriteString(s)
				args, used = args[1:], true
			}
		}
		if !used || len(args) == 0 || b.Len() > maxText {
			return b.String()
		}
	}
}
