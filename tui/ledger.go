package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/rows"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// facts is screen 2: what is known of this system.
type facts struct {
	list   *rows.List[factRow]
	query  ipc.FactQuery
	filter string
	pace   pace
}

// factRow is a fact, cleaned for its row.
type factRow struct {
	lemma.Fact
	badge, name, value, scope safe
	expires                   time.Time
	ttl                       time.Duration
}

func newFacts() *facts {
	s := &facts{list: rows.New(func(r factRow) string { return r.ID }), pace: pace{gap: 250 * time.Millisecond}}
	s.list.Reset()
	return s
}

func (*facts) tab() (rune, safe) { return '2', "Ledger" }

func (*facts) place() place { return inLedger }

func (s *facts) mover() mover { return s.list }

func readFact(f lemma.Fact) factRow {
	subject, _, _ := strings.Cut(f.Subject, "@")
	r := factRow{Fact: f, badge: tidy(words.Provenance(f.Provenance)), name: join(" ", tidy(subject), tidy(f.Key)), value: tidy(f.Value + f.Unit), scope: scopeWord(f.Scope)}
	if f.Key == "" || f.Value == "" {
		r.name, r.value = "", tidy(f.Claim)
	}
	if f.ExpiresAt != nil {
		r.expires, _ = words.Time(*f.ExpiresAt)
	}
	if f.TTLSeconds != nil {
		r.ttl = time.Duration(*f.TTLSeconds) * time.Second
	}
	return r
}

func (s *facts) open(*Model) tea.Cmd { return nil }

func (s *facts) linked(_ *Model, fresh bool) tea.Cmd {
	if fresh {
		s.list.Reset()
	}
	s.pace.dirty = true
	return nil
}

func (s *facts) news(_ *Model, b *batch) { s.pace.dirty = s.pace.dirty || touched(b, "fact.") }

func (s *facts) settle(m *Model, h int) tea.Cmd {
	list, _ := split(h)
	s.list.Resize(list - 1)
	q := s.query
	return follow(m, s.list, &s.pace, "facts", func(ctx context.Context, p ipc.Page) (ipc.List[lemma.Fact], error) {
		q.Page = p
		return m.d.Facts(ctx, q)
	}, readFact)
}

// fresh is what is left of a fact's life: a bar, words, and when they change.
func (r factRow) fresh(now time.Time) (bar, left safe, next time.Time) {
	if r.Status != lemma.StatusActive {
		return "", "", next
	}
	if r.expires.IsZero() {
		return "▮▮▮▮▮", "for good", next
	}
	d := r.expires.Sub(now)
	if d <= 0 {
		return "▯▯▯▯▯", "over", next
	}
	unit, word := time.Minute, "min"
	switch {
	case d > 48*time.Hour:
		unit, word = 24*time.Hour, "days"
	case d > 2*time.Hour:
		unit, word = time.Hour, "h"
	}
	n := (d + unit - 1) / unit
	next = r.expires.Add(-(n - 1) * unit)
	full := 5
	if r.ttl > 0 && r.ttl > d {
		step := r.ttl / 5
		full = int((d + step - 1) / max(step, 1))
		if at := r.expires.Add(-time.Duration(full-1) * step); at.Before(next) {
			next = at
		}
	}
	full = max(1, min(full, 5))
	return safe(strings.Repeat("▮", full) + strings.Repeat("▯", 5-full)), safe(fmt.Sprintf("%d %s", n, word)), next
}

func (s *facts) wake(m *Model) (time.Time, bool) {
	at, ok := s.pace.wake()
	now := m.now()
	for i := range m.h {
		r, here := s.list.At(s.list.Offset() + i)
		if !here {
			break
		}
		if _, _, next := r.fresh(now); next.After(now) && (!ok || next.Before(at)) {
			at, ok = next, true
		}
	}
	return at, ok
}

// state is a fact's status with a glyph and a word.
func (m *Model) factState(r factRow, now time.Time) (safe, theme.Style) {
	switch r.Status {
	case lemma.StatusStale:
		return "◌ stale", m.look.Dim
	case lemma.StatusContradicted:
		return "✗ contradicted", m.look.Bad
	case lemma.StatusInvalidated:
		return "⊘ invalidated", m.look.Bad
	}
	bar, left, _ := r.fresh(now)
	return bar + " " + left, m.look.Plain
}

