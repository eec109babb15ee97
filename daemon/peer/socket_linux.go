package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Finder finds the process behind a TCP connection. It remembers which
// processes were found last and looks at them first; what it finds is proved
// each time by the process's own descriptor. The zero value is ready.
type Finder struct {
	mu     sync.Mutex
	recent []int
}

const recentMost = 8

// TCP names the process at the remote end of a connection whose ends are, as
// this process sees them, local and remote.
func TCP(local, remote netip.AddrPort) (Process, error) { return new(Finder).TCP(local, remote) }

// TCP is the function TCP with the finder's memory.
func (f *Finder) TCP(local, remote netip.AddrPort) (Process, error) {
	local, remote = unmap(local), unmap(remote)
	// The peer's own socket has the ends the other way round. An address of
	// another interface of this machine is local as well, and found or not.
	sock, err := lookup(remote, local)
	if err != nil {
		return Process{}, err
	}
	f.mu.Lock()
	recent := slices.Clone(f.recent)
	f.mu.Unlock()
	pid, err := holder(sock, recent)
	if err != nil {
		return Process{UID: sock.uid}, err
	}
	p, err := Find(pid)
	if err != nil {
		return Process{UID: sock.uid}, err
	}
	// A child that inherited the socket holds it too: whoever opened it is the
	// oldest of the line that does.
	for _, q := range p.Chain() {
		if q.UID != p.UID || !holds(q.PID, sock.link()) {
			break
		}
		p, pid = q, q.PID
	}
	// Still the holder, and still the same connection: else p could be a
	// process that took the number over.
	if !holds(pid, sock.link()) || !p.Alive() {
		return Process{UID: sock.uid}, fmt.Errorf("%w: it ended", ErrUnknown)
	}
	f.mu.Lock()
	f.recent = slices.DeleteFunc(f.recent, func(q int) bool { return q == pid })
	f.recent = append([]int{pid}, f.recent...)
	f.recent = f.recent[:min(len(f.recent), recentMost)]
	f.mu.Unlock()
	return p, nil
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

type socket struct {
	inode uint32
	uid   int
}

func (s socket) link() string { return "socket:[" + strconv.FormatUint(uint64(s.inode), 10) + "]" }

// lookup finds a TCP socket by its own ends: by netlink, which asks for exactly
// one socket, else in the table of all.
func lookup(own, other netip.AddrPort) (socket, error) {
	s, err := diag(own, other)
	if err == nil {
		return s, nil
	}
	if s, terr := fromTable(own, other); terr == nil {
		return s, nil
	}
	if !own.Addr().IsLoopback() {
		return socket{}, ErrRemote
	}
	return socket{}, fmt.Errorf("%w: %w", ErrUnknown, err)
}

const (
	sockDiagByFamily = 20
	reqLen           = 16 + 56 // nlmsghdr, inet_diag_req_v2
	msgLen           = 16 + 72 // nlmsghdr, inet_diag_msg
)

// diag asks the kernel for one socket (sock_diag(7)).
func diag(own, other netip.AddrPort) (socket, error) {
	if own.Addr().Is4() != other.Addr().Is4() {
		return socket{}, fmt.Errorf("look up socket: ends of two families")
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return socket{}, fmt.Errorf("look up socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // one question, one answer
	timeout := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return socket{}, fmt.Errorf("look up socket: %w", err)
	}
	var req [reqLen]byte
	ne := binary.NativeEndian
	ne.PutUint32(req[0:], reqLen)
	ne.PutUint16(req[4:], sockDiagByFamily)
	ne.PutUint16(req[6:], unix.NLM_F_REQUEST)
	body := req[16:]
	body[0] = unix.AF_INET
	if own.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	body[1] = unix.IPPROTO_TCP
	ne.PutUint32(body[4:], ^uint32(0)) // every state
	binary.BigEndian.PutUint16(body[8:], own.Port())
	binary.BigEndian.PutUint16(body[10:], other.Port())
	copy(body[12:28], own.Addr().AsSlice())
	copy(body[28:44], other.Addr().AsSlice())
	ne.PutUint32(body[48:], ^uint32(0)) // no cookie
	ne.PutUint32(body[52:], ^uint32(0))
	if err := unix.Sendto(fd, req[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, fmt.Errorf("look up socket: %w", err)
	}
	var buf [1024]byte
	n, _, err := unix.Recvfrom(fd, buf[:], 0)
	if err != nil {
		return socket{}, fmt.Errorf("look up socket: %w", err)
	}
	if n < msgLen || ne.Uint16(buf[4:]) != sockDiagByFamily {
		return socket{}, fmt.Errorf("look up socket: there is none")
	}
	msg := buf[16:n]
	// The kernel falls back to a listener on the port; only these ends count.
	if binary.BigEndian.Uint16(msg[4:]) != own.Port() || binary.BigEndian.Uint16(msg[6:]) != other.Port() {
		return socket{}, fmt.Errorf("look up socket: there is none")
	}
	s := socket{uid: int(ne.Uint32(msg[64:])), inode: ne.Uint32(msg[68:])}
	if s.inode == 0 {
		return socket{}, fmt.Errorf("look up socket: it is closed")
	}
	return s, nil
}

// fromTable reads /proc/net/tcp and tcp6.
func fromTable(own, other netip.AddrPort) (socket, error) {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if s, ok := tableRow(string(data), own, other); ok {
			return s, nil
		}
	}
	return socket{}, fmt.Errorf("look up socket: there is none")
}

func tableRow(table string, own, other netip.AddrPort) (socket, bool) {
	for line := range strings.SplitSeq(table, "\n") {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		a, okA := tableAddr(f[1])
		b, okB := tableAddr(f[2])
		if !okA || !okB || a != own || b != other {
			continue
		}
		uid, err1 := strconv.Atoi(f[7])
		inode, err2 := strconv.ParseUint(f[9], 10, 32)
		if err1 != nil || err2 != nil || inode == 0 {
			continue
		}
		return socket{inode: uint32(inode), uid: uid}, true
	}
	return socket{}, false
}

// tableAddr reads 0100007F:1F90: words of the address in the machine's order,
// the port as a number.
func tableAddr(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	if !ok || len(host) != 8 && len(host) != 32 {
		return netip.AddrPort{}, false
	}
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	raw := make([]byte, len(host)/2)
	for i := 0; i < len(raw); i += 4 {
		w, err := strconv.ParseUint(host[2*i:2*i+8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		binary.NativeEndian.PutUint32(raw[i:], uint32(w))
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), true
}

// holder finds a process that has the socket open: the recent ones, then those
// of the socket's user, newest first, since clients are younger than what else
// runs. A socket that several processes share goes to the first that is found.
func holder(s socket, recent []int) (int, error) {
	link := s.link()
	for _, pid := range recent {
		if holds(pid, link) {
			return pid, nil
		}
	}
	pids, err := numbers("/proc")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	slices.SortFunc(pids, func(a, b int) int { return b - a })
	denied := false
	var others []int
	for _, pid := range pids {
		var st unix.Stat_t
		if err := unix.Stat("/proc/"+strconv.Itoa(pid), &st); err != nil {
			continue
		}
		if int(st.Uid) != s.uid {
			others = append(others, pid)
			continue
		}
		if holds(pid, link) {
			return pid, nil
		}
	}
	// A process may have changed its user since it made the socket, or may not
	// be dumpable: then its directory is root's.
	for _, pid := range others {
		ok, err := search(pid, link)
		if ok {
			return pid, nil
		}
		denied = denied || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
	}
	if s.uid != os.Geteuid() && denied {
		return 0, ErrOtherUser
	}
	return 0, fmt.Errorf("%w: no process of this namespace has the socket", ErrUnknown)
}

func holds(pid int, link string) bool {
	ok, err := search(pid, link)
	return ok && err == nil
}

// search looks through the descriptors of a process, highest first: a new
// connection has one of the last numbers.
func search(pid int, link string) (bool, error) {
	dir, err := unix.Open(procPath(pid, "fd"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(dir) }() // only read from
	var names [64]string
	var buf [8192]byte
	list := names[:0]
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil || n <= 0 {
			break
		}
		_, _, list = unix.ParseDirent(buf[:n], -1, list)
	}
	var to [64]byte
	for _, name := range slices.Backward(list) {
		n, err := unix.Readlinkat(dir, name, to[:])
		if err == nil && string(to[:n]) == link {
			return true, nil
		}
	}
	return false, nil
}

func numbers(dir string) ([]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := make([]int, 0, len(names))
	for _, n := range names {
		if n[0] >= '1' && n[0] <= '9' {
			if pid, err := strconv.Atoi(n); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out, nil
}

// Unix names the process that connected a unix socket. With SO_PEERPIDFD the
// kernel holds the process, so its number cannot have been given away; without
// it the start time is read twice.
func Unix(conn *net.UnixConn) (Process, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	var cred *unix.Ucred
	var credErr error
	pidfd := -1
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			pidfd = n
		}
	}); err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if pidfd >= 0 {
		defer func() { _ = unix.Close(pidfd) }() // held only while we look
	}
	if credErr != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnknown, credErr)
	}
	uid := Process{UID: int(cred.Uid)}
	if cred.Pid <= 0 {
		return uid, fmt.Errorf("%w: it is in another pid namespace", ErrUnknown)
	}
	p, err := Find(int(cred.Pid))
	if err != nil {
		return uid, err
	}
	p.UID = int(cred.Uid)
	if pidfd >= 0 {
		// Readable means ended; then what Find saw may be another process.
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			return uid, fmt.Errorf("%w: it ended", ErrUnknown)
		}
	}
	return p, nil
}
