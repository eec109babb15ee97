package classify

import (
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
)

// Bounds of what is remembered: one body for each of the newest conversations,
// and the newest calls without a result.
const (
	maxConversations = 1024
	maxOpenCalls     = 1024
)

// place is whose requests belong together: those of one process and credential.
type place struct {
	pid  int
	cred string
}

type talk struct {
	place
	conversation string
}

type openCall struct {
	place
	id string
	route.Call
}

// memory is what a daemon would remember: bodies whose turn may be unfinished,
// and calls that have no result yet. It implements route.Prior by place.
type memory struct {
	pending map[talk][]byte
	order   []talk
	calls   []openCall // newest first
}

type prior struct {
	m *memory
	p place
}

func (m *memory) prior(p place) route.Prior { return prior{m, p} }

// Pending implements route.Prior.
func (p prior) Pending(conversation string) [][]byte {
	if b := p.m.pending[talk{p.p, conversation}]; b != nil {
		return [][]byte{b}
	}
	return nil
}

// OpenCalls implements route.Prior.
func (p prior) OpenCalls() []route.Call {
	var out []route.Call
	for _, c := range p.m.calls {
		if c.place == p.p {
			out = append(out, c.Call)
		}
	}
	return out
}

// saw takes a request in. An answer that is not known leaves the turn open: an
// equal body is its resend then.
func (m *memory) saw(p place, r *wire.Request, rt route.Route, a *Answer) {
	if m.pending == nil {
		m.pending = map[talk][]byte{}
	}
	for i := range r.Items {
		for k := range r.Items[i].Parts {
			if part := &r.Items[i].Parts[k]; part.Kind == wire.ToolResult {
				m.answered(p, part.CallID)
			}
		}
	}
	if rt.Kind.Side() || rt.Kind == route.Unknown {
		return
	}
	at := talk{p, rt.Conversation}
	if _, again := m.pending[at]; !again {
		m.order = append(m.order, at)
		if len(m.order) > maxConversations {
			delete(m.pending, m.order[0])
			m.order = m.order[1:]
		}
	}
	m.pending[at] = r.Body
	if a == nil {
		return
	}
	if !a.Failed {
		m.pending[at] = nil
	}
	for _, c := range a.Calls {
		m.calls = append([]openCall{{p, c.ID, route.Call{Conversation: rt.Conversation, Name: c.Name, Args: c.Args}}}, m.calls...)
	}
	if len(m.calls) > maxOpenCalls {
		m.calls = m.calls[:maxOpenCalls]
	}
}

func (m *memory) answered(p place, id string) {
	for k := range m.calls {
		if m.calls[k].place == p && m.calls[k].id == id {
			m.calls = append(m.calls[:k], m.calls[k+1:]...)
			return
		}
	}
}

// Learn fills in the answers that later requests tell of: a history that has
// grown shows what was said, an equal body that the answer before never came
// whole. What is known already stays.
func Learn(qs []Request) {
	type seen struct {
		index, items int
		body         []byte
	}
	last := map[talk]seen{}
	for i := range qs {
		q := &qs[i]
		v, rt, p, ok := view(*q)
		if !ok || rt.Kind.Side() {
			continue
		}
		at := talk{p, rt.Conversation}
		before, had := last[at]
		last[at] = seen{i, len(v.Items), v.Body}
		if !had || qs[before.index].Answer != nil {
			continue
		}
		switch {
		case route.BodyEqual(before.body, v.Body):
			qs[before.index].Answer = &Answer{Failed: true}
		case len(v.Items) > before.items:
			a := &Answer{}
			for n := before.items; n < len(v.Items) && v.Items[n].Role == "assistant"; n++ {
				for _, part := range v.Items[n].Parts {
					if part.Kind == wire.ToolCall {
						a.Calls = append(a.Calls, Call{part.CallID, part.Name, part.Args})
					}
				}
			}
			qs[before.index].Answer = a
		}
	}
}
