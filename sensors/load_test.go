package sensors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestEditsUnderLoad edits a file in every way that editors do while many
// readers look: no reader ever misses the approved sensor, and every settled
// content has exactly its event.
func TestEditsUnderLoad(t *testing.T) {
	h := newHouse(t)
	h.write(h.project(), "sensors:\n"+sensor("a", "one"))
	r := h.open()
	h.approve("a")
	h.drain()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Watch(ctx); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				v := r.View(h.root)
				if s, ok := v.Lookup("a"); !ok || s.Argv[0].Text != "one" {
					t.Error("a reader lost the approved sensor")
					return
				}
				r.States()
			}
		})
	}
	// A writer that is held up for long may be seen half-way, as a content of its
	// own; what is whole from the start has one event.
	event := func(what, want string) {
		t.Helper()
		var got []string
		last := func() string { return got[len(got)-1] }
		waitFor(t, what, func() bool {
			got = append(got, h.drain()...)
			return len(got) > 0 && strings.HasPrefix(last(), want)
		})
		if whole := !strings.Contains(what, "in place"); whole && len(got) != 1 {
			t.Errorf("%s: %q, want one event %q", what, got, want)
		}
	}
	inPlace := func(text string) {
		f, err := os.OpenFile(h.project(), os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for _, part := range strings.SplitAfter("version: 1\n"+text, "\n") { // many writes, as a slow editor
			if _, err := f.WriteString(part); err != nil {
				t.Error(err)
			}
		}
	}
	for i := range 3 {
		h.write(h.project(), "sensors:\n"+sensor("a", "two")+sensor("b", fmt.Sprint("rename", i)))
		event("atomic rename", "loaded .gettier n=2 pending=[b] changed=[a]")
		inPlace("sensors:\n" + strings.Repeat("# filler\n", 200) + sensor("a", "two") + sensor("b", fmt.Sprint("in-place", i)))
		event("write in place", "loaded .gettier n=2 pending=[b] changed=[a]")
		inPlace("sensors:\n  - { id: a, command: 'ls | wc' }\n# " + fmt.Sprint(i))
		event("broken file in place", "rejected sensors.yaml:3 ")
		if err := os.Remove(h.project()); err != nil {
			t.Fatal(err)
		}
		event("removal", "loaded .gettier n=0 pending=[] changed=[a]")
	}
	// The lock is watched too: an approval elsewhere comes into force.
	h.write(h.project(), "sensors:\n"+sensor("a", "one")+sensor("b", "late"))
	event("return", "loaded .gettier n=2 pending=[b] changed=[]")
	if _, err := ApproveAll(h.state, h.project(), "project/shop"); err != nil {
		t.Fatal(err)
	}
	event("approval elsewhere", "approved .gettier [")
	if _, ok := r.View(h.root).Lookup("b"); !ok {
		t.Error("the approval made elsewhere is not in force")
	}
	cancel()
	wg.Wait()
}

func BenchmarkView(b *testing.B) {
	dir := testDir(b)
	root := filepath.Join(dir, "p")
	if err := os.MkdirAll(filepath.Join(root, ".gettier"), 0o700); err != nil {
		b.Fatal(err)
	}
	script(b, root, "check.sh", "true")
	var text strings.Builder
	text.WriteString("version: 1\nsensors:\n")
	for i := range 50 {
		text.WriteString(sensor(fmt.Sprint("s", i), "sh check.sh"))
	}
	if err := os.WriteFile(ProjectFile(root), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, "check.sh"), old, old); err != nil {
		b.Fatal(err)
	}
	if _, err := ApproveAll(dir, ProjectFile(root), "project/p"); err != nil {
		b.Fatal(err)
	}
	r, err := Open(Options{StateDir: dir, Projects: []Project{{Name: "p", Root: root}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v := r.View(root); len(v.Sensors) != 50 {
			b.Fatal(len(v.Sensors))
		}
	}
}
