package responsesapi

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

const request = `{"model":"m","stream":true,"stream_options":{"include_obfuscation":false},"previous_response_id":"resp_0",
 "input":[{"role":"developer","content":"s"},{"role":"user","content":"do it"}],"include":["reasoning.encrypted_content"],
 "tools":[{"type":"function","name":"shell"} ],"tool_choice":"auto","parallel_tool_calls":true,"max_output_tokens":4096,"x_unknown":1.50}`

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
	common := map[string]string{"stream": "false", "stream_options": "-", "store": "false", "max_output_tokens": "600", "x_unknown": "1.50",
		"previous_response_id": `"resp_0"`, "include.0": `"reasoning.encrypted_content"`, "input.0.content": `"s"`, "input.1.content.0.text": `"do it"`, "input.#": "2",
		"input.1.content.1.text": `"List your premises."`, "input.1.content.1.type": `"input_text"`}
	for rung, want := range []map[string]string{
		{"tools.#": "1", "tool_choice": `"auto"`, "parallel_tool_calls": "true", "text": "-"},
		{"tools.#": "2", "tools.1.type": `"function"`, "tools.1.name": `"declare_lemmas"`, "tools.1.strict": "false", "tool_choice": `{"type":"function","name":"declare_lemmas"}`, "parallel_tool_calls": "-", "text": "-"},
		{"tools.#": "1", "tool_choice": `"none"`, "text.format.type": `"json_schema"`, "text.format.name": `"declare_lemmas"`, "text.format.strict": "false", "text.format.schema.type": `"object"`},
		{"tools.#": "1", "tool_choice": `"none"`, "text": "-"},
	} {
		g := declare(t, request, wire.DeclareOptions{Rung: wire.Rung(rung), MaxTokens: 600})
		is(t, g, common)
		is(t, g, want)
	}
	is(t, declare(t, request, wire.DeclareOptions{Rung: 3, Complaint: "claim: is missing"}), map[string]string{
		"input.1.content.1.text": `"List your premises.\n\nThe declaration before this one was refused: claim: is missing"`})
}

