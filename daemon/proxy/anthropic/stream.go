package anthropicapi

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// NewStream starts reading one streamed message.
func (Adapter) NewStream() wire.Stream {
	s := &stream{blocks: map[int]*block{}, ids: map[string]bool{}, last: -1}
	s.out.maps = map[*stream]map[int]int{}
	return s
}

// stream reads an upstream's events and remembers what the client has of them.
type stream struct {
	split                  wire.Splitter
	err                    error // the first fault; nothing is read after it
	started, stopped, done bool
	id, model, stop        string
	usage                  lemma.Usage
	blocks                 map[int]*block
	order                  []*block
	last                   int // highest index so far
	ids                    map[string]bool
	dropped                map[int]bool // blocks that do not leave
	out                    client
}

type block struct {
	index    int
	kind     wire.PieceKind
	text     bool
	id, name string
	given    []byte // input that came with the block's start
	body     []byte // text, or arguments, so far
	closed   bool
	args     wire.Call
}

// event is one parsed event of the message protocol.
type event struct {
	kind                         string
	data                         []byte
	index                        int
	at                           wire.Span // of the index
	message, block, delta, usage []byte
}

// parse reads the data of an event strictly.
func parse(e wire.Event) (event, error) {
	ev := event{data: e.Data, index: -1}
	err := wire.Whole(e.Data, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, _ wire.Span) error {
			at, err := rd.Value()
			if err != nil {
				return err
			}
			raw := rd.Raw(at)
			switch string(name) {
			case "type":
				if raw[0] == '"' {
					ev.kind = string(wire.Unquote(raw))
				}
			case "index":
				n, err := wire.Int(raw)
				if err != nil || n < 0 || n > maxIndex {
					return rd.FaultAt(at.Start, "an impossible index")
				}
				ev.index, ev.at = int(n), at
			case "message":
				ev.message = raw
			case "content_block":
				ev.block = raw
			case "delta":
				ev.delta = raw
			case "usage":
				ev.usage = raw
			default:
				if wire.Disguised(string(name)) {
					return wire.Unreadablef("a member %.40q", name)
				}
			}
			return nil
		})
		return err
	})
	if err != nil {
		return ev, wire.Unreadable(err)
	}
	if e.Name != "" && e.Name != ev.kind {
		return ev, wire.Unreadablef("an event named %.40q of type %.40q", e.Name, ev.kind)
	}
	return ev, nil
}

// maxIndex bounds the index of a block.
const maxIndex = 1 << 20

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
	if !e.HasData || len(e.Data) == 0 {
		return wire.PiecePing, nil
	}
	if string(e.Data) == "[DONE]" { // a habit of gateways
		return wire.PieceOther, nil
	}
	ev, err := parse(e)
	if err != nil {
		return "", err
	}
	if s.done && ev.kind != "ping" {
		return "", wire.Unreadablef("an event after the end of the message")
	}
	switch ev.kind {
	case "ping":
		return wire.PiecePing, nil
	case "error":
		return wire.PieceError, nil
	case "message_start":
		return wire.PieceStart, s.start(ev)
	case "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
		if !s.started {
			return "", wire.Unreadablef("%s before message_start", ev.kind)
		}
	default:
		return wire.PieceOther, nil
	}
	switch ev.kind {
	case "content_block_start":
		return s.open(ev)
	case "content_block_delta":
		return s.delta(ev)
	case "content_block_stop":
		return s.close(ev)
	case "message_delta":
		return s.finish(ev)
	}
	for _, b := range s.order {
		if b.kind == wire.PieceCall && !b.closed {
			return "", wire.Unreadablef("the message ended inside a tool call")
		}
	}
	s.done = true
	return wire.PieceEnd, nil
}

func (s *stream) start(ev event) error {
	if s.started {
		return wire.Unreadablef("a second message_start")
	}
	s.started = true
	for _, m := range wire.MembersOf(ev.message, whole(ev.message)) {
		raw := ev.message[m.Value.Start:m.Value.End]
		switch m.Name {
		case "id":
			s.id = text(raw)
		case "model":
			s.model = text(raw)
		case "usage":
			readUsage(&s.usage, raw)
		case "content":
			if len(wire.ElementsOf(raw, whole(raw))) > 0 {
				return wire.Unreadablef("content inside message_start")
			}
		}
	}
	return nil
}

func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(wire.Unquote(raw))
}

