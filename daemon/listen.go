package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// listen binds the proxy's port and the socket. A taken port is named, never
// replaced by another (13.9).
func (d *Daemon) listen() error {
	c := d.conf.live()
	addr := net.JoinHostPort(c.Proxy.BindHost, strconv.Itoa(c.Proxy.Port))
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: another program has this port; is gettierd running already? (`gettier status`, or proxy.port)", addr)
		}
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	d.proxyLn = ln
	d.proxy.Listen(ln.Addr().String())
	d.leaveLoop(ln.Addr().String())
	d.http = &http.Server{
		Handler: d.proxy, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10,
		ConnContext: d.proxy.ConnContext,
		ErrorLog:    nil,
	}
	if d.socketLn, err = ipcserver.Listen(d.o.Layout.Socket); err != nil {
		return err
	}
	d.api = ipcserver.New(ipcserver.Options{Backend: backend{d}, Peer: unixPeer, Person: d.person, Refused: d.refused, Attach: d.attach, Log: d.log})
	if d.o.AnswerConn != nil {
		d.answers = ipcserver.New(ipcserver.Options{Backend: holdsOnly{backend{d}}, Peer: unixPeer, Log: d.log, Kept: true, Person: harness})
	}
	return nil
}

// leaveLoop drops a proxy of the environment that is this daemon: it was started
// from a shell that has gettier env --connect, and would call itself.
func (d *Daemon) leaveLoop(own string) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.Host == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(own); err == nil && u.Port() == port && (u.Hostname() == host || config.Loopback(u.Hostname())) {
			_ = os.Unsetenv(name) // fails for names that are none
			d.warn(name + " is this daemon itself and is not used to reach upstreams")
		}
	}
}

// attach counts a person who looks on: holds wait for one who is there.
func (d *Daemon) attach() func() {
	d.watchers.Add(1)
	return func() { d.watchers.Add(-1) }
}

// refused records a person's call that did not count as one.
func (d *Daemon) refused(c *net.UnixConn, call string, why error) {
	b := lemma.AnswerRefused{Contract: lemma.Contract, Call: call, Why: clean(why.Error())}
	if p, err := peer.Unix(c); err == nil {
		b.UID, b.PID, b.Exe = p.UID, p.PID, clean(p.Exe)
	}
	d.record(b)
}

// clean bounds a line that goes on the chain.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// oneConn is a listener that yields one connection and then waits for the end.
type oneConn struct {
	conn net.Conn
	once sync.Once
	end  chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	var c net.Conn
	l.once.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.end
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// unixPeer is who is at the other end of a socket connection.
func unixPeer(c *net.UnixConn) (ipcserver.Peer, error) {
	p, err := peer.Unix(c)
	return ipcserver.Peer{UID: p.UID, PID: p.PID}, err
}

// person is 13.3's positive chain, asked once per call. Whatever has talked to
// the proxy is a client, known by name or not: neither it nor its children speak
// for a person.
func (d *Daemon) person(c *net.UnixConn) (lemma.Answerer, error) {
	p, err := peer.Unix(c)
	if err != nil && hold.PersonRule {
		return lemma.Answerer{}, err
	}
	if !hold.PersonRule {
		return lemma.Answerer{UID: p.UID, Via: "cli"}, nil
	}
	for _, q := range append([]peer.Process{p}, p.Chain()...) {
		if d.proxy.IsClient(q) {
			return lemma.Answerer{}, &peer.Refusal{Why: fmt.Sprintf("it was started by a client of the proxy (process %d)", q.PID), Hint: "run the command yourself, in a terminal of your own"}
		}
	}
	return peer.Person(p, d.since)
}

// Addresses returns what the daemon is bound to.
func (d *Daemon) Addresses() Ready {
	return Ready{Ready: true, Proxy: d.proxyLn.Addr().String(), Socket: d.o.Layout.Socket, PID: os.Getpid()}
}

// Run serves until ctx ends, then drains: no new requests, answers that are on
// their way finish within drainFor, then everything closes in order.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	errs := make(chan error, 2) // one result of each server
	wg.Go(func() { errs <- serve(d.http, d.proxyLn) })
	wg.Go(func() { errs <- d.api.Serve(d.socketLn) })
	if d.answers != nil {
		wg.Go(func() {
			if err := d.answers.Serve(&oneConn{conn: d.o.AnswerConn, end: make(chan struct{})}); err != nil && ctx.Err() == nil {
				d.log.Debug("answer descriptor", "error", err.Error())
			}
		})
	}
	wg.Go(func() {
		if err := d.sensors.Watch(ctx); err != nil && ctx.Err() == nil {
			d.warn("sensor registries are not watched: " + err.Error())
		}
	})
	wg.Go(func() { d.conf.watch(ctx) })
	wg.Go(func() { d.sweep(ctx) })
	wg.Go(func() { d.outside.run(ctx, d.o.Now) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-errs:
	}
	stop()
	d.proxy.CloseTunnels()
	down, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	if serr := d.http.Shutdown(down); serr != nil {
		d.http.Close() // the drain is over: the rest is cut
	}
	err = errors.Join(err, d.api.Shutdown(down))
	if d.answers != nil {
		err = errors.Join(err, d.answers.Shutdown(down))
	}
	wg.Wait()
	return errors.Join(err, d.closeAll())
}

func serve(s *http.Server, ln net.Listener) error {
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// sweep expires facts and holds and ends silent turns.
func (d *Daemon) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := d.o.Now()
			d.keepUses()
			if _, err := d.ledger.Expire(ctx, now); err != nil && ctx.Err() == nil {
				d.log.Warn("expire facts", "error", err.Error())
			}
			if keep := d.conf.live().Ledger.Retain; keep > 0 {
				if _, err := d.ledger.Forget(ctx, now.Add(-keep)); err != nil && ctx.Err() == nil {
					d.log.Warn("prune blobs", "error", err.Error())
				}
			}
			if err := d.engine.Sweep(ctx, now); err != nil && ctx.Err() == nil {
				d.log.Warn("sweep turns", "error", err.Error())
			}
		}
	}
}

// Reload reads configuration and registries again (SIGHUP).
func (d *Daemon) Reload(ctx context.Context) {
	d.conf.reload()
	d.sensors.Reload(ctx)
}

// closeAll closes what is open, the ledger last.
func (d *Daemon) closeAll() error {
	var errs []error
	for _, ln := range []net.Listener{d.proxyLn, d.socketLn} {
		if ln == nil {
			continue
		}
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, r := range []*sensors.Runner{d.runner, d.drafts} {
		if r != nil {
			r.Close()
		}
	}
	if d.ledger != nil {
		d.keepUses()
		errs = append(errs, d.ledger.Close())
	}
	return errors.Join(errs...)
}

// warn adds a line that the status shows.
func (d *Daemon) warn(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.warnings {
		if w == s {
			return
		}
	}
	d.warnings = append(d.warnings, s)
	d.log.Warn(s)
}
