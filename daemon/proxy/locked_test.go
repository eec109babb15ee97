package proxy

import (
	"io"
	"sync"
)

// locked is a source of entropy for concurrent use.
type locked struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *locked) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(b)
}
