package responsesapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
	"gettier.dev/gettierd/ledger/lemma"
)

// writer writes a stream as the API does: numbered events, items by index.
type writer struct {
	strings.Builder
	id    string
	n     int
	items []string
}

func answering(id string) *writer {
	w := &writer{id: id}
	w.ev("response.created", fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"usage":null,"tools":[{"type":"function","name":"shell"}]}`, id))
	w.ev("response.in_progress", fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"usage":null}`, id))
	return w
}

func (w *writer) ev(kind, members string) *writer {
	fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, w.n, members)
	w.n++
	return w
}

func (w *writer) at() int { return len(w.items) }

func (w *writer) item(added, done string) *writer {
	return w.ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, w.at(), added)).done(done)
}

func (w *writer) done(item string) *writer {
	w.ev("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, w.at(), item))
	w.items = append(w.items, item)
	return w
}

func (w *writer) think(id, text string) *writer {
	rs := fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[{"type":"summary_text","text":%q}],"encrypted_content":"e"}`, id, text)
	w.ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":"reasoning","id":%q,"summary":[]}`, w.at(), id))
	w.ev("response.reasoning_summary_part.added", fmt.Sprintf(`"item_id":%q,"output_index":%d,"summary_index":0,"part":{"type":"summary_text","text":""}`, id, w.at()))
	w.ev("response.reasoning_summary_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"summary_index":0,"delta":%q`, id, w.at(), text))
	return w.done(rs)
}

func (w *writer) say(id string, parts ...string) *writer {
	return w.sayOpen(id, parts...).sayDone(id, parts...)
}

func (w *writer) sayOpen(id string, parts ...string) *writer {
	w.ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":"message","id":%q,"status":"in_progress","role":"assistant","content":[]}`, w.at(), id))
	w.ev("response.content_part.added", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`, id, w.at()))
	for _, p := range parts {
		w.ev("response.output_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"delta":%s`, id, w.at(), wire.Quote(p)))
	}
	return w
}

func (w *writer) sayDone(id string, parts ...string) *writer {
	all := wire.Quote(strings.Join(parts, ""))
	w.ev("response.output_text.done", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"text":%s`, id, w.at(), all))
	w.ev("response.content_part.done", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"part":{"type":"output_text","text":%s,"annotations":[]}`, id, w.at(), all))
	return w.done(fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, id, all))
}

func (w *writer) call(id, name string, parts ...string) *writer {
	w.ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":"","status":"in_progress"}`, w.at(), id, id, name))
	for _, p := range parts {
		w.ev("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"delta":%s`, id, w.at(), wire.Quote(p)))
	}
	all := strings.Join(parts, "")
	w.ev("response.function_call_arguments.done", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"arguments":%s`, id, w.at(), wire.Quote(all)))
	return w.done(called(id, name, all))
}

func (w *writer) end(in, cached, out int) string {
	w.ev("response.completed", fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"status":"completed","model":"m","output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d}}`,
		w.id, strings.Join(w.items, ","), in, cached, out, in+out))
	return w.String()
}

var full = answering("resp_1").think("rs_1", "hm").say("msg_1", "Let me ", "look é.").think("rs_2", "so").call("call_1", "shell", `{"cmd":"l`, `s"}`).call("call_2", "read", `{}`).end(50, 30, 9)

