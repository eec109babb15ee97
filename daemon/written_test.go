package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/action"
)

// TestWrittenScripts: a script of this session is judged by what it holds when it is
// run: by the call that writes it while that has not run, by the disk afterwards, and
// a script that was there before the task not at all.
func TestWrittenScripts(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("old.sh", "rm -rf data\n")
	old, err := os.Stat(filepath.Join(dir, "old.sh"))
	if err != nil {
		t.Fatal(err)
	}
	since := old.ModTime().Add(time.Second)
	now := since
	g := &actionGate{rules: action.Default, now: func() time.Time { return now }}
	run := func(a action.Action) action.State {
		a.Cwd, a.Actor = dir, "a"
		return g.decide(a, since).State
	}
	sh := func(cmd string) action.State { return run(action.Action{Command: cmd}) }
	tool := func(name string, args map[string]string) action.State {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return run(action.Action{Tool: name, Args: raw})
	}
	want := func(what string, got, want action.State) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	want("a script of before the task", sh("bash old.sh"), action.Allow)

	// The same answer: neither call has run.
	want("write", tool("Write", map[string]string{"file_path": filepath.Join(dir, "x.sh"), "content": "rm -rf data\n"}), action.Allow)
	want("run before it lies there", sh("bash x.sh"), action.RequireConfirm)
	want("by another way", sh("cd / && "+filepath.Join(dir, "x.sh")), action.RequireConfirm)
	want("write anew", tool("Write", map[string]string{"file_path": filepath.Join(dir, "x.sh"), "content": "ls\n"}), action.Allow)
	want("run what is harmless now", sh("bash x.sh"), action.Allow)
	want("edit", tool("Edit", map[string]string{"file_path": filepath.Join(dir, "x.sh"), "old_string": "ls", "new_string": "git clean -fdx"}), action.Allow)
	want("run what was edited", sh("./x.sh"), action.RequireConfirm)
	want("a here-document", sh("cat > y.py <<'E'\nimport shutil\nshutil.rmtree('data')\nE"), action.Allow)
	want("run it in the next call", sh("python3 y.py"), action.RequireConfirm)

	// Later: the disk counts, whatever wrote it there.
	since = old.ModTime().Add(-time.Second)
	now = old.ModTime().Add(-time.Minute)
	put("x.sh", "ls\n")
	g.written = written{}
	want("remembered long ago", tool("Write", map[string]string{"file_path": filepath.Join(dir, "x.sh"), "content": "rm -rf data\n"}), action.Allow)
	want("and overtaken by the disk", sh("bash x.sh"), action.Allow)
	put("z.sh", "rm -rf data\n")
	want("written by something else in the task", sh("bash z.sh"), action.RequireConfirm)
	if err := os.Rename(filepath.Join(dir, "z.sh"), filepath.Join(dir, "q.sh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "q.sh"), since.Add(-time.Hour), since.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("renamed and set back in time", sh("bash q.sh"), action.RequireConfirm)
	put("package.json", `{"scripts": {"build": "rm -rf data && tsc", "test": "vitest"}}`)
	want("a package's script", sh("npm run build"), action.RequireConfirm)
	want("another of its scripts", sh("npm test"), action.Allow)
	put("Makefile", "all:\n\tls\nclean:\n\trm -rf data\n")
	want("a makefile's first target", sh("make"), action.Allow)
	want("its other target", sh("make clean"), action.RequireConfirm)

	// A later task of the same session: what the earlier one wrote is still its own.
	early := since
	since, now = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	want("a script of the task before", sh("bash q.sh"), action.RequireConfirm)
	a := action.Action{Command: "bash q.sh", Cwd: dir, Actor: "another"}
	want("in a session that begins now", g.decide(a, since).State, action.Allow)
	want("and again, without a task", g.decide(a, time.Time{}).State, action.Allow)
	for i := range maxSessions {
		g.sessions.began(time.Duration(i).String(), since, now)
	}
	if got := g.sessions.began("one too many", since, now); got.After(early) || len(g.sessions.first) > maxSessions {
		t.Errorf("%s of %d sessions, the earliest is %s", got, len(g.sessions.first), early)
	}

	for i := range 2 * maxWritten {
		g.written.put(dir, "f"+string(rune('a'+i%26))+time.Duration(i).String(), "x", true, now)
	}
	if len(g.written.files) > maxWritten || len(g.written.order) != len(g.written.files) {
		t.Errorf("%d files remembered, %d in order", len(g.written.files), len(g.written.order))
	}
}
