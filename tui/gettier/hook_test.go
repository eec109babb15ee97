package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestRecordedHooks answers what Claude Code 2.1.197, Codex 0.171.0 and Gemini
// 0.61.0 sent of a call; each was seen to stop on these answers, and to run what
// is answered by silence.
func TestRecordedHooks(t *testing.T) {
	for agent, want := range map[string]string{
		"claude-code": `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",`,
		"codex":       `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",`,
		"gemini":      `{"decision":"deny","reason":"gettier: REQUIRE_CONFIRM: `,
	} {
		in, err := os.ReadFile(filepath.Join("testdata", "hooks", agent+".json"))
		if err != nil {
			t.Fatal(err)
		}
		code, out, errs := offline(t, strings.NewReader(string(in)), "decide", "--hook", agent)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d %s %s", agent, code, out, errs)
		}
		code, out, errs = offline(t, strings.NewReader(strings.ReplaceAll(string(in), "rm -rf data", "git status")), "decide", "--hook", agent)
		if code != 0 || out != "" {
			t.Errorf("%s: a benign call: exit %d %s %s", agent, code, out, errs)
		}
	}
}

// TestHookDocuments: the hook goes in and out of a settings file, and everything
// else in it keeps its bytes.
func TestHookDocuments(t *testing.T) {
	const mine = `{"hooks":[{"type":"command","command":"mine.sh"}]}`
	line := hookLine("/opt/it's/gettier", "claude-code")
	for name, doc := range map[string]string{
		"none":            "",
		"blank":           " \n",
		"empty":           "{}",
		"other settings":  "{\n\t\"model\": \"opus\", \"n\": 1.0e+2\n}\n",
		"hooks, empty":    `{"hooks": {}, "a": [1, 2]}`,
		"another event":   `{"hooks":{"Stop":[` + mine + `]}}`,
		"a list, empty":   `{"hooks":{"PreToolUse": [ ]}}`,
		"a person's hook": `{"x":"é\u00e9","hooks":{"PreToolUse":[` + mine + `]}}`,
		"an older one":    `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"/old/gettier decide --hook claude-code"}]},` + mine + `]}}`,
		"one of two":      `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"mine.sh"},{"type":"command","command":"/old/gettier decide --hook claude-code || exit 2"}]}]}}`,
	} {
		got, err := addHook([]byte(doc), "PreToolUse", line)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !gjson.ValidBytes(got) {
			t.Fatalf("%s: %s", name, got)
		}
		found := 0
		for _, e := range gjson.GetBytes(got, "hooks.PreToolUse").Array() {
			for _, h := range e.Get("hooks").Array() {
				if h.Get("command").Str == line {
					found++
				} else if ours(h.Get("command").Str) {
					t.Errorf("%s: an older one stays: %s", name, got)
				}
			}
		}
		if found != 1 || strings.Contains(doc, "mine.sh") != strings.Contains(string(got), "mine.sh") || strings.Contains(string(got), `\u0026`) {
			t.Errorf("%s: %d hooks in %s", name, found, got)
		}
		again, err := addHook(got, "PreToolUse", line)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: twice: %v %s", name, err, again)
		}
		back, err := dropHook(got, "PreToolUse", "")
		if err != nil || strings.Contains(string(back), "gettier") || !gjson.ValidBytes(back) {
			t.Errorf("%s: back: %v %s", name, err, back)
		}
		for _, keep := range []string{"1.0e+2", `é\u00e9`, "[1, 2]", mine} {
			if strings.Contains(doc, keep) && !strings.Contains(string(back), keep) {
				t.Errorf("%s: %s is lost in %s", name, keep, back)
			}
		}
	}
	for _, doc := range []string{"[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, "// a comment\n{}", `{"hooks":{},"hooks":{}}`, `{"hooks":{"PreToolUse":[],"PreToolUse":[]}}`, "{"} {
		if got, err := addHook([]byte(doc), "PreToolUse", line); err == nil {
			t.Errorf("%s became %s", doc, got)
		}
		if got, err := dropHook([]byte(doc), "PreToolUse", ""); err == nil {
			t.Errorf("%s became %s", doc, got)
		}
	}
}

// TestHookLine: the line of a hook stops the tool when gettier is not there.
func TestHookLine(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	cmd := exec.Command(sh, "-c", hookLine(filepath.Join(t.TempDir(), "it's not here"), "codex"))
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("%v", err)
	}
}

func TestHookCommand(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	file := filepath.Join(w.home, ".claude", "settings.json")
	if code, out, errs := w.gettier("hook", "install", "claude-code", "--print"); code != 0 || !strings.Contains(out, "+ ") || !strings.Contains(out, "decide --hook claude-code || exit 2") {
		t.Errorf("print: %d %s %s", code, out, errs)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("--print wrote")
	}
	if code, _, errs := w.gettier("hook", "install", "claude-code"); code != exitRefused || !strings.Contains(errs, "nobody is there") {
		t.Errorf("unasked: %d %s", code, errs)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	const old = "{\"env\":{\"SOME_KEY\":\"not to be shown\"}}\n"
	if err := os.WriteFile(file, []byte(old), 0o640); err != nil {
		t.Fatal(err)
	}
	code, out, errs := w.gettier("hook", "install", "claude-code", "--yes")
	got, err := os.ReadFile(file)
	if code != 0 || err != nil || strings.Contains(out, "not to be shown") || !strings.Contains(string(got), "not to be shown") || !strings.Contains(string(got), "decide --hook") {
		t.Errorf("install: %d %s %s %v %s", code, out, errs, err, got)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	if kept, err := os.ReadFile(file + ".before-gettier"); err != nil || string(kept) != old {
		t.Errorf("kept %s %v", kept, err)
	}
	if code, out, _ := w.gettier("hook", "install", "claude-code", "--yes"); code != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("twice: %d %s", code, out)
	}
	if code, _, errs := w.gettier("hook", "uninstall", "claude-code", "--yes"); code != 0 {
		t.Errorf("uninstall: %d %s", code, errs)
	}
	if got, err := os.ReadFile(file); err != nil || strings.Contains(string(got), "gettier") || !strings.Contains(string(got), "not to be shown") {
		t.Errorf("left %s %v", got, err)
	}
	if code, _, errs := w.gettier("hook", "install", "vim"); code != exitUsage || !strings.Contains(errs, "claude-code, codex or gemini") {
		t.Errorf("unknown agent: %d %s", code, errs)
	}
}
