package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// hang keeps a request open until the daemon leaves or the test ends.
func hang(t *testing.T, r *http.Request, x *exchange) {
	select {
	case <-r.Context().Done():
		x.leave()
	case <-t.Context().Done():
	}
}

// recovered returns the newest chain.recovered.
func (h *house) recovered() lemma.ChainRecovered {
	h.t.Helper()
	all := find[lemma.ChainRecovered](h.t, h.entries())
	if len(all) == 0 {
		h.t.Fatal("the chain does not say that it was recovered")
	}
	return all[len(all)-1]
}

// TestE2EKilledInATurn: the daemon dies in the middle of a turn, wherever. It
// starts, verifies, says where the turn stopped, and the client's next try gets
// the same checks as if nothing had happened.
func TestE2EKilledInATurn(t *testing.T) {
	t.Parallel()
	for _, tg := range tongues {
		for _, c := range []struct {
			name  string
			hangs func(x *exchange) bool
			at    lemma.Kind
			tools bool
		}{
			{"while it asks for a declaration", (*exchange).declares, lemma.KTurnOpened, false},
			{"while the corrected answer is made", (*exchange).grounded, lemma.KTurnGrounded, false},
			{"while an agent's answer is made", func(x *exchange) bool { return !x.declares() }, lemma.KTurnOpened, true},
			{"while it asks for a declaration before an action", (*exchange).declares, lemma.KTurnOpened, true},
		} {
			t.Run(tg.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				var free atomic.Bool
				inner := worker(0)
				up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
					switch {
					case !free.Load() && c.hangs(x):
						hang(t, r, x)
					case c.tools:
						inner(w, r, x)
					default:
						believer(w, r, x)
					}
				})
				h := newHouse(t, plan{upstream: up.URL})
				a := h.agent(h.project)
				request := tg.body(true, c.tools, tg.user(ticket))
				var wg sync.WaitGroup
				wg.Go(func() {
					r, err := a.do(http.MethodPost, tg.path, request)
					if err == nil && r.err == nil {
						t.Errorf("the killed turn ended cleanly: %d %s", r.status, r.body)
					}
				})
				eventually(t, "the upstream hangs", func() bool { return slices.ContainsFunc(up.all(), c.hangs) })
				turn := ""
				eventually(t, "the turn is on the chain", func() bool {
					for _, x := range h.turns() {
						turn = x.ID
						return x.Stage == string(c.at)
					}
					return false
				})
				h.kill()
				wg.Wait()
				eventually(t, "the upstream sees the daemon go", func() bool {
					for _, x := range up.all() {
						if c.hangs(x) {
							return isClosed(x.gone)
						}
					}
					return false
				})
				free.Store(true)
				h.start()
				rec := h.recovered()
				if want := (lemma.StoppedTurn{Turn: turn, At: c.at}); !slices.Contains(rec.Turns, want) {
					t.Errorf("recovered %+v, want %+v", rec.Turns, want)
				}
				h.verified()
				if out := h.must("turns", turn); !strings.Contains(out, turn) {
					t.Errorf("gettier turns: %s", out)
				}
				before := len(up.all())
				r := a.post(t, tg.path, request)
				if r.status != 200 || r.err != nil {
					t.Fatalf("after the restart: %d %v %s", r.status, r.err, r.body)
				}
				if strings.Contains(tg.says(t, true, r.body), believing) || strings.Contains(r.body, "sed") {
					t.Errorf("after the restart the false claim left: %s", r.body)
				}
				if n := len(find[lemma.ClaimJudged](t, h.turnSoFar(r.turn()).Entries)); n != 1 {
					t.Errorf("after the restart %d claims were judged; %d requests upstream", n, len(up.all())-before)
				}
				if r.turn() != turn {
					t.Logf("the resend is turn %s, the killed one %s", r.turn(), turn)
				}
				h.verified()
			})
		}
	}
}

