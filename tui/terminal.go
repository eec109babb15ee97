package tui

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"gettier.dev/gettierd/tui/theme"
)

// writer sends each frame in one piece: between the marks of DEC 2026 a
// terminal that knows them shows it at once, and without automatic margins a
// character that is wider here than there cannot break a line in two. Frames
// come by Write, single sequences by WriteString.
type writer struct {
	*os.File
	mu      sync.Mutex
	painted map[string]bool // sequences that the first frame has brought already
}

// paint shows the first frame before the renderer's first beat comes. What the
// renderer does to begin with would only wipe it away again.
func (w *writer) paint(frame string) error {
	const alt, wipe = ansi.SetModeAltScreenSaveCursor, ansi.EraseEntireScreen
	if _, err := w.Write([]byte(alt + wipe + ansi.CursorHomePosition + strings.ReplaceAll(frame, "\n", "\r\n"))); err != nil {
		return err
	}
	w.painted = map[string]bool{alt: true, wipe: true}
	return nil
}

const (
	frameBegin = ansi.SetModeSynchronizedOutput + ansi.ResetModeAutoWrap
	frameEnd   = ansi.SetModeAutoWrap + ansi.ResetModeSynchronizedOutput
)

// leave gives the screen back when the renderer never took it over.
func (w *writer) leave() {
	if len(w.painted) > 0 {
		_, _ = w.File.WriteString(ansi.ResetModeAltScreenSaveCursor) // the error to report is the renderer's
	}
}

func (w *writer) Write(frame []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := make([]byte, 0, len(frame)+len(frameBegin)+len(frameEnd))
	b = append(append(append(b, frameBegin...), frame...), frameEnd...)
	if _, err := w.File.Write(b); err != nil {
		return 0, fmt.Errorf("write frame: %w", err)
	}
	return len(frame), nil
}

func (w *writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.painted[s] {
		delete(w.painted, s)
		return len(s), nil
	}
	return w.File.WriteString(s)
}

// ring calls for a person: a bell, and a notification where the terminal knows
// how and nobody is looking. text must be ours.
func (m *Model) ring(text safe) {
	seq := "\a"
	if m.blurred {
		seq += m.through(ansi.Notify(string(text)))
	}
	m.emit(seq)
}

// emit writes a sequence beside the frames.
func (m *Model) emit(seq string) {
	if m.out != nil {
		_, _ = m.out.WriteString(seq) // a terminal that is gone ends the program by itself
	}
}

// clip puts text on the person's clipboard, also from afar (OSC 52).
func (m *Model) clip(s string) {
	m.emit(m.through(ansi.SetSystemClipboard(s)))
}

// through wraps a sequence for the terminal outside of tmux or screen.
func (m *Model) through(seq string) string {
	switch {
	case theme.Getenv(m.o.Env, "TMUX") != "":
		return ansi.TmuxPassthrough(seq)
	case strings.HasPrefix(theme.Getenv(m.o.Env, "TERM"), "screen"):
		return ansi.ScreenPassthrough(seq, 0)
	}
	return seq
}

// reader drops answers to the question for the background that come after we
// stopped waiting: as keys they would choose screens, or worse.
type reader struct {
	*os.File
	held []byte // beginning of what may be such an answer
}

const (
	answerBegin = "\x1b]11;"
	answerMost  = 64 // bytes; whatever is longer is none
)

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.File.Read(p[:max(1, len(p)-len(r.held))])
	if n <= 0 {
		return n, err
	}
	out := r.filter(p[:n])
	return copy(p, out), err
}

func (r *reader) filter(b []byte) []byte {
	all := append(r.held, b...)
	r.held = nil
	var out []byte
	for len(all) > 0 {
		i := bytes.Index(all, []byte(answerBegin))
		if i < 0 {
			break
		}
		out = append(out, all[:i]...)
		rest := all[i+len(answerBegin):]
		end := bytes.IndexAny(rest, "\a\x1b")
		switch {
		case end < 0 && len(rest) < answerMost:
			r.held = bytes.Clone(all[i:])
			return out
		case end < 0 || end >= answerMost:
			out = append(out, answerBegin...)
			all = rest
		case rest[end] == '\a':
			all = rest[end+1:]
		default:
			all = bytes.TrimPrefix(rest[end:], []byte("\x1b\\"))
		}
	}
	return append(out, all...)
}
