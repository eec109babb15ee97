package openaiapi

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// Read parses a body of /v1/chat/completions.
func (Adapter) Read(body []byte) (*wire.Request, error) {
	r := &wire.Request{Format: wire.Chat, Body: body}
	seen := false
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, key wire.Span) error {
			at, err := readMember(rd, r, string(name))
			seen = seen || string(name) == "messages"
			r.Members = append(r.Members, wire.Member{Name: string(name), Key: key, Value: at})
			return err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if !seen {
		return nil, wire.Fault(body, 0, "messages is missing")
	}
	return r, nil
}

func readMember(rd *wire.Reader, r *wire.Request, name string) (at wire.Span, err error) {
	switch name {
	case "model":
		r.Model, at, err = rd.String()
		return at, err
	case "messages":
		return rd.Array(func(int) error {
			it, err := readItem(rd)
			r.Items = append(r.Items, it)
			return err
		})
	case "tools", "functions":
		if rd.Kind() == '[' {
			return rd.Array(func(int) error {
				t, err := readTool(rd)
				r.Tools = append(r.Tools, t)
				return err
			})
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
	case "stream":
		if kind != 't' && kind != 'f' && kind != 'n' {
			return wrong("a bool")
		}
		r.Stream = kind == 't'
	case "tools", "functions":
		if kind != 'n' {
			return wrong("an array")
		}
	case "max_tokens", "max_completion_tokens":
		n, err := wire.Int(raw)
		if err != nil {
			return wrong("a number")
		}
		if name == "max_completion_tokens" || r.MaxTokens == 0 {
			r.MaxTokens = int(n)
		}
	case "reasoning_effort":
		r.Thinking = r.Thinking || kind == '"' && text(raw) != "none"
	case "reasoning": // of gateways: {"effort": …} or {"enabled": …}
		r.Thinking = r.Thinking || set(raw) && text(member(raw, "effort")) != "none" && string(member(raw, "enabled")) != "false"
	case "response_format":
		r.OutputFormat = set(raw) && text(member(raw, "type")) != "text"
	}
	return at, nil
}

// readTool reads a function, a custom tool, or a legacy function.
func readTool(rd *wire.Reader) (wire.Tool, error) {
	t := wire.Tool{}
	var err error
	t.Span, err = rd.Object(func(name []byte, _ wire.Span) error {
		switch string(name) {
		case "name":
			if t.Name != "" {
				break
			}
			var err error
			t.Name, _, err = rd.String()
			return err
		case "function", "custom":
			if rd.Kind() != '{' {
				break
			}
			_, err := rd.Object(func(name []byte, _ wire.Span) (err error) {
				if string(name) == "name" {
					t.Name, _, err = rd.String()
					return err
				}
				_, err = rd.Value()
				return err
			})
			return err
		}
		_, err := rd.Value()
		return err
	})
	return t, err
}

// item collects the members of a message before its role is known.
type item struct {
	wire.Item
	hasRole           bool
	thought, name, id wire.Span
	calls             []wire.Part
	legacy            wire.Span
}

func readItem(rd *wire.Reader) (wire.Item, error) {
	var it item
	var err error
	it.Span, err = rd.Object(func(name []byte, _ wire.Span) (err error) {
		switch string(name) {
		case "role":
			it.hasRole = true
			if rd.Kind() != '"' {
				return rd.Wrong("a role")
			}
			it.Role, _, err = rd.String()
			return err
		case "content":
			return readContent(rd, &it.Item)
		case "tool_calls":
			if rd.Kind() == '[' {
				_, err = rd.Array(func(int) error {
					p, err := readCall(rd)
					it.calls = append(it.calls, p)
					return err
				})
				return err
			}
		case "function_call":
			it.legacy, err = rd.Value()
			return err
		case "reasoning_content", "reasoning":
			it.thought, err = rd.Value()
			return err
		case "tool_call_id":
			it.id, err = rd.Value()
			return err
		case "name":
			it.name, err = rd.Value()
			return err
		}
		_, err = rd.Value()
		return err
	})
	if err != nil {
		return it.Item, err
	}
	if !it.hasRole {
		return it.Item, rd.FaultAt(it.Span.Start, "an entry of messages has no role")
	}
	return it.assemble(rd), nil
}

// assemble orders the parts as the API does: reasoning, content, calls; a tool's
// message is one result.
func (it *item) assemble(rd *wire.Reader) wire.Item {
	out := it.Item
	if out.Role == "tool" || out.Role == "function" {
		var texts []string
		for _, p := range out.Parts {
			if p.Kind == wire.Text {
				texts = append(texts, p.Text)
			}
		}
		id := text(rd.Raw(it.id))
		if out.Role == "function" {
			id = text(rd.Raw(it.name))
		}
		out.Parts = []wire.Part{{Kind: wire.ToolResult, CallID: id, Text: strings.Join(texts, "\n"), Span: out.Span}}
		return out
	}
	if t := text(rd.Raw(it.thought)); t != "" {
		out.Parts = append([]wire.Part{{Kind: wire.Thinking, Text: t, Span: it.thought}}, out.Parts...)
	}
	if raw := rd.Raw(it.legacy); set(raw) {
		name := text(member(raw, "name"))
		out.Parts = append(out.Parts, wire.Part{Kind: wire.ToolCall, CallID: name, Name: name,
			Args: []byte(text(member(raw, "arguments"))), Span: it.legacy})
	}
	out.Parts = append(out.Parts, it.calls...)
	return out
}

func readContent(rd *wire.Reader, it *wire.Item) (err error) {
	switch rd.Kind() {
	case '"':
		var s string
		s, it.Content, err = rd.String()
		it.Plain = true
		it.Parts = []wire.Part{{Kind: wire.Text, Text: s}}
		return err
	case '[':
		it.Content, err = rd.Array(func(int) error {
			p, err := readPart(rd)
			it.Parts = append(it.Parts, p)
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
	case "text", "refusal":
		p.Kind, p.Text = wire.Text, text(rd.Raw(words))
	case "image_url", "input_audio", "file":
		p.Kind = wire.Media
	}
	return p, nil
}

// readCall reads an element of tool_calls: a function, or a custom tool, whose
// input is free text.
func readCall(rd *wire.Reader) (wire.Part, error) {
	var id, function, custom wire.Span
	at, err := rd.Object(func(name []byte, _ wire.Span) (err error) {
		switch string(name) {
		case "id":
			id, err = rd.Value()
		case "function":
			function, err = rd.Value()
		case "custom":
			custom, err = rd.Value()
		default:
			_, err = rd.Value()
		}
		return err
	})
	p := wire.Part{Kind: wire.ToolCall, Span: at}
	if err != nil {
		return p, err
	}
	p.CallID = text(rd.Raw(id))
	if f := rd.Raw(function); set(f) {
		p.Name, p.Args = text(member(f, "name")), []byte(text(member(f, "arguments")))
	} else if c := rd.Raw(custom); set(c) {
		p.Name, p.Args = text(member(c, "name")), []byte(text(member(c, "input")))
	}
	return p, nil
}
