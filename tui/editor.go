package tui

import (
	"slices"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/tui/clean"
)

// editMost bounds what a person types, in characters.
const editMost = 500

// editor is one line that a person types, in the place of the help line. It
// draws its own cursor, which does not blink, and runs no program for the
// clipboard: a paste comes from the terminal.
type editor struct {
	prompt safe
	send   safe // what enter does, in a word
	runes  []rune
	pos    int
	// done takes the text on enter. It may keep the editor open by returning a
	// reason.
	done func(m *Model, text string) (tea.Cmd, safe)
	// live, when set, takes the text after every change.
	live func(m *Model, text string) tea.Cmd
	// left, when set, is called on esc.
	left func(m *Model) tea.Cmd
}

func (e *editor) text() string { return string(e.runes) }

func editorKeys() []binding {
	return []binding{
		{key: on("enter", "enter", "send"), in: inEditor, does: "take what was typed", word: func(m *Model) safe { return m.editor.send }, do: func(m *Model) tea.Cmd {
			e := m.editor
			cmd, why := e.done(m, e.text())
			if why != "" {
				m.say(why, m.look.Ask)
				return cmd
			}
			if m.editor == e {
				m.editor = nil
			}
			return cmd
		}},
		{key: on("esc", "esc", "back"), in: inEditor, does: "drop what was typed; nothing is answered", do: func(m *Model) tea.Cmd {
			e := m.editor
			m.editor = nil
			if e.left != nil {
				return e.left(m)
			}
			return nil
		}},
		{key: on("ctrl+u", "ctrl+u", "clear"), in: inEditor, does: "delete what stands before the cursor", do: editing(func(e *editor) { e.delete(0, e.pos) }), quiet: true},
		{key: on("ctrl+k", "ctrl+k", "clear after"), in: inEditor, does: "delete what stands behind the cursor", do: editing(func(e *editor) { e.delete(e.pos, len(e.runes)) }), quiet: true},
		{key: on("ctrl+w alt+backspace", "ctrl+w", "delete word"), in: inEditor, does: "delete the word before the cursor", do: editing(func(e *editor) { e.delete(e.word(), e.pos) }), quiet: true},
		{key: on("backspace ctrl+h", "backspace", "delete"), in: inEditor, does: "delete the character before the cursor", do: editing(func(e *editor) { e.delete(e.pos-1, e.pos) }), quiet: true},
		{key: on("delete ctrl+d", "delete", "delete after"), in: inEditor, does: "delete the character behind the cursor", do: editing(func(e *editor) { e.delete(e.pos, e.pos+1) }), quiet: true},
		{key: on("left ctrl+b", "←", "left"), in: inEditor, does: "one character to the left", do: editing(func(e *editor) { e.move(e.pos - 1) }), quiet: true},
		{key: on("right ctrl+f", "→", "right"), in: inEditor, does: "one character to the right", do: editing(func(e *editor) { e.move(e.pos + 1) }), quiet: true},
		{key: on("home ctrl+a", "ctrl+a", "begin"), in: inEditor, does: "to the beginning", do: editing(func(e *editor) { e.move(0) }), quiet: true},
		{key: on("end ctrl+e", "ctrl+e", "end"), in: inEditor, does: "to the end", do: editing(func(e *editor) { e.move(len(e.runes)) }), quiet: true},
	}
}

func editing(f func(*editor)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		e, before := m.editor, m.editor.text()
		f(e)
		if e.live != nil && e.text() != before {
			return e.live(m, e.text())
		}
		return nil
	}
}

// key takes what is typed.
func (e *editor) key(m *Model, msg tea.KeyMsg) tea.Cmd {
	if (msg.Type != tea.KeyRunes && msg.Type != tea.KeySpace) || msg.Alt && !msg.Paste {
		return nil
	}
	if !e.insert(msg.Runes) {
		m.say("no more fits", m.look.Ask)
	}
	if e.live != nil {
		return e.live(m, e.text())
	}
	return nil
}

// insert puts cleaned text where the cursor is; false when not all of it fits.
func (e *editor) insert(in []rune) bool {
	r := []rune(clean.Line(string(in)))
	fits := len(e.runes)+len(r) <= editMost
	if !fits {
		r = r[:editMost-len(e.runes)]
	}
	e.runes = slices.Insert(e.runes, e.pos, r...)
	e.pos += len(r)
	return fits
}

func (e *editor) delete(from, to int) {
	from, to = max(from, 0), min(to, len(e.runes))
	if from < to {
		e.runes = slices.Delete(e.runes, from, to)
		e.pos = from
	}
}

func (e *editor) move(to int) { e.pos = max(0, min(to, len(e.runes))) }

// word is where the word before the cursor begins.
func (e *editor) word() int {
	i := e.pos
	for i > 0 && unicode.IsSpace(e.runes[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.runes[i-1]) {
		i--
	}
	return i
}

// draw shows the prompt and as much of the text around the cursor as fits.
func (e *editor) draw(m *Model, c *canvas) {
	c.text(" "+e.prompt+" › ", m.look.Accent)
	room := c.left - 1
	if room < 1 {
		return
	}
	// The whole text is cleaned again as one: what was typed piece by piece may
	// only together be something to take out.
	from, at := 0, e.pos
	for from < at && width(tidy(string(e.runes[from:at]))) > room-1 {
		from++
	}
	c.text(tidy(string(e.runes[from:at])), m.look.Plain)
	if at < len(e.runes) {
		under := tidy(string(e.runes[at : at+1]))
		c.text(first2(under, " "), m.look.Cursor)
		c.text(tidy(string(e.runes[at+1:])), m.look.Plain)
		return
	}
	c.text(" ", m.look.Cursor)
	hint := join("   ", "enter "+e.send, "esc back")
	if c.left > width(hint)+3 {
		c.flush(hint, c.left-1, m.look.Dim)
	}
}

func first2(a, b safe) safe {
	if a == "" {
		return b
	}
	return a
}
