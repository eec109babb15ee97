package ledger

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"

	"gettier.dev/gettierd/ledger/chain"
	"go.etcd.io/bbolt"
)

const (
	// DefaultLimit and MaxLimit are the items of a page.
	DefaultLimit = 100
	MaxLimit     = 1000
	// scanMax is how many rows one call looks at, about 5 ms. A page may be short
	// and still have a Next.
	scanMax = 2000
	// sliceEntries is how many entries one read transaction hands over.
	sliceEntries = 256
)

// Page is one part of a list. AsOf is the sequence number of the last entry that
// the list has seen: watching from there misses nothing. Next is empty at the end.
type Page[T any] struct {
	AsOf  uint64
	Items []T
	Next  string
}

// list walks index backwards over all prefixes at once, by the key's rest behind
// the prefix, and reads the row of each from rows. The row's key is the index's
// value, or the rest of its key where it has none.
func list[T any](l *Ledger, index, rows bucket, prefixes [][]byte, limit int, cursor string, keep func(raw []byte) (T, bool)) (Page[T], error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return Page[T]{}, fmt.Errorf("list %s: cursor: %w", rows, ErrNotFound)
	}
	page := Page[T]{Items: []T{}}
	err = l.view(func(tx *bbolt.Tx) error {
		size, err := sizeOf(tx)
		if err != nil {
			return err
		}
		page.AsOf = max(size, 1) - 1
		s := newTxState(tx)
		streams := make([]*stream, 0, len(prefixes))
		for _, p := range prefixes {
			st := &stream{c: s.bucket(index).Cursor(), prefix: p}
			var k, v []byte
			if len(after) == 0 {
				k, v = lastWith(st.c, p)
			} else {
				k, v = before(st.c, p, append(append([]byte(nil), p...), after...))
			}
			if st.set(k, v, index != rows); k != nil {
				streams = append(streams, st)
			}
		}
		for seen := 0; len(page.Items) < limit && seen < scanMax; seen++ {
			var next *stream
			for _, st := range streams {
				if st.rest != nil && (next == nil || bytes.Compare(st.rest, next.rest) > 0) {
					next = st
				}
			}
			if next == nil {
				page.Next = ""
				return nil
			}
			page.Next = base64.RawURLEncoding.EncodeToString(next.rest)
			if raw := s.get(rows, next.row); raw != nil {
				if v, ok := keep(raw); ok {
					page.Items = append(page.Items, v)
				}
			}
			k, v := prevWith(next.c, next.prefix)
			next.set(k, v, index != rows)
		}
		for _, st := range streams {
			if st.rest != nil {
				return nil
			}
		}
		page.Next = ""
		return nil
	})
	if err != nil {
		return Page[T]{}, err
	}
	return page, nil
}

// stream is one prefix of an index while list walks it.
type stream struct {
	c         *bbolt.Cursor
	prefix    []byte
	rest, row []byte // rest is nil at the end
}

func (st *stream) set(k, v []byte, indexed bool) {
	if k == nil {
		st.rest, st.row = nil, nil
		return
	}
	st.rest = k[len(st.prefix):]
	if st.row = st.rest; indexed && len(v) > 0 {
		st.row = v
	}
}

// lastWith moves c to the last key with this prefix, nil when there is none.
func lastWith(c *bbolt.Cursor, prefix []byte) ([]byte, []byte) {
	if len(prefix) == 0 {
		return c.Last()
	}
	end := append([]byte(nil), prefix...)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		k, v := c.Last()
		return within(k, v, prefix)
	}
	end[len(end)-1]++
	return before(c, prefix, end)
}

// before moves c to the last key below key, if it has the prefix.
func before(c *bbolt.Cursor, prefix, key []byte) ([]byte, []byte) {
	if k, _ := c.Seek(key); k == nil {
		k, v := c.Last()
		return within(k, v, prefix)
	}
	k, v := c.Prev()
	return within(k, v, prefix)
}

func prevWith(c *bbolt.Cursor, prefix []byte) ([]byte, []byte) {
	k, v := c.Prev()
	return within(k, v, prefix)
}

func within(k, v, prefix []byte) ([]byte, []byte) {
	if k == nil || !bytes.HasPrefix(k, prefix) {
		return nil, nil
	}
	return k, v
}

// one reads a row by its key.
func one[T any](l *Ledger, b bucket, key []byte) (v T, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		raw := newTxState(tx).get(b, key)
		if raw == nil {
			return fmt.Errorf("read %s %.80q: %w", b, key, ErrNotFound)
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("read %s %.80q: %w: %w", b, key, ErrDamaged, err)
		}
		return nil
	})
	return v, err
}

