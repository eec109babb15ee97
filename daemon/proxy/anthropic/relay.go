package anthropicapi

import (
	"bytes"
	"slices"
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// client is what has left for the client, in the client's own block indices.
type client struct {
	started bool // message_start
	content bool // a block of any kind
	ended   bool // message_stop
	open    []int
	next    int                     // first index that is free
	maps    map[*stream]map[int]int // index upstream → index at the client, -1 = kept back
	carried []*stream               // the other streams that went on with this one
}

// Sent records that a piece left.
func (s *stream) Sent(p wire.Piece) {
	if bytes.HasPrefix(p.Raw, []byte("event: content_block_delta")) || p.Kind == wire.PiecePing {
		return // nothing opens or closes
	}
	for _, e := range eventsOf(p.Raw) {
		ev, err := parse(e)
		if err != nil {
			continue
		}
		switch ev.kind {
		case "message_start":
			s.out.started = true
			if !s.started {
				s.early(ev)
			}
		case "content_block_start":
			s.opened(s, ev.index, ev.index)
		case "content_block_stop":
			s.closed(ev.index)
		case "message_stop":
			s.out.ended = true
		}
	}
}

// early takes id and model from a start event that we made ourselves.
func (s *stream) early(ev event) {
	for _, m := range wire.MembersOf(ev.message, whole(ev.message)) {
		switch raw := ev.message[m.Value.Start:m.Value.End]; m.Name {
		case "id":
			s.id = text(raw)
		case "model":
			s.model = text(raw)
		}
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

func (s *stream) opened(t *stream, upstream, client int) {
	if s.out.maps[t] == nil {
		s.out.maps[t] = map[int]int{}
	}
	s.out.maps[t][upstream] = client
	if client < 0 {
		return
	}
	s.out.content = true
	s.out.next = max(s.out.next, client+1)
	if !slices.Contains(s.out.open, client) {
		s.out.open = append(s.out.open, client)
	}
}

func (s *stream) closed(index int) {
	if i := slices.Index(s.out.open, index); i >= 0 {
		s.out.open = slices.Delete(s.out.open, i, i+1)
	}
}

// Continue carries this message on with a piece of another one.
func (s *stream) Continue(second wire.Stream, p wire.Piece) []byte {
	t, ok := second.(*stream)
	if !ok || s.out.ended {
		return nil
	}
	if t != s && !slices.Contains(s.out.carried, t) {
		s.out.carried = append(s.out.carried, t)
	}
	if p.Kind == wire.PiecePing {
		return p.Raw
	}
	var out []byte
	for _, e := range eventsOf(p.Raw) {
		out = append(out, s.carry(t, e)...)
	}
	return out
}

func (s *stream) carry(t *stream, e wire.Event) []byte {
	ev, err := parse(e)
	if err != nil { // no event of the protocol: comments, [DONE]
		return e.Raw
	}
	switch ev.kind {
	case "message_start":
		if s.out.started {
			return nil
		}
		s.out.started = true
		s.early(ev)
		return e.Raw
	case "content_block_start":
		b := t.blocks[ev.index]
		if b == nil {
			return nil
		}
		if t.dropped[ev.index] || t != s && b.kind == wire.PieceThinking && s.out.content {
			s.opened(t, ev.index, -1)
			return nil
		}
		out := s.CloseOpen()
		n := s.out.next
		s.opened(t, ev.index, n)
		return append(out, reindexed(e, ev, n)...)
	case "content_block_delta", "content_block_stop":
		n, ok := s.out.maps[t][ev.index]
		if !ok || n < 0 || !slices.Contains(s.out.open, n) {
			return nil
		}
		if ev.kind == "content_block_stop" {
			s.closed(n)
		}
		return reindexed(e, ev, n)
	case "message_delta":
		if t == s {
			return e.Raw
		}
		return s.lastDelta(t, e, ev)
	case "message_stop":
		s.out.ended = true
	}
	return e.Raw
}

// reindexed is the event with another block index, byte for byte else.
func reindexed(e wire.Event, ev event, n int) []byte {
	if ev.index == n {
		return e.Raw
	}
	data := wire.Apply(ev.data, []wire.Edit{{At: ev.at, With: strconv.AppendInt(nil, int64(n), 10)}})
	return wire.AppendEvent(nil, e.Name, data)
}

// lastDelta puts the usage of a message that was carried on into its last delta:
// the output of all answers, and the input of this one, since its own start event
// has been kept back.
func (s *stream) lastDelta(t *stream, e wire.Event, ev event) []byte {
	if !t.stopped {
		return e.Raw
	}
	raw := ev.usage
	if len(raw) == 0 || raw[0] != '{' {
		raw = []byte("{}")
	}
	usage := wire.ObjectIn(raw)
	setUsage(usage, s.total())
	top := wire.ObjectIn(ev.data)
	top.Set("usage", usage.Edited(raw))
	return wire.AppendEvent(nil, e.Name, top.Edited(ev.data))
}

// total is the usage that the client is told: all output, the newest input.
func (s *stream) total() lemma.Usage {
	u := s.usage
	for _, t := range s.out.carried {
		out := u.Output + t.usage.Output
		if t.started {
			u = t.usage
		}
		u.Output = out
	}
	return u
}

func setUsage(o *wire.Object, u lemma.Usage) {
	set := func(name string, n int64) { o.Set(name, strconv.AppendInt(nil, n, 10)) }
	set("input_tokens", u.Input)
	set("cache_creation_input_tokens", u.CacheCreate)
	set("cache_read_input_tokens", u.CacheRead)
	set("output_tokens", u.Output)
}

// Drop keeps blocks back.
func (s *stream) Drop(calls []wire.Call) {
	s.dropped = map[int]bool{}
	for _, c := range calls {
		s.dropped[c.Index] = true
	}
}

// CloseOpen ends the blocks that are open at the client.
func (s *stream) CloseOpen() []byte {
	var out []byte
	for _, n := range s.out.open {
		out = appendBlockStop(out, n)
	}
	s.out.open = s.out.open[:0]
	return out
}

// Note adds a whole text block.
func (s *stream) Note(text string) []byte {
	if s.out.ended || text == "" {
		return nil
	}
	var out []byte
	if !s.out.started {
		s.out.started = true
		out = Adapter{}.Start(s.model, s.id)
	}
	out = append(out, s.CloseOpen()...)
	out = appendTextBlock(out, s.out.next, text)
	s.out.next++
	s.out.content = true
	return out
}

// Finish ends the message with a text block and a clean stop.
func (s *stream) Finish(text string) []byte {
	if s.out.ended {
		return nil
	}
	out := s.Note(text)
	if !s.out.started {
		s.out.started = true
		out = append(out, Adapter{}.Start(s.model, s.id)...)
	}
	out = append(out, s.CloseOpen()...)
	usage := wire.ObjectIn([]byte("{}"))
	if len(s.out.carried) > 0 {
		setUsage(usage, s.total())
	} else {
		usage.Set("output_tokens", strconv.AppendInt(nil, s.usage.Output, 10))
	}
	delta := append([]byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":`), usage.Edited([]byte("{}"))...)
	out = wire.AppendEvent(out, "message_delta", append(delta, '}'))
	s.out.ended = true
	return wire.AppendEvent(out, "message_stop", []byte(`{"type":"message_stop"}`))
}
