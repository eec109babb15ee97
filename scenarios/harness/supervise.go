package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/scenarios/fixture"
)

// lookPath finds a program on PATH and in the system's own directories.
func lookPath(name string) (string, error) { return fixture.LookPath(name) }

// searchPath is the PATH of everything that a run starts.
func searchPath() string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, d := range fixture.SystemDirs {
		if !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return strings.Join(dirs, string(os.PathListSeparator))
}

// command is a program to start under the supervisor.
type command struct {
	name   string
	argv   []string
	env    []string // beside PATH, HOME, LANG, TMPDIR
	dir    string
	user   string
	stop   scenarios.Stop
	stdout io.Writer // nil = the log
	stdin  io.Reader
	files  []*os.File // the program's descriptors from 3 on; the caller closes its own
}

// supervisor starts programs, each under a guard that ends all its descendants,
// and ends them. All is started from one thread that lives as long as the
// supervisor: the guard is told when that thread dies, and so outlives even a
// killed harness for no longer than its grace.
type supervisor struct {
	gettier string
	home    string
	logs    string
	jobs    chan func()

	mu    sync.Mutex
	procs []*process
}

func newSupervisor(gettier, home, logs string) *supervisor {
	s := &supervisor{gettier: gettier, home: home, logs: logs, jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// process is a started command.
type process struct {
	command
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the guard has ended and all output is in
	err  error         // of Wait; valid once done

	strange int // looks in a row that saw a foreign socket; for ready's caller only
}

// start starts c; it does not wait for readiness.
func (s *supervisor) start(c command) (*process, error) {
	if c.stop.Signal == "" {
		c.stop = scenarios.Stop{Signal: "TERM", Grace: scenarios.DefaultGrace}
	}
	args := append([]string{"fixture", "guard", "--signal", c.stop.Signal, "--grace", c.stop.Grace.String(), "--pass", strconv.Itoa(len(c.files)), "--"}, c.argv...)
	p := &process{command: c, log: filepath.Join(s.logs, c.name+".log"), done: make(chan struct{})}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", c.name, err)
	}
	p.cmd = exec.Command(s.gettier, args...)
	p.cmd.Dir = c.dir
	p.cmd.Env = append([]string{"PATH=" + searchPath(), "HOME=" + s.home, "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(s.home, "tmp")}, c.env...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Stdin = f, f, c.stdin
	if c.stdout != nil {
		p.cmd.Stdout = c.stdout
	}
	p.cmd.ExtraFiles = c.files
	p.cmd.SysProcAttr = guardAttr()
	if err := asUser(p.cmd.SysProcAttr, c.user); err != nil {
		f.Close()
		return nil, err
	}
	// Output pipes close with the guard, which leaves nobody behind to hold them.
	p.cmd.WaitDelay = time.Second
	started := make(chan error, 1)
	s.jobs <- func() { started <- p.cmd.Start() }
	err = <-started
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	s.mu.Lock()
	s.procs = append(s.procs, p)
	s.mu.Unlock()
	return p, nil
}

// asUser makes a process run as another user, which needs root.
func asUser(attr *syscall.SysProcAttr, name string) error {
	if name == "" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("run as %s: %w", name, err)
	}
	uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
	switch {
	case uerr != nil || gerr != nil:
		return fmt.Errorf("run as %s: no numeric ids", name)
	case int(uid) == os.Geteuid():
		return nil
	case os.Geteuid() != 0:
		return fmt.Errorf("run as %s: only root may start programs of another user", name)
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// stop ends the process and all its descendants, and waits until they are gone.
func (p *process) stop() {
	grace := p.command.stop.Grace + 2*time.Second
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // already gone: fine
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return
	case <-t.C:
	}
	// The guard itself hangs: what it guards goes first, since nobody would find
	// it afterwards.
	if pids, err := fixture.Descendants(p.cmd.Process.Pid); err == nil {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// close ends everything, last started first.
func (s *supervisor) close() {
	s.mu.Lock()
	procs := s.procs
	s.procs = nil
	s.mu.Unlock()
	for _, p := range slices.Backward(procs) {
		p.stop()
	}
	close(s.jobs)
}

// dead names a process that has ended by itself, "" when all live.
func (s *supervisor) dead(names ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		if slices.Contains(names, p.name) && p.ended() {
			return p.name
		}
	}
	return ""
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end of a process that is meant to end, and returns its exit
// code; when ctx ends first, it is stopped and the error is ctx's.
func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop()
		return -1, ctx.Err()
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		return -1, fmt.Errorf("wait for %s: %w", p.name, p.err)
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// poll is how often readiness is looked at.
const poll = 10 * time.Millisecond

// ready waits until the process serves as r says.
func (p *process) ready(ctx context.Context, r scenarios.Ready, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		ok, err := p.serves(ctx, r)
		if err != nil {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %s", p.name, limit, p.tail())
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %s", p.name, p.tail())
		case <-tick.C:
		}
	}
}

func (p *process) serves(ctx context.Context, r scenarios.Ready) (bool, error) {
	switch {
	case r.TCP != "":
		return p.owns(ctx, r.TCP)
	case r.File != "":
		_, err := os.Stat(r.File)
		return err == nil, nil
	}
	data, err := os.ReadFile(p.log)
	return err == nil && bytes.Contains(data, []byte(r.Log)), nil
}

// owns reports whether this process, or what it started, listens on addr, and
// nobody else: a stranger on the port would answer plausibly.
func (p *process) owns(ctx context.Context, addr string) (bool, error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return false, fmt.Errorf("readiness of %s: %w", p.name, err)
	}
	// Whether anybody listens is cheap to ask, who it is is not.
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false, nil
	}
	c.Close()
	mine, err := fixture.Descendants(p.cmd.Process.Pid)
	if err != nil { // a system that does not say
		return true, nil
	}
	owner, err := fixture.Owner(addr, mine)
	if err != nil {
		return false, fmt.Errorf("readiness of %s: %w", p.name, err)
	}
	if owner != fixture.Foreign {
		p.strange = 0
		return owner == fixture.Ours, nil
	}
	// A server that is just handing its sockets to its workers looks like this for
	// a moment; a stranger stays.
	if p.strange++; p.strange < maxStrange || p.ended() {
		return false, nil
	}
	return false, fmt.Errorf("readiness of %s: somebody else, not ours, listens on %s", p.name, addr)
}

// maxStrange is how many looks in a row a foreign socket must show to be one.
const maxStrange = 30

// tail is the end of the process's log, for error messages.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	s := strings.TrimSpace(string(data))
	if len(s) > 400 {
		s = "…" + s[len(s)-400:]
	}
	if s == "" {
		return "it said nothing"
	}
	return s
}

// freePorts finds n free loopback ports at once, so that they differ.
func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

// capped keeps the first bytes that are written to it.
type capped struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxScriptOutput = 64 << 10

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := maxScriptOutput - c.buf.Len(); room > 0 {
		c.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}
