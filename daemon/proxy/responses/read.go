package responsesapi

import (
	"regexp"

	"gettier.dev/gettierd/daemon/wire"
)

// reasoners are models that reason unless told not to.
var reasoners = regexp.MustCompile(`^(?:openai/)?(?:o[1-9]|gpt-[5-9]|codex)`)

// Read parses a body of /v1/responses. An input that is one string reads as one
// user item whose span and content are that string.
func (Adapter) Read(body []byte) (*wire.Request, error) {
	r := &wire.Request{Format: wire.Responses, Body: body}
	background := wire.Span{}
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, key wire.Span) error {
			at, err := readMember(rd, r, string(name))
			if string(name) == "background" {
				background = at
			}
			r.Members = append(r.Members, wire.Member{Name: string(name), Key: key, Value: at})
			return err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Raw("input") == nil {
		if m, ok := wire.Find(r.Members, "messages"); ok {
			return nil, wire.Fault(body, m.Key.Start, "messages belongs to /v1/chat/completions: this path takes input")
		}
		if !set(r.Raw("previous_response_id")) && !set(r.Raw("prompt")) && !set(r.Raw("conversation")) {
			return nil, wire.Fault(body, 0, "input is missing")
		}
	}
	if string(body[background.Start:background.End]) == "true" && (len(r.Tools) > 0 || set(r.Raw("prompt"))) {
		return nil, wire.Fault(body, background.Start, "background: an answer that is fetched later cannot be gated while tools are offered")
	}
	r.Thinking = r.Thinking || r.Raw("reasoning") == nil && reasoners.MatchString(r.Model)
	return r, nil
}

func readMember(rd *wire.Reader, r *wire.Request, name string) (at wire.Span, err error) {
	switch name {
	case "model":
		r.Model, at, err = rd.String()
		return at, err
	case "input":
		return readInput(rd, r)
	case "tools":
		if rd.Kind() == '[' {
			return rd.Array(func(int) error { return readTool(rd, r) })
		}
	}
	kind := rd.Kind()
	if at, err = rd.Value(); err != nil {
		return at, err
	}
	raw := rd.Raw(at)
	wrong := func(want string) (wire.Span, error) {
		return at, wire.Fault(r.Body, at.Start, name+": "+want+" expected")
	}
	switch name {
	case "stream", "background":
		if kind != 't' && kind != 'f' && kind != 'n' {
			return wrong("a bool")
		}
		if name == "stream" {
			r.Stream = kind == 't'
		}
	case "tools":
		if kind != 'n' {
			return wrong("an array")
		}
	case "functions", "function_call":
		if set(raw) {
			return at, wire.Fault(r.Body, at.Start, name+" belongs to an older API: offer tools of type function")
		}
	case "instructions":
		if t := texts(raw); t != "" {
			r.System = append(r.System, t)
		}
	case "max_output_tokens":
		n, err := wire.Int(raw)
		if err != nil {
			return wrong("a number")
		}
		r.MaxTokens = int(n)
	case "reasoning":
		effort := text(member(raw, "effort"))
		r.Thinking = set(raw) && effort != "none"
	case "text":
		format := member(raw, "format")
		r.OutputFormat = set(format) && text(member(format, "type")) != "text"
	}
	return at, nil
}

// readTool reads an element of tools. A namespace offers the tools in it.
func readTool(rd *wire.Reader, r *wire.Request) error {
	at, err := rd.Value()
	if err != nil {
		return err
	}
	raw := rd.Raw(at)
	if raw[0] != '{' {
		return rd.FaultAt(at.Start, "tools: an object expected")
	}
	f := readFields(raw)
	members := wire.MembersOf(r.Body, at)
	if fn, ok := wire.Find(members, "function"); ok && f.kind == "function" && f.name == "" && r.Body[fn.Value.Start] == '{' {
		return rd.FaultAt(fn.Key.Start, "a tool of this API names itself: {\"type\":\"function\",\"name\":…}, not inside function")
	}
	if inner, ok := wire.Find(members, "tools"); ok && f.kind == "namespace" {
		n := len(r.Tools)
		for _, e := range wire.ElementsOf(r.Body, inner.Value) {
			t := readFields(r.Body[e.Start:e.End])
			t.namespace = f.name
			r.Tools = append(r.Tools, wire.Tool{Name: t.qualified(), Span: e})
		}
		if len(r.Tools) > n {
			return nil
		}
	}
	name := f.name
	if name == "" {
		name = f.kind // web_search, local_shell, …
	}
	r.Tools = append(r.Tools, wire.Tool{Name: name, Span: at})
	return nil
}

