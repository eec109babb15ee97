package ledger

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// ErrHalted says that nothing can be appended until the ledger is opened again.
var ErrHalted = errors.New("a commit failed half-way: the ledger has to be opened again")

// Trouble is a ledger that cannot write: a full disk, a file system that turned
// read-only, a disk that fails.
type Trouble struct {
	Err    error
	Since  time.Time
	Lost   uint64 // entries that were refused since
	Halted bool   // it does not end by itself
}

// Reason is the cause in the system's own words.
func (t Trouble) Reason() string {
	var errno syscall.Errno
	if errors.As(t.Err, &errno) && !t.Halted {
		return errno.Error()
	}
	return t.Err.Error()
}

// Trouble reports whether an attempt to write failed. It ends by itself when one
// succeeds and the disk has room for more: a full disk takes a small commit now
// and then, into pages that were freed. While it lasts the writer tries every
// probeSpan.
func (l *Ledger) Trouble() (Trouble, bool) {
	t := l.trouble.Load()
	if t == nil {
		return Trouble{}, false
	}
	return *t, true
}

// probeSpan is how often a ledger in trouble looks whether it can write again.
const probeSpan = time.Second

// enough is how much room a disk must have before trouble counts as over.
const enough = 1 << 20

// probing ticks once when it is time to look; never without trouble.
func (l *Ledger) probing() <-chan time.Time {
	if t := l.trouble.Load(); t != nil && !t.Halted {
		return time.After(probeSpan)
	}
	return nil
}

// probe writes a little and so finds out.
func (l *Ledger) probe() error {
	err := guard(func() error {
		return l.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketNames[bMeta]).Put(metaDirty, []byte{1}) })
	})
	if err == nil {
		l.w.dirty = true
		l.relieved()
	}
	return err
}

// refused notes a group that could not be committed. A group that is at fault
// itself is no trouble.
func (l *Ledger) refused(g *group, err error) {
	if l.halting(err) {
		return
	}
	old := l.trouble.Load()
	var errno syscall.Errno
	if old == nil && !errors.As(err, &errno) && l.probe() == nil { // bbolt says some causes in words only
		return
	}
	t := Trouble{Err: err, Since: l.opt.Now()}
	if old != nil {
		t = *old
		t.Err = err
	}
	t.Lost += uint64(len(g.items))
	l.trouble.Store(&t)
}

// Room is how many bytes this user may still write to the ledger's disk.
func (l *Ledger) Room() (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(l.db.Path(), &st); err != nil {
		return 0, fmt.Errorf("look for room: %w", err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// halting reports whether the file shows a commit that failed: its pages were
// written, and whether the disk has them is not known. To go on would write other
// entries over them, so only a new start may say what holds.
func (l *Ledger) halting(err error) bool {
	var size uint64
	verr := l.view(func(tx *bbolt.Tx) (err error) {
		size, err = sizeOf(tx)
		return err
	})
	if verr == nil && size == l.w.tree.Size() {
		return false
	}
	l.trouble.Store(&Trouble{Err: fmt.Errorf("%w: %w", ErrHalted, errors.Join(err, verr)), Since: l.opt.Now(), Halted: true})
	return true
}

// halted is the error of every append after a halt.
func (l *Ledger) halted() error {
	if t := l.trouble.Load(); t != nil && t.Halted {
		return t.Err
	}
	return nil
}

// relieved ends the trouble. The chain says how long there was none of it.
func (l *Ledger) relieved() {
	t := l.trouble.Load()
	if t == nil {
		return
	}
	if room, err := l.Room(); err == nil && room < enough {
		return
	}
	l.trouble.Store(nil)
	if t.Lost == 0 {
		return
	}
	it, err := ready("", lemma.StateLost{Contract: lemma.Contract, Reason: fmt.Sprintf(
		"%d entries could not be written from %s on: %s", t.Lost, lemma.Time(t.Since), t.Reason())})
	if err != nil {
		return // a body of our own is always well formed
	}
	l.write([]*group{{items: []item{it}, done: make(chan struct{})}})
}
