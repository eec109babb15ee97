package shell

import "strings"

// plainBytes are the bytes of which words can be made that every shell takes as they
// stand: no quote, expansion, pattern, redirection or separator is among them.
var plainBytes = func() (m [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+=") {
		m[c] = true
	}
	return m
}()

// grammar are first words that a parser reads in a way of their own.
var grammar = set("if then else elif fi for while until do done case esac in select function time coproc declare typeset local export readonly nameref let foreach repeat nocorrect noglob end always")

// plainCommand is one command of a plain text: its words from first to last of all of
// them, and the operator before it, 0 for none, | for a pipe, & for && and o for ||.
type plainCommand struct {
	first, last int
	from, to    int // bytes
	after       byte
}

const (
	maxPlainCommands = 8
	maxPlainWords    = 64
)

// plainText cuts a text into commands without a parser: plain and quoted words, with
// | && || and ; between the commands. Most of what agents run is no more. It declines
// whatever it is not sure of.
func plainText(src string, list *[maxPlainCommands]plainCommand) (words []word, n int, ok bool) {
	i := 0
	cur := plainCommand{}
	end := func() bool {
		if len(words) == cur.first || n == maxPlainCommands {
			return false
		}
		cur.last = len(words)
		list[n] = cur
		n++
		return true
	}
	for i < len(src) {
		c := src[i]
		switch {
		case c == ' ':
			i++
			continue
		case c == '|' || c == '&' || c == ';':
			double := i+1 < len(src) && src[i+1] == c
			op := c
			switch {
			case c == '|' && double:
				op = 'o'
			case c == '&' && !double, c == ';' && double:
				return nil, 0, false
			case c == '|' && i+1 < len(src) && src[i+1] == '&':
				return nil, 0, false
			}
			if !end() {
				return nil, 0, false
			}
			if last := &list[n-1]; c == ';' && (last.after == 0 || last.after == ';') {
				last.to = i + 1 // the ; belongs to a statement of one command
			}
			cur = plainCommand{first: len(words), after: op}
			if i++; double {
				i++
			}
			continue
		}
		v, j, ok := plainWord(src, i)
		if !ok || len(words) == maxPlainWords {
			return nil, 0, false
		}
		if len(words) == cur.first {
			if grammar[v] || j-i != len(v) || strings.IndexByte(v, '=') >= 0 {
				return nil, 0, false
			}
			cur.from = i
		}
		if words == nil {
			words = make([]word, 0, min(strings.Count(src, " ")+1, maxPlainWords))
		}
		words, cur.to = append(words, word{s: v}), j
		i = j
	}
	if len(words) == cur.first && cur.after == ';' { // the last ; ends the text
		return words, n, n > 0
	}
	return words, n, end()
}

// plainWord is the word that begins at i, and where it ends.
func plainWord(src string, i int) (string, int, bool) {
	j := i
	for j < len(src) && plainBytes[src[j]] {
		j++
	}
	if j == len(src) || strings.IndexByte(" |&;", src[j]) >= 0 {
		return src[i:j], j, j > i
	}
	if src[j] != '\'' && src[j] != '"' {
		return "", 0, false
	}
	if j == i { // quoted as a whole, as nearly always
		k := strings.IndexByte(src[i+1:], src[j])
		if k < 0 {
			return "", 0, false
		}
		if k += i + 1; k+1 == len(src) || strings.IndexByte(" |&;", src[k+1]) >= 0 {
			v := src[i+1 : k]
			return v, k + 1, src[j] == '\'' || !strings.ContainsAny(v, "$`\\")
		}
	}
	return "", 0, false
}

// plain reads a text of plain commands as the walk over its tree would.
func (w *walker) plain(words []word, list []plainCommand) {
	in := stream{}
	for k := range list {
		c := &list[k]
		if !w.step() {
			return
		}
		if w.quiet == 0 && w.depth == 0 {
			w.start, w.end = c.from, c.to
		}
		piped := k+1 < len(list) && list[k+1].after == '|'
		if c.after != '|' {
			in = stream{}
		}
		branch := w.branch
		// What stands behind && or || may not run, its whole pipeline.
		for b := k; b >= 0; b-- {
			if list[b].after == '|' {
				continue
			}
			if list[b].after == '&' || list[b].after == 'o' {
				w.branch++
			}
			break
		}
		in = w.exec(call{args: words[c.first:c.last:c.last], in: in, piped: piped})
		w.branch = branch
		if in.kind == none {
			in.kind = unknown
		}
	}
}
