package tui

import (
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// Below minW×minH one line says the state; below bareH no rules are drawn, and
// below wideW the tabs are their numbers.
const (
	minW, minH = 40, 12
	bareH      = 16
	wideW      = 60
)

// chrome is how many lines stand around the body.
func (m *Model) chrome() int {
	n := 3 // header, status, keys
	if m.h >= bareH {
		n += 2
	}
	if m.o.Footer != "" {
		n++
	}
	return n
}

// body is the height of a screen.
func (m *Model) body() int { return max(0, m.h-m.chrome()) }

// View draws the frame: exactly as many lines as the terminal has, none of them
// wider than it is.
func (m *Model) View() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	c := &m.frame
	c.reset(m.w)
	if m.w < minW || m.h < minH {
		m.oneLine(c)
		c.pad(m.h)
		return m.finish(c)
	}
	m.header(c)
	rules := m.h >= bareH
	if rules {
		m.rule(c, m.title())
	}
	top := c.lines
	if m.pager != nil {
		if !rules {
			c.gap(1)
			c.line(m.pager.title, m.look.Strong)
		}
		m.pager.draw(m, c, top+m.body()-c.lines)
	} else {
		m.front().draw(m, c, m.body())
	}
	c.pad(top + m.body())
	if rules {
		m.rule(c, "")
	}
	if m.o.Footer != "" {
		c.gap(1)
		c.line(tidy(m.o.Footer), m.look.Dim)
	}
	m.statusLine(c)
	m.bottom(c)
	return m.finish(c)
}

// finish makes the frame's string; the last line has no end.
func (m *Model) finish(c *canvas) string {
	b := c.b
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	return string(b)
}

// title is what stands in the upper rule.
func (m *Model) title() safe {
	if m.pager != nil {
		return m.pager.title
	}
	return ""
}

func (m *Model) rule(c *canvas, title safe) {
	if title != "" {
		c.text("─ ", m.look.Dim)
		c.text(title, m.look.Strong)
		c.gap(1)
	}
	c.fill(m.look.Dim)
	c.end()
}

// oneLine is all that a tiny terminal shows.
func (m *Model) oneLine(c *canvas) {
	switch n := len(m.holds.list); {
	case !m.up:
		c.text("○ ", m.look.Bad)
	case n > 0:
		c.text(safe("?"+words.Thousands(n))+" ", m.look.Ask)
	default:
		c.text("● ", m.look.Good)
	}
	c.text("gettier ", m.look.Strong)
	switch {
	case !m.up && !m.connected && m.awayErr == nil:
		c.text("connecting", m.look.Dim)
	case !m.up:
		c.text("gettierd is away", m.look.Bad)
	case len(m.holds.list) > 0:
		c.text(safe(words.Count(len(m.holds.list), "hold", "holds"))+" wait", m.look.Ask)
	default:
		c.text(tidy(m.status.Proxy), m.look.Dim)
	}
	if c.left > 24 {
		c.text(" · enlarge to 40×12", m.look.Dim)
	}
	c.end()
}

func (m *Model) header(c *canvas) {
	c.text(" gettier", m.look.Strong)
	c.gap(2)
	if n := len(m.holds.list); n > 0 {
		what := safe(words.Count(n, "hold", "holds"))
		if m.w < wideW {
			what = safe(words.Thousands(n))
		}
		c.text("?"+what, m.look.Ask)
		if m.w >= wideW {
			c.text(" · oldest "+m.holds.oldest(m.now()), m.look.Ask)
		}
	} else {
		c.text("no holds", m.look.Dim)
	}
	// The tabs stand behind column 34, or at the right end where that is nearer.
	n := 2
	for _, t := range m.tabs {
		n += width(t.name(m.w)) + 1
	}
	c.gap(max(2, min(c.left-n, 34-(m.w-c.left))))
	for i, t := range m.tabs {
		if i == m.at {
			c.text("[", m.look.Accent)
			c.text(t.name(m.w), m.look.Accent)
			c.text("]", m.look.Accent)
		} else {
			c.text(t.name(m.w), m.look.Plain)
		}
		c.gap(1)
	}
	c.end()
}

// tab is a screen's name in the header.
type tab struct{ key, long safe }

func (t tab) name(w int) safe {
	if w >= wideW+10 {
		return t.long
	}
	return t.key
}