func (s *stream) open(ev event) (wire.PieceKind, error) {
	if s.stopped {
		return "", wire.Unreadablef("a block after the stop reason")
	}
	if ev.index < 0 || len(ev.block) == 0 || ev.block[0] != '{' {
		return "", wire.Unreadablef("a block without index or content")
	}
	if ev.index <= s.last {
		return "", wire.Unreadablef("a repeated block index %d", ev.index)
	}
	b := &block{index: ev.index, kind: wire.PieceOther}
	kind := ""
	for _, m := range wire.MembersOf(ev.block, whole(ev.block)) {
		raw := ev.block[m.Value.Start:m.Value.End]
		switch m.Name {
		case "type":
			kind = text(raw)
		case "id":
			b.id = text(raw)
		case "name":
			b.name = text(raw)
		case "text":
			b.body = []byte(text(raw))
		case "input":
			b.given = raw
		default:
			if wire.Disguised(m.Name) {
				return "", wire.Unreadablef("a member %.40q in a block", m.Name)
			}
		}
	}
	switch kind {
	case "text":
		b.kind, b.text = wire.PieceText, true
	case "thinking", "redacted_thinking":
		b.kind, b.body = wire.PieceThinking, nil
	case "tool_use":
		b.kind, b.body = wire.PieceCall, nil
		b.args = wire.Call{Index: b.index, ID: b.id, Name: b.name}
		if err := newCall(&b.args, s.ids); err != nil {
			return "", err
		}
	default:
		if callLike(kind, ev.block) {
			return "", wire.Unreadablef("a block of unknown type %.40q that looks like a call", kind)
		}
		b.body = nil
	}
	s.last = ev.index
	s.blocks[ev.index] = b
	s.order = append(s.order, b)
	return b.kind, nil
}

func (s *stream) delta(ev event) (wire.PieceKind, error) {
	b := s.blocks[ev.index]
	if b == nil || b.closed {
		return "", wire.Unreadablef("a delta outside of a block")
	}
	kind, part := "", []byte(nil)
	for _, m := range wire.MembersOf(ev.delta, whole(ev.delta)) {
		raw := ev.delta[m.Value.Start:m.Value.End]
		switch m.Name {
		case "type":
			kind = text(raw)
		case "text", "partial_json":
			if len(raw) >= 2 && raw[0] == '"' {
				part = wire.Unquote(raw)
			}
		default:
			if wire.Disguised(m.Name) {
				return "", wire.Unreadablef("a member %.40q in a delta", m.Name)
			}
		}
	}
	switch {
	case kind == "text_delta" && b.text, kind == "input_json_delta" && b.kind == wire.PieceCall:
		b.body = append(b.body, part...)
		if len(b.body) > maxBlock {
			return "", wire.Unreadablef("a block of more than %d bytes", maxBlock)
		}
	case kind == "text_delta", b.kind == wire.PieceCall, kind == "input_json_delta" && b.kind != wire.PieceOther:
		return "", wire.Unreadablef("a %.40q in a block of another kind", kind)
	}
	return b.kind, nil
}

// maxBlock bounds the text or the arguments of one block.
const maxBlock = 32 << 20

func (s *stream) close(ev event) (wire.PieceKind, error) {
	b := s.blocks[ev.index]
	if b == nil || b.closed {
		return "", wire.Unreadablef("the end of a block that is not open")
	}
	b.closed = true
	if b.kind != wire.PieceCall {
		return b.kind, nil
	}
	object := len(b.given) > 0 && b.given[0] == '{'
	empty := len(b.given) == 0 || string(b.given) == "null" || object && len(wire.MembersOf(b.given, whole(b.given))) == 0
	switch {
	case !empty && !object:
		return "", wire.Unreadablef("a tool call whose input is no object")
	case len(b.body) == 0 && empty:
		b.args.Args = []byte("{}")
	case len(b.body) == 0:
		b.args.Args = b.given
	case empty:
		b.args.Args = b.body
	default: // clients differ in which of the two they take
		return "", wire.Unreadablef("a tool call with two inputs")
	}
	return b.kind, b.args.Complete()
}

func (s *stream) finish(ev event) (wire.PieceKind, error) {
	readUsage(&s.usage, ev.usage)
	r, ok := wire.Find(wire.MembersOf(ev.delta, whole(ev.delta)), "stop_reason")
	if stop := ""; ok {
		if stop = text(ev.delta[r.Value.Start:r.Value.End]); stop != "" {
			s.stop, s.stopped = stop, true
		}
	}
	if !s.stopped { // a sign of life
		return wire.PiecePing, nil
	}
	return wire.PieceFinish, nil
}

// Done reports message_stop.
func (s *stream) Done() bool { return s.done && s.err == nil }

// Started reports message_start.
func (s *stream) Started() bool { return s.started }

// Answer is what has been read so far: text, complete calls, usage.
func (s *stream) Answer() *wire.Answer {
	a := &wire.Answer{Stop: s.stop, Usage: s.usage}
	var texts []string
	for _, b := range s.order {
		switch {
		case b.text:
			texts = append(texts, string(b.body))
		case b.kind == wire.PieceCall && b.closed:
			a.Calls = append(a.Calls, b.args)
		}
	}
	a.Text = strings.Join(texts, "\n")
	return a
}
