package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/theme"
)

// screen is one of the views that a key opens. A new one is a file with these
// methods, its rows in the key table, and a line in New.
type screen interface {
	tab() (key rune, name safe)
	place() place
	// open is called when it comes to the front.
	open(m *Model) tea.Cmd
	// linked is called when the daemon answers (again): with fresh nothing that
	// is shown counts any more.
	linked(m *Model, fresh bool) tea.Cmd
	// news brings what landed on the chain, in front or not.
	news(m *Model, b *batch)
	// settle is called after every message while it is in front; it fetches what
	// its picture misses. h is the height of the body.
	settle(m *Model, h int) tea.Cmd
	// draw draws exactly h lines.
	draw(m *Model, c *canvas, h int)
	// wake is when its picture changes by itself; false is never.
	wake(m *Model) (time.Time, bool)
}

// Model is the whole program's state.
type Model struct {
	ctx  context.Context
	d    Daemon
	o    Options
	now  func() time.Time
	look *theme.Theme
	out  io.StringWriter // beside the frames; nil in tests
	feed <-chan tea.Msg  // nil in tests

	w, h     int
	blurred  bool // the terminal does not have the person's attention
	screens  []screen
	tabs     []tab
	at       int
	keys     []binding
	holds    *holds
	ledger   *facts
	turns    *turns
	sensors  *sensors
	audit    *audit
	pager    *pager
	editor   *editor
	notice   safe
	noticeAs theme.Style

	up         bool
	connected  bool // it was up once
	awayErr    error
	awayAt     time.Time
	status     ipc.Status
	statusPace pace
	head       uint64 // entries on the chain, as far as is known
	focused    bool   // Options.Focus is done
	asked      string // the hold that it brought to the front, while it is open
	askedBy    string // and its turn

	armed time.Time // when the next tick comes
	frame canvas
}

// New makes the model; Run puts it on a terminal.
func New(ctx context.Context, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Model{ctx: ctx, d: o.Client, o: o, now: o.Now, look: theme.New(o.Theme, theme.Many), statusPace: pace{gap: time.Second}}
	m.holds, m.ledger, m.turns, m.sensors, m.audit = newHolds(), newFacts(), newTurns(), newSensors(), newAudit()
	m.screens = []screen{m.holds, m.ledger, m.turns, m.sensors, m.audit}
	for _, s := range m.screens {
		k, name := s.tab()
		m.tabs = append(m.tabs, tab{safe(string(k)), safe(string(k)) + " " + name})
	}
	m.keys = table(m)
	if o.Focus.Turn != "" {
		m.at = m.index(m.turns)
	}
	return m
}

func (m *Model) index(s screen) int {
	for i, o := range m.screens {
		if o == s {
			return i
		}
	}
	return 0
}

func (m *Model) front() screen { return m.screens[m.at] }

// then is what an answer of the daemon does to the model.
type then func(m *Model) tea.Cmd

// ask calls the daemon away from the event loop; what f returns runs inside it.
func (m *Model) ask(limit time.Duration, f func(ctx context.Context) then) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, limit)
		defer stop()
		return f(ctx)
	}
}

// tick: something that is shown changes now without anything having happened.
type tick struct{ at time.Time }

// Init starts to listen.
func (m *Model) Init() tea.Cmd { return m.listen() }

func (m *Model) listen() tea.Cmd {
	if m.feed == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case msg := <-m.feed:
			return msg
		case <-m.ctx.Done():
			return nil
		}
	}
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	add := func(c tea.Cmd) {
		if c != nil {
			cmds = append(cmds, c)
		}
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = max(msg.Width, 0), max(msg.Height, 0)
	case tea.FocusMsg:
		m.blurred = false
		m.holds.disturb(m.now())
	case tea.BlurMsg:
		m.blurred = true
	case tea.KeyMsg:
		add(m.press(msg))
	case then:
		if msg != nil {
			add(msg(m))
		}
	case tick:
		if msg.at.Equal(m.armed) {
			m.armed = time.Time{}
		}
	case linkUp:
		add(m.linked(msg))
		add(m.listen())
	case linkDown:
		m.lost(msg)
		add(m.listen())
	case *batch:
		m.news(msg)
		add(m.listen())
	}
	m.holds.sweep(m)
	add(m.focus())
	add(m.refresh())
	if p := m.pager; p != nil && p.read != nil && m.up && p.pace.start(m.now()) {
		add(p.read(m, p))
	}
	if m.w > 0 {
		add(m.front().settle(m, m.body()))
	}
	add(m.arm())
	return m, tea.Batch(cmds...)
}

func (m *Model) linked(l linkUp) tea.Cmd {
	m.up, m.status = true, l.status
	m.head = max(l.status.Chain.Size, l.asOf+1)
	if l.note != "" && m.connected {
		m.say(l.note, m.look.Plain)
	}
	m.connected = true
	m.holds.reset(m, l.holds, l.asOf)
	var cmds []tea.Cmd
	for _, s := range m.screens {
		cmds = append(cmds, s.linked(m, l.fresh))
	}
	return tea.Batch(cmds...)
}

