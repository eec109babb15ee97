package sensors

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"gettier.dev/gettierd/sensors/spec"
)

// grace is how long a sensor has between TERM and KILL; drain is how long its
// output may stay open after it ended, because a child still holds it.
const (
	grace = 500 * time.Millisecond
	drain = 500 * time.Millisecond
)

// maxStderr bounds the diagnostics that are kept of a run.
const maxStderr = 64 << 10

// outcome is what happened to a process, before anyone says what it means.
type outcome struct {
	started  bool
	startErr error
	exit     int // -1 when it did not exit by itself
	signal   string
	timedOut bool
	stopped  error // the caller's context ended
	capped   bool
	held     bool // a child kept the output open
	stdout   []byte
	stderr   []byte
	took     time.Duration
	layers   []string // of the sandbox, in force
}

// command is a process to be: nothing in it is looked up any more.
type command struct {
	path    string
	argv    []string
	dir     string
	empty   bool // a directory without files in its place, where there is one
	env     []string
	user    *credential
	timeout time.Duration
	cap     int
	confine confinement
	workers *workers
}

// limited keeps up to max bytes and reports the first one beyond, once.
type limited struct {
	mu   sync.Mutex
	buf  []byte
	max  int
	over func()
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.max - len(l.buf)
	if len(p) <= room {
		l.buf = append(l.buf, p...)
		return len(p), nil
	}
	l.buf = append(l.buf, p[:max(room, 0)]...)
	if !l.full {
		l.full = true
		if l.over != nil {
			l.over()
		}
	}
	return len(p), nil // the pipe is drained, so that the process can be told to end
}

func (l *limited) read() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf, l.full
}

// child is a process that runs, and what it started.
type child struct {
	gone   <-chan struct{}      // closed when it ended
	signal func(syscall.Signal) // to all of it; a kill leaves nothing
	reap   func(*outcome)       // after gone: fills in how it ended
}

// run starts a process in a session of its own, ends its whole group when it
// has to, and leaves none of the group behind.
func run(ctx context.Context, c command) outcome {
	over := make(chan struct{})
	stdout := &limited{max: c.cap, over: func() { close(over) }}
	stderr := &limited{max: min(c.cap, maxStderr)}
	unpin := pinThread()
	defer unpin()
	began := time.Now()
	ch, err := launch(c, stdout, stderr)
	if err != nil {
		return outcome{startErr: err, exit: -1, took: time.Since(began)}
	}
	o := outcome{started: true, exit: -1}
	limit := time.NewTimer(c.timeout)
	defer limit.Stop()
	select {
	case <-ch.gone:
	case <-limit.C:
		o.timedOut = true
	case <-over:
		o.capped = true
	case <-ctx.Done():
		o.stopped = ctx.Err()
	}
	if o.timedOut || o.capped || o.stopped != nil {
		ch.signal(term)
		t := time.NewTimer(grace)
		select {
		case <-ch.gone:
		case <-t.C:
		}
		t.Stop()
	}
	ch.signal(kill) // what is left of the group, or all of it
	<-ch.gone
	ch.reap(&o)
	o.took = time.Since(began)
	var full bool
	o.stdout, full = stdout.read()
	o.capped = o.capped || full
	o.stderr, full = stderr.read()
	if full && len(o.stdout) == 0 {
		o.capped = true
	}
	return o
}

// plain starts a command without a sandbox.
func plain(c command, stdout, stderr io.Writer) (*child, error) {
	cmd := &exec.Cmd{
		Path: c.path, Args: c.argv, Dir: c.dir, Env: c.env, Stdout: stdout, Stderr: stderr, WaitDelay: drain, SysProcAttr: attributes(c.user),
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	gone, reap := watchExit(cmd)
	return &child{
		gone:   gone,
		signal: func(s syscall.Signal) { signalGroup(cmd.Process.Pid, s) },
		reap: func(o *outcome) {
			o.held = errors.Is(reap(), exec.ErrWaitDelay)
			if cmd.ProcessState != nil {
				o.exit, o.signal = cmd.ProcessState.ExitCode(), signalName(cmd.ProcessState)
			}
		},
	}, nil
}

// errSandbox: the worker ended before the program began.
var errSandbox = errors.New("the sandbox could not be set up")

// evidence is the output that values are read from: standard output, or the
// diagnostics of a program that prints nothing else (as java -version does).
func (o *outcome) evidence() []byte {
	if len(o.stdout) > 0 {
		return o.stdout
	}
	return o.stderr
}

// program finds what argv[0] names: a path with a slash counts from dir, a bare
// name is looked up on path. A file that would run with other rights is
// refused, as is a name that a link hides one of the forbidden programs behind.
func program(name, dir, path string) (string, error) {
	full := name
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
	} else {
		var err error
		if full, err = lookPath(name, path); err != nil {
			return "", err
		}
	}
	info, err := os.Stat(full)
	if err != nil {
		return "", err
	}
	switch {
	case info.IsDir():
		return "", &fs.PathError{Op: "run", Path: full, Err: errors.New("is a directory")}
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return "", &fs.PathError{Op: "run", Path: full, Err: errRaises}
	}
	if target, err := filepath.EvalSymlinks(full); err == nil && spec.RaisesRights(target) {
		return "", &fs.PathError{Op: "run", Path: full, Err: errRaises}
	}
	return full, nil
}

// errRaises refuses programs that change whose rights a command has.
var errRaises = errors.New("it would run with other rights than its caller's")
