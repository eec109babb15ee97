package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tongue is a wire format as a client writes it and a provider answers it.
type tongue struct {
	name string
	path string
	// body is a request with these elements of messages. Odd spellings are on
	// purpose: nothing of them may change on the way.
	body func(stream, tools bool, items ...string) string
	user func(text string) string
	// called is the assistant's entry with a call, result the entry that answers it.
	called func(id, name, args string) string
	result func(id, text string) string
	text   func(stream bool, text string) string
	call   func(stream bool, text, id, name, args string) string
	// says takes the visible text out of an answer.
	says func(t testing.TB, stream bool, answer string) string
}

var tongues = []tongue{chatTongue, messagesTongue}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

var chatTongue = tongue{
	name: "chat",
	path: "/v1/chat/completions",
	body: func(stream, tools bool, items ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"model":"gpt-x", "temperature":0.70,"messages":[%s],"seed":12345678901234567890`, strings.Join(items, ","))
		if tools {
			b.WriteString(`,"tools":[{"type":"function","function":{"name":"shell","description":"run <it> & see","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}],"tool_choice":"auto"`)
		}
		fmt.Fprintf(&b, `,"stream":%t,"x_unknown":{"n":1.0e+2,"é":"é"} }`, stream)
		return b.String()
	},
	user: func(text string) string { return `{"role":"user","content":` + quoted(text) + `}` },
	called: func(id, name, args string) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, name, quoted(args))
	},
	result: func(id, text string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, quoted(text))
	},
	text: func(stream bool, text string) string {
		if !stream {
			return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, quoted(text))
		}
		return chatChunks(text, "", "", "")
	},
	call: func(stream bool, text, id, name, args string) string {
		if !stream {
			return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":%s,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, quoted(text), id, name, quoted(args))
		}
		return chatChunks(text, id, name, args)
	},
	says: func(t testing.TB, stream bool, answer string) string {
		t.Helper()
		type choice struct {
			Message, Delta struct{ Content string }
		}
		var b strings.Builder
		read := func(data string) {
			var v struct{ Choices []choice }
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			for _, c := range v.Choices {
				b.WriteString(c.Message.Content + c.Delta.Content)
			}
		}
		if !stream {
			read(answer)
			return b.String()
		}
		for _, d := range sseData(answer) {
			if d != "[DONE]" {
				read(d)
			}
		}
		return b.String()
	},
}

func chatChunks(text, id, name, args string) string {
	var b strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	for _, w := range pieces(text) {
		chunk(`{"content":`+quoted(w)+`}`, "null")
	}
	finish := `"stop"`
	if id != "" {
		finish = `"tool_calls"`
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, id, name), "null")
		for _, w := range pieces(args) {
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+quoted(w)+`}}]}`, "null")
		}
	}
	chunk("{}", finish)
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// pieces cuts text as tokens come.
func pieces(s string) []string {
	var out []string
	for len(s) > 7 {
		n := 7
		for n < len(s) && s[n]&0xC0 == 0x80 {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

var messagesTongue = tongue{
	name: "messages",
	path: "/v1/messages",
	body: func(stream, tools bool, items ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"model":"claude-x","max_tokens":4096,"system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}], "messages":[%s]`, strings.Join(items, ","))
		if tools {
			b.WriteString(`,"tools":[{"name":"Bash","description":"run <it> & see","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}]`)
		}
		fmt.Fprintf(&b, `,"stream":%t,"metadata":{"user_id":"u"},"x_unknown":{"n":1.0e+2,"big":12345678901234567890} }`, stream)
		return b.String()
	},
	user: func(text string) string {
		return `{"role":"user","content":[{"type":"text","text":` + quoted(text) + `}]}`
	},
	called: func(id, name, args string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, name, args)
	},
	result: func(id, text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, quoted(text))
	},
	text: func(stream bool, text string) string {
		if !stream {
			return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, quoted(text))
		}
		return messageEvents(text, "", "", "")
	},
	call: func(stream bool, text, id, name, args string) string {
		if !stream {
			said := ""
			if text != "" {
				said = `{"type":"text","text":` + quoted(text) + `},`
			}
			return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[%s{"type":"tool_use","id":%q,"name":%q,"input":%s}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, said, id, name, args)
		}
		return messageEvents(text, id, name, args)
	},
	says: func(t testing.TB, stream bool, answer string) string {
		t.Helper()
		type block struct{ Type, Text string }
		var b strings.Builder
		read := func(data string) {
			var v struct {
				Content      []block
				ContentBlock block `json:"content_block"`
				Delta        block
			}
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			for _, c := range v.Content {
				b.WriteString(c.Text)
			}
			b.WriteString(v.ContentBlock.Text + v.Delta.Text)
		}
		if !stream {
			read(answer)
			return b.String()
		}
		for _, d := range sseData(answer) {
			read(d)
		}
		return b.String()
	},
}

func messageEvents(text, id, name, args string) string {
	var b strings.Builder
	ev := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	ev("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
	i := 0
	if text != "" || id == "" {
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		ev("ping", `{"type":"ping"}`)
		for _, w := range pieces(text) {
			ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quoted(w)+`}}`)
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
		i++
	}
	stop := "end_turn"
	if id != "" {
		stop = "tool_use"
		ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i, id, name))
		for _, w := range pieces(args) {
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i, quoted(w)))
		}
		ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	ev("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}}`, stop))
	ev("message_stop", `{"type":"message_stop"}`)
	return b.String()
}

// sseData are the data lines of a stream.
func sseData(stream string) []string {
	var out []string
	for l := range strings.Lines(stream) {
		if d, ok := strings.CutPrefix(strings.TrimRight(l, "\r\n"), "data: "); ok {
			out = append(out, d)
		}
	}
	return out
}

// parts is a body taken apart at its messages: what stands before and after the
// list, and its elements as sent.
type parts struct {
	before, after string
	items         []string
}

func apart(t testing.TB, body string) parts {
	t.Helper()
	var v struct {
		Messages json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	at := strings.Index(body, string(v.Messages))
	if len(v.Messages) == 0 || at < 0 {
		t.Fatalf("no messages in %.300s", body)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(v.Messages, &raw); err != nil {
		t.Fatal(err)
	}
	p := parts{before: body[:at], after: body[at+len(v.Messages):]}
	for _, r := range raw {
		p.items = append(p.items, string(r))
	}
	return p
}
