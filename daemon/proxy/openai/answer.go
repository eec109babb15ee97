package openaiapi

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// ReadAnswer reads a complete chat completion, all choices of it.
func (Adapter) ReadAnswer(body []byte) (*wire.Answer, error) {
	a := &wire.Answer{}
	var texts []string
	ids := map[string]bool{}
	var choices, failure wire.Span
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, _ wire.Span) error {
			at, err := rd.Value()
			switch string(name) {
			case "choices":
				choices = at
			case "error":
				failure = at
			case "usage":
				readUsage(&a.Usage, rd.Raw(at))
			default:
				if err == nil && odd(string(name), rd.Raw(at)) {
					err = wire.Unreadablef("a member %.40q that looks like a call", name)
				}
			}
			return err
		})
		return err
	})
	if err != nil {
		return nil, wire.Unreadable(err)
	}
	if raw := body[failure.Start:failure.End]; set(raw) {
		return nil, wire.Unreadablef("an error came as an answer: %.300s", raw)
	}
	list := wire.ElementsOf(body, choices)
	if len(list) == 0 {
		return nil, wire.Unreadablef("the answer has no choices")
	}
	for i, c := range list {
		raw := body[c.Start:c.End]
		message := member(raw, "message")
		if message == nil {
			return nil, wire.Unreadablef("a choice without a message")
		}
		for _, m := range wire.MembersOf(raw, whole(raw)) {
			if m.Name != "message" && (m.Name == "delta" && set(raw[m.Value.Start:m.Value.End]) || odd(m.Name, raw[m.Value.Start:m.Value.End])) {
				return nil, wire.Unreadablef("a member %.40q that looks like a call", m.Name)
			}
		}
		if i == 0 {
			a.Stop = text(member(raw, "finish_reason"))
		}
		if err := readMessage(a, message, ids, &texts); err != nil {
			return nil, err
		}
	}
	a.Text = strings.Join(texts, "\n")
	return a, nil
}

func readMessage(a *wire.Answer, message []byte, ids map[string]bool, texts *[]string) error {
	for _, m := range wire.MembersOf(message, whole(message)) {
		raw := message[m.Value.Start:m.Value.End]
		if !set(raw) {
			continue
		}
		switch m.Name {
		case "content", "refusal":
			if err := onlyContent(raw); err != nil {
				return err
			}
			if t := contentText(raw); t != "" {
				*texts = append(*texts, t)
			}
		case "tool_calls":
			if raw[0] != '[' {
				return wire.Unreadablef("tool_calls is no array")
			}
			for _, e := range wire.ElementsOf(raw, whole(raw)) {
				c, err := readToolCall(raw[e.Start:e.End])
				if err != nil {
					return err
				}
				if c.ID != "" && ids[c.ID] {
					return wire.Unreadablef("a repeated tool call id %.80q", c.ID)
				}
				ids[c.ID] = true
				c.Index = len(a.Calls)
				a.Calls = append(a.Calls, c)
			}
		case "function_call":
			if err := undisguised(raw); err != nil {
				return err
			}
			c := wire.Call{Index: len(a.Calls), Name: text(member(raw, "name")), Args: []byte(text(member(raw, "arguments")))}
			if a.Joined = true; c.Name == "" {
				return wire.Unreadablef("a function call without a name")
			}
			if err := complete(&c); err != nil {
				return err
			}
			a.Calls = append(a.Calls, c)
		default:
			if odd(m.Name, raw) {
				return wire.Unreadablef("a member %.40q that looks like a call", m.Name)
			}
		}
	}
	return nil
}

// readToolCall reads a whole element of tool_calls.
func readToolCall(raw []byte) (wire.Call, error) {
	c := wire.Call{ID: text(member(raw, "id"))}
	if err := undisguised(raw); err != nil {
		return c, err
	}
	kind := text(member(raw, "type"))
	f, custom := member(raw, "function"), member(raw, "custom")
	switch {
	case f != nil && custom != nil, kind == "custom" && f != nil, kind != "" && kind != "function" && kind != "custom":
		return c, wire.Unreadablef("a tool call of unknown type %.40q", kind)
	case custom != nil:
		c.Name, c.Args = text(member(custom, "name")), []byte(text(member(custom, "input")))
	default:
		c.Name, c.Args = text(member(f, "name")), []byte(text(member(f, "arguments")))
		if o := member(f, "arguments"); len(o) > 0 && o[0] == '{' {
			c.Args = o // some servers give the object instead of its text
		}
	}
	if c.Name == "" { // an empty id is how some compatible servers answer
		return c, wire.Unreadablef("a tool call without a name")
	}
	if custom != nil {
		return c, nil
	}
	return c, complete(&c)
}

