package probe

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// socket is one that listens.
type socket struct {
	addr  netip.AddrPort
	uid   int
	inode string
}

// process is what is read of one. Of another user's only pid and uid are kept
// (13.14).
type process struct {
	pid     int
	uid     int
	name    string
	cwd     string
	exe     string
	args    []string
	parent  int
	started time.Time
}

const procDir = "/proc"

// listening reads the sockets that accept TCP connections on a port.
func (p *probe) listening(port string) ([]socket, error) {
	want, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is no port", cut(port, 20))
	}
	var out []socket
	for i, name := range []string{"tcp", "tcp6"} {
		b, err := p.procFile(filepath.Join(procDir, "net", name))
		if err != nil {
			if i > 0 && errors.Is(err, fs.ErrNotExist) { // no IPv6
				continue
			}
			return nil, fmt.Errorf("%w: no table of sockets", ErrNone)
		}
		for l := range strings.SplitSeq(b, "\n") {
			f := strings.Fields(l)
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			addr, ok := sockAddr(f[1])
			uid, err := strconv.Atoi(f[7])
			if ok && err == nil && uint64(addr.Port()) == want {
				out = append(out, socket{addr, uid, f[9]})
			}
		}
	}
	return out, nil
}

// procFile reads a file of /proc, which has no size.
func (p *probe) procFile(name string) (string, error) {
	if err := p.ctx.Err(); err != nil {
		return "", err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if p.read += int64(len(b)); p.read > maxRead {
		return "", ErrCap
	}
	return string(b), nil
}

// sockAddr reads 0100007F:1F90: the address in words of the machine's order.
func sockAddr(s string) (netip.AddrPort, bool) {
	a, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(a)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

// maxProcs bounds how many processes are looked at.
const maxProcs = 32_768

func (p *probe) pids() ([]int, error) {
	f, err := os.Open(procDir)
	if err != nil {
		return nil, fmt.Errorf("%w: no process table", ErrNone)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxProcs)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// holders finds the processes of our user that hold one of the sockets.
func (p *probe) holders(sockets []socket) ([]process, error) {
	inodes := map[string]bool{}
	for _, s := range sockets {
		inodes["socket:["+s.inode+"]"] = true
	}
	pids, err := p.pids()
	if err != nil {
		return nil, err
	}
	var out []process
	for _, pid := range pids {
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
		dir := filepath.Join(procDir, strconv.Itoa(pid), "fd")
		f, err := os.Open(dir)
		if err != nil {
			continue // another user's, or gone
		}
		fds, err := f.Readdirnames(4096)
		f.Close()
		if err != nil {
			continue
		}
		for _, fd := range fds {
			to, err := os.Readlink(filepath.Join(dir, fd))
			if err == nil && inodes[to] {
				if q, err := p.process(pid); err == nil {
					out = append(out, q)
				}
				break
			}
		}
	}
	return out, nil
}

// process reads one; fs.ErrNotExist when it is gone.
func (p *probe) process(pid int) (process, error) {
	dir := filepath.Join(procDir, strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil {
		return process{}, fs.ErrNotExist
	}
	q := process{pid: pid, uid: ownerOf(info)}
	if q.uid != os.Getuid() {
		return q, nil
	}
	stat, err := p.procFile(filepath.Join(dir, "stat"))
	if err != nil {
		return q, fs.ErrNotExist
	}
	// pid (name) state ppid …; a name may hold anything, the last ) ends it.
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return q, errors.New("the process table has another form")
	}
	q.name = stat[open+1 : end]
	f := strings.Fields(stat[end+1:])
	if len(f) < 20 {
		return q, errors.New("the process table has another form")
	}
	if q.parent, err = strconv.Atoi(f[1]); err != nil {
		return q, fmt.Errorf("read process: %w", err)
	}
	if ticks, err := strconv.ParseInt(f[19], 10, 64); err == nil {
		if boot, ok := p.booted(); ok {
			q.started = boot.Add(time.Duration(ticks) * (time.Second / 100)) // USER_HZ is 100 on every Linux that Go runs on
		}
	}
	if q.cwd, err = os.Readlink(filepath.Join(dir, "cwd")); err != nil {
		q.cwd = ""
	}
	if q.exe, err = os.Readlink(filepath.Join(dir, "exe")); err != nil {
		q.exe = ""
	}
	if b, err := p.procFile(filepath.Join(dir, "cmdline")); err == nil {
		q.args = strings.Split(strings.TrimRight(b, "\x00"), "\x00")
	}
	return q, nil
}

// booted is when the machine started, to the second.
func (p *probe) booted() (time.Time, bool) {
	b, err := p.procFile(filepath.Join(procDir, "stat"))
	if err != nil {
		return time.Time{}, false
	}
	for l := range strings.SplitSeq(b, "\n") {
		if v, ok := strings.CutPrefix(l, "btime "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return time.Unix(n, 0), err == nil
		}
	}
	return time.Time{}, false
}

// tunnelAt reports whether a program that leads elsewhere listens on a port.
func (p *probe) tunnelAt(port string) bool {
	sockets, err := p.listening(port)
	if err != nil || len(sockets) == 0 {
		return false
	}
	held, err := p.holders(sockets)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(held, func(q process) bool { return contains(tunnels, q.name) })
}

// portsOwner: whose is the process on that port, or the process of that number?
// (row 5)
func (p *probe) portsOwner() error {
	if pid := p.param("pid"); pid != "" {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return fmt.Errorf("%q is no process", cut(pid, 20))
		}
		q, err := p.process(n)
		if errors.Is(err, fs.ErrNotExist) {
			p.put("pid", pid)
			p.put("running", "no")
			return nil
		}
		if err != nil {
			return err
		}
		p.put("pid", pid)
		p.put("running", "yes")
		p.putProcesses([]process{q})
		return nil
	}
	port := p.param("port")
	if port == "" {
		return fmt.Errorf("%w: no port was named", ErrNone)
	}
	sockets, err := p.listening(port)
	if err != nil {
		return err
	}
	p.put("port", port)
	p.putBool("listening", len(sockets) > 0)
	p.putBool("free", len(sockets) == 0)
	if len(sockets) == 0 {
		return nil
	}
	public := false
	for _, s := range sockets {
		public = public || !s.addr.Addr().IsLoopback()
	}
	p.putBool("public", public)
	held, err := p.holders(sockets)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		if sockets[0].uid != os.Getuid() {
			p.put("mine", "no")
			p.putInt("uid", sockets[0].uid)
		}
		return nil
	}
	p.putInt("pid", held[0].pid)
	p.putProcesses(held)
	return nil
}

// putProcesses tells what all of them have in common.
func (p *probe) putProcesses(qs []process) {
	mine, name, in, known := true, qs[0].name, 0, 0
	for _, q := range qs {
		mine = mine && q.uid == os.Getuid()
		if q.name != name {
			name = ""
		}
		if q.cwd != "" && p.Root != "" {
			known++
			if below(p.Root, q.cwd) || below(p.Dir, q.cwd) && p.Dir != "/" {
				in++
			}
		}
	}
	p.putBool("mine", mine)
	p.putInt("uid", qs[0].uid)
	if !mine {
		return
	}
	p.put("program", name)
	p.putInt("processes", len(qs))
	if known == len(qs) && (in == 0 || in == known) {
		p.putBool("in_project", in > 0)
	}
	if !qs[0].started.IsZero() {
		p.put("started", qs[0].started.UTC().Format(time.RFC3339))
	}
}

// reloaders start what changed by themselves: how old a process is says nothing.
var reloaders = []string{
	"nodemon", "vite", "next", "nuxt", "webpack", "--watch", "watch", "tsx", "ts-node-dev", "air", "reflex", "watchexec", "entr", "--reload", "runserver", "flask",
	"uvicorn", "gunicorn", "hypercorn", "rails", "puma", "spring", "guard", "parcel", "rsbuild", "astro", "remix", "ng", "react-scripts", "php", "dev", "bun", "deno", "air.toml",
	"wrangler", "storybook", "esbuild", "rollup", "turbo", "nx", "cargo-watch", "mix", "phx.server",
}

// procFresh: is what runs what was edited? (row 9) Only for programs that do not
// load changes by themselves: node with a plain script, and binaries built here.
func (p *probe) procFresh() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	port := p.param("port")
	if port == "" {
		return fmt.Errorf("%w: no port was named", ErrNone)
	}
	sockets, err := p.listening(port)
	if err != nil {
		return err
	}
	p.put("port", port)
	p.putBool("running", len(sockets) > 0)
	if len(sockets) == 0 {
		return nil
	}
	held, err := p.holders(sockets)
	if err != nil || len(held) != 1 {
		return err // none that we may look at, or several: nothing is told
	}
	q := held[0]
	p.putInt("pid", q.pid)
	p.put("program", q.name)
	if q.cwd == "" || !below(p.Dir, q.cwd) || q.started.IsZero() {
		p.put("in_project", "no")
		return nil
	}
	p.put("in_project", "yes")
	p.put("started", q.started.UTC().Format(time.RFC3339))
	newest, name, err := p.newest(t, q)
	if err != nil || newest.IsZero() {
		return err
	}
	p.put("newest", name)
	// A process's start is known to a second or so.
	switch {
	case q.started.After(newest.Add(2 * time.Second)):
		p.put("fresh", "yes")
	case newest.After(q.started.Add(2*time.Second)) && !p.reloads(q):
		p.put("fresh", "no")
	}
	return nil
}

