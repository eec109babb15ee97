package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyCut in the environment tries every 4 KiB and every page.
const everyCut = "GETTIER_EVERY_CUT"

// TestE2EDamagedLedger: whatever a disk did to the ledger, the daemon serves or
// says what is wrong and what to do. It never panics, and it changes nothing.
func TestE2EDamagedFiles(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	for i := range 8 {
		if r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(fmt.Sprint(ticket, i)))); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	size := len(h.entries())
	h.kill() // nothing says that it was closed well
	file := filepath.Join(h.state, "ledger.db")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 16 << 10
	raw = raw[:(len(bytes.TrimRight(raw, "\x00"))+page)/page*page]
	every, cut := 12, 9
	if os.Getenv(everyCut) != "" {
		every, cut = 1, 1
	}
	rng := rand.New(rand.NewPCG(8, 8))
	type spoiled struct {
		name string
		data []byte
	}
	var cases []spoiled
	add := func(name string, edit func(b []byte) []byte) {
		cases = append(cases, spoiled{name, edit(bytes.Clone(raw))})
	}
	for at := 4 << 10; at < len(raw); at += cut * 4 << 10 {
		add(fmt.Sprint("cut at ", at), func(b []byte) []byte { return b[:at] })
	}
	for n := 0; n*page < len(raw); n += every/3 + 1 {
		add(fmt.Sprintf("page %d zeroed", n), func(b []byte) []byte { clear(b[n*page : (n+1)*page]); return b })
	}
	for n := range 36 / every {
		add(fmt.Sprint("garbage ", n), func(b []byte) []byte {
			at := rng.IntN(len(b) - page)
			for i := range page {
				b[at+i] = byte(rng.Uint32())
			}
			return b
		})
	}
	add("both meta pages gone", func(b []byte) []byte { clear(b[:2*page]); return b })
	if os.Getenv(everyCut) != "" { // takes as long as the look at a file may
		add("branches that lead to themselves", func(b []byte) []byte {
			for at := 2 * page; at < len(b); at += page {
				if b[at+8] == 0x01 {
					copy(b[at+16+8:at+16+16], b[at:at+8])
				}
			}
			return b
		})
	}
	refused := 0
	var worst []byte // the one of which most can be kept
	for _, c := range cases {
		h.write(file, string(c.data))
		ctx, cancel := context.WithCancel(t.Context())
		cmd := h.command(ctx)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready := make([]byte, 512)
		n, _ := out.Read(ready) // its first line, or its end
		if n == 0 {
			_ = cmd.Wait() // the exit code says it
		}
		cancel()
		if n > 0 {
			_ = cmd.Wait() // killed
		}
		said := errs.String()
		if strings.Contains(said, "goroutine ") || strings.Contains(said, "panic") || strings.Contains(said, "fatal error") {
			t.Errorf("%s: it crashed: %.2000s", c.name, said)
		}
		if n > 0 {
			continue
		}
		refused++
		if code := cmd.ProcessState.ExitCode(); code != 5 || !strings.Contains(said, "gettier ledger re") || !strings.Contains(said, "damaged") && !strings.Contains(said, "older") {
			t.Errorf("%s: exit %d, it says %s", c.name, code, said)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, c.data) {
			t.Errorf("%s: the refused file was changed, %v", c.name, err)
		}
		if strings.Contains(said, "can be proved. Nothing was changed. `gettier ledger repair`") {
			worst = c.data
		}
	}
	t.Logf("%d spoiled files, %d refused", len(cases), refused)
	if refused < len(cases)/3 || worst == nil {
		t.Fatalf("only %d of %d were refused", refused, len(cases))
	}
	h.write(file, string(worst))
	if out, errs, code := h.gettier("ledger", "repair", "--yes"); code != 4 || !strings.Contains(errs, "only a person may do this") {
		t.Errorf("a repair that no person asked for: exit %d, %s%s", code, out, errs)
	}
	tm := h.newTerminal()
	screen, code := tm.typed("gettier ledger repair --yes --state " + h.state)
	if code != "0" || !strings.Contains(screen, "moved aside") {
		t.Fatalf("repair: exit %s\n%s", code, screen)
	}
	h.start()
	if v := h.verified(); v.Entries == 0 || v.Entries > uint64(size)+20 {
		t.Errorf("after the repair: %+v", v)
	}
}
