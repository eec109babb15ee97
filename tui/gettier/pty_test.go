//go:build linux

package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/tui/clean"
)

// openPTY makes a pseudo-terminal of 80 columns: what is written to ours comes out of theirs.
func openPTY(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { theirs.Close() })
	if err := unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// typed is a terminal on which somebody has typed s.
func typed(t *testing.T, s string) *os.File {
	t.Helper()
	ours, theirs := openPTY(t)
	if _, err := ours.WriteString(s); err != nil {
		t.Fatal(err)
	}
	return theirs
}

// On a terminal, rows are cut to its width, and JSON cannot steer it.
func TestOnATerminal(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	for _, args := range [][]string{{"turns"}, {"turns", "last"}, {"facts", "--json"}, {"sensors", "list"}} {
		ours, theirs := openPTY(t)
		done := make(chan string, 1) // one result
		go func() {
			var all bytes.Buffer
			buf := make([]byte, 4096)
			for {
				n, err := ours.Read(buf)
				all.Write(buf[:n])
				if err != nil || bytes.Contains(all.Bytes(), []byte("END OF TEST")) {
					done <- all.String()
					return
				}
			}
		}()
		a := &app{in: w.stdin, out: theirs, err: theirs, env: w.env(), now: time.Now, signal: w.signal}
		if code := a.run(t.Context(), args); code != exitOK {
			t.Errorf("%v: exit %d", args, code)
		}
		if _, err := theirs.WriteString("END OF TEST\n"); err != nil {
			t.Fatal(err)
		}
		out := strings.ReplaceAll(<-done, "\r\n", "\n")
		checkClean(t, out)
		for l := range strings.SplitSeq(out, "\n") {
			if args[len(args)-1] != "--json" && clean.Width(l) > 80 {
				t.Errorf("%v: %d columns: %q", args, clean.Width(l), l)
			}
		}
	}
}