func (s *facts) draw(m *Model, c *canvas, h int) {
	stop := c.lines + h
	list, details := split(h)
	now := m.now()
	name, scope, state := min(22, c.w*2/5-6), 8, 14
	switch {
	case c.w < wideW:
		scope = 0
	case c.w >= 120:
		name, scope = 40, 16
	}
	value := c.w - 2 - 11 - name - 2 - scope - state - 3
	if scope > 0 {
		value -= 2
	}
	c.gap(2)
	m.filterLine(c, s.filter)
	c.cell("from", 11, m.look.Dim)
	c.cell("what", name, m.look.Dim)
	c.gap(2)
	c.cell("value", value, m.look.Dim)
	c.gap(2)
	if scope > 0 {
		c.cell("scope", scope, m.look.Dim)
		c.gap(2)
	}
	c.text("fresh", m.look.Dim)
	c.end()
	n := 0
	c.b, n = s.list.View(c.b, func(dst []byte, r factRow, here, selected bool) []byte {
		c.b, c.left = dst, c.w
		st := m.look.Plain
		if selected {
			c.text("▸ ", m.look.Accent)
			st = m.look.Strong
		} else {
			c.gap(2)
		}
		if !here {
			c.text("…", m.look.Dim)
			return c.b
		}
		c.cell(r.badge, 11, m.provenanceStyle(r.Provenance))
		if r.name == "" { // a sentence, not a value
			c.cell(r.value, name+2+value, st)
		} else {
			c.cell(r.name, name, st)
			c.gap(2)
			c.cell(r.value, value, st)
		}
		c.gap(2)
		if scope > 0 {
			c.cell(r.scope, scope, m.look.Dim)
			c.gap(2)
		}
		state, sst := m.factState(r, now)
		c.text(state, sst)
		return c.b
	})
	c.lines += n
	c.left = c.w
	if s.list.Len() == 0 {
		why := safe("nothing is known yet: sensors write facts when a turn needs them, n tells one")
		if s.filter != "" {
			why = "nothing fits the filter"
		}
		m.none(c, !s.list.Complete(), why)
	}
	c.pad(stop - h + list)
	if details > 0 {
		m.rule(c, "")
		if r, ok := s.list.Selected(); ok {
			m.paras(c, stop, s.paras(m, r))
		}
	}
	c.pad(stop)
}

func (s *facts) paras(m *Model, r factRow) []para {
	look := m.look
	state, st := m.factState(r, m.now())
	ps := []para{{prefix: "claim    ", pst: look.Dim, text: tidy(r.Claim), st: look.Strong}}
	if r.Value != "" {
		ps = append(ps, para{prefix: "value    ", pst: look.Dim, text: join("  ", tidy(words.Quote(r.Value+r.Unit)), tidy(r.Type))})
	}
	ps = append(ps, []para{
		{prefix: "from     ", pst: look.Dim, text: join(" · ", r.badge, tidy(r.Source.Kind), tidy(r.Source.Origin), tidy(r.Source.Ref)), st: m.provenanceStyle(r.Provenance)},
		{prefix: "state    ", pst: look.Dim, text: state, st: st},
		{prefix: "since    ", pst: look.Dim, text: m.stamp(r.CreatedAt)},
		{prefix: "where    ", pst: look.Dim, text: join(" · ", tidy(r.Scope), tidy(r.Subject), tidy(r.Sensitivity))},
		{prefix: "fact     ", pst: look.Dim, text: tidy(r.ID)},
	}...)
	if r.SupersededBy != nil {
		ps = append(ps, para{prefix: "replaced ", pst: look.Dim, text: "by " + tidy(*r.SupersededBy)})
	}
	return ps
}

func ledgerKeys() []binding {
	selected := func(m *Model) safe {
		if _, ok := m.ledger.list.Selected(); !ok {
			return "no fact is selected"
		}
		return ""
	}
	reachable := func(m *Model) safe {
		if !m.up {
			return "gettierd is away"
		}
		return ""
	}
	return []binding{
		{key: on("enter", "enter", "details"), in: inLedger, does: "all of a fact, and what its key was before", do: func(m *Model) tea.Cmd { return m.ledger.details(m) }, off: selected},
		{key: on("/", "/", "filter"), in: inLedger, does: "show only some: words, provenance:measured, status:active, scope:shop", do: func(m *Model) tea.Cmd { return m.ledger.find(m) }},
		{key: on("n", "n", "tell"), in: inLedger, does: "tell a fact that no sensor can measure", do: func(m *Model) tea.Cmd { return m.ledger.tell(m) }, off: reachable},
		{key: on("x", "x", "invalidate"), in: inLedger, does: "withdraw a fact, with a reason", do: func(m *Model) tea.Cmd { return m.ledger.invalidate(m) }, off: func(m *Model) safe {
			if why := first2(reachable(m), selected(m)); why != "" {
				return why
			}
			if r, _ := m.ledger.list.Selected(); r.Status == lemma.StatusInvalidated {
				return "it is withdrawn already"
			}
			return ""
		}},
		{key: on("w", "w", "known"), in: inLedger, does: "what persons wrote down for models to read", do: func(m *Model) tea.Cmd { return m.knowledge() }, off: reachable},
		{key: on("y", "y", "copy"), in: inLedger, does: "copy the value", do: func(m *Model) tea.Cmd {
			r, _ := m.ledger.list.Selected()
			m.clip(string(r.value))
			m.say("copied: "+r.value, m.look.Dim)
			return nil
		}, off: selected},
	}
}

