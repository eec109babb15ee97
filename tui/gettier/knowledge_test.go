package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// edits is an editor that does one step each time it is opened; $1 is the page.
func (w *world) edits(steps ...string) (opened func() int) {
	w.t.Helper()
	dir := w.t.TempDir()
	script := "n=$(cat " + dir + "/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > " + dir + "/n\ncp \"$1\" " + dir + "/seen$n\ncase $n in\n"
	for i, s := range steps {
		script += fmt.Sprintf("%d) %s ;;\n", i+1, s)
	}
	file := filepath.Join(dir, "editor.sh")
	if err := os.WriteFile(file, []byte(script+"*) ;;\nesac\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.more = append(w.more, "VISUAL=/bin/sh "+file, "EDITOR=false", "TMPDIR="+os.TempDir())
	w.seen = func(n int) string {
		b, err := os.ReadFile(fmt.Sprint(dir, "/seen", n))
		if err != nil {
			w.t.Fatal(err)
		}
		return string(b)
	}
	return func() int {
		pages, err := filepath.Glob(dir + "/seen*")
		if err != nil {
			w.t.Fatal(err)
		}
		return len(pages)
	}
}

func (w *world) texts() string {
	var out []string
	for _, k := range w.b.Knowing {
		out = append(out, strings.TrimSuffix(k.Text, evil))
	}
	return strings.Join(out, " | ")
}

// pageKept finds the page that an editing left, and takes it away at the end.
func pageKept(t *testing.T, errs string) string {
	t.Helper()
	m := regexp.MustCompile(`your page is kept: (\S+)`).FindStringSubmatch(errs)
	if m == nil {
		t.Fatalf("no page is kept: %s", errs)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(m[1])) })
	b, err := os.ReadFile(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func plainRows(w *world) {
	w.b.Knowing = []lemma.Knowledge{
		{ID: "k_01kzzzzzzzzzzzzzzzzzzz0001", Scope: "project:shop", Text: "one", Topics: []string{"first"}, Sensitivity: "internal", ChangedAt: "a"},
		{ID: "k_01kzzzzzzzzzzzzzzzzzzz0002", Scope: "host", Text: "two", Topics: []string{}, Sensitivity: "public", ChangedAt: "b"},
	}
}

func TestKnowledgeEdit(t *testing.T) {
	const add = `printf '  - scope: host\n    text: three\n' >> "$1"`
	for _, c := range []struct {
		name   string
		steps  []string
		args   []string
		code   int
		texts  string
		opened int
		kept   bool
		says   string
	}{
		{"edit, add", []string{`sed -i 's/text: two/text: zwei/' "$1"; ` + add}, nil, exitOK, "one | zwei | three", 1, false, "added"},
		{"remove", []string{`sed -i '/0002/,$d' "$1"`}, nil, exitOK, "one", 1, false, "removed"},
		{"nothing", []string{`:`}, nil, exitOK, "one | two", 1, false, "nothing was changed"},
		{"saved without a change", []string{`touch "$1"; echo '# a comment' >> "$1"`}, nil, exitOK, "one | two", 1, false, "nothing was changed"},
		{"a fault, mended", []string{`sed -i 's/text: two/txt: zwei/' "$1"`, `sed -i 's/txt: zwei/text: zwei/' "$1"`}, nil, exitOK, "one | zwei", 2, false, "changed"},
		{"a fault, given up", []string{`sed -i 's/text: two/txt: zwei/' "$1"`}, nil, exitFound, "one | two", 2, true, "left as it is"},
		{"emptied", []string{`: > "$1"`}, nil, exitFound, "one | two", 1, true, "the page is empty"},
		{"all removed", []string{`echo 'knowledge: []' > "$1"`}, nil, exitOK, "", 1, false, "removed"},
		{"the editor fails", []string{add + `; exit 1`}, nil, exitReach, "one | two", 1, true, "the editor"},
		{"one piece", []string{`sed -i 's/text: two/text: zwei/' "$1"`}, []string{"0002"}, exitOK, "one | zwei", 1, false, "changed"},
		{"one piece, removed", []string{`echo 'knowledge: []' > "$1"`}, []string{"0002"}, exitOK, "one", 1, false, "removed"},
		{"an id of nobody", []string{`sed -i 's/0002/0009/' "$1"`}, nil, exitFound, "one | two", 2, true, "left as it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ipctest.Anyone)
			plainRows(w)
			opened := w.edits(c.steps...)
			code, out, errs := w.gettier(append([]string{"knowledge", "edit"}, c.args...)...)
			if code != c.code || w.texts() != c.texts || opened() != c.opened || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, %q, opened %d times\n%s%s", code, w.texts(), opened(), out, errs)
			}
			if c.kept {
				pageKept(t, errs)
			} else if strings.Contains(errs, "is kept") {
				t.Error(errs)
			}
		})
	}
}

