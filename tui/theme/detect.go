package theme

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// AskLimit is how long a terminal has to say its background.
const AskLimit = 150 * time.Millisecond

// Getenv reads one variable of an environment in the form of os.Environ: the
// last one wins.
func Getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Detect finds the look: what was wished, else NO_COLOR, else COLORFGBG, else
// what ask says of the background. ask is called at most once and may be nil.
func Detect(wish Kind, env []string, ask func() (dark, ok bool)) Kind {
	switch {
	case wish != Auto && wish != "":
		return wish
	case Getenv(env, "NO_COLOR") != "", Getenv(env, "TERM") == "dumb":
		return None
	}
	if dark, ok := colorFGBG(Getenv(env, "COLORFGBG")); ok {
		return kind(dark)
	}
	if ask != nil {
		if dark, ok := ask(); ok {
			return kind(dark)
		}
	}
	return Dark
}

func kind(dark bool) Kind {
	if dark {
		return Dark
	}
	return Light
}

// colorFGBG reads "15;0" or "15;default;0": the last is the background, one of
// the sixteen colours.
func colorFGBG(s string) (dark, ok bool) {
	i := strings.LastIndexByte(s, ';')
	if i < 0 {
		return false, false
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil || n < 0 || n > 15 {
		return false, false
	}
	return n != 7 && (n < 9 || n == 8), true
}

// Depths finds how many colours the terminal has, from its environment alone.
func Depths(env []string) Depth {
	name := Getenv(env, "TERM")
	switch strings.ToLower(Getenv(env, "COLORTERM")) {
	case "truecolor", "24bit":
		// screen hands on 256 colours and garbles more.
		if !strings.HasPrefix(name, "screen") || Getenv(env, "TMUX") != "" {
			return True
		}
	}
	if strings.Contains(name, "direct") {
		return True
	}
	if strings.Contains(name, "256color") || Getenv(env, "COLORTERM") != "" {
		return Many
	}
	return Sixteen
}

// Ask asks the terminal for its background and waits for at most limit. Behind
// the question stands one that every terminal answers, so that one which does
// not know its background costs no wait. What a person typed meanwhile is lost.
func Ask(in, out *os.File, limit time.Duration) (dark, ok bool) {
	if !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()) {
		return false, false
	}
	old, err := term.MakeRaw(in.Fd())
	if err != nil {
		return false, false
	}
	defer func() { _ = term.Restore(in.Fd(), old) }()
	if _, err := out.WriteString("\x1b]11;?\x1b\\\x1b[c"); err != nil {
		return false, false
	}
	var got []byte
	for end := time.Now().Add(limit); ; {
		left := time.Until(end)
		if left <= 0 || len(got) > 4096 || !readable(int(in.Fd()), left) {
			return false, false
		}
		buf := make([]byte, 256)
		n, err := unix.Read(int(in.Fd()), buf)
		if err != nil || n <= 0 {
			return false, false
		}
		got = append(got, buf[:n]...)
		if dark, ok := background(got); ok {
			drain(int(in.Fd()), end)
			return dark, true
		}
		if attributes(got) {
			return false, false
		}
	}
}

// drain reads the second answer, which may come a little later than the first.
func drain(fd int, end time.Time) {
	buf := make([]byte, 256)
	for readable(fd, min(time.Until(end), 20*time.Millisecond)) {
		if n, err := unix.Read(fd, buf); err != nil || n <= 0 || attributes(buf[:n]) {
			return
		}
	}
}

func readable(fd int, wait time.Duration) bool {
	if wait <= 0 || fd >= unix.FD_SETSIZE {
		return false
	}
	var set unix.FdSet
	set.Set(fd)
	tv := unix.NsecToTimeval(wait.Nanoseconds())
	n, err := unix.Select(fd+1, &set, nil, nil, &tv)
	return err == nil && n > 0
}

// attributes reports the answer to "what are you": CSI ? … c.
func attributes(b []byte) bool {
	i := bytes.Index(b, []byte("\x1b[?"))
	return i >= 0 && bytes.IndexByte(b[i:], 'c') > 0
}

// background reads an answer of the form ESC ] 11 ; rgb:RRRR/GGGG/BBBB and its end.
func background(b []byte) (dark, ok bool) {
	i := bytes.Index(b, []byte("\x1b]11;"))
	if i < 0 {
		return false, false
	}
	b = b[i+len("\x1b]11;"):]
	j := bytes.IndexAny(b, "\x07\x1b")
	if j < 0 {
		return false, false
	}
	_, value, ok := strings.Cut(string(b[:j]), ":") // rgb: or rgba:
	parts := strings.Split(value, "/")
	if !ok || len(parts) < 3 {
		return false, false
	}
	var c [3]float64
	for i := range c {
		v, err := strconv.ParseUint(parts[i], 16, 16)
		if err != nil || len(parts[i]) == 0 {
			return false, false
		}
		c[i] = float64(v) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	return 0.299*c[0]+0.587*c[1]+0.114*c[2] < 0.5, true
}
