//go:build linux && (amd64 || arm64)

package powerloss

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracer stops a process and all its threads at each of their system calls.
type tracer struct {
	r       *Recording
	pid     int
	calls   map[int]*call     // by thread, between entry and return
	fresh   map[int]bool      // threads whose first stop is still to come
	ids     map[uint64]uint64 // by inode; one that is used again is another file
	paths   map[uint64]string // of files, below root
	refused error             // a call that the model has no place for
}

// call is a system call on its way. done makes its events from what it returned.
type call struct {
	from int
	done func(returned int64)
}

// Record runs cmd to its end, or until ctx ends, and records what it does to the
// files below root, an empty directory. Its standard output is recorded, too, and
// goes nowhere. A call that changes a file in a way that is not modelled is an
// error. The error wraps ErrTrace where ptrace(2) is not allowed.
func Record(ctx context.Context, cmd *exec.Cmd, root string) (*Recording, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("record writes: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return nil, fmt.Errorf("record writes: %w", err)
	}
	t := &tracer{r: &Recording{root: root}, calls: map[int]*call{}, fresh: map[int]bool{}, ids: map[uint64]uint64{st.Ino: rootFile}, paths: map[uint64]string{rootFile: "."}}
	// A thread traces, not a process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			err = fmt.Errorf("%w: %w", ErrTrace, err)
		}
		return nil, fmt.Errorf("record writes: %w", err)
	}
	t.pid = cmd.Process.Pid
	stop := context.AfterFunc(ctx, func() { _ = unix.Kill(t.pid, unix.SIGKILL) }) // it may have ended
	defer stop()
	err = t.run()
	_ = cmd.Process.Release()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("record writes: %w", err)
	}
	return t.r, nil
}

func (t *tracer) run() error {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(t.pid, &ws, unix.WALL, nil); err != nil {
		return err
	}
	if err := unix.PtraceSetOptions(t.pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return fmt.Errorf("%w: %w", ErrTrace, err)
	}
	if err := unix.PtraceSyscall(t.pid, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrTrace, err)
	}
	for {
		// WNOTHREAD: the children of this thread alone, not those of other tests.
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case ws.Exited() || ws.Signaled():
			if tid != t.pid {
				continue
			}
			if t.refused != nil {
				return t.refused
			}
			if ws.Signaled() || ws.ExitStatus() != 0 {
				return fmt.Errorf("it ended with %#x", int(ws))
			}
			return nil
		}
		sig := t.stopped(tid, ws)
		// A thread that was killed meanwhile is reported by the next wait.
		if err := unix.PtraceSyscall(tid, int(sig)); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// stopped looks at a thread that has stopped and returns the signal that it
// should get when it goes on.
func (t *tracer) stopped(tid int, ws unix.WaitStatus) unix.Signal {
	sig := ws.StopSignal()
	switch {
	case sig == unix.SIGTRAP|0x80:
		t.atCall(tid)
		return 0
	case sig == unix.SIGTRAP:
		return 0 // a clone, or the exec
	case sig == unix.SIGSTOP && tid != t.pid && !t.fresh[tid]:
		t.fresh[tid] = true // how each traced thread begins
		return 0
	}
	return sig
}

// callInfo is the kernel's struct ptrace_syscall_info.
type callInfo struct {
	op    uint8
	_     [3]uint8
	_     uint32
	_, _  uint64
	first uint64 // at entry the call's number; at return what it returned
	args  [6]uint64
	_     [2]uint64
}

func (t *tracer) atCall(tid int) {
	var in callInfo
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(in), uintptr(unsafe.Pointer(&in)), 0, 0); errno != 0 {
		if errno != unix.ESRCH {
			t.refuse("ask about a call: %w", errno)
		}
		return
	}
	switch in.op {
	case unix.PTRACE_SYSCALL_INFO_ENTRY:
		t.calls[tid] = t.entered(int(in.first), in.args)
	case unix.PTRACE_SYSCALL_INFO_EXIT:
		if c := t.calls[tid]; c != nil && int64(in.first) >= 0 {
			c.done(int64(in.first))
		}
		delete(t.calls, tid)
	}
}

func (t *tracer) refuse(format string, args ...any) {
	if t.refused == nil {
		t.refused = fmt.Errorf(format, args...)
		_ = unix.Kill(t.pid, unix.SIGKILL) // it may have ended
	}
}

func (t *tracer) add(e event) { t.r.events = append(t.r.events, e) }

