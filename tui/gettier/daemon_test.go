package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipctest"
)

// tree makes a directory that calls itself our module.
func tree(t *testing.T) (root, source string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source = filepath.Join(root, "tui", "gettier", "daemon.go")
	if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+module+"\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root, source
}

// Only a gettier that go run started, compiled from the tree it stands in,
// builds from it.
func TestRunBySource(t *testing.T) {
	root, source := tree(t)
	temp := filepath.Join(t.TempDir(), "go-build3583274079", "b001", "exe", "gettier")
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Skipf("go is not on PATH: %v", err)
	}
	cache, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		t.Skipf("no build cache: %v", err)
	}
	hash := strings.Repeat("02", 32)
	cached := filepath.Join(cache, "02", hash+"-d", "gettier")
	for _, c := range []struct {
		name, exe, source, wd string
		want                  bool
	}{
		{"first go run", temp, source, root, true},
		{"later go run", cached, source, root, true},
		{"in a subdirectory", temp, source, filepath.Dir(source), true},
		{"installed", "/usr/local/bin/gettier", source, root, false},
		{"standing elsewhere", temp, source, t.TempDir(), false},
		{"trimmed", temp, module + "/tui/gettier/daemon.go", root, false},
		{"compiled from elsewhere", temp, "/nowhere/tui/gettier/daemon.go", root, false},
		{"a look-alike of the cache", filepath.Join(t.TempDir(), "02", hash+"-d", "gettier"), source, root, false},
		{"a wrong place in the cache", filepath.Join(cache, "03", hash+"-d", "gettier"), source, root, false},
		{"a directory called exe", filepath.Join(root, "exe", "gettier"), source, root, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(c.wd)
			got, ok := runBySource(t.Context(), c.exe, c.source)
			if ok != c.want || ok && got != root {
				t.Errorf("got %q, %v; want %v", got, ok, c.want)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.org/other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	if _, ok := runBySource(t.Context(), temp, source); ok {
		t.Error("another module was taken for ours")
	}
}

// fakeDaemon is a script in gettierd's place.
func fakeDaemon(t *testing.T, script string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not on PATH")
	}
	path := filepath.Join(t.TempDir(), "gettierd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStart(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	a := &app{in: w.stdin, out: os.Stdout, err: os.Stderr, env: w.env(), signal: syscall.Kill}
	l, err := a.layout()
	if err != nil {
		t.Fatal(err)
	}
	bin := fakeDaemon(t, `echo "started with $*" >&2
echo '{"ready":true,"proxy":"127.0.0.1:4","socket":"/s","pid":1}'
exec sleep 60
`)
	r, pid, log, err := a.start(t.Context(), bin, []string{"--socket", l.Socket}, l)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if r.Proxy != "127.0.0.1:4" {
		t.Errorf("got %+v", r)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("the daemon is in session %d, not its own: %v", sid, err)
	}
	said, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(said), "started with --socket "+l.Socket) {
		t.Errorf("log: %q, %v", said, err)
	}
	if fi, err := os.Stat(log); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the log's mode is %v, %v", fi.Mode(), err)
	}
}

func TestStartFails(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	a := &app{env: w.env()}
	l, err := a.layout()
	if err != nil {
		t.Fatal(err)
	}
	for script, says := range map[string]string{
		"echo 'proxy port 11435 is taken by pid 9' >&2; exit 1\n": "taken by pid 9",
		"echo hello; exec sleep 60\n":                             "hello",
	} {
		_, _, _, err := a.start(t.Context(), fakeDaemon(t, script), nil, l)
		var e *exit
		if !errors.As(err, &e) || e.code != exitReach || !strings.Contains(e.Error()+e.hint, says) {
			t.Errorf("%q: %v", script, err)
		}
	}
}

func TestUpWhenItRuns(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	code, out, errs := w.gettier("up", "--upstream", "http://127.0.0.1:1", "--socket", w.socket)
	if code != exitOK || !strings.Contains(out, "runs already") || !strings.Contains(out, "--upstream changes nothing") || strings.Contains(out, "--socket") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestDown(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	var got []syscall.Signal
	w.signal = func(pid int, s syscall.Signal) error {
		if pid != os.Getpid() {
			t.Errorf("signalled %d", pid)
		}
		got = append(got, s)
		if len(got) > 3 { // it takes a while to drain
			return syscall.ESRCH
		}
		return nil
	}
	code, out, errs := w.gettier("down")
	if code != exitOK || !strings.Contains(out, "stopped") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if !slices.Equal(got, []syscall.Signal{syscall.SIGTERM, 0, 0, 0}) {
		t.Errorf("signals %v", got)
	}
}

// The directory that a command runs in picks the project.
func TestProjectOfDirectory(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	root, source := tree(t)
	w.b.Roots = []ipc.Project{{Name: "all", Root: filepath.Dir(root)}, {Name: "shop", Root: root}, {Name: "sho", Root: root[:len(root)-1]}}
	t.Chdir(filepath.Dir(source))
	c := ipc.New(w.socket, "cli")
	cmd := (&app{}).root()
	cmd.SetContext(t.Context())
	if name, err := (&app{}).project(cmd, c); err != nil || name != "shop" {
		t.Errorf("got %q, %v", name, err)
	}
}

// Both binaries for real: the examples that start daemons, and what is printed
// of them.
func TestScenarioExamples(t *testing.T) {
	dir := binaries(t)
	for _, line := range examples(t) {
		if !ownDaemon(line) {
			continue
		}
		t.Run(line, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "gettier"), argvOf(t, line)[1:]...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_RUNTIME_DIR=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
			cmd.Dir = dir
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, errs.String())
			}
			switch {
			case strings.Contains(line, "--json"):
				d := json.NewDecoder(strings.NewReader(string(out)))
				for d.More() {
					var v map[string]any
					if err := d.Decode(&v); err != nil {
						t.Fatalf("not JSON: %v\n%s", err, out)
					}
					if v["score"] == "infra" {
						t.Errorf("infra: %v", v["error"])
					}
				}
			case strings.Contains(line, "--answers none"):
				if want := "GTR-008 gated scripted:compound held"; strings.TrimSpace(string(out)) != want {
					t.Errorf("got %s, want %s\n%s", out, want, errs.String())
				}
			case strings.HasPrefix(line, "gettier demo"):
				for _, says := range []string{"GTR-008 ungated scripted:believer lucky_pass", "GTR-008 gated scripted:believer catch"} {
					if !strings.Contains(string(out), "\n"+says+"\n") {
						t.Errorf("the demo does not say %q:\n%s", says, out)
					}
				}
			}
		})
	}
}
