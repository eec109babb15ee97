package turn

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
	"pgregory.net/rapid"
)

// several is an answer that thinks, speaks and calls, in every format.
func several(f wire.Format, stream bool, commands ...string) (int, string, string) {
	args := make([]string, len(commands))
	for i, c := range commands {
		args[i] = fmt.Sprintf(`{"command":%q}`, c)
	}
	if !stream {
		var parts []string
		for i, a := range args {
			switch id := fmt.Sprint("k", i); f {
			case wire.Chat:
				parts = append(parts, fmt.Sprintf(`{"id":%q, "type":"function","extra":{"sig":"s%d"},"function":{"name":"shell","arguments":%q}}`, id, i, a))
			case wire.Messages:
				parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":%q, "name":"shell","input":%s}`, id, a))
			case wire.Responses:
				parts = append(parts, respItemThought("rs_"+id), respItemCall(id, "shell", a))
			}
		}
		list := strings.Join(parts, ",")
		return 200, "application/json", map[wire.Format]string{
			wire.Chat:      `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I look.","tool_calls":[` + list + `]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`,
			wire.Messages:  `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I look."},` + list + `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`,
			wire.Responses: respWhole(append([]string{respItemText("msg_1", "I look.")}, parts...)...),
		}[f]
	}
	var b strings.Builder
	n := 0
	ev := func(name, format string, args ...any) {
		data := fmt.Sprintf(format, args...)
		switch f {
		case wire.Chat:
			fmt.Fprintf(&b, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,%s}]}\n\n", data)
		case wire.Messages:
			fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, data)
		case wire.Responses:
			fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, n, data)
			n++
		}
	}
	switch f {
	case wire.Chat:
		ev("", `"delta":{"role":"assistant","content":"I look."},"finish_reason":null`)
		for i := range args {
			ev("", `"delta":{"tool_calls":[{"index":%d,"id":"k%d","type":"function","function":{"name":"shell","arguments":""}}]},"finish_reason":null`, i, i)
		}
		var both []string // parts of all calls in one chunk
		for i, a := range args {
			both = append(both, fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, i, a))
		}
		ev("", `"delta":{"tool_calls":[%s]},"finish_reason":null`, strings.Join(both, ","))
		ev("", `"delta":{},"finish_reason":"tool_calls"`)
		b.WriteString("data: [DONE]\n\n")
	case wire.Messages:
		ev("message_start", `"message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`)
		ev("content_block_start", `"index":0,"content_block":{"type":"text","text":"I look."}`)
		ev("content_block_stop", `"index":0`)
		for i, a := range args {
			ev("content_block_start", `"index":%d,"content_block":{"type":"tool_use","id":"k%d","name":"shell","input":{}}`, i+1, i)
			ev("content_block_delta", `"index":%d,"delta":{"type":"input_json_delta","partial_json":%q}`, i+1, a)
			ev("content_block_stop", `"index":%d`, i+1)
		}
		ev("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}`)
		ev("message_stop", `"x":1`)
	case wire.Responses:
		ev("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}`)
		var items []string
		add := func(item string) {
			ev("response.output_item.added", `"output_index":%d,"item":%s`, len(items), item)
			ev("response.output_item.done", `"output_index":%d,"item":%s`, len(items), item)
			items = append(items, item)
		}
		add(respItemText("msg_1", "I look."))
		for i, a := range args {
			add(respItemThought(fmt.Sprint("rs_k", i)))
			add(respItemCall(fmt.Sprint("k", i), "shell", a))
		}
		ev("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[%s],%s}`, strings.Join(items, ","), respUsage)
	}
	return 200, "text/event-stream", b.String()
}

// TestOneOfSeveralCalls: of an answer that asks for several things what is refused
// stays behind, with the thinking that led to it, and what is allowed leaves as it
// was; the text says which. Where the upstream keeps the answer it would miss the
// result, and then none leaves.
func TestOneOfSeveralCalls(t *testing.T) {
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			for refused := range 4 {
				commands := []string{"ls", "cat a", "wc b"}
				var want []string
				for i := range commands {
					if i == refused {
						commands[i] = "gettier tell x"
					} else {
						want = append(want, fmt.Sprint("k", i))
					}
				}
				r := newRig(t)
				r.answer = func(int, []byte) (int, string, string) { return several(f, stream, commands...) }
				_, _, plain := several(f, stream, commands...)
				out, err := r.request(f, ask(f, stream, true, user("go")))
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%s stream=%v refused=%d", f, stream, refused)
				got := out.buf.String()
				ans := readClient(t, f, stream, out.buf.Bytes())
				var ids []string
				for _, c := range ans.Calls {
					ids = append(ids, c.ID)
				}
				if strings.Join(ids, " ") != strings.Join(want, " ") || !strings.HasPrefix(ans.Text, "I look.") {
					t.Errorf("%s: calls %v, %q\n%s", name, ids, ans.Text, got)
				}
				switch {
				case refused == 3:
					if got != plain {
						t.Errorf("%s: nothing was refused, and it is another answer\n%s", name, got)
					}
					continue
				case !strings.Contains(ans.Text, "gettier stopped this: gettier tell x") || !strings.Contains(ans.Text, "The other calls of this answer go on."),
					strings.Contains(got, fmt.Sprintf(`"k%d"`, refused)), strings.Contains(got, fmt.Sprintf(`rs_k%d"`, refused)):
					t.Errorf("%s: %s", name, got)
				}
				for i, id := range want { // as it was, and clients find it where they look
					switch {
					case f == wire.Responses && !strings.Contains(got, `"rs_`+id):
						t.Errorf("%s: the thinking before %s is gone", name, id)
					case f == wire.Messages && !stream && !strings.Contains(got, fmt.Sprintf(`{"type":"tool_use","id":%q, "name":"shell"`, id)):
						t.Errorf("%s: %s is not as it was\n%s", name, id, got)
					case f == wire.Chat && stream && !strings.Contains(got, fmt.Sprintf(`{"index":%d,"id":%q`, i, id)):
						t.Errorf("%s: %s is not at place %d\n%s", name, id, i, got)
					case f == wire.Messages && stream && !strings.Contains(got, fmt.Sprintf(`"index":%d,"content_block":{"type":"tool_use","id":%q`, i+2, id)):
						t.Errorf("%s: %s is not at place %d\n%s", name, id, i+2, got)
					}
				}
				states := map[string]int{}
				es, err := r.led.TurnEntries(out.headers.Turn)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range es {
					for _, s := range []string{"WITHHELD", "DENY", "ALLOW"} {
						if e.Kind == string(lemma.KActionDecided) && strings.Contains(string(e.Body), `"state":"`+s) {
							states[s]++
						}
					}
				}
				if states["DENY"] != 1 || states["ALLOW"] != 2 || states["WITHHELD"] != 0 {
					t.Errorf("%s: %v", name, states)
				}
			}
		}
	}
}

