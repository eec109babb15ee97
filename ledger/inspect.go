package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/bbolt"
)

// Health is what an inspection found. A file that is locked, of another key or of
// a newer version is not damaged, and not sound for whoever asked.
type Health struct {
	Sound   bool   `json:"sound"`
	Damaged bool   `json:"damaged"`
	Reason  string `json:"reason,omitempty"`
	Size    uint64 `json:"size"`
	Root    string `json:"root,omitempty"`
	Prefix  Prefix `json:"prefix"` // what is left of a damaged file
}

// InspectOptions say whose the file must be and how much is looked at.
type InspectOptions struct {
	Key  ed25519.PublicKey // the file's own when nil
	Full bool              // every entry, blob and fold; else what a start needs to be safe
}

// wholeWalk is the size up to which every page of a cleanly closed file is looked
// at before each start, about 30 ms; a file that was not closed is walked whatever
// its size.
const wholeWalk = 64 << 20

// Inspect looks at a ledger file without changing it. bbolt may bring its process
// down on pages that cannot be (its own goroutines panic, a page that leads to
// itself overflows the stack), so call it where that ends nothing else, and take
// an end without a report for a damaged file.
func Inspect(ctx context.Context, path string, o InspectOptions) Health {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && st.Size() == 0 {
		return Health{Sound: true} // a start makes a new one, or says why not
	}
	if err != nil {
		return Health{Reason: err.Error()}
	}
	h := Health{Sound: true}
	if err := o.inspect(ctx, path, st.Size(), &h); err != nil {
		h.Sound, h.Reason = false, strings.ReplaceAll(err.Error(), "panic: ", "") // as bbolt tells what it could go no further for
		h.Damaged = errors.Is(err, ErrDamaged)
	}
	if h.Damaged {
		p, err := FindPrefix(ctx, path, o.Key)
		if err != nil {
			h.Reason = errors.Join(errors.New(h.Reason), err).Error()
		}
		h.Prefix = p
	}
	return h
}

func (o InspectOptions) inspect(ctx context.Context, path string, bytes int64, h *Health) (err error) {
	l, err := Open(path, Options{ReadOnly: true, PublicKey: o.Key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	dirty, size := false, uint64(0)
	err = l.view(func(tx *bbolt.Tx) (err error) {
		dirty = tx.Bucket(bucketNames[bMeta]).Get(metaDirty) != nil
		if closed, _ := fromU64(tx.Bucket(bucketNames[bMeta]).Get(metaClosed)); !dirty && closed > 0 {
			defer func() {
				if err == nil && closed > size {
					err = fmt.Errorf("%w: closed with %d entries, %d are left", ErrDamaged, closed, size)
				}
			}()
		}
		if size, err = sizeOf(tx); err != nil {
			return err
		}
		if err := l.load(tx, size, l.Keys()); err != nil {
			return err
		}
		if !dirty && !o.Full && bytes > wholeWalk {
			return nil
		}
		var first error
		for err := range tx.Check() { // to its end: it has a goroutine
			if first == nil {
				first = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		return first
	})
	if err != nil {
		return err
	}
	h.Size = l.Head().Size
	root := l.Head().Root
	h.Root = fmt.Sprintf("%x", root[:])
	if !o.Full {
		return l.checkTail(max(size, tailClean)-tailClean, size)
	}
	r, err := l.Verify(ctx, nil)
	if err != nil {
		return err
	}
	if p, bad := r.First(); bad {
		return fmt.Errorf("%w: entry %d: %s: %s", ErrDamaged, p.Seq, p.Where, p.What)
	}
	return nil
}