// At returns an entry and the bytes that its hash is over.
func (l *Ledger) At(seq uint64) (e chain.Entry, raw []byte, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketNames[bChain]).Get(u64(seq))
		if v == nil {
			return fmt.Errorf("read entry %d: %w", seq, ErrNotFound)
		}
		raw = append([]byte(nil), v...)
		return nil
	})
	if err != nil {
		return chain.Entry{}, nil, err
	}
	if e, err = decodeAt(seq, raw); err != nil {
		return chain.Entry{}, nil, err
	}
	return e, raw, nil
}

func decodeAt(seq uint64, raw []byte) (chain.Entry, error) {
	e, err := chain.Decode(raw)
	if err == nil && e.Seq != seq {
		err = fmt.Errorf("%w: it says %d", chain.ErrFormat, e.Seq)
	}
	if err != nil {
		return chain.Entry{}, fmt.Errorf("read entry %d: %w: %w", seq, ErrDamaged, err)
	}
	return e, nil
}

// Entries returns up to limit entries from seq on, seq included.
func (l *Ledger) Entries(from uint64, limit int) ([]chain.Entry, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	out := make([]chain.Entry, 0, min(limit, sliceEntries))
	for limit > 0 {
		part, err := l.slice(from, min(limit, sliceEntries))
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			return out, nil
		}
		out = append(out, part...)
		from += uint64(len(part))
		limit -= len(part)
	}
	return out, nil
}

// Since returns up to limit entries after seq.
func (l *Ledger) Since(seq uint64, limit int) ([]chain.Entry, error) { return l.Entries(seq+1, limit) }

// slice copies entries out of one short read transaction and decodes them outside.
func (l *Ledger) slice(from uint64, limit int) ([]chain.Entry, error) {
	var raws [][]byte
	total := 0
	err := l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketNames[bChain]).Cursor()
		for k, v := c.Seek(u64(from)); k != nil && len(raws) < limit && total < 4<<20; k, v = c.Next() {
			if !bytes.Equal(k, u64(from+uint64(len(raws)))) {
				return fmt.Errorf("read entry %d: %w: it is missing", from+uint64(len(raws)), ErrDamaged)
			}
			raws = append(raws, append([]byte(nil), v...))
			total += len(v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]chain.Entry, len(raws))
	for i, raw := range raws {
		if out[i], err = decodeAt(from+uint64(i), raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// TurnEntries returns everything that was recorded of a turn, in order.
func (l *Ledger) TurnEntries(id string) ([]chain.Entry, error) {
	prefix := part(nil, id)
	var seqs []uint64
	var raws [][]byte
	err := l.view(func(tx *bbolt.Tx) error {
		s := newTxState(tx)
		c := s.bucket(bTurnEntries).Cursor()
		for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			if raw := s.get(bChain, k[len(prefix):]); raw != nil {
				seq, _ := fromU64(k[len(prefix):])
				seqs, raws = append(seqs, seq), append(raws, append([]byte(nil), raw...))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(raws) == 0 {
		return nil, fmt.Errorf("read entries of turn %.80q: %w", id, ErrNotFound)
	}
	out := make([]chain.Entry, len(raws))
	for i, raw := range raws {
		if out[i], err = decodeAt(seqs[i], raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Blob returns the bytes of this SHA-256, given in lower-case hex.
func (l *Ledger) Blob(sum string) ([]byte, error) {
	key, ok := parseSum(sum)
	if !ok {
		return nil, fmt.Errorf("read blob %.80q: %w", sum, ErrNotFound)
	}
	var data []byte
	err := l.view(func(tx *bbolt.Tx) error {
		v := newTxState(tx).get(bBlobs, key[:])
		if v == nil {
			return fmt.Errorf("read blob %s: %w", sum, ErrNotFound)
		}
		data = append([]byte(nil), v...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.cod.unpack(key, data)
}

// Watch yields the entries after since, then each new one as it is committed,
// without a gap; with a nil since only new ones. It reads from the file by
// cursor and is only woken by commits, so a reader that takes its time never
// holds up the writer. It ends without an error when ctx ends, with ErrClosed
// when the ledger closes, and with ErrNotFound when since is not in the chain.
func (l *Ledger) Watch(ctx context.Context, since *uint64) iter.Seq2[chain.Entry, error] {
	return func(yield func(chain.Entry, error) bool) {
		next := l.Head().Size
		if since != nil {
			if *since >= next {
				yield(chain.Entry{}, fmt.Errorf("watch since %d of %d: %w", *since, next, ErrNotFound))
				return
			}
			next = *since + 1
		}
		for {
			wake := l.committed() // taken before the read, so that a commit between the two is not missed
			part, err := l.slice(next, sliceEntries)
			if err != nil {
				yield(chain.Entry{}, err)
				return
			}
			for _, e := range part {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				next++
			}
			if len(part) > 0 {
				continue
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
		}
	}
}
