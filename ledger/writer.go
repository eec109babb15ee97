package ledger

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

const (
	// checkpointEvery entries one checkpoint is kept for good, so that an auditor
	// who holds an old one finds a signed point near it.
	checkpointEvery = 1024
	// checkpointSpan keeps one a minute on a quiet log, too.
	checkpointSpan = time.Minute
	// copySpan is how far the checkpoint outside the file may lag behind. A copy
	// with every commit would put a rename into each file system journal commit
	// that the append waits for.
	copySpan = time.Second
	// batchBytes bounds one commit, so that nobody waits behind a huge one.
	batchBytes = 8 << 20
)

// writer is the state of the one goroutine that appends. Nobody else touches it
// after Open.
type writer struct {
	key      ed25519.PrivateKey // signs now
	tree     *chain.Tree
	prev     chain.Digest       // hash of the last entry
	known    map[string]TurnRow // of turns under way
	batch    int                // groups of the last commit
	dirty    bool               // the file is marked so
	lastSize uint64             // size of the newest checkpoint
	keepLast bool               // the newest checkpoint stays when the next one comes
	keptAt   time.Time          // when one was last kept
	copied   uint64             // size of the checkpoint outside the file
	copiedAt time.Time
	room     []byte // where the entries of a commit are encoded
}

// run drains the inbox until it is closed and empty.
func (l *Ledger) run() {
	defer close(l.done)
	var due <-chan time.Time
	for {
		batch, ended := l.next()
		if ended {
			return
		}
		if len(batch) > 0 {
			l.write(batch)
			l.copyOut(false)
			continue
		}
		due = nil
		if l.opt.CheckpointFile != "" && l.w.copied != l.Head().Size {
			due = time.After(copySpan)
		}
		select {
		case <-l.in.bell:
		case <-due:
			l.copyOut(true)
		case <-l.probing():
			_ = l.probe() // the trouble goes on
		}
	}
}

// next takes a batch. Half of the producers that are at work fill one: while it
// is committed the other half prepares the next, so that neither the disk nor the
// processors wait. Until so many have come, a yield costs a microsecond and saves
// a commit; when none comes any more, there is nothing to wait for.
func (l *Ledger) next() (batch []*group, ended bool) {
	for n, idle := l.in.len(), 0; n > 0 && n < (l.w.batch+n)/2 && idle < 3; {
		runtime.Gosched()
		m := l.in.len()
		if m == n {
			idle++
		}
		n = m
	}
	size, bytes := l.w.tree.Size(), 0
	defer func() { l.w.batch = len(batch) }()
	return l.in.take(func(g *group) bool {
		// A batch ends at the first group that reaches a multiple of
		// checkpointEvery: its checkpoint is the one that is kept.
		if bytes > batchBytes || size/checkpointEvery > l.w.tree.Size()/checkpointEvery {
			return false
		}
		size += uint64(len(g.items))
		for _, it := range g.items {
			bytes += len(it.body)
		}
		for _, p := range g.blobs {
			bytes += len(p.data)
		}
		return true
	})
}

// write commits a batch and tells its producers. When the commit fails the
// groups are tried one by one, so that one bad group cannot fail the others.
func (l *Ledger) write(batch []*group) {
	if err := l.halted(); err != nil {
		for _, g := range batch {
			g.finish(Receipt{}, fmt.Errorf("append: %w", err))
		}
		return
	}
	receipts, err := l.commit(batch)
	if err == nil {
		l.broadcast()
		for i, g := range batch {
			g.finish(receipts[i], nil)
		}
		l.relieved()
		return
	}
	if len(batch) == 1 {
		l.refused(batch[0], err)
		batch[0].finish(Receipt{}, fmt.Errorf("append: %w", err))
		return
	}
	for _, g := range batch {
		l.write([]*group{g})
	}
}

// take returns room for the entries of a batch. bbolt reads it until the commit
// has ended; the next one may use it again.
func (w *writer) take(batch []*group) []byte {
	n := 0
	for _, g := range batch {
		for _, it := range g.items {
			n += len(it.body) + chain.Overhead(it.kind, tenant, it.turn)
		}
	}
	if n > batchBytes { // rare: not to be kept
		return make([]byte, 0, n)
	}
	if cap(w.room) < n {
		w.room = make([]byte, 0, max(n, 2*cap(w.room)))
	}
	return w.room[:0]
}

