package peer

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says, as far as we need it (proc_pid_stat(5)).
type stat struct {
	comm    string
	state   byte
	ppid    int
	pgrp    int
	session int
	tty     int
	tpgid   int
	start   uint64
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func readStat(pid int) (stat, error) {
	var buf [1024]byte
	n, err := readInto(procPath(pid, "stat"), buf[:])
	if err != nil {
		return stat{}, err
	}
	return parseStat(buf[:n])
}

// parseStat reads one line. The name stands in brackets and may hold brackets
// and blanks itself, so the last one counts.
func parseStat(line []byte) (stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("parse stat: no name in it")
	}
	f := bytes.Fields(line[end+1:])
	if len(f) < 20 {
		return stat{}, fmt.Errorf("parse stat: %d fields are too few", len(f)+2)
	}
	s := stat{comm: string(line[open+1 : end]), state: f[0][0]}
	for _, v := range []struct {
		to *int
		at int
	}{{&s.ppid, 1}, {&s.pgrp, 2}, {&s.session, 3}, {&s.tty, 4}, {&s.tpgid, 5}} {
		n, err := strconv.Atoi(string(f[v.at]))
		if err != nil {
			return stat{}, fmt.Errorf("parse stat: %w", err)
		}
		*v.to = n
	}
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	s.start = start
	return s, nil
}

func readInto(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // only read from
	n := 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

// Find returns the process with that id as it is now.
func Find(pid int) (Process, error) {
	before, err := readStat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	p := Process{PID: pid, Start: before.start, UID: ownerOf(pid)}
	p.Exe = link(pid, "exe")
	p.Cwd = link(pid, "cwd")
	// A process that ended and whose number was given away in between would
	// show another start.
	if after, err := readStat(pid); err != nil || after.start != before.start {
		return Process{}, fmt.Errorf("%w: it ended", ErrUnknown)
	}
	return p, nil
}

// Again is p as it is now: where it stands may have changed, and what it runs.
// It reads half of what Find does; the owner is p's. An error is ErrUnknown:
// the process has ended.
func Again(p Process) (Process, error) {
	p.Exe, p.Cwd = link(p.PID, "exe"), link(p.PID, "cwd")
	// Read after the links: a process that ended and whose number was given away
	// before would show another start.
	if st, err := readStat(p.PID); err != nil || st.start != p.Start {
		return Process{}, fmt.Errorf("%w: it ended", ErrUnknown)
	}
	return p, nil
}

// Leader is the process that leads p's group in its terminal: the command that a
// shell started and p is part of. There is none without a terminal, where groups
// hold whole desktops.
func Leader(p Process) (Process, bool) {
	st, err := readStat(p.PID)
	if err != nil || st.start != p.Start || st.tty == 0 || st.pgrp == p.PID {
		return Process{}, false
	}
	l, err := Find(st.pgrp)
	if err != nil {
		return Process{}, false
	}
	ls, err := readStat(l.PID)
	return l, err == nil && ls.start == l.Start && ls.pgrp == st.pgrp && ls.tty == st.tty
}

// link reads a link of /proc; a file that is gone has " (deleted)" appended,
// which is cut off for programs (an update replaces them) and kept for
// directories (nothing may run there).
func link(pid int, name string) string {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(procPath(pid, name), buf[:])
	if err != nil || n == len(buf) { // the whole of it, or nothing
		return ""
	}
	l := string(buf[:n])
	if name == "exe" {
		l = strings.TrimSuffix(l, " (deleted)")
	}
	if !filepath.IsAbs(l) {
		return ""
	}
	return l
}

// ownerOf returns the real uid from status. The owner of the directory would be
// root for processes that are not dumpable.
func ownerOf(pid int) int {
	var buf [2048]byte
	n, err := readInto(procPath(pid, "status"), buf[:])
	if err != nil {
		return -1
	}
	_, rest, ok := bytes.Cut(buf[:n], []byte("\nUid:"))
	if !ok {
		return -1
	}
	f := bytes.Fields(rest[:min(len(rest), 64)])
	if len(f) == 0 {
		return -1
	}
	uid, err := strconv.Atoi(string(f[0]))
	if err != nil {
		return -1
	}
	return uid
}

// environMost is above what the kernel takes by default for one process.
const environMost = 4 << 20

// Env returns a variable of the environment that the process was started with.
func (p Process) Env(name string) (string, bool) {
	data := p.read("environ")
	want := []byte(name + "=")
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, want); ok {
			return string(v), true
		}
	}
	return "", false
}

// Args returns the command line, program first.
func (p Process) Args() []string {
	data := bytes.TrimSuffix(p.read("cmdline"), []byte{0})
	if len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

// Name returns the short name that the kernel keeps, at most 15 bytes.
func (p Process) Name() string {
	s, err := readStat(p.PID)
	if err != nil || s.start != p.Start {
		return ""
	}
	return s.comm
}

// read returns a file of /proc, or nothing once the process is not p any more.
func (p Process) read(name string) []byte {
	f, err := os.Open(procPath(p.PID, name))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, environMost))
	if err != nil || !p.Alive() {
		return nil
	}
	return data
}

// Alive reports whether the process is still there: same number, same start,
// not a zombie.
func (p Process) Alive() bool {
	s, err := readStat(p.PID)
	return err == nil && s.start == p.Start && s.state != 'Z' && s.state != 'X'
}

// SameFiles reports whether the process sees the files that we see: its root and
// its working directory are the directories that these names lead to here. In a
// container, or behind a mount of its own, the same name is another place.
func (p Process) SameFiles() bool {
	same := func(link, path string) bool {
		var theirs, ours unix.Stat_t
		return unix.Stat(procPath(p.PID, link), &theirs) == nil && unix.Stat(path, &ours) == nil && theirs.Dev == ours.Dev && theirs.Ino == ours.Ino
	}
	return p.Cwd != "" && same("root", "/") && same("cwd", p.Cwd) && p.Alive()
}

// chainMost is deeper than any real tree.
const chainMost = 64

// Chain returns the ancestors, parent first, up to and with the first process
// of the namespace. It is nil when p is gone. A parent that started after its
// child is none: the number was given away.
func (p Process) Chain() []Process {
	var out []Process
	s, err := readStat(p.PID)
	if err != nil || s.start != p.Start {
		return nil
	}
	child := p
	for s.ppid > 0 && len(out) < chainMost {
		parent, err := Find(s.ppid)
		if err != nil || parent.Start > child.Start {
			break
		}
		// The child must still be that parent's.
		if again, err := readStat(child.PID); err != nil || again.start != child.Start || again.ppid != parent.PID {
			break
		}
		out = append(out, parent)
		child = parent
		if s, err = readStat(parent.PID); err != nil {
			break
		}
	}
	return out
}