// TestSomeOfMany is TestOneOfSeveralCalls for any number of calls, any of them
// refused: what the client reads is what the model asked for, less those.
func TestSomeOfMany(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(rt, "format")
		stream := rapid.Bool().Draw(rt, "stream")
		refused := rapid.SliceOfN(rapid.Bool(), 1, 7).Draw(rt, "refused")
		commands := make([]string, len(refused))
		var want []string
		for i, no := range refused {
			commands[i] = fmt.Sprintf("cat file%d", i)
			if no {
				commands[i] = fmt.Sprintf("gettier tell x%d", i)
			} else {
				want = append(want, fmt.Sprintf(`k%d {"command":"cat file%d"}`, i, i))
			}
		}
		r := newRig(t)
		r.answer = func(int, []byte) (int, string, string) { return several(f, stream, commands...) }
		out, err := r.request(f, ask(f, stream, true, user("go")))
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, c := range readClient(t, f, stream, out.buf.Bytes()).Calls {
			got = append(got, c.ID+" "+string(c.Args))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			rt.Fatalf("%v, not %v\n%s", got, want, out.buf.String())
		}
		for i, no := range refused {
			if no && strings.Contains(out.buf.String(), fmt.Sprintf(`k%d"`, i)) {
				rt.Fatalf("k%d has left\n%s", i, out.buf.String())
			}
		}
	})
}

// TestOneOfSeveralKeptUpstream: the next request would name an answer of which a
// call has no result.
func TestOneOfSeveralKeptUpstream(t *testing.T) {
	for _, stream := range []bool{false, true} {
		r := newRig(t)
		r.answer = func(int, []byte) (int, string, string) {
			return several(wire.Responses, stream, "ls", "gettier tell x")
		}
		out, err := r.request(wire.Responses, strings.Replace(respRequest(stream, true, user("go")), `"store":false,`, "", 1))
		if err != nil {
			t.Fatal(err)
		}
		if ans := readClient(t, wire.Responses, stream, out.buf.Bytes()); len(ans.Calls) != 0 || !strings.Contains(ans.Text, "None of the 2 calls") {
			t.Errorf("%+v", ans)
		}
	}
}

// TestRefusedBesideAQuestion: one is refused, one waits for a person, one only
// looks: the question says what was refused, and its answer lets the two out.
func TestRefusedBesideAQuestion(t *testing.T) {
	for _, f := range formats {
		r := acting(t, f, true, always(""))
		r.set.ClientWait = time.Minute
		r.Attended = func() bool { return true }
		r.answer = func(_ int, body []byte) (int, string, string) {
			if isDeclare(body) {
				return declareAnswer(f, body, declared25)
			}
			return several(f, true, "ls", "gettier tell x", "rm -rf data")
		}
		done := make(chan *sink, 1) // its one result
		body := ask(f, true, true, user("clean up the data"))
		go func() {
			out := &sink{}
			if err := r.Serve(context.Background(), r.build(f, body), out); err != nil {
				t.Error(err)
			}
			done <- out
		}()
		h := r.openHold()
		if len(h.Items) != 1 || h.Items[0].Action == nil || h.Items[0].Action.Text != "rm -rf data" {
			t.Fatalf("%s: hold %+v", f, h)
		}
		if err := r.sayTo(h, lemma.AnswerApprove, lemma.ScopeOnce, "", person); err != nil {
			t.Fatal(err)
		}
		out := <-done
		ans := readClient(t, f, true, out.buf.Bytes())
		if len(ans.Calls) != 2 || ans.Calls[0].ID != "k0" || ans.Calls[1].ID != "k2" || !strings.Contains(ans.Text, "gettier stopped this: gettier tell x") {
			t.Errorf("%s: %+v", f, ans)
		}
	}
}
