package openaiapi

import (
	"bytes"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// NewStream starts reading one streamed completion.
func (Adapter) NewStream() wire.Stream {
	s := &stream{byKey: map[key]*call{}, ids: map[string]bool{}, texts: map[int]*bytes.Buffer{}, stopped: map[int]bool{}}
	s.out.base = map[*stream]int{}
	return s
}

// stream reads an upstream's chunks and remembers what the client has of them.
type stream struct {
	split         wire.Splitter
	err           error // the first fault; nothing is read after it
	started, done bool
	head          head
	stop          string
	usage         lemma.Usage
	usageSeen     bool
	calls         []*call
	byKey         map[key]*call
	ids           map[string]bool
	order         []int // choices in order of their first text
	texts         map[int]*bytes.Buffer
	stopped       map[int]bool // choices with a finish reason
	joined        bool         // a part of a call came without its index
	dropped       map[key]bool // calls that do not leave
	out           client
}

// key is a call's place: clients tell calls apart by choice and index.
type key struct{ choice, index int }

type call struct {
	wire.Call
	key    key
	custom bool // input is free text
	legacy bool // function_call
}

// chunkData is one parsed chunk.
type chunkData struct {
	data    []byte
	id      wire.Span // of the value; zero when absent
	head    head
	choices []choice
	usage   wire.Span
	failed  bool
}

type choice struct {
	index   int
	delta   wire.Span
	members []wire.Member // of the delta
	finish  string
}

// maxIndex bounds the index of a choice and of a call.
const maxIndex = 1 << 16

// maxCall bounds the text of a choice, and the arguments of a call, in bytes.
const maxCall = 32 << 20

// parse reads the data of an event strictly.
func parse(data []byte) (chunkData, error) {
	c := chunkData{data: data}
	var choices wire.Span
	err := wire.Whole(data, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, _ wire.Span) error {
			at, err := rd.Value()
			if err != nil {
				return err
			}
			raw := rd.Raw(at)
			switch string(name) {
			case "id":
				c.id, c.head.id = at, text(raw)
			case "model":
				c.head.model = text(raw)
			case "choices":
				choices = at
			case "usage":
				if raw[0] == '{' {
					c.usage = at
				}
			case "error":
				c.failed = set(raw)
			default:
				if odd(string(name), raw) {
					return wire.Unreadablef("a member %.40q that looks like a call", name)
				}
			}
			return nil
		})
		return err
	})
	if err != nil {
		return c, wire.Unreadable(err)
	}
	for _, e := range wire.ElementsOf(data, choices) {
		ch := choice{}
		for _, m := range wire.MembersOf(data, e) {
			raw := data[m.Value.Start:m.Value.End]
			switch m.Name {
			case "index":
				n, err := wire.Int(raw)
				if err != nil || n < 0 || n > maxIndex {
					return c, wire.Unreadablef("an impossible choice index")
				}
				ch.index = int(n)
			case "delta":
				ch.delta = m.Value
				ch.members = wire.MembersOf(data, m.Value)
			case "finish_reason":
				ch.finish = text(raw)
			case "message":
				for _, inner := range wire.MembersOf(raw, whole(raw)) {
					if odd(inner.Name, raw[inner.Value.Start:inner.Value.End]) {
						return c, wire.Unreadablef("a call outside of the delta")
					}
				}
			default:
				if odd(m.Name, raw) {
					return c, wire.Unreadablef("a call outside of the delta")
				}
			}
		}
		c.choices = append(c.choices, ch)
	}
	return c, nil
}

