package shell

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestTool(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		kind       string
		effect     Effect
		paths      string
		external   bool
	}{
		{"Bash", `{"command":"ls -la","description":"List"}`, "shell", ReadOnly, "", false},
		{"Bash", `{"command":"rm -rf data"}`, "shell", Destroy, "data", false},
		{"bash", `{"command":"npm test","workdir":"/x"}`, "shell", Mutate, "", false},
		{"exec_command", `{"cmd":"git status"}`, "shell", ReadOnly, "", false},
		{"shell", `{"command":["bash","-lc","rm -rf data"]}`, "shell", Destroy, "data", false},
		{"shell", `{"command":["cat","a; rm -rf b"]}`, "shell", ReadOnly, "", false},
		{"local_shell", `{"action":{"command":"ls"}}`, "shell", ReadOnly, "", false},
		{"local_shell", `{"action":{"type":"exec","command":["bash","-lc","rm -rf data"],"working_directory":"/x"}}`, "shell", Destroy, "data", false},
		{"local_shell", `{"type":"exec","command":["cat","a"],"env":{}}`, "shell", ReadOnly, "", false},
		{"local_shell", `{"type":"exec","command":["ls"],"env":{"LD_PRELOAD":"/tmp/x.so"}}`, "shell", Opaque, "", false},
		{"local_shell", `{"action":{"command":7}}`, "shell", Opaque, "", false},
		{"shell", `{"commands":["ls","git reset --hard"],"timeout_ms":1}`, "shell", Destroy, "", false},
		{"exec_command", `{"cmd":"ls","shell":"/bin/zsh","workdir":"/x","yield_time_ms":1000}`, "shell", ReadOnly, "", false},
		{"exec_command", `{"cmd":"ls","shell":"./bash"}`, "shell", Opaque, "", false},
		{"write_stdin", `{"session_id":7,"chars":"","yield_time_ms":1000}`, "shell", ReadOnly, "", false},
		{"view_image", `{"path":"a.png"}`, "filesystem", ReadOnly, "", false},
		{"update_plan", `{"plan":[{"step":"a","status":"pending"}]}`, "plan", ReadOnly, "", true},
		{"request_user_input", `{"questions":[]}`, "plan", ReadOnly, "", true},
		{"create_goal", `{"objective":"x"}`, "plan", ReadOnly, "", true},
		{"list_mcp_resources", `{}`, "plan", ReadOnly, "", true},
		{"read_mcp_resource", `{"server":"s","uri":"u"}`, "mcp", ReadOnly, "", true},
		{"spawn_agent", `{"message":"x"}`, "agent", ReadOnly, "", true},
		{"send_input", `{"target":"t","message":"rm -rf data"}`, "agent", ReadOnly, "", true},
		{"send_input", `{"target":"t","input":"rm -rf data\n"}`, "shell", Destroy, "data", false},
		{"wait_agent", `{"targets":["t"],"timeout_ms":1}`, "agent", ReadOnly, "", true},
		{"close_agent", `{"target":"t"}`, "agent", ReadOnly, "", true},
		{"resume_agent", `{"id":"t"}`, "agent", ReadOnly, "", true},
		{"mcp__codex_tui__create_worktree", `{"allowAsync":true}`, "mcp", Mutate, "", true},
		{"run_commands", `{"commands":["ls","git reset --hard"]}`, "shell", Destroy, "", false},
		{"run_in_terminal", `{"command":"docker compose down -v"}`, "shell", Destroy, "", false},
		{"Bash", `{}`, "shell", Opaque, "", false},
		{"Bash", `{"command":7}`, "shell", Opaque, "", false},
		{"Bash", `{"command":null}`, "shell", Opaque, "", false},
		{"Bash", `{"command":true,"description":"List"}`, "shell", Opaque, "", false},
		{"Bash", `{"command":`, "shell", Opaque, "", false},
		{"Bash", `{"command":"ls","command":"rm -rf data"}`, "shell", Destroy, "data", false},
		{"Bash", `{"command":"rm -rf data","command":"ls"}`, "shell", Destroy, "data", false},
		{"Bash", `{"command":"ls -l","command":"ls"}`, "shell", Opaque, "", false},
		{"write_stdin", `{"chars":""}`, "shell", ReadOnly, "", false},
		{"write_stdin", `{"chars":"rm -rf data\n"}`, "shell", Destroy, "data", false},
		{"write_stdin", `{"chars":"y\n"}`, "shell", Opaque, "", false},
		{"Read", `{"file_path":"a"}`, "filesystem", ReadOnly, "", false},
		{"read_files", `{"files":[{"path":"a"}]}`, "filesystem", ReadOnly, "", false},
		{"Grep", `{"pattern":"x"}`, "filesystem", ReadOnly, "", false},
		{"Glob", `{"pattern":"x"}`, "filesystem", ReadOnly, "", false},
		{"Edit", `{"file_path":"a.js","old_string":"x","new_string":"y"}`, "filesystem", Mutate, "a.js", false},
		{"edit", `{"filePath":"a.js","oldString":"x","newString":"y"}`, "filesystem", Mutate, "a.js", false},
		{"editor", `{"path":"a.js","old_text":"x","new_text":"y"}`, "filesystem", Mutate, "a.js", false},
		{"MultiEdit", `{"file_path":"a.js","edits":[{"old_string":"x","new_string":"y"}]}`, "filesystem", Mutate, "a.js", false},
		{"Write", `{"file_path":"a.js","content":"x"}`, "filesystem", Mutate, "a.js", false},
		{"Write", `{"file_path":"/etc/passwd","content":"x"}`, "filesystem", Destroy, "/etc/passwd", false},
		{"str_replace_based_edit_tool", `{"command":"view","path":"a"}`, "filesystem", ReadOnly, "", false},
		{"str_replace_based_edit_tool", `{"command":"str_replace","path":"a","old_str":"x","new_str":"y"}`, "filesystem", Mutate, "a", false},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** Delete File: b.go\n*** End Patch"}`, "filesystem", Mutate, "a.go,b.go", false},
		{"apply_patch", `"*** Begin Patch\n*** Add File: c.go\n+y\n*** End Patch"`, "filesystem", Mutate, "c.go", false},
		{"apply_patch", `{"input":"hello"}`, "filesystem", Opaque, "", false},
		{"delete_file", `{"target_file":"a.go"}`, "filesystem", Mutate, "a.go", false},
		{"delete_file", `{"path":"prod.sqlite"}`, "filesystem", Destroy, "prod.sqlite", false},
		{"WebFetch", `{"url":"https://x"}`, "http", ReadOnly, "", true},
		{"web_search", `{"query":"x"}`, "http", ReadOnly, "", true},
		{"fetch", `{"url":"https://x.test/users/7","method":"DELETE"}`, "http", Destroy, "", true},
		{"fetch", `{"url":"https://x.test/users","method":"post","body":"{}"}`, "http", Mutate, "", true},
		{"fetch", `{"url":"https://x.test/subs/7/cancel","method":"POST"}`, "http", Destroy, "", true},
		{"apply_patch", `{"input":"--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n"}`, "filesystem", Mutate, "x.go", false},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b/a.go\n@@\n-x\n+y\n*** End Patch"}`, "filesystem", Mutate, "a.go,b/a.go", false},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Delete File: prod.sqlite\n*** End Patch"}`, "filesystem", Destroy, "prod.sqlite", false},
		{"Task", `{"prompt":"x"}`, "agent", ReadOnly, "", true},
		{"TodoWrite", `{"todos":[]}`, "plan", ReadOnly, "", true},
		{"ExitPlanMode", `{}`, "plan", ReadOnly, "", true},
		{"mcp__db__query", `{"sql":"DROP TABLE x"}`, "mcp", Destroy, "", true},
		{"mcp__files__read", `{}`, "mcp", Mutate, "", true},
		{"mcp__cloud__deleteInstance", `{"id":"x"}`, "mcp", Destroy, "", true},
		{"execute_sql", `{"sql":"SELECT 1"}`, "database", ReadOnly, "", false},
		{"execute_sql", `{"sql":"DELETE FROM t"}`, "database", Destroy, "", false},
		{"python", `{"code":"import shutil; shutil.rmtree('x')"}`, "shell", Destroy, "", false},
		{"ExitWorktree", `{"discard_changes":true}`, "shell", Destroy, "", false},
		{"get_weather", `{"city":"x"}`, "unknown", Mutate, "", false},
		{"drop_database", `{}`, "unknown", Destroy, "", false},
		{"my_runner", `{"command":"rm -rf data"}`, "shell", Destroy, "data", false},
		{"", ``, "unknown", Mutate, "", false},
		// However the command is wrapped, named or broken off.
		{"shell", `rm -rf data`, "shell", Destroy, "data", false},
		{"Bash", `{"command":"rm -rf data"`, "shell", Destroy, "data", false},
		{"Bash", `{"command":"rm -rf data`, "shell", Destroy, "data", false},
		{"my_runner", `{"x":1,"run":"rm -rf data"`, "unknown", Destroy, "data", false},
		{"shell", `["rm -rf data"]`, "shell", Destroy, "data", false},
		{"shell", `{"command":["rm -rf data"]}`, "shell", Destroy, "data", false},
		{"run_command", `{"CommandLine":"rm -rf data","Cwd":"/x"}`, "shell", Destroy, "data", false},
		{"run_command", `{"CommandLine":"ls"}`, "shell", Opaque, "", false},
		{"my_runner", `{"Script":"rm -rf data"}`, "unknown", Destroy, "data", false},
		{"my_runner", `{"steps":[{"run":{"cmd":["bash","-c","rm -rf data"]}}]}`, "unknown", Destroy, "data", false},
		{"multi_tool_use.parallel", `{"tool_uses":[{"recipient_name":"functions.shell","parameters":{"command":"rm -rf data"}}]}`, "unknown", Destroy, "data", false},
		{"batch", `{"calls":[{"tool":"delete_file","arguments":"{\"path\":\"prod.sqlite\"}"}]}`, "unknown", Destroy, "prod.sqlite", false},
		{"mcp__x__call", `{"inner":{"command":"rm -rf data"}}`, "mcp", Destroy, "data", true},
		{"grep", `{"command":"grep x; rm -rf data"}`, "filesystem", Destroy, "data", false},
		{"write_stdin", `{"session_id":"1","content":"rm -rf data\n"}`, "shell", Destroy, "data", false},
		{"write_stdin", `{"session_id":"1","yield_time_ms":5}`, "shell", ReadOnly, "", false},
		{"Edit", `{"file_path":"a.md","old_string":"x","new_string":"rm -rf data"}`, "filesystem", Mutate, "a.md", false},
		{"Write", `{"file_path":"a.md","content":"rm -rf data`, "filesystem", Opaque, "", false},
	} {
		a := Tool(tc.name, []byte(tc.args))
		if a.Kind != tc.kind || a.Effect != tc.effect || strings.Join(a.Paths, ",") != tc.paths || a.External != tc.external {
			t.Errorf("%s %s: %s %s %v external %v by %s, want %s %s %s %v", tc.name, tc.args, a.Kind, a.Effect, a.Paths, a.External, a.Rule, tc.kind, tc.effect, tc.paths, tc.external)
		}
		if strings.ContainsAny(a.Summary, "\n\r\x1b") || len(a.Summary) > 200 {
			t.Errorf("%s: summary %q", tc.name, a.Summary)
		}
	}
}

