package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"gettier.dev/gettierd/ipc"
)

// errorOf reads an error in the client's format and returns its message.
func errorOf(t testing.TB, tg tongue, body string) (kind, message string) {
	t.Helper()
	var v struct {
		Type  string
		Error *struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error == nil || v.Error.Message == "" {
		t.Errorf("%s: no error in its format: %q (%v)", tg.name, body, err)
		return "", ""
	}
	if tg.name == "messages" && v.Type != "error" {
		t.Errorf("an Anthropic error has the type error: %q", body)
	}
	return v.Error.Type, v.Error.Message
}

// raw writes bytes and reads one answer.
func (a *agent) raw(t testing.TB, bytes string) reply {
	t.Helper()
	c := a.dial(t)
	defer c.Close()
	if _, err := io.WriteString(c, bytes); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(bytes, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b), err}
}

// TestE2EWebPages: whatever shows that a web page or a confused proxy client is
// behind a request is refused, on the proxy and on the socket, and nothing of it
// goes on.
func TestE2EWebPages(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	b := h.agent(h.project)
	b.aim("unix:" + h.socket)
	body := chatTongue.body(false, false, chatTongue.user("hi"))
	for _, c := range []struct {
		name    string
		line    string // request target, "" = the path
		host    string
		headers string
		refused bool
	}{
		{"Origin", "", "", "Origin: http://evil.example\r\n", true},
		{"Origin null", "", "", "Origin: null\r\n", true},
		{"empty Origin", "", "", "Origin:\r\n", true},
		{"own Origin", "", "", "Origin: http://HOST\r\n", true},
		{"Referer", "", "", "Referer: http://127.0.0.1/\r\n", true},
		{"Sec-Fetch-Site cross-site", "", "", "Sec-Fetch-Site: cross-site\r\n", true},
		{"Sec-Fetch-Site same-origin", "", "", "Sec-Fetch-Site: same-origin\r\n", true},
		{"Sec-Fetch-Site twice", "", "", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", true},
		{"Sec-Fetch-Site none", "", "", "Sec-Fetch-Site: none\r\n", false},
		{"Sec-Fetch-Mode of Node", "", "", "Sec-Fetch-Mode: cors\r\n", false},
		{"foreign Host", "", "evil.example", "", true},
		{"Host of a rebound name", "", "evil.example:PORT", "", true},
		{"another port", "", "127.0.0.1:1", "", true},
		{"localhost", "", "localhost:PORT", "", false},
		{"absolute form", "http://evil.example/v1/chat/completions", "", "", true},
		{"absolute form to itself", "http://HOST/v1/chat/completions", "", "", true},
	} {
		_, port, _ := strings.Cut(h.proxy, ":")
		fill := func(s, host string) string {
			return strings.NewReplacer("HOST", host, "PORT", port).Replace(s)
		}
		before := len(up.all())
		target, host := c.line, c.host
		if target == "" {
			target = "/v1/chat/completions"
		}
		if host == "" {
			host = h.proxy
		}
		r := a.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			fill(target, h.proxy), fill(host, h.proxy), fill(c.headers, h.proxy), len(body), body))
		if c.refused != (r.status == http.StatusForbidden) || !c.refused && r.status != 200 {
			t.Errorf("proxy, %s: %d %s %v", c.name, r.status, r.body, r.err)
		}
		if n := len(up.all()) - before; c.refused && n != 0 {
			t.Errorf("proxy, %s: %d requests went on", c.name, n)
		}
		for k := range r.header {
			if strings.HasPrefix(k, "Access-Control-") {
				t.Errorf("proxy, %s: %s in the answer", c.name, k)
			}
		}
		if r.header.Get("X-Gettier-Policy-Version") == "" {
			t.Errorf("proxy, %s: no policy version", c.name)
		}

		target, host = "/v1/status", c.host
		if c.line != "" {
			target = "http://gettierd/v1/status"
		}
		if host == "" || strings.HasPrefix(host, "localhost") {
			host = "localhost"
		}
		r = b.raw(t, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, fill(host, "x"), fill(c.headers, "localhost")))
		if c.refused != (r.status == http.StatusForbidden) || !c.refused && r.status != 200 {
			t.Errorf("socket, %s: %d %s %v", c.name, r.status, r.body, r.err)
		}
		if c.refused && !strings.HasPrefix(r.header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("socket, %s: %s", c.name, r.header.Get("Content-Type"))
		}
	}
	if r := a.raw(t, "CONNECT evil.example:443 HTTP/1.1\r\nHost: "+h.proxy+"\r\n\r\n"); r.status/100 != 4 {
		t.Errorf("CONNECT: %d %v", r.status, r.err)
	}
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		r := a.raw(t, "GET "+path+" HTTP/1.1\r\nHost: "+h.proxy+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
		if r.status != http.StatusUpgradeRequired {
			t.Errorf("WebSocket upgrade of %s: %d %v", path, r.status, r.err)
		}
	}
	st, err := os.Stat(h.socket)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v %v", st, err)
	}
}

