package responsesapi

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// response is a response object: a whole answer, or what an event carries of one.
type response struct {
	raw                         []byte
	members                     []wire.Member
	id, model, status           string
	output, usage, err, details []byte
	output0                     wire.Span // of the output
	chat                        bool      // it has choices: a chat completion
}

func readResponse(raw []byte) response {
	p := response{raw: raw, members: wire.MembersOf(raw, whole(raw))}
	for _, m := range p.members {
		v := raw[m.Value.Start:m.Value.End]
		if v[0] == 'n' {
			continue
		}
		switch m.Name {
		case "id":
			p.id = text(v)
		case "model":
			p.model = text(v)
		case "status":
			p.status = text(v)
		case "output":
			p.output, p.output0 = v, m.Value
		case "usage":
			p.usage = v
		case "error":
			p.err = v
		case "incomplete_details":
			p.details = v
		case "choices":
			p.chat = true
		}
	}
	return p
}

// stop is why the answer ended: its status, or what made it incomplete.
func (p *response) stop() string {
	if reason := text(member(p.details, "reason")); reason != "" {
		return reason
	}
	return p.status
}

// ReadAnswer reads a complete response.
func (Adapter) ReadAnswer(body []byte) (*wire.Answer, error) {
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Value()
		return err
	})
	if err != nil {
		return nil, wire.Unreadable(err)
	}
	p := readResponse(body)
	switch {
	case wire.DisguisedIn(p.members) != "":
		return nil, wire.Unreadablef("a member %.40q in the answer", wire.DisguisedIn(p.members))
	case set(p.err), p.status == "failed":
		return nil, wire.Unreadablef("an error came as an answer: %.300s", p.err)
	case p.chat && p.output == nil:
		return nil, wire.Unreadablef("a chat completion came as an answer")
	case len(p.output) == 0 || p.output[0] != '[':
		return nil, wire.Unreadablef("the answer has no output")
	}
	a := &wire.Answer{Stop: p.stop()}
	readUsage(&a.Usage, p.usage)
	ids := map[string]bool{}
	var said []string
	for i, e := range wire.ElementsOf(p.output, whole(p.output)) {
		raw := p.output[e.Start:e.End]
		f := readFields(raw)
		k, err := kindOf(&f, raw)
		if err != nil {
			return nil, err
		}
		switch k {
		case classMessage:
			if t := texts(f.content); t != "" {
				said = append(said, t)
			}
		case classCall:
			c, err := newCall(i, &f, ids)
			if err != nil {
				return nil, err
			}
			a.Calls = append(a.Calls, c)
		}
	}
	a.Text = strings.Join(said, "\n")
	return a, nil
}

// kindOf sorts an item of an answer. What may make a client act and is not known
// is refused (13.11).
func kindOf(f *fields, raw []byte) (class, error) {
	if name := wire.DisguisedIn(wire.MembersOf(raw, whole(raw))); name != "" {
		return "", wire.Unreadablef("a member %.40q in an item", name)
	}
	c, known := classes[f.kind]
	if c == classMessage {
		for _, m := range wire.MembersOf(raw, whole(raw)) {
			if v := raw[m.Value.Start:m.Value.End]; (m.Name == "tool_calls" || m.Name == "function_call") && set(v) {
				return "", wire.Unreadablef("a message with %s", m.Name)
			}
		}
	}
	if known {
		return c, nil
	}
	if c = classOf(f.kind); c == classCall || f.hasArguments || f.action != nil || f.operation != nil || f.hasCallID && c != classOutput {
		return "", wire.Unreadablef("an item of unknown type %.40q that looks like a call", f.kind)
	}
	return c, nil
}