// entered makes of a call what is to be noted when it returns; nil for nothing.
func (t *tracer) entered(nr int, a [6]uint64) *call {
	fd := int(int32(a[0]))
	c := &call{from: len(t.r.events)}
	switch nr {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if fd == 1 {
			t.add(event{kind: kMark, data: t.memory(a[1], int(a[2]))})
			return nil
		}
		file, ok := t.file(fd)
		if !ok {
			return nil
		}
		off := int64(a[3])
		if nr == unix.SYS_WRITE {
			off = t.position(fd)
		}
		data := t.memory(a[1], int(a[2]))
		c.done = func(n int64) { t.add(event{kind: kWrite, file: file, off: off, data: data[:n]}) }
	case unix.SYS_FTRUNCATE:
		file, ok := t.file(fd)
		if !ok {
			return nil
		}
		c.done = func(int64) { t.add(event{kind: kResize, file: file, off: int64(a[1])}) }
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		file, ok := t.file(fd)
		if !ok {
			return nil
		}
		path, from := t.paths[file], c.from
		c.done = func(int64) { t.add(event{kind: kSync, file: file, path: path, from: from}) }
	case unix.SYS_OPENAT:
		return t.opening(c, fd, a)
	case unix.SYS_MKDIRAT:
		return t.naming(c, fd, a[1], func(path string) { t.name(path, -1) })
	case unix.SYS_UNLINKAT:
		return t.naming(c, fd, a[1], func(path string) { t.add(event{kind: kName, path: path}) })
	case unix.SYS_LINKAT:
		was := t.path(fd, a[1])
		return t.naming(c, int(int32(a[2])), a[3], func(path string) { t.linked(was, path) })
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		was := t.path(fd, a[1])
		return t.naming(c, int(int32(a[2])), a[3], func(path string) { t.renamed(was, path) })
	default:
		t.unmodelled(nr, a)
		return nil
	}
	return c
}

// unmodelled refuses what changes a file or a name in other ways.
func (t *tracer) unmodelled(nr int, a [6]uint64) {
	fd := int(int32(a[0]))
	switch nr {
	case unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_FALLOCATE, unix.SYS_SENDFILE:
	case unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE:
		fd = int(int32(a[2]))
	case unix.SYS_MMAP:
		if a[2]&unix.PROT_WRITE == 0 || a[3]&unix.MAP_SHARED == 0 || a[3]&unix.MAP_ANONYMOUS != 0 {
			return
		}
		fd = int(int32(a[4]))
	default:
		if !oldCalls[nr] {
			return
		}
		t.refuse("call %d is not modelled", nr)
		return
	}
	if file, ok := t.file(fd); ok {
		t.refuse("call %d on %s is not modelled", nr, t.paths[file])
	}
}

func (t *tracer) opening(c *call, dir int, a [6]uint64) *call {
	if a[2]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return nil
	}
	path := t.path(dir, a[1])
	had := t.inode(path) != 0
	return t.naming(c, dir, a[1], func(path string) {
		switch {
		case !had:
			t.name(path, 0)
		case a[2]&unix.O_TRUNC != 0:
			t.add(event{kind: kResize, file: t.ids[t.inode(path)]})
		}
	})
}

// naming notes a change of a path below root when the call returns.
func (t *tracer) naming(c *call, dir int, at uint64, done func(path string)) *call {
	path := t.path(dir, at)
	if !strings.HasPrefix(path, t.r.root+"/") {
		return nil
	}
	c.done = func(int64) { done(path) }
	return c
}

// name notes that path stands for a new file; kind -1 is a directory.
func (t *tracer) name(path string, kind int64) {
	id := uint64(len(t.paths)) + rootFile
	t.ids[t.inode(path)] = id
	t.paths[id] = t.rel(path)
	t.add(event{kind: kName, path: path, file: id, off: kind})
}

func (t *tracer) linked(was, path string) {
	id := t.ids[t.inode(was)]
	t.paths[id] = t.rel(path)
	t.add(event{kind: kName, path: path, file: id})
}

func (t *tracer) renamed(was, path string) {
	if filepath.Dir(was) != filepath.Dir(path) {
		t.refuse("rename of %s to another directory is not modelled", was)
		return
	}
	t.paths[t.ids[t.inode(path)]] = t.rel(path)
	t.add(event{kind: kRename, path: path, was: was})
}

func (t *tracer) rel(path string) string {
	rel, err := filepath.Rel(t.r.root, path)
	if err != nil {
		t.refuse("name %s: %w", path, err)
	}
	return rel
}

func (t *tracer) inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// file returns the inode behind a descriptor when its file lies below root.
func (t *tracer) file(fd int) (uint64, bool) {
	var st unix.Stat_t
	if fd < 0 || unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", t.pid, fd), &st) != nil {
		return 0, false
	}
	id, ok := t.ids[st.Ino]
	return id, ok
}

// position is where the next write to a descriptor goes.
func (t *tracer) position(fd int) int64 {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", t.pid, fd))
	if err != nil {
		t.refuse("find position: %w", err)
		return 0
	}
	first, _, _ := strings.Cut(string(info), "\n")
	pos, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(first, "pos:")), 10, 64)
	if err != nil {
		t.refuse("find position: %w", err)
	}
	return pos
}

// memory copies n bytes out of the process.
func (t *tracer) memory(at uint64, n int) []byte {
	b := make([]byte, n)
	if n == 0 {
		return b
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(n)
	if got, err := unix.ProcessVMReadv(t.pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0); err != nil || got != n {
		t.refuse("read its memory: %d of %d bytes, %w", got, n, errors.Join(err))
	}
	return b
}

// path reads the path argument of a call, made absolute.
func (t *tracer) path(dir int, at uint64) string {
	var text []byte
	for len(text) < unix.PathMax {
		n := 256 - int(at+uint64(len(text)))%256 // not over the end of a page
		text = append(text, t.memory(at+uint64(len(text)), n)...)
		if end := bytes.IndexByte(text, 0); end >= 0 {
			text = text[:end]
			break
		}
	}
	path := string(text)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	link := fmt.Sprintf("/proc/%d/cwd", t.pid)
	if dir != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", t.pid, dir)
	}
	base, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return filepath.Join(base, path)
}
