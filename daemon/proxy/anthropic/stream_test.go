package anthropicapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
	"gettier.dev/gettierd/ledger/lemma"
)

// ev writes one event.
func ev(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func start(id string, in int) string {
	return ev("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":100,"cache_creation_input_tokens":7,"output_tokens":1}}}`, id, in))
}

func open(i int, block string) string {
	return ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block))
}

func delta(i int, d string) string {
	return ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
}

func stop(i int) string {
	return ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func textBlock(i int, text string) string {
	return open(i, `{"type":"text","text":""}`) + delta(i, `{"type":"text_delta","text":`+string(wire.Quote(text))+`}`) + stop(i)
}

func thinkingBlock(i int, text string) string {
	return open(i, `{"type":"thinking","thinking":"","signature":""}`) + delta(i, `{"type":"thinking_delta","thinking":`+string(wire.Quote(text))+`}`) +
		delta(i, `{"type":"signature_delta","signature":"EqQB"}`) + stop(i)
}

func callBlock(i int, id, name string, parts ...string) string {
	s := open(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name))
	for _, p := range parts {
		s += delta(i, `{"type":"input_json_delta","partial_json":`+string(wire.Quote(p))+`}`)
	}
	return s + stop(i)
}

func end(reason string, out int) string {
	return ev("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, out)) + ev("message_stop", `{"type":"message_stop"}`)
}

const ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

var full = start("msg_1", 11) + ping + thinkingBlock(0, "hm") + ": comment\n\n" + textBlock(1, "I look\nat \"it\".") + ping +
	callBlock(2, "toolu_1", "Bash", "", `{"comm`, `and":"ls é"}`) + ping + callBlock(3, "toolu_2", "Read") + end("tool_use", 42)

func TestStreamReadsTheSameHoweverItIsCut(t *testing.T) {
	for _, nl := range []string{"\n", "\r\n"} {
		pieces, ans, err := wiretest.Split(t, Adapter{}, []byte(strings.ReplaceAll(full, "\n", nl)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := wiretest.Kinds(pieces), "start ping thinking ping text ping call ping call finish end"; got != want {
			t.Errorf("kinds %s\n want %s", got, want)
		}
		want := &wire.Answer{Text: "I look\nat \"it\".", Stop: "tool_use",
			Calls: []wire.Call{{Index: 2, ID: "toolu_1", Name: "Bash", Args: []byte(`{"command":"ls é"}`)}, {Index: 3, ID: "toolu_2", Name: "Read", Args: []byte("{}")}},
			Usage: lemma.Usage{Input: 11, Output: 42, CacheRead: 100, CacheCreate: 7}}
		if diff := cmp.Diff(want, ans); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnreadableStreams(t *testing.T) {
	s := start("msg_1", 1)
	for _, c := range []struct{ name, stream string }{
		{"no start", textBlock(0, "a")},
		{"second start", s + s},
		{"repeated index", s + textBlock(0, "a") + textBlock(0, "b")},
		{"repeated call id", s + callBlock(0, "t", "a", "{}") + callBlock(1, "t", "b", "{}")},
		{"call without name", s + open(0, `{"type":"tool_use","id":"t","input":{}}`)},
		{"call-like block", s + open(0, `{"type":"shell_use","id":"t","command":"rm"}`)},
		{"call-like by members", s + open(0, `{"type":"thing","name":"Bash","input":{"command":"rm"}}`)},
		{"call-like block in another case", s + open(0, `{"type":"Tool_Use","id":"t"}`)},
		{"disguised input", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":{},"Input":{"x":1}}`)},
		{"disguised block", s + ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""},"Content_Block":{"type":"tool_use"}}`)},
		{"disguised arguments", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":{}}`) + delta(0, `{"type":"input_json_delta","partial_json":"{}","Partial_JSON":"{}"}`)},
		{"delta after the block", s + callBlock(0, "t", "a", "{}") + delta(0, `{"type":"input_json_delta","partial_json":"x"}`)},
		{"text in a call", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":{}}`) + delta(0, `{"type":"text_delta","text":"x"}`)},
		{"arguments in a text", s + open(0, `{"type":"text","text":""}`) + delta(0, `{"type":"input_json_delta","partial_json":"{}"}`)},
		{"two inputs", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":{"x":1}}`) + delta(0, `{"type":"input_json_delta","partial_json":"{}"}`) + stop(0)},
		{"input that is no object", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":[1]}`) + stop(0)},
		{"duplicate key in arguments", s + callBlock(0, "t", "a", `{"command":"ls","command":"rm"}`)},
		{"duplicate key in an event", s + ev("ping", `{"type":"ping","type":"content_block_start"}`)},
		{"name and type differ", s + ev("ping", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)},
		{"block after stop", s + ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`) + textBlock(0, "a")},
		{"open call at the end", s + open(0, `{"type":"tool_use","id":"t","name":"a","input":{}}`) + end("tool_use", 1)},
		{"event after the end", s + end("end_turn", 1) + textBlock(0, "a")},
		{"content in start", ev("message_start", `{"type":"message_start","message":{"content":[{"type":"tool_use","id":"t","name":"a","input":{}}]}}`)},
		{"invalid UTF-8", s + "event: ping\ndata: {\"type\":\"ping\",\"x\":\"\xff\"}\n\n"},
		{"bare carriage return", s + ": x\rdata: {\"type\":\"ping\"}\n\n"},
		{"not JSON", s + "data: {\n\n"},
		{"index out of range", s + open(1<<30, `{"type":"text","text":""}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := wiretest.Split(t, Adapter{}, []byte(c.stream)); !errors.Is(err, wire.ErrUnreadable) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestReadableOddStreams(t *testing.T) {
	for _, c := range []struct{ name, stream, kinds string }{
		{"no event names", "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n", "start end"},
		{"gateway's own end", start("m", 1) + end("end_turn", 1) + "data: [DONE]\n\n: bye\n\n", "start finish end other ping"},
		{"unknown event", start("m", 1) + ev("news", `{"type":"news"}`) + end("end_turn", 1), "start other finish end"},
		{"sign of life", start("m", 1) + string(Adapter{}.KeepAlive(true)) + end("end_turn", 5), "start ping finish end"},
		{"error", start("m", 1) + ev("error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), "start error"},
		{"provider's own tool", start("m", 1) + open(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + delta(0, `{"type":"input_json_delta","partial_json":"{}"}`) + stop(0) + end("end_turn", 1), "start other finish end"},
		{"cut arguments", start("m", 1) + callBlock(0, "t", "a", `{"x":"`) + end("max_tokens", 1), "start call finish end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pieces, ans, err := wiretest.Split(t, Adapter{}, []byte(c.stream))
			if err != nil {
				t.Fatal(err)
			}
			if got := wiretest.Kinds(pieces); got != c.kinds {
				t.Errorf("kinds %q, want %q", got, c.kinds)
			}
			if c.name == "cut arguments" && (len(ans.Calls) != 1 || !ans.Calls[0].Broken) {
				t.Errorf("cut arguments are not marked: %+v", ans.Calls)
			}
		})
	}
	_, s := wiretest.Pieces(t, Adapter{}, []byte(start("m", 1)+textBlock(0, "half")))
	if s.Done() || !s.Started() {
		t.Error("a stream that ends short is done")
	}
}

// sdk accumulates events as the official clients do: blocks are pushed and found
// by index, and deltas must fit the block.
type sdk struct {
	t      *testing.T
	blocks []map[string]any
	closed []bool
	reason any
	usage  map[string]any
	state  string
}

func newSDK(t *testing.T) *sdk { return &sdk{t: t, usage: map[string]any{}} }

func (c *sdk) take(b []byte) {
	c.t.Helper()
	var sp wire.Splitter
	events, err := sp.Feed(b)
	if err != nil || sp.Rest() {
		c.t.Fatalf("not whole events (%v): %q", err, b)
	}
	for _, e := range events {
		if !e.HasData || e.Name == "ping" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(e.Data, &m); err != nil {
			c.t.Fatalf("event data: %v: %s", err, e.Data)
		}
		if m["type"] != e.Name {
			c.t.Fatalf("event %s of type %v", e.Name, m["type"])
		}
		c.event(m)
	}
}

func (c *sdk) event(m map[string]any) {
	c.t.Helper()
	at := func() map[string]any {
		i := int(m["index"].(float64))
		if i >= len(c.blocks) || c.closed[i] {
			c.t.Fatalf("block %d is not open", i)
		}
		return c.blocks[i]
	}
	if (m["type"] == "message_start") != (c.state == "") {
		c.t.Fatalf("%v in state %q", m["type"], c.state)
	}
	switch m["type"] {
	case "message_start":
		c.state = "open"
		for k, v := range m["message"].(map[string]any)["usage"].(map[string]any) {
			c.usage[k] = v
		}
	case "content_block_start":
		if int(m["index"].(float64)) != len(c.blocks) || c.reason != nil {
			c.t.Fatalf("block %v comes as number %d", m["index"], len(c.blocks))
		}
		if n := len(c.closed); n > 0 && !c.closed[n-1] {
			c.t.Fatal("a block starts inside another")
		}
		c.blocks = append(c.blocks, m["content_block"].(map[string]any))
		c.closed = append(c.closed, false)
	case "content_block_delta":
		b, d := at(), m["delta"].(map[string]any)
		switch d["type"] {
		case "text_delta":
			b["text"] = b["text"].(string) + d["text"].(string)
		case "input_json_delta":
			s, _ := b["json"].(string)
			b["json"] = s + d["partial_json"].(string)
		case "thinking_delta":
			b["thinking"] = b["thinking"].(string) + d["thinking"].(string)
		case "signature_delta":
			b["signature"] = d["signature"]
		}
	case "content_block_stop":
		at()
		c.closed[int(m["index"].(float64))] = true
	case "message_delta":
		c.reason = m["delta"].(map[string]any)["stop_reason"]
		for k, v := range m["usage"].(map[string]any) {
			c.usage[k] = v
		}
	case "message_stop":
		for i, ok := range c.closed {
			if !ok {
				c.t.Fatalf("block %d never ended", i)
			}
		}
		if c.reason == nil {
			c.t.Fatal("no stop reason")
		}
		c.state = "done"
	default:
		c.t.Fatalf("unknown event %v", m["type"])
	}
}

// says is what a person and an agent see: kinds of blocks with their content.
func (c *sdk) says() string {
	if c.state != "done" {
		c.t.Fatalf("the message is %q", c.state)
	}
	var out []string
	for _, b := range c.blocks {
		switch b["type"] {
		case "text":
			out = append(out, "text:"+b["text"].(string))
		case "thinking":
			out = append(out, "thinking:"+b["thinking"].(string)+"/"+b["signature"].(string))
		case "tool_use":
			s, _ := b["json"].(string)
			out = append(out, "call:"+b["name"].(string)+s)
		default:
			out = append(out, b["type"].(string))
		}
	}
	return strings.Join(out, " | ") + fmt.Sprintf(" | %v in=%v read=%v out=%v", c.reason, c.usage["input_tokens"], c.usage["cache_read_input_tokens"], c.usage["output_tokens"])
}

// sendUntilHeld sends what may leave before the calls of an answer are ruled on.
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
	first := start("msg_1", 11) + thinkingBlock(0, "a") + textBlock(1, "Let me.") + callBlock(2, "t1", "Bash", `{"command":"rm"}`) + end("tool_use", 20)
	second := start("msg_2", 5) + ping + thinkingBlock(0, "b") + textBlock(1, "It is not so.") + callBlock(2, "t1", "Read", `{"p":1}`) + end("tool_use", 30)
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(first))
	sendUntilHeld(c, s, pieces)
	c.take(s.CloseOpen())
	c.take(Adapter{}.KeepAlive(true))
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(second))
	for _, p := range more {
		c.take(s.Continue(s2, p))
	}
	want := `thinking:a/EqQB | text:Let me. | text:It is not so. | call:Read{"p":1} | tool_use in=5 read=100 out=50`
	if diff := cmp.Diff(want, c.says()); diff != "" {
		t.Error(diff)
	}
	if s.Finish("late") != nil || s.Note("late") != nil {
		t.Error("something follows the end")
	}
}

func TestThirdAnswerAndRefusal(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(start("msg_1", 1)+textBlock(0, "One.")+callBlock(1, "t", "Bash", "{}")+end("tool_use", 1)))
	sendUntilHeld(c, s, pieces)
	p2, s2 := wiretest.Pieces(t, Adapter{}, []byte(start("msg_2", 2)+textBlock(0, "Two.")+callBlock(1, "t", "Bash", "{}")+end("tool_use", 2)))
	for _, p := range p2[:4] {
		c.take(s.Continue(s2, p))
	}
	p3, s3 := wiretest.Pieces(t, Adapter{}, []byte(start("msg_3", 3)+thinkingBlock(0, "x")+textBlock(1, "Three.")))
	for _, p := range p3[:len(p3)-1] { // its text block stays open
		c.take(s.Continue(s3, p))
	}
	c.take(s.Finish("Not done."))
	if diff := cmp.Diff("text:One. | text:Two. | text:Three. | text:Not done. | end_turn in=3 read=100 out=4", c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestEarlyStart(t *testing.T) {
	c := newSDK(t)
	early := Adapter{}.Start("m", "t_1")
	s := Adapter{}.NewStream()
	s.Sent(wire.Piece{Raw: early, Kind: wire.PieceStart})
	c.take(early)
	c.take(Adapter{}.KeepAlive(true))
	pieces, up := wiretest.Pieces(t, Adapter{}, []byte(start("msg_1", 9)+thinkingBlock(0, "kept")+callBlock(1, "t", "Read", "{}")+end("tool_use", 3)))
	for _, p := range pieces {
		c.take(s.Continue(up, p))
	}
	if diff := cmp.Diff("thinking:kept/EqQB | call:Read{} | tool_use in=9 read=100 out=3", c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestNoteBeforeHeldCalls(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(start("msg_1", 9)+textBlock(0, "a")+callBlock(1, "t", "Read", "{}")+end("tool_use", 3)))
	held := sendUntilHeld(c, s, pieces)
	c.take(s.Note("by the way"))
	for _, p := range held {
		c.take(s.Continue(s, p))
	}
	if diff := cmp.Diff("text:a | text:by the way | call:Read{} | tool_use in=9 read=100 out=3", c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestFinish(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing read", "", "text:no | end_turn in=0 read=0 out=0"},
		{"after start", start("msg_1", 1), "text:no | end_turn in=1 read=100 out=1"},
		{"inside a text", start("msg_1", 1) + open(0, `{"type":"text","text":""}`) + delta(0, `{"type":"text_delta","text":"a"}`), "text:a | text:no | end_turn in=1 read=100 out=1"},
		{"before a call", start("msg_1", 1) + callBlock(0, "t", "Bash", "{}"), "text:no | end_turn in=1 read=100 out=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newSDK(t)
			pieces, s := wiretest.Pieces(t, Adapter{}, []byte(c.stream))
			sendUntilHeld(client, s, pieces)
			client.take(s.Finish("no"))
			if diff := cmp.Diff(c.want, client.says()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(full), 7)
	f.Add([]byte(start("m", 1)+end("end_turn", 1)), 1)
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
		// Carried on after a text of ours, whatever it was stays a readable stream.
		s := Adapter{}.NewStream()
		out := s.Note("first")
		for _, p := range p1 {
			if p.Kind != wire.PieceEnd && p.Kind != wire.PieceFinish && p.Kind != wire.PieceError && p.Kind != wire.PieceOther {
				out = append(out, s.Continue(one, p)...)
			}
		}
		out = append(out, s.Finish("last")...)
		check := Adapter{}.NewStream()
		if _, err := check.Feed(out); err != nil || !check.Done() {
			t.Fatalf("what was carried on cannot be read: %v\n%q", err, out)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	var s strings.Builder
	s.WriteString(start("m", 1) + open(0, `{"type":"text","text":""}`))
	for range 500 {
		s.WriteString(delta(0, `{"type":"text_delta","text":"some words "}`))
	}
	s.WriteString(stop(0) + end("end_turn", 500))
	in := []byte(s.String())
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Adapter{}).NewStream().Feed(in); err != nil {
			b.Fatal(err)
		}
	}
}
