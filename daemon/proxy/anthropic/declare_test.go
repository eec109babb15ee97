package anthropicapi

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
	"gettier.dev/gettierd/ledger/lemma"
)

const request = `{"model":"m","max_tokens":64000,"stream":true,"stop_sequences":["}"],"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
 "thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},{"type":"clear_tool_uses_20250919"}]},
 "tools":[{"name":"Bash","input_schema":{}} ],"tool_choice":{"type":"auto"},"messages":[{"role":"user","content":"a"},
 {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},
 {"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r","cache_control":{"type":"ephemeral"}}]}]}`

func declare(t *testing.T, body string, o wire.DeclareOptions) gjson.Result {
	t.Helper()
	r, err := Adapter{}.Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	o.Instruction = "List your premises."
	got, err := Adapter{}.Declare(r, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Adapter{}).Read(got); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	return gjson.ParseBytes(got)
}

// is checks paths of a body; "-" means absent.
func is(t *testing.T, g gjson.Result, want map[string]string) {
	t.Helper()
	for path, w := range want {
		got := "-"
		if v := g.Get(path); v.Exists() {
			got = v.Raw
		}
		if got != w {
			t.Errorf("%s = %s, want %s", path, got, w)
		}
	}
}

func TestDeclarePasses(t *testing.T) {
	const asked = `"List your premises."`
	kept := map[string]string{"thinking.type": `"adaptive"`, "context_management.edits.#": "2", "messages.#": "4", "messages.1.content.#": "2", "messages.3.content.1.text": asked,
		"messages.3.content.0.cache_control.type": `"ephemeral"`, "tools.#": "1", "max_tokens": "8192"}
	common := map[string]string{"stream": "false", "stop_sequences": "-", "system.0.cache_control.type": `"ephemeral"`}
	for rung, want := range []map[string]string{
		{"tool_choice.type": `"auto"`, "output_config.effort": `"high"`, "output_config.format": "-"},
		{"tool_choice.name": `"declare_lemmas"`, "tool_choice.disable_parallel_tool_use": "true", "tools.#": "2", "tools.1.name": `"declare_lemmas"`, "thinking.type": `"disabled"`,
			"context_management.edits.#": "1", "context_management.edits.0.type": `"clear_tool_uses_20250919"`, "messages.#": "3", "messages.1.content.#": "1", "messages.1.content.0.type": `"tool_use"`,
			"messages.2.content.1.text": asked, "output_config.effort": `"low"`, "max_tokens": "8192"},
		{"tool_choice.type": `"none"`, "output_config.effort": `"low"`, "output_config.format.type": `"json_schema"`, "output_config.format.schema.additionalProperties": "false"},
		{"tool_choice.type": `"none"`, "output_config.effort": `"low"`, "output_config.format": "-"},
	} {
		g := declare(t, request, wire.DeclareOptions{Rung: wire.Rung(rung), MaxTokens: 8192})
		is(t, g, common)
		if rung != 1 {
			is(t, g, kept)
		}
		is(t, g, want)
	}
}

