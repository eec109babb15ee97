package anthropicapi

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// Read parses a body of /v1/messages or count_tokens.
func (Adapter) Read(body []byte) (*wire.Request, error) {
	r := &wire.Request{Format: wire.Messages, Body: body}
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
	case "system":
		if rd.Kind() != '[' {
			var s string
			if s, at, err = rd.String(); s != "" {
				r.System = []string{s}
			}
			return at, err
		}
		return rd.Array(func(int) error {
			p, err := readPart(rd)
			if p.Kind == wire.Text {
				r.System = append(r.System, p.Text)
			}
			return err
		})
	case "tools":
		if rd.Kind() != '[' {
			break
		}
		return rd.Array(func(int) error {
			t := wire.Tool{}
			var err error
			t.Span, err = rd.Object(func(name []byte, _ wire.Span) (err error) {
				if string(name) == "name" {
					t.Name, _, err = rd.String()
					return err
				}
				_, err = rd.Value()
				return err
			})
			r.Tools = append(r.Tools, t)
			return err
		})
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
	case "tools":
		if kind != 'n' {
			return wrong("an array")
		}
	case "max_tokens":
		n, err := wire.Int(raw)
		if err != nil {
			return wrong("a number")
		}
		r.MaxTokens = int(n)
	case "thinking":
		t, ok := wire.Find(wire.MembersOf(raw, whole(raw)), "type")
		r.Thinking = ok && string(raw[t.Value.Start:t.Value.End]) != `"disabled"`
	case "output_config":
		f, ok := wire.Find(wire.MembersOf(raw, whole(raw)), "format")
		r.OutputFormat = r.OutputFormat || ok && raw[f.Value.Start] != 'n'
	case "output_format":
		r.OutputFormat = r.OutputFormat || kind != 'n'
	}
	return at, nil
}

func whole(raw []byte) wire.Span { return wire.Span{Start: 0, End: len(raw)} }

func readItem(rd *wire.Reader) (wire.Item, error) {
	it := wire.Item{}
	hasRole := false
	var err error
	it.Span, err = rd.Object(func(name []byte, _ wire.Span) (err error) {
		switch string(name) {
		case "role":
			hasRole = true
			if rd.Kind() != '"' {
				return rd.Wrong("a role")
			}
			it.Role, _, err = rd.String()
			return err
		case "content":
			switch rd.Kind() {
			case '"':
				var text string
				text, it.Content, err = rd.String()
				it.Plain = true
				it.Parts = []wire.Part{{Kind: wire.Text, Text: text}}
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
			return rd.Wrong("a string or an array of blocks")
		}
		_, err = rd.Value()
		return err
	})
	if err == nil && !hasRole {
		return it, rd.FaultAt(it.Span.Start, "an entry of messages has no role")
	}
	return it, err
}

// fields are the members of a block that matter here, by place.
type fields struct {
	kind                                                  string
	text, thinking, id, name, input, useID, content, isEr wire.Span
}

func readPart(rd *wire.Reader) (wire.Part, error) {
	var f fields
	at, err := rd.Object(func(name []byte, _ wire.Span) (err error) {
		var to *wire.Span
		switch string(name) {
		case "type":
			f.kind, _, err = rd.String()
			return err
		case "text":
			to = &f.text
		case "thinking":
			to = &f.thinking
		case "id":
			to = &f.id
		case "name":
			to = &f.name
		case "input":
			to = &f.input
		case "tool_use_id":
			to = &f.useID
		case "content":
			to = &f.content
		case "is_error":
			to = &f.isEr
		default:
			_, err = rd.Value()
			return err
		}
		*to, err = rd.Value()
		return err
	})
	p := wire.Part{Kind: wire.Other, Span: at}
	if err != nil {
		return p, err
	}
	if f.kind == "" {
		return p, rd.FaultAt(at.Start, "a block has no type")
	}
	switch f.kind {
	case "text":
		p.Kind, p.Text = wire.Text, str(rd, f.text)
	case "tool_use":
		p.Kind, p.CallID, p.Name = wire.ToolCall, str(rd, f.id), str(rd, f.name)
		p.Args = rd.Raw(f.input)
	case "tool_result":
		p.Kind, p.CallID = wire.ToolResult, str(rd, f.useID)
		p.IsError = string(rd.Raw(f.isEr)) == "true"
		p.Text = resultText(rd, f.content)
	case "thinking":
		p.Kind, p.Text = wire.Thinking, str(rd, f.thinking)
	case "redacted_thinking":
		p.Kind = wire.Thinking
	case "image", "document", "container_upload":
		p.Kind = wire.Media
	default: // what the provider ran itself, and what is not known
		p.Name, p.CallID = str(rd, f.name), str(rd, f.id)
	}
	return p, nil
}

// str decodes a string that may be absent or of another kind.
func str(rd *wire.Reader, at wire.Span) string {
	raw := rd.Raw(at)
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(wire.Unquote(raw))
}

// resultText joins the text blocks of a tool result by newlines.
func resultText(rd *wire.Reader, at wire.Span) string {
	raw := rd.Raw(at)
	if len(raw) == 0 || raw[0] != '[' {
		return str(rd, at)
	}
	var texts []string
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		m := wire.MembersOf(raw, e)
		t, _ := wire.Find(m, "type")
		if string(raw[t.Value.Start:t.Value.End]) != `"text"` {
			continue
		}
		if v, ok := wire.Find(m, "text"); ok && raw[v.Value.Start] == '"' {
			texts = append(texts, string(wire.Unquote(raw[v.Value.Start:v.Value.End])))
		}
	}
	return strings.Join(texts, "\n")
}
