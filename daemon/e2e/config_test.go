package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// shown is gettier config show, as data.
func (h *house) shown() ipc.Config {
	h.t.Helper()
	var c ipc.Config
	if err := json.Unmarshal([]byte(h.must("config", "show", "--json")), &c); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// value is a setting in force and the one that waits.
func value(c ipc.Config, key string) (now, pending string) {
	for _, k := range c.Keys {
		if k.Key == key {
			return k.Value, k.Pending
		}
	}
	return "", ""
}

// asked sends the ticket and returns the decision.
func (h *house) asked(a *agent, when string) string {
	h.t.Helper()
	r := a.post(h.t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(ticket+" "+when)))
	if r.status != 200 || r.err != nil {
		h.t.Fatalf("%s: %d %v %s", when, r.status, r.err, r.body)
	}
	return r.decision()
}

// TestE2EReload: the configuration is read again at SIGHUP and when it changes:
// what tightens counts at once, what loosens waits for a person, a bad file
// changes nothing and is named.
func TestE2EReload(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	ev := h.follow("config.*")
	kind := func(k lemma.Kind) func(ipc.Entry) bool {
		return func(e ipc.Entry) bool { return e.Kind == string(k) }
	}

	// Loosened by an edit: pending, shown with both values, without effect.
	h.configure("gate:\n  classes:\n    change: \"off\"\n  mode: watch\n")
	p := body[lemma.ConfigPending](t, ev.next("config.pending", kind(lemma.KConfigPending)))
	if len(p.Keys) != 2 {
		t.Errorf("pending: %+v", p)
	}
	c := h.shown()
	if now, wants := value(c, "gate.classes.change"); now != "block" || wants != "off" || c.PendingHash == "" || len(c.Pending) != 2 {
		t.Errorf("config show: %q waits for %q; %+v", now, wants, c.ConfigStatus)
	}
	if out := h.must("config", "show"); !strings.Contains(out, "waits for approval: off") || !strings.Contains(out, "waits for approval: watch") {
		t.Errorf("config show says:\n%s", out)
	}
	if out := h.must("status"); !strings.Contains(out, "gate.classes.change") {
		t.Errorf("the status does not name what waits:\n%s", out)
	}
	if d := h.asked(a, "loosened"); d != "caught" {
		t.Errorf("a loosening counted before anyone approved it: %q", d)
	}
	// A program cannot approve it.
	if out, errs, code := h.gettier("config", "approve", "--yes"); code != 4 {
		t.Errorf("a program approved the configuration: exit %d\n%s%s", code, out, errs)
	}
	if d := h.asked(a, "still loosened"); d != "caught" {
		t.Errorf("after a program's approval: %q", d)
	}
	// Nor does a restart.
	h.stop()
	h.start()
	ev = h.follow("config.*")
	if d := h.asked(a, "after a restart"); d != "caught" {
		t.Errorf("a restart took the loosening: %q", d)
	}
	if now, wants := value(h.shown(), "gate.classes.change"); now != "block" || wants != "off" {
		t.Errorf("after a restart: %q waits for %q", now, wants)
	}

	// A bad file: named with its place, the last good one stays.
	h.configure("gate:\n  clases:\n    change: \"off\"\n")
	bad := body[lemma.ConfigLoaded](t, ev.next("config.loaded with an error", func(e ipc.Entry) bool {
		return e.Kind == "config.loaded" && strings.Contains(string(e.Body), "clases")
	}))
	if !strings.Contains(bad.Error, ":6:") || !strings.Contains(bad.Error, `did you mean "classes"`) {
		t.Errorf("the fault: %q", bad.Error)
	}
	if c := h.shown(); !strings.Contains(c.Error, "clases") {
		t.Errorf("config show says nothing of the bad file: %+v", c.ConfigStatus)
	}
	if d := h.asked(a, "with a bad file"); d != "caught" {
		t.Errorf("a bad file changed what counts: %q", d)
	}
	h.write(h.conf, "version: 1\nprojects: [\n")
	if err := h.d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the broken file is named", func() bool { c := h.shown(); return c.Error != "" && !strings.Contains(c.Error, "clases") })
	if d := h.asked(a, "with a broken file"); d != "caught" {
		t.Errorf("a broken file changed what counts: %q", d)
	}
	if err := os.Remove(h.conf); err != nil {
		t.Fatal(err)
	}
	if err := h.d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file is seen", func() bool { return !strings.Contains(h.shown().Error, "broken") })

	// Tightened: at once.
	h.configure("gate:\n  classes:\n    explore: correct\n")
	eventually(t, "the tightened value is in force", func() bool {
		now, _ := value(h.shown(), "gate.classes.explore")
		return now == "correct"
	})
	if c := h.shown(); c.Error != "" || len(c.Pending) != 0 {
		t.Errorf("after a good file: %+v", c.ConfigStatus)
	}
	r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user("Which uploads does the nginx proxy accept?")))
	if r.decision() != "caught" {
		t.Errorf("a question in mode correct: %q", r.decision())
	}
	h.verified()
}

