package sensors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gettier.dev/gettierd/sensors/confine"
)

// rung is one way to start a worker. The last one is no worker at all.
type rung struct{ pid, net, mounts, worker bool }

var rungs = []rung{{true, true, true, true}, {true, false, true, true}, {false, false, false, true}, {}}

// wanted is what a run asks of a rung.
func (r rung) wanted(c *command) rung {
	r.net = r.net && !c.confine.host()
	r.mounts = r.mounts && c.confine.readOnly
	if c.confine.host() && os.Geteuid() != 0 {
		// For an ordinary user every namespace comes with one of users, and from
		// inside of that nobody else's files in /proc can be seen.
		r.pid, r.mounts = false, false
	}
	if c.user != nil && os.Geteuid() != 0 {
		r.worker = false
	}
	return r
}

// kind names the workers that may run a command: those that were started alike.
func (r rung) kind(c *command) string {
	return fmt.Sprint(r, c.confine.readOnly, c.confine.listed())
}

// maxIdle is how many workers are kept for the next sensor, and keepIdle how long.
const (
	maxIdle  = 8
	keepIdle = 30 * time.Second
)

// workers keeps processes that start sensors, so that a run does not wait for
// one. A worker runs one sensor at a time, and nothing of it is left when the
// next begins.
type workers struct {
	mu     sync.Mutex
	idle   []*worker // the latest last
	from   int       // the highest rung that this kernel allows
	closed bool
}

// launch starts a command on the highest rung that the kernel allows.
func launch(c command, stdout, stderr io.Writer) (*child, error) {
	if !c.confine.wanted {
		return plain(c, stdout, stderr)
	}
	c.workers.mu.Lock()
	from := c.workers.from
	c.workers.mu.Unlock()
	for i := from; i < len(rungs); i++ {
		r := rungs[i].wanted(&c)
		if !r.worker {
			return plain(c, stdout, stderr)
		}
		w, err := c.workers.take(r, &c)
		if err != nil {
			if refused(err) {
				continue
			}
			return nil, fmt.Errorf("%w: %w", errSandbox, err)
		}
		if i > from {
			c.workers.lower(i)
		}
		return w.start(c, stdout, stderr)
	}
	return nil, errSandbox
}

