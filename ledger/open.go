package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

const (
	// tailClean is how many entries are verified at an open after a clean close;
	// after any other stop it is all of them since the last clean close.
	tailClean = 256
	// stoppedMax bounds the turns that one chain.recovered names.
	stoppedMax = 400
)

// Open opens or creates the ledger at path, verifies its end and records that it
// was opened. A file that is damaged, rolled back, of another key or of a newer
// version is an error and is left as it is.
func Open(path string, o Options) (*Ledger, error) {
	l, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return l, nil
}

func open(path string, o Options) (*Ledger, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MmapSize == 0 {
		o.MmapSize = DefaultMmapSize
		if strconv.IntSize == 32 {
			o.MmapSize = 64 << 20
		}
	}
	if o.LockWait == 0 {
		o.LockWait = DefaultLockWait
	}
	pub := o.PublicKey
	if len(o.Key) == ed25519.PrivateKeySize {
		pub = o.Key.Public().(ed25519.PublicKey)
	} else if !o.ReadOnly {
		return nil, errors.New("no log key")
	}
	cod, err := newCodec()
	if err != nil {
		return nil, err
	}
	var outside *outside
	if pub != nil {
		if outside, err = readOutside(o.CheckpointFile); err != nil {
			return nil, err
		}
	}
	st, err := os.Stat(path)
	if missing := errors.Is(err, os.ErrNotExist); missing || err == nil && st.Size() == 0 {
		// bbolt would make a new file here, and a lost log would look like a first start.
		if outside != nil && !outside.by(pub) {
			return nil, fmt.Errorf("%s: %w: another key signed it", o.CheckpointFile, ErrWrongKey)
		}
		if outside != nil && outside.Size > 0 {
			return nil, fmt.Errorf("%w: the file is gone or empty, %s says it had %d entries; move that file away to start a new log", ErrRolledBack, o.CheckpointFile, outside.Size)
		}
		if o.ReadOnly {
			return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
		}
		if missing {
			if err := newFile(path, pub, o); err != nil {
				return nil, err
			}
		}
	} else if err != nil {
		return nil, err
	}
	db, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	l := &Ledger{db: db, opt: o, pub: pub, cod: cod, wake: make(chan struct{})}
	l.in.bell = make(chan struct{}, 1)
	if err := l.start(outside); err != nil {
		if l.done != nil { // the writer runs: Close waits for it and keeps the file as it is
			l.Close()
		} else {
			db.Close()
		}
		return nil, err
	}
	return l, nil
}

func openFile(path string, o Options) (db *bbolt.DB, err error) {
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:         o.LockWait,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: o.MmapSize,
			PageSize:        pageSize,
			ReadOnly:        o.ReadOnly,
			NoStatistics:    true,
		})
		return err
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterr.ErrTimeout):
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	case errors.Is(err, os.ErrPermission), errors.Is(err, ErrDamaged):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
}

// start checks what the file holds and starts the writer.
func (l *Ledger) start(outside *outside) error {
	fresh, err := l.fresh()
	if err != nil {
		return err
	}
	if fresh {
		if err := l.create(); err != nil {
			return err
		}
	}
	var stopped []lemma.StoppedTurn
	var from, size uint64
	var clean bool
	var oldFold bool
	l.pub = nil // from here on the file says who named the log
	err = l.view(func(tx *bbolt.Tx) (err error) {
		if oldFold, err = l.checkMeta(tx); err != nil {
			return err
		}
		if size, err = sizeOf(tx); err != nil {
			return err
		}
		keys, err := readKeys(tx)
		switch {
		case err == nil:
			err = l.sign(keys, outside, size)
		case l.opt.ReadOnly && errors.Is(err, ErrDamaged):
			err = nil // for Verify to report
		}
		if err == nil && outside != nil {
			err = outside.of(keys)
		}
		if err != nil {
			return err
		}
		meta := tx.Bucket(bucketNames[bMeta])
		closed, _ := fromU64(meta.Get(metaClosed))
		clean = meta.Get(metaDirty) == nil
		if closed > size && !l.opt.ReadOnly {
			return fmt.Errorf("%w: closed with %d entries, %d are left", ErrDamaged, closed, size)
		}
		if from = closed; clean {
			from = max(size, tailClean) - tailClean
		}
		if err := l.load(tx, size, keys); err != nil {
			if !l.opt.ReadOnly {
				return err
			}
			// Whoever reads a damaged log wants Verify's report, not this refusal.
			l.tip.Store(&tip{head: Head{Size: size, Origin: keys.Origin()}, keys: keys})
		}
		if err := checkOutside(tx, outside, size); err != nil {
			return err
		}
		return eachKey(tx, bTurnsOpen, func(id []byte) {
			if r, ok := getJSON[TurnRow](newTxState(tx), bTurns, id); ok {
				stopped = append(stopped, lemma.StoppedTurn{Turn: r.ID, At: r.Stage})
			}
		})
	})
	if err != nil {
		return err
	}
	if l.opt.ReadOnly {
		return nil
	}
	if err := l.checkTail(from, size); err != nil {
		return err
	}
	if outside != nil {
		l.w.copied = outside.Size
	}
	if oldFold {
		if _, err := l.rebuild(context.Background()); err != nil {
			return err
		}
	}
	l.done = make(chan struct{})
	go l.run() // ends when the inbox closes; Close waits for it
	drafts := []Draft{{Body: lemma.ChainOpened{
		Contract: lemma.Contract, LogKey: fmt.Sprintf("%x", []byte(l.PublicKey())), Origin: l.Head().Origin,
		Version: l.opt.Version, Format: FormatVersion,
	}}}
	if !clean || len(stopped) > 0 {
		for first := true; first || len(stopped) > 0; first = false {
			n := min(len(stopped), stoppedMax)
			drafts = append(drafts, Draft{Body: lemma.ChainRecovered{Contract: lemma.Contract, Checked: size - from, Turns: append([]lemma.StoppedTurn{}, stopped[:n]...)}})
			stopped = stopped[n:]
		}
	}
	for len(drafts) > 0 {
		n := min(len(drafts), maxDrafts)
		if _, err := l.Append(context.Background(), drafts[:n]...); err != nil {
			return err
		}
		drafts = drafts[n:]
	}
	return nil
}

