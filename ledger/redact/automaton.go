package redact

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
// keywords end there. Bytes that occur in no keyword share class 0.
type automaton struct {
	class [256]uint8
	width int
	next  []uint16 // state*width + class → state | accept
	out   [][]hitword
}

type hitword struct {
	length int
	do     trigger
}

const accept = 0x8000

func build(words []keyword) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		for i := range len(w.text) {
			c := w.text[i]
			if a.class[c] == 0 {
				a.class[c] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	goTo := [][]int32{make([]int32, a.width)}
	a.out = [][]hitword{nil}
	for _, w := range words {
		s := int32(0)
		for i := range len(w.text) {
			c := a.class[w.text[i]]
			if goTo[s][c] == 0 {
				goTo = append(goTo, make([]int32, a.width))
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
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
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
	a.next = make([]uint16, len(goTo)*a.width)
	for s := range goTo {
		for c, t := range goTo[s] {
			v := uint16(t)
			if len(a.out[t]) > 0 {
				v |= accept
			}
			a.next[s*a.width+c] = v
		}
	}
	return a
}

// run calls on for each state that ends keywords, with the offset after them.
func (a *automaton) run(text []byte, on func(end int, words []hitword)) {
	state, width := uint(0), uint(a.width)
	for i, b := range text {
		v := a.next[state*width+uint(a.class[b])]
		state = uint(v &^ accept)
		if v&accept != 0 {
			on(i+1, a.out[state])
		}
	}
}
