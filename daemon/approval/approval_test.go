package approval

import (
	"encoding/json"
	"testing"

	"gettier.dev/gettierd/daemon/action/shell"
)

// bash is a call of the tool that runs commands.
func bash(t *testing.T, command string, more map[string]any) Call {
	t.Helper()
	args := map[string]any{"command": command}
	for k, v := range more {
		args[k] = v
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	read := shell.Tool("Bash", raw)
	return Call{Tool: "Bash", Args: raw, Read: read, Cwd: "/srv/shop", Effect: read.Effect, Policy: "builtin/2"}
}

// TestHashBinds: whatever changes what a call does, where or under which rules,
// is another action; what only tells of it is not.
func TestHashBinds(t *testing.T) {
	base := bash(t, "rm -rf data", nil)
	is := Of(base).Hash
	if again := bash(t, "rm -rf data", map[string]any{"description": "clean up", "timeout": 5}); Of(again).Hash != is {
		t.Error("a description makes another action")
	}
	moved, ruled, worse, tool := base, base, base, base
	moved.Cwd = "/srv"
	ruled.Policy = "other"
	worse.Effect = shell.Catastrophe
	tool.Tool = "shell"
	for name, c := range map[string]Call{
		"target":      bash(t, "rm -rf date", nil),
		"option":      bash(t, "rm -r data", nil),
		"wrapper":     bash(t, "sudo rm -rf data", nil),
		"environment": bash(t, "A=1 rm -rf data", nil),
		"more":        bash(t, "rm -rf data; ls", nil),
		"argument":    bash(t, "rm -rf data", map[string]any{"run_in_background": true}),
		"directory":   moved, "rules": ruled, "effect": worse, "tool": tool,
		"spelling": {Tool: base.Tool, Args: []byte(`{"command":"rm -rf data","command":"rm -rf data"}`), Read: base.Read, Cwd: base.Cwd, Effect: base.Effect, Policy: base.Policy},
	} {
		if Of(c).Hash == is {
			t.Errorf("%s: the same hash", name)
		}
	}
}

// TestTask: from destroy up an approval covers the very action. Below, it covers
// the same programs and options on targets that were approved.
func TestTask(t *testing.T) {
	for _, c := range []struct {
		approved, asked string
		covered         bool
	}{
		{"mkdir a b", "mkdir b", true},
		{"mkdir a", "mkdir a c", false},
		{"mv a b", "mv b a", false},
		{"chmod +x run.sh", "chmod -x run.sh", false},
		{"mkdir a", "touch a", false},
		{"mkdir a", "sudo mkdir a", false},
		{"mkdir a", "cd /tmp && mkdir a", false},
		{"mkdir a", "A=1 mkdir a", false},
		{"rm -rf data", "rm -rf data", true},
		{"rm -rf data old", "rm -rf old", false},
		{"python3 -c 'print(1)'", "python3 -c 'print(2)'", false},
		{"touch $X", "touch $Y", false},
	} {
		a, b := Of(bash(t, c.approved, nil)), Of(bash(t, c.asked, nil))
		got := a.Task == b.Task && (a.Hash == b.Hash || Covers(a.Targets, b.Targets))
		if got != c.covered {
			t.Errorf("approved %q, asked %q: covered %v", c.approved, c.asked, got)
		}
	}
	if b := Of(bash(t, "rm -rf data", nil)); b.Task != b.Hash || b.Prefix != nil || b.Targets != nil {
		t.Errorf("what destroys is filed under more than itself: %+v", b)
	}
}
