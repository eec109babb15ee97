package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/ipc/ipctest"
)

// built are both programs as they are shipped, made once for all tests.
var built struct {
	sync.Once
	dir string
	err error
}

// binaries is the directory that holds gettier and gettierd.
func binaries(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts daemons and builds both binaries")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not on PATH")
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gettier-bin-"); built.err != nil {
			return
		}
		for name, pkg := range map[string]string{"gettier": ".", "gettierd": "../../daemon/gettierd"} {
			if msg, err := exec.Command("go", "build", "-o", filepath.Join(built.dir, name), pkg).CombinedOutput(); err != nil {
				built.err = errors.New(name + ": " + string(msg))
			}
		}
	})
	if built.err != nil {
		t.Fatalf("build: %v", built.err)
	}
	return built.dir
}

// ownScenario is GTR-016 as a person's directory, with old replaced by new in its
// scenario.yaml; not yet frozen.
func ownScenario(t *testing.T, old, new string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my-scenario")
	if err := os.CopyFS(dir, os.DirFS("../../scenarios/gtr016")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "scenario.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), old, new, 1)
	if old != "" && text == string(data) {
		t.Fatalf("scenario.yaml has no %q", old)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A directory of one's own: refused while its files are not those of its LOCK,
// then checked and run like any other.
func TestScenarioDirectory(t *testing.T) {
	bin := binaries(t)
	w := newWorld(t, ipctest.Nobody)
	dir := ownScenario(t, "GTR-016", "OWN-001")
	run := []string{"scenarios", "run", "--dir", dir, "--quiet", "--gettierd", filepath.Join(bin, "gettierd")}
	if code, _, errs := w.gettier(run...); code != exitUsage || !strings.Contains(errs, "scenario.yaml has changed") {
		t.Errorf("before it is frozen: exit %d, %s", code, errs)
	}
	if code, out, errs := w.gettier("scenarios", "lock", dir); code != exitOK || !strings.HasPrefix(out, "OWN-001 locked: ") {
		t.Fatalf("lock: exit %d, %s %s", code, out, errs)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{run, "OWN-001 gated scripted:believer catch\n"},
		{[]string{"scenarios", "validate", "--dir", dir}, "OWN-001 sound: "},
	} {
		if code, out, errs := w.gettier(c.args...); code != exitOK || !strings.HasPrefix(out, c.says) {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
	if code, _, errs := w.gettier(append(run, "GTR-008")...); code != exitUsage || !strings.Contains(errs, "not both") {
		t.Errorf("a directory and an id: exit %d, %s", code, errs)
	}

	if err := os.Remove(filepath.Join(dir, "probe.sh")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := w.gettier("scenarios", "lock", dir); code != exitUsage || !strings.Contains(errs, "probe.sh is missing") {
		t.Errorf("what is no scenario: exit %d, %s", code, errs)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "LOCK")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("its LOCK was written anew (%v)", err)
	}
	if code, _, _ := w.gettier("scenarios", "lock", filepath.Join(dir, "none")); code != exitUsage {
		t.Errorf("no directory: exit %d", code)
	}
}

// What is missing is named with the package that brings it, by run and validate.
func TestMissingProgram(t *testing.T) {
	bin := binaries(t)
	dir := ownScenario(t, "requires: []", "requires: [{ program: no-such-program-here, package: some-package }]")
	w := newWorld(t, ipctest.Nobody)
	if code, _, errs := w.gettier("scenarios", "lock", dir); code != exitOK {
		t.Fatalf("lock: exit %d, %s", code, errs)
	}
	check := func(t *testing.T, cmd *exec.Cmd, program, pkg string) {
		t.Helper()
		cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "LANG=C.UTF-8")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitReach {
			t.Errorf("%v: %v, want exit %d\n%s", cmd.Args, err, exitReach, out)
		}
		for _, want := range []string{program, "Debian package " + pkg, "apt-get install " + pkg} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is not said:\n%s", want, out)
			}
		}
	}
	gettier := filepath.Join(bin, "gettier")
	for _, what := range []string{"run", "validate"} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), gettier, "scenarios", what, "--dir", dir)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			check(t, cmd, "no-such-program-here", "some-package")
		})
	}
	// A machine without nginx: the system's own directories are looked at as well
	// as PATH, so they are hidden where this test may do that.
	t.Run("GTR-001", func(t *testing.T) {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip("unshare (Debian package util-linux) is not here")
		}
		inside := func(script string, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), unshare, append([]string{"--user", "--map-root-user", "--mount", "sh", "-c",
				`for d in /usr/local/sbin /usr/sbin /sbin; do [ ! -d "$d" ] || mount -t tmpfs none "$d" || exit 99; done; ` + script, "sh"}, args...)...)
			cmd.Env = []string{"PATH=/usr/bin:/bin"}
			return cmd
		}
		if out, err := inside("true").CombinedOutput(); err != nil {
			t.Skipf("no mount namespace may be made here: %v %s", err, out)
		}
		if path, err := inside("command -v nginx").Output(); err == nil {
			t.Skipf("nginx is in %s", bytes.TrimSpace(path))
		}
		check(t, inside(`exec "$@"`, gettier, "scenarios", "run", "GTR-001"), "nginx", "nginx")
	})
}