// nobody is another user of this machine.
func nobody(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start a client of another user")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody here")
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatalf("user nobody: %+v", u)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// TestE2EOtherUsers: another user of the machine is served nothing.
func TestE2EOtherUsers(t *testing.T) {
	t.Parallel()
	attr := nobody(t)
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent("/", attr)
	for _, tg := range tongues {
		r := a.post(t, tg.path, tg.body(false, false, tg.user("hi")), "Authorization", "Bearer x")
		if r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", tg.name, r.status, r.body)
		}
	}
	for _, path := range []string{"/", "/healthz", "/v1/models", "/gettier/v1/status"} {
		if r, err := a.do(http.MethodGet, path, ""); err != nil || r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %v", path, r.status, err)
		}
	}
	if n := len(up.all()); n != 0 {
		t.Errorf("%d requests of another user went on", n)
	}
	a.aim("unix:" + h.socket)
	if r := a.raw(t, "GET /v1/status HTTP/1.1\r\nHost: gettierd\r\n\r\n"); r.status == 200 {
		t.Errorf("the socket answered another user: %s", r.body)
	}
	// Even with the directory opened by hand, the peer's uid counts.
	for _, p := range []string{h.dir, filepath.Dir(h.socket)} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(h.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if r := a.raw(t, "GET /v1/status HTTP/1.1\r\nHost: gettierd\r\n\r\n"); r.status != http.StatusForbidden {
		t.Errorf("the opened socket: %d %v %s", r.status, r.err, r.body)
	}
	if n := len(h.turns()); n != 0 {
		t.Errorf("%d turns of another user", n)
	}
}

