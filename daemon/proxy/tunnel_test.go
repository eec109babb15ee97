package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/connect"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/ledger/lemma"
)

// rigged is a Server that tells when a tunnel's far side was closed.
type rigged struct {
	*Server
	ended chan struct{}
}

type told struct {
	*net.TCPConn // with its halves
	once         sync.Once
	end          chan struct{}
}

func (c *told) Close() error {
	c.once.Do(func() { c.end <- struct{}{} })
	return c.TCPConn.Close()
}

// tunnelRig is a proxy whose names all lead to far, by way of what lookup says.
func tunnelRig(t *testing.T, rules *connect.Rules, far string, lookup func(host string) []string) (*httptest.Server, rigged, func() []connect.Ruling) {
	t.Helper()
	var mu sync.Mutex
	var list []connect.Ruling
	ended := make(chan struct{}, 16)
	self := peer.Process{PID: os.Getpid(), UID: os.Getuid(), Cwd: "/"}
	s := &Server{
		UID: os.Getuid(), Policy: "0", Log: slog.New(slog.DiscardHandler), Settings: func() Settings { return Settings{Connect: rules} },
		Peers: func(_, _ netip.AddrPort) (peer.Process, error) { return self, nil },
		Connected: func(_ lemma.Principal, r connect.Ruling) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, r)
		},
		Dialer: Dialer{
			Lookup: func(_ context.Context, host string) (out []netip.Addr, err error) {
				for _, a := range lookup(host) {
					out = append(out, netip.MustParseAddr(a))
				}
				if len(out) == 0 {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				return out, nil
			},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if strings.HasPrefix(addr, "1.1.1.1:") {
					return nil, errors.New("refused")
				}
				c, err := new(net.Dialer).DialContext(ctx, network, far)
				if err != nil {
					return nil, err
				}
				return &told{TCPConn: c.(*net.TCPConn), end: ended}, nil
			},
		},
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	s.Listen(ts.Listener.Addr().String())
	return ts, rigged{s, ended}, func() []connect.Ruling {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// TestTunnel: TLS through the proxy reaches the far side unread; what may not be
// reached is refused before anything is dialled, and each ruling is told.
func TestTunnel(t *testing.T) {
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d", r.Host, len(body))
	}))
	defer far.Close()
	ts, s, told := tunnelRig(t, &connect.Rules{}, far.Listener.Addr().String(), func(host string) []string {
		switch host {
		case "rebound.example":
			return []string{"8.8.8.8", "127.0.0.1"}
		case "second.example":
			return []string{"1.1.1.1", "8.8.8.8"}
		case "nowhere.example":
			return nil
		}
		return []string{"8.8.8.8"}
	})
	proxyURL, err := url.Parse(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := far.Client().Transport.(*http.Transport).Clone()
	tr.Proxy = http.ProxyURL(proxyURL)
	tr.TLSClientConfig.ServerName = "example.com" // the test certificate's
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	for _, x := range []struct {
		host string
		want string // of the answer, or of the error
	}{
		{"example.com", "example.com 100000"}, {"second.example", "second.example 100000"},
		{"api.openai.com", "Forbidden"}, {"127.0.0.1", "Forbidden"}, {"rebound.example", "Forbidden"}, {"nowhere.example", "Bad Gateway"},
	} {
		resp, err := c.Post("https://"+x.host+"/", "text/plain", bytes.NewReader(make([]byte, 100_000)))
		got := fmt.Sprint(err)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			got = string(b)
		}
		if !strings.Contains(got, x.want) {
			t.Errorf("%s: %s", x.host, got)
		}
	}
	var said []string
	for _, r := range told() {
		said = append(said, fmt.Sprint(r.Host, " ", r.Class, " ", r.Allowed))
	}
	if got, want := strings.Join(said, ", "), "example.com other true, second.example other true, api.openai.com ai_vendor false, 127.0.0.1 local false, rebound.example other false"; got != want {
		t.Errorf("told: %s", got)
	}
	tr.CloseIdleConnections()
	for range 2 { // those that were let through
		select {
		case <-s.ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d tunnels are left", s.Tunnels())
		}
	}
}

// TestTunnelHalves: each direction ends by itself, and bytes that came with the
// request are not lost.
func TestTunnelHalves(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c) // until the client has ended its half
		_, _ = fmt.Fprintf(c, "got %s", b)
	}()
	ts, s, _ := tunnelRig(t, &connect.Rules{}, ln.Addr().String(), func(string) []string { return []string{"8.8.8.8"} })
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nearly "); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for _, want := range []string{"HTTP/1.1 200 Connection established\r\n", "\r\n"} {
		if line, err := r.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q %v", line, err)
		}
	}
	_, _ = io.WriteString(c, "late")
	_ = c.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(r); err != nil || string(b) != "got early late" {
		t.Fatalf("%q %v", b, err)
	}
	// And the daemon's end is a tunnel's end.
	again, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	s.CloseTunnels()
	_, _ = io.WriteString(again, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
	if line, _ := bufio.NewReader(again).ReadString('\n'); !strings.Contains(line, "503") {
		t.Errorf("after the end: %q", line)
	}
}

// TestTunnelOff: without the setting nothing is served, and nothing told.
func TestTunnelOff(t *testing.T) {
	ts, _, told := tunnelRig(t, nil, "127.0.0.1:1", func(string) []string { return nil })
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
	if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "405") || len(told()) != 0 {
		t.Errorf("%q, told %v", line, told())
	}
}
