package proxy

import (
	"sync"

	"gettier.dev/gettierd/daemon/peer"
)

// maxClients bounds the processes remembered; the oldest go first.
const maxClients = 4096

// clients remembers the processes that have talked to the proxy: what they or
// their children call is never a person's word (13.3). With each goes the command
// in a terminal that it is part of: an agent may leave the network to a worker.
type clients struct {
	mu    sync.Mutex
	known map[int]client // by pid
	order []int
}

type client struct {
	start  uint64
	leader peer.Process // zero when there is none
}

// find returns what is remembered of p.
func (c *clients) find(p peer.Process) (client, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.known[p.PID]
	return k, ok && k.start == p.Start
}

func (c *clients) add(p, leader peer.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[int]client{}
	}
	if _, again := c.known[p.PID]; !again {
		c.order = append(c.order, p.PID)
	}
	c.known[p.PID] = client{start: p.Start, leader: leader}
	if len(c.order) > maxClients {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}

// Remember takes p for a client, and returns the command that it is part of.
func (s *Server) Remember(p peer.Process) peer.Process {
	if k, ok := s.clients.find(p); ok {
		return k.leader
	}
	leader, ok := peer.Leader(p)
	if ok {
		s.clients.add(leader, peer.Process{})
	}
	s.clients.add(p, leader)
	return leader
}

// IsClient reports whether p has talked to the proxy, or a part of it has.
func (s *Server) IsClient(p peer.Process) bool {
	_, ok := s.clients.find(p)
	return ok
}
