package sensors

import (
	"context"
	"errors"

	"gettier.dev/gettierd/config/watch"
)

// Watch takes edits of registry files and of the lock as they settle, until ctx
// ends. A reader of the registry never waits for it.
func (r *Registry) Watch(ctx context.Context) error {
	w := watch.New(watch.Options{MaxBytes: maxLockBytes})
	w.Set(r.paths()...)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.changed:
				w.Set(r.paths()...)
			}
		}
	}()
	err := w.Run(ctx, r.settled)
	cancel()
	<-done
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// paths lists what Watch follows.
func (r *Registry) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []string{lockPath(r.o.StateDir)}
	for _, s := range r.sources {
		out = append(out, s.path)
	}
	return out
}

// settled takes one settled content.
func (r *Registry) settled(c watch.Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Path == lockPath(r.o.StateDir) {
		events := r.readLock()
		r.publish()
		r.record(events)
		return
	}
	for _, s := range r.sources {
		if s.path != c.Path || !r.take(s, c.Exists, c.Data, c.Err) {
			continue
		}
		events := r.news(s)
		r.publish()
		r.record(events)
	}
}
