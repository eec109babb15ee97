package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is one argument as far as it is known without running anything.
type word struct {
	s    string
	dyn  bool // part of it is known only when it runs; s holds that part as spelled
	glob bool // an unquoted *, ? or [ stands in it
	// many: a loop puts one match of the pattern after the other in its place.
	many bool
	// sub is what a process substitution that is the whole word prints, when known.
	sub *string
}

// words resolves the words of a command: quotes and escapes go, variables with
// a known value are put in, braces are expanded.
func (w *walker) words(ws []*syntax.Word) []word {
	out := make([]word, 0, len(ws))
	for _, x := range ws {
		if len(out) >= maxCommands || !w.step() {
			break
		}
		if strings.IndexByte(braceHint(x), '{') >= 0 {
			if syntax.SplitBraces(x) {
				for _, y := range expandBraces(x, 64) {
					if emptyWord(y) {
						continue // {a,,b} gives two words
					}
					out = append(out, w.split(y)...)
				}
				continue
			}
		}
		if w.args != nil && allArgs(x) {
			out = append(out, w.args...)
			continue
		}
		if v := w.raw(x); strings.IndexByte(v.s, 0) < 0 {
			out = append(out, v)
		} else {
			out = append(out, atMarks(v)...)
		}
	}
	return out
}

// emptyWord reports a word of which nothing is left, not even quotes.
func emptyWord(x *syntax.Word) bool {
	for _, p := range x.Parts {
		if l, ok := p.(*syntax.Lit); !ok || l.Value != "" {
			return false
		}
	}
	return true
}

// allArgs reports a word that is "$@", or $@ or $* without quotes.
func allArgs(x *syntax.Word) bool {
	if len(x.Parts) != 1 {
		return false
	}
	p, quoted := x.Parts[0], false
	if q, ok := p.(*syntax.DblQuoted); ok {
		if len(q.Parts) != 1 {
			return false
		}
		p, quoted = q.Parts[0], true
	}
	e, ok := p.(*syntax.ParamExp)
	return ok && e.Param != nil && (e.Param.Value == "@" || e.Param.Value == "*" && !quoted) && e.Exp == nil && !e.Length && !e.Excl && e.Index == nil && e.Slice == nil && e.Repl == nil
}

// fieldMark stands for white space that came out of an unquoted expansion,
// where the shell splits. A text that holds a NUL byte is never parsed.
const fieldMark = "\x00"

var toMark = strings.NewReplacer(" ", fieldMark, "\t", fieldMark, "\n", fieldMark)

// split resolves one word; an unquoted expansion with white space in it gives
// several, as it does in the shell.
func (w *walker) split(x *syntax.Word) []word {
	return atMarks(w.raw(x))
}

// atMarks cuts a word where the shell splits it.
func atMarks(v word) []word {
	if strings.IndexByte(v.s, 0) < 0 {
		return []word{v}
	}
	var out []word
	for f := range strings.SplitSeq(v.s, fieldMark) {
		if f != "" {
			out = append(out, word{s: f, dyn: v.dyn, glob: v.glob})
		}
	}
	return out
}

func braceHint(x *syntax.Word) string {
	for _, p := range x.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return l.Value
		}
	}
	return ""
}

// expandBraces gives every word that a brace expression stands for, at most limit.
func expandBraces(x *syntax.Word, limit int) []*syntax.Word {
	outs := [][]syntax.WordPart{nil}
	for _, p := range x.Parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok || b.Sequence {
			for i := range outs {
				outs[i] = append(outs[i], p)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, o := range outs {
			for _, el := range b.Elems {
				for _, alt := range expandBraces(el, limit) {
					if len(next) >= limit {
						break
					}
					next = append(next, append(append([]syntax.WordPart(nil), o...), alt.Parts...))
				}
			}
		}
		outs = next
	}
	ws := make([]*syntax.Word, len(outs))
	for i, o := range outs {
		ws[i] = &syntax.Word{Parts: o}
	}
	return ws
}

// word resolves a word where the shell does not split.
func (w *walker) word(x *syntax.Word) word {
	v := w.raw(x)
	if strings.IndexByte(v.s, 0) >= 0 {
		v.s = strings.ReplaceAll(v.s, fieldMark, " ")
	}
	return v
}

func (w *walker) raw(x *syntax.Word) word {
	if x == nil {
		return word{}
	}
	if len(x.Parts) == 1 { // the common case, without a builder
		switch p := x.Parts[0].(type) {
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '\\') < 0 {
				return word{s: p.Value, glob: strings.ContainsAny(p.Value, "*?[")}
			}
		case *syntax.SglQuoted:
			if !p.Dollar {
				return word{s: p.Value}
			}
		}
	}
	var b strings.Builder
	var v word
	w.parts(&b, &v, x.Parts, false)
	v.s = b.String()
	if len(v.s) > maxText {
		v.s, v.dyn = v.s[:maxText], true
	}
	return v
}