func TestEdits(t *testing.T) {
	a := Tool("Edit", []byte(`{"file_path":"a.go","old_string":"one\ntwo\nthree","new_string":"one\n2\n2.5\nthree","replace_all":true}`))
	if len(a.Edits) != 1 || a.Edits[0].Lines != 3 || !a.Edits[0].Everywhere {
		t.Errorf("%+v", a.Edits)
	}
	a = Tool("Write", []byte(`{"file_path":"a.go","content":"one\ntwo\n"}`))
	if len(a.Edits) != 1 || a.Edits[0].Lines != 2 || !a.Edits[0].Whole {
		t.Errorf("%+v", a.Edits)
	}
	a = Tool("apply_patch", []byte(`{"patch":"--- a/x.go\n+++ b/x.go\n@@\n-a\n+b\n+c\n"}`))
	if len(a.Edits) != 1 || a.Edits[0].Path != "x.go" || a.Edits[0].Lines != 3 {
		t.Errorf("%+v", a.Edits)
	}
	if r := Read("apply_patch <<'X'\n*** Begin Patch\n*** Update File: a.go\n-x\n+y\n*** End Patch\nX"); r.Effect != Mutate || !slices.Equal(r.Paths, []string{"a.go"}) {
		t.Errorf("%+v", r)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"a\nb": "a b", "\x1b[31mred": "[31mred", "a\u202eb": "a b", "  a   b  ": "a b"} {
		if got := OneLine(in, 200); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := OneLine(strings.Repeat("ä", 300), 200); len(got) > 200 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzTool(f *testing.F) {
	f.Add("Bash", []byte(`{"command":"ls"}`))
	f.Add("apply_patch", []byte(`{"input":"*** Update File: a\n+x"}`))
	f.Add("local_shell", []byte(`{"action":{"command":["bash","-lc","ls"],"env":{"PATH":"/x"}}}`))
	f.Add("send_input", []byte(`{"target":"t","message":"x"}`))
	f.Add("Edit", []byte(`{"edits":[{"path":"a"}]}`))
	f.Fuzz(func(t *testing.T, name string, args []byte) {
		a := Tool(name, args)
		if a.Effect == "" || a.Kind == "" || len(a.Summary) > 200 {
			t.Fatalf("%+v", a)
		}
		if !json.Valid(args) && len(strings.TrimSpace(string(args))) > 0 && !a.Effect.AtLeast(Opaque) {
			t.Fatalf("unreadable arguments are %s", a.Effect)
		}
	})
}

func BenchmarkTool(b *testing.B) {
	args := []byte(`{"command":"cd app && npm test 2>&1 | tail -5","description":"Run tests"}`)
	for b.Loop() {
		Tool("Bash", args)
	}
}