func TestDeclareFitsTheModel(t *testing.T) {
	const m = `"model":"x","messages":[{"role":"user","content":"a"}]`
	for _, c := range []struct {
		body string
		o    wire.DeclareOptions
		want map[string]string
	}{
		{`{` + m + `}`, wire.DeclareOptions{}, map[string]string{"max_tokens": "600", "stream": "-", "tool_choice": "-", "output_config": "-"}},
		{`{` + m + `}`, wire.DeclareOptions{Rung: 3}, map[string]string{"tool_choice": "-"}},
		{`{` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1", "thinking": "-"}},
		{`{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":10000},` + m + `}`, wire.DeclareOptions{MaxTokens: 8192}, map[string]string{"max_tokens": "11024"}},
		{`{"max_tokens":10500,"thinking":{"type":"enabled","budget_tokens":10000},` + m + `}`, wire.DeclareOptions{MaxTokens: 8192}, map[string]string{"max_tokens": "10500"}},
		{`{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":10000},` + m + `}`, wire.DeclareOptions{Rung: 1, MaxTokens: 600}, map[string]string{"max_tokens": "600", "thinking.type": `"disabled"`, "thinking.budget_tokens": "-"}},
		{`{"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"context_management": "-"}},
		{`{"output_config":{"format":{"type":"json_schema"}},"output_format":{"type":"json_schema"},` + m + `}`, wire.DeclareOptions{}, map[string]string{"output_config": "-", "output_format": "-"}},
		{`{"output_config":{"format":{"type":"json_schema"},"effort":"max"},` + m + `}`, wire.DeclareOptions{Rung: 2}, map[string]string{"output_config.effort": `"low"`, "output_config.format.schema.type": `"object"`}},
		{`{"tools":[{"name":"declare_lemmas"}],` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1"}},
	} {
		is(t, declare(t, c.body, c.o), c.want)
	}
	r, err := Adapter{}.Read([]byte(`{"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Adapter{}).Declare(r, wire.DeclareOptions{}); err == nil {
		t.Error("a declare pass without messages")
	}
}

// On rung 0 nothing changes that the provider's cache key covers.
func TestRungZeroKeepsThePrefix(t *testing.T) {
	for _, rec := range wiretest.Load(t, sessions) {
		r, err := Adapter{}.Read(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Adapter{}.Declare(r, wire.DeclareOptions{Instruction: "ask", MaxTokens: 600})
		if err != nil {
			t.Fatal(err)
		}
		was, now := gjson.ParseBytes(rec.Body), gjson.ParseBytes(d)
		for _, key := range []string{"tools", "tool_choice", "system", "thinking", "context_management", "output_config.effort", "model", "metadata"} {
			if was.Get(key).Raw != now.Get(key).Raw {
				t.Errorf("%s: %s changed", rec.Name, key)
			}
		}
		// The instruction is in the newest person's or tool's entry, so that one and
		// what the client put after it differ, and nothing before.
		a, b := wiretest.Elements(t, rec.Body), wiretest.Elements(t, d)
		n := len(a) - 1
		for n > 0 && r.Items[n].Role == "system" {
			n--
		}
		if diff := cmp.Diff(a[:n], b[:n]); diff != "" {
			t.Errorf("%s: %s", rec.Name, diff)
		}
		if now.Get("stream").Bool() {
			t.Errorf("%s: still streamed", rec.Name)
		}
	}
}

// On rung 1 no thinking may be left anywhere.
func TestRungOneDropsThinking(t *testing.T) {
	seen := 0
	for _, rec := range wiretest.Load(t, sessions) {
		r, err := Adapter{}.Read(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Thinking {
			continue
		}
		seen++
		d, err := Adapter{}.Declare(r, wire.DeclareOptions{Rung: 1, Instruction: "ask", MaxTokens: 600})
		if err != nil {
			t.Fatal(err)
		}
		after, err := Adapter{}.Read(d)
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range after.Items {
			if len(it.Parts) == 0 {
				t.Errorf("%s: item %d is empty", rec.Name, i)
			}
			for _, p := range it.Parts {
				if p.Kind == wire.Thinking {
					t.Errorf("%s: thinking in item %d", rec.Name, i)
				}
			}
		}
		if after.Thinking || bytes.Contains(d, []byte("clear_thinking")) || len(after.Tools) != len(r.Tools)+1 {
			t.Errorf("%s: thinking %v, %d tools", rec.Name, after.Thinking, len(after.Tools))
		}
	}
	if seen == 0 {
		t.Error("no recorded request thinks")
	}
}

func TestAgain(t *testing.T) {
	r, err := Adapter{}.Read([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	same, err := Adapter{}.Again(r, true)
	if err != nil || !bytes.Equal(same, []byte(request)) {
		t.Errorf("streamed again: %v\n%s", err, same)
	}
	whole, err := Adapter{}.Again(r, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(request, `"stream":true`, `"stream":false`, 1), string(whole)); diff != "" {
		t.Error(diff)
	}
}

func message(content string) []byte {
	return []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + content + `],"stop_reason":"tool_use","usage":{"input_tokens":4,"output_tokens":5,"cache_read_input_tokens":6,"cache_creation_input_tokens":null}}`)
}

func TestReadDeclaration(t *testing.T) {
	const d = `{"plan_summary":"p","lemmas":[]}`
	call := `{"type":"tool_use","id":"a","name":"declare_lemmas","input":` + d + `}`
	other := `{"type":"tool_use","id":"b","name":"Bash","input":{}}`
	said := `{"type":"text","text":` + string(wire.Quote("Here:\n"+d)) + `}`
	for _, c := range []struct {
		name string
		rung wire.Rung
		body []byte
		ok   bool
	}{
		{"forced", 1, message(call), true},
		{"forced with text", 1, message(said + "," + call), true},
		{"another call", 1, message(other), false},
		{"two calls", 1, message(call + "," + other), false},
		{"a call on rung 0", 0, message(said + "," + other), false},
		{"the tool on rung 0", 0, message(call), false},
		{"thinking first", 0, message(`{"type":"thinking","thinking":"{\"lemmas\":[]}","signature":"s"},` + said), true},
		{"nothing", 3, message(""), false},
	} {
		got, usage, err := Adapter{}.ReadDeclaration(c.rung, c.body)
		if c.ok && (err != nil || string(got) != d) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if !c.ok && !errors.Is(err, wire.ErrNotCompliant) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if usage != (lemma.Usage{Input: 4, Output: 5, CacheRead: 6}) {
			t.Errorf("%s: usage %+v", c.name, usage)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	a, err := Adapter{}.ReadAnswer(message(`{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"one"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}},{"type":"web_search_tool_result","content":[{"type":"x"}]},{"type":"text","text":"two"},{"type":"tool_use","id":"a","name":"Bash","input":{"command": "ls",  "n":1.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &wire.Answer{Text: "one\ntwo", Stop: "tool_use", Usage: lemma.Usage{Input: 4, Output: 5, CacheRead: 6},
		Calls: []wire.Call{{Index: 5, ID: "a", Name: "Bash", Args: []byte(`{"command": "ls",  "n":1.0}`)}}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ name, body string }{
		{"not JSON", "<html>"},
		{"error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`},
		{"no content", `{"type":"message"}`},
		{"content is text", `{"type":"message","content":"x"}`},
		{"repeated id", string(message(`{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"a","name":"y","input":{}}`))},
		{"no name", string(message(`{"type":"tool_use","id":"a","input":{}}`))},
		{"no type", string(message(`{"name":"x","input":{}}`))},
		{"call-like", string(message(`{"type":"exec","name":"x","input":{}}`))},
		{"disguised input", string(message(`{"type":"tool_use","id":"a","name":"x","input":{},"Input":{"c":1}}`))},
		{"disguised content", `{"type":"message","content":[],"Content":[{"type":"tool_use"}]}`},
		{"duplicate key", string(message(`{"type":"tool_use","id":"a","name":"x","input":{"c":1,"c":2}}`))},
		{"trailing", string(message("")) + " 1"},
	} {
		if _, err := (Adapter{}).ReadAnswer([]byte(c.body)); !errors.Is(err, wire.ErrUnreadable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnswersOfOurOwn(t *testing.T) {
	const note = "note \"q\" <b>"
	block := `{"type":"text","text":` + string(wire.Quote(note)) + `}`
	for _, c := range []struct{ content, want string }{
		{``, block},
		{`{"type":"text","text":"a"} `, `{"type":"text","text":"a"},` + block + ` `},
		{`{"type":"text","text":"a"}, {"type":"tool_use","id":"a","name":"x","input":{}}`, `{"type":"text","text":"a"}, ` + block + `,{"type":"tool_use","id":"a","name":"x","input":{}}`},
	} {
		got, err := Adapter{}.Note(message(c.content), note)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(message(c.want)), string(got)); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := (Adapter{}).Note([]byte(`{"content":"x"}`), "n"); err == nil {
		t.Error("a note on no message")
	}
	a, err := Adapter{}.ReadAnswer(Adapter{}.TextAnswer("m", "t_1", note, false))
	if err != nil || a.Text != note || a.Stop != "end_turn" {
		t.Errorf("%+v, %v", a, err)
	}
	c := newSDK(t)
	c.take(Adapter{}.TextAnswer("m", "t_1", note, true))
	if got := c.says(); got != "text:"+note+" | end_turn in=0 read=0 out=0" {
		t.Error(got)
	}
	is(t, gjson.ParseBytes(Adapter{}.Error(403, "", "no")), map[string]string{"type": `"error"`, "error.type": `"permission_error"`, "error.message": `"no"`})
	is(t, gjson.ParseBytes(Adapter{}.Error(400, "unreadable_call", "no")), map[string]string{"error.type": `"unreadable_call"`})
	if !strings.HasPrefix(string(Adapter{}.StreamError("", "x")), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"") {
		t.Error("error event")
	}
}
