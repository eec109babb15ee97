package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/theme"
)

// para is one paragraph of a text: prefix stands before its first line, and the
// lines that it is folded into stand under each other behind it.
type para struct {
	prefix, text safe
	pst, st      theme.Style
	raw          bool // cut instead of folded: output of programs
	right        safe // at the right end; what is left of it is for text, cut
}

// pager shows a text in the place of a screen: a story, a change, the keys.
type pager struct {
	title safe
	in    place // where its own keys count, "" has none
	paras []para
	back  *pager // what lies below
	help  bool

	// read, when set, brings the text of a turn again after its chain has grown.
	read     func(m *Model, p *pager) tea.Cmd
	turn     string
	pace     pace
	evidence bool
	diff     *ipc.SensorDiff // what an approval here would pin
	packs    []ipc.Pack      // what a key here would take

	off, page int
	cols      int
	rows      []prow
	end       bool // stay at the end while the text grows
}

type prow struct {
	prefix, text, right safe
	pst, st             theme.Style
}

func (r prow) draw(m *Model, c *canvas) {
	c.gap(1)
	c.text(r.prefix, r.pst)
	if r.right == "" {
		c.line(r.text, r.st)
		return
	}
	c.cell(r.text, max(0, c.left-width(r.right)-3), r.st)
	c.flush(r.right, c.left-1, m.look.Dim)
	c.end()
}

func pagerKeys() []binding {
	to := func(f func(p *pager)) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd {
			f(m.pager)
			m.pager.off = max(0, min(m.pager.off, len(m.pager.rows)-m.pager.page))
			m.pager.end = m.pager.off == len(m.pager.rows)-m.pager.page
			return nil
		}
	}
	return []binding{
		{key: on("esc backspace", "esc", "back"), in: inPager, does: "back to where this was opened", do: (*Model).closePager},
		{key: on("down j", "↓ j", "down"), in: inPager, does: "one line down", do: to(func(p *pager) { p.off++ }), quiet: true},
		{key: on("up k", "↑ k", "up"), in: inPager, does: "one line up", do: to(func(p *pager) { p.off-- }), quiet: true},
		{key: on("pgdown ctrl+f ctrl+d", "pgdn", "more"), in: inPager, does: "a page down", do: to(func(p *pager) { p.off += max(1, p.page-1) }),
			hidden: func(m *Model) bool { return len(m.pager.rows) <= m.pager.page }},
		{key: on("pgup ctrl+b ctrl+u", "pgup", "page up"), in: inPager, does: "a page up", do: to(func(p *pager) { p.off -= max(1, p.page-1) }), quiet: true},
		{key: on("home g", "g", "begin"), in: inPager, does: "to the beginning", do: to(func(p *pager) { p.off = 0 }), quiet: true},
		{key: on("end G", "G", "end"), in: inPager, does: "to the end, and stay there while it grows", do: to(func(p *pager) { p.off = len(p.rows) }), quiet: true},
	}
}

func (m *Model) closePager() tea.Cmd {
	m.pager = m.pager.back
	m.holds.disturb(m.now())
	return nil
}

// set replaces the text; the place in it stays.
func (p *pager) set(paras []para) { p.paras, p.cols = paras, 0 }

// lay folds the text for a width.
func (p *pager) lay(w, h int) {
	p.page = h
	if p.cols == w && p.rows != nil {
		return
	}
	p.cols, p.rows = w, []prow{}
	for _, a := range p.paras {
		room := w - 1 - width(a.prefix)
		if room < 12 {
			a.prefix, room = "", w-1
		}
		lines := []safe{a.text}
		if !a.raw && a.right == "" {
			lines = fold(a.text, room)
		}
		indent := pad("", width(a.prefix))
		for i, l := range lines {
			prefix := a.prefix
			if i > 0 {
				prefix = indent
			}
			if a.prefix == "" {
				prefix = ""
			}
			p.rows = append(p.rows, prow{prefix, l, a.right, a.pst, a.st})
		}
	}
	if p.end {
		p.off = len(p.rows)
	}
	p.off = max(0, min(p.off, len(p.rows)-p.page))
}

// draw draws exactly h lines.
func (p *pager) draw(m *Model, c *canvas, h int) {
	p.lay(c.w, h)
	stop := c.lines + h
	for i := p.off; i < len(p.rows) && c.lines < stop; i++ {
		p.rows[i].draw(m, c)
	}
	c.pad(stop)
}
