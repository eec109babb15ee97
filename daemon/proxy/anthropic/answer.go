package anthropicapi

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// ReadAnswer reads a complete message.
func (Adapter) ReadAnswer(body []byte) (*wire.Answer, error) {
	a := &wire.Answer{}
	var texts []string
	kind, content := "", false
	ids := map[string]bool{}
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, _ wire.Span) (err error) {
			switch string(name) {
			case "type":
				kind, _, err = rd.String()
			case "stop_reason":
				a.Stop, _, err = rd.String()
			case "usage":
				var at wire.Span
				if at, err = rd.Value(); err == nil {
					readUsage(&a.Usage, rd.Raw(at))
				}
			case "content":
				content = true
				_, err = rd.Array(func(i int) error {
					p, err := readPart(rd)
					if err != nil {
						return err
					}
					b := rd.Raw(p.Span)
					if name := wire.DisguisedIn(wire.MembersOf(b, whole(b))); name != "" {
						return wire.Unreadablef("a member %.40q in a block", name)
					}
					switch kind := blockKind(b); {
					case p.Kind == wire.Text:
						texts = append(texts, p.Text)
					case p.Kind == wire.ToolCall:
						c := wire.Call{Index: i, ID: p.CallID, Name: p.Name, Args: p.Args}
						if err := newCall(&c, ids); err != nil {
							return err
						}
						if err := c.Complete(); err != nil {
							return err
						}
						a.Calls = append(a.Calls, c)
					case callLike(kind, b):
						return wire.Unreadablef("a block of unknown type %.40q that looks like a call", kind)
					}
					return nil
				})
			default:
				if wire.Disguised(string(name)) {
					return wire.Unreadablef("a member %.40q", name)
				}
				_, err = rd.Value()
			}
			return err
		})
		return err
	})
	if err != nil {
		return nil, wire.Unreadable(err)
	}
	if kind == "error" {
		return nil, wire.Unreadablef("an error came as an answer: %.300s", body)
	}
	if !content {
		return nil, wire.Unreadablef("the answer has no content")
	}
	a.Text = strings.Join(texts, "\n")
	return a, nil
}

// newCall checks what every call must have.
func newCall(c *wire.Call, ids map[string]bool) error {
	switch {
	case c.ID == "" || c.Name == "":
		return wire.Unreadablef("a tool call without id or name")
	case ids[c.ID]:
		return wire.Unreadablef("a repeated tool call id %.80q", c.ID)
	}
	ids[c.ID] = true
	return nil
}

func blockKind(block []byte) string {
	t, _ := wire.Find(wire.MembersOf(block, whole(block)), "type")
	raw := block[t.Value.Start:t.Value.End]
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(wire.Unquote(raw))
}

// callLike reports a block that an agent might carry out and that we do not know.
// What the provider runs itself is known: it has happened already.
func callLike(kind string, block []byte) bool {
	switch kind {
	case "server_tool_use", "mcp_tool_use":
		return false
	}
	if k := strings.ToLower(kind); strings.HasSuffix(k, "_use") || strings.HasSuffix(k, "_call") {
		return true
	}
	m := wire.MembersOf(block, whole(block))
	_, name := wire.Find(m, "name")
	_, input := wire.Find(m, "input")
	return name && input
}

// readUsage takes over the counts of a usage object. Later counts are totals so
// far; a zero is no news, since keep-alives send zeros.
func readUsage(u *lemma.Usage, raw []byte) {
	for _, m := range wire.MembersOf(raw, whole(raw)) {
		var to *int64
		switch m.Name {
		case "input_tokens":
			to = &u.Input
		case "output_tokens":
			to = &u.Output
		case "cache_read_input_tokens":
			to = &u.CacheRead
		case "cache_creation_input_tokens":
			to = &u.CacheCreate
		default:
			continue
		}
		if n, err := wire.Int(raw[m.Value.Start:m.Value.End]); err == nil && n > 0 {
			*to = n
		}
	}
}

// Remembers: this format keeps nothing upstream.
func (Adapter) Remembers(*wire.Request) bool { return false }

// Without takes blocks out.
func (Adapter) Without(answer []byte, calls []wire.Call) ([]byte, error) {
	c, ok := wire.Find(wire.MembersOf(answer, whole(answer)), "content")
	if !ok || answer[c.Value.Start] != '[' {
		return nil, fmt.Errorf("take calls out: %w: no content array", wire.ErrUnreadable)
	}
	return wire.Pick(answer, c.Value, func(i int, _ []byte) bool { return !wire.HasIndex(calls, i) }), nil
}

// Note adds a text block: as the last block, or before the first call.
func (Adapter) Note(answer []byte, text string) ([]byte, error) {
	m := wire.MembersOf(answer, whole(answer))
	c, ok := wire.Find(m, "content")
	if !ok || answer[c.Value.Start] != '[' {
		return nil, fmt.Errorf("add note: %w: no content array", wire.ErrUnreadable)
	}
	block := append(wire.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
	blocks := wire.ElementsOf(answer, c.Value)
	if len(blocks) == 0 {
		at := c.Value.Start + 1
		return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: at, End: at}, With: block}}), nil
	}
	for _, b := range blocks {
		if blockKind(answer[b.Start:b.End]) == "tool_use" {
			return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: b.Start, End: b.Start}, With: append(block, ',')}}), nil
		}
	}
	at := blocks[len(blocks)-1].End
	return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: at, End: at}, With: append([]byte{','}, block...)}}), nil
}
