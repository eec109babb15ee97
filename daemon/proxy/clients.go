package proxy

import (
	"sync"

	"gettier.dev/gettierd/daemon/peer"
)

// maxClients bounds the processes remembered; the oldest go first.
const maxClients = 4096

// clients remembers the processes that have talked to the proxy: what they or
// their children call is never a person's word (13.3).
type clients struct {
	mu    sync.Mutex
	start map[int]uint64 // by pid
	order []int
}

func (c *clients) add(p peer.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start == nil {
		c.start = map[int]uint64{}
	}
	old, known := c.start[p.PID]
	if known && old == p.Start {
		return
	}
	c.start[p.PID] = p.Start
	if !known {
		c.order = append(c.order, p.PID)
	}
	if len(c.order) > maxClients {
		delete(c.start, c.order[0])
		c.order = c.order[1:]
	}
}

// IsClient reports whether p has talked to the proxy.
func (s *Server) IsClient(p peer.Process) bool {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	start, ok := s.clients.start[p.PID]
	return ok && start == p.Start
}
