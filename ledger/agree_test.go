package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/verify"
)

// again checks with the second implementation.
func again(t testing.TB, tar []byte, o verify.Options) verify.Report {
	t.Helper()
	r, err := verify.Stream(context.Background(), bytes.NewReader(tar), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// agree runs both and fails when they do not say the same of this tar.
func agree(t testing.TB, tar []byte) (archive.Report, verify.Report) {
	t.Helper()
	a, b := checked(t, tar, archive.Options{}), again(t, tar, verify.Options{})
	if a.OK() != (b.Count == 0) {
		t.Fatalf("they disagree:\n%+v\n%+v", a, b)
	}
	if a.OK() && (a.Root != b.Root || a.Size != b.Size || a.Tiles != b.Tiles || a.Checkpoints != b.Checkpoints || a.Blobs != b.Blobs || a.Forgotten != b.Forgotten || a.Origin != b.Origin) {
		t.Fatalf("they agree on other things:\n%+v\n%+v", a, b)
	}
	return a, b
}

func TestIndependentAgrees(t *testing.T) {
	for _, n := range []int{1, 2, 3, 255, 256, 257, 1025, 66000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := grown(t, n)
			tar := exported(t, l)
			a, _ := agree(t, tar)
			if !a.OK() || a.Root != fmt.Sprintf("%x", l.Head().Root) {
				t.Fatalf("%+v", a)
			}
			dir := filepath.Join(t.TempDir(), "x")
			if err := archive.Unpack(context.Background(), bytes.NewReader(tar), dir); err != nil {
				t.Fatal(err)
			}
			b, err := verify.Path(context.Background(), dir, verify.Options{Key: a.Keys[0], Outside: [][]byte{l.Checkpoint()}})
			if err != nil || b.Count != 0 || b.Root != a.Root || b.Blobs != a.Blobs {
				t.Fatalf("%v %+v", err, b)
			}
		})
	}
}

// TestEachFlip changes each byte of an export, one at a time: both find it, and
// both name the entry that it concerns.
func TestEachFlip(t *testing.T) {
	for _, n := range []int{7, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := grown(t, n)
			tar := exported(t, l)
			step := 1
			switch {
			case n > 100 || testing.Short():
				step = 331
			case raced:
				step = 23
			}
			if n < 100 {
				// Small, but with a blob.
				tar = exported(t, grownBlob(t, n))
			}
			want := places(t, tar)
			for at := 0; at < len(tar); at += step {
				for _, bit := range []byte{1, 0x20} {
					tar[at] ^= bit
					a, b := agree(t, tar)
					tar[at] ^= bit
					p, bad := a.First()
					if !bad {
						t.Fatalf("byte %d of %d, bit %02x, in %s: not found", at, len(tar), bit, want[at].file)
					}
					if q := b.First(); p.Seq != want[at].seq || q.Seq != want[at].seq {
						t.Fatalf("byte %d, bit %02x, in %s is about entry %d:\n%+v\n%+v", at, bit, want[at].file, want[at].seq, p, *q)
					}
				}
			}
		})
	}
}

// TestFlipsInABigExport changes bytes here and there in a log of several tiles of
// the second level, with -thorough many in a log of more than one full one.
func TestFlipsInABigExport(t *testing.T) {
	n, flips := 2500, 10
	if *thorough {
		n, flips = 66_000, 200
	}
	tar := exported(t, grown(t, n))
	want := places(t, tar)
	draw := rand.New(rand.NewPCG(1, 2)) // the same bytes each time
	for range flips {
		at, bit := draw.IntN(len(tar)), byte(1)<<draw.IntN(8)
		tar[at] ^= bit
		a, b := agree(t, tar)
		tar[at] ^= bit
		p, bad := a.First()
		q := b.First()
		if !bad || q == nil || p.Seq != want[at].seq || q.Seq != want[at].seq {
			t.Errorf("byte %d of %d, bit %02x, in %s is about entry %d:\n%+v\n%+v", at, len(tar), bit, want[at].file, want[at].seq, p, q)
		}
	}
}

// place says which entry a byte is about.
type whereabout struct {
	file string
	seq  uint64
}

