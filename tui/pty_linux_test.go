package tui

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is our end of a pseudo-terminal on which the program runs.
type terminal struct {
	t    testing.TB
	f    *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	got  bytes.Buffer
	grew chan struct{} // of one
	done chan struct{}
}

// onPTY starts the program on a terminal that answers questions when told how.
func onPTY(t testing.TB, socket string, answer string) *terminal {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer tty.Close()
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &terminal{t: t, f: f, cmd: exec.Command(self), grew: make(chan struct{}, 1), done: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.Env = []string{childSocket + "=" + socket, "TERM=xterm-256color", "LC_ALL=C.UTF-8"}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(answer)
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has ended by itself when the test went well
		_ = c.cmd.Wait()
		_ = f.Close()
		<-c.done
	})
	return c
}

func (c *terminal) read(answer string) {
	defer close(c.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := c.f.Read(buf)
		if err != nil {
			return
		}
		if answer != "" && bytes.Contains(buf[:n], []byte("\x1b[c")) {
			if _, err := c.f.WriteString(answer); err != nil {
				return
			}
		}
		c.mu.Lock()
		c.got.Write(buf[:n])
		c.mu.Unlock()
		select {
		case c.grew <- struct{}{}:
		default:
		}
	}
}

func (c *terminal) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func (c *terminal) until(want string) {
	c.t.Helper()
	end := time.NewTimer(20 * time.Second)
	defer end.Stop()
	for !bytes.Contains([]byte(c.text()), []byte(want)) {
		select {
		case <-c.grew:
		case <-end.C:
			c.t.Fatalf("waited for %q in %q", want, c.text())
		}
	}
}

// still returns what comes within d.
func (c *terminal) still(d time.Duration) string {
	before := len(c.text())
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
	return c.text()[before:]
}

// A terminal that says nothing costs at most the time that one may take to
// answer, and nothing is asked twice. One that answers chooses the look.
func TestPTY(t *testing.T) {
	_, socket := served(t, func(f *fake) { f.HoldRows = nil }) // no time runs on the screen
	for _, c := range []struct{ name, answer, look string }{
		{"silent", "", "\x1b[38;5;111m["},
		{"dark", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\\x1b[?62c", "\x1b[38;5;111m["},
		{"light", "\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?62c", "\x1b[38;5;25m["},
		{"does not know", "\x1b[?62c", "\x1b[38;5;111m["},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			term := onPTY(t, socket, c.answer)
			term.until(c.look)
			first := time.Since(began)
			term.until("Nothing waits")
			t.Logf("first frame after %v", first)
			if first > 3*time.Second {
				t.Errorf("the first frame took %v", first)
			}
			if n := bytes.Count([]byte(term.text()), []byte("\x1b]11;?")); n != 1 {
				t.Errorf("the background was asked for %d times", n)
			}
			if c.answer == "" {
				term.still(300 * time.Millisecond) // what start-up still has to say
				if s := term.still(1500 * time.Millisecond); s != "" {
					t.Errorf("an idle program wrote %q", s)
				}
			}
			for _, frame := range bytes.SplitAfter([]byte(term.text()), []byte("\x1b[?2026l"))[:1] {
				if !bytes.Contains(frame, []byte("\x1b[?2026h")) {
					t.Errorf("a frame is not bracketed: %q", frame)
				}
			}
			if _, err := term.f.WriteString("q"); err != nil {
				t.Fatal(err)
			}
			if err := term.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			term.until("\x1b[?1049l")
		})
	}
}

// Without a terminal nothing is drawn and nothing is asked.
func TestPipe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{childSocket + "=" + filepath.Join(t.TempDir(), "x"), "TERM=xterm"}
	out, err := cmd.CombinedOutput()
	if err == nil || bytes.Contains(out, []byte("\x1b")) {
		t.Errorf("got %v, %q", err, out)
	}
}

// cpu is the processor time that the program has used so far.
func (c *terminal) cpu() time.Duration {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "stat"))
	if err != nil {
		c.t.Fatal(err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return time.Duration(user+system) * time.Second / 100 // USER_HZ
}
