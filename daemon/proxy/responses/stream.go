package responsesapi

import (
	"bytes"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// NewStream starts reading one streamed response.
func (Adapter) NewStream() wire.Stream {
	s := &stream{byIndex: map[int]*item{}, ids: map[string]bool{}}
	s.out = client{number: -1, maps: map[*stream]map[*item]*sentItem{}}
	return s
}

// stream reads an upstream's events and remembers what the client has of them.
type stream struct {
	split         wire.Splitter
	err           error // the first fault; nothing is read after it
	started, done bool
	id, model     string
	created       []byte // the response object of the start
	stop          string
	usage         lemma.Usage
	usageSeen     bool
	items         []*item
	byIndex       map[int]*item
	ids           map[string]bool // of calls
	late          []wire.Call     // calls that stand only in the last event
	lateText      string
	dropped       map[*item]bool // items that do not leave
	out           client
}

// item is one output item of the upstream.
type item struct {
	index int
	fields
	class
	kind wire.PieceKind
	body []byte // text, or arguments, so far
	part int    // content_index of the last text
	done bool
	call wire.Call
}

// maxBody bounds the text or the arguments of one item, in bytes.
const maxBody = 32 << 20

// Feed takes bytes of the stream and returns the pieces that are complete.
func (s *stream) Feed(b []byte) ([]wire.Piece, error) {
	if s.err != nil {
		return nil, s.err
	}
	events, err := s.split.Feed(b)
	pieces := make([]wire.Piece, 0, len(events))
	for _, e := range events {
		kind, rerr := s.read(e)
		if rerr != nil {
			s.err = rerr
			return pieces, rerr
		}
		pieces = append(pieces, wire.Piece{Raw: e.Raw, Kind: kind})
	}
	s.err = err
	return pieces, err
}

// read takes one event in and says what it is.
func (s *stream) read(e wire.Event) (wire.PieceKind, error) {
	if len(e.Data) == 0 {
		return wire.PiecePing, nil
	}
	if string(bytes.TrimSpace(e.Data)) == "[DONE]" { // a habit of gateways
		return wire.PieceOther, nil
	}
	ev, err := parse(e)
	if err != nil {
		return "", err
	}
	if ev.kind == "keepalive" || ev.kind == "ping" {
		return wire.PiecePing, nil
	}
	if s.done {
		return "", wire.Unreadablef("an event after the end of the response")
	}
	switch ev.kind {
	case "response.created":
		return wire.PieceStart, s.start(&ev)
	case "response.queued", "response.in_progress":
		if err := s.repeats(&ev); err != nil || s.started {
			return wire.PiecePing, err
		}
		return wire.PieceOther, nil
	case "error", "response.failed", "response.cancelled":
		p := readResponse(ev.response)
		s.usageSeen = readUsage(&s.usage, p.usage) || s.usageSeen
		return wire.PieceError, nil
	case "response.completed", "response.incomplete":
		return wire.PieceFinish, s.finish(&ev)
	case "response.output_item.added":
		return s.open(&ev)
	case "response.output_item.done":
		return s.close(&ev)
	}
	it := s.find(&ev)
	if it == nil {
		if strings.HasSuffix(ev.kind, ".delta") || ev.arguments != nil {
			return "", wire.Unreadablef("%.60s outside of an item", ev.kind)
		}
		if n := len(s.items); n > 0 && s.items[n-1].class == classReasoning {
			return wire.PieceLead, nil // it must not let go what waits
		}
		return wire.PieceOther, nil
	}
	return it.kind, it.take(&ev)
}

func (s *stream) start(ev *event) error {
	if s.started {
		return wire.Unreadablef("a second response.created")
	}
	s.started = true
	p := readResponse(ev.response)
	s.id, s.model, s.created = p.id, p.model, ev.response
	s.usageSeen = readUsage(&s.usage, p.usage)
	return s.repeats(ev)
}

// repeats refuses a call in an event that may only tell what was told before.
func (s *stream) repeats(ev *event) error {
	p := readResponse(ev.response)
	for _, e := range wire.ElementsOf(p.output, whole(p.output)) {
		raw := p.output[e.Start:e.End]
		f := readFields(raw)
		c, err := kindOf(&f, raw)
		if err != nil {
			return err
		}
		if it := s.streamed(&f); c == classCall && (it == nil || !it.done || !same(&f, &it.call)) {
			return wire.Unreadablef("a new call inside %s", ev.kind)
		}
	}
	return nil
}

// find is the item that an event is about; ids are those of servers that number
// no items.
func (s *stream) find(ev *event) *item {
	if ev.index >= 0 {
		return s.byIndex[ev.index]
	}
	id := ev.itemID
	if id == "" && ev.item != nil {
		id = text(member(ev.item, "id"))
	}
	for i := len(s.items) - 1; i >= 0 && id != ""; i-- {
		if s.items[i].id == id {
			return s.items[i]
		}
	}
	return nil
}

func (s *stream) open(ev *event) (wire.PieceKind, error) {
	if len(ev.item) == 0 || ev.item[0] != '{' {
		return "", wire.Unreadablef("an output item that is no object")
	}
	if s.find(ev) != nil {
		return "", wire.Unreadablef("a repeated output item %d", ev.index)
	}
	it := &item{index: ev.index, fields: readFields(ev.item)}
	var err error
	if it.class, err = kindOf(&it.fields, ev.item); err != nil {
		return "", err
	}
	switch it.class {
	case classMessage:
		it.kind = wire.PieceText
	case classReasoning:
		it.kind = wire.PieceLead
	case classCall:
		it.kind, it.body = wire.PieceCall, it.given()
	default:
		it.kind = wire.PieceOther
	}
	if it.index < 0 {
		it.index = len(s.items)
	}
	s.items = append(s.items, it)
	s.byIndex[it.index] = it
	return it.kind, nil
}

// given is the text that a call's arguments or input start with.
func (it *item) given() []byte {
	if it.fields.kind == "custom_tool_call" {
		return []byte(text(it.input))
	}
	return bytes.Clone(it.args())
}

// take reads an event about an item that is open.
func (it *item) take(ev *event) error {
	if it.done {
		return wire.Unreadablef("%.60s after the end of its item", ev.kind)
	}
	all := ev.arguments
	switch ev.kind {
	case "response.output_text.delta", "response.refusal.delta":
		if it.class != classMessage {
			return wire.Unreadablef("a text in an item of type %.40q", it.fields.kind)
		}
		if ev.part != it.part && len(it.body) > 0 {
			it.body = append(it.body, '\n')
		}
		it.part = ev.part
		return it.add(ev.delta)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		if err := it.takes(ev.kind); err != nil {
			return err
		}
		return it.add(ev.delta)
	case "response.custom_tool_call_input.done":
		all = ev.input
		fallthrough
	case "response.function_call_arguments.done":
		if err := it.takes(ev.kind); err != nil {
			return err
		}
		if ev.name != "" && it.name != "" && ev.name != it.name {
			return wire.Unreadablef("a call that changes its name")
		}
		return it.settle([]byte(text(all)))
	}
	return nil
}

// takes reports whether arguments of a kind belong to an item.
func (it *item) takes(kind string) error {
	want := "function_call"
	if strings.Contains(kind, "custom_tool_call") {
		want = "custom_tool_call"
	}
	if it.fields.kind != want {
		return wire.Unreadablef("%.60s in an item of type %.40q", kind, it.fields.kind)
	}
	return nil
}

func (it *item) add(delta []byte) error {
	if len(delta) > 0 && delta[0] != '"' {
		return wire.Unreadablef("a delta that is no text")
	}
	if len(delta) > 0 {
		it.body = append(it.body, wire.Unquote(delta)...)
	}
	if len(it.body) > maxBody {
		return wire.Unreadablef("an item of more than %d bytes", maxBody)
	}
	return nil
}

// settle compares arguments told as a whole with those told in parts: clients
// differ in which of the two they take.
func (it *item) settle(whole []byte) error {
	if len(it.body) == 0 {
		it.body = bytes.Clone(whole)
	} else if !bytes.Equal(it.body, whole) {
		return wire.Unreadablef("a call with two different arguments")
	}
	return nil
}

func (s *stream) close(ev *event) (wire.PieceKind, error) {
	it := s.find(ev)
	if it == nil { // told at once
		kind, err := s.open(ev)
		if err != nil {
			return "", err
		}
		it = s.items[len(s.items)-1]
		return kind, s.end(it, ev.item)
	}
	if it.done {
		return "", wire.Unreadablef("the end of an item that is not open")
	}
	return it.kind, s.end(it, ev.item)
}

// end takes in the whole item.
func (s *stream) end(it *item, raw []byte) error {
	f := readFields(raw)
	c, err := kindOf(&f, raw)
	if err != nil {
		return err
	}
	if f.kind != it.fields.kind {
		return wire.Unreadablef("an item that changes its type")
	}
	it.done = true
	switch c {
	case classMessage:
		if len(it.body) == 0 {
			it.body = []byte(texts(f.content))
		}
	case classCall:
		was := it.fields
		it.fields = f
		if was.name != "" && was.qualified() != f.qualified() || was.answers() != "" && was.answers() != f.answers() {
			return wire.Unreadablef("a call that changes its name or id")
		}
		if err := it.settle(it.given()); err != nil {
			return err
		}
		it.call, err = newCall(it.index, &it.fields, s.ids)
		return err
	}
	return nil
}

// finish reads the last event, which tells the whole output again: some clients
// act on nothing else, so a call in it must be one that was streamed, or counts
// as one more.
func (s *stream) finish(ev *event) error {
	s.done = true
	p := readResponse(ev.response)
	if name := wire.DisguisedIn(p.members); name != "" {
		return wire.Unreadablef("a member %.40q in the response", name)
	}
	s.usageSeen = readUsage(&s.usage, p.usage) || s.usageSeen
	if s.stop = p.stop(); s.stop == "" {
		s.stop = strings.TrimPrefix(ev.kind, "response.")
	}
	if p.id != "" && s.id == "" {
		s.id, s.model = p.id, p.model
	}
	for _, it := range s.items {
		if it.class == classCall && !it.done {
			if ev.kind == "response.completed" {
				return wire.Unreadablef("the response ended inside a call")
			}
			it.call = wire.Call{Index: it.index, ID: it.answers(), Name: it.qualified(), Args: it.body, Broken: true}
		}
	}
	var said []string
	for i, e := range wire.ElementsOf(p.output, whole(p.output)) {
		raw := p.output[e.Start:e.End]
		f := readFields(raw)
		c, err := kindOf(&f, raw)
		if err != nil {
			return err
		}
		if t := texts(f.content); c == classMessage && t != "" {
			said = append(said, t)
		}
		if c != classCall {
			continue
		}
		if it := s.streamed(&f); it != nil {
			if it.done && !same(&f, &it.call) {
				return wire.Unreadablef("a call that the end of the response tells otherwise")
			}
			continue
		}
		call, err := newCall(i, &f, s.ids)
		if err != nil {
			return err
		}
		s.late = append(s.late, call)
	}
	s.lateText = strings.Join(said, "\n")
	return nil
}

// streamed is the call that an item of the last event repeats.
func (s *stream) streamed(f *fields) *item {
	for _, it := range s.items {
		if it.class == classCall && it.fields.kind == f.kind && it.answers() == f.answers() && (f.answers() != "" || same(f, &it.call)) {
			return it
		}
	}
	return nil
}

// same reports whether an item asks for the same as a call.
func same(f *fields, c *wire.Call) bool {
	name, args := f.call()
	if f.kind == "custom_tool_call" && text(args) == text(c.Args) {
		args = c.Args
	}
	return name == c.Name && bytes.Equal(args, c.Args)
}

// Done reports response.completed or response.incomplete.
func (s *stream) Done() bool { return s.done && s.err == nil }

// Started reports response.created.
func (s *stream) Started() bool { return s.started }

// Answer is what has been read so far: text, complete calls, usage.
func (s *stream) Answer() *wire.Answer {
	a := &wire.Answer{Stop: s.stop, Usage: s.usage}
	var said []string
	for _, it := range s.items {
		switch {
		case it.class == classMessage && len(it.body) > 0:
			said = append(said, string(it.body))
		case it.class == classCall && it.call.Name != "":
			a.Calls = append(a.Calls, it.call)
		}
	}
	a.Calls = append(a.Calls, s.late...)
	a.Joined = len(s.late) > 0
	if a.Text = strings.Join(said, "\n"); len(said) == 0 {
		a.Text = s.lateText
	}
	return a
}