// fresh reports whether the file holds no bucket at all.
func (l *Ledger) fresh() (fresh bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		k, _ := tx.Cursor().First()
		fresh = k == nil
		return nil
	})
	if fresh && l.opt.ReadOnly {
		return false, fmt.Errorf("%w: no ledger in it", ErrDamaged)
	}
	return fresh, err
}

// newFile makes a ledger without entries. It gets its name when all of it is on
// the disk: a first start that is cut short must not leave a file behind that
// looks like a damaged ledger.
func newFile(path string, pub ed25519.PublicKey, o Options) (err error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	beside := path + ".new"
	if err := ignoreMissing(os.Remove(beside)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(beside))) }()
	db, err := openFile(beside, o)
	if err != nil {
		return err
	}
	l := &Ledger{db: db, pub: pub}
	if err := errors.Join(l.create(), db.Close()); err != nil {
		return err
	}
	// A link, so that a file which another process made meanwhile is not replaced.
	if err := os.Link(beside, path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// create lays the format down in a new file.
func (l *Ledger) create() error {
	return guard(func() error {
		return l.db.Update(func(tx *bbolt.Tx) error {
			for _, name := range bucketNames {
				if _, err := tx.CreateBucket(name); err != nil {
					return err
				}
			}
			meta := tx.Bucket(bucketNames[bMeta])
			for _, kv := range [][2][]byte{
				{metaFormat, u64(FormatVersion)}, {metaTenant, []byte(tenant)}, {metaKey, l.pub},
				{metaFold, u64(foldVersion)}, {metaClosed, u64(0)},
			} {
				if err := meta.Put(kv[0], kv[1]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// checkMeta refuses files that are not ours to read. oldFold asks for a rebuild.
func (l *Ledger) checkMeta(tx *bbolt.Tx) (oldFold bool, err error) {
	// Pages behind the end would fault where they are read first, which may be late.
	if st, err := os.Stat(l.db.Path()); err != nil {
		return false, err
	} else if st.Size() < tx.Size() {
		return false, fmt.Errorf("%w: it was cut off: %d bytes are left of %d", ErrDamaged, st.Size(), tx.Size())
	}
	for b, name := range bucketNames {
		if bucket(b) <= lastOfFold1 && tx.Bucket(name) == nil {
			return false, fmt.Errorf("%w: bucket %s is missing", ErrDamaged, bucket(b))
		}
	}
	meta := tx.Bucket(bucketNames[bMeta])
	format, ok := fromU64(meta.Get(metaFormat))
	if !ok || format == 0 {
		return false, fmt.Errorf("%w: no format version", ErrDamaged)
	}
	if format > FormatVersion {
		return false, fmt.Errorf("%w: format %d, this program reads up to %d", ErrNewer, format, FormatVersion)
	}
	key := meta.Get(metaKey)
	if len(key) != ed25519.PublicKeySize {
		return false, fmt.Errorf("%w: no log key", ErrDamaged)
	}
	if l.pub == nil {
		l.pub = append(ed25519.PublicKey(nil), key...)
	}
	if !bytes.Equal(key, l.pub) {
		return false, fmt.Errorf("%w: %s, not %s", ErrWrongKey, chain.Origin(key), chain.Origin(l.pub))
	}
	fold, ok := fromU64(meta.Get(metaFold))
	if !ok {
		return false, fmt.Errorf("%w: no fold version", ErrDamaged)
	}
	if fold > foldVersion {
		return false, fmt.Errorf("%w: fold %d, this program knows up to %d", ErrNewer, fold, foldVersion)
	}
	for b := lastOfFold1 + 1; b < bucketCount && fold == foldVersion; b++ {
		if tx.Bucket(bucketNames[b]) == nil {
			return false, fmt.Errorf("%w: bucket %s is missing", ErrDamaged, b)
		}
	}
	return fold < foldVersion, nil
}

// load reads the end of the chain into the writer's state and the tip, and
// compares it with the newest checkpoint.
func (l *Ledger) load(tx *bbolt.Tx, size uint64, keys chain.Keys) error {
	tree, err := chain.LoadTree(size, nodes(tx))
	if err != nil {
		return err
	}
	l.w.tree = tree
	l.w.keepLast = true // whatever a run before left as its last stays
	head := Head{Size: size, Root: tree.Root(), Origin: keys.Origin()}
	k, signed := tx.Bucket(bucketNames[bCheckpoints]).Cursor().Last()
	if size == 0 {
		if k != nil {
			return fmt.Errorf("%w: a checkpoint over an empty chain", ErrDamaged)
		}
		l.tip.Store(&tip{head: head, keys: keys})
		return nil
	}
	l.w.prev = chain.Hash(tx.Bucket(bucketNames[bChain]).Get(u64(size - 1)))
	l.w.lastSize = size
	if !bytes.Equal(k, u64(size)) {
		return fmt.Errorf("%w: %d entries, but the newest checkpoint is of %x", ErrDamaged, size, k)
	}
	cp, err := keys.Open(signed)
	if err != nil {
		return fmt.Errorf("%w: newest checkpoint: %w", ErrDamaged, err)
	}
	if cp.Size != size || cp.Root != head.Root {
		return fmt.Errorf("%w: the newest checkpoint is over other entries", ErrDamaged)
	}
	l.tip.Store(&tip{head: head, checkpoint: append([]byte(nil), signed...), keys: keys})
	return nil
}

// checkOutside compares the file with what was seen of it from outside.
func checkOutside(tx *bbolt.Tx, outside *outside, size uint64) error {
	if outside == nil {
		return nil
	}
	if outside.Size > size {
		return fmt.Errorf("%w: it has %d entries and had %d", ErrRolledBack, size, outside.Size)
	}
	then, err := chain.LoadTree(outside.Size, nodes(tx))
	if err != nil {
		return err
	}
	if then.Root() != outside.Root {
		return fmt.Errorf("%w: entries before %d differ", ErrForked, outside.Size)
	}
	return nil
}

// checkTail verifies links, form and tree of entries from up to size.
func (l *Ledger) checkTail(from, size uint64) error {
	var tree *chain.Tree
	var prev chain.Digest
	for at := from; at < size; {
		err := l.view(func(tx *bbolt.Tx) error {
			node, stored := nodes(tx), tx.Bucket(bucketNames[bTree])
			if tree == nil {
				var err error
				if tree, err = chain.LoadTree(from, node); err != nil {
					return err
				}
				if from > 0 {
					if prev, err = node(0, from-1); err != nil {
						return err
					}
				}
			}
			c := tx.Bucket(bucketNames[bChain]).Cursor()
			stop := min(size, at+sliceEntries)
			for k, raw := c.Seek(u64(at)); at < stop; k, raw = c.Next() {
				if err := checkEntry(at, k, raw, prev); err != nil {
					return err
				}
				prev = chain.Hash(raw)
				var bad error
				tree.Append(prev, func(n chain.Node) {
					if n.Level >= storedLevel && !bytes.Equal(stored.Get(u64(n.Index())), n.Hash[:]) {
						bad = fmt.Errorf("%w: tree node %d of level %d", ErrDamaged, n.N, n.Level)
					}
				})
				if bad != nil {
					return bad
				}
				at++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkEntry holds one entry against its key and the entry before.
func checkEntry(seq uint64, key, raw []byte, prev chain.Digest) error {
	if !bytes.Equal(key, u64(seq)) {
		return fmt.Errorf("%w: entry %d is missing", ErrDamaged, seq)
	}
	e, err := decodeAt(seq, raw)
	if err != nil {
		return err
	}
	want := chain.ZeroPrev
	if seq > 0 {
		want = chain.Link(prev)
	}
	if e.Prev != want {
		return fmt.Errorf("%w: entry %d does not follow entry %d", ErrDamaged, seq, int64(seq)-1)
	}
	return nil
}

func eachKey(tx *bbolt.Tx, b bucket, fn func(key []byte)) error {
	c := tx.Bucket(bucketNames[b]).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		fn(k)
	}
	return nil
}
