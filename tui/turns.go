package tui

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/rows"
	"gettier.dev/gettierd/tui/story"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// turns is screen 3: what goes through, and the story of each.
type turns struct {
	list   *rows.List[turnRow]
	pace   pace
	query  ipc.TurnQuery
	filter string

	strips map[string]strip
	asked  string // turn whose entries are being read for its strip
	newest string // opened since the program began
	opened string // whose story was opened last

	detail     ipc.TurnDetail // of the selected row
	detailPace pace
}

// stripsMost bounds how many strips are remembered.
const stripsMost = 4096

type turnRow struct {
	ipc.Turn
	at, agent, scope, prompt, word, took safe
}

func newTurns() *turns {
	s := &turns{list: rows.New(func(r turnRow) string { return r.ID }), pace: pace{gap: 250 * time.Millisecond}, detailPace: pace{gap: 200 * time.Millisecond}, strips: map[string]strip{}}
	s.list.Reset()
	return s
}

func (*turns) tab() (rune, safe) { return '3', "Turns" }

func (*turns) place() place { return inTurns }

func (s *turns) mover() mover { return s.list }

func (s *turns) open(*Model) tea.Cmd { return nil }

func (s *turns) linked(_ *Model, fresh bool) tea.Cmd {
	if fresh {
		s.list.Reset()
		s.strips, s.detail = map[string]strip{}, ipc.TurnDetail{}
	}
	s.pace.dirty = true
	return nil
}

func (s *turns) news(m *Model, b *batch) {
	if b.lost {
		s.pace.dirty, s.strips = true, map[string]strip{}
	}
	for _, e := range b.entries {
		if e.Turn == "" {
			continue
		}
		s.pace.dirty = true
		if e.Kind == string(lemma.KTurnOpened) {
			s.newest = e.Turn
			if len(s.strips) >= stripsMost {
				s.strips = map[string]strip{}
			}
			s.strips[e.Turn] = strip{}.add(e)
		} else if p, ok := s.strips[e.Turn]; ok {
			s.strips[e.Turn] = p.add(e)
		}
		if e.Turn == s.detail.ID {
			s.detailPace.dirty = true
		}
		if p := m.pager; p != nil && p.turn == e.Turn {
			p.pace.dirty = true
		}
	}
}

func (m *Model) readTurn(t ipc.Turn) turnRow {
	r := turnRow{Turn: t, at: m.stamp(t.OpenedAt), agent: first2(tidy(t.Agent), "unknown"), scope: scopeWord(t.Scope), prompt: tidy(words.Asked(t.RequestKind, t.Prompt)), word: decisionWord(t.Decision)}
	if at, ok := words.Time(t.OpenedAt); ok {
		r.at = safe(at.Local().Format("15:04:05"))
	}
	if d, ok := words.Between(t.OpenedAt, t.ClosedAt); ok {
		r.took = safe(words.Millis(d.Milliseconds()))
	}
	return r
}

func (s *turns) settle(m *Model, h int) tea.Cmd {
	list, details := split(h)
	s.list.Resize(list - 1)
	q := s.query
	cmds := []tea.Cmd{follow(m, s.list, &s.pace, "turns", func(ctx context.Context, p ipc.Page) (ipc.List[ipc.Turn], error) {
		q.Page = p
		return m.d.Turns(ctx, q)
	}, m.readTurn)}
	if m.up && m.pager == nil {
		cmds = append(cmds, s.readStrip(m))
		if r, ok := s.list.Selected(); ok && details > 0 {
			if r.ID != s.detail.ID && !s.detailPace.busy {
				s.detailPace.dirty, s.detailPace.last = true, time.Time{}
			}
			if s.detailPace.start(m.now()) {
				cmds = append(cmds, s.readDetail(m, r.ID))
			}
		}
	}
	return tea.Batch(cmds...)
}

// readStrip reads the entries of one shown turn whose strip is not known: those
// that were opened before this program was.
func (s *turns) readStrip(m *Model) tea.Cmd {
	if s.asked != "" || m.w < wideW {
		return nil
	}
	for i := range m.h {
		r, ok := s.list.At(s.list.Offset() + i)
		if !ok {
			return nil
		}
		if _, known := s.strips[r.ID]; known {
			continue
		}
		s.asked = r.ID
		return m.ask(callLimit, func(ctx context.Context) then {
			d, err := m.d.Turn(ctx, r.ID)
			return func(*Model) tea.Cmd {
				s.asked = ""
				if err != nil || m.ctx.Err() != nil {
					s.strips[r.ID] = strip{} // not asked for again
					return nil
				}
				if len(s.strips) >= stripsMost {
					s.strips = map[string]strip{}
				}
				s.strips[r.ID] = stripOf(d.Entries)
				return nil
			}
		})
	}
	return nil
}