// commit writes the batch in one transaction. State moves only when it is durable.
func (l *Ledger) commit(batch []*group) ([]Receipt, error) {
	now := l.opt.Now()
	ts := lemma.Time(now)
	tree, prev := l.w.tree.Clone(), l.w.prev
	key, keys := l.w.key, l.Keys()
	before := tree.Size()
	receipts := make([]Receipt, len(batch))
	var cp []byte
	var rows map[string]*TurnRow
	room := l.w.take(batch)
	err := guard(func() error {
		return l.db.Update(func(tx *bbolt.Tx) error {
			s := newTxState(tx)
			f := newFold(s)
			f.known = l.w.known
			if !l.w.dirty {
				if err := s.put(bMeta, metaDirty, []byte{1}); err != nil {
					return err
				}
			}
			for i, g := range batch {
				receipts[i] = Receipt{First: tree.Size(), Last: tree.Size() + uint64(len(g.items)) - 1, TS: ts}
				for _, p := range g.blobs {
					if s.get(bBlobs, p.sum[:]) == nil {
						if err := s.put(bBlobs, p.sum[:], p.data); err != nil {
							return err
						}
					}
				}
				for _, it := range g.items {
					if g.next != nil {
						var err error
						if it, keys, err = rotation(tree.Size(), tree.Root(), keys, key, g.next, g.by); err != nil {
							return err
						}
						key = g.next
						if err := s.put(bMeta, metaRotated, putRotations(keys)); err != nil {
							return err
						}
					}
					e := chain.Entry{V: chain.Version, Seq: tree.Size(), TS: ts, Kind: it.kind, Tenant: tenant, Turn: it.turn, Body: it.body}
					whole, err := chain.AppendNext(room, e, prev)
					if err != nil {
						return err
					}
					raw := whole[len(room):len(whole):len(whole)]
					room = whole
					if err := s.putAt(bChain, e.Seq, raw); err != nil {
						return err
					}
					prev = chain.Hash(raw)
					if err := s.grow(tree, prev); err != nil {
						return err
					}
					if err := f.apply(e, it.value); err != nil {
						return err
					}
				}
				if err := forget(s, g.forget, g.through); err != nil {
					return err
				}
				if err := drop(s, g.drop); err != nil {
					return err
				}
			}
			var err error
			if rows, err = f.flush(); err != nil {
				return err
			}
			cp, err = chain.SignCheckpoint(chain.Checkpoint{Origin: keys.Origin(), Size: tree.Size(), Root: tree.Root()}, key)
			if err != nil {
				return err
			}
			if err := s.put(bCheckpoints, u64(tree.Size()), cp); err != nil {
				return err
			}
			if !l.w.keepLast && l.w.lastSize > 0 {
				return s.del(bCheckpoints, u64(l.w.lastSize))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	root := tree.Root()
	for i := range receipts {
		receipts[i].Size, receipts[i].Root = tree.Size(), root
	}
	w := &l.w
	w.known = learn(w.known, rows)
	w.keepLast = before/checkpointEvery != tree.Size()/checkpointEvery || now.Sub(w.keptAt) >= checkpointSpan
	if w.keepLast {
		w.keptAt = now
	}
	w.tree, w.prev, w.dirty, w.lastSize, w.key = tree, prev, true, tree.Size(), key
	l.tip.Store(&tip{head: Head{Size: tree.Size(), Root: root, Origin: keys.Origin()}, checkpoint: cp, keys: keys})
	return receipts, nil
}

// finish marks the file clean. The writer has ended.
func (l *Ledger) finish() error {
	l.copyOut(true)
	if err := l.halted(); err != nil || !l.w.dirty {
		return err
	}
	err := guard(func() error {
		return l.db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket(bucketNames[bMeta])
			if err := meta.Put(metaClosed, u64(l.w.tree.Size())); err != nil {
				return err
			}
			return meta.Delete(metaDirty)
		})
	})
	if err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// copyOut puts the newest checkpoint outside the file. It is no part of the
// append's promise: a copy that cannot be written is tried again after the next
// commit, and a copy that lags still proves the prefix it names.
func (l *Ledger) copyOut(now bool) {
	t := l.tip.Load()
	if l.opt.CheckpointFile == "" || l.w.copied == t.head.Size {
		return
	}
	// Monotonic real time: the log's clock may be a test's, this only limits a rate.
	at := time.Now()
	if !now && at.Sub(l.w.copiedAt) < copySpan {
		return
	}
	l.w.copiedAt = at
	if err := replaceFile(l.opt.CheckpointFile, t.checkpoint); err == nil {
		l.w.copied = t.head.Size
	}
}

// replaceFile writes beside the file and renames, so that a reader sees the old
// or the new bytes. The file itself is synced, so that a power cut cannot leave
// an empty one behind the rename.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
