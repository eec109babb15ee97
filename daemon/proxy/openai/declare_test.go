package openaiapi

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

const request = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"n":2,"stop":["}"],
 "messages":[{"role":"system","content":"s"},{"role":"user","content":"do it"}],
 "tools":[{"type":"function","function":{"name":"shell"}} ],"tool_choice":"auto","parallel_tool_calls":true,"max_tokens":4096,"x_unknown":1.50}`

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
	common := map[string]string{"stream": "false", "stream_options": "-", "n": "-", "stop": "-", "store": "false", "max_tokens": "600", "x_unknown": "1.50",
		"messages.0.content": `"s"`, "messages.1.content.0.text": `"do it"`, "messages.#": "2"}
	asked := `"List your premises."`
	for rung, want := range []map[string]string{
		{"tools.#": "1", "tool_choice": `"auto"`, "parallel_tool_calls": "true", "messages.1.content.1.text": asked, "response_format": "-"},
		{"tools.#": "2", "tools.1.function.name": `"declare_lemmas"`, "tool_choice.function.name": `"declare_lemmas"`, "parallel_tool_calls": "-", "messages.1.content.1.text": asked},
		{"tools.#": "1", "tool_choice": `"none"`, "response_format.type": `"json_schema"`, "response_format.json_schema.strict": "false", "messages.1.content.1.text": asked},
		{"tools.#": "1", "tool_choice": `"none"`, "response_format": "-", "messages.1.content.1.text": asked},
	} {
		g := declare(t, request, wire.DeclareOptions{Rung: wire.Rung(rung), MaxTokens: 600})
		is(t, g, common)
		is(t, g, want)
	}
	is(t, declare(t, request, wire.DeclareOptions{Rung: 3, Complaint: "claim: is missing"}), map[string]string{
		"messages.1.content.1.text": `"List your premises.\n\nThe declaration before this one was refused: claim: is missing"`})
}

func TestDeclareFitsTheModel(t *testing.T) {
	const m = `"messages":[{"role":"user","content":"a"}]`
	for _, c := range []struct {
		body string
		o    wire.DeclareOptions
		want map[string]string
	}{
		{`{"model":"gpt-5.2",` + m + `}`, wire.DeclareOptions{MaxTokens: 8192}, map[string]string{"max_completion_tokens": "8192", "max_tokens": "-", "stream": "-"}},
		{`{"model":"x",` + m + `}`, wire.DeclareOptions{}, map[string]string{"max_completion_tokens": "-", "max_tokens": "600"}},
		{`{"model":"x","max_completion_tokens":5,` + m + `}`, wire.DeclareOptions{MaxTokens: 700}, map[string]string{"max_completion_tokens": "700", "max_tokens": "-"}},
		{`{"model":"o3","reasoning_effort":"high",` + m + `}`, wire.DeclareOptions{Rung: 0}, map[string]string{"reasoning_effort": `"high"`}},
		{`{"model":"o3","reasoning_effort":"high",` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"reasoning_effort": `"low"`, "tools.#": "1"}},
		{`{"model":"o3","reasoning_effort":"minimal",` + m + `}`, wire.DeclareOptions{Rung: 2}, map[string]string{"reasoning_effort": `"minimal"`, "tool_choice": "-"}},
		{`{"model":"x","response_format":{"type":"json_schema"},` + m + `}`, wire.DeclareOptions{Rung: 3}, map[string]string{"response_format": "-"}},
		{`{"model":"x",` + m + `}`, wire.DeclareOptions{OmitStore: true}, map[string]string{"store": "-"}},
		{`{"model":"x","store":true,` + m + `}`, wire.DeclareOptions{OmitStore: true}, map[string]string{"store": "false"}},
		{`{"model":"x","tools":[],` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1"}},
		{`{"model":"x","tools":null,"functions":[{"name":"f"}],"function_call":"auto",` + m + `}`, wire.DeclareOptions{Rung: 1}, map[string]string{"tools.#": "1", "function_call": "-"}},
		{`{"model":"x","functions":[{"name":"f"}],` + m + `}`, wire.DeclareOptions{Rung: 3}, map[string]string{"function_call": `"none"`, "tool_choice": "-"}},
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
		if was.Get("tools").Raw != is.Get("tools").Raw || was.Get("tool_choice").Raw != is.Get("tool_choice").Raw {
			t.Errorf("%s: tools changed", rec.Name)
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
	whole, err := Adapter{}.Again(r, false)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(request, `"stream":true,"stream_options":{"include_usage":true}`, `"stream":false`, 1)
	if diff := cmp.Diff(want, string(whole)); diff != "" {
		t.Error(diff)
	}
}

const answer = `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":%C,"tool_calls":%T},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}}`

func answerOf(content, calls string) []byte {
	return []byte(strings.NewReplacer("%C", content, "%T", calls).Replace(answer))
}

func TestReadDeclaration(t *testing.T) {
	const d = `{"plan_summary":"p","lemmas":[]}`
	call := `[{"id":"a","type":"function","function":{"name":"declare_lemmas","arguments":` + string(wire.Quote(d)) + `}}]`
	other := `[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]`
	for _, c := range []struct {
		name string
		rung wire.Rung
		body []byte
		ok   bool
	}{
		{"forced", 1, answerOf("null", call), true},
		{"another call", 1, answerOf("null", other), false},
		{"two calls", 1, answerOf("null", call[:len(call)-1]+","+strings.Replace(other, `"a"`, `"b"`, 1)[1:]), false},
		{"text on rung 1", 1, answerOf(string(wire.Quote("Sure: ```json\n"+d+"\n```")), "[]"), true},
		{"a call on rung 0", 0, answerOf(string(wire.Quote(d)), other), false},
		{"json on rung 2", 2, answerOf(string(wire.Quote(d)), "null"), true},
		{"two on rung 3", 3, answerOf(string(wire.Quote(d+d)), "null"), false},
		{"thought first", 3, answerOf(string(wire.Quote("<think>{\"lemmas\":1}</think>"+d)), "null"), true},
		{"cut", 3, answerOf(string(wire.Quote(d[:20])), "null"), false},
		{"nothing", 0, answerOf("null", "null"), false},
	} {
		got, usage, err := Adapter{}.ReadDeclaration(c.rung, c.body)
		if c.ok && (err != nil || string(got) != d) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if !c.ok && !errors.Is(err, wire.ErrNotCompliant) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
		if usage.Output != 4 || usage.Input != 4 || usage.CacheRead != 6 {
			t.Errorf("%s: usage %+v", c.name, usage)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	a, err := Adapter{}.ReadAnswer(answerOf(`"hi"`, `[{"id":"a","function":{"name":"x","arguments":"{\"a\": 1.0}"}},{"id":"b","type":"custom","custom":{"name":"p","input":"raw"}},{"id":"","function":{"name":"y","arguments":"{\"cut"}},{"function":{"name":"z"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.Call{{Index: 0, ID: "a", Name: "x", Args: []byte(`{"a": 1.0}`)}, {Index: 1, ID: "b", Name: "p", Args: []byte("raw")},
		{Index: 2, Name: "y", Args: []byte(`{"cut`), Broken: true}, {Index: 3, Name: "z", Args: []byte{}}}
	if diff := cmp.Diff(want, a.Calls); diff != "" || a.Text != "hi" || a.Stop != "tool_calls" {
		t.Errorf("%q %q %s", a.Text, a.Stop, diff)
	}
	for _, c := range []struct{ name, body string }{
		{"not JSON", `<html>`},
		{"error", `{"error":{"message":"x"}}`},
		{"no choices", `{"choices":[]}`},
		{"no message", `{"choices":[{"text":"x"}]}`},
		{"repeated id", string(answerOf("null", `[{"id":"a","function":{"name":"x"}},{"id":"a","function":{"name":"y"}}]`))},
		{"no name", string(answerOf("null", `[{"id":"a","function":{}}]`))},
		{"unknown type", string(answerOf("null", `[{"id":"a","type":"computer","function":{"name":"x"}}]`))},
		{"both bodies", string(answerOf("null", `[{"id":"a","function":{"name":"x"},"custom":{"name":"y"}}]`))},
		{"duplicate arguments", string(answerOf("null", `[{"id":"a","function":{"name":"x","arguments":"{\"a\":1,\"a\":2}"}}]`))},
		{"call-like", `{"choices":[{"message":{"content":"","mcp_calls":[{}]}}]}`},
		{"call-like in another case", `{"choices":[{"message":{"content":"a","toolCalls":[{}]}}]}`},
		{"disguised calls", `{"choices":[{"message":{"content":"a","Tool_Calls":[{}]}}]}`},
		{"disguised message", `{"choices":[{"message":{"content":"a"},"Message":{"tool_calls":[{}]}}]}`},
		{"disguised by folding", `{"choices":[{"message":{"content":"a"},"me\u017fsage":{"tool_calls":[{}]}}]}`},
		{"disguised arguments", string(answerOf("null", `[{"id":"a","function":{"name":"x","arguments":"{}","Arguments":"{}"}}]`))},
		{"disguised choices", `{"choices":[{"message":{"content":"a"}}],"Choices":[{}]}`},
		{"calls beside the choices", `{"choices":[{"message":{"content":"a"}}],"tool_calls":[{}]}`},
		{"calls beside the message", `{"choices":[{"message":{"content":"a"},"tool_calls":[{}]}]}`},
		{"a delta beside the message", `{"choices":[{"message":{"content":"a"},"delta":{"tool_calls":[{}]}}]}`},
		{"a call among the parts", `{"choices":[{"message":{"content":[{"type":"tool_use","name":"x","input":{}}]}}]}`},
		{"trailing", string(answerOf("null", "null")) + "{}"},
	} {
		if _, err := (Adapter{}).ReadAnswer([]byte(c.body)); !errors.Is(err, wire.ErrUnreadable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	a, err = Adapter{}.ReadAnswer([]byte(`{"choices":[{"message":{"content":"one","function_call":{"name":"f","arguments":"{}"}}},{"message":{"content":[{"type":"text","text":"two"}]}}]}`))
	if err != nil || a.Text != "one\ntwo" || len(a.Calls) != 1 || a.Calls[0].Name != "f" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnswersOfOurOwn(t *testing.T) {
	note := "note \"q\" <b>"
	for _, c := range []struct{ content, want string }{
		{`"a\\"`, "a\\\n\n" + note}, {`null`, note}, {`""`, note}, {`[{"type":"text","text":"a"}]`, "a\n" + note},
	} {
		body := answerOf(c.content, "null")
		got, err := Adapter{}.Note(body, note)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Adapter{}.ReadAnswer(got)
		if err != nil || a.Text != c.want {
			t.Errorf("note on %s: %q, %v", c.content, a.Text, err)
		}
		if !bytes.HasSuffix(got, body[bytes.Index(body, []byte(`,"tool_calls"`)):]) {
			t.Errorf("bytes after the note changed: %s", got)
		}
	}
	got, err := Adapter{}.Note([]byte(`{"choices":[{"message":{"role":"assistant"}}]}`), "n")
	if err != nil || string(got) != `{"choices":[{"message":{"role":"assistant","content":"n"}}]}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := (Adapter{}).Note([]byte(`{}`), "n"); err == nil {
		t.Error("a note on no answer")
	}
	a, err := Adapter{}.ReadAnswer(Adapter{}.TextAnswer("m", "t_1", note, false))
	if err != nil || a.Text != note || a.Stop != "stop" {
		t.Errorf("%+v, %v", a, err)
	}
	c := newSDK(t)
	c.take(Adapter{}.TextAnswer("m", "t_1", note, true))
	if c.says() != "text:"+note+" | stop" {
		t.Error(c.says())
	}
	e := gjson.ParseBytes(Adapter{}.Error(403, "", "no \u2028"))
	is(t, e, map[string]string{"error.type": `"invalid_request_error"`})
	if e.Get("error.message").String() != "no \u2028" || !strings.HasPrefix(string(Adapter{}.StreamError("", "x")), `data: {"error":`) {
		t.Error("error body")
	}
}
