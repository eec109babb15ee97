package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// thorough makes the tests of damage and crashes try everything.
var thorough = flag.Bool("thorough", false, "every cut of 4 KiB, every page, 200 kills")

const inspectPath = "LEDGER_INSPECT"

// inspectChild is the process that looks at a file and may die of it.
func inspectChild(path string) {
	h := ledger.Inspect(context.Background(), path, ledger.InspectOptions{Key: testKey.Public().(ed25519.PublicKey)})
	out, _ := json.Marshal(h)
	fmt.Println(string(out))
	os.Exit(0)
}

// inspected asks a child about a file. died says that it gave no report.
func inspected(t *testing.T, path string) (h ledger.Health, died bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), inspectPath+"="+path)
	out, err := cmd.Output()
	if json.Unmarshal(out, &h) != nil {
		t.Logf("%s: no report, %v", filepath.Base(path), err)
		return ledger.Health{Damaged: true}, true
	}
	return h, false
}

// longEnough is a ledger of some hundred entries with blobs of all sizes.
func longEnough(t *testing.T) (b *bench, size uint64, raw []byte) {
	t.Helper()
	b = newBench(t)
	l := b.open(t)
	for i := range 120 {
		turn := fmt.Sprint("t_", i)
		text := strings.Repeat(fmt.Sprintf("%d block %d\n", i*7919, i), 1+i%9*40)
		add(t, l, ledger.Draft{Turn: turn, Body: opened("c")},
			ledger.Draft{Turn: turn, Body: lemma.TurnInjected{BlockBlob: sum(text), Anchor: "a"}, Blobs: [][]byte{[]byte(text)}},
			ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased, Error: strings.Repeat("e", i%5*4000)}})
	}
	size = l.Head().Size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	return b, size, raw
}

// TestRepairWhole: of a sound file nothing is lost.
func TestRepairWhole(t *testing.T) {
	b, size, raw := longEnough(t)
	r, p, err := ledger.Repair(t.Context(), b.path(), b.opt)
	if err != nil || p.Size != size || p.Linked != size || r.Had != size {
		t.Fatalf("%+v, %+v, %v", r, p, err)
	}
	if len(r.Aside) != 2 {
		t.Fatalf("moved aside: %v", r.Aside)
	}
	if kept, err := os.ReadFile(r.Aside[0]); err != nil || !bytes.Equal(kept, raw) {
		t.Errorf("the file that was moved aside is another, %v", err)
	}
	l := b.open(t)
	if v := verified(t, l); v.Forgotten != 0 || v.Blobs != 120 {
		t.Errorf("%+v", v)
	}
	es, err := l.Entries(size, 10)
	if err != nil || len(es) != 3 || es[1].Kind != "state.lost" || !strings.Contains(string(es[1].Body), fmt.Sprintf("%d entries were proved", size)) {
		t.Errorf("what the log says: %+v, %v", es, err)
	}
}

