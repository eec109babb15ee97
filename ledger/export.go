package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// ErrPruned says that retention dropped blobs while they were being exported.
var ErrPruned = errors.New("blobs were forgotten meanwhile; export again")

// Export writes the log as of now as one tar of package archive: the same
// entries give the same bytes. Appends go on meanwhile; nothing is written to w
// inside a transaction, so a slow reader holds up nobody. damaged is told of
// blobs that cannot be unpacked and are left out; when it is nil they are an
// error. Entries go out as they are stored: to judge them is for who reads the
// export.
func (l *Ledger) Export(ctx context.Context, w io.Writer, damaged func(error)) (Head, error) {
	head, err := l.export(ctx, w, damaged)
	if err != nil {
		return head, fmt.Errorf("export ledger: %w", err)
	}
	return head, nil
}

func (l *Ledger) export(ctx context.Context, w io.Writer, damaged func(error)) (Head, error) {
	t := l.tip.Load()
	head, signed := t.head, t.checkpoint
	if head.Size == 0 {
		return head, fmt.Errorf("%w: the log has no entries", ErrNotFound)
	}
	if signed == nil {
		// A damaged log that is open for reading: what its end says, right or not.
		var err error
		if signed, err = l.newestCheckpoint(); err != nil {
			return head, err
		}
	}
	x := &exporter{l: l, ctx: ctx, out: archive.NewWriter(w), size: head.Size, damaged: damaged, refs: map[[32]byte]struct{}{}}
	keys, err := verifierLines(t.keys)
	if err != nil {
		return head, err
	}
	if err := x.out.Put(archive.NameKeys, keys); err != nil {
		return head, err
	}
	if err := x.out.Put(archive.NameCheckpoint, signed); err != nil {
		return head, err
	}
	for _, step := range []func() error{x.checkpoints, x.leaves, x.tiles, x.blobs, x.unpruned, x.out.Close} {
		if err := step(); err != nil {
			return head, err
		}
	}
	return head, nil
}

func (l *Ledger) newestCheckpoint() (signed []byte, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		_, v := tx.Bucket(bucketNames[bCheckpoints]).Cursor().Last()
		if v == nil {
			return fmt.Errorf("%w: no checkpoint", ErrDamaged)
		}
		signed = append([]byte(nil), v...)
		return nil
	})
	return signed, err
}

type exporter struct {
	l       *Ledger
	ctx     context.Context
	out     *archive.Writer
	size    uint64
	damaged func(error)
	refs    map[[32]byte]struct{}
}

// checkpoints packs the kept ones. All below the newest stay for good, so the
// walk that measures and the walk that writes see the same.
func (x *exporter) checkpoints() error {
	total := int64(0)
	if err := x.eachCheckpoint(func(note []byte) error { total += int64(len(note)) + 1; return nil }); err != nil {
		return err
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() { // ends when all is written or PutFrom closed its end; waited for below
		defer close(done)
		pw.CloseWithError(x.eachCheckpoint(func(note []byte) error {
			_, err := pw.Write(append(note, '\n'))
			return err
		}))
	}()
	err := x.out.PutFrom(archive.NameCheckpoints, total, pr)
	pr.Close()
	<-done
	return err
}

func (x *exporter) eachCheckpoint(fn func(note []byte) error) error {
	var after []byte
	for {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		var notes [][]byte
		err := x.l.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucketNames[bCheckpoints]).Cursor()
			k, v := c.Seek(after)
			for ; k != nil && bytes.Compare(k, u64(x.size)) < 0 && len(notes) < scanMax; k, v = c.Next() {
				notes = append(notes, append([]byte(nil), v...))
			}
			after = append([]byte(nil), k...)
			return nil
		})
		if err != nil {
			return err
		}
		for _, n := range notes {
			if err := fn(n); err != nil {
				return err
			}
		}
		if len(notes) < scanMax {
			return nil
		}
	}
}

// leaves packs the entries and their hashes, 256 at a time.
func (x *exporter) leaves() error {
	for n := range archive.Tiles(x.size, 0) {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		width := archive.WidthAt(x.size, 0, n)
		raws, err := x.l.raws(n*archive.Width, width)
		if err != nil {
			return err
		}
		var bundle, tile []byte
		for _, raw := range raws {
			bundle = append(append(bundle, byte(len(raw)>>8), byte(len(raw))), raw...)
			sum := chain.Hash(raw)
			tile = append(tile, sum[:]...)
			archive.Refs(raw, func(sum [32]byte) { x.refs[sum] = struct{}{} })
			if bytes.Contains(raw, []byte(`"kind":"request.forgotten"`)) {
				if e, err := chain.Decode(raw); err == nil {
					for _, sum := range archive.Forgotten(e) {
						delete(x.refs, sum)
					}
				}
			}
		}
		if err := x.out.Put(archive.BundleName(n, width), bundle); err != nil {
			return err
		}
		if err := x.out.Put(archive.TileName(0, n, width), tile); err != nil {
			return err
		}
	}
	return nil
}

// raws copies the bytes of entries as they are stored.
func (l *Ledger) raws(from uint64, n int) ([][]byte, error) {
	raws := make([][]byte, 0, n)
	err := l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketNames[bChain]).Cursor()
		for k, v := c.Seek(u64(from)); len(raws) < n; k, v = c.Next() {
			at := from + uint64(len(raws))
			if !bytes.Equal(k, u64(at)) {
				return fmt.Errorf("read entry %d: %w: it is missing", at, ErrDamaged)
			}
			if len(v) > chain.MaxEntry {
				return fmt.Errorf("read entry %d: %w: it has %d bytes", at, ErrDamaged, len(v))
			}
			raws = append(raws, append([]byte(nil), v...))
		}
		return nil
	})
	return raws, err
}

// tiles packs the levels above, from the stored nodes.
func (x *exporter) tiles() error {
	for level := 1; x.size>>(8*level) > 0; level++ {
		for n := range archive.Tiles(x.size, level) {
			width := archive.WidthAt(x.size, level, n)
			var tile []byte
			err := x.l.view(func(tx *bbolt.Tx) error {
				node := nodes(tx)
				for i := range width {
					h, err := node(8*level, n*archive.Width+uint64(i))
					if err != nil {
						return err
					}
					tile = append(tile, h[:]...)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := x.out.Put(archive.TileName(level, n, width), tile); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobs packs what the exported entries name and is still there.
func (x *exporter) blobs() error {
	sums := slices.SortedFunc(maps.Keys(x.refs), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, sum := range sums {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		var data []byte
		err := x.l.view(func(tx *bbolt.Tx) error {
			if v := newTxState(tx).get(bBlobs, sum[:]); v != nil {
				data = append([]byte{}, v...)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		content, err := x.l.cod.unpack(sum, data)
		if err != nil && x.damaged != nil {
			x.damaged(err)
			continue
		}
		if err != nil {
			return err
		}
		if err := x.out.Put(archive.BlobName(sum), content); err != nil {
			return err
		}
	}
	return nil
}

// unpruned looks whether a blob may be missing for a reason that the export does
// not hold: an entry behind its end.
func (x *exporter) unpruned() error {
	for at := x.size; ; {
		part, err := x.l.slice(at, sliceEntries)
		if err != nil || len(part) == 0 {
			return err
		}
		for _, e := range part {
			if e.Kind == string(lemma.KBlobForgotten) || e.Kind == string(lemma.KRequestForgotten) {
				return ErrPruned
			}
		}
		at += uint64(len(part))
	}
}
