package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/theme"
)

// safe is text that may be drawn on one line: our own constants, and what tidy
// made. The type is the door: a foreign string does not fit through it.
type safe string

// tidy cleans foreign text for one line.
func tidy(s string) safe { return safe(clean.Line(s)) }

// tidyLines cleans foreign text of several lines. Tabs become four spaces.
func tidyLines(s string) []safe {
	parts := strings.Split(strings.TrimRight(clean.Text(s), "\n"), "\n")
	out := make([]safe, len(parts))
	for i, p := range parts {
		out[i] = tidy(strings.ReplaceAll(p, "\t", "    "))
	}
	return out
}

// join puts pieces after each other.
func join(sep safe, parts ...safe) safe {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(string(sep))
		}
		b.WriteString(string(p))
	}
	return safe(b.String())
}

// width is how many columns s takes.
func width(s safe) int {
	if ascii(s) {
		return len(s)
	}
	return ansi.StringWidth(string(s))
}

func ascii(s safe) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fit returns the beginning of s that fits into w columns, how many it takes,
// and whether something is missing. Nothing is allocated.
func fit(s safe, w int) (part safe, cols int, cut bool) {
	if ascii(s) {
		if len(s) <= w {
			return s, len(s), false
		}
		return s[:max(w, 0)], max(w, 0), true
	}
	i := 0
	for i < len(s) {
		c, cw := ansi.FirstGraphemeCluster(string(s[i:]), ansi.GraphemeWidth)
		if cols+cw > w {
			return s[:i], cols, true
		}
		cols += cw
		i += len(c)
	}
	return s, cols, false
}

// fold breaks s at spaces into lines of at most w columns; a word that is longer
// is broken where the line ends.
func fold(s safe, w int) []safe {
	if w <= 0 {
		return nil
	}
	var out []safe
	for {
		part, _, cut := fit(s, w)
		if !cut {
			return append(out, s)
		}
		if part == "" { // one character is wider than the line
			_, n := ansi.FirstGraphemeCluster(string(s), ansi.GraphemeWidth)
			part, _, _ = fit(s, max(n, 1))
			if part == "" || len(part) == len(s) {
				return append(out, "…")
			}
			out, s = append(out, "…"), s[len(part):]
			continue
		}
		if !strings.HasPrefix(string(s[len(part):]), " ") {
			if i := strings.LastIndexByte(string(part), ' '); i > len(part)/3 {
				part = part[:i]
			}
		}
		out = append(out, safe(strings.TrimRight(string(part), " ")))
		s = safe(strings.TrimLeft(string(s[len(part):]), " "))
		if s == "" {
			return out
		}
	}
}

// canvas is a frame as it is drawn: line by line, and within a line from left to
// right. It never draws beyond its width; what does not fit is cut with ….
type canvas struct {
	b     []byte
	w     int
	lines int
	left  int // columns left on this line
}

func (c *canvas) reset(w int) { c.b, c.w, c.lines, c.left = c.b[:0], w, 0, w }

// text draws s.
func (c *canvas) text(s safe, st theme.Style) {
	if c.left <= 0 {
		return
	}
	part, n, cut := fit(s, c.left)
	if cut {
		part, n, _ = fit(s, c.left-1)
		c.b = st.Open(c.b)
		c.b = append(append(c.b, part...), "…"...)
		c.b = st.Close(c.b)
		c.left -= n + 1
		return
	}
	c.b = st.Append(c.b, string(part))
	c.left -= n
}

// gap leaves n columns free.
func (c *canvas) gap(n int) {
	for n = min(n, c.left); n > 0; n-- {
		c.b = append(c.b, ' ')
		c.left--
	}
}

// cell draws s in a column of w.
func (c *canvas) cell(s safe, w int, st theme.Style) {
	w = max(0, min(w, c.left))
	rest := c.left - w
	c.left = w
	c.text(s, st)
	c.gap(c.left)
	c.left = rest
}

// flush draws s at the right end of a column of w.
func (c *canvas) flush(s safe, w int, st theme.Style) {
	w = max(0, min(w, c.left))
	if n := width(s); n < w {
		c.gap(w - n)
		w = n
	}
	rest := c.left - w
	c.left = w
	c.text(s, st)
	c.left += rest
}

// fill draws a rule to the end of the line.
func (c *canvas) fill(st theme.Style) {
	if c.left <= 0 {
		return
	}
	c.b = st.Open(c.b)
	for ; c.left > 0; c.left-- {
		c.b = append(c.b, "─"...)
	}
	c.b = st.Close(c.b)
}

// end ends the line.
func (c *canvas) end() {
	c.b = append(c.b, '\n')
	c.lines++
	c.left = c.w
}

// line draws a whole line.
func (c *canvas) line(s safe, st theme.Style) {
	c.text(s, st)
	c.end()
}

// pad adds empty lines until there are n.
func (c *canvas) pad(n int) {
	for c.lines < n {
		c.end()
	}
}
