package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const claudeLine = `{"path":"/v1/messages?beta=true","headers":{"User-Agent":"claude-cli/2.1.197 (external, cli)","X-Claude-Code-Session-Id":"s"},"id":7,"body":{"model":"m","max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.197.abc;"}],"tools":[{"name":"Bash","input_schema":{}}],"messages":[{"role":"user","content":"Drop the staging database"}]}}`

func TestClassifyJSONL(t *testing.T) {
	in := strings.Join([]string{
		claudeLine,
		`not json`,
		``,
		`{"path":"/v1/chat/completions","body":{"messages":7}}`,
		`{"path":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"hello"}]}}`,
	}, "\n")
	code, out, errs := offline(t, strings.NewReader(in), "classify", "--jsonl")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != exitFound || len(lines) != 5 || !strings.Contains(errs, "3 of the lines") {
		t.Fatalf("exit %d, %s: %s", code, errs, out)
	}
	var first struct {
		ID            int
		Kind, Class   string
		Client        string
		Consequential bool
		Reasons       []string
		TurnKey       string `json:"turn_key"`
		Conversation  string
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.ID != 7 || first.Kind != "new" || first.Class != "destructive" || !first.Consequential || first.Client != "claude-code" || len(first.Reasons) != 1 || first.TurnKey == "" || first.Conversation == "" {
		t.Errorf("%+v %v", first, err)
	}
	for n, want := range map[int]string{1: `"line":2`, 2: `"line":3`, 3: `"line":4`, 4: `"class":"explore"`} {
		if !strings.Contains(lines[n], want) {
			t.Errorf("line %d is answered by %s", n+1, lines[n])
		}
	}
}

func TestClassifyFilesAndRecord(t *testing.T) {
	dir := t.TempDir()
	raw := filepath.Join(dir, "one.request")
	jsonFile := filepath.Join(dir, "two.json")
	for name, text := range map[string]string{
		raw:      "POST /v1/chat/completions HTTP/1.1\r\nUser-Agent: newagent/9.1\r\nX-Session-Id: abc\r\n\r\n" + `{"model":"m","tools":[{"type":"function","function":{"name":"sh"}}],"messages":[{"role":"user","content":"Fix total, which everybody at our company knows is wrong"}]}`,
		jsonFile: claudeLine,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := offline(t, nil, "classify", raw, jsonFile)
	if code != exitOK || !strings.Contains(out, "one.request\n  new: a person's text\n  edit: words.edit\n") || !strings.Contains(out, "destructive: words.destroy") {
		t.Errorf("exit %d %s: %s", code, errs, out)
	}
	fixtures := filepath.Join(dir, "fixtures")
	code, out, errs = offline(t, nil, "classify", "--json", "--record", fixtures, "--session", "newagent-9.1", raw)
	if code != exitOK || !strings.Contains(errs, "recorded 1 request") || !strings.Contains(out, "001.request") {
		t.Errorf("exit %d %s: %s", code, errs, out)
	}
	got, err := os.ReadFile(filepath.Join(fixtures, "other", "newagent-9.1", "001.request"))
	if err != nil || strings.Contains(string(got), "company") || !strings.Contains(string(got), "Fix total, which everybo") {
		t.Errorf("%v: %s", err, got)
	}
	if code, out, errs := offline(t, nil, "classify", "--check", fixtures); code != exitOK || !strings.Contains(out, "1 of 1 right") {
		t.Errorf("exit %d %s: %s", code, errs, out)
	}
	// A label that is not what comes out is told, and is the exit code.
	name := filepath.Join(fixtures, "other", "newagent-9.1", "session.json")
	s, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(s), `"new"`, `"loop"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := offline(t, nil, "classify", "--check", fixtures); code != exitFound || !strings.Contains(out, "labelled loop") || !strings.Contains(out, "0 of 1 right") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, args := range [][]string{
		{}, {"--jsonl", raw}, {"--check", fixtures, "--jsonl"}, {"--session", "x", raw}, {"--record", fixtures, "--session", "../x", raw}, {filepath.Join(dir, "none")}, {"--check", filepath.Join(dir, "none")},
	} {
		if code, out, _ := offline(t, strings.NewReader(""), append([]string{"classify"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}

// requestsAt is a directory with recorded requests, and a fixture below it.
func requestsAt(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	raw := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n" + `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	fixture := filepath.Join(dir, "fixtures", "other", "s")
	if err := os.MkdirAll(fixture, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(dir, "001.request"): raw, filepath.Join(dir, "002.request"): raw, filepath.Join(fixture, "001.request"): raw,
		filepath.Join(fixture, "session.json"): `{"requests":[{"file":"001.request","kind":"new"}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
