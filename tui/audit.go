package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/rows"
	"gettier.dev/gettierd/tui/story"
	"gettier.dev/gettierd/tui/words"
)

const (
	// auditPage is how many entries a page has: entry n is row n.
	auditPage = 256
	// verifyLimit bounds a check of the whole log, verifyBeat how often its bar moves.
	verifyLimit = time.Hour
	verifyBeat  = 100 * time.Millisecond
)

// audit is screen 8: the chain as it grows, and whether it holds.
type audit struct {
	list     *rows.List[auditRow]
	spanned  bool
	verified *ipc.Verification // the last check of this session
	checking *progress
}

// progress is counted by the call and read by the screen.
type progress struct{ done, total atomic.Uint64 }

type auditRow struct {
	seq                        uint64
	number, at, kind, turn, on safe
}

func newAudit() *audit {
	return &audit{list: rows.New(func(r auditRow) string { return strconv.FormatUint(r.seq, 10) })}
}

func (*audit) tab() (rune, safe) { return '8', "Audit" }

func (*audit) place() place { return inAudit }

func (s *audit) mover() mover { return s.list }

func (s *audit) open(*Model) tea.Cmd { return nil }

func (s *audit) linked(_ *Model, fresh bool) tea.Cmd {
	if fresh {
		s.spanned, s.verified = false, nil
		s.list.Reset()
	}
	return nil
}

func readEntry(e ipc.Entry) auditRow {
	r := auditRow{seq: e.Seq, number: safe(words.Thousands(e.Seq)), kind: tidy(e.Kind)}
	if t, ok := words.Time(e.TS); ok {
		r.at = safe(t.Local().Format("15:04:05"))
	}
	if e.Turn != "" {
		r.turn = tidy(words.ShortID(e.Turn))
	}
	r.on = tidy(story.Gist(e, story.Options{}))
	return r
}

// news adds what landed. Only rows that may be looked at are read; of the others
// the number is enough.
func (s *audit) news(m *Model, b *batch) {
	n := len(b.entries)
	if !s.spanned || n == 0 {
		return
	}
	read := 0
	if m.front() == screen(s) {
		read = min(n, 2*m.h)
	}
	first := b.entries[n-1].Seq + 1 - uint64(read)
	have := uint64(s.list.Len())
	if b.entries[n-1].Seq < have {
		return
	}
	var out []auditRow
	for _, e := range b.entries[n-read:] {
		if e.Seq >= have {
			out = append(out, readEntry(e))
		}
	}
	s.list.Grow(int(max(first, have)-have), out...)
}

func (s *audit) settle(m *Model, h int) tea.Cmd {
	list, _ := split(h)
	s.list.Resize(list - 1)
	if !m.up {
		return nil
	}
	if !s.spanned && m.head > 0 {
		s.spanned = true
		s.list.Span(int(m.head), auditPage, func(page int) string { return strconv.Itoa(page * auditPage) })
	}
	var cmds []tea.Cmd
	for _, w := range s.list.Want() {
		cmds = append(cmds, s.fetch(m, w))
	}
	return tea.Batch(cmds...)
}

func (s *audit) fetch(m *Model, w rows.Want) tea.Cmd {
	return m.ask(callLimit, func(ctx context.Context) then {
		from, _ := strconv.ParseUint(w.Token, 10, 64)
		got, err := m.d.Audit(ctx, before(from), ipc.Page{Limit: auditPage})
		out := make([]auditRow, len(got.Items))
		for i, e := range got.Items {
			out[i] = readEntry(e)
		}
		return func(m *Model) tea.Cmd {
			if err != nil {
				if m.up {
					m.fail("entries", err)
				}
				return tea.Tick(retryPage, func(time.Time) tea.Msg {
					return then(func(*Model) tea.Cmd { s.list.Failed(w); return nil })
				})
			}
			s.list.Put(w, out, "")
			return nil
		}
	})
}

