package anthropicapi

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
			if testing.Short() && len(rec.Body) > 40<<10 {
				t.Skip("large body in short mode")
			}
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
	if want := g.Get("thinking.type").String(); r.Thinking != (want == "adaptive" || want == "enabled") {
		t.Errorf("thinking %v with type %q", r.Thinking, want)
	}
	if r.OutputFormat != g.Get("output_config.format").Exists() {
		t.Errorf("output format %v", r.OutputFormat)
	}
	if len(r.Tools) != int(g.Get("tools.#").Int()) {
		t.Errorf("%d tools", len(r.Tools))
	}
	for i, tool := range r.Tools {
		if want := g.Get("tools").Array()[i]; tool.Name != want.Get("name").String() || string(r.Body[tool.Span.Start:tool.Span.End]) != want.Raw {
			t.Errorf("tool %d is %q", i, tool.Name)
		}
	}
	for i, m := range g.Get("messages").Array() {
		it := r.Items[i]
		if it.Role != m.Get("role").String() || string(r.Body[it.Content.Start:it.Content.End]) != m.Get("content").Raw {
			t.Errorf("item %d: role %q", i, it.Role)
		}
		if !m.Get("content").IsArray() {
			if !it.Plain || it.Parts[0].Text != m.Get("content").String() {
				t.Errorf("item %d: plain %v", i, it.Plain)
			}
			continue
		}
		for j, b := range m.Get("content").Array() {
			p := it.Parts[j]
			if string(r.Body[p.Span.Start:p.Span.End]) != b.Raw {
				t.Errorf("item %d part %d: wrong span", i, j)
			}
			switch b.Get("type").String() {
			case "text":
				if p.Kind != wire.Text || p.Text != b.Get("text").String() {
					t.Errorf("item %d part %d: %s", i, j, p.Kind)
				}
			case "thinking":
				if p.Kind != wire.Thinking {
					t.Errorf("item %d part %d: %s", i, j, p.Kind)
				}
			case "tool_use":
				if p.Kind != wire.ToolCall || p.Name != b.Get("name").String() || p.CallID != b.Get("id").String() || string(p.Args) != b.Get("input").Raw {
					t.Errorf("item %d part %d: %s %s", i, j, p.Kind, p.Name)
				}
			case "tool_result":
				want := b.Get("content").String()
				if b.Get("content").IsArray() {
					var texts []string
					for _, c := range b.Get(`content.#(type=="text")#.text`).Array() {
						texts = append(texts, c.String())
					}
					want = strings.Join(texts, "\n")
				}
				if p.Kind != wire.ToolResult || p.CallID != b.Get("tool_use_id").String() || p.Text != want || p.IsError != b.Get("is_error").Bool() {
					t.Errorf("item %d part %d: %s %q", i, j, p.Kind, p.Text)
				}
			}
		}
	}
}

// A block stays where it was while the client moves cache marks and reshapes old
// entries.
func TestBlocksAreStickyInRecordedSessions(t *testing.T) {
	recs, checked := wiretest.Load(t, sessions), 0
	for i := 1; i < len(recs); i++ {
		if recs[i].Session() == recs[i-1].Session() && recs[i].Kind == recs[i-1].Kind && wiretest.Prefixed(t, Adapter{}, recs[i-1].Body, recs[i].Body) {
			checked++
		}
	}
	if checked < 60 {
		t.Errorf("only %d pairs of requests follow each other", checked)
	}
}

