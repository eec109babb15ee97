package tui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

const (
	// feedFrame is how long entries are gathered into one message. With the
	// renderer's own pace it keeps what others did under 100 ms.
	feedFrame = 33 * time.Millisecond
	// feedMost is how many entries wait for a model that does not keep up; then
	// the lists are read anew instead.
	feedMost = 20_000
	// retryFirst and retryMost are the pauses between looks for a daemon that is away.
	retryFirst = 250 * time.Millisecond
	retryMost  = time.Second
	callLimit  = 10 * time.Second
)

// linkUp: the daemon answers. Holds are as of entry AsOf; what comes after it
// follows in batches.
type linkUp struct {
	status ipc.Status
	holds  []lemma.Hold
	asOf   uint64
	fresh  bool // nothing that is shown counts any more
	note   safe // what a person should know of it
}

// linkDown: it does not. Said once for each reason.
type linkDown struct {
	err error
	at  time.Time
}

// batch is what landed on the chain since the last one, in order.
type batch struct {
	entries []ipc.Entry
	lost    bool // others before them were dropped
}

// feed follows the daemon and hands the model one message per frame, however
// much happens. It finds a daemon that went away and goes on where it stopped.
type feed struct {
	d   Daemon
	now func() time.Time
	out chan tea.Msg // the model takes one at a time

	mu    sync.Mutex
	queue []tea.Msg
	wake  chan struct{} // of one: more would say nothing new
}

func newFeed(d Daemon, now func() time.Time) *feed {
	return &feed{d: d, now: now, out: make(chan tea.Msg), wake: make(chan struct{}, 1)}
}

// run works until ctx ends.
func (f *feed) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { f.deliver(ctx) })
	f.follow(ctx)
	wg.Wait()
}

// deliver sends what is queued at once, and then no sooner than a frame later.
func (f *feed) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		f.mu.Lock()
		queue := f.queue
		f.queue = nil
		f.mu.Unlock()
		for _, msg := range queue {
			select {
			case <-ctx.Done():
				return
			case f.out <- msg:
			}
		}
		if !pause(ctx, feedFrame) {
			return
		}
	}
}

func (f *feed) put(msg tea.Msg) {
	f.mu.Lock()
	f.queue = append(f.queue, msg)
	f.mu.Unlock()
	f.poke()
}

func (f *feed) entry(e ipc.Entry) {
	f.mu.Lock()
	n := len(f.queue)
	var b *batch
	if n > 0 {
		b, _ = f.queue[n-1].(*batch)
	}
	if b == nil {
		b = &batch{}
		f.queue = append(f.queue, b)
	}
	if len(b.entries) >= feedMost {
		b.entries, b.lost = b.entries[:0], true
	}
	b.entries = append(b.entries, e)
	f.mu.Unlock()
	f.poke()
}

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// mark is where the feed stopped.
type mark struct {
	seq    uint64
	last   ipc.Entry // entry seq, when it was seen
	seen   bool
	origin string
}

func (f *feed) follow(ctx context.Context) {
	var (
		at   *mark
		said string
		wait = retryFirst
	)
	for ctx.Err() == nil {
		up, err := f.connect(ctx, at)
		if err == nil {
			said, wait = "", retryFirst
			if up.fresh {
				at = &mark{seq: up.asOf, origin: up.status.Chain.Origin}
			}
			f.put(up)
			err = f.watch(ctx, at)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errOtherLog) {
			at = nil
		}
		if s := err.Error(); s != said {
			said = s
			f.put(linkDown{err, f.now()})
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, retryMost)
	}
}

// errOtherLog: what comes is not what followed the entries that are shown.
var errOtherLog = errors.New("the log is not the one that was shown")

// connect looks at the daemon and its open holds, and decides whether events can
// go on where they stopped.
func (f *feed) connect(ctx context.Context, at *mark) (linkUp, error) {
	ctx, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	up := linkUp{fresh: at == nil}
	var err error
	if up.status, err = f.d.Status(ctx); err != nil {
		return up, err
	}
	for q := (ipc.HoldQuery{Page: ipc.Page{Limit: ipc.MaxLimit}, State: string(lemma.HoldOpen)}); ; {
		l, err := f.d.Holds(ctx, q)
		if err != nil {
			return up, err
		}
		if q.Cursor == "" {
			up.asOf = l.AsOfSeq
		}
		up.holds = append(up.holds, l.Items...)
		if q.Cursor = l.NextCursor; q.Cursor == "" {
			break
		}
	}
	if at == nil {
		return up, nil
	}
	if up.status.Chain.Origin != at.origin || up.status.Chain.Size <= at.seq {
		up.fresh, up.note = true, "this is another log than before: everything was read anew"
		return up, nil
	}
	up.note = "gettierd is back, nothing was missed"
	return up, nil
}

// watch passes entries on until the stream breaks, and keeps in at where it stopped.
func (f *feed) watch(ctx context.Context, at *mark) error {
	first, since := true, at.seq
	for e, err := range f.d.Watch(ctx, &since) {
		switch {
		case errors.Is(err, ipc.ErrLagged):
			continue // Watch goes on by itself where it stopped
		case err != nil:
			return err
		case first:
			first = false
			// The chain's own link shows that the log is the one we left.
			if e.Seq != at.seq+1 || at.seen && e.Prev != entryHash(at.last) {
				return errOtherLog
			}
		}
		at.seq, at.last, at.seen = e.Seq, e, true
		f.entry(e)
	}
	return errors.New("the event stream ended")
}

// entryHash is the link that the next entry carries.
func entryHash(e ipc.Entry) string {
	b, err := ipc.Marshal(e)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte{0}, b...))
	return hex.EncodeToString(sum[:])
}

// pause waits, and reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
