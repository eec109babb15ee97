package evidence

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/action"
)

func worktreeOf(t *testing.T, files map[string]string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("nothing is vouched for here")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, top, "init", "-q", "-b", "main")
	for name, text := range files {
		put(t, top, name, text)
	}
	git(t, top, "add", "-A")
	git(t, top, "commit", "-qm", "one")
	return top
}

func git(t *testing.T, top string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", top, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %s", args, out)
	}
}

func put(t *testing.T, top, name, text string) {
	t.Helper()
	p := filepath.Join(top, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRegenerable(t *testing.T) {
	top := worktreeOf(t, map[string]string{
		".gitignore":     "node_modules/\n/dist\n*.log\nbuild\n!keep/build\ntarget\n.next\ncoverage\n.cache\nlinked\n",
		"app/.gitignore": "out\n", "src/a.go": "package a\n", "keep/x": "", "coverage/kept.txt": "tracked although ignored",
	})
	git(t, top, "add", "-f", "coverage/kept.txt")
	git(t, top, "commit", "-qm", "two", "--allow-empty")
	for name, text := range map[string]string{
		"node_modules/left-pad/index.js": "x", "node_modules/a/test/fixtures/cert.pem": "x", "node_modules/a/backup.js": "x",
		"dist/app.js": "x", "build/o": "x", "keep/build/o": "x", "app/out/o": "x", "src/dist/o": "x", "target/state.db": "x", ".next/.env.local": "x", "coverage/index.html": "x",
		".cache/sub/.git/HEAD": "x", "deep/node_modules/x/y.js": "x", "out/x": "x", "loose/node_modules/q/app.sqlite": "x",
	} {
		put(t, top, name, text)
	}
	if err := os.Symlink("../left-pad/index.js", filepath.Join(top, "node_modules/a/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "web/dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top+"/src", filepath.Join(top, "app/dist")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "other/build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(top, "other/build/etc")); err != nil {
		t.Fatal(err)
	}
	put(t, top, ".gitignore", "node_modules/\n/dist\nout\n*.log\nbuild\n!keep/build\ntarget\n.next\ncoverage\n.cache\n") // "out" is not committed
	d := Disk{}
	for _, c := range []struct {
		cwd, path string
		ok        bool
		why       string
	}{
		{"", "node_modules", true, "ignored"},
		{"", "./node_modules/", true, "ignored"},
		{"deep", "node_modules", true, "ignored"},
		{"", "dist", true, "ignored"},
		{"", "build", true, "ignored"},
		{"app", "out", true, "ignored"},
		{"", "none/dist", true, "does not exist"},
		{"", "out", false, "no committed .gitignore"},
		{"src", "dist", false, "no committed .gitignore"},
		{"keep", "build", false, "no committed .gitignore"},
		{"", "target", false, "state.db"},
		{"", ".next", false, ".env.local"},
		{"", "coverage", false, "git tracks"},
		{"", ".cache", false, "a repository"},
		{"loose", "node_modules", false, "app.sqlite"},
		{"app", "dist", false, "by a link"},
		{"other", "build", false, "leads out"},
		{"", "src", false, "git tracks"},
		{"", ".", false, "below where it runs"},
		{"app", "../dist", false, "below where it runs"},
		{"nowhere", "dist", false, "cannot be read"},
	} {
		got := d.Regenerable(filepath.Join(top, c.cwd), c.path)
		if got.OK != c.ok || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s in %q: %+v, want %v: %s", c.path, c.cwd, got, c.ok, c.why)
		}
	}
	if got := d.Regenerable("", "node_modules"); got.OK {
		t.Error("it is not known where this runs")
	}
	decision := action.Decide(action.Action{Command: "rm -rf node_modules dist", Cwd: top}, nil, action.Situation{Disk: d})
	if !decision.Allowed {
		t.Errorf("%+v", decision)
	}
	if decision := action.Decide(action.Action{Command: "rm -rf src", Cwd: top}, nil, action.Situation{Disk: d}); decision.Allowed {
		t.Errorf("%+v", decision)
	}
}

// TestBorn: what is wholly younger than the task may go, what holds one older file not.
func TestBorn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "build/a", "x")
	b, ok := birth(filepath.Join(dir, "build/a"))
	if !ok {
		t.Skip("this file system does not keep when a file was made")
	}
	if got := (Disk{Since: b.Add(-time.Hour)}).Regenerable(dir, "build"); !got.OK || !strings.Contains(got.Why, "after the task began") {
		t.Errorf("%+v", got)
	}
	if got := (Disk{Since: b.Add(time.Hour)}).Regenerable(dir, "build"); got.OK {
		t.Errorf("%+v", got)
	}
	if got := (Disk{}).Regenerable(dir, "build"); got.OK {
		t.Errorf("%+v", got)
	}
}

func TestReal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "real/.bashrc", "x")
	if err := os.Symlink("real", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real/.zshrc", filepath.Join(dir, "soon")); err != nil { // is not there yet
		t.Fatal(err)
	}
	for p, want := range map[string]string{"alias/.bashrc": "real/.bashrc", "alias/new": "real/new", "soon": "real/.zshrc", "x/y/z": "x/y/z", "./a/../b": "b"} {
		if got := (Disk{}).Real(dir, p); got != filepath.Join(dir, want) {
			t.Errorf("%s leads to %s, want %s", p, got, want)
		}
	}
	for _, p := range []string{"$X/a", "a*"} {
		if got := (Disk{}).Real(dir, p); got != "" {
			t.Errorf("%s leads to %s", p, got)
		}
	}
	if got := (Disk{}).Real("", "a"); got != "" {
		t.Error(got)
	}
	decision := action.Decide(action.Action{Command: "echo x >> soon", Cwd: dir}, nil, action.Situation{Disk: Disk{}})
	if decision.State != action.RequireConfirm {
		t.Errorf("a link to a shell's profile: %+v", decision)
	}
}

// TestScript: what changed after a time is read, by whatever name it goes; what is
// older, no file or not there is not.
func TestScript(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "x.sh", "rm -rf data\n")
	put(t, dir, "long.sh", strings.Repeat("x", 2*maxScript))
	if err := os.Symlink("x.sh", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "x.sh"))
	if err != nil {
		t.Fatal(err)
	}
	young := Disk{Changed: info.ModTime().Add(-time.Second)}
	for _, p := range []string{"x.sh", "./x.sh", "link", filepath.Join(dir, "x.sh"), "sub/../x.sh"} {
		if got := young.Script(dir, p); len(got) != 1 || got[0] != "rm -rf data\n" {
			t.Errorf("%s: %q", p, got)
		}
	}
	if got := young.Script(dir, "long.sh"); len(got) != 1 || len(got[0]) != maxScript {
		t.Errorf("a long file: %d texts", len(got))
	}
	for _, p := range []string{"none", "pipe", ".", "$X/x.sh", "*.sh"} {
		if got := young.Script(dir, p); got != nil {
			t.Errorf("%s: %q", p, got)
		}
	}
	if got := young.Script("", "x.sh"); got != nil {
		t.Error("it is not known where this runs")
	}
	if got := (Disk{Changed: info.ModTime().Add(time.Hour)}).Script(dir, "x.sh"); got != nil {
		t.Error("it is older than the session")
	}
	if got := (Disk{}).Script(dir, "x.sh"); got != nil {
		t.Error("nobody asked for scripts")
	}
	if young.ChangedAt(dir, "x.sh").IsZero() || !young.ChangedAt(dir, "none").IsZero() {
		t.Error("when a file changed")
	}
}
