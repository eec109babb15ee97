package openaiapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
	"gettier.dev/gettierd/ledger/lemma"
)

// data writes one chunk of answer id with a delta and a finish reason.
func data(id, delta, finish string) string {
	return fmt.Sprintf("data: {\"id\":%q,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", id, delta, finish)
}

func role(id string) string { return data(id, `{"role":"assistant","content":""}`, "null") }
func say(id, text string) string {
	return data(id, `{"content":`+string(wire.Quote(text))+`}`, "null")
}
func think(id, text string) string {
	return data(id, `{"reasoning_content":`+string(wire.Quote(text))+`}`, "null")
}

func callStart(id string, index int, call, name string) string {
	return data(id, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, index, call, name), "null")
}

func callPart(id string, index int, part string) string {
	return data(id, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, index, wire.Quote(part)), "null")
}

func usage(id string, in, cached, out int) string {
	return fmt.Sprintf("data: {\"id\":%q,\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n", id, in, out, in+out, cached)
}

const done = "data: [DONE]\n\n"

var full = role("c1") + think("c1", "hm") + say("c1", "Let me ") + ": comment\n\n" + say("c1", "look é.") + callStart("c1", 0, "call_1", "shell") + callPart("c1", 0, `{"cmd":"l`) +
	callPart("c1", 0, `s"}`) + callStart("c1", 1, "call_2", "read") + callPart("c1", 1, `{}`) + data("c1", "{}", `"tool_calls"`) + usage("c1", 50, 30, 9) + done

