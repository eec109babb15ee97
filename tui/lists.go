package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/rows"
)

// pageSize is how many rows are fetched at once.
const pageSize = 100

// retryPage is the pause after a page that did not come.
const retryPage = time.Second

// lister is a screen with a list in it.
type lister interface {
	mover() mover
}

// mover is a list as its keys see it.
type mover interface {
	Move(d int)
	Page(d int)
	Home()
	End()
	Len() int
}

func listKeys() []binding {
	to := func(f func(l mover)) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd {
			if s, ok := m.front().(lister); ok {
				f(s.mover())
			}
			return nil
		}
	}
	return []binding{
		{key: on("down j", "↓ j", "down"), in: inList, does: "one row down", do: to(func(l mover) { l.Move(1) }), quiet: true},
		{key: on("up k", "↑ k", "up"), in: inList, does: "one row up", do: to(func(l mover) { l.Move(-1) }), quiet: true},
		{key: on("pgdown ctrl+f ctrl+d", "pgdn", "page down"), in: inList, does: "a page down", do: to(func(l mover) { l.Page(1) }), quiet: true},
		{key: on("pgup ctrl+b ctrl+u", "pgup", "page up"), in: inList, does: "a page up", do: to(func(l mover) { l.Page(-1) }), quiet: true},
		{key: on("home g", "g", "first"), in: inList, does: "to the first row; where that is the newest, it is followed", do: to(mover.Home), quiet: true},
		{key: on("end G", "G", "last"), in: inList, does: "to the last row; where that is the newest, it is followed", do: to(mover.End), quiet: true},
	}
}

// fetch brings one page of a list.
func fetch[T, R any](m *Model, l *rows.List[R], w rows.Want, what safe, get func(context.Context, ipc.Page) (ipc.List[T], error), row func(T) R) tea.Cmd {
	return m.ask(callLimit, func(ctx context.Context) then {
		got, err := get(ctx, ipc.Page{Limit: pageSize, Cursor: w.Token})
		out := make([]R, len(got.Items))
		for i, v := range got.Items {
			out[i] = row(v)
		}
		return func(m *Model) tea.Cmd {
			if err != nil {
				if m.up {
					m.fail(what, err)
				}
				return tea.Tick(retryPage, func(time.Time) tea.Msg {
					return then(func(*Model) tea.Cmd { l.Failed(w); return nil })
				})
			}
			l.Put(w, out, got.NextCursor)
			return nil
		}
	})
}

// refetch reads the first page of a list again.
func refetch[T, R any](m *Model, l *rows.List[R], p *pace, get func(context.Context, ipc.Page) (ipc.List[T], error), row func(T) R) tea.Cmd {
	gen := l.Gen()
	return m.ask(callLimit, func(ctx context.Context) then {
		got, err := get(ctx, ipc.Page{Limit: pageSize})
		out := make([]R, len(got.Items))
		for i, v := range got.Items {
			out[i] = row(v)
		}
		return func(*Model) tea.Cmd {
			p.busy = false
			if err == nil && gen == l.Gen() && !l.Fresh(out, got.NextCursor) {
				l.Reset()
			}
			return nil
		}
	})
}

// follow does both for a list in front: what it misses, and what is new.
func follow[T, R any](m *Model, l *rows.List[R], p *pace, what safe, get func(context.Context, ipc.Page) (ipc.List[T], error), row func(T) R) tea.Cmd {
	if !m.up {
		return nil
	}
	var cmds []tea.Cmd
	for _, w := range l.Want() {
		cmds = append(cmds, fetch(m, l, w, what, get, row))
	}
	if l.Len() > 0 || l.Complete() {
		if p.start(m.now()) {
			cmds = append(cmds, refetch(m, l, p, get, row))
		}
	} else {
		p.dirty = false // its first page is on the way
	}
	return tea.Batch(cmds...)
}

// split shares the body between a list and the details of its row; details is 0
// where there is no room for both.
func split(h int) (list, details int) {
	if h < 14 {
		return h, 0
	}
	details = min(h/2, 20)
	return h - details - 1, details
}

// paras draws as much of a text as fits above stop.
func (m *Model) paras(c *canvas, stop int, ps []para) {
	p := pager{paras: ps}
	p.lay(c.w, stop-c.lines)
	more := len(p.rows) > p.page
	for i, r := range p.rows {
		if c.lines >= stop {
			return
		}
		if more && i == p.page-1 {
			r.text += " …"
		}
		r.draw(m, c)
	}
	c.pad(stop)
}

// filterLine takes the place of a list's headings while it is filtered.
func (m *Model) filterLine(c *canvas, filter string) {
	if filter != "" {
		c.text("/ "+tidy(filter), m.look.Accent)
		c.left = 0
	}
}

// none says why a list is empty.
func (m *Model) none(c *canvas, loading bool, why safe) {
	c.gap(1)
	switch {
	case !m.up:
		c.line("gettierd is not here", m.look.Dim)
	case loading:
		c.line("…", m.look.Dim)
	default:
		c.line(why, m.look.Dim)
	}
}
