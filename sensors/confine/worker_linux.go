package confine

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	prCapBSetDrop     = 24
	prSetChildSub     = 36
	prSetNoNewPrivs   = 38
	prCapAmbient      = 47
	prCapAmbientClear = 4
	rlimCore          = 4
	rlimFsize         = 1
	waitPID           = 1 // P_PID
)

// rights are capabilities that no sensor without effects has, whoever runs it:
// CAP_SETPCAP, LINUX_IMMUTABLE, SYS_MODULE, SYS_RAWIO, SYS_ADMIN, SYS_BOOT,
// SYS_TIME, MKNOD, SETFCAP, MAC_OVERRIDE, MAC_ADMIN, BPF. With them it could
// undo its mounts.
var rights = [...]uintptr{8, 9, 16, 17, 21, 22, 25, 27, 31, 32, 33, 39}

// inspection are those by which one process looks into another: SYS_PTRACE and,
// for namespaces, NET_ADMIN. What looks at the machine's network keeps them.
var inspection = [...]uintptr{12, 19}

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name {
		os.Exit(work(ControlFD))
	}
	if len(os.Args) == 2 && os.Args[0] == LauncherName {
		os.Exit(launch(os.Args[1]))
	}
}

// worker starts one sensor at a time. As the first process of its PID namespace
// its end takes everything with it that is left there.
type worker struct {
	fd    int
	first bool // of its PID namespace
	null  int  // /dev/null
	mu    sync.Mutex
	busy  bool
	pid   int            // of the sensor, 0 before it started
	asked syscall.Signal // before it started
}

// work follows orders until the socket ends: with gettierd, or by its wish.
func work(fd int) int {
	w := &worker{fd: fd, first: os.Getpid() == 1}
	syscall.CloseOnExec(fd)
	syscall.Close(ReportFD) // the launcher's
	// Signals may come from what it starts, and would end it.
	signal.Notify(make(chan os.Signal, 1))
	if !w.first {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetChildSub, 1, 0, 0, 0, 0) // what loses its parent becomes ours
	}
	var err error
	if w.null, err = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		return 125
	}
	defer w.clear()
	for {
		o, fds, err := w.receive()
		if err != nil {
			return 0
		}
		switch {
		case o.Setup != nil:
			fds, err := []int(nil), error(nil)
			if len(o.Setup.Listen) > 0 {
				fds, err = listen(o.Setup.Listen)
			}
			w.say(Report{Ready: err == nil, Errno: number(err)}, fds...)
			for _, fd := range fds {
				syscall.Close(fd)
			}
		case o.Plan != nil && len(fds) == 2:
			w.mu.Lock()
			w.busy, w.pid, w.asked = true, 0, 0
			w.mu.Unlock()
			go w.run(*o.Plan, fds[0], fds[1])
		case o.Signal != 0:
			w.signal(syscall.Signal(o.Signal))
		default:
			return 125
		}
	}
}

