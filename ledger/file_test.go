package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

func note(text string) ledger.Draft {
	return ledger.Draft{Body: lemma.StateLost{Contract: lemma.Contract, Reason: text}}
}

// refused opens the ledger and expects this error, and the file as it was.
func refused(t *testing.T, b *bench, want error) {
	t.Helper()
	before, _ := os.ReadFile(b.path())
	l, err := ledger.Open(b.path(), b.opt)
	if err == nil {
		l.Close()
	}
	if !errors.Is(err, want) {
		t.Errorf("open: %v, want %v", err, want)
	}
	if after, _ := os.ReadFile(b.path()); !bytes.Equal(before, after) {
		t.Error("the refused file was changed")
	}
}

func TestTwoWritersRefused(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	refused(t, b, ledger.ErrLocked)
	add(t, l, note("still works"))
}

func TestOpenRefuses(t *testing.T) {
	t.Run("another key", func(t *testing.T) {
		b := newBench(t)
		b.open(t).Close()
		b.opt.Key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))
		refused(t, b, ledger.ErrWrongKey)
		b.opt.CheckpointFile = ""
		refused(t, b, ledger.ErrWrongKey)
	})
	t.Run("no key", func(t *testing.T) {
		b := newBench(t)
		b.opt.Key = nil
		if _, err := ledger.Open(b.path(), b.opt); err == nil {
			t.Error("opened")
		}
		if _, err := os.Stat(b.path()); err == nil {
			t.Error("a file was made")
		}
	})
	t.Run("no bbolt file", func(t *testing.T) {
		b := newBench(t)
		b.opt.CheckpointFile = ""
		for _, n := range []int{1, 100, 100000} {
			if err := os.WriteFile(b.path(), bytes.Repeat([]byte("x"), n), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, b, ledger.ErrDamaged)
		}
	})
	t.Run("a bbolt file of something else", func(t *testing.T) {
		b := newBench(t)
		edit(t, b, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("mail")); return err })
		refused(t, b, ledger.ErrDamaged)
	})
	t.Run("a newer format", func(t *testing.T) {
		b := newBench(t)
		b.open(t).Close()
		edit(t, b, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint64(nil, 2))
		})
		refused(t, b, ledger.ErrNewer)
	})
	t.Run("truncated", func(t *testing.T) {
		b := newBench(t)
		l := b.open(t)
		for range 20 {
			add(t, l, note(strings.Repeat("x", 20000)))
		}
		l.Close()
		if err := os.Truncate(b.path(), 100<<10); err != nil {
			t.Fatal(err)
		}
		refused(t, b, ledger.ErrDamaged)
	})
	t.Run("gone", func(t *testing.T) {
		b := newBench(t)
		b.open(t).Close()
		if err := os.Remove(b.path()); err != nil {
			t.Fatal(err)
		}
		refused(t, b, ledger.ErrRolledBack)
		if err := os.WriteFile(b.path(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, b, ledger.ErrRolledBack)
		// A person who says that it is new moves the checkpoint away.
		if err := os.Remove(b.opt.CheckpointFile); err != nil {
			t.Fatal(err)
		}
		b.open(t)
	})
	t.Run("rolled back", func(t *testing.T) {
		b := newBench(t)
		l := b.open(t)
		add(t, l, note("one"))
		l.Close()
		old, err := os.ReadFile(b.path())
		if err != nil {
			t.Fatal(err)
		}
		l = b.open(t)
		add(t, l, note("two"))
		l.Close()
		if err := os.WriteFile(b.path(), old, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, b, ledger.ErrRolledBack)
	})
	t.Run("rolled back and gone on", func(t *testing.T) {
		b := newBench(t)
		l := b.open(t)
		add(t, l, note("one"))
		l.Close()
		old, err := os.ReadFile(b.path())
		if err != nil {
			t.Fatal(err)
		}
		l = b.open(t)
		add(t, l, note("two"))
		l.Close()
		seen, err := os.ReadFile(b.opt.CheckpointFile)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.path(), old, 0o600); err != nil {
			t.Fatal(err)
		}
		// Whoever holds the key writes another story over the same length and more.
		away := b.opt.CheckpointFile
		b.opt.CheckpointFile = ""
		l = b.open(t)
		for range 5 {
			add(t, l, note("another two"))
		}
		l.Close()
		b.opt.CheckpointFile = away
		if err := os.WriteFile(away, seen, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, b, ledger.ErrForked)
	})
}

