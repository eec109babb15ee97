// Package clean is the one door for text that a model, a sensor or a file made
// on its way to a terminal, a log or a hook's output. It takes out what would
// steer a terminal or hide from a reader, and keeps everything that can be
// seen: text is never dropped because it stood inside an escape sequence. No
// colours, no layout and no I/O belong here.
package clean

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// maxMarks is how many combining marks one character keeps: real scripts need
// no more, and a pile of them draws over the lines around.
const maxMarks = 4

// Text makes s safe to print as several lines: controls, escape sequences,
// bidirectional overrides and invisible characters are gone; line ends are \n,
// tabs are kept.
func Text(s string) string { return scrub(s, true) }

// Line makes s safe to print within one line: as Text, and line ends and tabs
// become single spaces.
func Line(s string) string { return scrub(s, false) }

// Cut returns Line(s) cut to at most width columns, with … where it was cut.
func Cut(s string, width int) string {
	s = Line(s)
	if width <= 0 {
		return ""
	}
	if displaywidth.String(s) <= width {
		return s
	}
	if width == 1 {
		return "…"
	}
	var b strings.Builder
	used := 0
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		w := g.Width()
		if used+w > width-1 {
			break
		}
		b.WriteString(g.Value())
		used += w
	}
	return b.String() + "…"
}

// Width is how many columns a cleaned line takes.
func Width(s string) int { return displaywidth.String(s) }

// scrubber writes runes that may stay and remembers what it needs of the last.
type scrubber struct {
	b      strings.Builder
	lines  bool
	last   rune // last rune written
	marks  int  // combining marks since the last base
	joiner rune // a joiner that waits to see what follows
}

func scrub(s string, lines bool) string {
	if plain(s) {
		return s
	}
	c := scrubber{lines: lines}
	c.b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			// A lone byte 80–9F is a control to a terminal that reads bytes.
			c.put(utf8.RuneError)
			i++
			continue
		}
		switch {
		case r == 0x1b:
			i += n + escape(s[i+n:])
			continue
		case r == 0x9b:
			i += n + csi(s[i+n:])
			continue
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
			// \r\n is one line end.
		case r == '\n', r == '\r', r == 0x85, r == 0x2028, r == 0x2029, r == '\v', r == '\f':
			c.space('\n')
		case r == '\t':
			c.space('\t')
		case unicode.IsControl(r), invisible(r):
		case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800:
			// Letters that draw as nothing: what they hide must show as a gap.
			c.put(' ')
		case r == 0x200c, r == 0x200d:
			c.join(r)
		default:
			c.put(r)
		}
		i += n
	}
	return c.b.String()
}

// plain reports the common case: printable ASCII only.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// escape is how many bytes after ESC belong to the sequence and carry no text:
// parameters and the final byte. The payload of OSC, DCS, APC, PM and SOS is
// text that somebody wrote: it stays, so that nothing hides in it.
func escape(s string) int {
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c == '[':
		if n := csi(s[1:]); n > 0 {
			return 1 + n
		}
		return 0
	case c == ']', c == 'P', c == '_', c == '^', c == 'X', c == '\\':
		return 1
	case c >= 0x20 && c <= 0x2f:
		// Intermediates and a final: charset selections and their like.
		i := 1
		for i < len(s) && i < 4 && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			return i + 1
		}
		return 0
	case c >= 0x30 && c <= 0x7e:
		return 1
	}
	return 0
}

// csi is how many bytes after a CSI are its parameters and final byte; 0 when
// it is none, so that ordinary text after a stray introducer stays.
func csi(s string) int {
	i := 0
	for i < len(s) && i < 64 && s[i] >= 0x30 && s[i] <= 0x3f {
		i++
	}
	for i < len(s) && i < 68 && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		return i + 1
	}
	return 0
}

// invisible reports format characters that reorder or hide text: direction
// marks and overrides, zero-width characters, tags and selectors that carry
// nothing a person sees. Joiners and the emoji selectors are not among them.
func invisible(r rune) bool {
	switch {
	case r == 0x200c, r == 0x200d, r == 0xfe0e, r == 0xfe0f:
		return false
	case r >= 0xfe00 && r <= 0xfe0d, r >= 0xe0000 && r <= 0xe0fff, r == 0x034f, r == 0x180b, r == 0x180c, r == 0x180d, r == 0x180f, r == 0x17b4, r == 0x17b5:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs) || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
}

func (c *scrubber) space(r rune) {
	if !c.lines {
		r = ' '
		if c.last == ' ' {
			return
		}
	}
	c.write(r)
}

// join keeps a joiner only between characters that may need one: not in ASCII,
// where it would only split a word for whoever searches it.
func (c *scrubber) join(r rune) {
	if c.last > unicode.MaxASCII && c.joiner == 0 {
		c.joiner = r
	}
}

func (c *scrubber) put(r rune) {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		if c.marks >= maxMarks || c.last == 0 || c.last <= ' ' {
			return
		}
		marks := c.marks
		c.write(r)
		c.marks = marks + 1
		return
	}
	c.write(r)
}

func (c *scrubber) write(r rune) {
	if c.joiner != 0 {
		if r > unicode.MaxASCII {
			c.b.WriteRune(c.joiner)
		}
		c.joiner = 0
	}
	c.b.WriteRune(r)
	c.last, c.marks = r, 0
}