// TestE2EPaths: what is not gated passes as it is; what is answered here is.
func TestE2EPaths(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
		switch {
		case r.URL.Path == "/v1/models":
			w.Header().Set("X-Request-Id", "r1")
			w.Header().Set("X-Gettier-Decision", "released") // an upstream's word does not count
			w.Header().Set("Access-Control-Allow-Origin", "*")
			io.WriteString(w, `{"object":"list","data":[]}`)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/v1/models", http.StatusTemporaryRedirect)
		case strings.Contains(x.body, "refuse me"):
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"slow down"}}`)
		case strings.Contains(x.target, "messages") || strings.Contains(x.target, "completions"):
			believer(w, r, x)
		default:
			w.Header().Set("Content-Type", "text/x-odd")
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "as it is: "+x.method+" "+x.target+" "+x.body)
		}
	})
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	get := func(method, path, body string, header ...string) reply {
		t.Helper()
		r, err := a.do(method, path, body, header...)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return r
	}
	for _, method := range []string{"HEAD", "GET"} {
		if r := get(method, "/", ""); r.status != 200 || len(up.all()) != 0 {
			t.Errorf("%s /: %d, %d requests upstream", method, r.status, len(up.all()))
		}
	}
	if r := get("GET", "/healthz", ""); r.status != 200 {
		t.Errorf("/healthz: %d", r.status)
	}
	if r := get("GET", "/v1/models", ""); r.status != 200 || r.body != `{"object":"list","data":[]}` || r.header.Get("X-Request-Id") != "r1" ||
		r.decision() != "" || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("/v1/models: %d %v %s", r.status, r.header, r.body)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/v1/threads/%2Fa%20b?x=1&y=%2F", "{\"n\":1.0e+2}"},
		{"DELETE", "/v1/files/abc", ""},
		{"POST", "/v1/embeddings", `{"input":"x"}`},
		{"POST", "/v1beta/models/gemini:generateContent?key=abc", `{"contents":[]}`},
	} {
		r := get(c.method, c.path, c.body)
		if want := "as it is: " + c.method + " " + c.path + " " + c.body; r.status != http.StatusTeapot || r.body != want || r.header.Get("Content-Type") != "text/x-odd" {
			t.Errorf("%s %s: %d %q, want %q", c.method, c.path, r.status, r.body, want)
		}
	}
	if r := get("GET", "/moved", ""); r.status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect was followed: %d", r.status)
	}
	for _, tg := range tongues {
		r := get("POST", tg.path, tg.body(true, true, tg.user("refuse me")))
		if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "7" || r.body != `{"error":{"type":"rate_limit_error","message":"slow down"}}` {
			t.Errorf("%s: a refusal came back as %d %v %s", tg.name, r.status, r.header, r.body)
		}
		// Other spellings of the same place are gated all the same.
		for _, path := range []string{tg.path + "/", "/p/shop" + tg.path, strings.TrimPrefix(tg.path, "/v1"), tg.path + "?beta=true", strings.Replace(tg.path, "/v1", "/v%31", 1), strings.Replace(tg.path, "/v1/", "/v1//", 1), "/x/.." + tg.path} {
			if r := get("POST", path, tg.body(false, false, tg.user(ticket+" by "+path))); r.status != 200 || r.decision() != "caught" {
				t.Errorf("%s: %d %q", path, r.status, r.decision())
			}
		}
	}
	// A key of gettier's that nobody made opens nothing, and stays here.
	before := len(up.all())
	key := "gt_" + "live_" + strings.Repeat("a1B2", 8)
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Gettier-Key"} {
		v := key
		if name == "Authorization" {
			v = "Bearer " + key
		}
		if r := get("GET", "/v1/models", "", name, v); r.status != http.StatusUnauthorized || strings.Contains(r.body, key) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if n := len(up.all()); n != before {
		t.Errorf("%d requests with such a key reached the upstream", n-before)
	}
}

// TestE2EChatGPTLogin: what carries a ChatGPT login goes to its own upstream, with
// its credential and below its own paths, and is gated as any other.
func TestE2EChatGPTLogin(t *testing.T) {
	t.Parallel()
	const done = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Files.","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	up := newRecorder(t, func(w http.ResponseWriter, _ *http.Request, _ *exchange) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, done)
	})
	elsewhere := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: elsewhere.URL, config: "upstreams:\n  chatgpt: {base_url: \"" + up.URL + "/backend-api/codex\"}\n"})
	a := h.agent(h.project)
	body := `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}]}`
	login := []string{"Authorization", "Bearer of-the-login", "Chatgpt-Account-Id", "acc-1"}
	r := a.post(t, "/v1/responses", encoded(t, "zstd", body), append([]string{"Content-Encoding", "zstd"}, login...)...)
	if r.status != http.StatusOK || r.body != done || r.turn() == "" {
		t.Fatalf("%d %v %s", r.status, r.header, r.body)
	}
	if _, err := a.do(http.MethodGet, "/v1/models?client_version=1", "", login...); err != nil {
		t.Fatal(err)
	}
	var saw []string
	for _, x := range up.all() {
		saw = append(saw, x.target)
		if x.header.Get("Authorization") != "Bearer of-the-login" || x.header.Get("Chatgpt-Account-Id") != "acc-1" {
			t.Errorf("the login became %v", x.header)
		}
	}
	if want := []string{"/backend-api/codex/responses", "/backend-api/codex/models?client_version=1"}; !slices.Equal(saw, want) || up.all()[0].body != body {
		t.Errorf("the upstream saw %q, want %q, and %s", saw, want, up.all()[0].body)
	}
	if n := len(elsewhere.all()); n > 0 {
		t.Errorf("another upstream got %d requests with the login", n)
	}
}

// encoded wraps text in codings, the first one innermost.
func encoded(t testing.TB, codings, text string) string {
	t.Helper()
	for c := range strings.SplitSeq(codings, ", ") {
		var b bytes.Buffer
		w := encoder(t, c, &b)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = b.String()
	}
	return text
}

// flusher is a compressor that can say what it has so far.
type flusher interface {
	io.WriteCloser
	Flush() error
}

func encoder(t testing.TB, coding string, w io.Writer) flusher {
	t.Helper()
	switch coding {
	case "gzip":
		return gzip.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	case "zstd":
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	t.Fatalf("no coding %q", coding)
	return nil
}

// TestE2ECodedBodies: a compressed request is read like any other and goes on in
// plain; one that nobody judges goes on as it came.
func TestE2ECodedBodies(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	for _, tg := range tongues {
		for _, c := range []string{"gzip", "br", "zstd", "gzip, zstd"} {
			before := len(up.all())
			good := tg.body(true, false, tg.user(ticket+" "+c))
			r := a.post(t, tg.path, encoded(t, c, good), "Content-Encoding", c)
			if r.status != http.StatusOK || r.err != nil || tg.says(t, true, r.body) != corrected {
				t.Errorf("%s, %s: %d %v %s", tg.name, c, r.status, r.err, r.body)
			}
			for _, x := range up.all()[before:] {
				if x.header.Get("Content-Encoding") != "" || !json.Valid([]byte(x.body)) {
					t.Errorf("%s, %s: the upstream got %v %.80q", tg.name, c, x.header, x.body)
				}
			}
		}
	}
	before, raw := len(up.all()), encoded(t, "gzip", `{"input":"x"}`)
	a.post(t, "/v1/embeddings", raw, "Content-Encoding", "gzip")
	if x := up.all()[before]; x.body != raw || x.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a body that nobody reads became %v %q", x.header, x.body)
	}
}

// TestE2ERefusedBodies: a body that cannot be read for certain is refused in the
// client's format, with its place, and nothing is forwarded.
func TestE2ERefusedBodies(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL, config: "proxy:\n  max_body: 64KiB\n"})
	a := h.agent(h.project)
	for _, tg := range tongues {
		good := tg.body(true, false, tg.user("hi"))
		dup := strings.Replace(good, "{", "{\n  \"stream\":false,", 1)
		inner := strings.Replace(good, `"role":"user"`, `"role":"user","role":"user"`, 1)
		for _, c := range []struct {
			name   string
			body   string
			header []string
			status int
			says   []string
		}{
			{"no gzip", good, []string{"Content-Encoding", "gzip"}, http.StatusBadRequest, []string{"gzip"}},
			{"half a gzip", encoded(t, "gzip", good)[:40], []string{"Content-Encoding", "gzip"}, http.StatusBadRequest, []string{"unexpected EOF"}},
			{"half a zstd", encoded(t, "zstd", good)[:20], []string{"Content-Encoding", "zstd"}, http.StatusBadRequest, []string{"unexpected EOF"}},
			{"a gzip bomb", encoded(t, "gzip", good+strings.Repeat(" ", 1<<20)), []string{"Content-Encoding", "gzip"}, http.StatusRequestEntityTooLarge, []string{"max_body"}},
			{"a br bomb", encoded(t, "br", good+strings.Repeat(" ", 1<<20)), []string{"Content-Encoding", "br"}, http.StatusRequestEntityTooLarge, []string{"max_body"}},
			{"a zstd bomb", encoded(t, "zstd", good+strings.Repeat(" ", 1<<20)), []string{"Content-Encoding", "zstd"}, http.StatusRequestEntityTooLarge, []string{"max_body"}},
			{"too many codings", good, []string{"Content-Encoding", "gzip, br, zstd"}, http.StatusUnsupportedMediaType, []string{"3 codings"}},
			{"unknown coding", good, []string{"Content-Encoding", "snappy"}, http.StatusUnsupportedMediaType, []string{"Content-Encoding", "snappy"}},
			{"too large", good + strings.Repeat(" ", 64<<10), nil, http.StatusRequestEntityTooLarge, []string{"max_body"}},
			{"key twice", dup, nil, http.StatusBadRequest, []string{"stream", "line 2", "column"}},
			{"key twice in a message", inner, nil, http.StatusBadRequest, []string{"role", "line 1", "column"}},
			{"invalid UTF-8", strings.Replace(good, "hi", "h\xffi", 1), nil, http.StatusBadRequest, []string{"UTF-8", "line 1", "column"}},
			{"no JSON", "{\"model\": ", nil, http.StatusBadRequest, []string{"line 1", "column"}},
			{"two documents", good + "{}", nil, http.StatusBadRequest, []string{"line 1", "column"}},
			{"messages of a wrong kind", `{"model":"m","messages":"hi"}`, nil, http.StatusBadRequest, []string{"array", "line 1", "column 25"}},
			{"nothing", " ", nil, http.StatusBadRequest, nil},
		} {
			r := a.post(t, tg.path, c.body, c.header...)
			_, message := errorOf(t, tg, r.body)
			if r.status != c.status || r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s, %s: %d %v %s", tg.name, c.name, r.status, r.header, r.body)
			}
			for _, want := range c.says {
				if !strings.Contains(message, want) {
					t.Errorf("%s, %s: %q does not say %q", tg.name, c.name, message, want)
				}
			}
		}
		// A body of unknown length that grows too large.
		c := a.dial(t)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", tg.path, h.proxy)
		go func() {
			chunk := fmt.Sprintf("%x\r\n%s\r\n", 8<<10, strings.Repeat(" ", 8<<10))
			for range 32 {
				if _, err := io.WriteString(c, chunk); err != nil {
					return // refused in the middle
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s, chunked and too large: %v", tg.name, err)
		} else if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, chunked and too large: %d %s", tg.name, resp.StatusCode, b)
		}
		c.Close()
		// A chunked body of a good size is served.
		r := a.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", tg.path, h.proxy, len(good), good))
		if r.status != 200 {
			t.Errorf("%s, chunked: %d %s %v", tg.name, r.status, r.body, r.err)
		}
	}
	if n := len(up.all()); n != 2 {
		t.Errorf("%d requests went on, want the two good ones", n)
	}
	if turns := h.turns(); len(turns) != 2 {
		t.Errorf("%d turns", len(turns))
	}
	// The socket says what is wrong, too.
	b := h.agent(h.project)
	b.aim("unix:" + h.socket)
	for _, c := range []struct {
		line   string
		status int
	}{
		{"GET /v1/nothing", 404}, {"PUT /v1/status", 405}, {"GET /v1/facts?limit=x", 400}, {"GET /v1/turns/t_none", 404}, {"GET /v1/events?since=-1", 400},
	} {
		r := b.raw(t, c.line+" HTTP/1.1\r\nHost: gettierd\r\n\r\n")
		var p ipc.Problem
		if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.status != c.status || p.Status != c.status || p.Title == "" {
			t.Errorf("%s: %d %s", c.line, r.status, r.body)
		}
	}
}