// edit changes the file behind the ledger's back.
func edit(t *testing.T, b *bench, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(b.path(), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// filled makes a closed ledger with a bit of everything and returns its size.
func filled(t *testing.T, b *bench) uint64 {
	t.Helper()
	l := b.open(t)
	for i := range 6 {
		turn := fmt.Sprintf("t_%d", i)
		add(t, l, ledger.Draft{Turn: turn, Body: opened("c1")})
		add(t, l, ledger.Draft{Turn: turn, Body: lemma.TurnInjected{Conversation: "c1", BlockBlob: sum(turn), Anchor: "a"}, Blobs: [][]byte{[]byte(turn)}})
		add(t, l, write(factOf("f_"+turn, "host", turn, 300, begin)))
		add(t, l, ledger.Draft{Turn: turn, Body: lemma.HoldOpened{Contract: lemma.Contract, Hold: holdOf("h_"+turn, "claim")}})
		add(t, l, ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased}})
	}
	size := l.Head().Size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return size
}

// inspect verifies without writing; an error of Open counts as found, too.
func inspect(b *bench) (ledger.Report, error) {
	o := b.opt
	o.ReadOnly, o.CheckpointFile = true, ""
	l, err := ledger.Open(b.path(), o)
	if err != nil {
		return ledger.Report{}, err
	}
	defer l.Close()
	return l.Verify(context.Background(), nil)
}

