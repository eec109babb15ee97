package ipcserver_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// raw sends bytes as they stand and returns the answer.
func raw(t *testing.T, path, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if request != "" {
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func problemOf(t *testing.T, resp *http.Response) ipc.Problem {
	t.Helper()
	var p ipc.Problem
	if ct := resp.Header.Get("Content-Type"); ct != ipc.ProblemType {
		t.Errorf("content type %q, want %q", ct, ipc.ProblemType)
	}
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		t.Fatalf("read problem: %v", err)
	}
	if p.Status != resp.StatusCode || p.Title == "" || p.Type == "" {
		t.Errorf("problem %+v with status %d", p, resp.StatusCode)
	}
	return p
}

func TestRefusals(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	b.Roots = []ipc.Project{{Name: "shop", Root: "/srv/shop"}}
	ipctest.Serve(t, path, ipcserver.Options{Backend: b, Person: ipctest.Nobody})
	get := func(target, headers string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: gettierd\r\n" + headers + "\r\n"
	}
	post := func(target, ctype, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gettierd\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", target, ctype, len(body), body)
	}
	for _, c := range []struct {
		name, request string
		status        int
		says          string
	}{
		{"origin", get("/v1/status", "Origin: http://evil.example\r\n"), 403, "Origin"},
		{"null origin", get("/v1/status", "Origin: null\r\n"), 403, "Origin"},
		{"empty origin", get("/v1/status", "Origin:\r\n"), 403, "Origin"},
		{"referer", get("/v1/status", "Referer: http://a.example/\r\n"), 403, "Referer"},
		{"cross-site", get("/v1/status", "Sec-Fetch-Site: cross-site\r\n"), 403, "Sec-Fetch-Site"},
		{"same-origin", get("/v1/status", "Sec-Fetch-Site: same-origin\r\n"), 403, "Sec-Fetch-Site"},
		{"typed in", get("/v1/status", "Sec-Fetch-Site: none\r\n"), 200, ""},
		{"node's mode", get("/v1/status", "Sec-Fetch-Mode: cors\r\n"), 200, ""},
		{"foreign host", "GET /v1/status HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 403, "Host"},
		{"no host", "GET /v1/status HTTP/1.0\r\n\r\n", 403, "Host"},
		{"localhost", "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, ""},
		{"absolute", "GET http://gettierd/v1/status HTTP/1.1\r\nHost: gettierd\r\n\r\n", 403, "proxy"},
		{"connect", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", 403, "proxy"},
		{"unknown path", get("/v1/nothing", ""), 404, ""},
		{"unknown version", get("/v2/status", ""), 404, ""},
		{"wrong method", "DELETE /v1/status HTTP/1.1\r\nHost: gettierd\r\n\r\n", 405, "GET"},
		{"mistyped filter", get("/v1/facts?stauts=active", ""), 400, "stauts"},
		{"filter twice", get("/v1/facts?status=active&status=stale", ""), 400, "twice"},
		{"closed set", get("/v1/facts?status=fresh", ""), 400, "fresh"},
		{"bad limit", get("/v1/turns?limit=0", ""), 400, "limit"},
		{"bad since", get("/v1/events?since=-1", ""), 400, "since"},
		{"future since", get("/v1/events?since=99", ""), 409, "ends at 0"},
		{"unknown kind", get("/v1/events?kinds=turn.opned", ""), 400, "turn.opned"},
		{"unknown family", get("/v1/events?kinds=trun.*", ""), 400, "trun."},
		{"bad event id", get("/v1/events", "Last-Event-ID: x\r\n"), 400, "Last-Event-ID"},
		{"bad blob", get("/v1/blobs/..%2f..%2fetc", ""), 400, "64"},
		{"no such fact", get("/v1/facts/f_x", ""), 404, "f_x"},
		{"form post", post("/v1/projects", "application/x-www-form-urlencoded", `{"root":"/srv"}`), 415, "application/json"},
		{"unknown member", post("/v1/projects", "application/json", `{"root":"/srv","rot":1}`), 400, "rot"},
		{"twice", post("/v1/projects", "application/json", `{"root":"/a","root":"/b"}`), 400, "root"},
		{"two values", post("/v1/projects", "application/json", `{"root":"/a"}{}`), 400, ""},
		{"too large", post("/v1/projects", "application/json", `{"root":"`+strings.Repeat("a", ipc.MaxBody)+`"}`), 413, ""},
		{"relative root", post("/v1/projects", "application/json", `{"root":"srv"}`), 422, "absolute"},
		{"escape in root", post("/v1/projects", "application/json", `{"root":"/srv/\u001b[2J"}`), 422, "control"},
		{"slash in name", post("/v1/projects", "application/json", `{"root":"/srv","name":"a/b"}`), 422, "name"},
		{"not a person: add", post("/v1/projects", "application/json", `{"root":"/srv"}`), 403, "no terminal"},
		{"not a person: approve", post("/v1/sensors/approve", "application/json", `{"sensors":[{"qualified":"user/a","hash":"00"}]}`), 403, "no terminal"},
		{"not a person: config", post("/v1/config/approve", "application/json", `{"hash":"00"}`), 403, "no terminal"},
		{"not a person: draft", post("/v1/sensors/a.b/run", "application/json", `{"draft":true}`), 403, "no terminal"},
		{"not a person: remove", "DELETE /v1/projects/shop HTTP/1.1\r\nHost: gettierd\r\n\r\n", 403, "no terminal"},
		{"approve nothing", post("/v1/sensors/approve", "application/json", `{"sensors":[]}`), 400, "no sensor"},
		{"approve unnamed", post("/v1/sensors/approve", "application/json", `{"sensors":[{"qualified":"","hash":"00"}]}`), 400, "qualified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := raw(t, path, c.request)
			if resp.StatusCode != c.status {
				body, _ := io.ReadAll(resp.Body)
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, c.status, body)
			}
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("header %s invites web pages", name)
				}
			}
			if c.status < 400 {
				return
			}
			p := problemOf(t, resp)
			if !strings.Contains(p.Detail+p.Hint, c.says) {
				t.Errorf("problem %+v does not say %q", p, c.says)
			}
		})
	}
	if got := b.People(); len(got) != 0 {
		t.Errorf("refused calls took effect: %+v", got)
	}
	if len(b.Roots) != 1 {
		t.Errorf("projects changed: %+v", b.Roots)
	}
}

