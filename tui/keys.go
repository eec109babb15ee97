package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// place is where a key counts.
type place string

const (
	everywhere place = "everywhere"
	inList     place = "lists"
	inPager    place = "texts"
	inStory    place = "the story of a turn"
	inDiff     place = "a sensor's changes"
	inPacks    place = "packs"
	inEditor   place = "typing"
	inHolds    place = "Holds"
	inAll      place = "Holds, answering all"
	inLedger   place = "Ledger"
	inTurns    place = "Turns"
	inSensors  place = "Sensors"
	inAudit    place = "Audit"
)

// binding is one row of the key table: the help line, the ? screen and the
// handling of keys are made from it and from nothing else.
type binding struct {
	key key.Binding
	in  place
	// does is the sentence on the ? screen; word, when set, is the help line's
	// word as it is now.
	does safe
	word func(m *Model) safe
	// off says why the key does nothing now; "" is that it works.
	off func(m *Model) safe
	do  func(m *Model) tea.Cmd

	answers bool // it may decide something: only deliberate presses count
	pane    bool // it stands in the pane of the screen instead of the help line
	quiet   bool // it stands on the ? screen only
	hidden  func(m *Model) bool
}

func on(keys, shown, word string) key.Binding {
	return key.NewBinding(key.WithKeys(strings.Fields(keys)...), key.WithHelp(shown, word))
}

// table is every key there is.
func table(m *Model) []binding {
	t := []binding{
		{key: on("?", "?", "help"), in: everywhere, does: "what the keys do", do: (*Model).help},
		{key: on("q", "q", "quit"), in: everywhere, does: "leave; gettierd keeps running", do: quit},
		{key: on("ctrl+c", "ctrl+c", "quit"), in: everywhere, does: "leave at once, from anywhere", do: quit, quiet: true},
		{key: on("ctrl+z", "ctrl+z", "suspend"), in: everywhere, does: "back to the shell; fg returns", do: suspend, quiet: true},
		{key: on("ctrl+l", "ctrl+l", "redraw"), in: everywhere, does: "draw the whole screen again", do: redraw, quiet: true},
		{key: on("left h [", "←", "screen before"), in: everywhere, does: "the screen before this one", do: func(m *Model) tea.Cmd { return m.turnTo(-1) }, quiet: true},
		{key: on("right l ]", "→", "next screen"), in: everywhere, does: "the screen after this one", do: func(m *Model) tea.Cmd { return m.turnTo(1) }, quiet: true},
	}
	for i, s := range m.screens {
		k, name := s.tab()
		t = append(t, binding{key: on(string(k), string(k), string(name)), in: everywhere, does: "the screen " + name,
			do: func(m *Model) tea.Cmd { m.pager = nil; return m.show(i) }, quiet: true})
	}
	t = append(t, editorKeys()...)
	t = append(t, pagerKeys()...)
	t = append(t, listKeys()...)
	t = append(t, packKeys()...)
	t = append(t, holdKeys()...)
	t = append(t, ledgerKeys()...)
	t = append(t, turnKeys()...)
	t = append(t, sensorKeys()...)
	return append(t, auditKeys()...)
}

func quit(*Model) tea.Cmd { return tea.Quit }

func suspend(*Model) tea.Cmd { return tea.Suspend }

func redraw(*Model) tea.Cmd { return tea.ClearScreen }

func (m *Model) turnTo(d int) tea.Cmd {
	m.pager = nil
	return m.show((m.at + d + len(m.screens)) % len(m.screens))
}

// places is where keys count now, the nearest first.
func (m *Model) places() []place {
	switch {
	case m.editor != nil:
		return []place{inEditor}
	case m.pager != nil && m.pager.in != "":
		return []place{m.pager.in, inPager, everywhere}
	case m.pager != nil:
		return []place{inPager, everywhere}
	case m.front() == screen(m.holds) && m.holds.all:
		return []place{inAll}
	case m.front() == screen(m.holds):
		return []place{inHolds, everywhere}
	}
	return []place{m.front().place(), inList, everywhere}
}

// active lists the bindings that count now, the nearest first.
func (m *Model) active() []*binding {
	var out []*binding
	for _, p := range m.places() {
		for i := range m.keys {
			if b := &m.keys[i]; b.in == p && (b.hidden == nil || !b.hidden(m)) {
				out = append(out, b)
			}
		}
	}
	return out
}

