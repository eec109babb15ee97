package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// patience is how long anything may take before a test gives up on it: two
// shared cores are slow at times.
const patience = 60 * time.Second

// sensorsYAML is the registry that most tests use: one sensor that reads a file
// of the project, which says 1m.
const sensorsYAML = `version: 1
sensors:
  - id: edge.limit
    description: Largest request body that the edge lets through
    command: [cat, edge.conf]
    effects: none
    ttl: 600
    timeout: 10
    extract: [{ name: limit, kv: limit, type: bytes }]
    verifies: [request_path.size_limits]
    judge:
      - when: '(?i)\b(edge|proxy|nginx)\b.*\b(accepts?|allows?)\b.*?\b(?P<n>\d+\s*[kmg](i?b)?)\b'
        key: limit
        type: bytes
        operator: ">="
        value: "{{n}}"
        examples:
          - { claim: "The edge proxy accepts request bodies of 25 MB", measured: 1m, verdict: contradicted }
          - { claim: "The edge proxy accepts request bodies of 25 MB", measured: 40m, verdict: confirmed }
          - { claim: "The edge proxy times out after 25 minutes", measured: 1m, verdict: skip }
`

// falseClaim is what a scripted upstream believes of the project.
const falseClaim = "The edge proxy accepts request bodies of 25 MB"

// house is one installation: its directories, its daemon and who talks to it.
type house struct {
	program string // of the daemon, "" = gettierd as it is
	t       *testing.T
	dir     string
	conf    string // gettierd.yaml
	sensors string // the user's sensors.yaml
	state   string
	socket  string
	project string // the registered root, named shop
	args    []string
	env     []string
	attr    *syscall.SysProcAttr // whose house it is, nil = ours

	d         *process
	proxy     string // host:port
	agents    []*agent
	terminals int // so far
}

// plan says how a house differs from the usual one.
type plan struct {
	upstream string // --upstream
	config   string // further lines of gettierd.yaml
	sensors  string // "" = sensorsYAML
	raw      bool   // nothing is approved
	env      []string
}

// newHouse lays the files out, approves the sensors and starts the daemon.
func newHouse(t *testing.T, p plan) *house {
	t.Helper()
	h := layHouse(t, p)
	h.start()
	return h
}

func layHouse(t *testing.T, p plan) *house {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the daemon finds a client's project through /proc")
	}
	binary(t, "gettierd")
	dir, err := os.MkdirTemp("", "gt-e2e-") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	h := &house{
		t: t, dir: dir, conf: filepath.Join(dir, "conf", "gettierd.yaml"), sensors: filepath.Join(dir, "conf", "sensors.yaml"),
		state: filepath.Join(dir, "state"), socket: filepath.Join(dir, "run", "d.sock"), project: filepath.Join(dir, "shop"),
	}
	for _, d := range []string{filepath.Dir(h.conf), h.state, filepath.Dir(h.socket), h.project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.write(filepath.Join(h.project, "edge.conf"), "limit = 1m\n")
	h.write(filepath.Join(h.project, "app.json"), "{\"limit\": \"1mb\"}\n")
	if p.sensors == "" {
		p.sensors = sensorsYAML
	}
	h.write(h.sensors, p.sensors)
	h.configure(p.config)
	h.args = []string{"--config", h.conf, "--state", h.state, "--socket", h.socket, "--proxy-port", "0"}
	if p.upstream != "" {
		h.args = append(h.args, "--upstream", p.upstream)
	}
	h.env = append(cleanEnv(dir), p.env...)
	if !p.raw {
		h.approve()
	}
	return h
}

// cleanEnv is an environment of one's own: nothing of the caller's gettier, no proxy.
func cleanEnv(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TMPDIR=" + os.TempDir()}
}

