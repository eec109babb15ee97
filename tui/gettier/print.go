package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

// printer is the way out: every string that it is given is cleaned, so that no
// command can forget it.
type printer struct {
	w     *bufio.Writer
	width int  // columns of the terminal, 0 when it is none
	tty   bool // a person looks on
}

func newPrinter(w io.Writer) *printer {
	width, tty := terminal(w)
	return &printer{w: bufio.NewWriter(w), width: width, tty: tty}
}

// terminal reports whether w is a terminal, and how wide.
func terminal(w any) (width int, ok bool) {
	f, is := w.(*os.File)
	if !is {
		return 0, false
	}
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(ws.Col), true
}

// line prints one line, whatever its arguments hold.
func (p *printer) line(format string, args ...any) {
	p.w.WriteString(clean.Line(fmt.Sprintf(format, args...)) + "\n")
	p.flush()
}

// text prints cleaned text of several lines, each after indent.
func (p *printer) text(s, indent string) {
	for l := range strings.SplitSeq(strings.TrimRight(clean.Text(s), "\n"), "\n") {
		p.w.WriteString(strings.TrimRight(indent+l, " ") + "\n")
	}
	p.flush()
}

// hang prints text after prefix. On a terminal it is folded at spaces, and what
// is folded stands under the text: here, unlike in a list, nothing is cut.
func (p *printer) hang(prefix, text string) {
	prefix, text = clean.Line(prefix), clean.Line(text)
	indent := strings.Repeat(" ", clean.Width(prefix))
	room := p.width - len(indent)
	if !p.tty || room < 20 {
		room = 1 << 30
	}
	for {
		part, rest := text, ""
		if clean.Width(text) > room {
			part = strings.TrimSuffix(clean.Cut(text, room+1), "…")
			// A word longer than the row is broken where the row ends.
			if i := strings.LastIndexByte(part, ' '); i > len(part)/2 && !strings.HasPrefix(text[len(part):], " ") {
				part = part[:i]
			}
			rest = strings.TrimLeft(text[len(part):], " ")
		}
		p.w.WriteString(strings.TrimRight(prefix+part, " ") + "\n")
		if rest == "" || part == "" {
			break
		}
		prefix, text = indent, rest
	}
	p.flush()
}

// flush: nobody is told when stdout is gone; the exit code does not change.
func (p *printer) flush() { _ = p.w.Flush() }

// value prints v as one line of JSON. On a terminal the characters that could
// steer it are spelled \uXXXX, which means the same.
func (p *printer) value(v any) {
	b, err := ipc.Marshal(v)
	if err != nil {
		b = []byte(strconv.Quote("cannot print: " + err.Error()))
	}
	if p.tty {
		b = escapeJSON(b)
	}
	p.w.Write(b)
	p.w.WriteByte('\n')
	p.flush()
}

func escapeJSON(b []byte) []byte {
	s := string(b)
	if clean.Line(s) == s {
		return b
	}
	out := make([]byte, 0, len(s)+64)
	for _, r := range s {
		one := string(r)
		// The probe stands between two letters, where joiners and marks count too.
		if r < utf8.RuneSelf || clean.Line("a"+one+"b") == "a"+one+"b" {
			out = append(out, one...)
			continue
		}
		if r >= 0x10000 {
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
			continue
		}
		out = fmt.Appendf(out, `\u%04x`, r)
	}
	return out
}

// table prints rows with aligned columns. right names the columns to set flush
// right. On a terminal a row is cut, never wrapped; the last column gives way.
func (p *printer) table(rows [][]string, right ...int) {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			r[i] = clean.Line(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], clean.Width(r[i]))
		}
	}
	flush := map[int]bool{}
	for _, c := range right {
		flush[c] = true
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-clean.Width(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			switch {
			case flush[i]:
				b.WriteString(pad + cell)
			case i == len(r)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		l := strings.TrimRight(b.String(), " ")
		if p.tty && p.width > 0 {
			l = clean.Cut(l, p.width)
		}
		p.w.WriteString(l + "\n")
	}
	p.flush()
}

// stamp is a chain time in local time, short when it is today.
func (a *app) stamp(ts string) string { return words.Stamp(ts, a.now()) }