// newCall checks a whole call of an answer.
func newCall(index int, f *fields, ids map[string]bool) (wire.Call, error) {
	c := wire.Call{Index: index, ID: f.answers()}
	c.Name, c.Args = f.call()
	if c.ID != "" && ids[c.ID] {
		return c, wire.Unreadablef("a repeated call id %.80q", c.ID)
	}
	ids[c.ID] = true
	switch f.kind {
	case "function_call", "mcp_approval_request":
		if f.name == "" {
			return c, wire.Unreadablef("a call without a name")
		}
		if len(f.arguments) > 0 && f.arguments[0] != '"' && f.arguments[0] != '{' {
			return c, wire.Unreadablef("arguments that are no text")
		}
		if len(c.Args) == 0 { // how some models call without any
			return c, nil
		}
		return c, c.Complete()
	case "custom_tool_call":
		if f.name == "" {
			return c, wire.Unreadablef("a call without a name")
		}
		if c.Args[0] != '"' {
			return c, wire.Unreadablef("the input of a call is no text")
		}
	case "local_shell_call", "shell_call", "apply_patch_call", "computer_call":
		if len(c.Args) == 0 || c.Args[0] != '{' && c.Args[0] != '[' {
			return c, wire.Unreadablef("a %s that does not say what to do", f.kind)
		}
	}
	return c, nil
}

// readUsage takes over the counts of a usage object. Input is what the cache did
// not serve, as in the other formats.
func readUsage(u *lemma.Usage, raw []byte) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return false
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
	cached := n(member(member(raw, "input_tokens_details"), "cached_tokens"))
	*u = lemma.Usage{Input: max(n(member(raw, "input_tokens"))-cached, 0), Output: n(member(raw, "output_tokens")), CacheRead: cached}
	return true
}

// Remembers reports that the upstream keeps the response, as it does unless the
// request says store: false, or goes on from one that it kept.
func (Adapter) Remembers(r *wire.Request) bool {
	keeps := true
	for _, m := range r.Members {
		raw := r.Body[m.Value.Start:m.Value.End]
		switch m.Name {
		case "store":
			keeps = string(raw) != "false"
		case "previous_response_id", "conversation":
			if set(raw) {
				return true
			}
		}
	}
	return keeps
}

// Without takes items out, and the reasoning that led to nothing else.
func (Adapter) Without(answer []byte, calls []wire.Call) ([]byte, error) {
	p := readResponse(answer)
	if len(p.output) == 0 || p.output[0] != '[' {
		return nil, fmt.Errorf("take calls out: %w: no output", wire.ErrUnreadable)
	}
	var kinds []class
	var gone []bool
	for i, e := range wire.ElementsOf(p.output, whole(p.output)) {
		f := readFields(p.output[e.Start:e.End])
		kinds, gone = append(kinds, classOf(f.kind)), append(gone, wire.HasIndex(calls, i))
	}
	gone = leadsGone(kinds, gone)
	return wire.Pick(answer, p.output0, func(i int, _ []byte) bool { return !gone[i] }), nil
}

// Note adds text as a message of its own: the last one, or where the answer has
// calls before the first of them and the reasoning that led to it.
func (Adapter) Note(answer []byte, note string) ([]byte, error) {
	p := readResponse(answer)
	if len(p.output) == 0 || p.output[0] != '[' {
		return nil, fmt.Errorf("add note: %w: no output", wire.ErrUnreadable)
	}
	list := wire.ElementsOf(p.output, whole(p.output))
	at, text := len(list), false
	for i, e := range list {
		f := readFields(p.output[e.Start:e.End])
		c := classOf(f.kind)
		text = text || c == classMessage && texts(f.content) != ""
		if c == classCall {
			for at = i; at > 0; at-- {
				if f := readFields(p.output[list[at-1].Start:list[at-1].End]); classOf(f.kind) != classReasoning {
					break
				}
			}
			break
		}
	}
	if text {
		note = paragraph + note
	}
	item := messageItem(messageID(p.id, len(list), note), note)
	place, with := p.output0.Start+1, append([]byte(nil), item...)
	switch {
	case at > 0:
		place, with = p.output0.Start+list[at-1].End, append([]byte{','}, item...)
	case len(list) > 0:
		with = append(with, ',')
	}
	return wire.Apply(answer, []wire.Edit{{At: wire.Span{Start: place, End: place}, With: with}}), nil
}