// TestDamagedFiles spoils a ledger in every way that a disk has. A child finds
// each before the daemon would touch the file, or the ledger opens and holds; a
// repair keeps a prefix that verifies, or says that there is none.
func TestDamagedFiles(t *testing.T) {
	b, size, raw := longEnough(t)
	const page = 16 << 10
	rng := rand.New(rand.NewPCG(4, 4))
	// The file grows ahead of what is in it; what lies behind is as good as cut.
	raw = raw[:(len(bytes.TrimRight(raw, "\x00"))+page)/page*page]
	type spoiled struct {
		name string
		edit func(b []byte) []byte
	}
	var cases []spoiled
	add := func(name string, edit func(b []byte) []byte) { cases = append(cases, spoiled{name, edit}) }
	step := 4 << 10
	if !*thorough {
		step = max(1, len(raw)/page/5) * page
	}
	for at := 0; at < len(raw); at += step {
		add(fmt.Sprintf("cut at %d", at), func(b []byte) []byte { return b[:at] })
	}
	for at := 0; at+page <= len(raw); at += page * max(1, step/page) {
		add(fmt.Sprintf("page %d zeroed", at/page), func(b []byte) []byte { clear(b[at : at+page]); return b })
	}
	for i := range len(raw) / step {
		add(fmt.Sprintf("garbage %d", i), func(b []byte) []byte {
			at := rng.IntN(len(b)/512) * 512
			for j := range min(512<<(i%6), len(b)-at) {
				b[at+j] = byte(rng.Uint32())
			}
			return b
		})
	}
	add("all garbage", func(b []byte) []byte {
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		return b
	})
	add("a page that leads to itself", func(b []byte) []byte {
		for at := 2 * page; at+page <= len(b); at += page {
			if b[at+8] == 0x01 { // a branch: its first child
				copy(b[at+16+8:at+16+16], b[at:at+8])
			}
		}
		return b
	})
	kept := 0
	if raced {
		cases = slices.DeleteFunc(cases, func(spoiled) bool { return rng.IntN(4) > 0 })
	}
	for _, c := range cases {
		spoilt := c.edit(bytes.Clone(raw))
		dir := t.TempDir()
		d := &bench{dir: dir, opt: b.opt}
		d.opt.CheckpointFile = filepath.Join(dir, "checkpoint")
		outside, err := os.ReadFile(b.opt.CheckpointFile)
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{d.path(): spoilt, d.opt.CheckpointFile: outside} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h, died := inspected(t, d.path())
		if h.Sound && len(spoilt) > 0 {
			// What a start does not look at may be spoiled: then verify says so.
			// Not under the race detector: its own code looks at each address that
			// bbolt reads, and a wild one ends the process where no guard reaches.
			if raced {
				continue
			}
			l, err := ledger.Open(d.path(), d.opt)
			if err != nil {
				t.Errorf("%s: the child found it sound, opening it says %v", c.name, err)
				continue
			}
			if _, err := l.Verify(t.Context(), nil); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			l.Close()
			continue
		}
		if !h.Damaged && len(spoilt) > 0 {
			t.Errorf("%s: neither sound nor damaged: %s", c.name, h.Reason)
		}
		r, p, err := ledger.Repair(t.Context(), d.path(), d.opt)
		if !died && p != h.Prefix && p.Size <= h.Prefix.Size {
			t.Errorf("%s: %+v was offered, %+v repaired", c.name, h.Prefix, p)
		}
		if errors.Is(err, ledger.ErrDamaged) && p.Size == 0 {
			if now, _ := os.ReadFile(d.path()); !bytes.Equal(now, spoilt) {
				t.Errorf("%s: nothing could be kept, and the file was changed", c.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		kept++
		if now, err := os.ReadFile(r.Aside[0]); err != nil || !bytes.Equal(now, spoilt) {
			t.Errorf("%s: the damaged file was not kept, %v", c.name, err)
		}
		if p.Size > size || r.Had != size {
			t.Errorf("%s: %+v, %+v", c.name, r, p)
		}
		verified(t, d.open(t))
	}
	t.Logf("%d spoiled files, of %d a prefix was kept", len(cases), kept)
	if kept < len(cases)/4 {
		t.Errorf("a prefix was kept of %d of %d files", kept, len(cases))
	}
}

// FuzzWreck: no file, however made, hurts the search for what is left of it.
func FuzzWreck(f *testing.F) {
	raw, err := os.ReadFile("testdata/v1.db")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[:64<<10], uint32(0), []byte{1})
	f.Add(raw[:128<<10], uint32(16384*3+8), []byte{2, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, file []byte, at uint32, b []byte) {
		if int(at) < len(file) {
			copy(file[at:], b)
		}
		path := filepath.Join(t.TempDir(), "l.db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.FindPrefix(t.Context(), path, testKey.Public().(ed25519.PublicKey)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBackupAndRestore(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, ledger.Draft{Turn: "t_1", Body: opened("c")})
	copyPath := filepath.Join(b.dir, "copy.db")
	f, err := os.Create(copyPath)
	if err != nil {
		t.Fatal(err)
	}
	size, err := l.Snapshot(t.Context(), f)
	if err != nil || size != l.Head().Size {
		t.Fatalf("%d entries of %d, %v", size, l.Head().Size, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if g, err := os.Create(filepath.Join(b.dir, "late.db")); err != nil {
		t.Fatal(err)
	} else if _, err := l.Snapshot(ended, g); !errors.Is(err, context.Canceled) {
		t.Errorf("a copy that nobody waits for: %v", err)
	}
	o := ledger.RestoreOptions{Options: b.opt}
	if _, err := ledger.Restore(t.Context(), copyPath, b.path(), o); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("restored under a running ledger: %v", err)
	}
	add(t, l, note("after the copy"))
	had := l.Head().Size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	untouched := func(what string) {
		t.Helper()
		if now, _ := os.ReadFile(b.path()); !bytes.Equal(now, before) {
			t.Errorf("%s: the ledger was changed", what)
		}
	}
	if _, err := ledger.Restore(t.Context(), copyPath, b.path(), o); !errors.Is(err, ledger.ErrOlder) {
		t.Errorf("an older backup: %v", err)
	}
	untouched("older")
	good, err := os.ReadFile(copyPath)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(b.dir, "bad.db")
	spoiled := bytes.Replace(good, []byte("verb:deploy"), []byte("verb:delete"), 1)
	if bytes.Equal(spoiled, good) {
		t.Fatal("nothing to spoil")
	}
	if err := os.WriteFile(bad, spoiled, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Older = true
	if _, err := ledger.Restore(t.Context(), bad, b.path(), o); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a spoiled backup: %v", err)
	}
	untouched("spoiled")
	r, err := ledger.Restore(t.Context(), copyPath, b.path(), o)
	if err != nil || r.Had != had || len(r.Aside) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if now, err := os.ReadFile(r.Aside[0]); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the ledger that gave way was not kept, %v", err)
	}
	l = b.open(t)
	if _, err := l.Turn("t_1"); err != nil {
		t.Error(err)
	}
	verified(t, l)
}
