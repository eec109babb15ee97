package openaiapi

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
	for _, rec := range wiretest.Load(t, sessions) {
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
	if r.Model != g.Get("model").String() || r.Stream != g.Get("stream").Bool() || int64(r.MaxTokens) != g.Get("max_tokens").Int() {
		t.Errorf("model %q stream %v max_tokens %d", r.Model, r.Stream, r.MaxTokens)
	}
	for i, tool := range g.Get("tools").Array() {
		if r.Tools[i].Name != tool.Get("function.name").String() || string(r.Body[r.Tools[i].Span.Start:r.Tools[i].Span.End]) != tool.Raw {
			t.Errorf("tool %d is %q", i, r.Tools[i].Name)
		}
	}
	for i, m := range g.Get("messages").Array() {
		it := r.Items[i]
		if it.Role != m.Get("role").String() {
			t.Errorf("item %d: role %q", i, it.Role)
		}
		var texts, thoughts, calls []string
		for _, p := range it.Parts {
			switch p.Kind {
			case wire.Text:
				texts = append(texts, p.Text)
			case wire.Thinking:
				thoughts = append(thoughts, p.Text)
			case wire.ToolCall:
				calls = append(calls, p.CallID+p.Name+string(p.Args))
			case wire.ToolResult:
				if p.CallID != m.Get("tool_call_id").String() {
					t.Errorf("item %d: result of %q", i, p.CallID)
				}
				texts = append(texts, p.Text)
			}
		}
		var want []string
		if c := m.Get("content"); c.IsArray() {
			for _, part := range c.Get("#.text").Array() {
				want = append(want, part.String())
			}
		} else if c.Type == gjson.String {
			want = append(want, c.String())
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("item %d: %s", i, diff)
		}
		if got, want := strings.Join(thoughts, ""), m.Get("reasoning_content").String(); got != want {
			t.Errorf("item %d: reasoning %q, want %q", i, got, want)
		}
		var wantCalls []string
		for _, c := range m.Get("tool_calls").Array() {
			wantCalls = append(wantCalls, c.Get("id").String()+c.Get("function.name").String()+c.Get("function.arguments").String())
		}
		if diff := cmp.Diff(wantCalls, calls); diff != "" {
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
	if checked < 25 {
		t.Errorf("only %d pairs of requests follow each other", checked)
	}
}

func TestSplicesOfMadeUpConversations(t *testing.T) {
	wiretest.Generated(t, Adapter{}, []string{"user", "user", "assistant", "system", "tool", "developer"},
		[]string{`{"type":"image_url","image_url":{"url":"u"}}`, `{"type":"refusal","refusal":"r"}`})
}

func TestWhereABlockStands(t *testing.T) {
	const part, item = `{"type":"text","text":"B"}`, `{"role":"user","content":"B"}`
	for _, c := range []struct {
		name, messages, want string
		after                int
	}{
		{"plain", `[{"content":"a","role":"user"}]`, `[{"content":[{"type":"text","text":"a"}, ` + part + `],"role":"user"}]`, 0},
		{"array", `[{"role":"user","content":[{"type":"image_url","image_url":{}} ]}]`, `[{"role":"user","content":[{"type":"image_url","image_url":{}},` + part + ` ]}]`, 0},
		{"tool last", `[{"role":"tool","tool_call_id":"c","content":"r"}]`, `[{"role":"tool","tool_call_id":"c","content":"r"},` + item + `]`, 0},
		{"between results", `[{"role":"tool","tool_call_id":"c","content":"r"}, {"role":"tool","tool_call_id":"d","content":"r"}]`,
			`[{"role":"tool","tool_call_id":"c","content":"r"}, {"role":"tool","tool_call_id":"d","content":"r"},` + item + `]`, 0},
		{"after the call", `[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`,
			`[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"},` + item + `]`, 0},
		{"system", `[{"role":"system","content":"s"}]`, `[{"role":"system","content":"s"},` + item + `]`, 0},
		{"empty", `[{"role":"user","content":""}]`, `[{"role":"user","content":""},` + item + `]`, 0},
		{"no content", `[{"role":"user"}]`, `[{"role":"user"},` + item + `]`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Adapter{}.Read([]byte(`{"messages":` + c.messages + `}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Adapter{}.Splice(r, []wire.Block{{After: c.after, Text: "B"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"messages":`+c.want+`}`, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadsOtherShapes(t *testing.T) {
	r, err := Adapter{}.Read([]byte(`{"model":"o3","max_completion_tokens":9,"max_tokens":5,"reasoning_effort":"high","response_format":{"type":"json_object"},
		"functions":[{"name":"old"}],"tools":[{"type":"custom","custom":{"name":"patch"}}],
		"messages":[{"role":"developer","content":[{"type":"text","text":"d"}]},
			{"role":"user","content":[{"type":"text","text":"u"},{"type":"input_audio","input_audio":{}}]},
			{"role":"assistant","content":null,"function_call":{"name":"old","arguments":"{\"a\":1}"}},
			{"role":"function","name":"old","content":"res"},
			{"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]},
			{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range r.Items {
		for _, p := range it.Parts {
			got = append(got, strings.Join([]string{it.Role, string(p.Kind), p.CallID, p.Name, p.Text, string(p.Args)}, "/"))
		}
	}
	want := []string{"developer/text///d/", "user/text///u/", "user/media////", `assistant/tool_call/old/old//{"a":1}`, "function/tool_result/old//res/",
		"assistant/text///no/", "assistant/tool_call/c/patch//*** Begin", "tool/tool_result/c//one\ntwo/"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.MaxTokens != 9 || !r.Thinking || !r.OutputFormat || len(r.Tools) != 2 || r.Tools[0].Name != "old" || r.Tools[1].Name != "patch" {
		t.Errorf("%d %v %v %v", r.MaxTokens, r.Thinking, r.OutputFormat, r.Tools)
	}
}

func TestMalformedRequests(t *testing.T) {
	for _, c := range []struct{ body, what string }{
		{`{"model":"m"}`, "messages is missing"},
		{`{"messages":[{"role":"user","content":1}]}`, "a string or an array of parts expected"},
		{`{"messages":[{"role":7}]}`, "a role expected"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","id":"b"}]}]}`, "duplicate key"},
		{`{"messages":[],"tools":[{"function":{"name":"a","name":"b"}}]}`, "duplicate key"},
		{`{"messages":[],"tools":{}}`, "tools: an array expected"},
		{`{"messages":[],"stream":1}`, "stream: a bool expected"},
		{`{"messages":[]}{}`, "data after the end"},
		{`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, "a content part has no type"},
	} {
		_, err := Adapter{}.Read([]byte(c.body))
		var m *wire.Malformed
		if !errors.As(err, &m) || !strings.Contains(m.What, c.what) || m.Line == 0 {
			t.Errorf("%s: %v, want %q", c.body, err, c.what)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","content":"r"}]}`))
	f.Add([]byte(`{"model":"gpt-5","stream":true,"stream_options":{},"messages":[ {"role":"user","content":[{"type":"text","text":"a"} ]} ],"tools":[],"tool_choice":"auto"}`))
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
		if bytes.Contains(body, []byte("gettier-verification")) || len(r.Items) == 0 {
			return
		}
		wiretest.Spliced(t, a, r, []wire.Block{{After: len(r.Items) - 1, Text: wiretest.Frame("one")}, {After: 0, Text: wiretest.Frame("two")}})
		for rung := range wire.Rung(4) {
			d, err := a.Declare(r, wire.DeclareOptions{Rung: rung, Instruction: "declare"})
			if err != nil {
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