func (s *turns) readDetail(m *Model, id string) tea.Cmd {
	return m.ask(callLimit, func(ctx context.Context) then {
		d, err := m.d.Turn(ctx, id)
		return func(*Model) tea.Cmd {
			s.detailPace.busy = false
			if err != nil {
				d = ipc.TurnDetail{Turn: ipc.Turn{ID: id}}
			} else {
				s.strips[id] = stripOf(d.Entries)
			}
			s.detail = d
			return nil
		}
	})
}

func (s *turns) wake(m *Model) (time.Time, bool) {
	at, ok := s.pace.wake()
	if d, ok2 := s.detailPace.wake(); ok2 && (!ok || d.Before(at)) {
		return d, true
	}
	return at, ok
}

const legend = "route·inject·declare·verify·hold·ground·actions"

func (s *turns) draw(m *Model, c *canvas, h int) {
	stop := c.lines + h
	list, details := split(h)
	at, agent, scope, word, took := 8, 11, 8, 11, 0
	strips := c.w >= wideW
	switch {
	case c.w >= 120:
		agent, scope, took = 16, 16, 7
	case c.w >= 100:
		took = 7
	case c.w < 52:
		agent, scope = 0, 0
	}
	prompt := c.w - 2 - at - 2 - word - 2
	for _, n := range []int{agent, scope, took} {
		if n > 0 {
			prompt -= n + 2
		}
	}
	if strips {
		prompt -= stripWidth + 2
	}
	head := m.look.Dim
	c.gap(2)
	m.filterLine(c, s.filter)
	c.cell("at", at+2, head)
	if agent > 0 {
		c.cell("agent", agent+2, head)
	}
	if scope > 0 {
		c.cell("scope", scope+2, head)
	}
	c.cell("asked", prompt+2, head)
	switch {
	case strips && c.left > len(legend)+2:
		c.text(legend, head)
	case strips:
		c.text("stages", head)
	}
	c.end()
	n := 0
	c.b, n = s.list.View(c.b, func(dst []byte, r turnRow, here, selected bool) []byte {
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
		c.cell(r.at, at, m.look.Dim)
		c.gap(2)
		if agent > 0 {
			c.cell(r.agent, agent, st)
			c.gap(2)
		}
		if scope > 0 {
			c.cell(r.scope, scope, m.look.Dim)
			c.gap(2)
		}
		c.cell(r.prompt, prompt, st)
		c.gap(2)
		if strips {
			s.strips[r.ID].draw(m, c)
			c.gap(2)
		}
		c.cell(r.word, word, m.decisionStyle(r.Decision))
		if took > 0 {
			c.gap(2)
			c.flush(r.took, took, m.look.Dim)
		}
		return c.b
	})
	c.lines += n
	c.left = c.w
	if s.list.Len() == 0 {
		why := safe("no turns yet: point an agent's base URL at the proxy")
		if s.filter != "" {
			why = "nothing fits the filter"
		}
		m.none(c, !s.list.Complete(), why)
	}
	c.pad(stop - h + list)
	if details > 0 {
		s.drawRule(m, c)
		if r, ok := s.list.Selected(); ok {
			m.paras(c, stop, s.summary(m, r))
		}
	}
	c.pad(stop)
}

// drawRule is the line above the details; it explains the strip where the head
// of the list has no room for that.
func (s *turns) drawRule(m *Model, c *canvas) {
	if c.w < wideW {
		m.rule(c, "")
		return
	}
	for rest := width(legend) + 1; c.left > rest; {
		c.b = m.look.Dim.Append(c.b, "─")
		c.left--
	}
	c.text(legend, m.look.Dim)
	c.end()
}

