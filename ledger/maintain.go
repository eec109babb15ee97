package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

// Expire turns facts stale whose ttl has run out by now and records each. It
// returns how many.
func (l *Ledger) Expire(ctx context.Context, now time.Time) (int, error) {
	end, total := u64(uint64(max(now.Unix(), 0))), 0
	for {
		var drafts []Draft
		err := l.view(func(tx *bbolt.Tx) error {
			s := newTxState(tx)
			c := s.bucket(bFactsByExpiry).Cursor()
			at := lemma.Time(now)
			for k, _ := c.First(); len(k) > 8 && string(k[:8]) <= string(end) && len(drafts) < maxDrafts; k, _ = c.Next() {
				f, ok := getJSON[lemma.Fact](s, bFacts, k[8:])
				if !ok || f.Status != lemma.StatusActive || !expiredAt(f, at) {
					continue // within its last second, or refreshed
				}
				drafts = append(drafts, Draft{Body: lemma.FactExpired{Contract: lemma.Contract, Fact: f.ID, ExpiresAt: *f.ExpiresAt}})
			}
			return nil
		})
		if err != nil {
			return total, fmt.Errorf("expire facts: %w", err)
		}
		if len(drafts) == 0 {
			return total, nil
		}
		if _, err := l.Append(ctx, drafts...); err != nil {
			return total, fmt.Errorf("expire facts: %w", err)
		}
		total += len(drafts)
	}
}

// forgetBatch is how many blobs one blob.forgotten covers.
const forgetBatch = 1000

// Forget drops blobs that only entries before this time name, and records up to
// where it did. Entries stay, and with them the hashes of what is gone.
func (l *Ledger) Forget(ctx context.Context, before time.Time) (blobs int, err error) {
	cut, err := l.firstAt(before)
	if err != nil {
		return 0, fmt.Errorf("forget blobs: %w", err)
	}
	if cut == 0 {
		return 0, nil
	}
	through := cut - 1
	var after []byte
	for {
		g := &group{done: make(chan struct{}), through: through}
		var size int64
		end := false
		err := l.view(func(tx *bbolt.Tx) error {
			s := newTxState(tx)
			c := s.bucket(bBlobs).Cursor()
			k, v := c.Seek(after)
			for n := 0; n < scanMax && len(g.forget) < forgetBatch; n++ {
				if k == nil {
					end = true
					return nil
				}
				if last, ok := fromU64(s.get(bBlobRefs, k)); ok && last <= through && len(k) == 32 {
					g.forget = append(g.forget, [32]byte(k))
					size += int64(len(v))
				}
				k, v = c.Next()
			}
			after = append([]byte(nil), k...)
			return nil
		})
		if err != nil {
			return blobs, fmt.Errorf("forget blobs: %w", err)
		}
		if len(g.forget) > 0 {
			it, err := ready("", lemma.BlobForgotten{Contract: lemma.Contract, Through: through, Blobs: len(g.forget), Bytes: size, Reason: "retain"})
			if err != nil {
				return blobs, err
			}
			g.items = []item{it}
			if _, err := l.submit(ctx, g); err != nil {
				return blobs, fmt.Errorf("forget blobs: %w", err)
			}
			blobs += len(g.forget)
		}
		if end || len(after) == 0 {
			return blobs, nil
		}
	}
}

// forget runs in the append transaction, so that a blob which an entry of the
// meantime names again is seen and kept.
func forget(s state, sums [][32]byte, through uint64) error {
	for _, sum := range sums {
		if last, ok := fromU64(s.get(bBlobRefs, sum[:])); !ok || last > through {
			continue
		}
		if err := s.del(bBlobs, sum[:]); err != nil {
			return err
		}
	}
	return nil
}

// firstAt returns the sequence number of the first entry at or after t. The
// chain's times need not rise: a clock that was set back leaves a young entry
// with an old time, and a search by halves could land on it and take all before
// it for old. So the entries are read in order, each once while t moves on.
func (l *Ledger) firstAt(t time.Time) (uint64, error) {
	at := lemma.Time(t)
	l.aged.Lock()
	defer l.aged.Unlock()
	if at < l.aged.at {
		l.aged.seq = 0
	}
	l.aged.at = at
	for {
		es, err := l.Entries(l.aged.seq, sliceEntries)
		if err != nil {
			return 0, err
		}
		for _, e := range es {
			if e.TS >= at {
				return l.aged.seq, nil
			}
			l.aged.seq = e.Seq + 1
		}
		if len(es) == 0 {
			return l.aged.seq, nil
		}
	}
}

// aged is up to where entries are known to be older than a time.
type aged struct {
	sync.Mutex
	at  string
	seq uint64
}

// rebuild refolds the whole chain into empty fold buckets, in one transaction. It
// runs before the writer does.
func (l *Ledger) rebuild(ctx context.Context) (uint64, error) {
	var n uint64
	err := guard(func() error {
		return l.db.Update(func(tx *bbolt.Tx) error {
			for b := firstFold; b < bucketCount; b++ {
				// A bucket that an older fold did not have is not there to delete.
				if err := tx.DeleteBucket(bucketNames[b]); err != nil && !errors.Is(err, bolterr.ErrBucketNotFound) {
					return err
				}
				if _, err := tx.CreateBucket(bucketNames[b]); err != nil {
					return err
				}
			}
			s := newTxState(tx)
			f := newFold(s)
			c := s.bucket(bChain).Cursor()
			for k, raw := c.First(); k != nil; k, raw = c.Next() {
				if err := refold(f, n, raw); err != nil {
					return err
				}
				if n++; n%sliceEntries == 0 {
					if err := ctx.Err(); err != nil {
						return err
					}
					if _, err := f.flush(); err != nil {
						return err
					}
				}
			}
			if _, err := f.flush(); err != nil {
				return err
			}
			return s.put(bMeta, metaFold, u64(foldVersion))
		})
	})
	if err != nil {
		return 0, fmt.Errorf("rebuild folds: %w", err)
	}
	return n, nil
}

// refold applies a stored entry. A body that the fold cannot read is skipped, as
// the contract of old chains asks; Append would have refused it.
func refold(f *fold, seq uint64, raw []byte) error {
	e, err := decodeAt(seq, raw)
	if err != nil {
		return err
	}
	value, err := decodeBody(e.Kind, e.Body)
	if err != nil {
		value = nil
	}
	e.Body = json.RawMessage(append([]byte(nil), e.Body...))
	return f.apply(e, value)
}

// Rebuild refolds facts, holds, turns and models of the ledger at path from its
// chain and returns how many entries it read. The chain itself is not touched.
func Rebuild(ctx context.Context, path string, o Options) (uint64, error) {
	l, err := Open(path, o)
	if err != nil {
		return 0, err
	}
	// The writer must not fold while the folds are away.
	l.in.close()
	<-l.done
	n, err := l.rebuild(ctx)
	if cerr := l.Close(); err == nil && cerr != nil {
		err = cerr
	}
	return n, err
}