// TestKnowledgeEditShowsThePlace: the fault stands on top of the person's own
// text, with a caret, and is gone from the page that was taken.
func TestKnowledgeEditShowsThePlace(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	plainRows(w)
	w.edits(`sed -i 's/text: two/txt: zwei # mine/' "$1"`, `sed -i 's/txt/text2/' "$1"`, `sed -i 's/text2/text/' "$1"`)
	code, _, errs := w.gettier("knowledge", "edit")
	if code != exitOK || w.texts() != "one | zwei" {
		t.Fatalf("exit %d, %s, %s", code, w.texts(), errs)
	}
	for n, want := range map[int][]string{
		2: {`"txt" is no part of a piece`, "#!       txt: zwei # mine\n#!       ^\n", "    txt: zwei # mine\n"},
		3: {`"text2" is no part of a piece`, "    text2: zwei # mine\n"},
	} {
		for _, s := range want {
			if !strings.Contains(w.seen(n), s) {
				t.Errorf("page %d lacks %q:\n%s", n, s, w.seen(n))
			}
		}
	}
	if strings.Contains(w.seen(3), `"txt"`) {
		t.Errorf("the first fault is still shown:\n%s", w.seen(3))
	}
}

// TestKnowledgeEditMeetsAnother: what somebody else changes while the editor is
// open is neither lost nor written over unseen.
func TestKnowledgeEditMeetsAnother(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	plainRows(w)
	c := ipc.New(w.socket, "cli")
	defer c.Close()
	other := func(ch ...ipc.KnowledgeChange) {
		t.Helper()
		if _, err := c.ChangeKnowledge(t.Context(), ipc.KnowledgeEdit{Changes: ch}); err != nil {
			t.Fatal(err)
		}
	}
	// The first time it is opened the editor waits for the other's change.
	dir := t.TempDir()
	for _, name := range []string{"/open", "/go"} {
		if err := syscall.Mkfifo(dir+name, 0o600); err != nil {
			t.Skip("no named pipes here: ", err)
		}
	}
	w.edits(`sed -i 's/text: two/text: mine/' "$1"; echo > `+dir+`/open; cat `+dir+`/go > /dev/null`, `echo >> "$1"`)
	done := make(chan string)
	var code int
	go func() {
		var out, errs string
		code, out, errs = w.gettier("knowledge", "edit")
		done <- out + errs
	}()
	if _, err := os.ReadFile(dir + "/open"); err != nil {
		t.Fatal(err)
	}
	other(ipc.KnowledgeChange{ID: "k_01kzzzzzzzzzzzzzzzzzzz0001", Was: "a", Scope: "project:shop", Text: "theirs alone", Sensitivity: "internal"},
		ipc.KnowledgeChange{ID: "k_01kzzzzzzzzzzzzzzzzzzz0002", Was: "b", Scope: "host", Text: "theirs", Sensitivity: "public"},
		ipc.KnowledgeChange{Scope: "host", Text: "new", Sensitivity: "public"})
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := <-done
	if page := w.seen(2); !strings.Contains(page, "changed meanwhile") || !strings.Contains(page, "# host [] public, theirs\n") || !strings.Contains(page, "text: mine") {
		t.Errorf("the page does not show both:\n%s", page)
	}
	if code != exitOK || w.texts() != "theirs alone | mine | new" {
		t.Errorf("exit %d, %s\n%s", code, w.texts(), said)
	}
}

func TestKnowledgeCommands(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	want := func(code int, says string, args ...string) {
		t.Helper()
		got, out, errs := w.gettier(append([]string{"knowledge"}, args...)...)
		if got != code || !strings.Contains(out+errs, says) {
			t.Errorf("%v: exit %d, %s%s", args, got, out, errs)
		}
		checkClean(t, out+errs)
	}
	want(exitOK, "added", "add", "it rains", "--scope", "host", "--topic", "weather")
	want(exitOK, "it rains", "list", "--scope", "host")
	want(exitOK, "weather", "show", w.b.Knowing[2].ID)
	want(exitOK, "backups", "search", "backups")
	want(exitOK, "nothing is called up", "search", "no such words")
	want(exitUsage, "too short", "show", "1")
	want(exitFound, "no piece", "rm", "zzzzz")
	want(exitOK, "removed", "rm", "z0001", "z0001")
	want(exitUsage, "neither VISUAL nor EDITOR", "edit")
	code, out, errs := w.gettier("facts")
	if code != exitOK || !strings.Contains(out, "backups run at three") || !strings.Contains(out, "kept") {
		t.Errorf("facts: %s%s", out, errs)
	}
	if _, out, _ := w.gettier("facts", "--status", "stale"); strings.Contains(out, "backups") {
		t.Errorf("stale facts: %s", out)
	}
	if n := len(w.b.People()); n != 2 {
		t.Errorf("%d person's calls", n)
	}
	w = newWorld(t, ipctest.Nobody)
	want(exitRefused, "", "add", "x", "--scope", "host")
	want(exitRefused, "", "rm", "0001")
}