func readInput(rd *wire.Reader, r *wire.Request) (wire.Span, error) {
	switch rd.Kind() {
	case '"':
		t, at, err := rd.String()
		r.Items = append(r.Items, wire.Item{Role: "user", Type: "message", Span: at, Content: at, Plain: true, Parts: []wire.Part{{Kind: wire.Text, Text: t}}})
		return at, err
	case '[', 0:
		return rd.Array(func(int) error {
			it, err := readItem(rd)
			r.Items = append(r.Items, it)
			return err
		})
	}
	return wire.Span{}, rd.Wrong("a string or an array of items")
}

func readItem(rd *wire.Reader) (wire.Item, error) {
	var it wire.Item
	var f fields
	var parts []wire.Part
	var err error
	it.Span, err = rd.Object(func(name []byte, key wire.Span) error {
		switch string(name) {
		case "content":
			return readContent(rd, &it, &parts)
		case "tool_calls", "function_call", "tool_call_id":
			return rd.FaultAt(key.Start, string(name)+" belongs to /v1/chat/completions: calls and their outputs are items of their own here")
		}
		kind := rd.Kind()
		at, err := rd.Value()
		if err != nil {
			return err
		}
		switch string(name) {
		case "type", "role", "call_id":
			if kind != '"' && kind != 'n' {
				return rd.FaultAt(at.Start, string(name)+": a string expected")
			}
		}
		f.take(string(name), rd.Raw(at))
		return nil
	})
	if err != nil {
		return it, err
	}
	it.Type = f.kind
	if it.Type == "" {
		switch {
		case f.role != "":
			it.Type = "message"
		case f.id != "":
			it.Type = "item_reference"
		default:
			return it, rd.FaultAt(it.Span.Start, "an item of input has neither a type nor a role")
		}
	}
	return assemble(rd, it, &f, parts)
}

// assemble makes the parts of an item whose members are known.
func assemble(rd *wire.Reader, it wire.Item, f *fields, parts []wire.Part) (wire.Item, error) {
	one := func(role string, p wire.Part) (wire.Item, error) {
		p.Span = it.Span
		it.Role, it.Parts, it.Content, it.Plain = role, []wire.Part{p}, wire.Span{}, false
		return it, nil
	}
	switch c := classOf(it.Type); c {
	case classMessage:
		switch f.role {
		case "":
			return it, rd.FaultAt(it.Span.Start, "a message has no role")
		case "tool", "function":
			return it, rd.FaultAt(it.Span.Start, "a message of role "+f.role+" belongs to /v1/chat/completions: send a function_call_output")
		}
		it.Role, it.Parts = f.role, parts
		return it, nil
	case classCall:
		p := wire.Part{Kind: wire.ToolCall, CallID: f.answers()}
		p.Name, p.Args = f.call()
		return one("assistant", p)
	case classOutput:
		return one("tool", wire.Part{Kind: wire.ToolResult, CallID: f.answers(), Text: texts(f.out)})
	case classReasoning:
		t := texts(f.summary)
		for _, p := range parts { // the reasoning itself, from open models
			if t != "" && p.Text != "" {
				t += "\n"
			}
			t += p.Text
		}
		return one("assistant", wire.Part{Kind: wire.Thinking, Text: t})
	case classServer:
		return one("assistant", wire.Part{Kind: wire.Other})
	}
	return one("other", wire.Part{Kind: wire.Other})
}

func readContent(rd *wire.Reader, it *wire.Item, parts *[]wire.Part) (err error) {
	switch rd.Kind() {
	case '"':
		var s string
		s, it.Content, err = rd.String()
		it.Plain = true
		*parts = []wire.Part{{Kind: wire.Text, Text: s}}
		return err
	case '[':
		it.Content, err = rd.Array(func(int) error {
			p, err := readPart(rd)
			*parts = append(*parts, p)
			return err
		})
		return err
	case 'n':
		it.Content, err = rd.Value()
		return err
	}
	return rd.Wrong("a string or an array of parts")
}

func readPart(rd *wire.Reader) (wire.Part, error) {
	kind, words := "", wire.Span{}
	at, err := rd.Object(func(name []byte, _ wire.Span) (err error) {
		switch string(name) {
		case "type":
			kind, _, err = rd.String()
			return err
		case "text", "refusal":
			words, err = rd.Value()
			return err
		}
		_, err = rd.Value()
		return err
	})
	p := wire.Part{Kind: wire.Other, Span: at}
	if err != nil {
		return p, err
	}
	switch kind {
	case "":
		return p, rd.FaultAt(at.Start, "a content part has no type")
	case "input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text":
		p.Kind, p.Text = wire.Text, text(rd.Raw(words))
	case "input_image", "input_audio", "input_file", "computer_screenshot":
		p.Kind = wire.Media
	}
	return p, nil
}
