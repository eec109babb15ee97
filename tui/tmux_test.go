package tui

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// childSocket makes this test binary the program under test: it shows the TUI
// for the daemon at this socket.
const childSocket = "GETTIER_TEST_SOCKET"

func child(socket string) int {
	c := ipc.New(socket, "tui")
	defer c.Close()
	err := Run(context.Background(), Options{Client: c, Input: os.Stdin, Output: os.Stdout, Env: os.Environ()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// served is the sample behind a real socket, with times of today. Once it is
// served the sample belongs to the server, so a test changes it through edit.
func served(t testing.TB, edit ...func(*fake)) (*fake, string) {
	t.Helper()
	f := sample()
	for i := range f.HoldRows {
		h := &f.HoldRows[i]
		h.OpenedAt, h.ExpiresAt = lemma.Time(time.Now()), lemma.Time(time.Now().Add(time.Hour))
		h.ClientDeadline = ""
	}
	slices.Reverse(f.HoldRows) // the one with two claims is first
	f.HoldRows[1].ExpiresAt = lemma.Time(time.Now().Add(2 * time.Hour))
	for _, e := range edit {
		e(f)
	}
	socket := ipctest.Socket(t)
	ipctest.Serve(t, socket, ipcserver.Options{Backend: chained{f}, Person: ipctest.Anyone})
	return f, socket
}

// chained puts answers on the chain, as the daemon does.
type chained struct{ *fake }

func (c chained) Status(ctx context.Context) (ipc.Status, error) { return c.Backend.Status(ctx) }

func (c chained) Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error] {
	return c.Backend.Watch(ctx, since)
}

func (c chained) Verify(ctx context.Context, p func(done, total uint64)) (ipc.Verification, error) {
	return c.Backend.Verify(ctx, p)
}

func (c chained) AnswerHold(ctx context.Context, id string, a ipc.HoldAnswer, by lemma.Answerer) (lemma.Hold, error) {
	by.Via = "tui"
	h, err := c.Backend.AnswerHold(ctx, id, a, by)
	if err == nil {
		c.answered(h)
	}
	return h, err
}

func (c chained) Tell(ctx context.Context, v ipc.Tell, by lemma.Answerer) (lemma.Fact, error) {
	return c.Backend.Tell(ctx, v, by)
}

func (c chained) InvalidateFact(ctx context.Context, id, why string, by lemma.Answerer) (lemma.Fact, error) {
	return c.Backend.InvalidateFact(ctx, id, why, by)
}

func (c chained) TrySensor(ctx context.Context, id string, v ipc.SensorTry, by *lemma.Answerer) (ipc.SensorTried, error) {
	return c.Backend.TrySensor(ctx, id, v, by)
}

func (c chained) ApproveSensors(ctx context.Context, a ipc.SensorApproval, by lemma.Answerer) (ipc.SensorsApproved, error) {
	return c.Backend.ApproveSensors(ctx, a, by)
}

// pane is one terminal of a tmux of this test's own.
type pane struct {
	t    *testing.T
	tmux string
	dir  string
	name string
}

func (p *pane) run(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(p.tmux, append([]string{"-S", filepath.Join(p.dir, "t"), "-f", os.DevNull}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.run(append([]string{"send-keys", "-t", p.name}, keys...)...)
}

func (p *pane) screen() string { return p.run("capture-pane", "-p", "-t", p.name) }

// until waits for all of want on the screen, and returns how long that took.
func (p *pane) until(want ...string) time.Duration {
	p.t.Helper()
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s := p.screen()
		if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(s, w) }) {
			return time.Since(began)
		}
		if time.Since(began) > 60*time.Second {
			p.t.Fatalf("waited for %q:\n%s", want, s)
		}
		<-tick.C
	}
}

// ends presses a key that ends the program, and waits for that.
func (p *pane) ends(key string) {
	p.t.Helper()
	p.keys(key)
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		switch s := strings.TrimSpace(p.run("list-panes", "-t", p.name, "-F", "#{pane_dead} #{pane_dead_status}")); {
		case s == "1 0", s == "1": // tmux does not always hear how it ended
			return
		case strings.HasPrefix(s, "1 "), time.Since(began) > 60*time.Second:
			p.t.Fatalf("after %s the pane is %q:\n%s", key, s, p.screen())
		}
		<-tick.C
	}
}

