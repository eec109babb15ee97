package sensors

import (
	"context"
	"sync"
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