// TestVerifyNamesTheEntry changes one byte of each entry in turn, at several
// places, and expects Verify to name that entry first.
func TestVerifyNamesTheEntry(t *testing.T) {
	b := newBench(t)
	size := filled(t, b)
	clean, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := inspect(b); err != nil || !r.OK() || r.Size != size {
		t.Fatalf("untouched: %+v, %v", r, err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for seq := range size {
		for _, part := range []string{"body", "prev", "seq", "any"} {
			if seq%4 != 0 && seq+3 < size && part != "body" {
				continue // all of it for some, and for the last ones
			}
			where := ""
			edit(t, b, func(tx *bbolt.Tx) error {
				key := binary.BigEndian.AppendUint64(nil, seq)
				c := tx.Bucket([]byte("chain"))
				raw := bytes.Clone(c.Get(key))
				i := rng.IntN(len(raw))
				switch part {
				case "body":
					i = bytes.Index(raw, []byte(`"contract":"`)) + 13
				case "prev":
					i = bytes.Index(raw, []byte(`"prev":"`)) + 20
				case "seq":
					i = bytes.Index(raw, []byte(`"seq":`)) + 6
				}
				raw[i] ^= 1
				where = fmt.Sprintf("entry %d, %s, byte %d", seq, part, i)
				return c.Put(key, raw)
			})
			r, err := inspect(b)
			first, found := r.First()
			if err != nil || !found || first.Seq != seq {
				t.Errorf("%s: verify says %+v, %v", where, r, err)
			}
			if part == "any" {
				refused(t, b, ledger.ErrDamaged)
			}
			if err := os.WriteFile(b.path(), clean, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVerifyFindsEdits changes other things than entries.
func TestVerifyFindsEdits(t *testing.T) {
	b := newBench(t)
	size := filled(t, b)
	clean, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	bump := func(v []byte) []byte {
		v = bytes.Clone(v)
		v[len(v)/2] ^= 1
		return v
	}
	last := func(tx *bbolt.Tx, name string) (*bbolt.Bucket, []byte, []byte) {
		bk := tx.Bucket([]byte(name))
		k, v := bk.Cursor().Last()
		return bk, bytes.Clone(k), bytes.Clone(v)
	}
	first := func(tx *bbolt.Tx, name string) (*bbolt.Bucket, []byte, []byte) {
		bk := tx.Bucket([]byte(name))
		k, v := bk.Cursor().First()
		return bk, bytes.Clone(k), bytes.Clone(v)
	}
	for _, c := range []struct {
		name  string
		where string // what Verify says; with a ! Open refuses the file, too
		edit  func(tx *bbolt.Tx) error
	}{
		{"edited blob", "blob", func(tx *bbolt.Tx) error { bk, k, v := first(tx, "blobs"); return bk.Put(k, bump(v)) }},
		{"deleted blob", "blob", func(tx *bbolt.Tx) error { bk, k, _ := first(tx, "blobs"); return bk.Delete(k) }},
		{"edited tree node", "!tree", func(tx *bbolt.Tx) error { bk, k, v := first(tx, "tree"); return bk.Put(k, bump(v)) }},
		{"edited old checkpoint", "checkpoint", func(tx *bbolt.Tx) error {
			bk, k, v := last(tx, "checkpoints")
			k[7]--
			return bk.Put(k, v)
		}},
		{"edited fact", "fold", func(tx *bbolt.Tx) error {
			bk, k, v := first(tx, "facts")
			return bk.Put(k, bytes.Replace(v, []byte("measured"), []byte("told"), 1))
		}},
		{"deleted fact", "fold", func(tx *bbolt.Tx) error { bk, k, _ := first(tx, "facts"); return bk.Delete(k) }},
		{"invented fact", "fold", func(tx *bbolt.Tx) error { bk, _, v := first(tx, "facts"); return bk.Put([]byte("f_new"), v) }},
		{"invented answer", "fold", func(tx *bbolt.Tx) error { return tx.Bucket([]byte("answers")).Put([]byte("x"), []byte("{}")) }},
		{"turn closed by hand", "fold", func(tx *bbolt.Tx) error {
			bk, k, v := first(tx, "turns")
			return bk.Put(k, bytes.Replace(v, []byte("released"), []byte("caught"), 1))
		}},
		{"turn entry taken away", "fold", func(tx *bbolt.Tx) error { bk, k, _ := first(tx, "turn_entries"); return bk.Delete(k) }},
		{"turn entry invented", "fold", func(tx *bbolt.Tx) error {
			bk, k, _ := first(tx, "turn_entries")
			return bk.Put(append(k[:len(k)-1], 99), nil)
		}},
		{"unknown meta", "meta", func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("x"), nil) }},
		{"pruned by hand", "fold", func(tx *bbolt.Tx) error { return tx.Bucket([]byte("state")).Put([]byte("pruned"), make([]byte, 8)) }},
		{"last entry cut off", "!checkpoint", func(tx *bbolt.Tx) error { bk, k, _ := last(tx, "chain"); return bk.Delete(k) }},
		{"entry in the middle cut out", "!chain", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("chain")).Delete(binary.BigEndian.AppendUint64(nil, size/2))
		}},
		{"last checkpoint dropped", "!checkpoint", func(tx *bbolt.Tx) error { bk, k, _ := last(tx, "checkpoints"); return bk.Delete(k) }},
		{"last checkpoint edited", "!checkpoint", func(tx *bbolt.Tx) error { bk, k, v := last(tx, "checkpoints"); return bk.Put(k, bump(v)) }},
		{"unsigned", "!checkpoint", func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket([]byte("checkpoints")); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte("checkpoints"))
			return err
		}},
		{"re-signed with a later key", "!checkpoint", func(tx *bbolt.Tx) error {
			bk, k, v := last(tx, "checkpoints")
			cp, err := chain.OpenCheckpoint(v, testKey.Public().(ed25519.PublicKey))
			if err != nil {
				return err
			}
			later := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{5}, 32))
			cp.Origin = chain.Origin(later.Public().(ed25519.PublicKey))
			signed, err := chain.SignCheckpoint(cp, later)
			if err != nil {
				return err
			}
			return bk.Put(k, signed)
		}},
	} {
		edit(t, b, c.edit)
		r, err := inspect(b)
		p, found := r.First()
		where, atOpen := strings.CutPrefix(c.where, "!")
		if err != nil || !found || p.Where != where {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		if atOpen {
			refused(t, b, ledger.ErrDamaged)
		}
		if err := os.WriteFile(b.path(), clean, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlipAnywhere flips single bytes all over the file. Every flip is found, or
// it hit bytes that hold nothing: then everything reads as before. None may
// crash the program.
func TestFlipAnywhere(t *testing.T) {
	b := newBench(t)
	size := filled(t, b)
	clean, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	b.opt.MmapSize = len(clean)
	rng := rand.New(rand.NewPCG(3, 4))
	found, blind, kinds := 0, 0, map[string]int{}
	used := bytes.TrimRight(clean, "\x00")
	flips := 150
	if raced {
		flips = 30
	}
	for n := 0; n < flips; {
		i := rng.IntN(len(used))
		if used[i] == 0 && n%8 != 0 { // mostly where something stands
			continue
		}
		n++
		bad := bytes.Clone(clean)
		bad[i] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(b.path(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := inspect(b)
		if err == nil && r.OK() {
			blind++
			if r.Size != size {
				t.Errorf("byte %d: not found, yet the size is %d", i, r.Size)
			}
			kind := ledger.PageType(b.path(), i)
			kinds[kind]++
			// What bbolt itself keeps (free pages, the older meta page, unused flag
			// bits and the rest of a page) is not the ledger's.
			if clean[i] != 0 && kind != "free" && kind != "freelist" && kind != "meta" && kind != "unused" {
				t.Errorf("byte %d of a %s page: not found", i, kind)
			}
			continue
		}
		found++
	}
	t.Logf("found %d, without effect %d: %v", found, blind, kinds)
	if found == 0 {
		t.Error("no flip was found")
	}
}

// TestDroppedKeptCheckpoint: one checkpoint near each multiple of 1,024 stays.
func TestDroppedKeptCheckpoint(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	many := make([]ledger.Draft, 200)
	for i := range many {
		many[i] = note("x")
	}
	for range 21 {
		add(t, l, many...)
	}
	if r := verified(t, l); r.Checkpoints < 4 || r.Checkpoints > 7 {
		t.Errorf("%d checkpoints kept of %d entries", r.Checkpoints, r.Size)
	}
	l.Close()
	edit(t, b, func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("checkpoints")).Cursor()
		k, _ := c.Seek(binary.BigEndian.AppendUint64(nil, 2048))
		t.Logf("dropping the checkpoint of %d", binary.BigEndian.Uint64(k))
		return c.Delete()
	})
	r, err := inspect(b)
	if p, _ := r.First(); err != nil || p.Where != "checkpoint" || p.Seq != 2048 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFoldVersion: folds of an older version are rebuilt at open.
func TestFoldVersion(t *testing.T) {
	b := newBench(t)
	filled(t, b)
	edit(t, b, func(tx *bbolt.Tx) error {
		for _, name := range []string{"facts", "turns", "turn_entries", "holds"} {
			bk := tx.Bucket([]byte(name))
			for k, _ := bk.Cursor().First(); k != nil; k, _ = bk.Cursor().First() {
				if err := bk.Delete(k); err != nil {
					return err
				}
			}
		}
		return tx.Bucket([]byte("meta")).Put([]byte("fold"), make([]byte, 8))
	})
	verified(t, b.open(t))
}

func TestRebuild(t *testing.T) {
	b := newBench(t)
	size := filled(t, b)
	edit(t, b, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("facts")).Put([]byte("f_new"), []byte("{}")) })
	n, err := ledger.Rebuild(context.Background(), b.path(), b.opt)
	if err != nil || n != size+1 {
		t.Fatalf("rebuilt %d of %d, %v", n, size, err)
	}
	if r, err := inspect(b); err != nil || !r.OK() {
		t.Fatalf("%+v, %v", r, err)
	}
}
