package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestMain lets the harness start this binary as gettier.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "fixture" || os.Args[1] == "scenarios") {
		main()
	}
	time.Local = time.UTC // stamps are in local time
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// world is a daemon and what a command sees of it.
type world struct {
	t      *testing.T
	b      *ipctest.Backend
	socket string
	home   string
	stop   func()
	stdin  io.Reader
	signal func(pid int, s syscall.Signal) error
	hide   func() (show func() error, err error)
	more   []string           // further variables
	seen   func(n int) string // the page as the editor first saw it the nth time
}

func newWorld(t *testing.T, person ipcserver.PersonFunc) *world {
	t.Helper()
	w := &world{t: t, b: sample("/srv/shop"), socket: ipctest.Socket(t), home: t.TempDir(), stdin: strings.NewReader("")}
	w.stop = ipctest.Serve(t, w.socket, ipcserver.Options{Backend: w.b, Person: person})
	w.signal = func(int, syscall.Signal) error { t.Error("a process was signalled"); return nil }
	return w
}

func (w *world) env() []string {
	return append([]string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GETTIER_SOCKET=" + w.socket, "XDG_CONFIG_HOME=" + w.home + "/config", "XDG_STATE_HOME=" + w.home + "/state"}, w.more...)
}

// gettier runs one command line.
func (w *world) gettier(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	return w.run(w.t.Context(), args...)
}

func (w *world) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out := &untilBanner{cancel: cancel}
	var errs bytes.Buffer
	a := &app{in: w.stdin, out: out, err: &errs, env: w.env(), now: func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }, signal: w.signal, hide: w.hide}
	a.exec = func(path string, argv, env []string) error { // runs it beside us instead
		cmd := exec.CommandContext(ctx, path)
		cmd.Args, cmd.Env, cmd.Stdout, cmd.Stderr = argv, env, out, &errs
		return cmd.Run()
	}
	code = a.run(ctx, args)
	return code, out.String(), errs.String()
}

// untilBanner ends the command once a server has said that it listens.
type untilBanner struct {
	mu     sync.Mutex
	b      bytes.Buffer
	cancel func()
}

func (u *untilBanner) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if bytes.Contains(p, []byte("scripted model, no AI")) {
		u.cancel()
	}
	return u.b.Write(p)
}

func (u *untilBanner) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.b.String()
}

func commands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, s := range c.Commands() {
		if s.Hidden || s.Name() == "help" || s.Name() == "completion" {
			continue
		}
		out = append(out, commands(s)...)
	}
	return out
}

// argvOf splits an example the way a shell would, quotes only.
func argvOf(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	var cur strings.Builder
	quoted, open := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open || cur.Len() > 0 {
				out = append(out, cur.String())
			}
			cur.Reset()
			open = false
		default:
			cur.WriteRune(r)
		}
	}
	if open || cur.Len() > 0 {
		out = append(out, cur.String())
	}
	if quoted {
		t.Fatalf("example %q has an open quote", line)
	}
	return out
}

// examples lists every example line of every command.
func examples(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, c := range commands((&app{}).root()) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for l := range strings.SplitSeq(c.Example, "\n") {
			l = strings.TrimSpace(l)
			if l != c.CommandPath() && !strings.HasPrefix(l, c.CommandPath()+" ") {
				t.Errorf("%s has the example %q, which is another command's", c.CommandPath(), l)
			}
			out = append(out, l)
		}
	}
	return out
}

// ownDaemon are examples that start programs; TestScenarioExamples runs them.
func ownDaemon(line string) bool {
	for _, p := range []string{"gettier scenarios run", "gettier scenarios validate", "gettier demo"} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

// exampleInput is what examples that read standard input get, by their first
// two words.
var exampleInput = map[string]string{
	"key store-upstream": "an upstream's key\n",
	"redact":             "nothing secret here\n",
	"classify --jsonl":   claudeLine + "\n",
	"decide --jsonl":     `{"command":"ls -la"}` + "\n",
	"redact --jsonl":     `{"text":"nothing secret here"}` + "\n",
	"sensors new":        "client_max_body_size 1m;\n",
	"sensors judge":      `{"claim":"nginx accepts uploads of 25 MB","sensor":"proxy.config","output":"client_max_body_size 1m;"}` + "\n",
}

func TestExamples(t *testing.T) {
	for _, line := range examples(t) {
		if ownDaemon(line) {
			continue
		}
		t.Run(line, func(t *testing.T) {
			w := newWorld(t, ipctest.Anyone)
			args := argvOf(t, line)[1:]
			if strings.Contains(line, "my-scenario") {
				t.Chdir(filepath.Dir(ownScenario(t, "", "")))
			}
			if strings.Contains(line, "knowledge edit") {
				w.more = []string{"EDITOR=true"}
			}
			if strings.Contains(line, "gettier audit") {
				t.Chdir(t.TempDir())
			}
			if strings.Contains(line, "policy.yaml") {
				t.Chdir(filepath.Dir(policyAt(t, "version: 1\n")))
			}
			if strings.Contains(line, "gettier ledger") {
				t.Chdir(t.TempDir())
				ledgerAt(t, w.home)
			}
			if strings.Contains(line, "gettier classify") {
				t.Chdir(requestsAt(t))
			}
			if strings.Contains(line, "audit import") {
				if code, _, errs := w.gettier("audit", "export", "-o", "log.tar"); code != exitOK {
					t.Fatal(errs)
				}
			}
			if strings.Contains(line, "approve") && !strings.Contains(line, "--yes") {
				w.stdin = typed(t, "y\n")
			}
			if text, ok := exampleInput[strings.Join(args[:min(len(args), 2)], " ")]; ok {
				w.stdin = strings.NewReader(text)
			}
			if args := strings.Join(args, " "); args == "down" {
				w.signal = func(_ int, s syscall.Signal) error {
					if s == 0 {
						return syscall.ESRCH
					}
					w.stop()
					return nil
				}
			}
			code, out, errs := w.gettier(args...)
			if code != exitOK && !(code == exitFound && strings.Contains(line, "--claim")) {
				t.Fatalf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
			}
			// The MCP server only answers, and here nobody asks.
			if out == "" && line != "gettier mcp" {
				t.Error("nothing was printed")
			}
			// JSON in a pipe is data and spells the rest of Unicode as it is.
			if !strings.Contains(line, "--json") && !strings.Contains(line, "events") {
				checkClean(t, out+errs)
			}
		})
	}
}

// checkClean fails on anything that could steer a terminal.
func checkClean(t *testing.T, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("output has %U: %q", r, s)
			return
		}
	}
}