// statusLine says how the daemon is.
func (m *Model) statusLine(c *canvas) {
	c.gap(1)
	s := m.status
	switch {
	case m.notice != "" && m.editor != nil:
		c.text(m.notice, m.noticeAs)
		c.end()
		return
	case !m.up && m.awayErr == nil:
		c.text("○ connecting", m.look.Dim)
		c.end()
		return
	case !m.up:
		c.text("○ ", m.look.Bad)
		if m.connected {
			c.text("away since "+safe(m.awayAt.Local().Format("15:04:05"))+" · ", m.look.Bad)
		}
		c.text(reason(m.awayErr), m.look.Bad)
		c.text(" · looking for it", m.look.Dim)
		c.end()
		return
	}
	add := func(text safe, st theme.Style) {
		c.gap(2)
		c.text(text, st)
	}
	c.text("● ", m.look.Good)
	c.text(tidy(s.Proxy), m.look.Plain)
	if s.Mode != "" && s.Mode != "ask" {
		add(tidy(s.Mode), m.look.Ask)
	}
	add("chain "+safe(words.Thousands(m.head)), m.look.Plain)
	switch v := m.audit.verified; {
	case v == nil:
	case v.OK:
		c.text(" ✓", m.look.Good)
	default:
		c.text(" ✗ damaged", m.look.Bad)
	}
	if root := s.Chain.Root; root != "" && m.w >= wideW {
		c.gap(1)
		c.text(tidy(root[:min(4, len(root))]), m.look.Dim)
		c.text("…", m.look.Dim)
	}
	r := s.Registry
	add("sensors "+safe(words.Thousands(r.Sensors)), m.look.Plain)
	if r.Pending > 0 {
		add(safe(words.Thousands(r.Pending))+" pending", m.look.Ask)
	}
	if r.Broken+len(r.Problems) > 0 {
		add("✗ "+safe(words.Thousands(max(r.Broken, len(r.Problems))))+" broken", m.look.Bad)
	}
	if n := len(s.Config.Pending); n > 0 {
		add("config pending", m.look.Ask)
	}
	if s.Config.Error != "" {
		add("✗ config", m.look.Bad)
	}
	if s.PolicyVersion != "" {
		add("policy "+tidy(s.PolicyVersion), m.look.Dim)
	}
	if a := s.Counters["answers"]; a > 0 {
		add("waived "+safe(words.Thousands(100*s.Counters["waived"]/a))+" %", m.look.Dim)
	}
	if n := len(s.Warnings); n > 0 {
		add("! "+tidy(s.Warnings[0]), m.look.Ask)
	}
	c.end()
}

// bottom is the line of keys, or what takes its place.
func (m *Model) bottom(c *canvas) {
	switch {
	case m.editor != nil: // a message stands on the line above
		m.editor.draw(m, c)
	case m.notice != "":
		c.gap(1)
		c.text(m.notice, m.noticeAs)
	default:
		m.helpLine(c, false)
	}
	c.end()
}

// styles by state: colour stands beside the glyph and the word, never alone.

func (m *Model) decisionStyle(d lemma.Decision) theme.Style {
	switch d {
	case lemma.DecCaught, lemma.DecCorrected, lemma.DecBlocked, lemma.DecError:
		return m.look.Bad
	case lemma.DecHeld:
		return m.look.Ask
	case lemma.DecReleased, lemma.DecConfirmedByUser:
		return m.look.Good
	}
	return m.look.Dim
}

func (m *Model) verdictStyle(v lemma.Verdict) theme.Style {
	switch v {
	case lemma.Contradicted:
		return m.look.Bad
	case lemma.Confirmed:
		return m.look.Good
	case lemma.VerdictTold:
		return m.look.Told
	}
	return m.look.Ask
}

func (m *Model) provenanceStyle(p lemma.Provenance) theme.Style {
	switch p {
	case lemma.Measured:
		return m.look.Good
	case lemma.Told:
		return m.look.Told
	}
	return m.look.Dim
}

func (m *Model) sensorStyle(state string) theme.Style {
	switch state {
	case ipc.SensorApproved:
		return m.look.Good
	case ipc.SensorBroken, ipc.SensorBackedOff:
		return m.look.Bad
	}
	return m.look.Ask
}

// decisionWord is a decision in at most eleven columns.
func decisionWord(d lemma.Decision) safe {
	switch d {
	case lemma.DecReleasedUnverified:
		return "· gaps"
	case lemma.DecConfirmedByUser:
		return "✓ confirmed"
	case lemma.DecPassThrough:
		return "· passed"
	}
	return tidy(words.Decision(d))
}

// scopeWord is a scope without its prefix.
func scopeWord(s string) safe { return tidy(words.Scope(s)) }

// wordsOf shows the words of a list.
func wordsOf(s []string) safe { return tidy(strings.Join(s, ", ")) }