// reloads reports whether a process, or one that started it, may load changes by
// itself.
func (p *probe) reloads(q process) bool {
	for range 8 {
		for _, a := range append([]string{q.name}, q.args...) {
			if contains(reloaders, strings.TrimSuffix(path.Base(a), ".js")) || strings.HasPrefix(a, "--watch") || strings.Contains(a, "register") {
				return true
			}
		}
		if q.parent <= 1 {
			return false
		}
		next, err := p.process(q.parent)
		if err != nil || next.uid != q.uid {
			return false
		}
		q = next
	}
	return true
}

var sources = map[string][]string{
	"node": {".js", ".mjs", ".cjs", ".json"},
	"go":   {".go"},
	"rust": {".rs"},
}

// newest is the youngest source file that a process was made of.
func (p *probe) newest(t *tree, q process) (time.Time, string, error) {
	var exts []string
	switch base := path.Base(q.exe); {
	case base == "node" || base == "nodejs":
		exts = sources["node"]
	case below(p.Dir, q.exe) && !strings.HasSuffix(q.exe, " (deleted)"):
		for _, k := range [...][2]string{{"go.mod", "go"}, {"Cargo.toml", "rust"}} {
			if ok, err := t.has(k[0]); err != nil {
				return time.Time{}, "", err
			} else if ok {
				exts = append(exts, sources[k[1]]...)
			}
		}
	}
	if len(exts) == 0 {
		return time.Time{}, "", nil
	}
	rel, err := filepath.Rel(p.Dir, q.cwd)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("find its directory: %w", err)
	}
	var newest time.Time
	name, seen := "", 0
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := t.names(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if seen++; seen > maxNames || depth > 20 {
				return ErrCap
			}
			n := e.Name()
			switch {
			case strings.HasPrefix(n, "."), n == "node_modules", n == "vendor", n == "target", n == "testdata", n == "test", n == "tests", n == "coverage", n == "docs":
			case e.IsDir():
				if err := walk(path.Join(dir, n), depth+1); err != nil {
					return err
				}
			case e.Type().IsRegular() && contains(exts, path.Ext(n)) && !strings.HasSuffix(n, "_test.go") && !strings.Contains(n, ".test.") && !strings.Contains(n, ".spec.") && !strings.Contains(n, "lock"):
				if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
					newest, name = info.ModTime(), path.Join(dir, n)
				}
			}
		}
		return nil
	}
	if err := walk(filepath.ToSlash(rel), 0); err != nil {
		return time.Time{}, "", err
	}
	return newest, name, nil
}
