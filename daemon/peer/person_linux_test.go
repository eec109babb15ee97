package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary plays all parts: with PEER_ROLE set it is a helper. A helper
// connects to PEER_SOCKET and stays until the test hangs up.
func TestMain(m *testing.M) {
	switch os.Getenv("PEER_ROLE") {
	case "":
		os.Exit(m.Run())
	case "call":
		os.Exit(call())
	case "background":
		os.Exit(background())
	case "detach":
		os.Exit(detach())
	case "opener":
		os.Exit(opener())
	}
	os.Exit(2)
}

func call() int {
	c, err := net.Dial("unix", os.Getenv("PEER_SOCKET"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, c) // until the test closes
	return 0
}

func helper(role string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(clear(os.Environ()), "PEER_ROLE="+role)
	return cmd
}

// clear takes the marks of agents out, should the tests be run by one.
func clear(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(markers, name) || name == "PEER_ROLE"
	})
}

// background starts a caller in a process group of its own, which is not the
// terminal's foreground group.
func background() int {
	cmd := helper("call")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

// detach leaves a caller behind on a terminal whose other end its parent holds,
// as setsid -f script does; then it ends.
func detach() int {
	master, slave, err := openPTY()
	if err != nil {
		return 1
	}
	cmd := exec.Command("/bin/sh", "-c", `"$0" & wait`, os.Args[0])
	cmd.Env = append(clear(os.Environ()), "PEER_ROLE=call")
	cmd.ExtraFiles = []*os.File{master} // keeps the terminal alive
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return 1
	}
	return 0
}

// opener has no terminal and opens one for a caller, as script does.
func opener() int {
	master, slave, err := openPTY()
	if err != nil {
		return 1
	}
	defer master.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }() // ends with the terminal
	cmd := helper("call")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

func openPTY() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

type setup struct {
	role  string
	tty   bool
	env   []string
	argv0 string
	exe   string // a copy of the test binary under this name
}

// caller starts a helper and returns the process that its connection shows.
func caller(t *testing.T, s setup) (Process, net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	cmd := helper(s.role)
	cmd.Env = append(cmd.Env, "PEER_SOCKET="+path)
	cmd.Env = append(cmd.Env, s.env...)
	if s.exe != "" {
		copied := filepath.Join(t.TempDir(), s.exe)
		data, err := os.ReadFile(cmd.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, data, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd.Path = copied
		cmd.Args[0] = copied
	}
	if s.argv0 != "" {
		cmd.Args[0] = s.argv0
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.tty {
		master, slave, err := openPTY()
		if err != nil {
			t.Skip("no terminals here:", err)
		}
		t.Cleanup(func() { master.Close() })
		go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(master)) }() // ends with the terminal
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr.Setctty = true
		defer slave.Close()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			conn <- c
		}
	}()
	select {
	case c := <-conn:
		if s.role == "detach" {
			_ = cmd.Wait() // now its child is an orphan
			t.Cleanup(func() { c.Close() })
		} else {
			t.Cleanup(func() { c.Close(); _ = cmd.Wait() }) // the helper's own code says nothing here
		}
		p, err := Unix(c.(*net.UnixConn))
		if err != nil {
			t.Fatal(err)
		}
		return p, c
	case <-time.After(10 * time.Second):
		t.Fatal("the helper did not call")
		return Process{}, nil
	}
}

func refused(t *testing.T, p Process, want string) {
	t.Helper()
	a, err := Person(p, math.MaxUint64)
	var r *Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Error(), want) || r.Hint == "" {
		t.Errorf("got %+v, %v; want a refusal with %q and a hint", a, err, want)
	}
}

func TestPersonAtTerminal(t *testing.T) {
	p, _ := caller(t, setup{role: "call", tty: true})
	a, err := Person(p, math.MaxUint64)
	if err != nil {
		if name, why := agentAbove(p); name {
			t.Skip("these tests are run by an agent:", why)
		}
		t.Fatal(err)
	}
	if a.UID != os.Getuid() || !strings.HasPrefix(a.TTY, "pts/") || len(a.Chain) < 2 || !strings.HasSuffix(a.Chain[0], fmt.Sprintf("[%d]", p.PID)) {
		t.Errorf("%+v", a)
	}
}