// undisguised refuses a call, or a part of one, with a member that a reader which
// ignores case would take for another.
func undisguised(call []byte) error {
	for _, raw := range [][]byte{call, member(call, "function"), member(call, "custom")} {
		if len(raw) == 0 {
			continue
		}
		if name := wire.DisguisedIn(wire.MembersOf(raw, whole(raw))); name != "" {
			return wire.Unreadablef("a member %.40q in a call", name)
		}
	}
	return nil
}

// complete checks arguments; none at all is how some models call without any.
func complete(c *wire.Call) error {
	if len(c.Args) == 0 {
		return nil
	}
	return c.Complete()
}

// callLike reports a name of a member of a message, or a type of a part of it,
// that an agent might act on, in whatever case it is written.
func callLike(name string) bool {
	n := strings.ToLower(name)
	if strings.HasSuffix(n, "_call") || strings.HasSuffix(n, "_calls") || strings.HasSuffix(n, "_use") || strings.HasSuffix(n, "_uses") {
		return true
	}
	n = wire.Plain(n)
	return strings.Contains(n, "toolcall") || strings.Contains(n, "functioncall") || strings.HasPrefix(n, "tooluse")
}

// odd reports a member that has a value and that an agent might act on although
// it stands where no call belongs.
func odd(name string, raw []byte) bool {
	return set(raw) && (callLike(name) || wire.Disguised(name))
}

// onlyContent refuses a part of a content array that is a call.
func onlyContent(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		part := raw[e.Start:e.End]
		if kind := text(member(part, "type")); callLike(kind) || kind == "function" || kind == "custom" {
			return wire.Unreadablef("a part of unknown type %.40q that looks like a call", kind)
		}
	}
	return nil
}

// contentText is a string, or the texts of an array of parts.
func contentText(raw []byte) string {
	if raw[0] != '[' {
		return text(raw)
	}
	var texts []string
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		if t := text(member(raw[e.Start:e.End], "text")); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

// readUsage takes over the counts of a usage object. Input is what the cache did
// not serve, as in the other format.
func readUsage(u *lemma.Usage, raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	n := func(raw []byte) int64 {
		if len(raw) == 0 {
			return 0
		}
		v, err := wire.Int(raw)
		if err != nil || v < 0 {
			return 0
		}
		return v
	}
	cached := n(member(member(raw, "prompt_tokens_details"), "cached_tokens"))
	prompt := n(member(raw, "prompt_tokens"))
	*u = lemma.Usage{Input: max(prompt-cached, 0), Output: n(member(raw, "completion_tokens")), CacheRead: cached}
}

// Remembers: a kept chat completion is never gone on from.
func (Adapter) Remembers(*wire.Request) bool { return false }

// Without takes elements of tool_calls out.
func (Adapter) Without(answer []byte, calls []wire.Call) ([]byte, error) {
	at := whole(answer)
	for _, name := range []string{"choices", "message", "tool_calls"} {
		m, ok := wire.Find(wire.MembersOf(answer, at), name)
		if ok && name == "choices" {
			list := wire.ElementsOf(answer, m.Value)
			if ok = len(list) == 1; ok {
				m.Value = list[0]
			}
		}
		if !ok {
			return nil, fmt.Errorf("take calls out: %w: no %s", wire.ErrUnreadable, name)
		}
		at = m.Value
	}
	return wire.Pick(answer, at, func(i int, _ []byte) bool { return !wire.HasIndex(calls, i) }), nil
}

// Note adds text at the end of the first choice's content.
func (Adapter) Note(answer []byte, note string) ([]byte, error) {
	fail := func(what string) ([]byte, error) {
		return nil, fmt.Errorf("add note: %w: %s", wire.ErrUnreadable, what)
	}
	choices, ok := wire.Find(wire.MembersOf(answer, whole(answer)), "choices")
	if !ok {
		return fail("no choices")
	}
	list := wire.ElementsOf(answer, choices.Value)
	if len(list) == 0 {
		return fail("no choices")
	}
	message, ok := wire.Find(wire.MembersOf(answer, list[0]), "message")
	if !ok || answer[message.Value.Start] != '{' {
		return fail("no message")
	}
	members := wire.MembersOf(answer, message.Value)
	content, ok := wire.Find(members, "content")
	raw := answer[content.Value.Start:content.Value.End]
	switch {
	case ok && raw[0] == '"' && len(raw) > 2: // inside the string, its bytes stay
		quoted := wire.Quote(paragraph + strings.TrimLeft(note, "\n"))
		at := content.Value.End - 1
		return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: at, End: at}, With: quoted[1 : len(quoted)-1]}}), nil
	case ok && raw[0] == '[' && set(raw):
		parts := wire.ElementsOf(answer, content.Value)
		at := parts[len(parts)-1].End
		part := append(wire.AppendQuote([]byte(`,{"type":"text","text":`), note), '}')
		return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: at, End: at}, With: part}}), nil
	}
	o := wire.NewObject(message.Value, members)
	o.Set("content", wire.Quote(note))
	return o.Edited(answer), nil
}
