package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// smallDisk mounts a file system of this size over dir, to which nothing else writes.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skipf("a disk of one's own needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill takes what is left of the disk that dir lies on.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		n, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			if n == 0 {
				size /= 2
			}
		case err != nil:
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestE2EDiskFull: while the ledger has no room, what changes anything is refused
// in the client's own format, questions are served, the status says so, and all
// of it ends by itself when there is room again. The ledger is intact throughout.
func TestE2EDiskFull(t *testing.T) {
	t.Parallel()
	for _, tg := range tongues {
		t.Run(tg.name, func(t *testing.T) {
			t.Parallel()
			inner := worker(0)
			up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
				if strings.Contains(x.body, "rm -rf") {
					inner(w, r, x)
					return
				}
				believer(w, r, x)
			})
			h := layHouse(t, plan{upstream: up.URL, raw: true})
			smallDisk(t, h.state, "12m")
			h.approve()
			h.start()
			a := h.agent(h.project)
			ask := func(text string) reply {
				return a.post(t, tg.path, tg.body(false, false, tg.user(text)))
			}
			if r := ask(ticket); r.status != http.StatusOK || r.decision() != "caught" {
				t.Fatalf("before: %d %s %s", r.status, r.decision(), r.body)
			}
			free := fill(t, h.state)
			// The file has free pages, which take a few commits more.
			var last, before int
			var r reply
			for last = range 100 {
				before = len(up.answers())
				if r = ask(fmt.Sprint(ticket, last)); r.status != http.StatusOK {
					break
				}
			}
			if r.status < 500 || len(up.answers()) != before {
				t.Errorf("gated on a full disk: %d, the upstream answered %d times, %s", r.status, len(up.answers())-before, r.body)
			}
			if _, message := errorOf(t, tg, r.body); !strings.Contains(message, "no space left") {
				t.Errorf("the error says %q", message)
			}
			for range 3 {
				if r := ask("What does app.json hold?"); r.status != http.StatusOK || tg.says(t, false, r.body) != believing {
					t.Errorf("a question on a full disk: %d %s", r.status, r.body)
				}
			}
			if out := h.must("status"); !strings.Contains(out, "the ledger cannot write: no space left on device") {
				t.Errorf("the status says\n%s", out)
			}
			free()
			eventually(t, "the ledger writes again", func() bool {
				s, err := h.api().Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return s.Ledger.Error == ""
			})
			// The client's next try is the same turn as the one that was refused.
			if r := ask(fmt.Sprint(ticket, last)); r.status != http.StatusOK || r.decision() != "caught" {
				t.Errorf("with room again: %d %s %s", r.status, r.decision(), r.body)
			}
			lost := find[lemma.StateLost](t, h.entries())
			if len(lost) == 0 || !strings.Contains(lost[0].Reason, "could not be written") {
				t.Errorf("what the chain says of it: %+v", lost)
			}
			if out := h.must("status"); strings.Contains(out, "cannot write") {
				t.Errorf("the status still says\n%s", out)
			}
			h.verified()
			if code := h.stop(); code != 0 {
				t.Errorf("gettierd ended with %d: %s", code, h.d.errors())
			}
		})
	}
}
