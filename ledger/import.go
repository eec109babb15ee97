package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"go.etcd.io/bbolt"
)

// ErrExists says that a target is there already.
var ErrExists = errors.New("there is something already")

// ErrUnsound says that an export does not hold; the report beside it says why.
var ErrUnsound = errors.New("the export does not hold")

// importBatch is how many bytes one transaction of an import takes.
const importBatch = 8 << 20

// Import writes a ledger file from an export. It reads the export twice: once to
// check all of it, and nothing is written when something is found; then to write
// a file beside path, which is verified in full before it takes the name.
// A path that is there and not empty is refused. The ledger can be read by
// anybody and continued by whoever holds the log's key.
func Import(ctx context.Context, source, path string, o archive.Options) (archive.Report, error) {
	r, err := importTo(ctx, source, path, o)
	if err != nil {
		return r, fmt.Errorf("import ledger: %w", err)
	}
	return r, nil
}

func importTo(ctx context.Context, source, path string, o archive.Options) (r archive.Report, err error) {
	if st, err := os.Stat(path); err == nil && (st.IsDir() || st.Size() > 0) {
		return r, fmt.Errorf("%w: %s", ErrExists, path)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	checkOnly := o
	checkOnly.Entry, checkOnly.Blob, checkOnly.Checkpoint = nil, nil, nil
	if r, err = readExport(ctx, source, checkOnly); err != nil {
		return r, err
	}
	if !r.OK() {
		return r, ErrUnsound
	}
	if r.Size == 0 {
		return r, fmt.Errorf("%w: it has no entries", ErrUnsound)
	}
	_, pub, err := archive.ParseKey(r.Keys[0])
	if err != nil {
		return r, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return r, err
	}
	beside := path + ".import"
	// Left by an import that was cut off; never a ledger that somebody uses.
	if err := os.Remove(beside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(beside)))
		}
	}()
	if err := writeImport(ctx, source, beside, pub, r); err != nil {
		return r, err
	}
	if err := verifyImport(ctx, beside, pub, r); err != nil {
		return r, err
	}
	// Not over a file that somebody put there meanwhile.
	if err := ignoreMissing(removeEmpty(path)); err != nil {
		return r, err
	}
	if err := os.Link(beside, path); err != nil {
		return r, err
	}
	return r, os.Remove(beside)
}

func removeEmpty(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.Size() > 0 {
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return os.Remove(path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readExport(ctx context.Context, source string, o archive.Options) (r archive.Report, err error) {
	in, closer, err := archive.Open(source)
	if err != nil {
		return r, err
	}
	r, err = archive.Check(ctx, in, o)
	return r, errors.Join(err, closer.Close())
}

// writeImport reads the export a second time and writes it down.
func writeImport(ctx context.Context, source, path string, pub ed25519.PublicKey, checked archive.Report) (err error) {
	cod, err := newCodec()
	if err != nil {
		return err
	}
	db, err := openFile(path, Options{LockWait: DefaultLockWait, MmapSize: DefaultMmapSize})
	if err != nil {
		return err
	}
	l := &Ledger{db: db, pub: pub, cod: cod}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := l.create(); err != nil {
		return err
	}
	in := &importing{db: db}
	defer in.rollback()
	tree := new(chain.Tree)
	again, err := readExport(ctx, source, archive.Options{
		Checkpoint: func(size uint64, signed []byte) error { return in.put(bCheckpoints, u64(size), signed) },
		Entry: func(seq uint64, raw []byte) error {
			if err := in.put(bChain, u64(seq), append([]byte(nil), raw...)); err != nil {
				return err
			}
			var bad error
			tree.Append(chain.Hash(raw), func(n chain.Node) {
				if n.Level >= storedLevel && bad == nil {
					bad = in.put(bTree, u64(n.Index()), n.Hash[:])
				}
			})
			return bad
		},
		Blob: func(sum [32]byte, content []byte) error { return in.put(bBlobs, sum[:], cod.pack(content)) },
	})
	if err != nil {
		return err
	}
	if !again.OK() || again.Root != checked.Root || again.Size != checked.Size {
		return fmt.Errorf("%w: it changed while it was read", ErrUnsound)
	}
	if err := in.put(bMeta, metaClosed, u64(checked.Size)); err != nil {
		return err
	}
	var at []byte
	for _, seq := range checked.Rotated {
		at = append(at, u64(seq)...)
	}
	if len(at) > 0 {
		if err := in.put(bMeta, metaRotated, at); err != nil {
			return err
		}
	}
	if err := in.commit(); err != nil {
		return err
	}
	_, err = l.rebuild(ctx)
	return err
}

// importing writes in transactions of a bounded size. What it is given it must
// own until the commit.
type importing struct {
	db   *bbolt.DB
	tx   *bbolt.Tx
	size int
}

func (in *importing) put(b bucket, k, v []byte) error {
	return guard(func() (err error) {
		if in.tx == nil {
			if in.tx, err = in.db.Begin(true); err != nil {
				return err
			}
			for _, full := range []bucket{bChain, bTree} {
				in.tx.Bucket(bucketNames[full]).FillPercent = 1 // keys rise
			}
		}
		if err := in.tx.Bucket(bucketNames[b]).Put(k, append([]byte(nil), v...)); err != nil {
			return err
		}
		if in.size += len(k) + len(v); in.size < importBatch {
			return nil
		}
		return in.commit()
	})
}

func (in *importing) commit() error {
	tx := in.tx
	if in.tx, in.size = nil, 0; tx == nil {
		return nil
	}
	return tx.Commit()
}

func (in *importing) rollback() {
	if in.tx != nil {
		_ = in.tx.Rollback() // the error that led here says more
	}
}

// verifyImport holds the written file against its own rules and the export's root.
func verifyImport(ctx context.Context, path string, pub ed25519.PublicKey, checked archive.Report) error {
	l, err := Open(path, Options{ReadOnly: true, PublicKey: pub})
	if err != nil {
		return err
	}
	r, err := l.Verify(ctx, nil)
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	if p, bad := r.First(); bad {
		return fmt.Errorf("%w: entry %d: %s", ErrUnsound, p.Seq, p.What)
	}
	if r.Root != checked.Root || r.Size != checked.Size {
		return fmt.Errorf("%w: another log was written", ErrDamaged)
	}
	return nil
}