// TestE2ELockGone: taking config.lock away beside a ledger loosens nothing.
func TestE2ELockGone(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	if d := h.asked(a, "first"); d != "caught" {
		t.Fatalf("first: %q", d)
	}
	h.configure("gate:\n  classes:\n    change: \"off\"\n    edit: \"off\"\ndeclare:\n  max_per_turn: 0\nsensors:\n  auto_approve: true\n")
	eventually(t, "it waits", func() bool { return len(h.shown().Pending) == 4 })
	h.stop()
	lock := filepath.Join(h.state, "config.lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	h.start()
	c := h.shown()
	for key, want := range map[string]string{"gate.classes.change": "block", "gate.classes.edit": "correct", "declare.max_per_turn": "2", "sensors.auto_approve": "false"} {
		if now, _ := value(c, key); now != want {
			t.Errorf("%s is %s, want %s", key, now, want)
		}
	}
	if out := h.must("status"); !strings.Contains(out, "config.lock") {
		t.Errorf("the status does not say that the lock is gone:\n%s", out)
	}
	if d := h.asked(a, "without a lock"); d != "caught" {
		t.Errorf("without a lock: %q; pending %v", d, c.Pending)
	}
	// A forged lock is an error, not a lock.
	h.stop()
	h.write(lock, `{"v":1,"hash":"00","config":{}}`)
	if _, errs, code := h.runDaemon(); code == 0 || !strings.Contains(errs, "config.lock") {
		t.Errorf("a forged lock: exit %d, %s", code, errs)
	}
}

// TestE2EEnvironment: a variable tightens, but loosens only at a start in a terminal.
func TestE2EEnvironment(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL, env: []string{"GETTIER_GATE_CLASSES_CHANGE=off", "GETTIER_GATE_MODE=watch", "GETTIER_HOLD_ON_UNVERIFIABLE=1"}})
	a := h.agent(h.project)
	if d := h.asked(a, "with a loosening variable"); d != "caught" {
		t.Errorf("a variable loosened a daemon without a terminal: %q", d)
	}
	c := h.shown()
	if now, _ := value(c, "gate.hold_on_unverifiable"); now != "true" {
		t.Errorf("a variable that tightens: %q", now)
	}
	if now, _ := value(c, "gate.classes.change"); now != "block" {
		t.Errorf("gate.classes.change: %q", now)
	}
	if out := h.must("status"); !strings.Contains(out, "GETTIER_GATE_CLASSES_CHANGE") || !strings.Contains(out, "GETTIER_GATE_MODE") {
		t.Errorf("the status does not name the variable:\n%s", out)
	}
}

// TestE2EBadStart: what cannot be used at the first start is said in one line
// with its place; nothing is made up instead.
func TestE2EBadStart(t *testing.T) {
	t.Parallel()
	h := layHouse(t, plan{})
	for _, c := range []struct {
		name  string
		conf  string
		args  []string
		says  []string
		exits int
	}{
		{"unknown key", "gatee:\n  mode: ask\n", nil, []string{"gettierd.yaml:5:1", "gate"}, 5},
		{"bad value", "gate:\n  mode: sometimes\n", nil, []string{":6:", "gate.mode", "ask"}, 5},
		{"bad upstream", "", []string{"--upstream", "not a url"}, []string{"--upstream"}, 5},
		{"no key", "upstreams:\n  openai:\n    key_file: /no/such/key\n", nil, []string{"/no/such/key"}, 5}, // and pins nothing
		{"unknown flag", "", []string{"--nope"}, []string{"nope"}, 2},
		{"an argument", "", []string{"serve"}, []string{"serve"}, 2},
	} {
		h.configure(c.conf)
		args := h.args
		h.args = append(append([]string{}, args...), c.args...)
		out, errs, code := h.runDaemon()
		h.args = args
		if code != c.exits || out != "" || strings.Contains(errs, "goroutine ") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.name, code, out, errs)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q does not say %q", c.name, errs, want)
			}
		}
	}
	// A taken port is named, never replaced.
	h.configure("")
	h.start()
	other := layHouse(t, plan{})
	_, port, _ := strings.Cut(h.proxy, ":")
	other.args = append(other.args, "--proxy-port", port)
	if _, errs, code := other.runDaemon(); code != 5 || !strings.Contains(errs, h.proxy) {
		t.Errorf("a taken port: exit %d, %s", code, errs)
	}
	// Keys that others may read are refused.
	h.stop()
	if err := os.Chmod(filepath.Join(h.state, "keys", "log"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := h.runDaemon(); code != 5 || !strings.Contains(errs, "keys/log") {
		t.Errorf("an open key: exit %d, %s", code, errs)
	}
}