// press takes a key message. Several characters at once are keys that were
// typed ahead or sent by a program: they move about, but decide nothing.
func (m *Model) press(msg tea.KeyMsg) tea.Cmd {
	m.notice = ""
	if msg.Type == tea.KeyRunes && m.editor == nil && (len(msg.Runes) > 1 || msg.Paste) {
		if msg.Paste {
			m.say("pasted text counts only where text is typed", m.look.Dim)
			return nil
		}
		var cmds []tea.Cmd
		for i, r := range msg.Runes {
			if m.editor != nil {
				m.editor.insert(msg.Runes[i:])
				break
			}
			cmds = append(cmds, m.one(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt}, true))
		}
		return tea.Batch(cmds...)
	}
	return m.one(msg, false)
}

// one takes a single key. hasty is that others came with it.
func (m *Model) one(msg tea.KeyMsg, hasty bool) tea.Cmd {
	if msg.Type == tea.KeyCtrlC {
		return tea.Quit
	}
	if msg.Alt && m.editor == nil {
		// A terminal sends alt and a key as esc and a key; of the two, only esc is ours.
		msg.Alt = false
		return tea.Batch(m.one(tea.KeyMsg{Type: tea.KeyEscape}, true), m.one(msg, true))
	}
	var hit *binding
	for _, b := range m.active() {
		if key.Matches(msg, b.key) {
			hit = b
			break
		}
	}
	if m.front() == screen(m.holds) && m.pager == nil && m.editor == nil {
		early := m.holds.early(m.now())
		m.holds.pressed(m.now())
		if hit != nil && hit.answers && (early || hasty) {
			m.say("not taken: press it again after a moment of quiet", m.look.Ask)
			return nil
		}
	}
	switch {
	case hit == nil && m.editor != nil:
		return m.editor.key(m, msg)
	case hit == nil:
		return nil
	}
	if hit.off != nil {
		if why := hit.off(m); why != "" {
			m.say(join(": ", safe(hit.key.Help().Desc), why), m.look.Dim)
			return nil
		}
	}
	return hit.do(m)
}

// label is a binding's word on the help line.
func (b *binding) label(m *Model) safe {
	if b.word != nil {
		return b.word(m)
	}
	return safe(b.key.Help().Desc)
}

// works reports whether the key would do something now.
func (b *binding) works(m *Model) bool { return b.off == nil || b.off(m) == "" }

// helpLine draws as many keys as fit, the nearest first, and ? and q always.
func (m *Model) helpLine(c *canvas, pane bool) {
	var all []*binding
	for _, b := range m.active() {
		if !b.quiet && b.pane == pane {
			all = append(all, b)
		}
	}
	room := c.left
	if !pane {
		c.gap(1)
		room--
	}
	// What cannot be shown is what stands farthest from the front but for the last.
	for len(all) > 1 {
		n := 0
		for _, b := range all {
			n += width(safe(b.key.Help().Key)) + 1 + width(b.label(m)) + 3
		}
		if n-3 <= room {
			break
		}
		k := len(all) - 1
		if !pane && len(all) > 3 {
			k = len(all) - 3
		}
		all = slices.Delete(all, k, k+1)
	}
	for i, b := range all {
		if i > 0 {
			c.gap(3)
		}
		if !b.works(m) || b.answers && m.holds.early(m.now()) {
			c.text(safe(b.key.Help().Key), m.look.Dim)
			c.gap(1)
			c.text(b.label(m), m.look.Dim)
			continue
		}
		c.text(safe(b.key.Help().Key), m.look.Accent)
		c.gap(1)
		c.text(b.label(m), m.look.Plain)
	}
}

// places in the order of the ? screen.
var allPlaces = []place{inHolds, inAll, inLedger, inTurns, inStory, inSensors, inDiff, inPacks, inAudit, inList, inPager, inEditor, everywhere}

// help opens the ? screen: the table, the places that count now first.
func (m *Model) help() tea.Cmd {
	if m.pager != nil && m.pager.help {
		return nil
	}
	here := m.places()
	var out []para
	for _, p := range here {
		out = append(out, m.helpOf(p, true)...)
	}
	for _, p := range allPlaces {
		if !slices.Contains(here, p) {
			out = append(out, m.helpOf(p, false)...)
		}
	}
	m.pager = &pager{title: "keys", paras: out, back: m.pager, help: true}
	return nil
}

// helpOf is the keys of one place; those that do nothing now say why.
func (m *Model) helpOf(pl place, now bool) []para {
	out := []para{{text: safe(pl), st: m.look.Strong}}
	for i := range m.keys {
		b := &m.keys[i]
		if b.in != pl {
			continue
		}
		does := b.does
		if now && b.off != nil {
			does = join(" — not now: ", does, b.off(m))
		}
		out = append(out, para{prefix: pad("  "+safe(b.key.Help().Key), 14), pst: m.look.Accent, text: does})
	}
	return append(out, para{})
}

func pad(s safe, w int) safe {
	if n := w - width(s); n > 0 {
		return s + safe(strings.Repeat(" ", n))
	}
	return s + " "
}