func agentAbove(p Process) (bool, string) {
	for _, q := range p.Chain() {
		if name, ok := agent(q); ok {
			return true, name
		}
	}
	return false, ""
}

func TestPersonRefused(t *testing.T) {
	t.Run("no terminal", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call"})
		refused(t, p, "no controlling terminal")
	})
	t.Run("background", func(t *testing.T) {
		p, _ := caller(t, setup{role: "background", tty: true})
		refused(t, p, "background")
	})
	t.Run("agent's mark", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call", tty: true, env: []string{"CLAUDECODE=1"}})
		refused(t, p, "CLAUDECODE is set")
	})
	t.Run("agent's name", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call", tty: true, exe: "codex"})
		refused(t, p, "started by codex")
	})
	t.Run("agent's first word", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call", tty: true, argv0: "/opt/x/claude"})
		refused(t, p, "started by claude")
	})
	t.Run("agent above", func(t *testing.T) {
		p, _ := caller(t, setup{role: "background", tty: true, exe: "opencode"})
		// In the foreground or not, the agent's child is no person.
		if _, ok := agentAboveName(p, "opencode"); !ok {
			t.Error("the agent above was not seen")
		}
	})
	t.Run("detached", func(t *testing.T) {
		p, _ := caller(t, setup{role: "detach"})
		st, err := readStat(p.PID)
		if err != nil || st.tty == 0 {
			t.Skip("the helper has no terminal:", err)
		}
		if _, err := Person(p, math.MaxUint64); err == nil {
			t.Error("a detached caller was taken for a person")
		}
	})
	t.Run("gone", func(t *testing.T) {
		p, c := caller(t, setup{role: "call", tty: true})
		c.Close()
		// Not a child of ours to wait for here: its end is a condition to wait on.
		for deadline := time.Now().Add(10 * time.Second); p.Alive(); {
			if time.Now().After(deadline) {
				t.Fatal("it does not end")
			}
		}
		refused(t, p, "ended")
	})
	t.Run("another start", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call", tty: true})
		p.Start++
		refused(t, p, "ended")
	})
	t.Run("another user", func(t *testing.T) {
		p, _ := caller(t, setup{role: "call", tty: true})
		p.UID++
		refused(t, p, "uid")
	})
	t.Run("nobody", func(t *testing.T) {
		refused(t, Process{}, "not known")
	})
}

// A terminal that something without one opened after the daemon began shows
// nothing to nobody.
func TestSeated(t *testing.T) {
	self, err := Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := caller(t, setup{role: "opener"})
	st, err := readStat(p.PID)
	if err != nil || st.tty == 0 || st.pgrp != st.tpgid {
		t.Fatalf("the caller does not stand in the foreground of a terminal: %+v, %v", st, err)
	}
	line := append([]Process{p}, p.Chain()...)
	if len(line) < 3 {
		t.Fatalf("the line is %v", line)
	}
	if err := seated(line, self, line[1].Start); err == nil {
		t.Error("a terminal of nobody's passed")
	} else if !strings.Contains(err.Error(), "opened by") {
		t.Error(err)
	}
	if a, err := Person(p, 0); err == nil {
		t.Errorf("%+v", a)
	}
	if err := seated(line, self, line[1].Start+1); err != nil {
		t.Error("opened before the daemon began:", err)
	}
	if err := seated(line[:1], self, 0); err != nil {
		t.Error("nothing is known above:", err)
	}
}

func agentAboveName(p Process, want string) (string, bool) {
	for _, q := range append([]Process{p}, p.Chain()...) {
		if name, ok := agent(q); ok && name == want {
			return name, true
		}
	}
	return "", false
}

