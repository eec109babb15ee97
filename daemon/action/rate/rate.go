// Package rate counts what each actor asks for within a sliding window. It only
// counts: what follows is decided in package action. It reads no clock; time
// comes in by parameter.
package rate

import (
	"container/list"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/action"
)

// Limiter counts actions by actor. It is safe for concurrent use.
type Limiter struct {
	most   int           // actions that a window takes
	window time.Duration // length of the window
	actors int           // actors that are counted at once

	mu     sync.Mutex
	byName map[string]*list.Element
	recent *list.List // of *seen, most recently used first
}

type seen struct {
	actor string
	times []time.Time // of counted actions, oldest first, at most most
}

// New makes a limiter by the limits of a policy.
func New(l action.RateLimit) *Limiter {
	return &Limiter{most: max(l.Actions, 1), window: time.Duration(max(l.Seconds, 1)) * time.Second, actors: max(l.Actors, 1), byName: map[string]*list.Element{}, recent: list.New()}
}

// Take counts one action of an actor at a time and says what the window holds. An
// action beyond the limit is not counted, so that asking on does not prolong the
// wait. An actor at its limit is never forgotten to make room (B27): when no other
// can be, a new one is refused.
func (l *Limiter) Take(actor string, now time.Time) action.Rate {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byName[actor]
	if !ok {
		if l.recent.Len() >= l.actors && !l.evict(now) {
			return action.Rate{Full: true}
		}
		e = l.recent.PushFront(&seen{actor: actor})
		l.byName[actor] = e
	}
	l.recent.MoveToFront(e)
	s := e.Value.(*seen)
	l.expire(s, now)
	if len(s.times) >= l.most {
		return action.Rate{Seen: len(s.times) + 1, Throttled: true}
	}
	s.times = append(s.times, now)
	return action.Rate{Seen: len(s.times)}
}

// Ready is how long an actor that is at its limit has to wait, 0 for others.
func (l *Limiter) Ready(actor string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byName[actor]
	if !ok {
		return 0
	}
	s := e.Value.(*seen)
	if l.expire(s, now); len(s.times) < l.most {
		return 0
	}
	return l.window - max(now.Sub(s.times[0]), 0)
}

// expire drops what has left the window. A clock that went back keeps everything.
func (l *Limiter) expire(s *seen, now time.Time) {
	n := 0
	for n < len(s.times) && now.Sub(s.times[n]) >= l.window {
		n++
	}
	s.times = append(s.times[:0], s.times[n:]...)
}

// evict forgets the actor that has asked least recently and is not at its limit.
func (l *Limiter) evict(now time.Time) bool {
	for e := l.recent.Back(); e != nil; e = e.Prev() {
		s := e.Value.(*seen)
		if l.expire(s, now); len(s.times) < l.most {
			l.recent.Remove(e)
			delete(l.byName, s.actor)
			return true
		}
	}
	return false
}