func TestStreamReadsTheSameHoweverItIsCut(t *testing.T) {
	for _, nl := range []string{"\n", "\r\n"} {
		pieces, ans, err := wiretest.Split(t, Adapter{}, []byte(strings.ReplaceAll(full, "\n", nl)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := wiretest.Kinds(pieces), "start ping lead text lead call finish"; got != want {
			t.Errorf("kinds %s\n want %s", got, want)
		}
		want := &wire.Answer{Text: "Let me look é.", Stop: "completed",
			Calls: []wire.Call{{Index: 3, ID: "call_1", Name: "shell", Args: []byte(`{"cmd":"ls"}`)}, {Index: 4, ID: "call_2", Name: "read", Args: []byte("{}")}},
			Usage: lemma.Usage{Input: 20, CacheRead: 30, Output: 9}}
		if diff := cmp.Diff(want, ans); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnreadableStreams(t *testing.T) {
	start := func() *writer { return answering("r") }
	added := func(item string) string {
		return start().ev("response.output_item.added", `"output_index":0,"item":`+item).String()
	}
	completed := func(w *writer, items string) string {
		return w.ev("response.completed", `"response":{"id":"r","status":"completed","output":[`+items+`]}`).String()
	}
	const fc = `{"type":"function_call","id":"fc","call_id":"a","name":"n","arguments":""}`
	for _, c := range []struct{ name, stream string }{
		{"event after the end", start().end(1, 0, 1) + "data: {\"type\":\"response.output_text.delta\"}\n\n"},
		{"second end", start().end(1, 0, 1) + completed(&writer{}, "")},
		{"second start", start().String() + start().String()},
		{"output in the start", `data: {"type":"response.created","response":{"output":[` + fc + `]}}` + "\n\n"},
		{"output while in progress", start().ev("response.in_progress", `"response":{"output":[`+fc+`]}`).String()},
		{"repeated index", added(fc) + added(fc)[len(start().String()):]},
		{"repeated call id", start().call("a", "n", "{}").call("a", "m", "{}").String()},
		{"end of no item twice", start().call("a", "n", "{}").ev("response.output_item.done", `"output_index":0,"item":`+called("a", "n", "{}")).String()},
		{"delta after the end of its item", start().call("a", "n", "{}").ev("response.function_call_arguments.delta", `"output_index":0,"delta":"x"`).String()},
		{"delta outside of an item", start().ev("response.function_call_arguments.delta", `"output_index":0,"delta":"x"`).String()},
		{"arguments in a message", start().sayOpen("m", "a").ev("response.function_call_arguments.delta", `"output_index":0,"delta":"x"`).String()},
		{"text in a call", added(fc) + "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"x\"}\n\n"},
		{"parts that are not the whole", start().ev("response.output_item.added", `"output_index":0,"item":`+fc).ev("response.function_call_arguments.delta", `"output_index":0,"delta":"{}"`).done(called("a", "n", `{"x":1}`)).String()},
		{"whole told twice otherwise", start().ev("response.output_item.added", `"output_index":0,"item":`+fc).ev("response.function_call_arguments.done", `"output_index":0,"arguments":"{}"`).done(called("a", "n", `{"x":1}`)).String()},
		{"changing name", start().ev("response.output_item.added", `"output_index":0,"item":`+fc).done(called("a", "rm", "")).String()},
		{"changing id", start().ev("response.output_item.added", `"output_index":0,"item":`+fc).done(called("b", "n", "")).String()},
		{"changing type", start().ev("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"fc","role":"assistant","content":[]}`).done(called("a", "n", "")).String()},
		{"end inside a call", completed(start().ev("response.output_item.added", `"output_index":0,"item":`+fc), "")},
		{"end tells other arguments", completed(start().call("a", "n", "{}"), called("a", "n", `{"x":1}`))},
		{"end tells another name", completed(start().call("a", "n", "{}"), called("a", "m", "{}"))},
		{"end tells other input", completed(start().item(`{"type":"custom_tool_call","call_id":"a","name":"n","input":""}`, `{"type":"custom_tool_call","call_id":"a","name":"n","input":""}`), `{"type":"custom_tool_call","call_id":"a","name":"n","input":"rm"}`)},
		{"unknown call", added(`{"type":"browser_call","id":"a"}`)},
		{"unknown call at the end", completed(start(), `{"type":"browser_call","id":"a"}`)},
		{"shell without action", start().item(`{"type":"local_shell_call","call_id":"a"}`, `{"type":"local_shell_call","call_id":"a"}`).String()},
		{"calls in a message", added(`{"type":"message","tool_calls":[{}]}`)},
		{"disguised member", added(`{"type":"function_call","call_id":"a","name":"n","arguments":"","NAME":"rm"}`)},
		{"disguised event", start().ev("response.output_text.done", `"Item":{}`).String()},
		{"named otherwise", "event: response.created\ndata: {\"type\":\"response.completed\"}\n\n"},
		{"no type", "data: {\"delta\":\"x\"}\n\n"},
		{"chat", "data: {\"choices\":[]}\n\n"},
		{"duplicate key", start().String() + "data: {\"type\":\"x\",\"type\":\"y\"}\n\n"},
		{"duplicate key in arguments", start().call("a", "n", `{"x":1,"x":2}`).String()},
		{"invalid UTF-8", "data: {\"type\":\"\xff\"}\n\n"},
		{"negative index", start().ev("response.output_item.added", `"output_index":-1,"item":`+fc).String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := wiretest.Split(t, Adapter{}, []byte(c.stream)); !errors.Is(err, wire.ErrUnreadable) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestReadableOddStreams(t *testing.T) {
	custom := `{"type":"custom_tool_call","id":"ct","call_id":"a","name":"patch","input":"%s"}`
	bare := func(s string) string { // a server that numbers nothing
		var out strings.Builder
		for line := range strings.Lines(s) {
			if strings.HasPrefix(line, "event:") {
				continue
			}
			for _, name := range []string{"sequence_number", "output_index", "content_index"} {
				if i := strings.Index(line, `"`+name+`":`); i >= 0 {
					rest := line[i:]
					line = line[:i] + rest[strings.IndexByte(rest, ',')+1:]
				}
			}
			out.WriteString(line)
		}
		return out.String()
	}
	for _, c := range []struct{ name, stream, kinds, text, calls string }{
		{"items told at once", answering("r").done(thought).done(said("hi")).done(called("a", "n", "{}")).end(1, 0, 1), "start ping lead text call finish", "hi", "n{}"},
		{"nothing but the end", "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[" + said("hi") + "," + called("a", "n", "{}") + "]}}\n\n", "finish", "hi", "n{}"},
		{"a call at the end alone", answering("r").say("m", "hi").ev("response.completed", `"response":{"id":"r","output":[`+called("a", "n", "{}")+`]}`).String(), "start ping text finish", "hi", "n{}"},
		{"end without output", answering("r").say("m", "hi").ev("response.completed", `"response":{"id":"r"}`).String(), "start ping text finish", "hi", ""},
		{"custom", answering("r").ev("response.output_item.added", `"output_index":0,"item":`+fmt.Sprintf(custom, "")).ev("response.custom_tool_call_input.delta", `"output_index":0,"delta":"*** \"B\""`).
			ev("response.custom_tool_call_input.done", `"output_index":0,"input":"*** \"B\""`).done(fmt.Sprintf(custom, `*** \"B\"`)).end(1, 0, 1), "start ping call finish", "", `patch"*** \"B\""`},
		{"local shell", answering("r").item(`{"type":"local_shell_call","id":"l","call_id":"a","status":"in_progress","action":{"type":"exec","command":[]}}`, `{"type":"local_shell_call","id":"l","call_id":"a","status":"completed","action":{"type":"exec","command":["ls"]}}`).end(1, 0, 1), "start ping call finish", "", `local_shell{"type":"exec","command":["ls"]}`},
		{"cut at the token limit", answering("r").ev("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"a","name":"n","arguments":""}`).ev("response.function_call_arguments.delta", `"output_index":0,"delta":"{\"x"`).
			ev("response.incomplete", `"response":{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`).String(), "start ping call finish", "", `n{"x`},
		{"provider's own tools", answering("r").item(`{"type":"web_search_call","id":"w","status":"in_progress"}`, `{"type":"web_search_call","id":"w","status":"completed"}`).say("m", "hi").end(1, 0, 1), "start ping other text finish", "hi", ""},
		{"compaction", answering("r").done(`{"type":"compaction","id":"cmp","encrypted_content":"e"}`).end(1, 0, 1), "start ping other finish", "", ""},
		{"limits told between reasoning and call", answering("r").think("rs", "x").ev("codex.rate_limits", `"plan":"p"`).call("a", "n", "{}").end(1, 0, 1), "start ping lead call finish", "", "n{}"},
		{"refusal", answering("r").ev("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}`).ev("response.refusal.delta", `"output_index":0,"content_index":0,"delta":"no"`).String(), "start ping text", "no", ""},
		{"unnumbered", bare(full), "start ping lead text lead call finish", "Let me look é.", `shell{"cmd":"ls"} read{}`},
		{"[DONE] behind", full + "data: [DONE]\n\n", "start ping lead text lead call finish other", "Let me look é.", `shell{"cmd":"ls"} read{}`},
		{"error", answering("r").String() + "data: {\"type\":\"error\",\"code\":\"x\",\"message\":\"y\"}\n\n", "start ping error", "", ""},
		{"error without a type", "data: {\"error\":{\"message\":\"y\"}}\n\n", "error", "", ""},
		{"failed", answering("r").String() + string(Adapter{}.StreamError("x", "y")), "start ping error", "", ""},
		{"keep-alive", string(Adapter{}.KeepAlive(false)) + answering("r").String() + string(Adapter{}.KeepAlive(true)) + "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":2}\n\n", "ping start ping", "", ""},
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
			if got := strings.Join(calls, " "); got != c.calls || ans.Text != c.text {
				t.Errorf("text %q, calls %s, want %q, %s", ans.Text, got, c.text, c.calls)
			}
			if c.name == "cut at the token limit" && (!ans.Calls[0].Broken || ans.Stop != "max_output_tokens") {
				t.Errorf("%+v", ans)
			}
		})
	}
}

// sendUntilHeld plays the part of package turn.
func sendUntilHeld(c *sdk, s wire.Stream, pieces []wire.Piece) (held []wire.Piece) {
	var lead []wire.Piece
	for _, p := range pieces {
		switch {
		case len(held) > 0 || p.Kind == wire.PieceCall || p.Kind == wire.PieceFinish:
			held, lead = append(append(held, lead...), p), nil
		case p.Kind == wire.PieceLead:
			lead = append(lead, p)
		default:
			for _, p := range append(lead, p) {
				s.Sent(p)
				c.take(p.Raw)
			}
			lead = nil
		}
	}
	return held
}

func TestSecondAnswerCarriesOn(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(full))
	sendUntilHeld(c, s, pieces)
	c.take(s.CloseOpen())
	c.take(s.(wire.Waiter).KeepAlive())
	second := answering("resp_2").think("rs_3", "no").say("msg_2", "It is not so.").think("rs_4", "then").call("call_9", "read", "{}").end(60, 50, 5)
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(second))
	var last []byte
	for _, p := range more {
		last = s.Continue(s2, p)
		c.take(last)
	}
	// rs_2 led to what was kept back and is kept back with it; each reasoning that
	// is there stands before what it led to.
	want := "think:hm | text:Let me look é. | think:no | text:It is not so. | think:then | call:read{} | in=60 out=14 total=74"
	if diff := cmp.Diff(want, c.says()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(last), `"id":"resp_2"`) {
		t.Errorf("the end does not bear the id by which the provider knows it: %.300s", last)
	}
	if s.Finish("late") != nil || s.Note("late") != nil || s.(wire.Waiter).KeepAlive() != nil {
		t.Error("something follows the end")
	}
}

func TestItemsAlreadySentKeepTheirIndices(t *testing.T) {
	c := newSDK(t)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(answering("resp_1").call("a", "n", "{}").call("b", "n", "{}").String()))
	for _, p := range pieces {
		s.Sent(p)
		c.take(p.Raw)
	}
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(answering("resp_2").call("c", "o", "{}").end(1, 0, 1)))
	for _, p := range more {
		c.take(s.Continue(s2, p))
	}
	if diff := cmp.Diff("call:n{} | call:n{} | call:o{} | in=1 out=1 total=2", c.says()); diff != "" {
		t.Error(diff)
	}
}

func TestOpenMessageIsClosed(t *testing.T) {
	c := newSDK(t)
	open := answering("resp_1").sayOpen("msg_1", "half ", "a word")
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(open.String()))
	for _, p := range pieces {
		s.Sent(p)
		c.take(p.Raw)
	}
	c.take(s.CloseOpen())
	if s.CloseOpen() != nil {
		t.Error("closed twice")
	}
	more, s2 := wiretest.Pieces(t, Adapter{}, []byte(answering("resp_2").say("msg_2", "whole").end(1, 0, 1)))
	for _, p := range more {
		c.take(s.Continue(s2, p))
	}
	if diff := cmp.Diff("text:half a word | text:whole | in=1 out=1 total=2", c.says()); diff != "" {
		t.Error(diff)
	}
}

// Half a call that has left is never ended: the client would act on it.
func TestHalfACallStaysHalf(t *testing.T) {
	half := answering("resp_1").ev("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"a","name":"n","arguments":""}`)
	pieces, s := wiretest.Pieces(t, Adapter{}, []byte(half.String()))
	for _, p := range pieces {
		s.Sent(p)
	}
	if out := string(s.Finish("no")); strings.Contains(out, "function_call") || !strings.Contains(out, "response.completed") {
		t.Error(out)
	}
}

func TestEarlyStart(t *testing.T) {
	for _, whole := range []bool{false, true} {
		c := newSDK(t)
		early := Adapter{}.Start("m", "t_1")
		s := Adapter{}.NewStream()
		started, err := s.Feed(early)
		if err != nil {
			t.Fatal(err)
		}
		s.Sent(started[0])
		c.take(early)
		c.take(s.(wire.Waiter).KeepAlive())
		stream := full
		if whole { // all items told in the last event alone
			stream = "event: response.completed\ndata: " + `{"type":"response.completed","sequence_number":0,"response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":50,"output_tokens":9,"total_tokens":59}}}` + "\n\n"
		}
		pieces, up := wiretest.Pieces(t, Adapter{}, []byte(stream))
		for _, p := range pieces {
			c.take(s.Continue(up, p))
		}
		want := `think:hm | text:Let me look é. | think:so | call:shell{"cmd":"ls"} | call:read{} | in=50 out=9 total=59`
		if whole {
			want = "in=50 out=9 total=59"
		}
		if diff := cmp.Diff(want, c.says()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFinishAndNote(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing read", "", "text:note | text:\n\nno | in=0 out=0 total=0"},
		{"after start", answering("resp_1").String(), "text:note | text:\n\nno | in=0 out=0 total=0"},
		{"in a message", answering("resp_1").sayOpen("m", "a").String(), "text:a | text:\n\nnote | text:\n\nno | in=0 out=0 total=0"},
		{"after text", answering("resp_1").say("m", "a").String(), "text:a | text:\n\nnote | text:\n\nno | in=0 out=0 total=0"},
		{"instead of calls", full, "think:hm | text:Let me look é. | text:\n\nnote | text:\n\nno | in=50 out=9 total=59"},
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
		want := "think:hm | text:Let me look é. | text:\n\nnote | think:so | call:shell{\"cmd\":\"ls\"} | call:read{} | in=50 out=9 total=59"
		if diff := cmp.Diff(want, client.says()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("untouched", func(t *testing.T) {
		pieces, s := wiretest.Pieces(t, Adapter{}, []byte(full))
		var out strings.Builder
		for _, p := range pieces {
			s.Sent(p)
			out.Write(p.Raw)
		}
		if out.String() != full {
			t.Error("the bytes changed")
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(answering("r").think("t", "x").call("a", "n", "{", "}").String()), 7)
	f.Add([]byte(answering("r").sayOpen("m", "a").String()), 1)
	f.Add([]byte(answering("r").done(thought).done(called("a", "n", "{}")).end(1, 0, 1)+"data: [DONE]\n\n"), 1)
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
			if p.Kind != wire.PieceFinish && p.Kind != wire.PieceError {
				out = append(out, s.Continue(one, p)...)
			}
		}
		out = append(out, s.Finish("last")...)
		if err1 != nil {
			return
		}
		check := Adapter{}.NewStream()
		if _, err := check.Feed(out); err != nil && strings.Contains(err.Error(), "ended inside a call") {
			return // half a call had left, which is never released
		} else if err != nil || !check.Done() {
			t.Fatalf("what was carried on cannot be read: %v\n%q", err, out)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	parts := make([]string, 500)
	for i := range parts {
		parts[i] = "some words "
	}
	in := []byte(answering("resp_1").say("m", parts...).end(1, 0, 1))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := Adapter{}.NewStream()
		pieces, err := s.Feed(in)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range pieces {
			s.Sent(p)
		}
	}
}