// before is the exclusive start of a list that begins with entry n.
func before(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	n--
	return &n
}

func (s *audit) wake(m *Model) (time.Time, bool) {
	return m.now().Add(verifyBeat), s.checking != nil
}

func (s *audit) draw(m *Model, c *canvas, h int) {
	stop := c.lines + h
	list, details := split(h)
	number := max(7, width(safe(words.Thousands(m.head))))
	kind, turn := 20, 4
	switch {
	case c.w < 50:
		kind, turn = 18, 0
	case c.w >= 120:
		kind = 24
	}
	c.gap(2)
	c.flush("entry", number, m.look.Dim)
	c.gap(2)
	c.cell("at", 10, m.look.Dim)
	c.cell("kind", kind+2, m.look.Dim)
	if turn > 0 {
		c.cell("turn", turn+2, m.look.Dim)
	}
	if s.list.Following() {
		c.flush("following", c.left-1, m.look.Dim)
	}
	c.end()
	n := 0
	c.b, n = s.list.View(c.b, func(dst []byte, r auditRow, here, selected bool) []byte {
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
		c.flush(r.number, number, m.look.Dim)
		c.gap(2)
		c.cell(r.at, 10, m.look.Dim)
		c.cell(r.kind, kind, st)
		c.gap(2)
		if turn > 0 {
			c.cell(r.turn, turn, m.look.Dim)
			c.gap(2)
		}
		c.text(r.on, m.glyphStyle(r.on))
		return c.b
	})
	c.lines += n
	c.left = c.w
	if s.list.Len() == 0 {
		m.none(c, !s.spanned, "the chain is empty")
	}
	c.pad(stop - h + list)
	if details > 0 {
		m.rule(c, "")
		s.verification(m, c, stop)
	}
	c.pad(stop)
}

// verification says what is known of the chain as a whole.
func (s *audit) verification(m *Model, c *canvas, stop int) {
	look := m.look
	ch := m.status.Chain
	ps := []para{
		{prefix: "entries   ", pst: look.Dim, text: safe(words.Thousands(m.head))},
		{prefix: "root      ", pst: look.Dim, text: tidy(ch.Root)},
		{prefix: "log       ", pst: look.Dim, text: tidy(ch.Origin)},
	}
	switch v := s.verified; {
	case s.checking != nil:
		done, total := s.checking.done.Load(), s.checking.total.Load()
		ps = append(ps, para{prefix: "checking  ", pst: look.Dim, text: bar(done, total, 24) + " " + safe(words.Thousands(done)) + " of " + safe(words.Count(total, "entry", "entries"))})
	case v == nil:
		ps = append(ps, para{prefix: "checked   ", pst: look.Dim, text: "not in this session; v checks links, tree, signatures, blobs and folds"})
	case v.OK:
		ps = append(ps, para{prefix: "checked   ", pst: look.Dim, st: look.Good,
			text: "✓ intact: " + safe(words.Count(v.Entries, "entry", "entries")) + ", " + safe(words.Count(v.Checkpoints, "signed checkpoint", "signed checkpoints")) + ", " + safe(words.Count(v.Blobs, "blob", "blobs")) + ", " + safe(words.Millis(v.DurationMS))})
	default:
		ps = append(ps, para{prefix: "checked   ", pst: look.Dim, st: look.Bad, text: "✗ DAMAGED at entry " + safe(words.Thousands(v.BadSeq)) + ": " + tidy(v.What)})
	}
	m.paras(c, stop, ps)
}

// bar is how much of something is done, in w columns.
func bar(done, total uint64, w int) safe {
	n := 0
	if total > 0 {
		n = int(min(done, total) * uint64(w) / total)
	}
	return safe(strings.Repeat("▮", n) + strings.Repeat("▯", w-n))
}

