package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agent is a client process in a directory of its own choosing.
type agent struct {
	h    *house
	p    *process
	pid  int
	addr string
	http *http.Client
}

// agent starts a client whose working directory is dir.
func (h *house) agent(dir string, attr ...*syscall.SysProcAttr) *agent {
	h.t.Helper()
	cmd := exec.Command(binary(h.t, "relay"))
	cmd.Env, cmd.Dir = append(cleanEnv(dir), relayEnv+"=1"), dir
	if len(attr) > 0 {
		cmd.SysProcAttr = attr[0]
	}
	return h.agentAs(cmd)
}

// agentAs starts a client as cmd says, which ends in being a relay.
func (h *house) agentAs(cmd *exec.Cmd) *agent {
	h.t.Helper()
	p := startProcess(h.t, cmd)
	a := &agent{h: h, p: p, pid: cmd.Process.Pid, addr: p.line()}
	if a.addr == "" {
		h.t.Fatalf("the client did not start: %s", p.errors())
	}
	a.http = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", a.addr)
			},
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h.t.Cleanup(a.http.CloseIdleConnections)
	a.aim("tcp:" + h.proxy)
	h.agents = append(h.agents, a)
	return a
}

// aim points the client at an address of the daemon.
func (a *agent) aim(target string) {
	a.h.t.Helper()
	a.http.CloseIdleConnections()
	if _, err := fmt.Fprintln(a.p.in, target); err != nil {
		a.h.t.Fatal(err)
	}
	if got := a.p.line(); got != "ok" {
		a.h.t.Fatalf("the client said %q: %s", got, a.p.errors())
	}
}

// dial opens a raw connection through the client process.
func (a *agent) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// reply is a whole answer. err is how reading it ended when not cleanly.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) turn() string { return r.header.Get("X-Gettier-Turn") }

func (r reply) decision() string { return r.header.Get("X-Gettier-Decision") }

// request makes a request to the daemon.
func (a *agent) request(ctx context.Context, method, path, body string, header ...string) (*http.Request, error) {
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.h.proxy+path, rd)
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r, nil
}

// do sends a request and reads the whole answer.
func (a *agent) do(method, path, body string, header ...string) (reply, error) {
	ctx, cancel := context.WithTimeout(a.h.t.Context(), patience)
	defer cancel()
	req, err := a.request(ctx, method, path, body, header...)
	if err != nil {
		return reply{}, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b), err}, nil
}

// post sends a body and fails the test when there is no answer at all.
func (a *agent) post(t testing.TB, path, body string, header ...string) reply {
	t.Helper()
	r, err := a.do(http.MethodPost, path, body, header...)
	if err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
	return r
}