// refused: the kernel, or a policy on top of it, does not give us a namespace.
func refused(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSPC, syscall.ENOSYS, syscall.EUSERS, syscall.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (ws *workers) lower(rung int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.from = max(ws.from, rung)
}

// take gives a worker of this kind: one that waits, or a new one.
func (ws *workers) take(r rung, c *command) (*worker, error) {
	kind := r.kind(c)
	ws.mu.Lock()
	for i := len(ws.idle) - 1; i >= 0; i-- {
		if w := ws.idle[i]; w.kind == kind && w.rest.Stop() {
			ws.idle = slices.Delete(ws.idle, i, i+1)
			ws.mu.Unlock()
			return w, nil
		}
	}
	ws.mu.Unlock()
	w, err := newWorker(r, c)
	if err != nil {
		return nil, err
	}
	w.kind, w.pool = kind, ws
	return w, nil
}

// put keeps a worker whose sensor has ended.
func (ws *workers) put(w *worker) {
	ws.mu.Lock()
	var old *worker
	full := ws.closed
	if !full {
		if len(ws.idle) >= maxIdle && ws.idle[0].rest.Stop() {
			old = ws.idle[0]
			ws.idle = ws.idle[1:]
		}
		w.rest = time.AfterFunc(keepIdle, func() { ws.drop(w) })
		ws.idle = append(ws.idle, w)
	}
	ws.mu.Unlock()
	if full {
		w.close()
	}
	if old != nil {
		old.close()
	}
}

func (ws *workers) drop(w *worker) {
	ws.mu.Lock()
	ws.idle = slices.DeleteFunc(ws.idle, func(o *worker) bool { return o == w })
	ws.mu.Unlock()
	w.close()
}

// close ends the workers that wait; one that runs a sensor ends after it.
func (ws *workers) close() {
	ws.mu.Lock()
	idle := ws.idle
	ws.idle, ws.closed = nil, true
	ws.mu.Unlock()
	for _, w := range idle {
		w.rest.Stop()
		w.close()
	}
}

// worker is a helper process. It ends when its socket does, with us at the latest.
type worker struct {
	kind   string
	pool   *workers
	cmd    *exec.Cmd
	conn   *net.UnixConn
	layers []string // namespaces in force
	mounts bool
	says   chan confine.Report // closed when it says no more
	relay  *relay
	rest   *time.Timer
}

// Capabilities that a worker keeps in its user namespace, for mounts, the
// loopback and its low ports: CAP_CHOWN, DAC_OVERRIDE and FOWNER (an overlay acts
// with the rights of who mounted it), NET_BIND_SERVICE, NET_ADMIN, SYS_ADMIN.
var ambient = []uintptr{0, 1, 3, 10, 12, 21}

// setupTime bounds how long a worker may take to be ready.
const setupTime = 10 * time.Second

func newWorker(r rung, c *command) (*worker, error) {
	w := &worker{mounts: r.mounts, says: make(chan confine.Report, 4)} // what one run says
	attr := &syscall.SysProcAttr{Setsid: true}
	if r.pid {
		attr.Cloneflags |= syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
		w.layers = append(w.layers, layerPID)
	}
	if r.mounts {
		attr.Cloneflags |= syscall.CLONE_NEWNS
	}
	var setup confine.Setup
	if r.net {
		attr.Cloneflags |= syscall.CLONE_NEWNET
		layer := layerNoNet
		if list := c.confine.listed(); len(list) > 0 {
			layer = layerListNet
			var err error
			if w.relay, err = newRelay(list); err != nil {
				return nil, err
			}
			setup.Listen = w.relay.addresses()
		}
		w.layers = append(w.layers, layer)
	}
	argv := []string{confine.Name}
	launched := attr.Cloneflags != 0 && os.Geteuid() != 0
	if launched {
		// The launcher clones what needs a user namespace; we are not dumpable.
		how, err := json.Marshal(confine.Clone{Flags: attr.Cloneflags | syscall.CLONE_NEWUSER, UID: os.Getuid(), GID: os.Getgid(), Ambient: ambient})
		if err != nil {
			return nil, fmt.Errorf("describe namespaces: %w", err)
		}
		attr.Cloneflags, argv = 0, []string{confine.LauncherName, string(how)}
	}
	if err := w.spawn(argv, attr, launched); err != nil {
		return nil, err
	}
	listeners, err := w.ready(setup)
	if err == nil && w.relay != nil {
		err = w.relay.serve(listeners)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	go w.listen()
	return w, nil
}

// spawn starts the process and the socket to it.
func (w *worker) spawn(argv []string, attr *syscall.SysProcAttr, launched bool) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return fmt.Errorf("make socket: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		theirs.Close()
		conn.Close()
		return fmt.Errorf("make pipe: %w", err)
	}
	w.conn = conn.(*net.UnixConn) //nolint:forcetypeassert // a Unix socket's file
	w.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: argv, Env: []string{}, Dir: "/", SysProcAttr: attr,
		ExtraFiles: []*os.File{theirs, in}, // confine.ControlFD, confine.ReportFD
	}
	err = w.cmd.Start()
	theirs.Close()
	in.Close()
	defer out.Close()
	if err != nil {
		conn.Close()
		return err
	}
	if launched {
		if err := cloned(out); err != nil {
			conn.Close()
			signalGroup(w.cmd.Process.Pid, kill)
			_ = w.cmd.Wait() // how it ended is what err says
			return err
		}
	}
	return nil
}

// cloned waits for the launcher's word. The error is the kernel's, so that the
// next rung can be tried.
func cloned(pipe *os.File) error {
	if err := pipe.SetReadDeadline(time.Now().Add(setupTime)); err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	line, err := bufio.NewReader(io.LimitReader(pipe, 64<<10)).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	var r confine.Report
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	if !r.Cloned {
		return fmt.Errorf("start worker: %w", syscall.Errno(r.Refused))
	}
	return nil
}

// ready sets the worker up.
func (w *worker) ready(s confine.Setup) ([]*os.File, error) {
	if err := w.conn.SetReadDeadline(time.Now().Add(setupTime)); err != nil {
		return nil, fmt.Errorf("wait for worker: %w", err)
	}
	if err := w.tell(confine.Order{Setup: &s}); err != nil {
		return nil, err
	}
	r, files, err := w.hear(make([]byte, 64<<10))
	switch {
	case err != nil:
		return nil, fmt.Errorf("wait for worker: %w", err)
	case !r.Ready:
		return nil, fmt.Errorf("set worker up: %w", syscall.Errno(r.Errno))
	}
	return files, w.conn.SetReadDeadline(time.Time{})
}

// tell gives an order, with descriptors.
func (w *worker) tell(o confine.Order, files ...*os.File) error {
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("tell worker: %w", err)
	}
	if len(b) > confine.MaxOrder {
		return fmt.Errorf("tell worker: %w", syscall.E2BIG)
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := w.conn.WriteMsgUnix(b, oob, nil); err != nil {
		return fmt.Errorf("tell worker: %w", err)
	}
	return nil
}