func TestReshapedEntryKeepsItsBlock(t *testing.T) {
	block := []wire.Block{{After: 0, Text: wiretest.Frame("x")}}
	var got [2][]byte
	for i, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"hé\n\"q\""}]},{"role":"assistant","content":"ok"}]}`,
		`{"messages":[{"role":"user","content":"hé\n\"q\""},{"role":"assistant","content":"ok"}]}`,
	} {
		r, err := Adapter{}.Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		wiretest.Spliced(t, Adapter{}, r, block)
		if got[i], err = (Adapter{}).Splice(r, block); err != nil {
			t.Fatal(err)
		}
	}
	var a, b any
	if json.Unmarshal(got[0], &a) != nil || json.Unmarshal(got[1], &b) != nil {
		t.Fatal("not JSON")
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	part := wire.Quote(block[0].Text)
	if !bytes.Contains(got[0], part) || !bytes.Contains(got[1], part) {
		t.Error("the block's own bytes differ")
	}
}

func TestSplicesOfMadeUpConversations(t *testing.T) {
	wiretest.Generated(t, Adapter{}, []string{"user", "user", "assistant", "system"},
		[]string{`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]}`, `{"type":"tool_use","id":"t","name":"n","input":{"a": 1}}`, `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`})
}

func TestWhereABlockStands(t *testing.T) {
	const ours = `{"type":"text","text":"B"}`
	for _, c := range []struct{ name, messages, want string }{
		{"plain", `[{"role":"user","content":"a"}]`, `[{"role":"user","content":[{"type":"text","text":"a"}, ` + ours + `]}]`},
		{"array", `[{"role":"user","content":[ {"type":"text","text":"a"} ]}]`, `[{"role":"user","content":[ {"type":"text","text":"a"},` + ours + ` ]}]`},
		{"after results", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"}]}]}]`,
			`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"}]},` + ours + `]}]`},
		{"system entry last", `[{"role":"user","content":"a"},{"role":"system","content":"s"}]`,
			`[{"role":"user","content":[{"type":"text","text":"a"}, ` + ours + `]},{"role":"system","content":"s"}]`},
		{"assistant last", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`,
			`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"B"}]`},
		{"empty content", `[{"role":"user","content":""}]`, `[{"role":"user","content":""},{"role":"user","content":"B"}]`},
		{"empty array", `[{"role":"user","content":[]}]`, `[{"role":"user","content":[]},{"role":"user","content":"B"}]`},
		{"system alone", `[{"role":"system","content":"s"}]`, `[{"role":"user","content":"B"},{"role":"system","content":"s"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Adapter{}.Read([]byte(`{"messages":` + c.messages + `}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Adapter{}.Splice(r, []wire.Block{{After: len(r.Items) - 1, Text: "B"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"messages":`+c.want+`}`, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("between call and result", func(t *testing.T) {
		r, err := Adapter{}.Read([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Adapter{}.Splice(r, []wire.Block{{After: 0, Text: "B"}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(got, []byte(`{"type":"tool_result","tool_use_id":"t"},`+ours+`]}]}`)) {
			t.Errorf("the block parts a call from its result: %s", got)
		}
	})
	if _, err := (Adapter{}).Splice(&wire.Request{}, []wire.Block{{After: 0}}); err == nil {
		t.Error("a block after an item that is not there")
	}
}

func TestStripLeavesOtherTextAlone(t *testing.T) {
	f := string(wire.Quote(wiretest.Frame("x")))
	for _, c := range []struct{ name, messages, want string }{
		{"own item first", `[{"role":"user","content":` + f + `}, {"role":"user","content":"a"}]`, `[{"role":"user","content":"a"}]`},
		{"reshaped own item", `[{"role":"user","content":"a"}, {"role":"user","content":[{"text":` + f + `,"type":"text","cache_control":{"type":"ephemeral"}}]}]`, `[{"role":"user","content":"a"}]`},
		{"first part", `[{"role":"user","content":[ {"type":"text","text":` + f + `} , {"type":"text","text":"a"}]}]`, `[{"role":"user","content":[ {"type":"text","text":"a"}]}]`},
		{"middle part", `[{"role":"user","content":[{"type":"text","text":"a"} , {"type":"text","text":` + f + `}, {"type":"text","text":"b"}]}]`, `[{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}]}]`},
		{"a part with a cache mark stays an array", `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}, {"type":"text","text":` + f + `}]}]`, `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]`},
		{"assistant text stays", `[{"role":"assistant","content":` + f + `}]`, ""},
		{"words after the frame", `[{"role":"user","content":` + string(wire.Quote(wiretest.Frame("x")+" and I say")) + `}]`, ""},
		{"words between frames", `[{"role":"user","content":` + string(wire.Quote(wiretest.Frame("x")+" do this "+wiretest.Frame("y"))) + `}]`, ""},
		{"tool output", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":` + f + `}]}]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if want == "" {
				want = c.messages
			}
			got, err := Adapter{}.Strip([]byte(`{"messages":` + c.messages + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"messages":`+want+`}`, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMalformedRequests(t *testing.T) {
	for _, c := range []struct {
		body, what string
		line, col  int
	}{
		{``, "", 1, 1},
		{`[]`, "an object expected, not an array", 1, 1},
		{`{"model":"m"}`, "messages is missing", 1, 1},
		{`{"messages":{}}`, "an array expected, not an object", 1, 13},
		{`{"messages":[1]}`, "an object expected, not a number", 1, 14},
		{`{"messages":[{}]}`, "has no role", 1, 14},
		{`{"messages":[{"role":"user","content":5}]}`, "a string or an array of blocks expected", 1, 39},
		{`{"messages":[{"role":"user","content":["a"]}]}`, "an object expected, not a string", 1, 40},
		{`{"messages":[{"role":"user","content":[{"text":"a"}]}]}`, "a block has no type", 1, 40},
		{"{\"messages\":[],\n \"messages\":[]}", "duplicate key", 2, 2},
		{`{"messages":[{"role":"user","role":"assistant"}]}`, "duplicate key", 1, 29},
		{`{"messages":[],"tools":[{"name":"a","n\u0061me":"b"}]}`, "duplicate key", 1, 37},
		{`{"messages":[],"stream":"yes"}`, "stream: a bool expected", 1, 25},
		{`{"messages":[],"max_tokens":"1"}`, "max_tokens: a number expected", 1, 29},
		{`{"messages":[]} x`, "data after the end", 1, 0},
		{"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "invalid UTF-8", 1, 40},
		{`{"messages":[`, "", 1, 0},
	} {
		_, err := Adapter{}.Read([]byte(c.body))
		var m *wire.Malformed
		if !errors.As(err, &m) {
			t.Errorf("%s: %v, a *Malformed is wanted", c.body, err)
			continue
		}
		if !strings.Contains(m.What, c.what) || m.Line != c.line || c.col > 0 && m.Column != c.col {
			t.Errorf("%s: %q at %d:%d, want %q at %d:%d", c.body, m.What, m.Line, m.Column, c.what, c.line, c.col)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"system","content":"s"}],"system":"x","tools":[{"name":"t"}]}`))
	f.Add([]byte(`{ "messages" : [ {"role":"user", "content": [ {"type":"text","text":"a"} , {"type":"tool_result","content":[]} ]} , {"content":null,"role":"assistant"}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking"},{"type":"tool_use","id":"i","name":"n","input":{}}]}],"thinking":{"type":"adaptive"}}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzRequest(t, Adapter{}, body) })
}

func fuzzRequest(t *testing.T, a wire.Adapter, body []byte) {
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
		if _, err := a.Read(d); err != nil {
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
}

func BenchmarkRead(b *testing.B) {
	body := largest(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Adapter{}).Read(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplice(b *testing.B) {
	r, err := Adapter{}.Read(largest(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(r.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Adapter{}).Splice(r, []wire.Block{{After: len(r.Items) - 1, Text: wiretest.Frame("x")}}); err != nil {
			b.Fatal(err)
		}
	}
}

func largest(tb testing.TB) []byte {
	var body []byte
	for _, r := range wiretest.Load(tb, sessions) {
		if len(r.Body) > len(body) {
			body = r.Body
		}
	}
	return body
}
