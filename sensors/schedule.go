package sensors

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gate is a first-come, first-served semaphore. A sensor without effects takes
// one of its places, one that mutates takes all, so that it runs alone in both
// directions and is never overtaken by those that came later.
type gate struct {
	mu    sync.Mutex
	width int
	used  int
	queue []*ticket
}

type ticket struct {
	need  int
	ready chan struct{} // closed when the places are taken
}

// enter takes a place in the queue at once; the order of calls is the order of
// service.
func (g *gate) enter(alone bool) *ticket {
	t := &ticket{need: 1, ready: make(chan struct{})}
	if alone {
		t.need = g.width
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, t)
	g.serve()
	return t
}

func (g *gate) serve() {
	for len(g.queue) > 0 && g.used+g.queue[0].need <= g.width {
		t := g.queue[0]
		g.queue = g.queue[1:]
		g.used += t.need
		close(t.ready)
	}
}

// wait returns when it is the ticket's turn, or gives the place up.
func (g *gate) wait(ctx context.Context, t *ticket) error {
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.ready: // both at once: the places are ours and go back
		g.used -= t.need
	default:
		for i, q := range g.queue {
			if q == t {
				g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
				break
			}
		}
	}
	g.serve()
	return ctx.Err()
}

func (g *gate) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= t.need
	g.serve()
}

// flights shares one run among those who ask for the same at the same time.
type flights struct {
	mu   sync.Mutex
	open map[string]*flight
}

type flight struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	reading Reading
}

// do runs fn once for all concurrent callers of key. The run ends early only
// when every one of them has gone. ok is false when ctx ended first.
func (f *flights) do(ctx context.Context, key string, fn func(context.Context) Reading) (r Reading, ok bool) {
	f.mu.Lock()
	fl := f.open[key]
	if fl == nil {
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		if f.open == nil {
			f.open = map[string]*flight{}
		}
		f.open[key] = fl
		go func() {
			defer cancel()
			fl.reading = fn(run)
			f.mu.Lock()
			if f.open[key] == fl {
				delete(f.open, key)
			}
			f.mu.Unlock()
			close(fl.done)
		}()
	}
	fl.waiting++
	f.mu.Unlock()
	select {
	case <-fl.done:
		return fl.reading, true
	case <-ctx.Done():
	}
	f.mu.Lock()
	last := false
	if fl.waiting--; fl.waiting == 0 {
		last = true
		fl.cancel()
		if f.open[key] == fl {
			delete(f.open, key) // who comes now wants a run that is not being stopped
		}
	}
	f.mu.Unlock()
	if last { // the goroutine has an owner to the end
		<-fl.done
		return fl.reading, true
	}
	return Reading{}, false
}

// After failuresInRow runs that could not measure, the same run is not tried
// again for backOffFor. It goes on counting as "could not run", for the reason
// it had: back-off saves time and changes no decision.
const (
	failuresInRow = 3
	backOffFor    = time.Minute
)

// backoff counts failures in a row by what identifies a run: definition, place,
// arguments and environment. An edit or another argument starts afresh.
type backoff struct {
	mu   sync.Mutex
	runs map[string]*failures
}

type failures struct {
	n              int
	reason, detail string
	until          time.Time
}

// maxBackoffs bounds the table; what is dropped is only tried once more.
const maxBackoffs = 1000

func (b *backoff) off(key string, now time.Time) (reason, detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.runs[key]
	if f == nil || !now.Before(f.until) {
		return "", ""
	}
	return f.reason, fmt.Sprintf("backed off after %d failures, tried again in %v: %s", f.n, f.until.Sub(now).Round(time.Second), f.detail)
}

// count takes one outcome; now is true when it is the one that backs off.
func (b *backoff) count(key, reason, detail string, at time.Time) (until time.Time, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reason == "" {
		delete(b.runs, key)
		return time.Time{}, false
	}
	if b.runs == nil || len(b.runs) >= maxBackoffs {
		b.runs = map[string]*failures{}
	}
	f := b.runs[key]
	if f == nil {
		f = &failures{}
		b.runs[key] = f
	}
	f.n++
	f.reason, f.detail = reason, detail
	if f.n < failuresInRow {
		return time.Time{}, false
	}
	f.until = at.Add(backOffFor)
	return f.until, true
}