func TestOtherUserIsRefusedUnparsed(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New(),
		Peer: func(*net.UnixConn) (ipcserver.Peer, error) {
			return ipcserver.Peer{UID: os.Geteuid() + 1, PID: 1}, nil
		}})
	// Not even a request line: the answer comes from the connection alone.
	p := problemOf(t, raw(t, path, ""))
	if p.Status != 403 || !strings.Contains(p.Detail, fmt.Sprint(os.Geteuid()+1)) {
		t.Errorf("got %+v", p)
	}
}

func TestUnknownPeerIsRefused(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New(),
		Peer: func(*net.UnixConn) (ipcserver.Peer, error) { return ipcserver.Peer{}, errors.New("no") }})
	if p := problemOf(t, raw(t, path, "")); p.Status != 403 {
		t.Errorf("got %+v", p)
	}
}

func TestPersonsCalls(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	b.SensorSet = []ipc.Sensor{{ID: "proxy.config", Qualified: "user/proxy.config", State: ipc.SensorPending, Hash: "aa"}}
	b.Tries["proxy.config"] = ipc.SensorTried{Sensor: b.SensorSet[0]}
	b.Cfg = ipc.Config{PendingHash: "cc"}
	ipctest.Serve(t, path, ipcserver.Options{Backend: b, Person: ipctest.Anyone})
	c := ipc.New(path, "tui")
	ctx := t.Context()

	if _, err := c.TrySensor(ctx, "proxy.config", ipc.SensorTry{}); !isStatus(err, 403) {
		t.Errorf("an unapproved sensor ran without a person: %v", err)
	}
	if _, err := c.TrySensor(ctx, "proxy.config", ipc.SensorTry{Draft: true}); err != nil {
		t.Errorf("draft: %v", err)
	}
	pin := func(hash string) ipc.SensorApproval {
		return ipc.SensorApproval{Sensors: []ipc.SensorPin{{Qualified: "user/proxy.config", Hash: hash}}}
	}
	if _, err := c.ApproveSensors(ctx, pin("bb")); !isStatus(err, 409) {
		t.Errorf("approved what was not shown: %v", err)
	}
	if got, err := c.ApproveSensors(ctx, pin("aa")); err != nil || len(got.Approved) != 1 {
		t.Errorf("approve: %+v, %v", got, err)
	}
	if p, err := c.AddProject(ctx, ipc.Project{Root: "/srv/shop"}); err != nil || p.Name != "shop" {
		t.Errorf("add: %+v, %v", p, err)
	}
	if err := c.RemoveProject(ctx, "shop"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := c.RemoveProject(ctx, "shop"); !isStatus(err, 404) {
		t.Errorf("remove again: %v", err)
	}
	if _, err := c.ApproveConfig(ctx, ipc.ConfigApproval{Hash: "dd"}); !isStatus(err, 409) {
		t.Errorf("approved another configuration: %v", err)
	}
	if _, err := c.ApproveConfig(ctx, ipc.ConfigApproval{Hash: "cc"}); err != nil {
		t.Errorf("approve config: %v", err)
	}
	people := b.People()
	if len(people) != 5 {
		t.Fatalf("%d person's calls recorded, want 5", len(people))
	}
	for _, p := range people {
		if p.Via != "tui" || p.User != "test" {
			t.Errorf("recorded %+v", p)
		}
	}
}

func isStatus(err error, status int) bool {
	var p *ipc.Problem
	return errors.As(err, &p) && p.Status == status
}

func TestErrorsBecomeProblems(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	for _, k := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("x: %w", ipcserver.ErrNotFound), 404},
		{fmt.Errorf("x: %w", ipcserver.ErrInvalid), 422},
		{fmt.Errorf("x: %w", ipcserver.ErrConflict), 409},
		{fmt.Errorf("x: %w", ipcserver.ErrRefused), 403},
		{fmt.Errorf("x: %w", ipcserver.ErrUnavailable), 503},
		{&ipc.Problem{Title: "T", Status: 451}, 451},
		{errors.New("boom"), 500},
	} {
		b.Broken = k.err
		if _, err := c.Status(t.Context()); !isStatus(err, k.status) {
			t.Errorf("%v came out as %v, want %d", k.err, err, k.status)
		}
	}
}

