package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/verify"
	"go.etcd.io/bbolt"
)

// laterKey is the n-th key after testKey.
func laterKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func rotate(t testing.TB, l *ledger.Ledger, key ed25519.PrivateKey) ledger.Receipt {
	t.Helper()
	r, err := l.RotateKey(context.Background(), key, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func small(t testing.TB, l *ledger.Ledger, n int) {
	t.Helper()
	d := ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: "a", Found: "b"}}
	for ; n > 0; n -= min(n, 200) {
		add(t, l, slices.Repeat([]ledger.Draft{d}, min(n, 200))...)
	}
}

// TestRotateKey gives a log two more keys and looks at it from every side.
func TestRotateKey(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	origin := l.Head().Origin
	small(t, l, 3)
	early, err := l.Proof(1)
	if err != nil {
		t.Fatal(err)
	}
	before := l.Checkpoint()
	r := rotate(t, l, laterKey(1))
	if e, _, err := l.At(r.First); err != nil || e.Kind != string(lemma.KKeyRotated) {
		t.Fatalf("entry %d: %+v %v", r.First, e, err)
	}
	small(t, l, 1030) // checkpoints by the second key that are kept
	rotate(t, l, laterKey(2))
	small(t, l, 2)
	if l.Head().Origin != origin || !l.PublicKey().Equal(laterKey(2).Public()) {
		t.Errorf("origin %s, was %s", l.Head().Origin, origin)
	}
	for _, bad := range []ed25519.PrivateKey{testKey, laterKey(1), laterKey(2), nil} {
		if _, err := l.RotateKey(context.Background(), bad, "test"); err == nil {
			t.Error("a key came back")
		}
	}
	verified(t, l)

	keys, err := l.VerifierKeys()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(keys)), "\n")
	if len(lines) != 3 || strings.Count(string(keys), origin+"+") != 3 {
		t.Fatalf("keys:\n%s", keys)
	}
	late, err := l.Proof(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		proof []byte
		key   int
		holds bool
	}{{early, 0, true}, {early, 2, false}, {late, 2, true}, {late, 0, false}} {
		_, _, err := verify.Proof(c.proof, lines[c.key])
		p, perr := archive.ParseProof(c.proof)
		if perr == nil {
			_, _, perr = p.Check(lines[c.key])
		}
		if (err == nil) != c.holds || (perr == nil) != c.holds {
			t.Errorf("proof by key %d: %v, %v", c.key, err, perr)
		}
	}

	tar := exported(t, l)
	a, _ := agree(t, tar)
	if !a.OK() || len(a.Keys) != 3 || a.Origin != origin || len(a.Rotated) != 2 {
		t.Fatalf("%+v", a)
	}
	for i, line := range append(lines, mustLine(t, laterKey(9))) {
		o := archive.Options{Key: line, Outside: [][]byte{before}}
		if r, s := checked(t, tar, o), again(t, tar, verify.Options{Key: line, Outside: [][]byte{before}}); r.OK() != (i < 3) || (s.Count == 0) != (i < 3) {
			t.Errorf("key %d was asked for: %+v %+v", i, r.Problems, s.Problems)
		}
	}
	file, target := filepath.Join(t.TempDir(), "x.tar"), filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(file, tar, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := ledger.Import(context.Background(), file, target, archive.Options{}); err != nil {
		t.Fatalf("%v %+v", err, r)
	}
	o := b.opt
	o.CheckpointFile, o.Key = "", laterKey(2)
	on, err := ledger.Open(target, o)
	if err != nil {
		t.Fatal(err)
	}
	small(t, on, 1)
	verified(t, on)
	if err := on.Close(); err != nil {
		t.Fatal(err)
	}

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []ed25519.PrivateKey{testKey, laterKey(1), laterKey(9)} {
		b.opt.Key = key
		refused(t, b, ledger.ErrWrongKey)
	}
	b.opt.Key, b.opt.NextKey = laterKey(1), laterKey(2)
	small(t, b.open(t), 1)
}

