package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/scenarios/fixture"
)

func supervise(t *testing.T) *supervisor {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSupervisor(self(t), dir, dir)
	t.Cleanup(s.close)
	return s
}

func start(t *testing.T, s *supervisor, name string, argv ...string) *process {
	t.Helper()
	p, err := s.start(command{name: name, argv: argv, dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits for a condition that must come true within 10 s.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func pidIn(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	eventually(t, "a pid in "+file, func() bool {
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return pid
}

// TestStubbornDescendants: a grandchild in a session of its own that ignores
// TERM is ended with the rest.
func TestStubbornDescendants(t *testing.T) {
	if _, err := lookPath("setsid"); err != nil {
		t.Skip("setsid (Debian package util-linux) is not here")
	}
	s := supervise(t)
	file := filepath.Join(t.TempDir(), "pid")
	p, err := s.start(command{name: "stubborn", dir: t.TempDir(), stop: scenarios.Stop{Signal: "TERM", Grace: 200 * time.Millisecond},
		argv: []string{"sh", "-c", `setsid sh -c 'trap "" TERM; echo $$ >"$1"; while :; do sleep 1; done' x "$1" & wait`, "x", file}})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, file)
	p.stop()
	eventually(t, "the end of the grandchild", func() bool { return !alive(pid) })
}

// TestKilledHarness: the harness dies by KILL, and what it supervised ends all
// the same, a grandchild in a session of its own included.
func TestKilledHarness(t *testing.T) {
	if _, err := lookPath("setsid"); err != nil {
		t.Skip("setsid (Debian package util-linux) is not here")
	}
	if _, err := fixture.Descendants(1); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command(self(t), "supervise-and-hang", t.TempDir(), file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, file)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as was meant
	eventually(t, "the end of the grandchild", func() bool { return !alive(pid) })
}

func TestExitCodes(t *testing.T) {
	s := supervise(t)
	for _, code := range []int{0, 1, 7} {
		p := start(t, s, "exit", "sh", "-c", fmt.Sprintf("exit %d", code))
		if got, err := p.wait(t.Context()); got != code || err != nil {
			t.Errorf("exit %d: %d, %v", code, got, err)
		}
	}
	p := start(t, s, "killed", "sh", "-c", "kill -KILL $$")
	if got, err := p.wait(t.Context()); got != 128+9 || err != nil {
		t.Errorf("killed: %d, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = start(t, s, "long", "sleep", "600")
	cancel()
	if _, err := p.wait(ctx); !errors.Is(err, context.Canceled) || !p.ended() {
		t.Errorf("cancelled: %v", err)
	}
}

func TestStrangerOnThePort(t *testing.T) {
	if _, err := fixture.Listeners("127.0.0.1:1"); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := supervise(t)
	p := start(t, s, "sleeper", "sleep", "600")
	err = p.ready(t.Context(), scenarios.Ready{TCP: l.Addr().String()}, 5*time.Second)
	if err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("a stranger's port counts as ready: %v", err)
	}
}

func TestReadiness(t *testing.T) {
	s := supervise(t)
	p := start(t, s, "failing", "sh", "-c", "echo no such luck >&2; exit 3")
	err := p.ready(t.Context(), scenarios.Ready{Log: "serving"}, 10*time.Second)
	if err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("a program that ended: %v", err)
	}
	p = start(t, s, "logging", "sh", "-c", "echo serving now; exec sleep 600")
	if err := p.ready(t.Context(), scenarios.Ready{Log: "serving"}, 10*time.Second); err != nil {
		t.Errorf("log: %v", err)
	}
	file := filepath.Join(t.TempDir(), "there")
	p = start(t, s, "writing", "sh", "-c", `: >"$1"; exec sleep 600`, "x", file)
	if err := p.ready(t.Context(), scenarios.Ready{File: file}, 10*time.Second); err != nil {
		t.Errorf("file: %v", err)
	}
	p = start(t, s, "idle", "sleep", "600")
	if err := p.ready(t.Context(), scenarios.Ready{File: "/no/such/file"}, 50*time.Millisecond); err == nil {
		t.Error("an idle program counts as ready")
	}
	if _, err := s.start(command{name: "absent", argv: []string{"no-such-program-here"}, dir: t.TempDir(), user: "no-such-user-here"}); err == nil {
		t.Error("an unknown user was accepted")
	}
}

// TestPassedDescriptor: the program has it, and nobody else: neither its guard
// nor what is started beside it.
func TestPassedDescriptor(t *testing.T) {
	s := supervise(t)
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := ours.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.start(command{name: "passed", dir: t.TempDir(), files: []*os.File{theirs},
		argv: []string{"sh", "-c", `read -r line <&3 && echo "got $line" >&3; exec 3>&-; exec sleep 600`}}); err != nil {
		t.Fatal(err)
	}
	var beside capped
	p, err := s.start(command{name: "beside", dir: t.TempDir(), stdout: &beside, argv: []string{"sh", "-c", `if true 2>/dev/null <&3; then echo open; else echo shut; fi`}})
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if _, err := p.wait(t.Context()); err != nil || strings.TrimSpace(beside.String()) != "shut" {
		t.Errorf("beside it descriptor 3 is %q: %v", beside.String(), err)
	}
	if _, err := ours.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	// The end comes when the program closes it: no other copy is open.
	if said, err := io.ReadAll(ours); err != nil || string(said) != "got hello\n" {
		t.Errorf("it said %q, %v", said, err)
	}
}
