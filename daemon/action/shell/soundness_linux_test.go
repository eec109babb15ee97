package shell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSoundness runs changed commands in a real bash, in a directory of its own,
// with nothing on PATH but a few tools that only print and a stub that logs its
// arguments: every call that happens must have been predicted, and what only
// speaks of a command must not call it. Each tenth change, all of them with
// GETTIER_METAMORPHIC=all: a process each takes its time.
func TestSoundness(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	bin, work := t.TempDir(), t.TempDir()
	for _, tool := range []string{"bash", "sh", "env", "nice", "nohup", "timeout", "xargs", "cat", "tee", "base64", "rev", "xxd", "setsid", "stdbuf", "ionice", "printf", "sort", "wc", "grep", "sed", "awk", "head", "find", "script", "true", "false"} {
		if p, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(p, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := 0
	// Each observation has a log of its own, in a stub of its own: what an earlier text
	// left running writes elsewhere. A call is one write, so that none is seen in half.
	observe := func(text string) [][]string {
		n++
		log, stub := filepath.Join(work, "calls"+strconv.Itoa(n)), filepath.Join(bin, "zap")
		body := "#!" + bash + "\nl=zap\nfor a; do l=$l$'\\001'$a; done\nprintf '%s\\001\\n' \"$l\" >> " + log + "\n"
		if err := os.WriteFile(stub+".new", []byte(body), 0o700); err != nil { //nolint:gosec // it must run
			t.Fatal(err)
		}
		if err := os.Rename(stub+".new", stub); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // only against a hang
		defer cancel()
		cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", text)
		cmd.Dir, cmd.Env = work, []string{"PATH=" + bin, "HOME=" + work, "LC_ALL=C"}
		_ = cmd.Run() // what it says and how it ends is of no interest
		raw, err := os.ReadFile(log)
		if err != nil {
			return nil
		}
		var calls [][]string
		for l := range strings.SplitSeq(string(raw), "\x01\n") {
			if l != "" {
				calls = append(calls, strings.Split(l, "\x01"))
			}
		}
		return calls
	}
	const victim = "zap alpha -beta"
	cases, seen := 0, 0
	check := func(text string) {
		cases++
		calls := observe(text)
		if len(calls) > 0 {
			seen++
		}
		r := Read(text)
		for _, call := range calls {
			if !r.Opaque && !slices.ContainsFunc(r.Commands, func(c Command) bool {
				return len(c.Argv) > 0 && c.Program() == "zap" && (c.Dynamic || slices.Equal(c.Argv[1:], call[1:]))
			}) {
				t.Errorf("%q calls %q, predicted %q", text, call, r.Words())
			}
		}
	}
	endless := func(s transform) bool {
		return strings.Contains(s.template, "while") || strings.Contains(s.template, "until") || strings.Contains(s.template, "select") || strings.HasPrefix(s.template, "yes") || strings.Contains(s.template, "wait") || strings.HasSuffix(s.template, "&")
	}
	lives := slices.DeleteFunc(live(), endless)
	every, least := 10, 10
	if os.Getenv("GETTIER_METAMORPHIC") == "all" {
		every, least = 1, 120
	}
	for i, l := range lives {
		if i%every != 0 || !fits(l, victim) {
			continue
		}
		once := l.apply(victim)
		check(once)
		if o := lives[(i*37+11)%len(lives)]; i%3 == 0 && fits(o, once) {
			check(o.apply(once))
		}
	}
	for i, m := range templates(inertForms) {
		if i%every != 0 || !fits(m, victim) {
			continue
		}
		cases++
		if calls := observe(m.apply(victim)); len(calls) > 0 {
			t.Errorf("%q calls %q", m.apply(victim), calls)
		}
	}
	t.Logf("%d texts, %d of them call the program", cases, seen)
	if seen < least {
		t.Errorf("only %d texts called anything: this run shows nothing", seen)
	}
}
