package openaiapi

import (
	"slices"
	"strconv"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// client is what has left for the client.
type client struct {
	role     bool // a chunk with the role
	text     bool // content
	thinking bool // reasoning
	gap      bool // text of another answer comes next: it starts a new paragraph
	ended    bool // [DONE]
	calls    int  // first index of a call that is free
	base     map[*stream]int
	carried  []*stream // the other streams that went on with this one
}

// paragraph parts the texts of two answers, which share one string here.
const paragraph = "\n\n"

// Sent records that a piece left.
func (s *stream) Sent(p wire.Piece) {
	switch p.Kind {
	case wire.PieceText, wire.PieceThinking:
		s.out.role = true
		s.out.text = s.out.text || p.Kind == wire.PieceText
		s.out.thinking = s.out.thinking || p.Kind == wire.PieceThinking
	case wire.PieceStart, wire.PieceCall, wire.PieceFinish:
		s.out.role = true
		for _, e := range eventsOf(p.Raw) {
			c, err := parse(e.Data)
			if err != nil {
				continue
			}
			if !s.started {
				s.head = c.head // a start of our own making
			}
			for _, ch := range c.choices {
				s.left(&c, ch, 0)
			}
		}
	case wire.PieceEnd:
		s.out.ended = true
	}
}

func eventsOf(raw []byte) []wire.Event {
	var sp wire.Splitter
	events, err := sp.Feed(raw)
	if err != nil {
		return nil
	}
	return events
}

// left records what a choice of a chunk brought to the client; shift is what was
// added to the indices of its calls.
func (s *stream) left(c *chunkData, ch choice, shift int) {
	for _, m := range ch.members {
		raw := c.value(m)
		if !set(raw) {
			continue
		}
		switch m.Name {
		case "content", "refusal":
			s.out.text = true
		case "tool_calls":
			for i, e := range wire.ElementsOf(raw, whole(raw)) {
				n := int64(s.out.calls)
				if v := member(raw[e.Start:e.End], "index"); v != nil {
					n, _ = wire.Int(v)
				} else if i == 0 && s.out.calls > 0 {
					n--
				}
				s.out.calls = max(s.out.calls, int(n)+shift+1)
			}
		}
	}
}

// Continue carries this answer on with a piece of another one.
func (s *stream) Continue(second wire.Stream, p wire.Piece) []byte {
	t, ok := second.(*stream)
	if !ok || s.out.ended {
		return nil
	}
	if t != s && !slices.Contains(s.out.carried, t) {
		s.out.carried = append(s.out.carried, t)
		s.out.gap = s.out.text
	}
	var out []byte
	for _, e := range eventsOf(p.Raw) {
		out = append(out, s.carry(t, e)...)
	}
	return out
}

func (s *stream) carry(t *stream, e wire.Event) []byte {
	if len(e.Data) == 0 {
		return e.Raw
	}
	if ended(e.Data) {
		s.out.ended = true
		return e.Raw
	}
	c, err := parse(e.Data)
	if err != nil || c.failed {
		return e.Raw
	}
	var out []byte
	var edits []wire.Edit
	if !s.out.role {
		s.head = c.head
	} else if c.id.End > 0 && c.head.id != s.head.id && s.head.id != "" {
		edits = append(edits, wire.Edit{At: c.id, With: wire.Quote(s.head.id)})
	}
	silent := len(c.choices) > 0 && c.usage.End == 0
	hideThinking := t != s && (s.out.text || s.out.thinking)
	for _, ch := range c.choices {
		d := wire.NewObject(ch.delta, ch.members)
		if s.out.role {
			d.Drop("role")
		}
		shift := 0
		for _, m := range ch.members {
			raw := c.value(m)
			switch {
			case m.Name == "role":
				s.out.role = true
			case reasoning(m.Name) && hideThinking:
				d.Drop(m.Name)
			case reasoning(m.Name) && set(raw):
				s.out.thinking = true
			case m.Name == "tool_calls" && set(raw):
				if t != s {
					shift = s.shift(t)
				}
				if raw = t.kept(ch.index, raw); len(raw) == len("[]") {
					d.Drop(m.Name)
				} else {
					d.Set(m.Name, shifted(raw, shift))
				}
			case m.Name == "content" && set(raw) && s.out.gap:
				out = append(out, s.gapChunk()...)
			}
		}
		s.left(&c, ch, shift)
		edits = append(edits, d.Edits()...)
		if ch.finish != "" || says(&c, ch, d) {
			silent = false
		}
	}
	if silent {
		return out
	}
	edits = append(edits, s.usageEdits(t, &c)...)
	if len(edits) == 0 {
		return append(out, e.Raw...)
	}
	return wire.AppendEvent(out, e.Name, wire.Apply(c.data, edits))
}

// says reports whether anything of a delta is left to send.
func says(c *chunkData, ch choice, d *wire.Object) bool {
	if d.Len() == 0 {
		return len(ch.members) == 0 // an empty delta of the upstream's own is a sign of life
	}
	for i, m := range ch.members {
		if d.Keeps(i) && (m.Name == "role" || set(c.value(m))) {
			return true
		}
	}
	return false
}

// shift is what is added to the call indices of a stream that goes on with ours.
func (s *stream) shift(t *stream) int {
	n, ok := s.out.base[t]
	if !ok {
		n = s.out.calls
		s.out.base[t] = n
	}
	return n
}

// shifted is tool_calls with all indices moved up.
func shifted(raw []byte, by int) []byte {
	if by == 0 {
		return raw
	}
	var edits []wire.Edit
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		m, ok := wire.Find(wire.MembersOf(raw, e), "index")
		if !ok {
			continue
		}
		if n, err := wire.Int(raw[m.Value.Start:m.Value.End]); err == nil {
			edits = append(edits, wire.Edit{At: m.Value, With: strconv.AppendInt(nil, n+int64(by), 10)})
		}
	}
	return wire.Apply(raw, edits)
}

