package sensors

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// relay connects the network namespace of a sensor with the addresses that its
// definition lists, and with nothing else: the namespace's loopback listens on
// each of them, we accept there and dial here.
type relay struct {
	targets []target
	hosts   string // lines for the sensor's /etc/hosts
	stop    context.CancelFunc
	wg      sync.WaitGroup
	mu      sync.Mutex
	open    map[io.Closer]bool
}

// target is an address as the sensor connects to it, and as it is dialled here.
type target struct{ listen, dial string }

// dialTime bounds one connection's beginning; maxRelayed how many there are.
const (
	dialTime   = 5 * time.Second
	maxRelayed = 32
)

// newRelay gives each listed name an address of the loopback of its own, and
// keeps addresses as they are.
func newRelay(list []string) (*relay, error) {
	r := &relay{open: map[io.Closer]bool{}}
	names := map[string]string{}
	for _, hp := range list {
		host, port, err := net.SplitHostPort(hp)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", hp, err)
		}
		var listen []string
		switch ip, err := netip.ParseAddr(host); {
		case err == nil:
			listen = []string{ip.Unmap().String()}
		case strings.EqualFold(host, "localhost"):
			listen = []string{"127.0.0.1", "::1"}
		default:
			if names[host] == "" {
				names[host] = fmt.Sprintf("127.77.0.%d", len(names)+1)
				r.hosts += hostLine(names[host], host)
			}
			listen = []string{names[host]}
		}
		for _, l := range listen {
			r.targets = append(r.targets, target{net.JoinHostPort(l, port), hp})
		}
	}
	return r, nil
}

func (r *relay) addresses() (out []string) {
	for _, t := range r.targets {
		out = append(out, t.listen)
	}
	return out
}

// serve accepts on the listeners, one for each address in order.
func (r *relay) serve(files []*os.File) error {
	if len(files) != len(r.targets) {
		for _, f := range files {
			f.Close()
		}
		return fmt.Errorf("listen for the sensor: %w", syscall.EPROTO)
	}
	ctx, stop := context.WithCancel(context.Background()) //nolint:gosec // close calls stop
	r.stop = stop
	var failed error
	for i, f := range files {
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			failed = fmt.Errorf("listen for the sensor: %w", err)
			continue
		}
		if !r.hold(l) {
			continue
		}
		r.wg.Go(func() { r.accept(ctx, l, r.targets[i].dial) })
	}
	return failed
}

// hold keeps something to be closed at the end; false when that has come.
func (r *relay) hold(c io.Closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil || len(r.open) >= maxRelayed+len(r.targets) {
		c.Close()
		return false
	}
	r.open[c] = true
	return true
}

func (r *relay) release(c io.Closer) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

func (r *relay) accept(ctx context.Context, l net.Listener, dial string) {
	defer r.release(l)
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		if !r.hold(in) {
			continue
		}
		r.wg.Go(func() {
			defer r.release(in)
			d := net.Dialer{Timeout: dialTime}
			out, err := d.DialContext(ctx, "tcp", dial)
			if err != nil {
				return // the sensor sees its connection end
			}
			if !r.hold(out) {
				return
			}
			defer r.release(out)
			var both sync.WaitGroup
			both.Go(func() { pass(out, in) })
			pass(in, out)
			both.Wait()
		})
	}
}

// pass copies one direction and ends it as its source ended.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if c, ok := to.(*net.TCPConn); ok && err == nil {
		_ = c.CloseWrite() // the other direction goes on
		return
	}
	to.Close()
	from.Close()
}

// close ends every connection.
func (r *relay) close() {
	if r.stop != nil {
		r.stop()
	}
	r.mu.Lock()
	open := r.open
	r.open = nil
	r.mu.Unlock()
	for c := range open {
		c.Close()
	}
	r.wg.Wait()
}