func TestStreamReadsTheSameHoweverItIsCut(t *testing.T) {
	for _, nl := range []string{"\n", "\r\n"} {
		pieces, ans, err := wiretest.Split(t, Adapter{}, []byte(strings.ReplaceAll(full, "\n", nl)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := wiretest.Kinds(pieces), "start thinking text ping text call finish end"; got != want {
			t.Errorf("kinds %s\n want %s", got, want)
		}
		want := &wire.Answer{Text: "Let me look é.", Stop: "tool_calls",
			Calls: []wire.Call{{Index: 0, ID: "call_1", Name: "shell", Args: []byte(`{"cmd":"ls"}`)}, {Index: 1, ID: "call_2", Name: "read", Args: []byte("{}")}},
			Usage: lemma.Usage{Input: 20, CacheRead: 30, Output: 9}}
		if diff := cmp.Diff(want, ans); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnreadableStreams(t *testing.T) {
	s := role("c")
	for _, c := range []struct{ name, stream string }{
		{"event after the end", s + done + say("c", "x")},
		{"second end", s + done + done},
		{"repeated index with another id", s + callStart("c", 0, "a", "n") + callStart("c", 0, "b", "n")},
		{"repeated id", s + callStart("c", 0, "a", "n") + callStart("c", 1, "a", "n")},
		{"changing name", s + callStart("c", 0, "a", "ba") + callStart("c", 0, "a", "sh")},
		{"call without name", s + callPart("c", 0, "{}")},
		{"call after finish", s + data("c", "{}", `"stop"`) + callStart("c", 0, "a", "n")},
		{"unknown call type", s + data("c", `{"tool_calls":[{"index":0,"id":"a","type":"computer","computer":{}}]}`, "null")},
		{"two bodies", s + data("c", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"a"},"custom":{"name":"b"}}]}`, "null")},
		{"call-like member", s + data("c", `{"mcp_call":{"name":"a"}}`, "null")},
		{"call outside of the delta", s + `data: {"choices":[{"index":0,"message":{"tool_calls":[{"id":"a"}]}}]}` + "\n\n"},
		{"call beside the delta", s + `data: {"choices":[{"index":0,"delta":{},"tool_calls":[{"id":"a"}]}]}` + "\n\n"},
		{"call beside the choices", s + `data: {"choices":[],"tool_calls":[{"id":"a"}]}` + "\n\n"},
		{"disguised calls", s + data("c", `{"Tool_Calls":[{"index":0}]}`, "null")},
		{"disguised delta", s + `data: {"choices":[{"index":0,"delta":{},"Delta":{"tool_calls":[{"id":"a"}]}}]}` + "\n\n"},
		{"disguised name", s + data("c", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"a","Name":"b"}}]}`, "null")},
		{"call among the parts", s + data("c", `{"content":[{"type":"tool_use","name":"a"}]}`, "null")},
		{"no array", s + data("c", `{"tool_calls":{"index":0}}`, "null")},
		{"duplicate key", s + data("c", `{"content":"a","content":"b"}`, "null")},
		{"duplicate key in arguments", s + callStart("c", 0, "a", "n") + callPart("c", 0, `{"x":1,"x":2}`) + done},
		{"invalid UTF-8", s + "data: {\"x\":\"\xff\"}\n\n"},
		{"part without index", s + data("c", `{"tool_calls":[{"function":{"arguments":"{}"}}]}`, "null")},
		{"negative index", s + data("c", `{"tool_calls":[{"index":-1,"id":"a","function":{"name":"a"}}]}`, "null")},
		{"legacy call that changes", s + data("c", `{"function_call":{"name":"a"}}`, "null") + data("c", `{"function_call":{"name":"b"}}`, "null")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := wiretest.Split(t, Adapter{}, []byte(c.stream)); !errors.Is(err, wire.ErrUnreadable) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestReadableOddStreams(t *testing.T) {
	for _, c := range []struct{ name, stream, kinds, calls string }{
		{"all in one chunk", data("c", `{"role":"assistant","content":"a","tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{\"x\":1}"}}]}`, `"tool_calls"`) + done, "call end", `n{"x":1}`},
		{"no index", data("c", `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n","arguments":"{"}},{"id":"b","function":{"name":"o","arguments":""}}]}`, "null") + data("c", `{"tool_calls":[{"function":{"arguments":"}"}}]}`, "null") + done, "call end", `n{ o}`},
		{"no ids", role("c") + callStart("c", 0, "", "n") + callPart("c", 0, "{}") + callStart("c", 1, "", "o") + done, "start call end", "n{} o"},
		{"id and name repeated", role("c") + callStart("c", 0, "a", "n") + callStart("c", 0, "a", "n") + done, "start call end", "n"},
		{"legacy", role("c") + data("c", `{"function_call":{"name":"n","arguments":"{\"a\""}}`, "null") + data("c", `{"function_call":{"arguments":":1}"}}`, "null") + data("c", "{}", `"function_call"`) + done, "start call finish end", `n{"a":1}`},
		{"custom", role("c") + data("c", `{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"patch","input":"{\"x\":1,\"x\":2"}}]}`, "null") + done, "start call end", `patch{"x":1,"x":2`},
		{"object arguments", role("c") + data("c", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":{"x":1}}}]}`, "null") + done, "start call end", `n{"x":1}`},
		{"azure", `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + role("c") + say("c", "x") + data("c", "{}", `"stop"`) + done, "other start text finish end", ""},
		{"usage null everywhere", strings.ReplaceAll(say("c", "x"), `"created"`, `"usage":null,"created"`) + done, "text end", ""},
		{"error", role("c") + string(Adapter{}.StreamError("server_error", "x")), "start error", ""},
		{"keep-alive", role("c") + string(Adapter{}.KeepAlive(true)) + done, "start ping end", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pieces, ans, err := wiretest.Split(t, Adapter{}, []byte(c.stream))
			if err != nil {
				t.Fatal(err)
			}
			if got := wiretest.Kinds(pieces); got != c.kinds {
				t.Errorf("kinds %q, want %q", got, c.kinds)
			}
			var calls []string
			for _, call := range ans.Calls {
				calls = append(calls, call.Name+string(call.Args))
			}
			if got := strings.Join(calls, " "); got != c.calls {
				t.Errorf("calls %s, want %s", got, c.calls)
			}
		})
	}
}

// sdk accumulates chunks as the official clients do: every string of a delta is
// appended to what came before, the role included, and calls are found by index.
type sdk struct {
	t      *testing.T
	role   string
	text   string
	think  string
	calls  map[int]string
	finish string
	usage  map[string]any
	ids    map[string]bool
	done   bool
}

func newSDK(t *testing.T) *sdk { return &sdk{t: t, calls: map[int]string{}, ids: map[string]bool{}} }

func (c *sdk) take(b []byte) {
	c.t.Helper()
	var sp wire.Splitter
	events, err := sp.Feed(b)
	if err != nil || sp.Rest() {
		c.t.Fatalf("not whole events (%v): %q", err, b)
	}
	for _, e := range events {
		if !e.HasData {
			continue
		}
		if c.done {
			c.t.Fatalf("data after the end: %s", e.Data)
		}
		if string(e.Data) == "[DONE]" {
			c.done = true
			continue
		}
		c.chunk(e.Data)
	}
}

func (c *sdk) chunk(b []byte) {
	c.t.Helper()
	var m struct {
		ID      string
		Object  string
		Choices []struct {
			Delta struct {
				Role, Content, Reasoning_content string
				Tool_calls                       []struct {
					Index    *int
					ID, Type string
					Function struct{ Name, Arguments string }
				}
			}
			Finish_reason *string
		}
		Usage map[string]any
	}
	if err := json.Unmarshal(b, &m); err != nil {
		c.t.Fatalf("chunk: %v: %s", err, b)
	}
	c.ids[m.ID] = true
	if m.Usage != nil {
		c.usage = m.Usage
	}
	for _, ch := range m.Choices {
		if c.finish != "" && (ch.Delta.Content != "" || len(ch.Delta.Tool_calls) > 0) {
			c.t.Fatalf("content after the finish reason: %s", b)
		}
		c.role += ch.Delta.Role
		if c.role == "" {
			c.t.Fatalf("no role in the first chunk: %s", b)
		}
		c.text += ch.Delta.Content
		c.think += ch.Delta.Reasoning_content
		for _, call := range ch.Delta.Tool_calls {
			if _, ok := c.calls[*call.Index]; !ok && (call.Type != "function" || call.ID == "") {
				c.t.Fatalf("a call starts without type or id: %s", b)
			}
			c.calls[*call.Index] += call.ID + call.Function.Name + call.Function.Arguments
		}
		if ch.Finish_reason != nil {
			c.finish += *ch.Finish_reason
		}
	}
}

func (c *sdk) says() string {
	c.t.Helper()
	if !c.done || c.role != "assistant" || len(c.ids) != 1 {
		c.t.Fatalf("done=%v role=%q ids=%v", c.done, c.role, c.ids)
	}
	out := []string{"text:" + c.text}
	if c.think != "" {
		out = append(out, "think:"+c.think)
	}
	var order []int
	for i := range c.calls {
		order = append(order, i)
	}
	sort.Ints(order)
	for n, i := range order {
		if n != i {
			c.t.Fatalf("call indices %v", order)
		}
		out = append(out, "call:"+c.calls[i])
	}
	out = append(out, c.finish)
	if c.usage != nil {
		out = append(out, fmt.Sprintf("in=%v out=%v total=%v", c.usage["prompt_tokens"], c.usage["completion_tokens"], c.usage["total_tokens"]))
	}
	return strings.Join(out, " | ")
}

func sendUntilHeld(c *sdk, s wire.Stream, pieces []wire.Piece) (held []wire.Piece) {
	for _, p := range pieces {
		if len(held) > 0 || p.Kind == wire.PieceCall || p.Kind == wire.PieceFinish {
			held = append(held, p)
			continue
		}
		s.Sent(p)
		c.take(p.Raw)
	}
	return held
}

func TestSecondAnswerCarriesOn(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(full))
	sendUntilHeld(c, s, pieces)
	c.take(s.CloseOpen())
	c.take(Adapter{}.KeepAlive(true))
	second := role("c2") + think("c2", "no") + data("c2", `{"role":"assistant","content":"It is not so.","reasoning_content":"x"}`, "null") + say("c2", " So:") +
		callStart("c2", 0, "call_1", "read") + callPart("c2", 0, "{}") + data("c2", `{"content":null}`, `"tool_calls"`) + usage("c2", 60, 50, 5) + done
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(second))
	for _, p := range more {
		c.take(s.Continue(s2, p))
	}
	want := "text:Let me look é.\n\nIt is not so. So: | think:hm | call:call_1read{} | tool_calls | in=60 out=14 total=74"
	if diff := cmp.Diff(want, c.says()); diff != "" {
		t.Error(diff)
	}
	if s.Finish("late") != nil || s.Note("late") != nil {
		t.Error("something follows the end")
	}
}

func TestCallsAlreadySentKeepTheirIndices(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(role("c1")+callStart("c1", 0, "a", "n")+callStart("c1", 1, "b", "n")))
	for _, p := range pieces {
		s.Sent(p)
		c.take(p.Raw)
	}
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(role("c2")+callStart("c2", 0, "c", "o")+callPart("c2", 0, "{}")+data("c2", "{}", `"tool_calls"`)+done))
	for _, p := range more {
		c.take(s.Continue(s2, p))
	}
	if diff := cmp.Diff("text: | call:an | call:bn | call:co{} | tool_calls", c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestEarlyStart(t *testing.T) {
	c := newSDK(t)
	early := Adapter{}.Start("m", "t_1")
	s := Adapter{}.NewStream()
	s.Sent(wire.Piece{Raw: early, Kind: wire.PieceStart})
	c.take(early)
	pieces, up := wiretest.Pieces(t, Adapter{}, []byte(full))
	for _, p := range pieces {
		c.take(s.Continue(up, p))
	}
	want := `text:Let me look é. | think:hm | call:call_1shell{"cmd":"ls"} | call:call_2read{} | tool_calls | in=50 out=9 total=59`
	if diff := cmp.Diff(want, c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestFinishAndNote(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing read", "", "text:note\n\nno | stop"},
		{"after start", role("c1"), "text:note\n\nno | stop"},
		{"after text", role("c1") + say("c1", "a"), "text:a\n\nnote\n\nno | stop"},
		{"instead of calls", full, "text:Let me look é.\n\nnote\n\nno | think:hm | stop | in=50 out=9 total=59"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newSDK(t)
			pieces, s := wiretest.Pieces(t, Adapter{}, []byte(c.stream))
			sendUntilHeld(client, s, pieces)
			client.take(s.Note("note"))
			client.take(s.Finish("no"))
			if diff := cmp.Diff(c.want, client.says()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("calls follow a note", func(t *testing.T) {
		client := newSDK(t)
		pieces, s := wiretest.Pieces(t, Adapter{}, []byte(full))
		held := sendUntilHeld(client, s, pieces)
		client.take(s.Note("note"))
		for _, p := range held {
			client.take(s.Continue(s, p))
		}
		want := "text:Let me look é.\n\nnote | think:hm | call:call_1shell{\"cmd\":\"ls\"} | call:call_2read{} | tool_calls | in=50 out=9 total=59"
		if diff := cmp.Diff(want, client.says()); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(full), 7)
	f.Add([]byte(role("c")+done), 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		step = max(1, step%max(1, len(b)))
		one, another := Adapter{}.NewStream(), Adapter{}.NewStream()
		p1, err1 := one.Feed(b)
		var p2 []wire.Piece
		var err2 error
		for rest := b; len(rest) > 0 && err2 == nil; {
			n := min(step, len(rest))
			var p []wire.Piece
			p, err2 = another.Feed(rest[:n])
			p2 = append(p2, p...)
			rest = rest[n:]
		}
		if fmt.Sprint(err1) != fmt.Sprint(err2) || len(p1) != len(p2) {
			t.Fatalf("%d pieces (%v) whole, %d (%v) in steps of %d", len(p1), err1, len(p2), err2, step)
		}
		if diff := cmp.Diff(one.Answer(), another.Answer()); diff != "" {
			t.Fatal(diff)
		}
		s := Adapter{}.NewStream()
		out := s.Note("first")
		for _, p := range p1 {
			if p.Kind != wire.PieceEnd && p.Kind != wire.PieceError {
				out = append(out, s.Continue(one, p)...)
			}
		}
		out = append(out, s.Finish("last")...)
		if err1 != nil {
			return
		}
		check := Adapter{}.NewStream()
		if _, err := check.Feed(out); err != nil || !check.Done() {
			t.Fatalf("what was carried on cannot be read: %v\n%q", err, out)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	in := []byte(role("c") + strings.Repeat(say("c", "some words "), 500) + data("c", "{}", `"stop"`) + usage("c", 1, 0, 1) + done)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Adapter{}).NewStream().Feed(in); err != nil {
			b.Fatal(err)
		}
	}
}