func (w *walker) parts(b *strings.Builder, v *word, parts []syntax.WordPart, quoted bool) {
	for _, p := range parts {
		if !w.step() {
			v.dyn = true
			return
		}
		switch p := p.(type) {
		case *syntax.Lit:
			if !quoted && strings.ContainsAny(p.Value, "*?[") {
				v.glob = true
			}
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(ansiC(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			w.parts(b, v, p.Parts, true)
		case *syntax.ParamExp:
			if p.Exp != nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.NestedParam != nil {
				w.hidden(p)
				w.prompted(p)
			}
			if s, ok := w.param(p); ok {
				v.glob = v.glob || w.vars[p.Param.Value].many
				if !quoted {
					v.glob = v.glob || strings.ContainsAny(s, "*?[")
					s = toMark.Replace(s)
				}
				b.WriteString(s)
			} else {
				v.dyn = true
				b.WriteString(w.spelled(p))
			}
		case *syntax.CmdSubst:
			out, ok := w.subst(p.Stmts)
			if ok {
				if out = strings.ReplaceAll(strings.TrimRight(out, "\n"), fieldMark, ""); !quoted {
					out = toMark.Replace(out)
				}
				b.WriteString(out)
			} else {
				v.dyn = true
				b.WriteString("$(…)")
			}
		case *syntax.ProcSubst:
			out, ok := w.subst(p.Stmts)
			if ok && len(parts) == 1 && p.Op == syntax.CmdIn {
				v.sub = &out
			}
			v.dyn = true
			b.WriteString("<(…)")
		case *syntax.ArithmExp:
			w.hidden(p)
			v.dyn = true
			b.WriteString("$((…))")
		case *syntax.ExtGlob:
			v.glob = true
			b.WriteString(p.Op.String() + p.Pattern.Value + ")")
		case *syntax.BraceExp: // a sequence {1..9}: which numbers does not matter
			v.glob = true
			b.WriteString("{…}")
		default:
			v.dyn = true
		}
	}
}

// param is the value of a parameter that this text itself has set.
func (w *walker) param(p *syntax.ParamExp) (string, bool) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		return "", false
	}
	v, ok := w.vars[p.Param.Value]
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if !ok && p.Param.Value == "IFS" {
				return " ", true
			}
			if ok && !v.dyn {
				return v.s, true
			}
		}
		return "", false
	}
	if !ok && p.Param.Value == "IFS" {
		return " ", true
	}
	return v.s, ok && !v.dyn
}

// spelled is the parameter as the text has it.
func (w *walker) spelled(p *syntax.ParamExp) string {
	from, to := int(p.Pos().Offset()), int(p.End().Offset())
	if from >= 0 && to <= len(w.src) && from < to {
		return w.src[from:to]
	}
	if p.Param != nil {
		return "$" + p.Param.Value
	}
	return "$…"
}

func unescape(s string, quoted bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			c := s[i+1]
			switch {
			case c == '\n':
				i++
				continue
			case !quoted || c == '$' || c == '`' || c == '"' || c == '\\':
				b = append(b, c)
				i++
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// ansiC decodes $'…' and what echo -e and printf know.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'a':
			b = append(b, 7)
		case 'b':
			b = append(b, 8)
		case 'e', 'E':
			b = append(b, 27)
		case 'f':
			b = append(b, 12)
		case 'v':
			b = append(b, 11)
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			j := i + 1
			for j < len(s) && j-i-1 < n && isHex(s[j]) {
				j++
			}
			if r, err := strconv.ParseUint(s[i+1:j], 16, 32); err == nil {
				if c == 'x' {
					b = append(b, byte(r))
				} else {
					b = utf8.AppendRune(b, rune(r))
				}
				i = j - 1
			} else {
				b = append(b, '\\', c)
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			j := i
			for j < len(s) && j-i < 4 && s[j] >= '0' && s[j] <= '7' {
				j++
			}
			if j-i > 3 && c != '0' {
				j = i + 3
			}
			n, _ := strconv.ParseUint(s[i:j], 8, 16)
			b = append(b, byte(n))
			i = j - 1
		default:
			if strings.IndexByte(`\'"?`, c) < 0 {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// base is the program's name without directory, .exe and version digits of
// well-known interpreters.
func base(s string) string {
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 4 && strings.EqualFold(s[len(s)-4:], ".exe") {
		s = s[:len(s)-4]
	}
	if s == "" || s[len(s)-1] != '.' && (s[len(s)-1] < '0' || s[len(s)-1] > '9') {
		return s
	}
	for _, p := range [...]string{"python", "pip", "perl", "ruby", "node", "php", "lua"} {
		if rest, ok := strings.CutPrefix(s, p); ok && rest != "" && strings.Trim(rest, "0123456789.") == "" {
			return p
		}
	}
	return s
}