func auditKeys() []binding {
	return []binding{
		{key: on("enter", "enter", "entry"), in: inAudit, does: "the whole entry", do: func(m *Model) tea.Cmd { return m.audit.entry(m) }, off: func(m *Model) safe {
			if _, ok := m.audit.list.Selected(); !ok {
				return "no entry is selected"
			}
			return ""
		}},
		{key: on("v", "v", "verify"), in: inAudit, does: "check the whole log now", do: func(m *Model) tea.Cmd { return m.audit.verify(m) }, off: func(m *Model) safe {
			switch {
			case !m.up:
				return "gettierd is away"
			case m.audit.checking != nil:
				return "it is being checked"
			}
			return ""
		}},
		{key: on("t", "t", "turn"), in: inAudit, does: "the story of the entry's turn", do: func(m *Model) tea.Cmd { return m.audit.turn(m) }, off: func(m *Model) safe {
			if r, ok := m.audit.list.Selected(); !ok || r.turn == "" {
				return "the entry belongs to no turn"
			}
			return ""
		}},
	}
}

// one reads the selected entry.
func (s *audit) one(m *Model, f func(m *Model, e ipc.Entry, err error) tea.Cmd) tea.Cmd {
	r, _ := s.list.Selected()
	return m.ask(callLimit, func(ctx context.Context) then {
		l, err := m.d.Audit(ctx, before(r.seq), ipc.Page{Limit: 1})
		var e ipc.Entry
		if err == nil && len(l.Items) == 0 {
			err = errors.New("the log has no such entry")
		}
		if err == nil {
			e = l.Items[0]
		}
		return func(m *Model) tea.Cmd { return f(m, e, err) }
	})
}

func (s *audit) turn(m *Model) tea.Cmd {
	return s.one(m, func(m *Model, e ipc.Entry, err error) tea.Cmd {
		if err != nil {
			m.fail("the turn", err)
			return nil
		}
		return m.turns.story(m, e.Turn)
	})
}

func (s *audit) entry(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	p := &pager{title: "entry " + r.number}
	p.set([]para{{text: "…", st: m.look.Dim}})
	m.pager = p
	return s.one(m, func(m *Model, e ipc.Entry, err error) tea.Cmd {
		if err != nil {
			p.set([]para{{text: "cannot be read: " + reason(err), st: m.look.Bad}})
			return nil
		}
		look := m.look
		ps := []para{
			{prefix: "kind      ", pst: look.Dim, text: tidy(e.Kind), st: look.Strong},
			{prefix: "at        ", pst: look.Dim, text: tidy(e.TS)},
			{prefix: "turn      ", pst: look.Dim, text: first2(tidy(e.Turn), "none")},
			{prefix: "hash      ", pst: look.Dim, text: tidy(entryHash(e))},
			{prefix: "prev      ", pst: look.Dim, text: tidy(e.Prev)},
			{},
		}
		var body bytes.Buffer
		if json.Indent(&body, e.Body, "", "  ") != nil {
			body.Reset()
			body.Write(e.Body)
		}
		for _, l := range tidyLines(body.String()) {
			ps = append(ps, para{text: l})
		}
		p.set(ps)
		return nil
	})
}

// verify has the daemon check the whole log.
func (s *audit) verify(m *Model) tea.Cmd {
	p := &progress{}
	s.checking = p
	return m.ask(verifyLimit, func(ctx context.Context) then {
		v, err := m.d.Verify(ctx, func(x ipc.Progress) { p.done.Store(x.Done); p.total.Store(x.Total) })
		return func(m *Model) tea.Cmd {
			s.checking = nil
			if err != nil {
				m.fail("not checked", err)
				return nil
			}
			s.verified = &v
			if v.OK {
				m.say("✓ the log is intact: "+safe(words.Count(v.Entries, "entry", "entries")), m.look.Good)
			} else {
				m.say("✗ the log is DAMAGED at entry "+safe(words.Thousands(v.BadSeq))+": "+tidy(v.What), m.look.Bad)
			}
			return nil
		}
	})
}
