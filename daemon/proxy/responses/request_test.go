package responsesapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

const sessions = "testdata/sessions.zst"

func TestRecordedRequests(t *testing.T) {
	recs := wiretest.Load(t, sessions)
	if len(recs) < 50 {
		t.Fatalf("only %d recorded requests", len(recs))
	}
	for _, rec := range recs {
		t.Run(rec.Name, func(t *testing.T) {
			wiretest.Requests(t, Adapter{}, rec.Body)
			r, err := Adapter{}.Read(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, r, gjson.ParseBytes(rec.Body))
		})
	}
}

// agree compares the view with what another JSON reader finds.
func agree(t *testing.T, r *wire.Request, g gjson.Result) {
	t.Helper()
	if r.Model != g.Get("model").String() || r.Stream != g.Get("stream").Bool() || int64(r.MaxTokens) != g.Get("max_output_tokens").Int() {
		t.Errorf("model %q stream %v max_output_tokens %d", r.Model, r.Stream, r.MaxTokens)
	}
	if got, want := r.OutputFormat, g.Get("text.format").Exists(); got != want {
		t.Errorf("output format %v", got)
	}
	var tools []string
	for _, tool := range g.Get("tools").Array() {
		switch {
		case tool.Get("type").String() == "namespace":
			ns := tool.Get("name").String() + "__"
			if !strings.HasPrefix(ns, "mcp") {
				ns = ""
			}
			for _, inner := range tool.Get("tools").Array() {
				tools = append(tools, ns+inner.Get("name").String()+inner.Raw)
			}
		case tool.Get("name").Exists():
			tools = append(tools, tool.Get("name").String()+tool.Raw)
		default:
			tools = append(tools, tool.Get("type").String()+tool.Raw)
		}
	}
	var got []string
	for _, tool := range r.Tools {
		got = append(got, tool.Name+string(r.Body[tool.Span.Start:tool.Span.End]))
	}
	if diff := cmp.Diff(tools, got); diff != "" {
		t.Error(diff)
	}
	items := g.Get("input")
	if !items.IsArray() {
		if len(r.Items) != 1 || r.Items[0].Parts[0].Text != items.String() || r.Items[0].Role != "user" {
			t.Errorf("a string reads as %+v", r.Items)
		}
		return
	}
	for i, m := range items.Array() {
		it := r.Items[i]
		kind := m.Get("type").String()
		if kind == "" {
			kind = "message"
		}
		role, parts := m.Get("role").String(), []string(nil)
		switch kind {
		case "message":
			if c := m.Get("content"); c.IsArray() {
				for _, part := range c.Array() {
					parts = append(parts, "text/"+part.Get("text").String())
				}
			} else {
				parts = append(parts, "text/"+c.String())
			}
		case "function_call":
			role = "assistant"
			parts = append(parts, "tool_call/"+m.Get("call_id").String()+m.Get("name").String()+m.Get("arguments").String())
		case "function_call_output":
			role = "tool"
			parts = append(parts, "tool_result/"+m.Get("call_id").String()+m.Get("output").String())
		case "reasoning":
			role = "assistant"
			parts = append(parts, "thinking/"+m.Get("summary.0.text").String())
		case "compaction":
			role, parts = "assistant", []string{"other/"}
		case "compaction_trigger":
			role, parts = "other", []string{"other/"}
		}
		var said []string
		for _, p := range it.Parts {
			said = append(said, string(p.Kind)+"/"+p.CallID+p.Name+p.Text+string(p.Args))
		}
		if it.Role != role || it.Type != kind {
			t.Errorf("item %d: role %q, type %q", i, it.Role, it.Type)
		}
		if diff := cmp.Diff(parts, said); diff != "" {
			t.Errorf("item %d: %s", i, diff)
		}
	}
}