// places reads the layout of a tar byte by byte, with nothing but FORMAT.md.
func places(t *testing.T, tar []byte) []whereabout {
	t.Helper()
	out := make([]whereabout, len(tar))
	fill := func(from, to int, w whereabout) {
		for i := from; i < to; i++ {
			out[i] = w
		}
	}
	named := map[string]uint64{}
	var last uint64
	at := 0
	for tar[at] != 0 {
		name, _, _ := strings.Cut(string(tar[at:at+100]), "\x00")
		var size int
		if _, err := fmt.Sscanf(string(tar[at+124:at+135]), "%o", &size); err != nil {
			t.Fatal(err)
		}
		end := at + 512 + (size+511)/512*512
		w := whereabout{name, 0}
		var n uint64
		for _, kind := range []string{"tile/entries/", "tile/0/"} {
			if rest, ok := strings.CutPrefix(name, kind); ok {
				if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
					t.Fatal(err)
				}
				w.seq = 256 * n
			}
		}
		if sum, ok := strings.CutPrefix(name, "blobs/"); ok {
			w.seq = named[sum]
		}
		fill(at, end, w)
		switch body := at + 512; {
		case strings.HasPrefix(name, "tile/entries/"):
			seq := 256 * n
			for i := body; i < body+size; seq++ {
				k := int(tar[i])<<8 | int(tar[i+1])
				fill(i, i+2+k, whereabout{name, seq})
				archive.Refs(tar[i+2:i+2+k], func(sum [32]byte) { named[hex.EncodeToString(sum[:])] = seq })
				i, last = i+2+k, seq
			}
		case strings.HasPrefix(name, "tile/0/"):
			for i := range size {
				out[body+i] = whereabout{name, 256*n + uint64(i/32)}
			}
		}
		at = end
	}
	fill(at, len(tar), whereabout{"the end", last})
	return out
}