// find filters as one types.
func (s *facts) find(m *Model) tea.Cmd {
	before := s.filter
	apply := func(m *Model, text string) safe {
		q, why := factFilter(text)
		if why == "" {
			s.filter, s.query = strings.TrimSpace(text), q
			s.list.Reset()
		}
		return why
	}
	m.editor = &editor{prompt: "filter", send: "keep", runes: []rune(before), pos: len([]rune(before)),
		live: func(m *Model, text string) tea.Cmd { apply(m, text); return nil },
		done: func(m *Model, text string) (tea.Cmd, safe) { return nil, apply(m, text) },
		left: func(m *Model) tea.Cmd { apply(m, ""); return nil }}
	return nil
}

// factFilter reads what a person types behind /.
func factFilter(text string) (q ipc.FactQuery, why safe) {
	var rest []string
	for _, w := range strings.Fields(text) {
		name, value, ok := strings.Cut(w, ":")
		if !ok || value == "" && name != "" {
			if !ok {
				rest = append(rest, w)
			}
			continue
		}
		switch name {
		case "provenance":
			if p := lemma.Provenance(value); p != lemma.Measured && p != lemma.Told && p != lemma.Believed {
				why = "provenance is measured, told or believed"
			}
			q.Provenance = value
		case "status":
			switch lemma.FactStatus(value) {
			case lemma.StatusActive, lemma.StatusStale, lemma.StatusContradicted, lemma.StatusInvalidated:
			default:
				why = "status is active, stale, contradicted or invalidated"
			}
			q.Status = value
		case "scope":
			if value != "host" && !strings.HasPrefix(value, "project:") {
				value = "project:" + value
			}
			q.Scope = value
		default:
			rest = append(rest, w)
		}
	}
	q.Text = strings.Join(rest, " ")
	return q, why
}

// details shows a fact and the ones that its key had before.
func (s *facts) details(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	p := &pager{title: "fact " + tidy(words.ShortID(r.ID))}
	p.set(s.paras(m, r))
	m.pager = p
	return m.ask(callLimit, func(ctx context.Context) then {
		l, err := m.d.Facts(ctx, ipc.FactQuery{Scope: r.Scope, Text: r.Subject, Page: ipc.Page{Limit: pageSize}})
		return func(m *Model) tea.Cmd {
			ps := append(s.paras(m, r), para{}, para{text: "what this key was", st: m.look.Strong})
			for _, f := range l.Items {
				if f.Subject != r.Subject || f.Key != r.Key {
					continue
				}
				o := readFact(f)
				state, st := m.factState(o, m.now())
				ps = append(ps, para{prefix: pad(m.stamp(f.CreatedAt), 18), pst: m.look.Dim, text: join("  ", o.value, state), st: st})
			}
			if err != nil {
				ps = append(ps, para{text: "could not be read: " + reason(err), st: m.look.Bad})
			}
			p.set(ps)
			return nil
		}
	})
}

// tell writes a fact of the person's own.
func (s *facts) tell(m *Model) tea.Cmd {
	scope := "host"
	if r, ok := s.list.Selected(); ok && r.Scope != "" {
		scope = r.Scope
	}
	m.editor = &editor{prompt: "true for " + scopeWord(scope), send: "tell", done: func(m *Model, text string) (tea.Cmd, safe) {
		text = strings.TrimSpace(text)
		if text == "" {
			return nil, "a fact is a sentence"
		}
		return m.ask(callLimit, func(ctx context.Context) then {
			_, err := m.d.Tell(ctx, ipc.Tell{Scope: scope, Claim: text})
			return func(m *Model) tea.Cmd {
				if err != nil {
					m.fail("not written", err)
					return nil
				}
				s.pace.dirty = true
				m.say("≈ told for "+scopeWord(scope)+": "+tidy(text), m.look.Told)
				return nil
			}
		}), ""
	}}
	return nil
}

// invalidate withdraws a fact.
func (s *facts) invalidate(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	m.editor = &editor{prompt: "why " + first2(r.name, "this") + " is wrong", send: "withdraw", done: func(m *Model, text string) (tea.Cmd, safe) {
		text = strings.TrimSpace(text)
		if text == "" {
			return nil, "it needs a reason"
		}
		return m.ask(callLimit, func(ctx context.Context) then {
			_, err := m.d.InvalidateFact(ctx, r.ID, ipc.Invalidation{Reason: text})
			return func(m *Model) tea.Cmd {
				if err != nil {
					m.fail("not withdrawn", err)
					return nil
				}
				s.pace.dirty = true
				m.say("⊘ withdrawn: "+first2(r.name, r.value), m.look.Plain)
				return nil
			}
		}), ""
	}}
	return nil
}
