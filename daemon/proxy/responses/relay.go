package responsesapi

import (
	"bytes"
	"slices"
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// client is what has left for the client, by the client's own output indices.
type client struct {
	started bool // response.created
	ended   bool // the last event
	text    bool // some text
	ours    bool // the output is not the upstream's alone
	number  int64
	items   []*sentItem
	maps    map[*stream]map[*item]*sentItem
	carried []*stream // the other streams that went on with this one
}

// sentItem is an item as the client has it.
type sentItem struct {
	index int
	of    *stream // nil for ours
	id    string
	class class
	raw   []byte // the item as its last event told it
	parts []sentPart
	done  bool
}

// sentPart is a content part of a message.
type sentPart struct {
	refusal, done bool
	text          bytes.Buffer
}

// Sent records that a piece left.
func (s *stream) Sent(p wire.Piece) {
	for _, e := range eventsOf(p.Raw) {
		ev, err := parse(e)
		if err != nil {
			continue
		}
		if ev.numbered {
			s.out.number = max(s.out.number, ev.number)
		}
		s.record(s, &ev, ev.index)
	}
}

// record takes in what the client gets by an event. For an event about an item it
// gives that item, nil when the client does not have it open.
func (s *stream) record(t *stream, ev *event, index int) *sentItem {
	switch ev.kind {
	case "response.created":
		s.out.started = true
		if !s.started { // a start of our own making, or of another stream
			p := readResponse(ev.response)
			s.id, s.model, s.created = p.id, p.model, ev.response
		}
		return nil
	case "response.completed", "response.incomplete":
		s.out.ended = true
		return nil
	case "response.output_item.added":
		return s.add(t, ev, index)
	}
	it := t.find(ev)
	if it == nil {
		return nil
	}
	si := s.out.maps[t][it]
	if si == nil && ev.kind == "response.output_item.done" { // told at once
		si = s.add(t, ev, index)
	}
	if si == nil || si.done {
		return nil
	}
	switch ev.kind {
	case "response.output_item.done":
		si.done, si.raw = true, ev.item
	case "response.content_part.added":
		si.partAt(ev.part).refusal = text(member(ev.content, "type")) == "refusal"
	case "response.output_text.delta", "response.refusal.delta":
		p := si.partAt(ev.part)
		p.refusal = ev.kind == "response.refusal.delta"
		p.text.Write(wire.Unquote(ev.delta))
		s.out.text = s.out.text || p.text.Len() > 0
	case "response.content_part.done":
		si.partAt(ev.part).done = true
	}
	if si.done && si.class == classMessage && texts(member(si.raw, "content")) != "" {
		s.out.text = true
	}
	return si
}

// maxParts bounds the parts of a message that are kept.
const maxParts = 1 << 10

func (si *sentItem) partAt(n int) *sentPart {
	n = min(n, maxParts)
	for len(si.parts) <= n {
		si.parts = append(si.parts, sentPart{})
	}
	return &si.parts[n]
}

// add opens an item at the client; a negative index is the next one.
func (s *stream) add(t *stream, ev *event, index int) *sentItem {
	it := t.find(ev)
	if it == nil {
		return nil
	}
	if index < 0 {
		index = s.next()
	}
	si := &sentItem{index: index, of: t, id: it.id, class: it.class, raw: ev.item}
	if s.out.maps[t] == nil {
		s.out.maps[t] = map[*item]*sentItem{}
	}
	s.out.maps[t][it], s.out.started = si, true
	s.out.items = append(s.out.items, si)
	return si
}

// next is the first output index that is free.
func (s *stream) next() int {
	n := 0
	for _, si := range s.out.items {
		n = max(n, si.index+1)
	}
	return n
}

// count is the sequence number of the next event.
func (s *stream) count() int64 {
	s.out.number++
	return s.out.number
}

// Continue carries this response on with a piece of another one.
func (s *stream) Continue(second wire.Stream, p wire.Piece) []byte {
	t, ok := second.(*stream)
	if !ok || s.out.ended {
		return nil
	}
	if t != s && !slices.Contains(s.out.carried, t) {
		s.out.carried = append(s.out.carried, t)
		s.out.ours = s.out.ours || len(s.out.items) > 0
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
	ev, err := parse(e)
	if err != nil { // no event of the protocol: [DONE]
		return e.Raw
	}
	switch ev.kind {
	case "response.created":
		if s.out.started {
			return nil
		}
		s.record(t, &ev, -1)
	case "response.queued", "response.in_progress":
		if s.out.started && t != s {
			return s.KeepAlive()
		}
	case "response.completed", "response.incomplete":
		return s.last(t, e, &ev)
	case "response.output_item.added":
		if t.dropped[t.find(&ev)] {
			return nil
		}
		out := s.closeOthers(t)
		if si := s.record(t, &ev, -1); si != nil {
			return append(out, renumbered(e, &ev, s.count(), si.index)...)
		}
		return out
	default:
		it := t.find(&ev)
		if it == nil && (ev.index >= 0 || ev.itemID != "") || t.dropped[it] {
			return nil // of no item: its index may be another's here
		}
		if it == nil {
			break
		}
		var out []byte
		if ev.kind == "response.output_item.done" && s.out.maps[t][it] == nil {
			out = s.closeOthers(t)
		}
		if si := s.record(t, &ev, -1); si != nil {
			return append(out, renumbered(e, &ev, s.count(), si.index)...)
		}
		return out
	}
	if !ev.numbered {
		return e.Raw
	}
	return renumbered(e, &ev, s.count(), -1)
}

// Drop keeps items back, and the reasoning that led to nothing else.
func (s *stream) Drop(calls []wire.Call) {
	s.dropped, s.out.ours = map[*item]bool{}, true
	kinds := make([]class, len(s.items))
	gone := make([]bool, len(s.items))
	for i, it := range s.items {
		kinds[i], gone[i] = it.class, it.class == classCall && wire.HasIndex(calls, it.index)
	}
	for i, g := range leadsGone(kinds, gone) {
		if g {
			s.dropped[s.items[i]] = true
		}
	}
}

// leadsGone adds to the items that go the reasoning before them that has nothing
// else behind it: the API refuses reasoning whose follower is missing.
func leadsGone(kinds []class, gone []bool) []bool {
	out := slices.Clone(gone)
	for i, k := range kinds {
		if k != classReasoning {
			continue
		}
		after := i + 1
		for after < len(kinds) && gone[after] {
			after++
		}
		out[i] = after > i+1 && (after == len(kinds) || kinds[after] == classReasoning)
	}
	return out
}

// closeOthers ends what is open of other streams than t.
func (s *stream) closeOthers(t *stream) []byte {
	var out []byte
	for _, si := range s.out.items {
		if !si.done && si.of != t {
			out = append(out, s.closeItem(si)...)
		}
	}
	return out
}

// last is the final event with the output as this client has it. Its id is that
// of the response that ended: the provider knows the answer by it.
func (s *stream) last(t *stream, e wire.Event, ev *event) []byte {
	out := s.CloseOpen()
	s.out.ended = true
	p := readResponse(ev.response)
	if p.raw == nil || t == s && !s.out.ours {
		return append(out, renumbered(e, ev, s.count(), -1)...)
	}
	items := s.output()
	for _, raw := range untold(t, &p) {
		if len(items) > 0 {
			items = append(items, ',')
		}
		items = append(items, raw...)
	}
	o := wire.NewObject(whole(p.raw), p.members)
	o.Set("output", append(append([]byte{'['}, items...), ']'))
	if u := spent(s, t); u != nil && t.usageSeen {
		raw := p.usage
		if len(raw) == 0 || raw[0] != '{' {
			raw = []byte("{}")
		}
		usage := wire.ObjectIn(raw)
		usage.Set("output_tokens", strconv.AppendInt(nil, u.Output, 10))
		usage.Set("total_tokens", strconv.AppendInt(nil, u.Input+u.CacheRead+u.Output, 10))
		o.Set("usage", usage.Edited(raw))
	}
	top := wire.NewObject(whole(ev.data), ev.members)
	top.Set("sequence_number", strconv.AppendInt(nil, s.count(), 10))
	top.Set("response", o.Edited(p.raw))
	return wire.AppendEvent(out, e.Name, top.Edited(ev.data))
}

// spent is the usage of all streams of s that t ends; nil when t is alone.
func spent(s, t *stream) *lemma.Usage {
	before := int64(0)
	if t != s {
		before = s.usage.Output
	}
	for _, o := range s.out.carried {
		if o != t {
			before += o.usage.Output
		}
	}
	if before == 0 {
		return nil
	}
	u := t.usage
	u.Output += before
	return &u
}

// untold are the items of a last event that no event told before.
func untold(t *stream, p *response) [][]byte {
	var out [][]byte
	for _, e := range wire.ElementsOf(p.output, whole(p.output)) {
		raw := p.output[e.Start:e.End]
		f := readFields(raw)
		if classOf(f.kind) == classCall && t.streamed(&f) == nil || len(t.items) == 0 {
			out = append(out, raw)
		}
	}
	return out
}

// output is the items that the client has, with commas between.
func (s *stream) output() []byte {
	order := slices.Clone(s.out.items)
	slices.SortStableFunc(order, func(a, b *sentItem) int { return a.index - b.index })
	var out []byte
	for _, si := range order {
		if !si.done || si.raw == nil {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, si.raw...)
	}
	return out
}

// CloseOpen ends the items that are open at the client.
func (s *stream) CloseOpen() []byte { return s.closeOthers(nil) }

// closeItem ends one item with what the client has of it.
func (s *stream) closeItem(si *sentItem) []byte {
	si.done, s.out.ours = true, true
	switch si.class {
	case classMessage:
	case classCall: // half a call is none: its end would make the client act on it
		si.raw = nil
		return nil
	default:
		return s.itemEvent(nil, "response.output_item.done", si)
	}
	var out, content []byte
	for n := range si.parts {
		p := &si.parts[n]
		part := textPart(p.text.String())
		if p.refusal {
			part = append(wire.AppendQuote([]byte(`{"type":"refusal","refusal":`), p.text.String()), '}')
		}
		if n > 0 {
			content = append(content, ',')
		}
		content = append(content, part...)
		if !p.done {
			out = s.partEnd(out, si, n, p, part)
		}
	}
	si.raw = message(si.id, "completed", content)
	return s.itemEvent(out, "response.output_item.done", si)
}

func (s *stream) itemEvent(b []byte, kind string, si *sentItem) []byte {
	more := strconv.AppendInt([]byte(`,"output_index":`), int64(si.index), 10)
	return appendEvent(b, kind, s.count(), append(append(more, `,"item":`...), si.raw...))
}

// partEvent appends an event about a part of a message.
func (s *stream) partEvent(b []byte, kind string, si *sentItem, part int, name string, value []byte) []byte {
	more := wire.AppendQuote([]byte(`,"item_id":`), si.id)
	more = strconv.AppendInt(append(more, `,"output_index":`...), int64(si.index), 10)
	more = strconv.AppendInt(append(more, `,"content_index":`...), int64(part), 10)
	more = append(append(more, `,"`+name+`":`...), value...)
	if name == "delta" || name == "text" {
		more = append(more, `,"logprobs":[]`...)
	}
	return appendEvent(b, kind, s.count(), more)
}

func (s *stream) partEnd(b []byte, si *sentItem, n int, p *sentPart, part []byte) []byte {
	if p.refusal {
		b = s.partEvent(b, "response.refusal.done", si, n, "refusal", wire.Quote(p.text.String()))
	} else {
		b = s.partEvent(b, "response.output_text.done", si, n, "text", wire.Quote(p.text.String()))
	}
	p.done = true
	return s.partEvent(b, "response.content_part.done", si, n, "part", part)
}

// Note adds a whole message.
func (s *stream) Note(text string) []byte {
	if s.out.ended || text == "" {
		return nil
	}
	out := append(s.begin(), s.CloseOpen()...)
	if s.out.text {
		text = paragraph + text
	}
	s.out.text, s.out.ours = true, true
	si := &sentItem{index: s.next(), class: classMessage, parts: make([]sentPart, 1)}
	si.id = messageID(s.id, si.index, text)
	s.out.items = append(s.out.items, si)
	si.raw = message(si.id, "in_progress", nil)
	out = s.itemEvent(out, "response.output_item.added", si)
	out = s.partEvent(out, "response.content_part.added", si, 0, "part", textPart(""))
	out = s.partEvent(out, "response.output_text.delta", si, 0, "delta", wire.Quote(text))
	si.parts[0].text.WriteString(text)
	return append(out, s.closeItem(si)...)
}

// begin is the start event, if none has left.
func (s *stream) begin() []byte {
	if s.out.started {
		return nil
	}
	s.out.started = true
	if s.id == "" {
		s.id = responseID("gettier")
	}
	o := object{id: s.id, model: s.model, status: "in_progress"}
	return appendEvent(nil, "response.created", s.count(), append([]byte(`,"response":`), o.bytes()...))
}

// Finish ends the response with a message and a clean stop without calls.
func (s *stream) Finish(text string) []byte {
	if s.out.ended {
		return nil
	}
	out := append(s.begin(), s.Note(text)...)
	out = append(out, s.CloseOpen()...)
	s.out.ended = true
	o := s.object()
	o.Set("status", []byte(`"completed"`))
	o.Set("output", append(append([]byte{'['}, s.output()...), ']'))
	o.Set("usage", usageObject(s.total()))
	return appendEvent(out, "response.completed", s.count(), append([]byte(`,"response":`), o.Edited(s.base())...))
}

// base is the response object that events of ours speak of: the upstream's own,
// which repeats what the client asked for.
func (s *stream) base() []byte {
	if len(s.created) > 0 && s.created[0] == '{' {
		return s.created
	}
	return object{id: s.id, model: s.model, status: "in_progress"}.bytes()
}

func (s *stream) object() *wire.Object {
	raw := s.base()
	return wire.NewObject(whole(raw), wire.MembersOf(raw, whole(raw)))
}

// total is the usage that the client is told: all output, the newest input.
func (s *stream) total() lemma.Usage {
	u := s.usage
	for _, t := range s.out.carried {
		out := u.Output + t.usage.Output
		if t.usageSeen {
			u = t.usage
		}
		u.Output = out
	}
	return u
}

// KeepAlive is response.in_progress with this stream's own id and number, and
// with what has left: SDKs take the response in it for all there is so far.
func (s *stream) KeepAlive() []byte {
	if s.out.ended {
		return nil
	}
	if out := s.begin(); out != nil {
		return out
	}
	o := s.object()
	o.Set("output", append(append([]byte{'['}, s.output()...), ']'))
	return appendEvent(nil, "response.in_progress", s.count(), append([]byte(`,"response":`), o.Edited(s.base())...))
}