// FuzzIndependentJSON holds both canonicalisers against each other.
func FuzzIndependentJSON(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.0,-0,1e21,1e-7,5e-324,"\u00e9\ud83d\ude00\/\u001f"],"":null}`, `[9007199254740992,9007199254740993,-9007199254740992]`,
		`{"\ud83d\ude00":1,"\ufb33":2,"a":3,"\u0061":4}`, `"\ud800"`, "\"\xff\"", `1e400`, `-0.0`, `{"a":{"b":[{},[]]}}`, "\t[ ]\n", `01`, `1.`, `"\x"`, `{"a":1,}`, "\ufeff1", `nul`, `1e-400`, `0e5`,
		`{"a\u0000":1,"a":2}`, "\"\u2028\x7f\"", strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat("[", 10000) + strings.Repeat("]", 10000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := chain.Canonical(in)
		b, errB := verify.Canonical(in)
		if (errA == nil) != (errB == nil) || errA == nil && !bytes.Equal(a, b) {
			t.Fatalf("%q\n%q %v\n%q %v", in, a, errA, b, errB)
		}
	})
}

// FuzzIndependentEntry holds both readers of entries against each other.
func FuzzIndependentEntry(f *testing.F) {
	const good = `{"body":{"a":[1,"x"]},"kind":"turn.opened","prev":"00000000000000000000000000000000000000000000000000000000000000ab","seq":3,"tenant":"local","ts":"2026-02-28T23:59:59.000000001Z","turn":"t_1","v":1}`
	f.Add([]byte(good))
	for _, r := range [][2]string{{`"seq":3`, `"seq":0`}, {`"seq":3`, `"seq":9007199254740992`}, {`,"turn":"t_1"`, ``}, {`"turn":"t_1"`, `"turn":""`}, {`.000000001Z`, `,000000001Z`},
		{`02-28`, `02-29`}, {`2026-02-28`, `2024-02-29`}, {`T23`, `T24`}, {`59.0`, `60.0`}, {`{"a":[1,"x"]}`, `[]`}, {`{"a":[1,"x"]}`, `{"a": 1}`}, {`"v":1`, `"v":2`}, {`"v":1`, `"v":1,"w":1`},
		{`local`, `lo\u0063al`}, {`00ab`, `00AB`}, {`"kind":"turn.opened"`, `"kind":1`}, {`{"a"`, `{"\u0061"`}, {`"ts":"2026`, `"ts":"0000`}} {
		f.Add([]byte(strings.Replace(good, r[0], r[1], 1)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := chain.Decode(in)
		b, errB := verify.ParseEntry(in)
		if (errA == nil) != (errB == nil) || errA == nil && (a.Seq != b.Seq || a.Kind != b.Kind || a.Prev != b.Prev || !bytes.Equal(a.Body, b.Body)) {
			t.Fatalf("%q\n%+v %v\n%+v %v", in, a, errA, b, errB)
		}
	})
}

// FuzzIndependentCheckpoint holds both readers of notes against each other.
func FuzzIndependentCheckpoint(f *testing.F) {
	pub := testKey.Public().(ed25519.PublicKey)
	line, err := chain.VerifierKey(pub)
	if err != nil {
		f.Fatal(err)
	}
	key, err := verify.ParseKey(line)
	if err != nil {
		f.Fatal(err)
	}
	signed, err := chain.SignCheckpoint(chain.Checkpoint{Origin: chain.Origin(pub), Size: 12, Root: [32]byte{1}}, testKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add(append(append([]byte(nil), signed...), "— other.example AAAAAAAAAA==\n"...))
	f.Add(bytes.Replace(signed, []byte("\n12\n"), []byte("\n012\n"), 1))
	f.Add(signed[:len(signed)-1])
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := chain.OpenCheckpoint(in, pub)
		b, errB := verify.OpenCheckpoint(in, key)
		if (errA == nil) != (errB == nil) || errA == nil && (a.Size != b.Size || a.Root != b.Root) {
			t.Fatalf("%q\n%+v %v\n%+v %v", in, a, errA, b, errB)
		}
	})
}

// FuzzIndependentExport feeds both whole exports with bytes put over them.
func FuzzIndependentExport(f *testing.F) {
	tar := exported(f, grownBlob(f, 5))
	f.Add(uint(512), []byte("x"))
	f.Add(uint(len(tar)-1024), []byte{})
	f.Fuzz(func(t *testing.T, at uint, over []byte) {
		changed := bytes.Clone(tar)
		if len(over) == 0 {
			changed = changed[:at%uint(len(tar))]
		} else {
			copy(changed[at%uint(len(tar)):], over)
		}
		a, _ := agree(t, changed)
		if a.OK() && !bytes.Equal(tar, changed) {
			t.Fatalf("a changed export passes: %d %q", at, over)
		}
	})
}

// TestIndependentProof: both take the proofs that hold, and neither one that
// was changed anywhere.
func TestIndependentProof(t *testing.T) {
	l := grown(t, 300)
	keys, err := l.VerifierKeys()
	if err != nil {
		t.Fatal(err)
	}
	key := string(bytes.TrimSpace(keys))
	for _, seq := range []uint64{0, 1, 255, 256, 299} {
		file, err := l.Proof(seq)
		if err != nil {
			t.Fatal(err)
		}
		if e, c, err := verify.Proof(file, key); err != nil || e.Seq != seq || c.Size != 300 {
			t.Fatalf("%d: %v", seq, err)
		}
		for at := range file {
			file[at] ^= 1
			_, _, err := verify.Proof(file, key)
			p, perr := archive.ParseProof(file)
			if perr == nil {
				_, _, perr = p.Check(key)
			}
			if err == nil || perr == nil {
				t.Fatalf("entry %d, byte %d: %v, %v", seq, at, err, perr)
			}
			file[at] ^= 1
		}
	}
}

// TestIndependentFiles: what a directory lacks, has too many or links to.
func TestIndependentFiles(t *testing.T) {
	tar := exported(t, grownBlob(t, 300))
	for name, harm := range map[string]func(dir string) error{
		"a file too many":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600) },
		"no bundle":         func(dir string) error { return os.Remove(filepath.Join(dir, "tile/entries/000")) },
		"no tile":           func(dir string) error { return os.Remove(filepath.Join(dir, "tile/1/000.p/1")) },
		"no keys":           func(dir string) error { return os.Remove(filepath.Join(dir, "keys")) },
		"no checkpoint":     func(dir string) error { return os.Remove(filepath.Join(dir, "checkpoint")) },
		"no checkpoints":    func(dir string) error { return os.Remove(filepath.Join(dir, "checkpoints")) },
		"no blobs":          func(dir string) error { return os.RemoveAll(filepath.Join(dir, "blobs")) },
		"a link out of it":  func(dir string) error { return relink(filepath.Join(dir, "checkpoint")) },
		"a bundle is empty": func(dir string) error { return os.Truncate(filepath.Join(dir, "tile/entries/000"), 0) },
		"a partial tile too many": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tile/0/000.p"), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "x")
			if err := archive.Unpack(context.Background(), bytes.NewReader(tar), dir); err != nil {
				t.Fatal(err)
			}
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			r, closer, err := archive.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			a, errA := archive.Check(context.Background(), r, archive.Options{})
			b, errB := verify.Path(context.Background(), dir, verify.Options{})
			if errA != nil || errB != nil || a.OK() || b.Count == 0 {
				t.Fatalf("%v %v\n%+v\n%+v", errA, errB, a, b)
			}
		})
	}
}

func relink(path string) error {
	b, err := os.ReadFile(path)
	outside := filepath.Join(filepath.Dir(filepath.Dir(path)), "outside")
	return errors.Join(err, os.WriteFile(outside, b, 0o600), os.Remove(path), os.Symlink(outside, path))
}