func (m *Model) lost(l linkDown) {
	if m.up || m.awayErr == nil {
		m.awayAt = l.at
	}
	m.up, m.awayErr = false, l.err
	m.holds.away(m)
}

func (m *Model) news(b *batch) {
	if n := len(b.entries); n > 0 {
		m.head = max(m.head, b.entries[n-1].Seq+1)
		m.statusPace.dirty = true
	}
	for _, s := range m.screens {
		s.news(m, b)
	}
}

// focus does what Options.Focus wishes as soon as it can: the turn is shown until
// the hold is there, and again when that has been answered from where it was.
func (m *Model) focus() tea.Cmd {
	f := m.o.Focus
	if !m.up || m.focused && m.asked == "" {
		return nil
	}
	if m.focused {
		if m.holds.find(m.asked) != nil {
			return nil
		}
		m.asked = ""
		if f.Turn == "" || m.front() != screen(m.holds) || m.pager != nil || m.editor != nil {
			return nil
		}
		return tea.Batch(m.show(m.index(m.turns)), m.turns.story(m, m.askedBy))
	}
	if f.Hold != "" {
		if h := m.holds.find(f.Hold); h != nil {
			m.focused, m.pager = true, nil
			m.asked, m.askedBy = h.ID, h.Turn
			m.holds.bring(m, h.ID, h.undecided(0))
			return m.show(m.index(m.holds))
		}
	}
	if f.Turn == Next {
		f.Turn = m.turns.newest
	}
	if f.Turn == "" || m.turns.opened != "" {
		return nil
	}
	m.focused = f.Hold == ""
	return m.turns.story(m, f.Turn)
}

// refresh reads the status again when the chain has grown.
func (m *Model) refresh() tea.Cmd {
	if !m.up || !m.statusPace.start(m.now()) {
		return nil
	}
	return m.ask(callLimit, func(ctx context.Context) then {
		s, err := m.d.Status(ctx)
		return func(m *Model) tea.Cmd {
			m.statusPace.busy = false
			if err == nil {
				m.status = s
				m.head = max(m.head, s.Chain.Size)
			}
			return nil
		}
	})
}

// show brings a screen to the front.
func (m *Model) show(i int) tea.Cmd {
	if i != m.at {
		m.at = i
		m.holds.disturb(m.now())
	}
	return m.front().open(m)
}

// say puts a line where the help line is, until the next key.
func (m *Model) say(s safe, st theme.Style) { m.notice, m.noticeAs = s, st }

// fail says what went wrong, and what to do about it.
func (m *Model) fail(what safe, err error) {
	if m.ctx.Err() != nil {
		return
	}
	m.say(join(": ", what, reason(err)), m.look.Bad)
}

// reason is an error for a person.
func reason(err error) safe {
	var p *ipc.Problem
	if errors.As(err, &p) {
		return join(" · ", tidy(first(p.Detail, p.Title)), tidy(p.Hint))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "gettierd did not answer in time"
	}
	return tidy(err.Error())
}

func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}

// arm sets the alarm for the next change that comes by itself. Nothing is set
// when there is none: an idle program does nothing.
func (m *Model) arm() tea.Cmd {
	now := m.now()
	var next time.Time
	for _, f := range []func() (time.Time, bool){
		func() (time.Time, bool) { return m.front().wake(m) },
		func() (time.Time, bool) { return m.holds.clock(m) },
		m.statusPace.wake,
		func() (time.Time, bool) {
			if m.pager == nil || m.pager.read == nil {
				return time.Time{}, false
			}
			return m.pager.pace.wake()
		},
	} {
		if at, ok := f(); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() || !m.armed.IsZero() && !next.Before(m.armed) {
		return nil
	}
	m.armed = next
	return tea.Tick(max(next.Sub(now), time.Millisecond), func(time.Time) tea.Msg { return tick{next} })
}

// pace keeps something from being read more often than people can look at it.
type pace struct {
	gap         time.Duration
	dirty, busy bool
	last        time.Time
}

// start reports that it is time to read, and counts it as begun.
func (p *pace) start(now time.Time) bool {
	if !p.dirty || p.busy || now.Sub(p.last) < p.gap {
		return false
	}
	p.dirty, p.busy, p.last = false, true, now
	return true
}

// wake is when start will report true.
func (p *pace) wake() (time.Time, bool) { return p.last.Add(p.gap), p.dirty && !p.busy }

// touched reports whether an entry of b is of one of these families (turn.) or kinds.
func touched(b *batch, kinds ...lemma.Kind) bool {
	if b.lost {
		return true
	}
	for i := range b.entries {
		for _, k := range kinds {
			e := b.entries[i].Kind
			if e == string(k) || k[len(k)-1] == '.' && len(e) > len(k) && e[:len(k)] == string(k) {
				return true
			}
		}
	}
	return false
}
