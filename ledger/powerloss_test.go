package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/powerloss"
	"gettier.dev/gettierd/ledger/verify"
)

const powerDir = "LEDGER_POWER_DIR"

// powered is a ledger whose file begins small, so that it has to grow.
func powered(dir string) *bench {
	return &bench{dir: dir, opt: ledger.Options{Key: testKey, CheckpointFile: filepath.Join(dir, "keys", "checkpoint"), MmapSize: 128 << 10}}
}

// appendUntilDark is the process whose writes are recorded. It makes a ledger,
// appends to it from several goroutines, closes it, opens it again, goes on and
// ends without closing. It prints each sequence number after its commit.
func appendUntilDark(dir string) {
	b := powered(dir)
	var out sync.Mutex
	for run, each := range []int{6, 4} {
		l, err := ledger.Open(b.path(), b.opt)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var wg sync.WaitGroup
		for p := range 4 {
			wg.Go(func() {
				for i := range each {
					turn := fmt.Sprintf("t_%d_%d_%d", run, p, i)
					text := []byte(strings.Repeat(turn+" ", 1+i*700))
					r, err := l.Append(context.Background(), ledger.Draft{Turn: turn, Body: opened(fmt.Sprint("c", p))},
						ledger.Draft{Turn: turn, Body: lemma.TurnInjected{BlockBlob: sum(string(text)), Anchor: "a"}, Blobs: [][]byte{text}},
						ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased, Error: strings.Repeat("e", i*2000)}})
					if err != nil {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
					out.Lock()
					fmt.Println(r.Last)
					out.Unlock()
				}
			})
		}
		wg.Wait()
		if run == 1 {
			_, err = l.Forget(context.Background(), time.Now())
		} else {
			err = l.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// after opens what a power cut has left and says what is wrong with it. It has
// acknowledged all entries up to acked; whole is how it went on.
func after(dir string, acked int64, whole *ledger.Ledger, second bool) (err error) {
	b := powered(dir)
	l, err := ledger.Open(b.path(), b.opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if size := l.Head().Size; int64(size) <= acked {
		return fmt.Errorf("%d was acknowledged, %d entries are left", acked, size)
	}
	if acked >= 0 {
		got, err := l.RootAt(uint64(acked) + 1)
		if err != nil {
			return err
		}
		if want, err := whole.RootAt(uint64(acked) + 1); err != nil || got != want {
			return fmt.Errorf("the acknowledged entries are others, %w", err)
		}
	}
	r, err := l.Verify(context.Background(), nil)
	if err != nil || !r.OK() {
		return fmt.Errorf("verify: %+v, %w", r.Problems, err)
	}
	if !second {
		return nil
	}
	var tar bytes.Buffer
	if _, err := l.Export(context.Background(), &tar, nil); err != nil {
		return err
	}
	v, err := verify.Stream(context.Background(), &tar, verify.Options{})
	if err != nil || v.Count > 0 {
		return fmt.Errorf("second verifier: %+v, %w", v, err)
	}
	return nil
}

// inMemory is a directory where a sync costs nothing, if there is one.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "ledger-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestPowerLoss cuts the power at every sync of a running ledger, several times,
// each time with other sectors written of what no sync has covered. All that was
// acknowledged must be there. The same run without its syncs, or without any one
// kind of them, must fail, or this test would see nothing.
func TestPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("traces a process")
	}
	root := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), powerDir+"="+root)
	cmd.Stderr = os.Stderr
	rec, err := powerloss.Record(t.Context(), cmd, root)
	if errors.Is(err, powerloss.ErrTrace) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	b := powered(root)
	b.opt.ReadOnly = true
	whole := b.open(t)
	rounds, scratch := 1, inMemory(t)
	if *thorough {
		rounds = 40
	}
	n := 0
	// cut tries every cut of a recording and returns how often something was lost.
	// It ends early when fails says so.
	cut := func(rec *powerloss.Recording, rounds int, fails func(what string, err error) bool) {
		rng := rand.New(rand.NewPCG(7, 7))
		for _, at := range rec.Cuts() {
			acked := int64(-1)
			for _, line := range strings.Fields(string(rec.Marks(at))) {
				v, err := strconv.ParseInt(line, 10, 64)
				if err != nil {
					t.Fatalf("the process says %q", line)
				}
				acked = max(acked, v)
			}
			for range rounds {
				for _, how := range powerloss.Survivals {
					n++
					dir := filepath.Join(scratch, strconv.Itoa(n))
					if err := os.Mkdir(dir, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := rec.Leave(dir, at, how, rng); err != nil {
						t.Fatal(err)
					}
					if err := after(dir, acked, whole, n%8 == 0); err != nil {
						if fails(fmt.Sprintf("cut %d, %s of the rest is left, %d acknowledged", at, how, acked), err) {
							return
						}
					}
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	cut(rec, rounds, func(what string, err error) bool { t.Errorf("%s: %v", what, err); return false })
	t.Logf("%d writes, %d cuts, %d ways to come back", rec.Writes(), len(rec.Cuts()), n)
	for _, c := range []struct {
		name string
		drop func(path string, n int) bool
	}{
		{"no sync of the file", func(path string, n int) bool { return path == "ledger.db" }},
		{"no sync of what a commit points at", func(path string, n int) bool { return path == "ledger.db" && n%2 == 0 }},
		{"no sync of the commit itself", func(path string, n int) bool { return path == "ledger.db" && n%2 == 1 }},
		{"no sync of the directory", func(path string, n int) bool { return path == "." }},
	} {
		lost := ""
		cut(rec.WithoutSyncs(c.drop), 1, func(what string, err error) bool { lost = fmt.Sprintf("%s: %v", what, err); return true })
		if lost == "" {
			t.Errorf("%s, and nothing was lost: this test sees nothing", c.name)
		}
		t.Logf("%s: %s", c.name, lost)
	}
}