func TestDeclareFitsTheModel(t *testing.T) {
	for _, c := range []struct {
		body string
		o    wire.DeclareOptions
		want map[string]string
	}{
		{`{"model":"x","input":"a"}`, wire.DeclareOptions{}, map[string]string{"max_output_tokens": "600", "reasoning": "-", "stream": "-", "tool_choice": "-", "input.0.content.0.text": `"a"`}},
		{`{"model":"x","input":"a"}`, wire.DeclareOptions{MaxTokens: 3}, map[string]string{"max_output_tokens": "16"}},
		{`{"model":"o3","reasoning":{"effort":"high","summary":"auto"},"input":"a"}`, wire.DeclareOptions{Rung: 0}, map[string]string{"reasoning.effort": `"high"`}},
		{`{"model":"o3","reasoning":{"effort":"high","summary":"auto"},"input":"a"}`, wire.DeclareOptions{Rung: 1}, map[string]string{"reasoning": `{"effort":"low","summary":"auto"}`, "tools.#": "1"}},
		{`{"model":"o3","reasoning":{"effort":"minimal"},"input":"a"}`, wire.DeclareOptions{Rung: 2}, map[string]string{"reasoning.effort": `"minimal"`, "tool_choice": "-"}},
		{`{"model":"m","reasoning":{"summary":"auto"},"input":"a"}`, wire.DeclareOptions{Rung: 3}, map[string]string{"reasoning": `{"summary":"auto","effort":"low"}`}},
		{`{"model":"gpt-5.2","input":"a"}`, wire.DeclareOptions{Rung: 1}, map[string]string{"reasoning": `{"effort":"low"}`}},
		{`{"model":"x","text":{"verbosity":"low","format":{"type":"json_schema"}},"input":"a"}`, wire.DeclareOptions{Rung: 3}, map[string]string{"text": `{"verbosity":"low"}`}},
		{`{"model":"x","text":{"verbosity":"low"},"input":"a"}`, wire.DeclareOptions{Rung: 2}, map[string]string{"text.verbosity": `"low"`, "text.format.type": `"json_schema"`}},
		{`{"model":"x","input":"a"}`, wire.DeclareOptions{OmitStore: true}, map[string]string{"store": "-"}},
		{`{"model":"x","store":true,"input":"a"}`, wire.DeclareOptions{OmitStore: true}, map[string]string{"store": "false"}},
		{`{"model":"x","tools":[],"background":false,"input":"a"}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1", "background": "-"}},
		{`{"model":"x","tools":null,"input":"a"}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1"}},
		{`{"model":"x","tools":[{"type":"namespace","name":"mcp__a","tools":[{"type":"function","name":"b"}]}],"input":"a"}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "2", "tools.0.tools.#": "1", "tools.1.name": `"declare_lemmas"`}},
	} {
		is(t, declare(t, c.body, c.o), c.want)
	}
	for _, body := range []string{`{"input":[]}`, `{"previous_response_id":"r"}`, `{"conversation":"conv_1","input":"a"}`} {
		r, err := Adapter{}.Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Adapter{}).Declare(r, wire.DeclareOptions{}); err == nil {
			t.Errorf("a declare pass for %s", body)
		}
	}
}

// On rung 0 the bytes before the instruction are those that the provider has seen.
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
		was, is := gjson.ParseBytes(rec.Body), gjson.ParseBytes(d)
		if was.Get("tools").Raw != is.Get("tools").Raw || was.Get("tool_choice").Raw != is.Get("tool_choice").Raw || was.Get("reasoning").Raw != is.Get("reasoning").Raw {
			t.Errorf("%s: tools or effort changed", rec.Name)
		}
		a, b := wiretest.Elements(t, rec.Body), wiretest.Elements(t, d)
		n := len(a) - 1
		if diff := cmp.Diff(a[:n], b[:n]); diff != "" {
			t.Errorf("%s: %s", rec.Name, diff)
		}
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
	got, err := Adapter{}.Again(r, false)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(request, `"stream":true,"stream_options":{"include_obfuscation":false}`, `"stream":false`, 1)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

const answerTail = `],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":6},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":14}}`

func answerOf(items ...string) []byte {
	return []byte(`{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"m","output":[` + strings.Join(items, ",") + answerTail)
}

func said(text string) string {
	return `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + string(wire.Quote(text)) + `,"annotations":[]}]}`
}

func called(id, name, args string) string {
	return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"` + name + `","arguments":` + string(wire.Quote(args)) + `,"status":"completed"}`
}

const thought = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"}`

func TestReadDeclaration(t *testing.T) {
	const d = `{"plan_summary":"p","lemmas":[]}`
	for _, c := range []struct {
		name string
		rung wire.Rung
		body []byte
		ok   bool
	}{
		{"forced", 1, answerOf(thought, called("a", "declare_lemmas", d)), true},
		{"another call", 1, answerOf(called("a", "shell", "{}")), false},
		{"two calls", 1, answerOf(called("a", "declare_lemmas", d), called("b", "shell", "{}")), false},
		{"text on rung 1", 1, answerOf(said("Sure: ```json\n" + d + "\n```")), true},
		{"a call on rung 0", 0, answerOf(said(d), called("a", "shell", "{}")), false},
		{"json on rung 2", 2, answerOf(said(d)), true},
		{"two on rung 3", 3, answerOf(said(d), said(d)), false},
		{"cut", 3, answerOf(said(d[:20])), false},
		{"nothing", 0, answerOf(thought), false},
	} {
		got, usage, err := Adapter{}.ReadDeclaration(c.rung, c.body)
		if c.ok && (err != nil || string(got) != d) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if !c.ok && !errors.Is(err, wire.ErrNotCompliant) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if (usage != lemma.Usage{Input: 4, CacheRead: 6, Output: 4}) {
			t.Errorf("%s: usage %+v", c.name, usage)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	a, err := Adapter{}.ReadAnswer(answerOf(thought, said("hi"), called("a", "x", `{"a": 1.0}`), `{"type":"custom_tool_call","call_id":"b","name":"p","input":"raw \"q\""}`,
		`{"type":"web_search_call","id":"ws","status":"completed"}`, called("c", "y", `{"cut`), called("d", "z", ""),
		`{"type":"local_shell_call","id":"l","call_id":"e","action":{"type":"exec","command":["ls"]}}`, `{"type":"function_call","call_id":"f","namespace":"mcp__db","name":"query","arguments":{"q":1}}`, said("ho")))
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.Call{{Index: 2, ID: "a", Name: "x", Args: []byte(`{"a": 1.0}`)}, {Index: 3, ID: "b", Name: "p", Args: []byte(`"raw \"q\""`)},
		{Index: 5, ID: "c", Name: "y", Args: []byte(`{"cut`), Broken: true}, {Index: 6, ID: "d", Name: "z", Args: []byte{}},
		{Index: 7, ID: "e", Name: "local_shell", Args: []byte(`{"type":"exec","command":["ls"]}`)}, {Index: 8, ID: "f", Name: "mcp__db__query", Args: []byte(`{"q":1}`)}}
	if diff := cmp.Diff(want, a.Calls); diff != "" || a.Text != "hi\nho" || a.Stop != "completed" {
		t.Errorf("%q %q %s", a.Text, a.Stop, diff)
	}
	if a, err := (Adapter{}).ReadAnswer([]byte(`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)); err != nil || a.Stop != "max_output_tokens" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, c := range []struct{ name, body string }{
		{"not JSON", `<html>`},
		{"error", `{"error":{"message":"x"},"output":[]}`},
		{"failed", `{"status":"failed","output":[]}`},
		{"no output", `{"id":"resp_1"}`},
		{"chat", `{"choices":[{"message":{"tool_calls":[]}}]}`},
		{"repeated id", string(answerOf(called("a", "x", "{}"), called("a", "y", "{}")))},
		{"no name", string(answerOf(`{"type":"function_call","call_id":"a","arguments":"{}"}`))},
		{"unknown call", string(answerOf(`{"type":"browser_call","call_id":"a"}`))},
		{"unknown call by its members", string(answerOf(`{"type":"novelty","arguments":"{}"}`))},
		{"call in other words", string(answerOf(`{"type":"toolUse","id":"a"}`))},
		{"calls in a message", string(answerOf(`{"type":"message","role":"assistant","content":[],"tool_calls":[{"id":"a"}]}`))},
		{"disguised", string(answerOf(`{"type":"function_call","call_id":"a","name":"x","arguments":"{}","Arguments":"{\"rm\":1}"}`))},
		{"disguised output", `{"output":[],"Output":[` + called("a", "x", "{}") + `]}`},
		{"duplicate arguments", string(answerOf(called("a", "x", `{"a":1,"a":2}`)))},
		{"arguments that are a number", string(answerOf(`{"type":"function_call","call_id":"a","name":"x","arguments":7}`))},
		{"input that is no text", string(answerOf(`{"type":"custom_tool_call","call_id":"a","name":"x","input":{}}`))},
		{"shell without action", string(answerOf(`{"type":"local_shell_call","call_id":"a"}`))},
		{"trailing", string(answerOf()) + "{}"},
	} {
		if _, err := (Adapter{}).ReadAnswer([]byte(c.body)); !errors.Is(err, wire.ErrUnreadable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnswersOfOurOwn(t *testing.T) {
	note := "note \"q\" <b>"
	for _, c := range []struct {
		name  string
		items []string
		want  []string // types, "!" for ours
		text  string
	}{
		{"at the end", []string{said("a")}, []string{"message", "!"}, "a\n\n\n" + note},
		{"nothing else", nil, []string{"!"}, note},
		{"before a call", []string{called("a", "x", "{}")}, []string{"!", "function_call"}, note},
		{"before the thought that led to the call", []string{thought, said("a"), thought, called("a", "x", "{}"), called("b", "x", "{}")}, []string{"reasoning", "message", "!", "reasoning", "function_call", "function_call"}, "a\n\n\n" + note},
	} {
		body := answerOf(c.items...)
		got, err := Adapter{}.Note(body, note)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Adapter{}.ReadAnswer(got)
		if err != nil || a.Text != c.text {
			t.Errorf("%s: %q, %v", c.name, a.Text, err)
		}
		var kinds []string
		for _, it := range gjson.GetBytes(got, "output").Array() {
			if strings.HasPrefix(it.Get("id").String(), ownID) {
				kinds = append(kinds, "!")
			} else {
				kinds = append(kinds, it.Get("type").String())
			}
		}
		if diff := cmp.Diff(c.want, kinds); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if !bytes.HasSuffix(got, []byte(answerTail)) {
			t.Errorf("bytes after the note changed: %s", got)
		}
	}
	if _, err := (Adapter{}).Note([]byte(`{}`), "n"); err == nil {
		t.Error("a note on no answer")
	}
	a, err := Adapter{}.ReadAnswer(Adapter{}.TextAnswer("m", "t_1", note, false))
	if err != nil || a.Text != note || a.Stop != "completed" {
		t.Errorf("%+v, %v", a, err)
	}
	c := newSDK(t)
	c.take(Adapter{}.TextAnswer("m", "t_1", note, true))
	if c.says() != "text:"+note+" | in=0 out=0 total=0" {
		t.Error(c.says())
	}
	e := gjson.ParseBytes(Adapter{}.Error(403, "", "no \u2028"))
	is(t, e, map[string]string{"error.type": `"invalid_request_error"`})
	if e.Get("error.message").String() != "no \u2028" {
		t.Error("error body")
	}
	for kind, code := range map[string]string{"upstream_cut": "server_error", "invalid_prompt": "invalid_prompt", "": "server_error"} {
		failed := string(Adapter{}.StreamError(kind, "why"))
		if !strings.HasPrefix(failed, "event: response.failed\ndata: ") {
			t.Error(failed)
		}
		is(t, gjson.Parse(strings.SplitN(failed, "data: ", 2)[1]), map[string]string{"type": `"response.failed"`, "response.status": `"failed"`, "response.error.code": `"` + code + `"`, "response.error.message": `"why"`})
	}
}