func (w *worker) receive() (o Order, fds []int, err error) {
	b, oob := make([]byte, MaxOrder), make([]byte, 64)
	var n, on int
	for {
		n, on, _, _, err = syscall.Recvmsg(w.fd, b, oob, syscall.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return o, nil, err
	}
	if n == 0 {
		return o, nil, syscall.EPIPE
	}
	if on > 0 {
		messages, err := syscall.ParseSocketControlMessage(oob[:on])
		if err != nil {
			return o, nil, err
		}
		for i := range messages {
			got, err := syscall.ParseUnixRights(&messages[i])
			if err != nil {
				return o, nil, err
			}
			fds = append(fds, got...)
		}
	}
	return o, fds, json.Unmarshal(b[:n], &o)
}

// say reports. Nobody reads it when gettierd is gone, which the next order shows.
func (w *worker) say(r Report, fds ...int) {
	b, err := json.Marshal(r)
	if err != nil {
		return
	}
	var oob []byte
	if len(fds) > 0 {
		oob = syscall.UnixRights(fds...)
	}
	for {
		if err = syscall.Sendmsg(w.fd, b, oob, nil, syscall.MSG_NOSIGNAL); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// run starts a sensor from a thread that has given up its rights, and reports its
// end when nothing of it is left. The thread ends with it.
func (w *worker) run(p Plan, stdout, stderr int) {
	runtime.LockOSThread() // for ever: what the thread gave up it never has again
	defer runtime.Goexit()
	layers := p.confine()
	attr := &syscall.SysProcAttr{Setsid: true}
	if !w.first {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if p.User != nil {
		attr.Credential = &syscall.Credential{Uid: p.User.UID, Gid: p.User.GID, Groups: []uint32{p.User.GID}}
	}
	pid, err := syscall.ForkExec(p.Path, p.Argv, &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Files: []uintptr{uintptr(w.null), uintptr(stdout), uintptr(stderr)}, Sys: attr,
	})
	syscall.Close(stdout)
	syscall.Close(stderr)
	if err != nil {
		w.ended()
		w.say(Report{Ended: true, Errno: number(err)})
		return
	}
	w.say(Report{Started: true, Layers: layers})
	w.mu.Lock()
	w.pid = pid
	if w.asked != 0 {
		w.kill(w.asked)
	}
	w.mu.Unlock()
	// Until it is reaped its number belongs to nobody else.
	for {
		if _, _, errno := syscall.Syscall6(syscall.SYS_WAITID, waitPID, uintptr(pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0); errno != syscall.EINTR {
			break
		}
	}
	w.ended()
	var st syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &st, 0, nil) // it has ended
	w.clear()
	r := Report{Ended: true, Exit: st.ExitStatus()}
	if st.Signaled() {
		r.Signal = int(st.Signal())
	}
	w.say(r)
}

// confine applies the layers to the calling thread.
func (p *Plan) confine() []string {
	layers := []string{}
	prctl := func(option, arg2, arg3 uintptr) bool {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, arg2, arg3, 0, 0, 0)
		return errno == 0
	}
	own := ""
	if p.Mounts != nil {
		layers = p.Mounts.arrange(p.Dir, p.ReadOnly && !p.Host)
		if len(layers) > 0 && layers[0] == Files {
			own = Scratch
		}
	}
	prctl(prCapAmbient, prCapAmbientClear, 0) // there are none but in a user namespace
	if p.ReadOnly {
		for _, c := range rights {
			prctl(prCapBSetDrop, c, 0) // an ordinary user has none
		}
		if !p.Host {
			for _, c := range inspection {
				prctl(prCapBSetDrop, c, 0)
			}
		}
	}
	noNew := prctl(prSetNoNewPrivs, 1, 0)
	if noNew {
		layers = append(layers, NoNewRights)
	}
	if p.limit() {
		layers = append(layers, Limits)
	}
	if p.ReadOnly && !p.Host && noNew {
		if withoutTCP, err := readOnly(p.Dir, own, !p.Offline); err == nil {
			layers = append(layers, Landlock)
			if withoutTCP {
				layers = append(layers, NoTCP)
			}
		}
	}
	return layers
}

// limit sets the limits of the worker, which the sensor inherits; a worker is for
// one kind of them. It writes no file itself.
func (p *Plan) limit() bool {
	core := syscall.Rlimit{}
	if syscall.Setrlimit(rlimCore, &core) != nil {
		return false
	}
	file := syscall.Rlimit{Cur: 64 << 20, Max: 64 << 20}
	return !p.ReadOnly || syscall.Setrlimit(rlimFsize, &file) == nil
}

func (w *worker) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.pid = false, 0
}

// signal reaches all that the running sensor started, or will once it starts.
func (w *worker) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.busy:
	case w.pid == 0:
		w.asked = s
	default:
		w.kill(s)
	}
}

// kill signals the sensor's session. The lock is held, so it was not reaped yet.
func (w *worker) kill(s syscall.Signal) {
	if w.first {
		_ = syscall.Kill(-1, s) // ESRCH: it ended by itself
		return
	}
	_ = syscall.Kill(-w.pid, s)
}

// clear ends and reaps what a sensor left. As the first process of a namespace
// one call reaches all of it; else it is what has become our child, as its parents
// end.
func (w *worker) clear() {
	for {
		if w.first {
			_ = syscall.Kill(-1, syscall.SIGKILL) // ESRCH: nothing is left
		} else {
			for _, pid := range children() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
		}
		_, err := syscall.Wait4(-1, nil, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// children are the processes whose parent this one is.
func children() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // those that could be read
	self := strconv.Itoa(os.Getpid())
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may hold anything; the parent is the second field after it.
		if f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); len(f) > 1 && f[1] == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// number is the error number of err, 0 without one.
func number(err error) int {
	if err == nil {
		return 0
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return int(errno)
	}
	return int(syscall.EINVAL)
}