// Drop keeps calls back.
func (s *stream) Drop(calls []wire.Call) {
	s.dropped = map[key]bool{}
	for _, c := range calls {
		if c.Index >= 0 && c.Index < len(s.calls) {
			s.dropped[s.calls[c.Index].key] = true
		}
	}
}

// kept is tool_calls without those that were dropped, the others numbered without
// a gap: clients take the index for a place in a list.
func (s *stream) kept(choice int, raw []byte) []byte {
	if len(s.dropped) == 0 {
		return raw
	}
	at := func(e []byte) int {
		n, err := wire.Int(member(e, "index"))
		if err != nil {
			return -1
		}
		return int(n)
	}
	raw = wire.Pick(raw, whole(raw), func(_ int, e []byte) bool { return !s.dropped[key{choice, at(e)}] })
	var edits []wire.Edit
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		m, ok := wire.Find(wire.MembersOf(raw, e), "index")
		if !ok {
			continue
		}
		n := at(raw[e.Start:e.End])
		before := 0
		for k := range s.dropped {
			if k.choice == choice && k.index < n {
				before++
			}
		}
		edits = append(edits, wire.Edit{At: m.Value, With: strconv.AppendInt(nil, int64(n-before), 10)})
	}
	return wire.Apply(raw, edits)
}

func (s *stream) gapChunk() []byte {
	s.out.gap = false
	return chunk(nil, s.head, textDelta(paragraph), "null")
}

// usageEdits puts the output of all answers into the usage of the last one. Its
// prompt stays its own: clients read the size of their context from it.
func (s *stream) usageEdits(t *stream, c *chunkData) []wire.Edit {
	if t == s || c.usage.End == 0 {
		return nil
	}
	before := s.usage.Output
	for _, o := range s.out.carried {
		if o != t {
			before += o.usage.Output
		}
	}
	if before == 0 {
		return nil
	}
	u := wire.NewObject(c.usage, wire.MembersOf(c.data, c.usage))
	u.Set("completion_tokens", strconv.AppendInt(nil, before+t.usage.Output, 10))
	u.Set("total_tokens", strconv.AppendInt(nil, t.usage.Input+t.usage.CacheRead+before+t.usage.Output, 10))
	return u.Edits()
}

// CloseOpen: texts of this format need no end.
func (s *stream) CloseOpen() []byte { return nil }

// Note adds text as a paragraph of its own.
func (s *stream) Note(text string) []byte {
	if s.out.ended || text == "" {
		return nil
	}
	out := s.begin()
	if s.out.text {
		text = paragraph + strings.TrimLeft(text, "\n")
	}
	s.out.text, s.out.gap = true, true
	return chunk(out, s.head, textDelta(text), "null")
}

// begin is the role chunk, if none has left.
func (s *stream) begin() []byte {
	if s.out.role {
		return nil
	}
	s.out.role = true
	if s.head.id == "" {
		s.head.id = completionID("gettier")
	}
	return roleChunk(s.head)
}

// Finish ends the answer with a text and a clean stop.
func (s *stream) Finish(text string) []byte {
	if s.out.ended {
		return nil
	}
	out := append(s.begin(), s.Note(text)...)
	out = chunk(out, s.head, "{}", `"stop"`)
	u, seen := s.total()
	if seen {
		d := append(appendHead(nil, s.head, "chat.completion.chunk"), `,"choices":[],"usage":`...)
		out = wire.AppendEvent(out, "", append(append(d, usageObject(u)...), '}'))
	}
	s.out.ended = true
	return wire.AppendEvent(out, "", []byte("[DONE]"))
}

// total is the usage that the client is told: all output, the newest input.
func (s *stream) total() (lemma.Usage, bool) {
	u, seen := s.usage, s.usageSeen
	for _, t := range s.out.carried {
		out := u.Output + t.usage.Output
		if t.usageSeen {
			u, seen = t.usage, true
		}
		u.Output = out
	}
	return u, seen
}

func usageObject(u lemma.Usage) []byte {
	prompt := u.Input + u.CacheRead
	b := strconv.AppendInt([]byte(`{"prompt_tokens":`), prompt, 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), u.Output, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), prompt+u.Output, 10)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
	return append(b, `}}`...)
}