type panicky struct{ ipcserver.Backend }

func (panicky) Status(context.Context) (ipc.Status, error) { panic("bug") }

func TestPanicIsAProblem(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: panicky{ipctest.New()}})
	if _, err := ipc.New(path, "cli").Status(t.Context()); !isStatus(err, 500) {
		t.Errorf("got %v", err)
	}
}

// The log's bytes must survive the socket: an entry's hash is over them.
func TestAuditKeepsBytes(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	for i := range 25 {
		b.Append("t_1", lemma.TurnOpened{Contract: "0.9", Prompt: fmt.Sprintf("<b> & \u2028 “%d” \\ \x7f", i)})
	}
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	var (
		p    = ipc.Page{Limit: 10}
		prev = strings.Repeat("0", 64)
		n    int
	)
	for {
		l, err := c.Audit(t.Context(), nil, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Items {
			if e.Seq != uint64(n) || e.Prev != prev {
				t.Fatalf("entry %d (at %d) links to %s, want %s", e.Seq, n, e.Prev, prev)
			}
			raw, err := ipc.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(append([]byte{0}, raw...))
			prev = hex.EncodeToString(sum[:])
			n++
		}
		if l.NextCursor == "" {
			break
		}
		p.Cursor = l.NextCursor
	}
	if n != 26 {
		t.Errorf("%d entries, want 26", n)
	}
	since := uint64(20)
	l, err := c.Audit(t.Context(), &since, ipc.Page{})
	if err != nil || len(l.Items) != 5 || l.Items[0].Seq != 21 {
		t.Errorf("since is not exclusive: %d items, %v", len(l.Items), err)
	}
}

func TestVerify(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	v, err := c.Verify(t.Context(), nil)
	if err != nil || !v.OK || v.Entries != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
	b.Broken = fmt.Errorf("the ledger is closed: %w", ipcserver.ErrUnavailable)
	if _, err := c.Verify(t.Context(), nil); !isStatus(err, 503) {
		t.Errorf("got %v", err)
	}
}
