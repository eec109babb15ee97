package ledger_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// onSmallDisk is a bench on a file system of 4 MiB. fill takes all of it.
func onSmallDisk(t *testing.T) (b *bench, fill func() (free func())) {
	t.Helper()
	b = newBench(t)
	if err := syscall.Mount("tmpfs", b.dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("a disk of one's own needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(b.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return b, func() func() {
		path := filepath.Join(b.dir, "filler")
		if err := os.WriteFile(path, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		return func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// untilRefused appends until the ledger has used up its free pages.
func untilRefused(t *testing.T, l *ledger.Ledger) (appended int) {
	t.Helper()
	for ; appended < 1000; appended++ {
		if _, err := l.Append(context.Background(), note(strings.Repeat("x", 30000))); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			return appended
		}
	}
	t.Fatal("a full disk takes everything")
	return 0
}

func TestSmallDisk(t *testing.T) {
	b, fill := onSmallDisk(t)
	l := b.open(t)
	add(t, l, note("before"))
	if _, bad := l.Trouble(); bad {
		t.Error("trouble with room")
	}
	free := fill()
	n := uint64(untilRefused(t, l))
	size := l.Head().Size
	if size != 2+n {
		t.Errorf("%d entries, %d were acknowledged", size, 2+n)
	}
	got, bad := l.Trouble()
	if !bad || got.Lost != 1 || got.Halted || got.Reason() != "no space left on device" || !got.Since.Equal(begin) {
		t.Errorf("trouble: %+v, %t", got, bad)
	}
	if room, err := l.Room(); err != nil || room >= 1<<20 {
		t.Errorf("room for %d, %v", room, err)
	}
	// Reading goes on, and what is there is whole.
	verified(t, l)
	if _, err := l.Append(context.Background(), note(strings.Repeat("x", 30000))); err == nil {
		t.Error("another was taken")
	}
	free()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, bad := l.Trouble(); !bad {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the trouble does not end")
		}
		<-time.After(20 * time.Millisecond)
	}
	add(t, l, note("after"))
	es, err := l.Entries(size, 10)
	if err != nil || len(es) != 2 || es[0].Kind != string(lemma.KStateLost) || !strings.Contains(string(es[0].Body), "2 entries could not be written from 2026-03-01T12:00:00") {
		t.Errorf("what the chain says: %+v, %v", es, err)
	}
	verified(t, l)
	// A stop on a full disk is an unclean one, and no more.
	free = fill()
	untilRefused(t, l)
	_ = l.Close() // it cannot say so in the file
	free()
	verified(t, b.open(t))
}

// TestHalted: a commit that failed after its pages were written may be on the
// disk or not. Nothing is written over it.
func TestHalted(t *testing.T) {
	b, fill := onSmallDisk(t)
	l := b.open(t)
	if err := ledger.Overtake(l); err != nil {
		t.Fatal(err)
	}
	free := fill()
	for range 100 {
		if _, err := l.Append(context.Background(), note(strings.Repeat("x", 60000))); err != nil {
			break
		}
		if err := ledger.Overtake(l); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	free()
	for range 2 {
		if _, err := l.Append(context.Background(), note("x")); !errors.Is(err, ledger.ErrHalted) {
			t.Errorf("append: %v", err)
		}
	}
	if got, bad := l.Trouble(); !bad || !got.Halted || !strings.Contains(got.Reason(), "opened again") {
		t.Errorf("trouble: %+v, %t", got, bad)
	}
	if err := l.Close(); !errors.Is(err, ledger.ErrHalted) {
		t.Errorf("close: %v", err)
	}
}
