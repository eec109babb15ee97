package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFile reads files of a commit, loose and packed, beside git itself.
func TestFile(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", top, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "main")
	write(".gitignore", "dist\n")
	write("a/b/.gitignore", strings.Repeat("x\n", 1000))
	run("add", "-A")
	run("commit", "-qm", "one")
	write(".gitignore", "dist\nbuild\n")
	write("a/b/.gitignore", strings.Repeat("x\n", 1000)+"y\n")
	run("add", "-A")
	run("commit", "-qm", "two")
	write(".gitignore", "data\n")
	for _, state := range []string{"loose", "packed"} {
		if state == "packed" {
			run("gc", "-q", "--aggressive", "--prune=now")
		}
		r, err := Open(top)
		if err != nil {
			t.Fatal(err)
		}
		for rev, want := range map[string]string{"HEAD": "dist\nbuild\n", "HEAD~1": "dist\n"} {
			commit := run("rev-parse", rev)
			if b, err := r.File(commit, ".gitignore"); err != nil || string(b) != want {
				t.Errorf("%s %s: %q, %v", state, rev, b, err)
			}
			if b, err := r.File(commit, "a/b/.gitignore"); err != nil || !strings.HasPrefix(string(b), "x\nx\n") {
				t.Errorf("%s %s: %q, %v", state, rev, b, err)
			}
			for _, p := range []string{"none", "a", "a/b", "a/none/x", ".gitignore/x", ""} {
				if _, err := r.File(commit, p); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s %s %q: %v", state, rev, p, err)
				}
			}
		}
	}
}
