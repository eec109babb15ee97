package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/action"
)

// TestRulesOf: a policy file counts while it is the one that the configuration
// names by its fingerprint.
func TestRulesOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nrate_limit: { actions: 5 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want, doc := action.ParsePolicy([]byte("version: 1\nrate_limit: { actions: 5 }\n"))
	if want == nil {
		t.Fatal(doc.Text(file))
	}
	for name, tc := range map[string]struct{ file, print, err string }{
		"none":              {"", "", ""},
		"as named":          {file, want.Fingerprint(), ""},
		"without":           {file, "", "fingerprint is missing"},
		"changed behind it": {file, action.Default().Fingerprint(), "was changed"},
		"gone":              {file + "x", want.Fingerprint(), "no such file"},
	} {
		c := config.Default()
		c.Action.Policy.File, c.Action.Policy.Fingerprint = tc.file, tc.print
		p, err := rulesOf(c)
		if tc.err == "" && (err != nil || p == nil || tc.file != "" && p.Fingerprint() != want.Fingerprint()) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %v %v", name, p, err)
		}
	}
	if err := os.WriteFile(file, []byte("version: 1\nnonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Action.Policy.File, c.Action.Policy.Fingerprint = file, want.Fingerprint()
	if _, err := rulesOf(c); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestActionGate: the limiter counts what acts and not what looks, and the disk
// is asked whether a build makes again what a command removes.
func TestActionGate(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	rules, doc := action.ParsePolicy([]byte("version: 1\nrate_limit: { actions: 2 }\n"))
	if rules == nil {
		t.Fatal(doc.Text("policy"))
	}
	g := &actionGate{rules: func() *action.Policy { return rules }, now: func() time.Time { return now }}
	for i, tc := range []struct {
		command, actor string
		refused        bool
	}{{"mkdir a", "x", false}, {"mkdir b", "x", false}, {"ls", "x", false}, {"cat a", "x", false}, {"mkdir c", "x", true}, {"ls", "x", false}, {"mkdir c", "y", false}} {
		if d := g.decide(action.Action{Command: tc.command, Actor: tc.actor}, time.Time{}); d.Refused() != tc.refused || d.Allowed == tc.refused {
			t.Errorf("%d %s: %s %s", i, tc.command, d.State, d.Reason)
		}
	}
	now = now.Add(time.Hour)
	if d := g.decide(action.Action{Command: "mkdir d", Actor: "x"}, time.Time{}); !d.Allowed {
		t.Errorf("after the window: %s %s", d.State, d.Reason)
	}

	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for _, f := range []string{"node_modules/a/index.js", "data/only.copy"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("node_modules\ndata\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", ".gitignore"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "a"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for command, want := range map[string]action.State{"rm -rf node_modules": action.Allow, "rm -rf data": action.RequireConfirm, "rm -rf node_modules data": action.RequireConfirm, "sudo rm -rf /node_modules": action.RequireConfirm} {
		if d := g.decide(action.Action{Command: command, Cwd: dir, Actor: command}, time.Time{}); d.State != want {
			t.Errorf("%s: %s %s", command, d.State, d.Reason)
		}
	}
	if d := g.decide(action.Action{Command: "rm -rf node_modules", Actor: "z"}, time.Time{}); d.Allowed {
		t.Errorf("nobody knows where: %s", d.State)
	}
}