// summary is a turn at a glance.
func (s *turns) summary(m *Model, r turnRow) []para {
	look := m.look
	id := "turn " + tidy(words.ShortID(r.ID))
	if s.detail.ID == r.ID && len(s.detail.Entries) > 0 {
		es := s.detail.Entries
		id = join("   ", id, safe(fmt.Sprintf("chain #%s–%s", words.Thousands(es[0].Seq), words.Thousands(es[len(es)-1].Seq))))
	}
	ps := []para{{text: first2(r.prompt, "no text"), st: look.Strong, right: id}}
	if s.detail.ID != r.ID {
		return ps
	}
	gaps := 0
	for _, v := range story.Verdicts(s.detail) {
		if v.Verdict == lemma.Unverifiable || v.Verdict == lemma.OutOfScope {
			gaps++
			continue
		}
		how := "assumed   "
		if v.Origin != "" && v.Origin != "declared" {
			how = pad2(v.Origin, 10)
		}
		ps = append(ps, para{prefix: safe(how), pst: look.Dim, text: tidy(v.Claim)})
		if v.Measured != "" {
			text := join("  ", tidy(words.Quote(v.Measured)), tidy(strings.TrimSpace(v.Sensor+" "+v.Key)))
			if v.MS >= 0 {
				text = join("  ", text, safe(words.Millis(v.MS)))
			}
			ps = append(ps, para{prefix: "measured  ", pst: look.Dim, text: text})
		}
		verdict := tidy(words.Verdict(v.Verdict))
		switch {
		case v.Rule != "":
			verdict = join("  ", verdict, "rule "+tidy(v.Rule))
		case v.Reason != "":
			verdict = join("  ", verdict, tidy(v.Reason))
		}
		ps = append(ps, para{prefix: "verdict   ", pst: look.Dim, text: verdict, st: m.verdictStyle(v.Verdict)})
	}
	if gaps > 0 {
		ps = append(ps, para{prefix: "gaps      ", pst: look.Dim, text: safe(words.Count(gaps, "claim", "claims")) + " that no sensor here can settle"})
	}
	for _, a := range story.Answers(s.detail) {
		ps = append(ps, para{prefix: "answered  ", pst: look.Dim, text: join("  ", tidy(string(a.Answer))+" by "+tidy(words.Person(a.By)), tidy(a.Text)), st: look.Told})
	}
	done := r.word
	if r.Error != "" {
		done = join("  ", done, tidy(r.Error))
	}
	ps = append(ps, para{prefix: "done      ", pst: look.Dim, text: join("  ", done, tidy(string(r.Class))), st: m.decisionStyle(r.Decision)})
	cost := safe("no extra tokens")
	if u := r.UsageOurs; (u != lemma.Usage{}) {
		cost = tidy(words.Tokens(u)) + " extra"
	}
	return append(ps, para{prefix: "cost      ", pst: look.Dim, text: join("  ", cost, r.took)})
}

// pad2 pads a word of a closed set.
func pad2(s string, w int) string { return fmt.Sprintf("%-*s", w, tidy(s)) }

func turnKeys() []binding {
	selected := func(m *Model) safe {
		if _, ok := m.turns.list.Selected(); !ok {
			return "no turn is selected"
		}
		return ""
	}
	return []binding{
		{key: on("enter", "enter", "story"), in: inTurns, does: "everything that happened in a turn, by stage", do: func(m *Model) tea.Cmd {
			r, _ := m.turns.list.Selected()
			return m.turns.story(m, r.ID)
		}, off: selected},
		{key: on("/", "/", "filter"), in: inTurns, does: "show only some: decision:caught, agent:codex, scope:shop", do: func(m *Model) tea.Cmd { return m.turns.find(m) }},
		{key: on("y", "y", "copy id"), in: inTurns, does: "copy the turn's id", do: func(m *Model) tea.Cmd {
			r, _ := m.turns.list.Selected()
			m.clip(r.ID)
			m.say("copied: "+tidy(r.ID), m.look.Dim)
			return nil
		}, off: selected},
		{key: on("e", "e", "evidence"), in: inStory, does: "show or hide what the sensors printed", do: func(m *Model) tea.Cmd {
			m.pager.evidence = !m.pager.evidence
			return m.turns.readStory(m, m.pager)
		}},
		{key: on("y", "y", "copy id"), in: inStory, does: "copy the turn's id", do: func(m *Model) tea.Cmd {
			m.clip(m.pager.turn)
			m.say("copied: "+tidy(m.pager.turn), m.look.Dim)
			return nil
		}},
	}
}

