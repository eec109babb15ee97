// Package theme is what the TUI looks like: a few styles by role for a dark and
// a light terminal, the same without colours, and the question which of them
// fits. No text and no layout belong here. Colour never stands alone: whoever
// draws puts a glyph or a word beside it.
package theme

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Kind is one of the looks.
type Kind string

const (
	Auto  Kind = "auto" // find out
	Dark  Kind = "dark"
	Light Kind = "light"
	None  Kind = "none" // attributes only, as NO_COLOR wishes
)

// Parse reads a kind as people write it; an empty one is Auto.
func Parse(s string) (Kind, bool) {
	switch k := Kind(strings.ToLower(s)); k {
	case "":
		return Auto, true
	case Auto, Dark, Light, None:
		return k, true
	}
	return Auto, false
}

// Depth is how many colours a terminal has.
type Depth int

const (
	Sixteen Depth = 16
	Many    Depth = 256
	True    Depth = 1 << 24
)

// Style is the sequences around a piece of text. The zero Style leaves it alone.
type Style struct{ open, close string }

// Append adds text in this style to dst.
func (s Style) Append(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	return append(append(append(dst, s.open...), text...), s.close...)
}

// Open starts the style.
func (s Style) Open(dst []byte) []byte { return append(dst, s.open...) }

// Close ends the style.
func (s Style) Close(dst []byte) []byte { return append(dst, s.close...) }

// Theme is the styles by role.
type Theme struct {
	Kind   Kind
	Plain  Style // text
	Dim    Style // what can be passed over
	Strong Style // headings, and the row that is selected
	Accent Style // keys, the tab that is open
	Good   Style // measured, released
	Bad    Style // contradicted, denied
	Ask    Style // waits for a person
	Told   Style // a person's word
	Cursor Style // the cursor of a line editor
}

// palette is the colours of a look by role.
type palette struct{ dim, accent, good, bad, ask, told string }

// Each colour has a contrast of at least 4.5:1 on the usual backgrounds of its
// kind; a test holds that. Good is bluish and bad is orange, so that they differ
// for people who do not see red and green.
var palettes = map[Kind]palette{
	Dark:  {dim: "#a0a0a0", accent: "#87afff", good: "#5fd7af", bad: "#ff8f70", ask: "#ffd75f", told: "#d7afff"},
	Light: {dim: "#5a5a5a", accent: "#0550ae", good: "#00665c", bad: "#b32d00", ask: "#7a4f00", told: "#6b2fb3"},
}

// New makes a theme; Auto is Dark.
func New(k Kind, d Depth) *Theme {
	r := lipgloss.NewRenderer(io.Discard)
	switch d {
	case True:
		r.SetColorProfile(termenv.TrueColor)
	case Many:
		r.SetColorProfile(termenv.ANSI256)
	default:
		r.SetColorProfile(termenv.ANSI)
	}
	r.SetHasDarkBackground(k != Light)
	plain := r.NewStyle()
	t := &Theme{Kind: k, Strong: around(plain.Bold(true)), Cursor: around(plain.Reverse(true))}
	if k == None {
		t.Accent, t.Ask = around(plain.Underline(true)), t.Strong
		return t
	}
	p, ok := palettes[k]
	if !ok {
		t.Kind, p = Dark, palettes[Dark]
	}
	colour := func(hex string) lipgloss.Style { return plain.Foreground(lipgloss.Color(hex)) }
	t.Dim, t.Accent, t.Good = around(colour(p.dim)), around(colour(p.accent)), around(colour(p.good))
	t.Bad, t.Ask, t.Told = around(colour(p.bad)), around(colour(p.ask)), around(colour(p.told))
	if d == Sixteen {
		// Of sixteen colours the terminal decides what they look like: the text's
		// own is the only one that is sure to be readable.
		t.Dim = Style{}
	}
	return t
}

// around takes a style's sequences from what it makes of a letter. Underlining
// is drawn letter by letter, so one letter is all it may be.
func around(s lipgloss.Style) Style {
	open, close, ok := strings.Cut(s.Render("x"), "x")
	if !ok {
		return Style{}
	}
	return Style{open, close}
}
