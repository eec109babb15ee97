package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs a watcher on real events and returns what it reports.
func start(t *testing.T, o Options, paths ...string) (*Watcher, <-chan Content) {
	t.Helper()
	w := New(o)
	w.Set(paths...)
	out := make(chan Content, 64) // more than any test here reports
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, func(c Content) { out <- c }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
	return w, out
}

func next(t *testing.T, out <-chan Content) Content {
	t.Helper()
	select {
	case c := <-out:
		return c
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was reported")
		return Content{}
	}
}

// Events, no polling within the test's time.
var eventful = Options{Debounce: 20 * time.Millisecond, Gap: 10 * time.Millisecond, Poll: time.Hour}

func TestReportsWhatSettled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	_, out := start(t, eventful, path)
	if c := next(t, out); c.Exists || c.Err != nil {
		t.Fatalf("a missing file: %+v", c)
	}
	write(t, path, "one")
	if c := next(t, out); string(c.Data) != "one" {
		t.Fatalf("after creation: %q", c.Data)
	}
	// Atomic renames, again and again: a watch on the file would die at the first.
	for i := range 5 {
		tmp := filepath.Join(dir, "tmp")
		text := fmt.Sprint("rename ", i)
		write(t, tmp, text)
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
		if c := next(t, out); string(c.Data) != text {
			t.Fatalf("after rename %d: %q", i, c.Data)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if c := next(t, out); c.Exists {
		t.Fatalf("after removal: %+v", c)
	}
}

func TestFollowsLinks(t *testing.T) {
	dir, there := t.TempDir(), t.TempDir()
	target := filepath.Join(there, "real.yaml")
	write(t, target, "one")
	path := filepath.Join(dir, "a.yaml")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	_, out := start(t, eventful, path)
	if c := next(t, out); string(c.Data) != "one" {
		t.Fatalf("first: %q", c.Data)
	}
	write(t, target, "two") // an event in the target's directory only
	if c := next(t, out); string(c.Data) != "two" {
		t.Fatalf("target edited: %q", c.Data)
	}
	other := filepath.Join(there, "other.yaml")
	write(t, other, "three")
	link := filepath.Join(dir, "new")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, path); err != nil {
		t.Fatal(err)
	}
	if c := next(t, out); string(c.Data) != "three" {
		t.Fatalf("link turned: %q", c.Data)
	}
}

func TestDirectoryThatComesLater(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".gettier", "sensors.yaml")
	_, out := start(t, eventful, path)
	if c := next(t, out); c.Exists {
		t.Fatal("nothing is there yet")
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, "late")
	if c := next(t, out); string(c.Data) != "late" {
		t.Fatalf("got %q", c.Data)
	}
}

// A neighbour that is written all the time, a database for one, neither hides
// an edit nor wakes the watcher.
func TestBusyNeighbours(t *testing.T) {
	for name, busy := range map[string]func(dir string) error{
		"written": func(dir string) error { return os.WriteFile(filepath.Join(dir, "ledger.db"), []byte("x"), 0o600) },
		"renamed": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "tmp"), nil, 0o600); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "checkpoint"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.yaml")
			write(t, path, "one")
			_, out := start(t, eventful, path)
			next(t, out)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
						if err := busy(dir); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			defer wg.Wait()
			defer cancel()
			write(t, path, "two")
			if c := next(t, out); string(c.Data) != "two" {
				t.Errorf("got %q", c.Data)
			}
		})
	}
}

func TestSetAndPoke(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "a")
	write(t, b, "b")
	w, out := start(t, eventful, a)
	if c := next(t, out); c.Path != a {
		t.Fatalf("got %s", c.Path)
	}
	w.Set(a, b)
	if c := next(t, out); c.Path != b {
		t.Fatalf("after Set got %s", c.Path)
	}
	w.Poke()
	if c, d := next(t, out), next(t, out); c.Path != a || d.Path != b {
		t.Fatalf("after Poke got %s, %s", c.Path, d.Path)
	}
	if err := w.Degraded(); err != nil {
		t.Error(err)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	write(t, big, "more than eight bytes")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	o := eventful
	o.MaxBytes = 8
	_, out := start(t, o, big, pipe, dir)
	for range 3 {
		if c := next(t, out); c.Err == nil || c.Data != nil {
			t.Errorf("%s was read: %+v", c.Path, c)
		}
	}
}

// A file that is written in pieces is reported once, when it is whole. Time is
// synthetic: the polls decide.
func TestPartialWritesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		w := New(Options{PollOnly: true, Poll: time.Second, Gap: 100 * time.Millisecond})
		w.Set(path)
		var mu sync.Mutex
		var all []string
		reported := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- w.Run(ctx, func(c Content) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, string(c.Data))
			})
		}()
		time.Sleep(500 * time.Millisecond) // synthetic; the missing file has been told
		if got := reported(); len(got) != 1 || got[0] != "" {
			t.Fatalf("at first: %q", got)
		}
		// From 0.99 s on the file grows before every look.
		time.Sleep(490 * time.Millisecond)
		text := ""
		for i := range 8 {
			text += fmt.Sprint(i)
			write(t, path, text)
			time.Sleep(100 * time.Millisecond)
		}
		if got := reported(); len(got) != 1 {
			t.Fatalf("a growing file was reported: %q", got)
		}
		time.Sleep(300 * time.Millisecond)
		if got := reported(); len(got) != 2 || got[1] != "01234567" {
			t.Fatalf("in the end: %q", got)
		}
		// Touched, with the same content: no news.
		if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := reported(); len(got) != 2 {
			t.Fatalf("a touch was reported: %q", got)
		}
		cancel()
		<-done
	})
}