// value is the raw bytes of a member of the chunk.
func (c *chunkData) value(m wire.Member) []byte { return c.data[m.Value.Start:m.Value.End] }

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
	if s.done {
		return "", wire.Unreadablef("an event after the end of the answer")
	}
	if ended(e.Data) {
		return wire.PieceEnd, s.end()
	}
	c, err := parse(e.Data)
	if err != nil {
		return "", err
	}
	if c.failed {
		return wire.PieceError, nil
	}
	if s.head.id == "" {
		s.head.id = c.head.id
	}
	if s.head.model == "" {
		s.head.model = c.head.model
	}
	kind := wire.PieceOther
	if c.usage.End > 0 {
		readUsage(&s.usage, c.data[c.usage.Start:c.usage.End])
		s.usageSeen = true
		if len(c.choices) == 0 {
			kind = wire.PieceFinish
		}
	}
	for i := range c.choices {
		k, err := s.readChoice(&c, &c.choices[i])
		if err != nil {
			return "", err
		}
		kind = heavier(kind, k)
	}
	return kind, nil
}

// heavier is the kind of a chunk that is both: what must be held wins.
func heavier(a, b wire.PieceKind) wire.PieceKind {
	for _, k := range []wire.PieceKind{wire.PieceCall, wire.PieceFinish, wire.PieceText, wire.PieceThinking, wire.PieceStart} {
		if a == k || b == k {
			return k
		}
	}
	return wire.PieceOther
}

