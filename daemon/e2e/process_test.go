package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child with its output kept.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}

	crashes bool // as the test wants it to

	mu   sync.Mutex
	out  []string
	errs bytes.Buffer
	read int
}

// startProcess starts cmd; it is killed when the test ends, or the test binary does.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = time.Second // what a child of its own holds open is not waited for
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = lockedWriter{p}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		in := bufio.NewScanner(stdout)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			p.mu.Lock()
			p.out = append(p.out, in.Text())
			p.mu.Unlock()
		}
		_ = cmd.Wait() // the exit code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = cmd.Process.Kill() // gone already in most tests
		<-p.done
		for _, bug := range []string{"DATA RACE", "panic", "fatal error", "stage failed", "goroutine "} {
			if !p.crashes && strings.Contains(p.errors(), bug) {
				t.Errorf("%s printed a %s", filepath.Base(cmd.Path), bug)
				break
			}
		}
		if t.Failed() && strings.TrimSpace(p.errors()) != "" {
			t.Logf("%s said: %s", filepath.Base(cmd.Path), p.errors())
		}
	})
	return p
}

type lockedWriter struct{ p *process }

func (w lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.errs.Write(b)
}

func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.out)
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs.String()
}

// line waits for the next line of standard output; "" when the process ended.
func (p *process) line() string {
	p.t.Helper()
	var s string
	eventually(p.t, filepath.Base(p.cmd.Path)+" says something", func() bool {
		ended := isClosed(p.done)
		if lines := p.lines(); p.read < len(lines) {
			s = lines[p.read]
			p.read++
			return true
		}
		return ended
	})
	return s
}

// wait waits for the end and returns the exit code, -1 after a signal.
func (p *process) wait() int {
	p.t.Helper()
	eventually(p.t, filepath.Base(p.cmd.Path)+" ends", func() bool { return isClosed(p.done) })
	return p.cmd.ProcessState.ExitCode()
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// eventually polls until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	within(t, patience, what, cond)
}

func within(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			if cond() {
				return
			}
			t.Fatalf("not so after %s: %s", limit, what)
		}
	}
}
