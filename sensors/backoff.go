package sensors

import (
	"fmt"
	"sync"
	"time"
)

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
