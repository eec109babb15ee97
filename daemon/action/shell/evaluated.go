package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evaluated looks at a text whose subscripts the shell evaluates although it
// stood in single quotes: let, declare, read, printf -v, test -v, [[ … -eq.
func (w *walker) evaluated(s string) {
	i := strings.IndexByte(s, '[')
	for i >= 0 && (i == 0 || !isWordByte(s[i-1])) { // [[ is no subscript
		j := strings.IndexByte(s[i+1:], '[')
		if j < 0 {
			return
		}
		i += j + 1
	}
	if i < 0 || !strings.Contains(s[i:], "$(") && strings.IndexByte(s[i:], '`') < 0 {
		return
	}
	w.note(Opaque, "subscript.eval", "a subscript that runs a command")
	w.quiet++
	w.text(": "+s[i:], w.depth+1)
	w.quiet--
}

// quoted looks for such texts below a node.
func (w *walker) quoted(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if n == nil || !w.step() {
			return false
		}
		if q, ok := n.(*syntax.SglQuoted); ok {
			w.evaluated(q.Value)
		}
		return true
	})
}

// prompted: ${x@P} expands what the variable holds once more, commands included.
func (w *walker) prompted(p *syntax.ParamExp) {
	if p.Exp == nil || p.Exp.Op != syntax.OtherParamOps || p.Exp.Word == nil || p.Exp.Word.Lit() != "P" {
		return
	}
	w.note(Opaque, "prompt.eval", "expands a text as a prompt, which runs commands in it")
	if v, ok := w.vars[p.Param.Value]; ok && !v.dyn {
		w.quiet++
		w.text(": "+v.s, w.depth+1)
		w.quiet--
	}
}

// carriers are programs that run command lines given in their arguments, in a
// language of their own around them.
var carriers = set("vi vim nvim ex view emacs expect gdb lldb ansible concurrently nodemon entr pueue tsp hyperfine")

// embedded reads the arguments of a carrier as the commands they hold: an
// over-reading, since only what destroys counts.
func (w *walker) embedded(c call) (ruling, bool) {
	inner := walker{steps: w.steps / 4, depth: w.depth + 1, cwd: w.cwd, quiet: 1}
	if inner.depth > maxDepth {
		return ruling{}, false
	}
	for _, a := range c.args[1:] {
		s := strings.TrimLeft(a.s, ":+ ")
		if i := strings.IndexByte(s, '!'); i >= 0 {
			s = s[i+1:]
		}
		s = strings.TrimPrefix(strings.TrimPrefix(s, "spawn "), "shell ")
		switch {
		case strings.Contains(s, "state=absent"), strings.Contains(s, "(delete-directory"), strings.Contains(s, "(delete-file"):
			return destroy("carrier", base(c.args[0].s)+" removes what it names"), true
		case strings.IndexByte(s, ' ') > 0:
			inner.text(s, inner.depth)
		}
	}
	w.steps -= w.steps/4 - max(inner.steps, 0)
	if !inner.effect.AtLeast(Destroy) {
		return ruling{}, false
	}
	r := ruling{effect: inner.effect, rule: inner.rule, why: inner.why}
	for _, p := range inner.paths {
		r.paths = append(r.paths, word{s: p})
	}
	return r, true
}
