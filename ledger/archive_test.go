package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
)

// grown makes a ledger of n entries with a blob here and there.
func grown(t testing.TB, n int) *ledger.Ledger {
	t.Helper()
	return grownAs(t, n, "shop")
}

func grownAs(t testing.TB, n int, named string) *ledger.Ledger {
	t.Helper()
	now := begin
	b := &bench{dir: t.TempDir(), opt: ledger.Options{Key: testKey, Version: "fixture", MmapSize: 64 << 20}}
	b.opt.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	l := b.open(t)
	for have := int(l.Head().Size); have < n; have = int(l.Head().Size) {
		var drafts []ledger.Draft
		for i := range min(200, n-have) {
			d := ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: named, Found: fmt.Sprintf("entry %d", have+i)}}
			if i%40 == 39 {
				content := fmt.Sprintf("output %d\n", have+i)
				d = ledger.Draft{Body: lemma.SensorInvoked{Contract: "0.9", Invocation: lemma.Invocation{ID: "i_1", SensorID: "s", StartedAt: lemma.Time(begin),
					Sandbox: "none", OutputHash: sum(content), OutputBlob: sum(content)}}, Blobs: [][]byte{[]byte(content)}}
			}
			drafts = append(drafts, d)
		}
		add(t, l, drafts...)
	}
	return l
}

// grownBlob is a log of n entries whose last but one names a blob.
func grownBlob(t testing.TB, n int) *ledger.Ledger {
	t.Helper()
	l := grown(t, n-2)
	content := "a blob\n"
	add(t, l, ledger.Draft{Body: lemma.SensorInvoked{Contract: "0.9", Invocation: lemma.Invocation{ID: "i_1", SensorID: "s", StartedAt: lemma.Time(begin),
		Sandbox: "none", OutputHash: sum(content), OutputBlob: sum(content)}}, Blobs: [][]byte{[]byte(content)}})
	add(t, l, ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: "a", Found: "b"}})
	return l
}

func exported(t testing.TB, l *ledger.Ledger) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := l.Export(context.Background(), &out, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func checked(t testing.TB, tar []byte, o archive.Options) archive.Report {
	t.Helper()
	r, err := archive.Check(context.Background(), archive.Stream(bytes.NewReader(tar)), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExportSizes exports logs around the places where tiles, levels and kept
// checkpoints begin, and imports each again.
func TestExportSizes(t *testing.T) {
	for _, n := range []int{1, 2, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2049} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := grown(t, n)
			tar := exported(t, l)
			r := checked(t, tar, archive.Options{})
			if head := l.Head(); !r.OK() || r.Size != head.Size || r.Root != fmt.Sprintf("%x", head.Root) || r.Origin != head.Origin {
				t.Fatalf("head %d %x: %+v", head.Size, head.Root, r)
			}
			if again := exported(t, l); !bytes.Equal(tar, again) {
				t.Fatal("the same log gave other bytes")
			}
			dir := t.TempDir()
			if err := archive.Unpack(context.Background(), bytes.NewReader(tar), filepath.Join(dir, "x")); err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(dir, "ledger.db")
			if _, err := ledger.Import(context.Background(), filepath.Join(dir, "x"), target, archive.Options{}); err != nil {
				t.Fatal(err)
			}
			back, err := ledger.Open(target, ledger.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer back.Close()
			if again := exported(t, back); !bytes.Equal(tar, again) {
				t.Fatal("the imported ledger exports other bytes")
			}
			_, err = ledger.Import(context.Background(), filepath.Join(dir, "x"), target, archive.Options{})
			if !errors.Is(err, ledger.ErrExists) {
				t.Fatalf("import over a ledger: %v", err)
			}
		})
	}
}

// TestImportContinues: who holds the key goes on where the export ended.
func TestImportContinues(t *testing.T) {
	l := grown(t, 700)
	dir := t.TempDir()
	file, target := filepath.Join(dir, "x.tar"), filepath.Join(dir, "ledger.db")
	if err := os.WriteFile(file, exported(t, l), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Import(context.Background(), file, target, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	on, err := ledger.Open(target, ledger.Options{Key: testKey, Now: func() time.Time { return begin }})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	add(t, on, ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: "a", Found: "b"}})
	r, err := on.Verify(context.Background(), nil)
	if err != nil || !r.OK() {
		t.Fatalf("%v %+v", err, r)
	}
}

// TestImportRefuses writes nothing for an export that does not hold.
func TestImportRefuses(t *testing.T) {
	tar := exported(t, grown(t, 300))
	tar[bytes.Index(tar, []byte("entry 77"))+6] ^= 1
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar")
	if err := os.WriteFile(file, tar, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.Import(context.Background(), file, filepath.Join(dir, "new", "ledger.db"), archive.Options{})
	if p, _ := r.First(); !errors.Is(err, ledger.ErrUnsound) || p.Seq != 77 {
		t.Fatalf("%v %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something was written: %v", err)
	}
}

// TestProof proves every entry of a log, and nothing else with the same proof.
func TestProof(t *testing.T) {
	l := grown(t, 300)
	keys, err := l.VerifierKeys()
	if err != nil {
		t.Fatal(err)
	}
	key := string(bytes.TrimSpace(keys))
	for seq := range uint64(300) {
		file, err := l.Proof(seq)
		if err != nil {
			t.Fatal(err)
		}
		p, err := archive.ParseProof(file)
		if err != nil {
			t.Fatal(err)
		}
		e, cp, err := p.Check(key)
		if err != nil || e.Seq != seq || cp.Size != 300 {
			t.Fatalf("%d: %v %d %d", seq, err, e.Seq, cp.Size)
		}
		p.Index++
		if _, _, err := p.Check(key); !errors.Is(err, archive.ErrFormat) && !errors.Is(err, chain.ErrFormat) {
			t.Fatalf("proof of %d proves %d: %v", seq, p.Index, err)
		}
	}
	if _, err := l.Proof(300); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
}

// TestOutside finds a log that was written anew by whoever holds its key.
func TestOutside(t *testing.T) {
	old, now := grown(t, 400), grownAs(t, 700, "other")
	r := checked(t, exported(t, now), archive.Options{Outside: [][]byte{old.Checkpoint()}})
	if p, _ := r.First(); r.OK() || p.Seq != 399 {
		t.Fatalf("a rewritten log was not found: %+v", r)
	}
	r = checked(t, exported(t, old), archive.Options{Outside: [][]byte{now.Checkpoint()}})
	if p, _ := r.First(); r.OK() || p.Seq != 400 {
		t.Fatalf("a cut log was not found: %+v", r)
	}
	r = checked(t, exported(t, grown(t, 700)), archive.Options{Outside: [][]byte{old.Checkpoint()}})
	if !r.OK() {
		t.Fatalf("%+v", r)
	}
}
