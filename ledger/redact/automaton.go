package redact

import "slices"

// trigger is what a keyword's hit sets off: a token rule or a matcher.
type trigger struct {
	rule  int // index in tokenRules, or -1
	match func(s *scan, start, end int)
}

type keyword struct {
	text string // lower case
	do   trigger
}

// automaton is Aho and Corasick's (1975) machine over case-folded bytes, as one
// dense table: a step is one load, and the top bit of a state says that
// keywords end there. Bytes that occur in no keyword share class 0. States are
// kept as offsets of their rows and numbered breadth first, so that the shallow
// ones, in which nearly all time is spent, share cache lines.
type automaton struct {
	class [256]uint8
	shift uint // log2 of the row's length
	next  []uint32
	out   [][]hitword // by state number
	// Where a keyword may begin: a bit for each first byte's class, set for the
	// bytes that follow it. What three bytes in a row have no bit in common begins
	// none. The states below shallow are the root and those of a single byte.
	first, second, third [256]uint64
	shallow              uint32
}

type hitword struct {
	length int
	do     trigger
}

const accept = 1 << 31

func build(words []keyword) *automaton {
	a := new(automaton)
	width := 1
	for _, w := range words {
		for i := range len(w.text) {
			c := w.text[i]
			if a.class[c] == 0 {
				a.class[c] = uint8(width)
				width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	goTo := [][]int32{make([]int32, width)}
	a.out = [][]hitword{nil}
	for _, w := range words {
		s := int32(0)
		for i := range len(w.text) {
			c := a.class[w.text[i]]
			if goTo[s][c] == 0 {
				goTo = append(goTo, make([]int32, width))
				a.out = append(a.out, nil)
				goTo[s][c] = int32(len(goTo) - 1)
			}
			s = goTo[s][c]
		}
		a.out[s] = append(a.out[s], hitword{len(w.text), w.do})
	}
	// Breadth first: a state's failure state is shallower, thus done before it.
	fail := make([]int32, len(goTo))
	queue := []int32{0}
	var order []int32
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		order = append(order, s)
		for c, t := range goTo[s] {
			if t == 0 {
				if s != 0 {
					goTo[s][c] = goTo[fail[s]][c]
				}
				continue
			}
			if s != 0 {
				fail[t] = goTo[fail[s]][c]
			}
			a.out[t] = append(a.out[t], a.out[fail[t]]...)
			queue = append(queue, t)
		}
	}
	for 1<<a.shift < width {
		a.shift++
	}
	number := make([]uint32, len(goTo))
	for i, s := range order {
		number[s] = uint32(i)
	}
	a.next = make([]uint32, len(goTo)<<a.shift)
	out := make([][]hitword, len(goTo))
	for s := range goTo {
		out[number[s]] = a.out[s]
		for c, t := range goTo[s] {
			v := number[t] << a.shift
			if len(a.out[t]) > 0 {
				v |= accept
			}
			a.next[int(number[s])<<a.shift+c] = v
		}
	}
	a.out = out
	a.begins(words, len(goTo[0]))
	for _, s := range order {
		if s == 0 || slices.Contains(goTo[0], s) {
			a.shallow += 1 << a.shift
		}
	}
	return a
}

// begins fills the tables of first bytes.
func (a *automaton) begins(words []keyword, width int) {
	both := func(t *[256]uint64, c byte, bits uint64) {
		for b := range 256 {
			if a.class[b] == a.class[c] && (a.class[b] != 0) {
				t[b] |= bits
			}
		}
	}
	for _, w := range words {
		bit := uint64(1) << (uint(a.class[w.text[0]]) % 64)
		both(&a.first, w.text[0], bit)
		for i, t := range []*[256]uint64{&a.second, &a.third} {
			if len(w.text) > i+1 {
				both(t, w.text[i+1], bit)
				continue
			}
			for b := range t { // a short one: anything may follow
				t[b] |= bit
			}
		}
	}
}

// run calls on for each state that ends keywords, with the offset after them.
func (a *automaton) run(text []byte, on func(end int, words []hitword)) {
	next := a.next
	for i := 0; i < len(text); {
		// In the root nothing has begun: on to where a keyword may.
		for i+2 < len(text) && a.first[text[i]]&a.second[text[i+1]]&a.third[text[i+2]] == 0 {
			i++
		}
		// Until no more than a single byte of a keyword was read: from that one the
		// search above begins again.
		for state := uint32(0); ; {
			v := next[state+uint32(a.class[text[i]])]
			state = v &^ accept
			i++
			if v != state {
				on(i, a.out[state>>a.shift])
			}
			if i == len(text) {
				return
			}
			if state < a.shallow {
				if state != 0 && a.first[text[i-1]]&a.second[text[i]] != 0 {
					continue
				}
				break
			}
		}
	}
}