func ended(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// end checks every call before the last piece can leave.
func (s *stream) end() error {
	s.done = true
	for _, c := range s.calls {
		if !c.custom {
			if err := complete(&c.Call); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) readChoice(c *chunkData, ch *choice) (wire.PieceKind, error) {
	kind := wire.PieceOther
	s.started = true
	for _, m := range ch.members {
		raw := c.value(m)
		switch m.Name {
		case "role":
			kind = heavier(kind, wire.PieceStart)
			continue
		}
		if !set(raw) {
			continue
		}
		switch m.Name {
		case "content", "refusal":
			kind = heavier(kind, wire.PieceText)
			if err := onlyContent(raw); err != nil {
				return "", err
			}
			if err := s.addText(ch.index, contentText(raw)); err != nil {
				return "", err
			}
		case "tool_calls":
			kind = wire.PieceCall
			if err := s.addCalls(ch, raw); err != nil {
				return "", err
			}
		case "function_call":
			kind = wire.PieceCall
			if err := s.addLegacy(ch, raw); err != nil {
				return "", err
			}
		default:
			switch {
			case odd(m.Name, raw):
				return "", wire.Unreadablef("a member %.40q that looks like a call", m.Name)
			case reasoning(m.Name):
				kind = heavier(kind, wire.PieceThinking)
			}
		}
	}
	if ch.finish != "" {
		s.stopped[ch.index] = true
		if ch.index == 0 {
			s.stop = ch.finish
		}
		kind = heavier(kind, wire.PieceFinish)
	}
	return kind, nil
}

// reasoning names the members by which servers stream reasoning.
func reasoning(name string) bool {
	switch name {
	case "reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque", "thinking", "thinking_blocks":
		return true
	}
	return false
}

func (s *stream) addText(choice int, t string) error {
	b := s.texts[choice]
	if b == nil {
		b = &bytes.Buffer{}
		s.texts[choice] = b
		s.order = append(s.order, choice)
	}
	if b.WriteString(t); b.Len() > maxCall {
		return wire.Unreadablef("a text of more than %d bytes", maxCall)
	}
	return nil
}

func (s *stream) addCalls(ch *choice, raw []byte) error {
	if raw[0] != '[' {
		return wire.Unreadablef("tool_calls is no array")
	}
	if s.stopped[ch.index] {
		return wire.Unreadablef("a tool call after the finish reason")
	}
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		if err := s.addCall(ch.index, raw[e.Start:e.End]); err != nil {
			return err
		}
	}
	return nil
}

// addCall takes in one element of tool_calls of a delta.
func (s *stream) addCall(choice int, raw []byte) error {
	if err := undisguised(raw); err != nil {
		return err
	}
	id, kind := text(member(raw, "id")), text(member(raw, "type"))
	body, custom, part := member(raw, "function"), member(raw, "custom"), "arguments"
	if kind != "" && kind != "function" && kind != "custom" || body != nil && custom != nil {
		return wire.Unreadablef("a tool call of unknown type %.40q", kind)
	}
	if custom != nil {
		body, part = custom, "input"
	}
	name, args := text(member(body, "name")), member(body, part)
	k := key{choice, -1}
	if n := member(raw, "index"); n != nil {
		i, err := wire.Int(n)
		if err != nil || i < 0 || i > maxIndex {
			return wire.Unreadablef("an impossible tool call index")
		}
		k.index = int(i)
	} else if k = s.unindexed(choice, id != "" || name != ""); k.index < 0 {
		return wire.Unreadablef("a part of a tool call without an index")
	} else {
		s.joined = true
	}
	c := s.byKey[k]
	if c == nil {
		if name == "" {
			return wire.Unreadablef("a tool call that starts without a name")
		}
		if id != "" && s.ids[id] {
			return wire.Unreadablef("a repeated tool call id %.80q", id)
		}
		s.ids[id] = true
		c = &call{key: k, custom: custom != nil, Call: wire.Call{Index: len(s.calls), ID: id, Name: name}}
		s.byKey[k] = c
		s.calls = append(s.calls, c)
	} else if id != "" && id != c.ID {
		return wire.Unreadablef("a repeated tool call index %d", k.index)
	} else if name != "" && name != c.Name {
		return wire.Unreadablef("a tool call that changes its name")
	}
	return c.add(args)
}

// unindexed is the place of a part that names none: a new call, or the last one.
func (s *stream) unindexed(choice int, fresh bool) key {
	k := key{choice, -1}
	for _, c := range s.calls {
		if c.key.choice == choice && !c.legacy {
			k.index = max(k.index, c.key.index)
		}
	}
	if fresh {
		k.index++
	}
	return k
}

// add appends a part of the arguments, which is a string or, from some servers,
// the whole object at once.
func (c *call) add(raw []byte) error {
	switch {
	case len(raw) == 0:
	case raw[0] == '"':
		c.Args = append(c.Args, wire.Unquote(raw)...)
	case raw[0] == '{' && len(c.Args) == 0:
		c.Args = bytes.Clone(raw)
	default:
		return wire.Unreadablef("arguments that are no text")
	}
	if len(c.Args) > maxCall {
		return wire.Unreadablef("arguments of more than %d bytes", maxCall)
	}
	return nil
}

// addLegacy takes in a function_call of a delta.
func (s *stream) addLegacy(ch *choice, raw []byte) error {
	if s.stopped[ch.index] {
		return wire.Unreadablef("a function call after the finish reason")
	}
	if err := undisguised(raw); err != nil {
		return err
	}
	name, k := text(member(raw, "name")), key{ch.index, -1}
	c := s.byKey[k]
	if c == nil {
		if name == "" {
			return wire.Unreadablef("a function call that starts without a name")
		}
		c = &call{key: k, legacy: true, Call: wire.Call{Index: len(s.calls), Name: name}}
		s.byKey[k] = c
		s.calls = append(s.calls, c)
	} else if name != "" && name != c.Name {
		return wire.Unreadablef("a function call that changes its name")
	}
	return c.add(member(raw, "arguments"))
}

// Done reports [DONE].
func (s *stream) Done() bool { return s.done && s.err == nil }

// Started reports the first chunk with a choice.
func (s *stream) Started() bool { return s.started }

// Answer is what has been read so far: text, calls, usage.
func (s *stream) Answer() *wire.Answer {
	a := &wire.Answer{Stop: s.stop, Usage: s.usage}
	var texts []string
	for _, i := range s.order {
		texts = append(texts, s.texts[i].String())
	}
	a.Text = strings.Join(texts, "\n")
	a.Joined = s.joined
	for _, c := range s.calls {
		a.Calls = append(a.Calls, c.Call)
		a.Joined = a.Joined || c.legacy || c.key.choice != 0
	}
	return a
}