// calm lets the quiet pass after which keys answer: the terminal is real, and so
// is its time.
func (p *pane) calm() {
	t := time.NewTimer(quiet + 50*time.Millisecond)
	defer t.Stop()
	<-t.C
}

func openTmux(t *testing.T, socket string, w, h int, env ...string) *pane {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed (Debian package tmux)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gt") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, tmux: tmux, dir: dir, name: "gettier"}
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", filepath.Join(dir, "t"), "kill-server").Run() // it ends with its last session, too
		_ = os.RemoveAll(dir)
	})
	args := []string{"-u", "new-session", "-d", "-s", p.name, "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "-e", childSocket + "=" + socket, "-e", "LC_ALL=C.UTF-8"}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	p.run(append(args, self)...)
	p.run("set-option", "-t", p.name, "remain-on-exit", "on")
	return p
}

// A person at a real terminal: looks at every screen, answers a hold, and leaves.
func TestTmux(t *testing.T) {
	f, socket := served(t)
	p := openTmux(t, socket, 80, 24)
	p.until("?2 holds", "The model assumes", "the edge proxy accepts request bodies of 25 MB", "● 127.0.0.1:11435")
	p.keys("2")
	p.until("[2 Ledger]", "Postgres 14")
	p.keys("3")
	p.until("[3 Turns]", "✗ caught", "✓─✓─✓─✗───✓─✓")
	p.keys("j", "Enter")
	p.until("turn k3vq", "rung 1 (forced tool call)")
	p.keys("Escape")
	p.until("[3 Turns]", "enter story")
	p.keys("4")
	p.until("[4 Sensors]", "? changed")
	p.keys("8")
	p.until("[8 Audit]", "following")
	p.keys("-l", "1c") // typed on without looking
	p.until("[1 Holds]", "The model assumes", "not taken")
	p.calm()
	p.keys("c")
	p.until("claim 2 of 2", "kept: confirm")
	p.calm()
	p.keys("r")
	p.until("what is true")
	p.keys("-l", "they go through two")
	p.until("correct “they go through two”")
	p.keys("Enter")
	p.until("✓ z7f3 answered: confirm, correct", "?1 hold ")
	h, err := f.Hold(t.Context(), holdFirst)
	if err != nil || h.State != lemma.HoldAnswered || h.Items[0].Answer.Answer != lemma.AnswerConfirm || h.Items[1].Answer.Text != "they go through two" {
		t.Errorf("the daemon has %+v, %v", h, err)
	}
	// Another size, and back.
	p.run("resize-window", "-t", p.name, "-x", "40", "-y", "12")
	p.until("[1] 2 3 4 8", "assumes")
	p.run("resize-window", "-t", p.name, "-x", "30", "-y", "5")
	p.until("?1 gettier 1 hold wait")
	p.run("resize-window", "-t", p.name, "-x", "200", "-y", "60")
	p.until("[1 Holds]", "We tried")
	if s := p.screen(); strings.Contains(s, "\x1b") || len(strings.Split(strings.TrimRight(s, "\n"), "\n")) != 60 {
		t.Errorf("the screen is not whole:\n%s", s)
	}
	p.ends("q")
	if s := p.screen(); strings.Contains(s, "gettier ") && strings.Contains(s, "?1 hold") {
		t.Errorf("the screen was not given back:\n%s", s)
	}
}

// Two people look at one hold: one answers, the other sees by whom, at once.
func TestTmuxTwo(t *testing.T) {
	_, socket := served(t)
	one, two := openTmux(t, socket, 80, 24), openTmux(t, socket, 80, 24, "NO_COLOR=1")
	one.until("The model assumes")
	two.until("The model assumes")
	one.calm()
	one.keys("A")
	one.until("to each of these claims")
	one.calm()
	one.keys("c")
	took := two.until("z7f3 answered: confirm by test via tui")
	one.until("✓ z7f3 answered: confirm")
	// The bound is 100 ms; the rest is tmux, and a machine that others use, too.
	if took > 2*time.Second {
		t.Errorf("the other screen took %v", took)
	}
	t.Logf("the other screen took %v", took)
}

// The daemon goes away and comes back; the program waits for it.
func TestTmuxNoDaemon(t *testing.T) {
	p := openTmux(t, filepath.Join(t.TempDir(), "none.sock"), 80, 24)
	p.until("○ gettierd is not running", "gettier up")
	p.keys("3")
	p.until("gettierd is not here")
	p.ends("q")
}
