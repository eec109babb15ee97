package extract

import (
	"errors"
	"regexp"
	"sync"
)

// maxPattern bounds an expression's source; compiled size follows from it.
const maxPattern = 4096

var errLong = errors.New("pattern is longer than 4096 bytes")

// Patterns keeps compiled expressions. A registry holds a few dozen and asks
// for each again on every reading; when edits fill it, it starts afresh.
type Patterns struct {
	mu  sync.RWMutex
	max int
	got map[string]compiled
}

type compiled struct {
	re  *regexp.Regexp
	err error
}

// NewPatterns holds up to n expressions.
func NewPatterns(n int) *Patterns { return &Patterns{max: n, got: map[string]compiled{}} }

// Compile returns the expression, compiled at most once while it is kept.
func (p *Patterns) Compile(expr string) (*regexp.Regexp, error) {
	p.mu.RLock()
	c, ok := p.got[expr]
	p.mu.RUnlock()
	if ok {
		return c.re, c.err
	}
	if len(expr) > maxPattern {
		return nil, errLong
	}
	c.re, c.err = regexp.Compile(expr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.got) >= p.max {
		p.got = make(map[string]compiled, p.max)
	}
	p.got[expr] = c
	return c.re, c.err
}