func mustLine(t testing.TB, key ed25519.PrivateKey) string {
	t.Helper()
	line, err := chain.VerifierKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// A file from before the log changed keys is a rolled-back one, and a file that
// does not say where its keys were announced is damaged.
func TestRotatedFiles(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	small(t, l, 3)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	l = b.open(t)
	rotate(t, l, laterKey(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	b.opt.Key = laterKey(1)
	if err := os.WriteFile(b.path(), before, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, b, ledger.ErrRolledBack)
	for name, edited := range map[string]func(meta *bbolt.Bucket) error{
		"gone":    func(m *bbolt.Bucket) error { return m.Delete([]byte("rotated")) },
		"another": func(m *bbolt.Bucket) error { return m.Put([]byte("rotated"), make([]byte, 8)) },
		"odd":     func(m *bbolt.Bucket) error { return m.Put([]byte("rotated"), make([]byte, 7)) },
	} {
		if err := os.WriteFile(b.path(), after, 0o600); err != nil {
			t.Fatal(err)
		}
		edit(t, b, func(tx *bbolt.Tx) error { return edited(tx.Bucket([]byte("meta"))) })
		if l, err := ledger.Open(b.path(), b.opt); err == nil {
			l.Close()
			t.Errorf("%s: it opens", name)
		} else if !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if r, err := inspect(b); err == nil && r.OK() {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// TestRepairRotated: what can be proved of a wreck is proved by the key of then.
func TestRepairRotated(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	small(t, l, 1100)
	rotate(t, l, laterKey(1))
	small(t, l, 1100)
	size := l.Head().Size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b.opt.Key = laterKey(1)
	wreck(t, b)
	r, p, err := ledger.Repair(context.Background(), b.path(), b.opt)
	if err != nil || p.Size != size || r.Had != size {
		t.Fatalf("%v %+v %+v", err, r, p)
	}
	l = b.open(t)
	verified(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// Another installation's key proves nothing of it.
	p, err = ledger.FindPrefix(context.Background(), b.path(), laterKey(9).Public().(ed25519.PublicKey))
	if err != nil || p.Size != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestRestoreFromBeforeRotation: a backup that the key of today cannot go on from
// is not called damaged, and takes nothing's place.
func TestRestoreFromBeforeRotation(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	l := b.open(t)
	small(t, l, 3)
	backup := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(backup)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := l.Snapshot(ctx, f); err != nil {
		t.Fatal(err)
	}
	rotate(t, l, laterKey(1))
	size := l.Head().Size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b.opt.Key = laterKey(1)
	_, err = ledger.Restore(ctx, backup, b.path(), ledger.RestoreOptions{Options: b.opt, Older: true})
	if !errors.Is(err, ledger.ErrUnfit) || errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "before the log's key was changed") {
		t.Errorf("%v", err)
	}
	if h := ledger.Inspect(ctx, backup, ledger.InspectOptions{Full: true}); !h.Sound || h.Size != size-1 {
		t.Errorf("the backup by itself: %+v", h)
	}
	l = b.open(t)
	if verified(t, l); l.Head().Size < size {
		t.Errorf("%d entries are left of %d", l.Head().Size, size)
	}
}

// wreck makes a file that does not open but has all its leaves.
func wreck(t testing.TB, b *bench) {
	t.Helper()
	f, err := os.OpenFile(b.path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 2*16<<10), 0); err != nil {
		t.Fatal(err)
	}
}

// forged is an export that is made by hand: entries as given, and notes signed by
// whoever is said to.
type forged struct {
	raw   [][]byte
	roots []chain.Digest // over the first n
	blob  string         // the one blob, "" for none
}

func (f *forged) add(t testing.TB, kind, body string) {
	t.Helper()
	prev := chain.ZeroPrev
	if n := len(f.raw); n > 0 {
		prev = chain.Link(chain.Hash(f.raw[n-1]))
	}
	e := chain.Entry{V: chain.Version, Seq: uint64(len(f.raw)), TS: "2026-03-01T12:00:00.000000000Z", Kind: kind, Tenant: "local", Prev: prev, Body: json.RawMessage(body)}
	raw, err := chain.AppendEntry(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	f.raw = append(f.raw, raw)
	f.roots = append(f.roots, f.root())
}

func (f *forged) root() chain.Digest {
	tree := new(chain.Tree)
	for _, raw := range f.raw {
		tree.Append(chain.Hash(raw), nil)
	}
	return tree.Root()
}

// rotation is the body by which before hands over to after, here or as if size
// entries under root were before it.
func (f *forged) rotation(t testing.TB, size uint64, root chain.Digest, origin string, before, after ed25519.PrivateKey, harm func(*chain.Rotation)) string {
	t.Helper()
	r := chain.SignRotation(origin, size, root, before, after)
	if harm != nil {
		harm(&r)
	}
	b, err := json.Marshal(map[string]any{"contract": "0.9", "by": "test", "origin": r.Origin, "old": hexOf(r.Old), "new": hexOf(r.New), "by_old": r.ByOld, "by_new": r.ByNew})
	if err != nil {
		t.Fatal(err)
	}
	canon, err := chain.Canonical(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(canon)
}

// at is a checkpoint of the first n entries.
func (f *forged) at(t testing.TB, n int, origin string, key ed25519.PrivateKey) []byte {
	t.Helper()
	signed, err := chain.SignCheckpoint(chain.Checkpoint{Origin: origin, Size: uint64(n), Root: f.roots[n-1]}, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (f *forged) tar(t testing.TB, keys []string, head []byte, kept ...[]byte) []byte {
	t.Helper()
	var out, bundle, tile, notes bytes.Buffer
	for _, raw := range f.raw {
		bundle.Write([]byte{byte(len(raw) >> 8), byte(len(raw))})
		bundle.Write(raw)
		h := chain.Hash(raw)
		tile.Write(h[:])
	}
	for _, n := range kept {
		notes.Write(append(bytes.Clone(n), '\n'))
	}
	w := archive.NewWriter(&out)
	for _, p := range []struct {
		name string
		data []byte
	}{
		{archive.NameKeys, []byte(strings.Join(keys, "\n") + "\n")}, {archive.NameCheckpoint, head}, {archive.NameCheckpoints, notes.Bytes()},
		{archive.BundleName(0, len(f.raw)), bundle.Bytes()}, {archive.TileName(0, 0, len(f.raw)), tile.Bytes()},
	} {
		if err := w.Put(p.name, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if f.blob != "" {
		if err := w.Put("blobs/"+sum(f.blob), []byte(f.blob)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rotatedVector is one export of a log that changed its key after three entries.
type rotatedVector struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"`
}

type rotatedCase struct {
	rotatedVector
	tar []byte
}

// rotatedCases are the exports of testdata/vectors/rotated*.tar.
func rotatedCases(t *testing.T) []rotatedCase {
	old, next, third := testKey, laterKey(1), laterKey(2)
	origin := chain.Origin(old.Public().(ed25519.PublicKey))
	keys, err := chain.NewKeys(old.Public().(ed25519.PublicKey)).Rotate(0, chain.Digest{}, chain.SignRotation(origin, 0, chain.Digest{}, old, next))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := keys.Verifiers()
	if err != nil {
		t.Fatal(err)
	}
	const some = `{"contract":"0.9","found":"b","named":"a"}`
	build := func(harm func(*chain.Rotation), size uint64) *forged {
		f := &forged{}
		for range 3 {
			f.add(t, "scope.conflict", some)
		}
		f.add(t, "key.rotated", f.rotation(t, size, f.roots[2], origin, old, next, harm))
		f.add(t, "scope.conflict", some)
		return f
	}
	sound := build(nil, 3)
	head, kept := sound.at(t, 5, origin, next), sound.at(t, 3, origin, old)
	out := []rotatedCase{
		{rotatedVector{"rotated.tar", true, "the old key signed three entries, the new one five"}, sound.tar(t, lines, head, kept)},
		{rotatedVector{"rotated-late.tar", false, "the old key signed the checkpoint that covers the announcement"}, sound.tar(t, lines, head, kept, sound.at(t, 4, origin, old))},
		{rotatedVector{"rotated-old-head.tar", false, "the old key signed the newest checkpoint"}, sound.tar(t, lines, sound.at(t, 5, origin, old), kept)},
		{rotatedVector{"rotated-resigned.tar", false, "the new key signed what the old one had signed"}, sound.tar(t, lines, head, sound.at(t, 3, origin, next))},
		{rotatedVector{"rotated-unlisted.tar", false, "the new key is not listed"}, sound.tar(t, lines[:1], sound.at(t, 5, origin, old), kept)},
		{rotatedVector{"rotated-newborn.tar", false, "the log bears the new key's name"}, sound.tar(t, lines[1:], head)},
	}
	for _, c := range []struct {
		file, why string
		size      uint64
		harm      func(*chain.Rotation)
	}{
		{"rotated-by-old.tar", "the new key has not signed the announcement", 3, func(r *chain.Rotation) { r.ByNew = r.ByOld }},
		{"rotated-by-new.tar", "the old key has not signed the announcement", 3, func(r *chain.Rotation) { r.ByOld = r.ByNew }},
		{"rotated-moved.tar", "the announcement was signed for another place", 2, nil},
		{"rotated-other.tar", "the announcement is another log's", 3, func(r *chain.Rotation) { r.Origin = chain.Origin(third.Public().(ed25519.PublicKey)) }},
	} {
		f := build(c.harm, c.size)
		out = append(out, rotatedCase{rotatedVector{c.file, false, c.why}, f.tar(t, lines, f.at(t, 5, origin, next), f.at(t, 3, origin, old))})
	}
	plain := &forged{}
	for range 3 {
		plain.add(t, "scope.conflict", some)
	}
	return append(out, rotatedCase{rotatedVector{"rotated-never.tar", false, "a key is listed that no entry announced"}, plain.tar(t, lines, plain.at(t, 3, origin, old))})
}

// TestRotatedVectors: both implementations say of each export what its row says.
func TestRotatedVectors(t *testing.T) {
	cases := rotatedCases(t)
	if *makeVectors {
		rows := []rotatedVector{}
		for _, c := range cases {
			rows = append(rows, c.rotatedVector)
			if err := os.WriteFile(filepath.Join("testdata", "vectors", c.File), c.tar, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		writeVector(t, "rotated.json", rows)
	}
	rows := vectorsOf[rotatedVector](t, "rotated.json")
	if len(rows) != len(cases) {
		t.Fatalf("%d rows, %d cases", len(rows), len(cases))
	}
	for i, v := range rows {
		tar, err := os.ReadFile(filepath.Join("testdata", "vectors", v.File))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tar, cases[i].tar) {
			t.Errorf("%s is made anew as other bytes", v.File)
		}
		a, b := agree(t, tar)
		if a.OK() != v.OK {
			t.Errorf("%s (%s): %+v\n%+v", v.File, v.Why, a.Problems, b.Problems)
		}
		if p, bad := a.First(); bad && b.First().Seq != p.Seq {
			t.Errorf("%s: they name entries %d and %d: %s, %s", v.File, p.Seq, b.First().Seq, p.What, b.First().What)
		}
	}
}

// TestEachRotatedFlip changes each byte of an export with two keys.
func TestEachRotatedFlip(t *testing.T) {
	tar := rotatedCases(t)[0].tar
	want := places(t, tar)
	step := 3
	if raced || testing.Short() {
		step = 61
	}
	for at := 0; at < len(tar); at += step {
		tar[at] ^= 1
		a, b := agree(t, tar)
		tar[at] ^= 1
		p, bad := a.First()
		if !bad || p.Seq != want[at].seq || b.First().Seq != want[at].seq {
			t.Fatalf("byte %d in %s is about entry %d: %+v %+v", at, want[at].file, want[at].seq, a.Problems, b.Problems)
		}
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// TestRotateWhileAppending changes keys under load, while others verify and export.
func TestRotateWhileAppending(t *testing.T) {
	l := newBench(t).open(t)
	small(t, l, 10)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := l.Append(context.Background(), ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: "a", Found: "b"}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 5 {
		rotate(t, l, laterKey(byte(n+1)))
		if r, err := l.Verify(context.Background(), nil); err != nil || !r.OK() {
			t.Errorf("after %d: %+v %v", n, r, err)
		}
		var tar bytes.Buffer
		if _, err := l.Export(context.Background(), &tar, nil); err != nil {
			t.Error(err)
		}
		if a, _ := agree(t, tar.Bytes()); !a.OK() {
			t.Errorf("after %d: %+v", n, a.Problems)
		}
	}
	stop()
	wg.Wait()
	if n := l.Keys().Len(); n != 6 {
		t.Errorf("%d keys", n)
	}
	verified(t, l)
}

// FuzzRotation: whatever an announcement says, both implementations take it for
// the same.
func FuzzRotation(f *testing.F) {
	old, next := testKey, laterKey(1)
	origin := chain.Origin(old.Public().(ed25519.PublicKey))
	keys, err := chain.NewKeys(old.Public().(ed25519.PublicKey)).Rotate(0, chain.Digest{}, chain.SignRotation(origin, 0, chain.Digest{}, old, next))
	if err != nil {
		f.Fatal(err)
	}
	lines, err := keys.Verifiers()
	if err != nil {
		f.Fatal(err)
	}
	sound := &forged{}
	sound.add(f, "scope.conflict", `{"contract":"0.9"}`)
	good := sound.rotation(f, 1, sound.roots[0], origin, old, next, nil)
	f.Add(good)
	f.Add(strings.Replace(good, `"by_new"`, `"By_new"`, 1))
	f.Add(strings.Replace(good, `"old":"`, `"old":"0`, 1))
	f.Add(`{"old":1}`)
	f.Fuzz(func(t *testing.T, body string) {
		canon, err := chain.Canonical([]byte(body))
		if err != nil || len(canon) == 0 || canon[0] != '{' || len(canon) > 60000 {
			return
		}
		x := &forged{}
		x.add(t, "scope.conflict", `{"contract":"0.9"}`)
		x.add(t, "key.rotated", string(canon))
		a, _ := agree(t, x.tar(t, lines, x.at(t, 2, origin, next), x.at(t, 1, origin, old)))
		if a.OK() && !bytes.Contains(canon, []byte(hexOf(next.Public().(ed25519.PublicKey)))) {
			t.Fatalf("%s announces a key", canon)
		}
	})
}