func (s *turns) find(m *Model) tea.Cmd {
	apply := func(m *Model, text string) safe {
		q, why := turnFilter(text)
		if why == "" {
			s.filter, s.query = strings.TrimSpace(text), q
			s.list.Reset()
		}
		return why
	}
	m.editor = &editor{prompt: "filter", send: "keep", runes: []rune(s.filter), pos: utf8.RuneCountInString(s.filter),
		done: func(m *Model, text string) (tea.Cmd, safe) { return nil, apply(m, text) },
		left: func(m *Model) tea.Cmd { apply(m, ""); return nil }}
	return nil
}

// turnFilter reads what a person types behind /.
func turnFilter(text string) (q ipc.TurnQuery, why safe) {
	for _, w := range strings.Fields(text) {
		name, value, _ := strings.Cut(w, ":")
		switch {
		case value == "":
			return q, "turns are chosen by decision:, agent:, scope: or conversation:"
		case name == "decision":
			q.Decision = value
			known := false
			for _, d := range lemma.Decisions {
				known = known || string(d) == value
			}
			if !known {
				return q, "there is no such decision: caught, held, released, …"
			}
		case name == "agent":
			q.Agent = value
		case name == "conversation":
			q.Conversation = value
		case name == "scope":
			if value != "host" && !strings.HasPrefix(value, "project:") {
				value = "project:" + value
			}
			q.Scope = value
		default:
			return q, "turns are chosen by decision:, agent:, scope: or conversation:"
		}
	}
	return q, ""
}

// story opens the whole story of a turn. It grows while the turn goes on.
func (s *turns) story(m *Model, id string) tea.Cmd {
	s.opened = id
	p := &pager{title: "turn " + tidy(words.ShortID(id)), in: inStory, turn: id, back: m.pager, pace: pace{gap: 200 * time.Millisecond}, read: s.readStory}
	p.set([]para{{text: "…", st: m.look.Dim}})
	m.pager = p
	return s.readStory(m, p)
}

func (s *turns) readStory(m *Model, p *pager) tea.Cmd {
	p.pace.busy, p.pace.dirty = true, false
	evidence := p.evidence
	return m.ask(callLimit, func(ctx context.Context) then {
		d, err := m.d.Turn(ctx, p.turn)
		o := story.Options{Stamp: func(ts string) string { return words.Stamp(ts, m.now()) }}
		if evidence {
			o.Evidence = func(sum string) []byte {
				b, err := m.d.Blob(ctx, sum)
				if err != nil {
					return []byte("not kept: " + string(reason(err)))
				}
				return b
			}
		}
		var lines []story.Line
		if err == nil {
			lines = story.Tell(d, o)
		}
		return func(m *Model) tea.Cmd {
			p.pace.busy = false
			if err != nil {
				p.set([]para{{text: "cannot be read: " + reason(err), st: m.look.Bad}})
				return nil
			}
			s.strips[d.ID] = stripOf(d.Entries)
			p.set(m.told(d, o, lines))
			return nil
		}
	})
}

// told lays out a story.
func (m *Model) told(d ipc.TurnDetail, o story.Options, lines []story.Line) []para {
	var out []para
	for i, h := range story.Head(d, o) {
		st := m.look.Plain
		if i == 0 {
			st = m.look.Strong
		}
		out = append(out, para{text: tidy(strings.TrimPrefix(h, "turn "+d.ID+"  ")), st: st})
	}
	out = append(out, para{})
	stage := ""
	for _, l := range lines {
		name, since := "", ""
		if l.Stage != stage {
			stage, name = l.Stage, l.Stage
			if l.Since >= 0 {
				since = "+" + words.Thousands(l.Since.Milliseconds())
			}
		}
		prefix := fmt.Sprintf("%-9s%8s  ", name, since)
		if m.w < wideW {
			prefix = fmt.Sprintf("%-9s", name)
		}
		text := tidy(l.Text)
		out = append(out, para{prefix: tidy(prefix), pst: m.look.Dim, text: text, st: m.glyphStyle(text), raw: strings.HasPrefix(string(text), "│")})
	}
	out = append(out, para{})
	for _, f := range story.Foot(d) {
		out = append(out, para{text: tidy(f), st: m.look.Dim})
	}
	return out
}

// glyphStyle is the colour that goes with the glyph a text begins with.
func (m *Model) glyphStyle(s safe) theme.Style {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(string(s), " "))
	switch r {
	case '✗', '⊘':
		return m.look.Bad
	case '✓':
		return m.look.Good
	case '?':
		return m.look.Ask
	case '≈':
		return m.look.Told
	case '│':
		return m.look.Dim
	}
	return m.look.Plain
}
