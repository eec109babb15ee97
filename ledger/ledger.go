// Package ledger is the record of the daemon: an append-only, signed chain of
// entries in one bbolt file, and the folds of it (facts, holds, turns, models)
// that are written in the same transaction as the entries that caused them.
//
// One goroutine writes; producers hand it groups of drafts and wait for the
// durable commit. What an entry means for the gate, what a verdict is and when
// a hold opens are ruled elsewhere: this package stores, folds, reads, watches
// and verifies. It never decides, never runs anything and never opens a socket.
// FORMAT.md beside it gives the file byte by byte.
package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/ledger/chain"
	"go.etcd.io/bbolt"
)

// Errors that a caller may want to tell apart. The first four are about the
// file, the rest about the call.
var (
	ErrLocked     = errors.New("ledger is in use by another process")
	ErrDamaged    = errors.New("ledger file is damaged")
	ErrRolledBack = errors.New("ledger is older than the checkpoint kept outside it")
	ErrForked     = errors.New("ledger is not the log that the checkpoint kept outside it has seen")
	ErrWrongKey   = errors.New("ledger was made with another log key")
	ErrNewer      = errors.New("ledger was written by a newer version")

	ErrClosed   = errors.New("ledger is closed")
	ErrReadOnly = errors.New("ledger is open for reading only")
	ErrNotFound = errors.New("not in the ledger")
	ErrTooLarge = chain.ErrTooLarge
	ErrDraft    = errors.New("draft cannot be recorded")
)

// Hit says how often a redaction rule fired.
type Hit struct {
	Rule  string
	Count int
}

// Options of Open. Key is required unless ReadOnly is set.
type Options struct {
	Key            ed25519.PrivateKey           // signs checkpoints; the first one names the log
	NextKey        ed25519.PrivateKey           // signs instead of Key when the log says so: a rotation was cut short
	CheckpointFile string                       // last checkpoint kept outside the file, so that a rolled-back file shows; empty = none
	Now            func() time.Time             // time.Now when nil
	Entropy        io.Reader                    // part of the shared signature of rooms that make ids; the ledger makes none and reads nothing
	Version        string                       // of the program, recorded in chain.opened
	Redact         func([]byte) ([]byte, []Hit) // last door: called with the decoded text of each string of a body, concurrently; nil = none
	MmapSize       int                          // bytes mapped at open; DefaultMmapSize when 0
	LockWait       time.Duration                // how long to wait for another process; DefaultLockWait when 0
	ReadOnly       bool                         // no writer, nothing appended, a shared lock; what the end holds is left to Verify
	PublicKey      ed25519.PublicKey            // ReadOnly without Key: one of the keys that the log must have had; any when nil
}

const (
	// DefaultMmapSize keeps the file from being remapped, which waits for every
	// open read, until it holds about a million entries. It is address space, not
	// memory.
	DefaultMmapSize = 1 << 30
	// DefaultLockWait lets a stopping daemon hand over to the next one.
	DefaultLockWait = time.Second
	// FormatVersion is the on-disk format that this package writes.
	FormatVersion = 1
)

// Head is the end of the chain: how many entries, and the Merkle root over them.
type Head struct {
	Size   uint64
	Root   [32]byte
	Origin string
}

// Ledger is safe for concurrent use.
type Ledger struct {
	db  *bbolt.DB
	opt Options
	pub ed25519.PublicKey // that named the log
	cod codec

	tip     atomic.Pointer[tip]
	trouble atomic.Pointer[Trouble] // nil while commits succeed
	mu      sync.Mutex
	wake    chan struct{} // closed and replaced after each commit
	in      inbox
	w       writer
	done    chan struct{} // closed when the writer has ended

	aged aged

	closeOnce sync.Once
	closeErr  error
}

// tip is what readers may know of the last commit without touching the file.
type tip struct {
	head       Head
	checkpoint []byte
	keys       chain.Keys
}

// Head returns the end of the chain as of the last durable commit.
func (l *Ledger) Head() Head { return l.tip.Load().head }

// Checkpoint returns the signed note over Head.
func (l *Ledger) Checkpoint() []byte {
	return append([]byte(nil), l.tip.Load().checkpoint...)
}

// Close waits for every append that was accepted, marks the file clean and
// gives up the lock. Later calls return the first result.
func (l *Ledger) Close() error {
	l.closeOnce.Do(func() {
		l.in.close()
		if l.done != nil {
			<-l.done
		}
		if !l.opt.ReadOnly {
			l.closeErr = l.finish()
		}
		if err := l.db.Close(); l.closeErr == nil {
			l.closeErr = err
		}
		// Only now: a watcher that wakes earlier would find an open file, nothing
		// new in it, and wait for a commit that never comes.
		l.broadcast()
	})
	return l.closeErr
}

// committed returns a channel that closes at the next commit or at Close.
func (l *Ledger) committed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

func (l *Ledger) broadcast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.wake)
	l.wake = make(chan struct{})
}

// Append records the drafts atomically and adjacent, in order, and returns after
// the durable commit. When ctx ends first the drafts are withdrawn if the writer
// has not taken them yet; if it has, Append waits for the commit, so that an
// error always means: not recorded.
func (l *Ledger) Append(ctx context.Context, drafts ...Draft) (Receipt, error) {
	g, err := l.prepare(drafts)
	if err != nil {
		return Receipt{}, err
	}
	return l.submit(ctx, g)
}

func (l *Ledger) submit(ctx context.Context, g *group) (Receipt, error) {
	if err := l.in.put(g); err != nil {
		return Receipt{}, err
	}
	if ctx.Done() == nil { // nothing to choose between
		<-g.done
		return g.receipt, g.err
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		if l.in.withdraw(g) {
			return Receipt{}, ctx.Err()
		}
		<-g.done
	}
	return g.receipt, g.err
}

// Go starts an append and returns at once. The channel yields its one result;
// nobody has to read it.
func (l *Ledger) Go(drafts ...Draft) <-chan error {
	out := make(chan error, 1) // one result, so that the writer never waits for a reader
	g, err := l.prepare(drafts)
	if err == nil {
		g.result = out
		err = l.in.put(g)
	}
	if err != nil {
		out <- err
	}
	return out
}
