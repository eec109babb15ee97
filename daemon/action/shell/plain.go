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
var grammar = set("if then else elif fi for while until do done case esac in select function time coproc declare typeset local export readonly nameref let eval_ foreach repeat nocorrect noglob end always")

// plainWords cuts a text that is nothing but words into them, without a parser: most
// of what agents run is no more. from and to are where the words begin and end. It
// declines whatever it is not sure of.
func plainWords(src string) (words []word, from, to int, ok bool) {
	n := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == ' ':
		case !plainBytes[c]:
			return nil, 0, 0, false
		case i == 0 || src[i-1] == ' ':
			n++
		}
	}
	if n == 0 || n > 64 {
		return nil, 0, 0, false
	}
	words = make([]word, 0, n)
	for i := 0; i < len(src); {
		if src[i] == ' ' {
			i++
			continue
		}
		j := i
		for j < len(src) && src[j] != ' ' {
			j++
		}
		if len(words) == 0 {
			if first := src[i:j]; grammar[first] || strings.IndexByte(first, '=') >= 0 {
				return nil, 0, 0, false
			}
			from = i
		}
		words, to = append(words, word{s: src[i:j]}), j
		i = j
	}
	return words, from, to, true
}