// hear takes one report.
func (w *worker) hear(b []byte) (r confine.Report, files []*os.File, err error) {
	oob := make([]byte, 1024)
	n, on, _, _, err := w.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return r, nil, err
	}
	if n == 0 {
		return r, nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil {
		return r, nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return r, files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return r, files, json.Unmarshal(b[:n], &r)
}

// listen passes on what the worker says, until it ends.
func (w *worker) listen() {
	defer close(w.says)
	b := make([]byte, 64<<10)
	for {
		r, files, err := w.hear(b)
		for _, f := range files {
			f.Close() // none are expected any more
		}
		if err != nil {
			return
		}
		w.says <- r
	}
}

// close ends the worker and all that it started.
func (w *worker) close() {
	w.conn.Close()
	if w.relay != nil {
		w.relay.close()
	}
	go func() {
		end := time.AfterFunc(grace, func() { signalGroup(w.cmd.Process.Pid, kill) })
		_ = w.cmd.Wait() // nothing of it is asked any more
		end.Stop()
	}()
}

// start has the worker run a command.
func (w *worker) start(c command, stdout, stderr io.Writer) (*child, error) {
	plan := &confine.Plan{
		Path: c.path, Argv: c.argv, Env: c.env, Dir: c.dir, ReadOnly: c.confine.readOnly, Host: c.confine.host(),
		Offline: c.confine.noNetwork() && !slices.Contains(w.layers, layerNoNet),
	}
	if w.mounts {
		if c.empty {
			plan.Dir = confine.Scratch
		}
		plan.Mounts = &confine.Mounts{Hide: c.confine.hide, Keep: c.confine.sockets()}
		if w.relay != nil {
			plan.Mounts.Hosts = w.relay.hosts
		}
	}
	if c.user != nil {
		plan.User = &confine.User{UID: c.user.uid, GID: c.user.gid}
	}
	out, err := collect(stdout)
	if err != nil {
		w.close()
		return nil, err
	}
	diag, err := collect(stderr)
	if err != nil {
		out.write.Close()
		w.close()
		return nil, err
	}
	err = w.tell(confine.Order{Plan: plan}, out.write, diag.write)
	out.write.Close()
	diag.write.Close()
	if err != nil {
		w.close()
		if errors.Is(err, syscall.E2BIG) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errSandbox, err)
	}
	gone := make(chan struct{})
	var heard confine.Report
	go func() {
		defer close(gone)
		for r := range w.says {
			heard.Started = heard.Started || r.Started
			heard.Layers = append(heard.Layers, r.Layers...)
			if r.Ended {
				heard.Ended, heard.Errno, heard.Exit, heard.Signal = true, r.Errno, r.Exit, r.Signal
				return
			}
		}
	}()
	var stop *time.Timer
	return &child{
		gone: gone,
		signal: func(s syscall.Signal) {
			select {
			case <-gone:
				return
			default:
			}
			_ = w.tell(confine.Order{Signal: int(s)}) // a worker that is gone took all with it
			if s == kill && stop == nil {
				stop = time.AfterFunc(grace, func() { signalGroup(w.cmd.Process.Pid, kill) })
			}
		},
		reap: func(o *outcome) {
			if stop != nil {
				stop.Stop()
			}
			o.held = !out.wait() || !diag.wait()
			o.confined(&c, w.layers, &heard)
			if heard.Ended {
				w.pool.put(w)
			} else {
				w.close()
			}
		},
	}, nil
}

// confined adds what a worker told of a run.
func (o *outcome) confined(c *command, namespaces []string, told *confine.Report) {
	if told.Started {
		o.layers = append(slices.Clone(namespaces), told.Layers...)
	}
	switch {
	case told.Errno != 0:
		o.started, o.startErr = false, &os.PathError{Op: "run", Path: c.path, Err: syscall.Errno(told.Errno)}
	case !told.Ended && !o.timedOut && !o.capped && o.stopped == nil:
		o.started, o.startErr = false, errSandbox
	case told.Signal != 0:
		o.signal = syscall.Signal(told.Signal).String()
	case told.Ended:
		o.exit = told.Exit
	}
}

// pipe takes what a sensor writes.
type pipe struct {
	read, write *os.File
	done        chan bool // whether it came to its end
}

func collect(to io.Writer) (*pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	p := &pipe{r, w, make(chan bool, 1)}
	go func() {
		_, err := io.Copy(to, r)
		r.Close()
		p.done <- err == nil
	}()
	return p, nil
}

// wait returns when all was read, false when someone still holds the pipe.
func (p *pipe) wait() bool {
	_ = p.read.SetReadDeadline(time.Now().Add(drain)) // closed: then it is read
	return <-p.done
}

// hostLine is a line for /etc/hosts.
func hostLine(addr, name string) string { return strings.Join([]string{addr, name}, "\t") + "\n" }