// turnSoFar reads a turn's story, closed or not.
func (h *house) turnSoFar(id string) ipc.TurnDetail {
	h.t.Helper()
	d, err := h.api().Turn(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// TestE2EKilledWhileAppending: killed again and again under load. What a client
// was told is on the chain, and the chain verifies.
func TestE2EKilledWhileAppending(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	const clients = 4
	var agents []*agent
	for range clients {
		agents = append(agents, h.agent(h.project))
	}
	var mu sync.Mutex
	told := map[string]string{} // turn → decision that a client saw
	n := 0
	for round := range 4 {
		var wg sync.WaitGroup
		var served atomic.Int64
		for i, a := range agents {
			wg.Go(func() {
				for k := 0; ; k++ {
					tg := tongues[(i+k)%2]
					r, err := a.do(http.MethodPost, tg.path, tg.body(k%2 == 0, false, tg.user(fmt.Sprintf("%s %d %d %d", ticket, round, i, k))))
					if err != nil {
						return // the daemon is gone
					}
					mu.Lock()
					told[r.turn()] = r.decision()
					n++
					mu.Unlock()
					served.Add(1)
				}
			})
		}
		eventually(t, "the daemon is busy", func() bool { return served.Load() >= int64(5+7*round) })
		h.kill()
		wg.Wait()
		h.start()
		h.recovered()
		v := h.verified()
		t.Logf("round %d: %d answers so far, %d entries", round, n, v.Entries)
	}
	all := map[string]ipc.Turn{}
	decided := map[string]lemma.Decision{}
	for _, e := range h.entries() {
		if e.Kind == "gate.decided" {
			decided[e.Turn] = body[lemma.GateDecided](t, e).Decision
		}
	}
	for _, turn := range h.turns() {
		all[turn.ID] = turn
	}
	for id, d := range told {
		if _, ok := all[id]; !ok || string(decided[id]) != d || d != "caught" {
			t.Errorf("a client was told %s of turn %s; the chain says %q", d, id, decided[id])
		}
	}
	// A clean stop leaves nothing to recover.
	before := len(find[lemma.ChainRecovered](t, h.entries()))
	if code := h.stop(); code != 0 {
		t.Errorf("gettierd ended with %d", code)
	}
	h.start()
	if after := len(find[lemma.ChainRecovered](t, h.entries())); after < before || after > before+1 {
		t.Errorf("%d recoveries before the clean stop, %d after", before, after)
	}
	h.verified()
}

// TestE2EDamagedLedger: a ledger that was changed, rolled back or taken away is
// an error that says so, never a fresh start.
func TestE2EDamagedLedger(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	file := filepath.Join(h.state, "ledger.db")
	ask := func(n int) {
		t.Helper()
		if r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(fmt.Sprint(ticket, n)))); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	ask(1)
	h.stop()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.start()
	ask(2)
	h.stop()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kind := []byte(`"kind":"claim.judged"`)
	at := bytes.Index(good, kind)
	if at < 0 {
		t.Fatal("no claim in the ledger")
	}
	flipped := bytes.ReplaceAll(good, kind, []byte(`"kind":"bmaim.judged"`)) // in every copy: some pages are free
	for _, c := range []struct {
		name, says string
		content    []byte
	}{
		{"rolled back", "entries", old},
		{"flipped", "damaged", flipped},
		{"cut", "", good[:at]},
		{"emptied", "gone or empty", nil},
	} {
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := h.runDaemon()
		if code <= 0 || out != "" || !strings.Contains(errs, c.says) || strings.Contains(errs, "goroutine ") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.name, code, out, errs)
		}
		if now, err := os.ReadFile(file); err != nil || c.name != "flipped" && !bytes.Equal(now, c.content) {
			t.Errorf("%s: the file was changed: %v", c.name, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := h.runDaemon(); code == 0 || !strings.Contains(errs, "gone") {
		t.Errorf("removed: exit %d, %q", code, errs)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.verified()
	// A second daemon on the same state is refused while the first goes on.
	if _, errs, code := h.runDaemon(); code == 0 || strings.Contains(errs, "goroutine ") {
		t.Errorf("a second daemon: exit %d, %q", code, errs)
	}
	ask(3)
}

// runDaemon starts a daemon that is expected to refuse.
func (h *house) runDaemon() (stdout, stderr string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	cmd := h.command(ctx)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says it
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