// Every listing command understands --json and prints one JSON value.
func TestJSON(t *testing.T) {
	for _, line := range []string{
		"status", "holds", "facts", "knowledge", "knowledge show 0002", "knowledge search backups", "knowledge add x --scope host", "knowledge rm 0002", "turns", "turns last", "why", "week", "sensors list", "sensors diff", "sensors lint testdata/sensors.yaml testdata/broken.yaml",
		"sensors try proxy.config", "sensors approve --all --yes", "audit verify", "project list", "project add", "project remove shop", "config show",
		"config approve --yes", "scenarios list", "version", "up", "", "events --since 0 --count 1",
	} {
		t.Run(line, func(t *testing.T) {
			w := newWorld(t, ipctest.Anyone)
			code, out, errs := w.gettier(append(strings.Fields(line), "--json")...)
			if code > exitFound {
				t.Fatalf("exit %d: %s", code, errs)
			}
			var v any
			d := json.NewDecoder(strings.NewReader(out))
			if err := d.Decode(&v); err != nil {
				t.Fatalf("not JSON: %v\n%s", err, out)
			}
			if d.More() {
				t.Errorf("more than one value: %s", out)
			}
			if strings.Contains(out, `":null`) && line != "scenarios list" && line != "events --since 0 --count 1" && line != "turns last" && line != "facts" && !strings.HasPrefix(line, "sensors") {
				t.Errorf("null in %s", out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"nonsense", exitUsage, "nonsense"},
		{"status extra", exitUsage, "extra"},
		{"--nonsense", exitUsage, "nonsense"},
		{"sensors", exitUsage, "approve"},
		{"sensors nonsense", exitUsage, "nonsense"},
		{"sensors try", exitUsage, "arg"},
		{"sensors try proxy.config --param x", exitUsage, "NAME=VALUE"},
		{"sensors try no.such", exitUsage, "no.such"},
		{"sensors approve", exitUsage, "--all"},
		{"sensors approve nothing.here --yes", exitUsage, "nothing.here"},
		{"sensors approve proxy.config", exitRefused, "nobody is there"},
		{"sensors approve proxy.config --yes", exitRefused, "no terminal"},
		{"sensors try db.version --draft", exitRefused, "no terminal"},
		{"project add", exitRefused, "no terminal"},
		{"project add no/such/dir", exitUsage, "no such file"},
		{"config approve --yes", exitRefused, "no terminal"},
		{"turns zzzz", exitUsage, "none ends so"},
		{"turns zz", exitUsage, "three characters"},
		{"turns t_00000000000000000000000000", exitUsage, "Not found"},
		{"holds --only nonsense", exitUsage, "nonsense"},
		{"holds --limit -1", exitOK, ""},
		{"events --kinds nonsense", exitUsage, "nonsense"},
		{"events --since 9999", exitRefused, "another"},
		{"sensors lint testdata/broken.yaml", exitFound, "comand"},
		{"sensors lint no/such.yaml", exitUsage, "no/such.yaml"},
		{"sensors try proxy.config --claim x", exitFound, "contradicted"},
		{"scenarios run NO-1", exitUsage, "NO-1"},
		{"scenarios run GTR-008 --arm half", exitUsage, "half"},
		{"scenarios run GTR-008 --policy nonsense", exitUsage, "nonsense"},
		{"scenarios run GTR-008 --answers always", exitUsage, "always"},
		{"scenarios validate NO-1", exitUsage, "NO-1"},
		{"model --policy nonsense", exitUsage, "nonsense"},
		{"fixture nonsense", exitUsage, "nonsense"},
		{"demo --scenario NO-1", exitUsage, "NO-1"},
		{"scenarios run GTR-008", exitReach, "not installed beside"},
	} {
		t.Run(c.line, func(t *testing.T) {
			w := newWorld(t, ipctest.Nobody)
			code, out, errs := w.gettier(strings.Fields(c.line)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q\nstdout: %s\nstderr: %s", code, c.code, c.says, out, errs)
			}
			if n := len(w.b.People()); n != 0 {
				t.Errorf("%d person's calls took effect", n)
			}
		})
	}
}

func TestWithoutDaemon(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	w.stop()
	for _, line := range []string{"status", "", "holds", "events", "down", "turns last", "why", "week", "audit verify", "sensors list"} {
		code, _, errs := w.gettier(strings.Fields(line)...)
		if code != exitReach || !strings.Contains(errs, "not running") || !strings.Contains(errs, "gettier up") {
			t.Errorf("%q: exit %d, %s", line, code, errs)
		}
	}
	code, _, errs := w.gettier("status", "--json")
	var e struct {
		Error, Hint string
		Exit        int
	}
	if err := json.Unmarshal([]byte(errs), &e); err != nil || code != exitReach || e.Exit != exitReach || e.Hint == "" {
		t.Errorf("exit %d, %q: %v", code, errs, err)
	}
	code, out, errs := w.gettier("config", "show", "--all")
	if code != exitOK || !strings.Contains(out, "not running") || !strings.Contains(out, "proxy.port") {
		t.Errorf("config show: exit %d\n%s%s", code, out, errs)
	}
}

func TestStoryGolden(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	code, out, errs := w.gettier("turns", "k3vq", "--evidence")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	golden(t, "story", out)
	for _, says := range []string{"rung 1", "nginx -T -c /etc/nginx/nginx.conf", "12 ms", `limit = "1m"`, "✗ contradicted", "by proxy.config judge 1", "client_max_body_size 1m;", "allow  mutate"} {
		if !strings.Contains(out, says) {
			t.Errorf("the story does not say %q", says)
		}
	}
}

func TestTurnRequest(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	if code, out, errs := w.gettier("turns", "k3vq", "--request"); code != exitOK || out != sampleRequest {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	w.b.Append(sampleTurn, lemma.RequestForgotten{Contract: lemma.Contract, Turn: sampleTurn})
	if code, out, errs := w.gettier("turns", "k3vq", "--request"); code != exitFound || out != "" || !strings.Contains(errs, "forgotten") {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
}

func TestListsGolden(t *testing.T) {
	for _, line := range []string{"status", "holds", "facts", "turns", "why", "week", "sensors list", "sensors try proxy.config --claim x", "config show --all", "sensors diff"} {
		t.Run(line, func(t *testing.T) {
			w := newWorld(t, ipctest.Anyone)
			_, out, _ := w.gettier(strings.Fields(line)...)
			out = strings.ReplaceAll(out, fmt.Sprintf("pid %d", os.Getpid()), "pid 4711")
			golden(t, strings.ReplaceAll(strings.TrimSuffix(line, " --claim x"), " ", "_"), out)
		})
	}
}

// golden compares with testdata/NAME.txt; GETTIER_UPDATE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	checkClean(t, got)
	file := filepath.Join("testdata", strings.ReplaceAll(name, "-", "")+".txt")
	if os.Getenv("GETTIER_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, d)
	}
}

func TestApproveBindsWhatWasShown(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	w.stdin = typed(t, "n\n")
	if code, _, errs := w.gettier("sensors", "approve", "proxy.config"); code != exitRefused || !strings.Contains(errs, "not done") {
		t.Errorf("no: exit %d, %s", code, errs)
	}
	d := w.b.Diffs["user/proxy.config"]
	d.Hash = strings.Repeat("00", 32) // as if the file changed after it was shown
	w.b.Diffs["user/proxy.config"] = d
	if code, _, errs := w.gettier("sensors", "approve", "proxy.config", "--yes"); code != exitRefused || !strings.Contains(errs, "changed") {
		t.Errorf("changed: exit %d, %s", code, errs)
	}
	if n := len(w.b.People()); n != 0 {
		t.Errorf("%d approvals took effect", n)
	}
}

// A project's sensors are never part of "all".
func TestApproveAllLeavesProjectsOut(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	code, out, errs := w.gettier("sensors", "approve", "--all", "--yes")
	if code != exitOK || !strings.Contains(out, "approved: user/proxy.config\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if s := w.b.SensorSet[1]; s.State != "pending" {
		t.Errorf("a project's sensor is %s", s.State)
	}
	if code, out, _ := w.gettier("sensors", "approve", "db.version", "--yes"); code != exitOK || !strings.Contains(out, "project/shop/db.version") {
		t.Errorf("by name: exit %d, %s", code, out)
	}
}

func TestEventsEndAfterCount(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	code, out, errs := w.gettier("events", "--since", "0", "--count", "3", "--kinds", "turn.opened,claim.judged,turn.closed")
	if code != exitOK || strings.Count(out, "\n") != 3 || !strings.Contains(out, `"kind":"claim.judged"`) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
