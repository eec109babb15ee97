package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/connect"
	"gettier.dev/gettierd/daemon/peer"
)

const (
	// maxTunnels are open at once; a package manager opens a dozen.
	maxTunnels = 256
	// tunnelIdle closes one through which nothing flows in either direction.
	tunnelIdle = 10 * time.Minute
	dialWait   = 15 * time.Second
)

// Dialer reaches public addresses; the zero value by the system's resolver.
type Dialer struct {
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

// errLocal: a public name for an address that is none, which is how a page or a
// repository reaches into a private network.
var errLocal = errors.New("its name leads to this machine or a private network")

// dial connects to an address that was looked up and checked; it is never looked
// up a second time.
func (d Dialer) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	if d.Lookup == nil {
		d.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if d.Dial == nil {
		d.Dial = (&net.Dialer{}).DialContext
	}
	addrs, err := d.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if !connect.Public(a) {
			return nil, errLocal
		}
	}
	var errs []error
	for _, a := range addrs {
		c, err := d.Dial(ctx, "tcp", netip.AddrPortFrom(a.Unmap(), port).String())
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, ctx.Err())...)
}

// tunnel serves CONNECT: the host is ruled on, what flows is not read.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request, from caller) {
	set := s.Settings()
	if set.Connect == nil {
		s.deny(w, http.StatusMethodNotAllowed, "connect_off", "CONNECT is off (connect.enabled); the base URLs of gettier env need none")
		return
	}
	if from.key != nil && len(from.key.Upstreams)+len(from.key.Projects) > 0 {
		s.deny(w, http.StatusForbidden, "permission_error", "this key is for named upstreams or projects, and a tunnel is of none")
		return
	}
	var leader peer.Process
	if from.proc.PID != 0 {
		leader = s.Remember(from.proc)
	}
	if e := s.spend(from, leader, set.Limit); e != nil {
		s.refuseTooMany(w, nil, e)
		return
	}
	ruling := set.Connect.Decide(r.Host)
	refuse := func(status int, why string) {
		ruling.Allowed, ruling.Why = false, why
		s.connected(from, leader, ruling)
		s.deny(w, status, "connect_refused", fmt.Sprintf("gettierd: no tunnel to %.253s: %s", r.Host, why))
	}
	if !ruling.Allowed {
		refuse(http.StatusForbidden, ruling.Why)
		return
	}
	if !s.tunnels.take() {
		s.deny(w, http.StatusServiceUnavailable, "too_many_tunnels", fmt.Sprintf("gettierd: %d tunnels are open", maxTunnels))
		return
	}
	defer s.tunnels.leave()
	far, err := s.Dialer.dial(r.Context(), ruling.Host, ruling.Port)
	switch {
	case errors.Is(err, errLocal):
		refuse(http.StatusForbidden, err.Error())
		return
	case err != nil:
		s.deny(w, http.StatusBadGateway, "connect_failed", fmt.Sprintf("gettierd: no tunnel to %.253s: %v", r.Host, err))
		return
	}
	defer far.Close()
	s.connected(from, leader, ruling)
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.deny(w, http.StatusInternalServerError, "connect_failed", "gettierd: "+err.Error())
		return
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	defer s.tunnels.remove(near)
	if s.tunnels.add(near, far) {
		relay(near, buffered.Reader, far)
	}
}

// connected records a ruling.
func (s *Server) connected(from caller, leader peer.Process, r connect.Ruling) {
	if s.Connected != nil {
		s.Connected(from.principal(leader, ""), r)
	}
}

// relay copies in both directions until both have ended, one of them failed, or
// nothing has flowed in either for tunnelIdle.
func relay(near net.Conn, early io.Reader, far net.Conn) {
	cut := func() { _, _ = near.Close(), far.Close() } // an error has nobody to go to
	idle := time.AfterFunc(tunnelIdle, cut)
	defer idle.Stop()
	pump := func(to net.Conn, from io.Reader) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				idle.Reset(tunnelIdle)
				if _, werr := to.Write(buf[:n]); werr != nil {
					cut()
					return
				}
			}
			if err == nil {
				continue
			}
			half, ok := to.(interface{ CloseWrite() error })
			if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
				cut()
			}
			return
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { pump(far, early) })
	wg.Go(func() { pump(near, far) })
	wg.Wait()
}

// tunnels are those that are open. The HTTP server does not know connections that
// were taken over.
type tunnels struct {
	mu     sync.Mutex
	n      int // with those that are being dialled
	open   map[net.Conn]net.Conn
	closed bool
}

func (t *tunnels) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.n >= maxTunnels {
		return false
	}
	t.n++
	return true
}

func (t *tunnels) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
}

// add reports false when the proxy has closed.
func (t *tunnels) add(near, far net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[net.Conn]net.Conn{}
	}
	t.open[near] = far
	return !t.closed
}

func (t *tunnels) remove(near net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, near)
}

// Tunnels is the number that is open or being dialled.
func (s *Server) Tunnels() int {
	s.tunnels.mu.Lock()
	defer s.tunnels.mu.Unlock()
	return s.tunnels.n
}

// CloseTunnels cuts what is open and lets no more in.
func (s *Server) CloseTunnels() {
	s.tunnels.mu.Lock()
	defer s.tunnels.mu.Unlock()
	s.tunnels.closed = true
	for near, far := range s.tunnels.open {
		_, _ = near.Close(), far.Close() // they are cut, not ended
	}
}
