package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/rate"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/wire"
)

// limits counts the requests of a minute, by caller.
type limits struct {
	mu sync.Mutex
	by map[string]*limit // by key's id, "" for callers without one
}

type limit struct {
	most int
	*rate.Limiter
}

// of is the counter of a key, or of callers without one. A changed limit begins anew.
func (l *limits) of(key string, most int) *limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]*limit{}
	}
	c := l.by[key]
	if c == nil || c.most != most {
		c = &limit{most, rate.New(action.RateLimit{Actions: most, Seconds: 60, Actors: maxClients})}
		l.by[key] = c
	}
	return c
}

// tooMany says why a request is not served, and when there may be another.
type tooMany struct {
	what string
	wait time.Duration
}

func (e *tooMany) Error() string { return "gettierd: " + e.what }

// seconds for Retry-After, rounded up (RFC 9110, 10.2.3).
func (e *tooMany) seconds() int64 { return int64((max(e.wait, 1) + time.Second - 1) / time.Second) }

// spend counts a request of a caller, who is its key, or else a process with the
// command that it is part of. Nil lets it through.
func (s *Server) spend(c caller, leader peer.Process, most int) *tooMany {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	key, actor, why := "", c.proc.String(), "one program (proxy.limit)"
	switch {
	case c.key != nil:
		key, actor, most, why = c.key.ID, "", c.key.PerMinute, "this key"
	case leader.PID != 0:
		actor = leader.String()
	}
	if most > 0 {
		l := s.limits.of(key, most)
		if r := l.Take(actor, now); r.Throttled || r.Full {
			return &tooMany{fmt.Sprintf("%d requests a minute are all that is taken from %s", most, why), l.Ready(actor, now)}
		}
	}
	if c.key != nil {
		if wait := s.Keys.Spend(*c.key, now); wait > 0 {
			return &tooMany{fmt.Sprintf("%d requests a day are all that is taken from this key; the next day begins at 00:00 UTC", c.key.PerDay), wait}
		}
	}
	return nil
}

// refuseTooMany answers 429. A client that would wait for longer than programs
// do is told not to try again.
func (s *Server) refuseTooMany(w http.ResponseWriter, a wire.Adapter, e *tooMany) {
	w.Header().Set("Retry-After", strconv.FormatInt(e.seconds(), 10))
	if e.wait <= time.Minute {
		w.Header().Set("X-Should-Retry", "true")
	}
	s.errorIn(w, a, http.StatusTooManyRequests, "rate_limit_error", e.Error())
}