func TestBlocksAreStickyInRecordedSessions(t *testing.T) {
	recs, checked := wiretest.Load(t, sessions), 0
	for i := 1; i < len(recs); i++ {
		if recs[i].Session() == recs[i-1].Session() && wiretest.Prefixed(t, Adapter{}, recs[i-1].Body, recs[i].Body) {
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("only %d pairs of requests follow each other", checked)
	}
}

func TestSplicesOfMadeUpConversations(t *testing.T) {
	wiretest.Generated(t, Adapter{}, []string{"user", "user", "assistant", "system", "developer"},
		[]string{`{"type":"input_image","image_url":"u"}`, `{"type":"refusal","refusal":"r"}`},
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c","output":"r"}`, `{"type":"item_reference","id":"rs_2"}`, `{"id":"msg_1"}`,
		`{"type":"compaction_trigger"}`, `{"type":"local_shell_call","call_id":"d","action":{"type":"exec","command":["ls"]}}`)
}

func TestWhereABlockStands(t *testing.T) {
	const (
		part  = `{"type":"input_text","text":"B"}`
		own   = `{"type":"message","role":"user","content":[` + part + `]}`
		think = `{"type":"reasoning","id":"rs_1","summary":[]}`
		callA = `{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}`
		callB = `{"type":"custom_tool_call","call_id":"b","name":"n","input":"x"}`
		outA  = `{"type":"function_call_output","call_id":"a","output":"r"}`
		outB  = `{"type":"custom_tool_call_output","call_id":"b","output":"r"}`
	)
	for _, c := range []struct {
		name, input, want string
		after             int
	}{
		{"a string", `"say hello"`, `[{"type":"message",  "role":"user","content":[{"type":"input_text","text":"say hello"}, ` + part + `]}]`, 0},
		{"an empty string", `""`, `[{"type":"message",  "role":"user","content":[{"type":"input_text","text":""}, ` + part + `]}]`, 0},
		{"plain", `[{"content":"a","role":"user"}]`, `[{"content":[{"type":"input_text","text":"a"}, ` + part + `],"role":"user"}]`, 0},
		{"array", `[{"role":"user","content":[{"type":"input_image","image_url":""} ]}]`, `[{"role":"user","content":[{"type":"input_image","image_url":""},` + part + ` ]}]`, 0},
		{"output last", `[` + callA + `,` + outA + `]`, `[` + callA + `,` + outA + `,` + own + `]`, 1},
		{"between outputs", `[` + callA + `,` + callB + `,` + outA + `, ` + outB + `]`, `[` + callA + `,` + callB + `,` + outA + `, ` + outB + `,` + own + `]`, 2},
		{"after the call", `[` + callA + `,` + outA + `,` + callB + `,` + outB + `]`, `[` + callA + `,` + outA + `,` + own + `,` + callB + `,` + outB + `]`, 0},
		{"calls and outputs in turn", `[` + callA + `,` + callB + `,` + outB + `,` + outA + `]`, `[` + callA + `,` + callB + `,` + outB + `,` + outA + `,` + own + `]`, 0},
		{"after reasoning", `[` + think + `,` + callA + `,` + outA + `]`, `[` + think + `,` + callA + `,` + outA + `,` + own + `]`, 0},
		{"after a reference", `[{"type":"item_reference","id":"rs_9"},{"role":"assistant","content":"a"}]`, `[{"type":"item_reference","id":"rs_9"},{"role":"assistant","content":"a"},` + own + `]`, 0},
		{"developer", `[{"role":"developer","content":"s"}]`, `[{"role":"developer","content":"s"},` + own + `]`, 0},
		{"compaction", `[{"role":"assistant","content":"s"},{"type":"compaction_trigger"}]`, `[{"role":"assistant","content":"s"},` + own + `,{"type":"compaction_trigger"}]`, 1},
		{"compaction alone", `[{"type":"compaction_trigger"}]`, `[` + own + `,{"type":"compaction_trigger"}]`, 0},
		{"empty", `[{"role":"user","content":""}]`, `[{"role":"user","content":""},` + own + `]`, 0},
		{"no content", `[{"role":"user"}]`, `[{"role":"user"},` + own + `]`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(`{"input":` + c.input + `}`)
			r, err := Adapter{}.Read(body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Adapter{}.Splice(r, []wire.Block{{After: c.after, Text: "B"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"input":`+c.want+`}`, string(got)); diff != "" {
				t.Error(diff)
			}
			wiretest.Spliced(t, Adapter{}, r, []wire.Block{{After: c.after, Text: wiretest.Frame("one")}, {After: c.after, Text: wiretest.Frame("two")}})
		})
	}
}

// What a client sends back of a message of ours loses the id that only we know.
func TestOurMessagesComeBack(t *testing.T) {
	const own = `"id":"` + ownID + `0a"`
	body := `{"input":[{"type":"item_reference",` + own + `},{"role":"user","content":"a"},{"type":"message",` + own + `,"role":"assistant","content":[{"type":"output_text","text":"` + ownID + `"}]}, {` + own + `},{"type":"message","role":"user","content":[{"type":"input_text","text":` +
		string(wire.Quote(wiretest.Frame("x"))) + `}]},{"type":"item_reference",` + own + `}]}`
	got, err := Adapter{}.Strip([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"input":[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + ownID + `"}]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestReadsOtherShapes(t *testing.T) {
	r, err := Adapter{}.Read([]byte(`{"model":"o3","max_output_tokens":9,"text":{"format":{"type":"json_object"}},"instructions":"be brief","background":false,
		"tools":[{"type":"custom","name":"patch"},{"type":"namespace","name":"mcp__db","tools":[{"type":"function","name":"query"}]},{"type":"namespace","name":"empty"},{"type":"local_shell"}],
		"input":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"input_text","text":"u"},{"type":"input_file","file_id":"f"}]},
			{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"content":[{"type":"reasoning_text","text":"raw"}]},
			{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
			{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin\n\"x\""},
			{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]},
			{"type":"function_call","call_id":"d","namespace":"mcp__db","name":"query","arguments":"{\"q\":1}"},
			{"type":"local_shell_call","id":"ls","call_id":"e","action":{"type":"exec","command":["ls"]}},
			{"type":"local_shell_call_output","id":"e","output":"a b"},
			{"type":"shell_call","call_id":"f","action":{"commands":["ls"]}},
			{"type":"apply_patch_call","call_id":"g","operation":{"type":"delete_file","path":"x"}},
			{"type":"computer_call","call_id":"h","action":{"type":"click"}},
			{"type":"mcp_approval_request","id":"i","server_label":"db","name":"drop","arguments":"{}"},
			{"type":"web_search_call","id":"w"},{"type":"new_call","call_id":"n","name":"x","arguments":"{}"},{"type":"item_reference","id":"q"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range r.Items {
		for _, p := range it.Parts {
			got = append(got, strings.Join([]string{it.Role, string(p.Kind), p.CallID, p.Name, p.Text, string(p.Args)}, "/"))
		}
	}
	want := []string{"developer/text///d/", "user/text///u/", "user/media////", "assistant/thinking///one\ntwo\nraw/", "assistant/text///no/",
		`assistant/tool_call/c/patch//"*** Begin\n\"x\""`, "tool/tool_result/c//one\ntwo/", `assistant/tool_call/d/mcp__db__query//{"q":1}`,
		`assistant/tool_call/e/local_shell//{"type":"exec","command":["ls"]}`, "tool/tool_result/e//a b/", `assistant/tool_call/f/shell//{"commands":["ls"]}`,
		`assistant/tool_call/g/delete_file//{"type":"delete_file","path":"x"}`, `assistant/tool_call/h/computer//{"type":"click"}`,
		"assistant/tool_call/i/mcp__db__drop//{}", "assistant/other////", "assistant/tool_call/n/x//{}", "other/other////"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var tools []string
	for _, tool := range r.Tools {
		tools = append(tools, tool.Name)
	}
	if r.MaxTokens != 9 || !r.Thinking || !r.OutputFormat || strings.Join(r.System, "") != "be brief" || strings.Join(tools, " ") != "patch mcp__db__query empty local_shell" {
		t.Errorf("%d %v %v %v %v", r.MaxTokens, r.Thinking, r.OutputFormat, r.System, tools)
	}
	for body, want := range map[string]bool{
		`{"model":"gpt-5.2","input":""}`: true, `{"model":"gpt-4.1","input":""}`: false, `{"model":"gpt-5","reasoning":{"effort":"none"},"input":""}`: false,
		`{"model":"m","reasoning":{"summary":"auto"},"input":""}`: true, `{"model":"m","reasoning":null,"input":""}`: false,
	} {
		if r, err := (Adapter{}).Read([]byte(body)); err != nil || r.Thinking != want {
			t.Errorf("%s: thinking %v, %v", body, !want, err)
		}
	}
}

func TestMalformedRequests(t *testing.T) {
	for _, c := range []struct{ body, what string }{
		{`{"model":"m"}`, "input is missing"},
		{`{"messages":[]}`, "messages belongs to /v1/chat/completions"},
		{`{"input":7}`, "a string or an array of items expected"},
		{`{"input":[{"role":"user","content":1}]}`, "a string or an array of parts expected"},
		{`{"input":[{"role":7}]}`, "role: a string expected"},
		{`{"input":[{"type":"message"}]}`, "a message has no role"},
		{`{"input":[{"content":"x"}]}`, "neither a type nor a role"},
		{`{"input":[{"role":"tool","content":"x"}]}`, "send a function_call_output"},
		{`{"input":[{"role":"assistant","tool_calls":[]}]}`, "tool_calls belongs to /v1/chat/completions"},
		{`{"input":[{"type":"function_call","call_id":"a","call_id":"b"}]}`, "duplicate key"},
		{`{"input":"","tools":[{"name":"a","name":"b"}]}`, "duplicate key"},
		{`{"input":"","tools":[{"type":"function","function":{"name":"a"}}]}`, "names itself"},
		{`{"input":"","functions":[{"name":"a"}]}`, "belongs to an older API"},
		{`{"input":"","tools":{}}`, "tools: an array expected"},
		{`{"input":"","tools":[1]}`, "tools: an object expected"},
		{`{"input":"","stream":1}`, "stream: a bool expected"},
		{`{"input":"","background":true,"tools":[{"type":"function","name":"a"}]}`, "cannot be gated"},
		{`{"background":true,"prompt":{"id":"p"}}`, "cannot be gated"},
		{`{"input":""}{}`, "data after the end"},
		{"{\"input\":\"\xff\"}", "invalid UTF-8"},
		{`{"input":[{"role":"user","content":[{"text":"x"}]}]}`, "a content part has no type"},
	} {
		_, err := Adapter{}.Read([]byte(c.body))
		var m *wire.Malformed
		if !errors.As(err, &m) || !strings.Contains(m.What, c.what) || m.Line == 0 {
			t.Errorf("%s: %v, want %q", c.body, err, c.what)
		}
	}
	for _, body := range []string{`{"previous_response_id":"resp_1"}`, `{"prompt":{"id":"p"}}`, `{"input":"","background":true}`, `{"input":[]}`} {
		if _, err := (Adapter{}).Read([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`))
	f.Add([]byte(`{"model":"gpt-5","stream":true,"stream_options":{},"input":"x","tools":[],"tool_choice":"auto","text":{},"reasoning":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := Adapter{}
		r, err := a.Read(body)
		if err != nil {
			var m *wire.Malformed
			if !errors.As(err, &m) {
				t.Fatalf("%v is no *Malformed", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatal("read what is no JSON")
		}
		if bytes.Contains(body, []byte("gettier")) || len(r.Items) == 0 {
			return
		}
		wiretest.Spliced(t, a, r, []wire.Block{{After: len(r.Items) - 1, Text: wiretest.Frame("one")}, {After: 0, Text: wiretest.Frame("two")}})
		for rung := range wire.Rung(4) {
			d, err := a.Declare(r, wire.DeclareOptions{Rung: rung, Instruction: "declare"})
			if err != nil {
				if set(r.Raw("conversation")) {
					continue
				}
				t.Fatal(err)
			}
			if again, err := a.Read(d); err != nil || again.Stream {
				t.Fatalf("declare pass of rung %d: %v\n%s", rung, err, d)
			}
		}
		for _, stream := range []bool{false, true} {
			b, err := a.Again(r, stream)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := a.Read(b); err != nil || again.Stream != stream {
				t.Fatalf("again: %v\n%s", err, b)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var body []byte
	for _, r := range wiretest.Load(b, sessions) {
		if len(r.Body) > len(body) {
			body = r.Body
		}
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Adapter{}).Read(body); err != nil {
			b.Fatal(err)
		}
	}
}