func (h *house) write(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// configure writes gettierd.yaml with the project and further lines.
func (h *house) configure(more string) {
	h.t.Helper()
	h.write(h.conf, fmt.Sprintf("version: 1\nprojects:\n  - name: shop\n    root: %q\n%s", h.project, more))
}

// approve pins the user's registry as its owner would before the first start.
func (h *house) approve() {
	h.t.Helper()
	if _, err := sensors.ApproveAll(h.state, h.sensors, "user", h.project); err != nil {
		h.t.Fatal(err)
	}
}

// command is how this house's daemon is started.
func (h *house) command(ctx context.Context) *exec.Cmd {
	h.t.Helper()
	program := h.program
	if program == "" {
		program = binary(h.t, "gettierd")
	}
	cmd := exec.CommandContext(ctx, program, h.args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = h.env, h.dir, h.own()
	return cmd
}

// own is how a process of the house's owner is started.
func (h *house) own() *syscall.SysProcAttr {
	if h.attr == nil {
		return nil
	}
	own := *h.attr
	return &own
}

// start runs the daemon and waits for its ready line.
func (h *house) start() {
	h.t.Helper()
	h.d = startProcess(h.t, h.command(context.Background()))
	var ready struct {
		Ready         bool
		Proxy, Socket string
		PID           int
	}
	line := h.d.line()
	if err := json.Unmarshal([]byte(line), &ready); err != nil || !ready.Ready || ready.Proxy == "" || ready.Socket != h.socket || ready.PID != h.d.cmd.Process.Pid {
		h.t.Fatalf("gettierd said %q instead of being ready; on stderr: %s", line, h.d.errors())
	}
	h.proxy = ready.Proxy
	for _, a := range h.agents {
		a.aim("tcp:" + h.proxy)
	}
}

// kill ends the daemon as a power cut would.
func (h *house) kill() {
	h.t.Helper()
	if err := h.d.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	h.d.wait()
}

// stop asks the daemon to end and returns its exit code.
func (h *house) stop() int {
	h.t.Helper()
	if err := h.d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	return h.d.wait()
}

// gettier runs the command line against this house.
func (h *house) gettier(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(h.t, "gettier"), append([]string{"--state", h.state, "--socket", h.socket}, args...)...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = h.env, h.project, h.own()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("gettier %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs the command line and fails the test unless it exits 0.
func (h *house) must(args ...string) string {
	h.t.Helper()
	out, errs, code := h.gettier(args...)
	if code != 0 {
		h.t.Fatalf("gettier %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// api is a client of the socket.
func (h *house) api() *ipc.Client {
	h.t.Helper()
	c := ipc.New(h.socket, "cli")
	h.t.Cleanup(c.Close)
	return c
}

// turn reads a turn's story once it is closed.
func (h *house) turn(id string) ipc.TurnDetail {
	h.t.Helper()
	c := h.api()
	var d ipc.TurnDetail
	eventually(h.t, "turn "+id+" is closed", func() bool {
		var err error
		if d, err = c.Turn(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		return d.ClosedAt != ""
	})
	return d
}

// turns lists all turns, oldest first.
func (h *house) turns() []ipc.Turn {
	h.t.Helper()
	c := h.api()
	var all []ipc.Turn
	for cursor := ""; ; {
		page, err := c.Turns(h.t.Context(), ipc.TurnQuery{Page: ipc.Page{Limit: 100, Cursor: cursor}})
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			slices.Reverse(all)
			return all
		}
	}
}

// entries reads the whole chain.
func (h *house) entries() []ipc.Entry {
	h.t.Helper()
	c := h.api()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	st, err := c.Status(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	out := h.must("events", "--since", "0", "--count", fmt.Sprint(st.Chain.Size-1)) // since is exclusive
	var all []ipc.Entry
	for line := range strings.Lines(out) {
		var e ipc.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			h.t.Fatalf("event %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// verified checks the whole log and returns what was said.
func (h *house) verified() ipc.Verification {
	h.t.Helper()
	var v ipc.Verification
	if err := json.Unmarshal([]byte(h.must("audit", "verify", "--json")), &v); err != nil {
		h.t.Fatal(err)
	}
	if !v.OK || v.Entries == 0 || len(v.Root) != 64 {
		h.t.Fatalf("audit verify: %+v", v)
	}
	return v
}

// follow collects events of some kinds, none meaning all, until the test ends.
func (h *house) follow(kinds ...string) *events {
	h.t.Helper()
	args := []string{"--state", h.state, "--socket", h.socket, "events", "--since", "0"}
	if len(kinds) > 0 {
		args = append(args, "--kinds", strings.Join(kinds, ","))
	}
	cmd := exec.Command(binary(h.t, "gettier"), args...)
	cmd.Env, cmd.Dir = h.env, h.dir
	return &events{t: h.t, p: startProcess(h.t, cmd)}
}

// events are those that a gettier events has printed so far.
type events struct {
	t    *testing.T
	p    *process
	seen int
}

// next waits for an event that fits; those before it are skipped.
func (e *events) next(what string, fits func(ipc.Entry) bool) ipc.Entry {
	e.t.Helper()
	var found ipc.Entry
	eventually(e.t, what, func() bool {
		lines := e.p.lines()
		for ; e.seen < len(lines); e.seen++ {
			var en ipc.Entry
			if err := json.Unmarshal([]byte(lines[e.seen]), &en); err != nil {
				e.t.Fatalf("gettier events printed %q: %v", lines[e.seen], err)
			}
			if fits(en) {
				e.seen++
				found = en
				return true
			}
		}
		return false
	})
	return found
}

// body decodes an entry's body.
func body[B lemma.Body](t testing.TB, e ipc.Entry) B {
	t.Helper()
	var b B
	if e.Kind != string(b.Kind()) {
		t.Fatalf("entry %d is %s, not %s", e.Seq, e.Kind, b.Kind())
	}
	if err := json.Unmarshal(e.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// find returns the bodies of one kind among entries, in order.
func find[B lemma.Body](t testing.TB, entries []ipc.Entry) []B {
	t.Helper()
	var zero B
	var out []B
	for _, e := range entries {
		if e.Kind == string(zero.Kind()) {
			out = append(out, body[B](t, e))
		}
	}
	return out
}

func kinds(entries []ipc.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Kind
	}
	return out
}
