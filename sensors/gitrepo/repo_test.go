package gitrepo_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/sensors/gitrepo"
)

// tree is a work tree that the real git made.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &tree{t, dir}
	w.git("init", "-q", "-b", "main")
	return w
}

func (w *tree) gitIn(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(w.dir, ".."), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (w *tree) git(args ...string) string { w.t.Helper(); return w.gitIn(w.dir, args...) }

func (w *tree) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// porcelain is what the real git says.
func (w *tree) porcelain(dir string) gitrepo.Status {
	w.t.Helper()
	var s gitrepo.Status
	for line := range strings.SplitSeq(w.gitIn(dir, "status", "--porcelain", "-unormal"), "\n") {
		if len(line) < 3 {
			continue
		}
		switch x, y := line[0], line[1]; {
		case x == '?':
			s.Untracked++
		case x == 'U' || y == 'U' || x == 'A' && y == 'A' || x == 'D' && y == 'D':
			s.Conflicts++
			s.Staged = true
		default:
			s.Staged = s.Staged || x != ' '
			switch y {
			case 'M', 'T', 'A':
				s.Modified++
			case 'D':
				s.Deleted++
			}
		}
	}
	return s
}

func (w *tree) status(dir string) gitrepo.Status {
	w.t.Helper()
	r, err := gitrepo.Open(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := r.Status(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// What is read here is what git itself says, state by state.
func TestStatusAgreesWithGit(t *testing.T) {
	w := newTree(t)
	steps := []struct {
		what string
		do   func()
	}{
		{"empty", func() {}},
		{"an untracked file", func() { w.write("a.txt", "one\n") }},
		{"staged before the first commit", func() { w.git("add", ".") }},
		{"committed", func() { w.git("commit", "-qm", "1") }},
		{"changed", func() { w.write("a.txt", "two\n") }},
		{"changed back", func() { w.write("a.txt", "one\n") }},
		{"directories", func() {
			w.write("src/deep/er/b.go", "package b\n")
			w.write("src/c.go", "package c\n")
			w.write("src-old/x", "x")
			w.write("src.txt", "x")
		}},
		{"added", func() { w.git("add", ".") }},
		{"added, then changed", func() { w.write("src/c.go", "package d\n") }},
		{"committed again", func() { w.git("commit", "-qam", "2") }},
		{"ignored", func() {
			w.write(".gitignore", "*.log\n/build/\n!keep.log\nnode_modules\ndoc/*.tmp\n# x\n")
			w.write("x.log", "")
			w.write("src/keep.log", "")
			w.write("build/out", "")
			w.write("src/build/out", "")
			w.write("src/node_modules/p/index.js", "")
			w.write("doc/a.tmp", "")
			w.write("doc/sub/a.tmp", "")
			w.write("src/deep/.gitignore", "local*\n")
			w.write("src/deep/local1", "")
		}},
		{"an executable", func() {
			if err := os.Chmod(filepath.Join(w.dir, "a.txt"), 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link in place of a file", func() {
			if err := errors.Join(os.Remove(filepath.Join(w.dir, "src.txt")), os.Symlink("a.txt", filepath.Join(w.dir, "src.txt"))); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed", func() {
			if err := os.RemoveAll(filepath.Join(w.dir, "src/deep")); err != nil {
				t.Fatal(err)
			}
		}},
		{"all of it", func() { w.git("add", "-A"); w.git("commit", "-qm", "3") }},
		{"intent to add", func() { w.write("later", "x"); w.git("add", "-N", "later") }},
		{"packed", func() {
			w.git("rm", "-q", "--cached", "later")
			w.git("update-index", "--index-version", "4")
			w.git("repack", "-adq")
		}},
		{"touched", func() {
			for i := range 30 {
				w.write(fmt.Sprintf("many/%d", i), "same")
			}
			w.git("add", ".")
			w.git("commit", "-qm", "4")
			w.git("repack", "-adq")
			for i := range 30 {
				w.write(fmt.Sprintf("many/%d", i), "same")
			}
		}},
		{"a conflict", func() {
			w.git("checkout", "-qb", "other")
			w.write("a.txt", "theirs\n")
			w.git("commit", "-qam", "5")
			w.git("checkout", "-q", "main")
			w.write("a.txt", "ours\n")
			w.git("commit", "-qam", "6")
			cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "merge", "other")
			cmd.Dir = w.dir
			if cmd.Run() == nil {
				t.Fatal("the merge went through")
			}
		}},
	}
	for _, s := range steps {
		s.do()
		got, want := w.status(w.dir), w.porcelain(w.dir)
		if got != want {
			t.Errorf("%s: %+v, git says %+v\n%s", s.what, got, want, w.git("status", "--porcelain"))
		}
	}
}

func TestHeadAndRefs(t *testing.T) {
	w := newTree(t)
	r, err := gitrepo.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Head(); err != nil || h.Branch != "main" || h.Commit != "" {
		t.Fatalf("before the first commit: %+v, %v", h, err)
	}
	w.write("a", "1")
	w.git("add", ".")
	w.git("commit", "-qm", "1")
	commit := strings.TrimSpace(w.git("rev-parse", "HEAD"))
	for _, state := range []string{"loose", "packed"} {
		if state == "packed" {
			w.git("pack-refs", "--all")
		}
		if h, err := r.Head(); err != nil || h != (gitrepo.Head{Branch: "main", Commit: commit}) {
			t.Errorf("%s: %+v, %v", state, h, err)
		}
	}
	w.git("checkout", "-q", "--detach")
	if h, err := r.Head(); err != nil || h != (gitrepo.Head{Commit: commit, Detached: true}) {
		t.Errorf("detached: %+v, %v", h, err)
	}
	w.write("a", "2")
	w.git("stash")
	if n, err := r.Stashes(); err != nil || n != 1 {
		t.Errorf("stashes: %d, %v", n, err)
	}
	if _, err := r.Ref("refs/heads/../../HEAD"); err == nil {
		t.Error("a reference that climbs is read")
	}
}

func TestWorktrees(t *testing.T) {
	w := newTree(t)
	w.write("a", "1")
	w.git("add", ".")
	w.git("commit", "-qm", "1")
	linked := filepath.Join(w.dir, "..", filepath.Base(w.dir)+"-linked")
	w.git("worktree", "add", "-q", "-b", "feature", linked)
	defer os.RemoveAll(linked)
	r, err := gitrepo.Open(linked)
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Head()
	if err != nil || h.Branch != "feature" || !r.Linked || r.Main() != w.dir || r.Worktrees() != 1 {
		t.Errorf("%+v %+v %v main %s", r, h, err, r.Main())
	}
	if err := os.WriteFile(filepath.Join(linked, "a"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := w.status(linked), w.porcelain(linked); got != want || got.Modified != 1 {
		t.Errorf("linked: %+v, git says %+v", got, want)
	}
	if got := w.status(w.dir); got != (gitrepo.Status{}) {
		t.Errorf("the other work tree: %+v", got)
	}

	// A directory that calls another's repository its own.
	other := t.TempDir()
	b, err := os.ReadFile(filepath.Join(linked, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, ".git"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := gitrepo.Open(other); !errors.Is(err, gitrepo.ErrForeign) {
		t.Errorf("a tree that the repository does not know: %v", err)
	}
}

// A repository that someone else wrote: nothing of it runs, nothing outside is
// read, and what cannot be told is unknown.
func TestHostileRepository(t *testing.T) {
	w := newTree(t)
	w.write("a.bin", "content\n")
	w.git("add", ".")
	w.git("commit", "-qm", "1")
	trap := filepath.Join(w.dir, "..", filepath.Base(w.dir)+"-trap")
	defer os.Remove(trap)
	w.git("config", "core.fsmonitor", "touch "+trap)
	w.git("config", "filter.x.clean", "touch "+trap)
	w.git("config", "core.hooksPath", w.dir)
	w.write(".gitattributes", "*.bin filter=x\n")
	w.write("a.bin", "other!!\n")
	s := w.status(w.dir)
	if s.Unknown == "" || s.Modified != 0 {
		t.Errorf("a file whose filter would have to run: %+v", s)
	}
	if _, err := os.Lstat(trap); err == nil {
		t.Error("something of the repository ran")
	}

	// A pipe where a file is expected must not block.
	if err := errors.Join(os.Remove(filepath.Join(w.dir, "a.bin")), syscall.Mkfifo(filepath.Join(w.dir, "a.bin"), 0o600),
		os.Remove(filepath.Join(w.dir, ".git", "HEAD")), syscall.Mkfifo(filepath.Join(w.dir, ".git", "HEAD"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := gitrepo.Open(w.dir); err == nil {
		t.Error("a pipe is taken for HEAD")
	}
}

func TestConfig(t *testing.T) {
	c := gitrepo.ParseConfig("[core]\n\tbare = false ; no\n[remote \"or.igin\"]\n url = \"https://x/y\" # z\n\tpush=a\\\nb\n[Branch \"Main\"] remote=up\n\tflag\n[broken\nkey=1\n[include]\npath=/etc/x\n")
	for name, want := range map[string]string{
		"core.bare": "false", "remote.or.igin.url": "https://x/y", "remote.or.igin.push": "ab", "branch.Main.remote": "up", "branch.Main.flag": "true",
	} {
		if got := c.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := c.Sections("remote"); len(got) != 1 || got[0] != "or.igin" || !c.Includes {
		t.Errorf("remotes %q, includes %v", got, c.Includes)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"+strings.Repeat("\x00", 20)), false)
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"+strings.Repeat("\x00", 120)), false)
	f.Fuzz(func(t *testing.T, b []byte, long bool) {
		x, err := gitrepo.ParseIndex(b, long)
		if err == nil {
			x.Tree()
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add("[a \"b\\\"c\"]\nx = \"y\\n\" ; z\n[a]\nb\\\n")
	f.Fuzz(func(_ *testing.T, text string) { gitrepo.ParseConfig(text).Sections("a") })
}

func BenchmarkStatus(b *testing.B) {
	top, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	r, err := gitrepo.Open(top)
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		if _, err := r.Status(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
	}
}