// What was detached after the daemon's start has no known origin; what is older,
// or above the daemon itself, has.
func TestRooted(t *testing.T) {
	self, err := Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := caller(t, setup{role: "call"})
	one, err := Find(1)
	if err != nil {
		t.Skip("the first process cannot be seen:", err)
	}
	if inits[one.Name()] && os.Getppid() == 1 {
		t.Skip("the tests themselves were detached")
	}
	if err := rooted([]Process{p, one}, self, self.Start); err == nil {
		t.Error("a younger orphan passed")
	}
	if err := rooted([]Process{p, self, one}, self, self.Start); err != nil {
		t.Error("our own tree:", err)
	}
	older := p
	older.Start = 1
	if err := rooted([]Process{p, older, one}, self, self.Start); err != nil {
		t.Error("older than the daemon:", err)
	}
	if err := rooted([]Process{p, self}, self, self.Start); err == nil {
		t.Error("a line that ends in the middle passed")
	}
}

func TestEnvAndArgs(t *testing.T) {
	p, _ := caller(t, setup{role: "call", env: []string{"PEER_X=a=b", "PEER_EMPTY="}})
	if v, ok := p.Env("PEER_X"); !ok || v != "a=b" {
		t.Errorf("PEER_X is %q, %v", v, ok)
	}
	if v, ok := p.Env("PEER_EMPTY"); !ok || v != "" {
		t.Errorf("PEER_EMPTY is %q, %v", v, ok)
	}
	if _, ok := p.Env("PEER"); ok {
		t.Error("a prefix of a name was taken for it")
	}
	if args := p.Args(); len(args) != 1 {
		t.Errorf("args %q", args)
	}
	p.Start++
	if _, ok := p.Env("PEER_X"); ok || p.Args() != nil || p.Name() != "" || p.Chain() != nil || p.Alive() {
		t.Error("another process answers for one that is gone")
	}
}

func TestScriptAgents(t *testing.T) {
	for args, want := range map[string]bool{
		"/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js": true,
		"--max-old-space-size=4096 /usr/bin/claude":              true,
		"-m aider":              true,
		"/home/u/bin/gemini":    true,
		"server.js codex":       false,
		"/srv/app/index.js":     false,
		"-m http.server":        false,
		"/home/u/aiderless.py":  false,
		"exec @openai/codex -y": true,
	} {
		if _, got := scriptAgent(strings.Fields(args)); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	s, err := parseStat([]byte("42 (a) R (b) S 7 8 9 34817 10 4194304 98 0 0 0 0 0 0 0 20 0 1 0 181379 3133440\n"))
	if err != nil || s.comm != "a) R (b" || s.state != 'S' || s.ppid != 7 || s.pgrp != 8 || s.session != 9 || s.tty != 34817 || s.tpgid != 10 || s.start != 181379 {
		t.Errorf("%+v, %v", s, err)
	}
	if ttyName(s.tty) != "pts/1" || ttyName(4<<8|1) != "tty1" || ttyName(4<<8|64) != "ttyS0" {
		t.Error("names of terminals")
	}
	for _, bad := range []string{"", "1", "1 (a", "1 (a) S 1 2", "1 (a) S x 8 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("   0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 20 4 30 10 -1\n")
	f.Add("0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:0050 01 a b c 0 0 7 1")
	f.Fuzz(func(t *testing.T, table string) {
		for line := range strings.SplitSeq(table, "\n") {
			if fs := strings.Fields(line); len(fs) > 2 {
				a, okA := tableAddr(fs[1])
				b, okB := tableAddr(fs[2])
				if okA && okB {
					tableRow(table, a, b)
				}
			}
		}
		_, _ = parseStat([]byte(table)) // must not panic
	})
}

// TestHostByName: a program of one's own that is called like a terminal hosts none.
func TestHostByName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep here")
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "xterm")
	if err := os.WriteFile(named, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(named, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	self, err := Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if p.Start == self.Start {
		p.Start++ // the clock's ticks are coarse
	}
	if host(p, self, self.Start) {
		t.Errorf("%s (%s) passes for a terminal", p.Name(), p.Exe)
	}
	self.Start = p.Start + 1
	if !host(p, self, self.Start) {
		t.Error("a terminal older than the daemon does not count")
	}
}
