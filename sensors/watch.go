package sensors

import (
	"context"
	"time"
)

// poll is how often files are looked at when nothing tells of a change.
const poll = 5 * time.Second

// Watch reloads whenever a registry file or the lock has new content, until ctx
// ends.
func (r *Registry) Watch(ctx context.Context) error {
	t := time.NewTicker(poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		case <-t.C:
		}
		r.Reload(ctx)
	}
}
