// Package proxy is the HTTP edge of the daemon: it accepts connections from
// clients that think it is a model provider, reads the whole request, decides
// by path what it is, and either passes it through byte for byte or hands it to
// package turn. Limits, cross-site refusals, credentials and upstream transport
// are here; what a request means and what may be released is not.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/daemon/apikey"
	"gettier.dev/gettierd/daemon/connect"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/proxy/dialect"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/turn"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// Turns serves recognised requests.
type Turns interface {
	Serve(ctx context.Context, q *turn.Request, out turn.Sink) error
	Prior(pid int, credHash string, sc turn.Scope) route.Prior
}

// Settings are the values of the configuration that the edge reads.
type Settings struct {
	MaxBody     int64
	MaxInflight int64
	Connect     *connect.Rules // nil = CONNECT is off
	Limit       int            // requests a minute of a caller without a key, 0 = any number
	Upstreams   map[string]Upstream
	// Default names the upstream of each format.
	Default map[wire.Format]string
	// ChatGPT names the upstream of requests with a ChatGPT login.
	ChatGPT  string
	Projects []Project
}

// Upstream is a configured endpoint.
type Upstream struct {
	Name    string
	Base    *url.URL
	Headers map[string]string
	Key     string // a configured key, "" = the client's own credential is forwarded
	Format  string // openai | anthropic | any
	Trusted bool   // may see facts of sensitivity internal
	Observe bool
	// Timeout is how long the upstream may stay silent, 0 = for ever.
	Timeout   time.Duration
	Transport http.RoundTripper // nil = the server's
}

// Project is a registered root.
type Project struct{ Name, Root string }

// Peers finds the process at the other end of a loopback connection.
type Peers func(local, remote netip.AddrPort) (peer.Process, error)

// Server is the edge. Its fields are set before the first request.
type Server struct {
	Turns     Turns
	Settings  func() Settings
	Peers     Peers
	UID       int
	Keys      *apikey.Book // of gettier's own keys; nil = none
	Now       func() time.Time
	HMACKey   []byte
	Transport http.RoundTripper
	Conflict  func(named, found string)                   // a path or header named a project that does not contain the peer
	Connected func(who lemma.Principal, r connect.Ruling) // a CONNECT was ruled on
	Dialer    Dialer                                      // of tunnels
	Head      func() (size uint64, root string)
	Policy    string
	Log       *slog.Logger

	hosts    atomic.Pointer[[]string] // Host values we answer to
	inflight budget
	limits   limits
	tunnels  tunnels
	clients  clients

	// Counters for the status.
	Requests, Gated, Ungated, Refused, Active atomic.Int64
}

// anyHost stands for the address at which a connection arrived, where the server
// is bound to all of this machine's.
const anyHost = "*"

// Listen tells the server which addresses it is bound to.
func (s *Server) Listen(addrs ...string) {
	var hosts []string
	for _, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			continue
		}
		hosts = append(hosts, a)
		if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			hosts = append(hosts, "localhost:"+port, "127.0.0.1:"+port, "[::1]:"+port)
			if ip.IsUnspecified() {
				hosts = append(hosts, anyHost)
			}
		}
	}
	s.hosts.Store(&hosts)
}

// ServeHTTP dispatches by path without cleaning it: a vendor's path is its own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	s.Active.Add(1)
	defer s.Active.Add(-1)
	if why := s.foreign(r); why != "" {
		s.deny(w, http.StatusForbidden, "forbidden", why)
		return
	}
	from, err := s.admit(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		s.tunnel(w, r, from)
	case r.URL.Path == "/healthz" || (r.URL.Path == "/" && (r.Method == http.MethodHead || r.Method == http.MethodGet)):
		s.policyHeaders(w.Header())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "gettierd\n") // the status line is out already
		}
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		// Codex falls back to POST at once on 426; anything else costs it seconds.
		s.deny(w, http.StatusUpgradeRequired, "upgrade_refused", "WebSocket is not gated; use POST")
	default:
		s.dispatch(w, r, from)
	}
}

func who(p peer.Process, err error) string {
	if err != nil {
		return "unknown (" + err.Error() + ")"
	}
	return fmt.Sprintf("uid %d", p.UID)
}

// foreign names the sign of a web page or a confused proxy client behind r, ""
// when there is none (13.10). Sec-Fetch-Mode is no sign: Node sends it.
func (s *Server) foreign(r *http.Request) string {
	switch {
	case r.Method != http.MethodConnect && r.URL.Host != "":
		return "absolute-form requests are refused: gettierd is not a forward proxy"
	case len(r.Header["Origin"]) > 0:
		return "requests from web pages (Origin) are refused"
	case len(r.Header["Referer"]) > 0:
		return "requests from web pages (Referer) are refused"
	}
	for _, v := range r.Header["Sec-Fetch-Site"] {
		if v != "none" {
			return "requests from web pages (Sec-Fetch-Site) are refused"
		}
	}
	if hosts := s.hosts.Load(); hosts != nil && r.Method != http.MethodConnect { // there it is the target
		for _, h := range *hosts {
			if strings.EqualFold(r.Host, h) || h == anyHost && r.Host == fmt.Sprint(r.Context().Value(http.LocalAddrContextKey)) {
				return ""
			}
		}
		return fmt.Sprintf("this is not the host %.100q", r.Host)
	}
	return ""
}

func (s *Server) peer(r *http.Request) (peer.Process, error) {
	find := func() (peer.Process, error) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		la, err := netip.ParseAddrPort(fmt.Sprint(local))
		if err != nil {
			return peer.Process{}, fmt.Errorf("read local address: %w", err)
		}
		ra, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return peer.Process{}, fmt.Errorf("read remote address: %w", err)
		}
		return s.Peers(la, ra)
	}
	c, ok := r.Context().Value(connKey{}).(*connPeer)
	if !ok {
		return find()
	}
	c.once.Do(func() { c.proc, c.err = find() })
	if c.err != nil {
		return peer.Process{}, c.err
	}
	now, err := peer.Again(c.proc)
	if err != nil {
		return find() // the socket was handed on
	}
	return now, nil
}

func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, from caller) {
	set, proc := s.Settings(), from.proc
	configured := func(name string) bool { _, ok := set.Upstreams[name]; return ok }
	t := dialect.Split(r.URL.Path, r.Header.Get("X-Gettier-Project"), configured)
	escaped := dialect.Split(r.URL.EscapedPath(), "", configured).Path // goes on as the client spelled it
	adapter := dialect.Gated(r.Method, t.Path)
	format := dialect.Format(t.Path)
	if adapter != nil {
		format = adapter.Format()
	}
	name := t.Upstream
	switch {
	case name != "":
	case r.Header.Get("Chatgpt-Account-Id") != "":
		name = set.ChatGPT
	default:
		name = set.Default[format]
	}
	up, ok := set.Upstreams[name]
	if !ok {
		s.errorIn(w, adapter, http.StatusNotFound, "no_upstream", fmt.Sprintf("no upstream is configured for %s (upstreams and default_upstream in gettierd.yaml, or --upstream)", t.Path))
		return
	}
	sc := s.scope(set.Projects, t.Project, proc)
	if err := from.reaches(up, t.Project, strings.TrimPrefix(sc.Name, "project:")); err != nil {
		s.refuse(w, r, err)
		return
	}
	var leader peer.Process
	if proc.PID != 0 {
		leader = s.Remember(proc)
	}
	if e := s.spend(from, leader, set.Limit); e != nil {
		s.refuseTooMany(w, adapter, e)
		return
	}
	body, err := s.read(w, r, set, adapter != nil)
	if err != nil {
		s.readError(w, adapter, err)
		return
	}
	defer s.inflight.release(int64(len(body)))
	call := &upstreamCall{s: s, up: up, path: t.Path, escaped: escaped, query: r.URL.RawQuery, method: r.Method, header: r.Header, identity: adapter != nil}
	if adapter == nil {
		s.Ungated.Add(1)
		if dialect.Stored(t.Path) {
			s.passStored(w, r, call, body, set.MaxBody)
			return
		}
		s.passThrough(w, r, call, body)
		return
	}
	s.Gated.Add(1)
	stripped, err := adapter.Strip(body)
	if err == nil {
		body = stripped
	}
	view, err := adapter.Read(body)
	if err != nil {
		s.errorIn(w, adapter, http.StatusBadRequest, "invalid_request_error", "gettierd cannot read this request, so it was not forwarded: "+err.Error())
		return
	}
	cred := from.credential(route.Credential(r.Header.Get))
	rt := route.Classify(s.HMACKey, view, r.Header.Get, t.Path, s.Turns.Prior(proc.PID, cred, sc))
	agent, source := attribution(r.Header, rt)
	q := &turn.Request{
		Wire: view, Adapter: adapter, Route: rt, Upstream: call,
		Scope:     sc,
		Principal: from.principal(leader, agent),
		CredHash:  cred, Observe: up.Observe, Timeout: clientTimeout(r.Header),
		Person: from.person, NoFacts: !from.facts(s.UID),
	}
	if q.Scope.Named != "" && s.Conflict != nil {
		s.Conflict(q.Scope.Named, q.Scope.Name)
	}
	out := &sink{s: s, w: w, rc: http.NewResponseController(w), agent: agent, source: source}
	if err := s.Turns.Serve(r.Context(), q, out); err != nil {
		s.Log.Debug("turn", "error", err.Error())
		if !out.started {
			s.errorIn(w, adapter, http.StatusInternalServerError, "gettier_error", "gettierd could not finish this turn: "+err.Error())
			return
		}
	}
	if out.aborted {
		panic(http.ErrAbortHandler) // cuts the connection: a broken answer must not look whole
	}
}

// attribution names the agent behind a request and says how it was known.
func attribution(h http.Header, rt route.Route) (agent, source string) {
	if v := h.Get("X-Gettier-Agent"); v != "" && len(v) <= 64 {
		return strings.ToValidUTF8(v, "�"), "explicit"
	}
	if rt.Client != "" {
		return string(rt.Client), "header-heuristic"
	}
	if name, _, ok := strings.Cut(h.Get("User-Agent"), "/"); ok && len(name) <= 64 && name != "" {
		return name, "header-heuristic"
	}
	return "", "unattributed"
}

// defaultTimeout is how long clients that do not say wait for a first byte:
// most stop at about 300 s.
const defaultTimeout = 300 * time.Second

// clientTimeout is how long this client waits, by its own word.
func clientTimeout(h http.Header) time.Duration {
	if n, err := strconv.Atoi(h.Get("X-Stainless-Timeout")); err == nil && n > 0 && n < 86400 {
		return min(time.Duration(n)*time.Second, defaultTimeout)
	}
	return defaultTimeout
}

// errTooLarge is a fault of a request's body.
var errTooLarge = errors.New("the request body is larger than proxy.max_body")

// read takes the whole body before anything is forwarded. One that will be
// judged is read without its codings, and goes on without them.
func (s *Server) read(w http.ResponseWriter, r *http.Request, set Settings, judged bool) ([]byte, error) {
	var list []string
	if judged {
		var err error
		if list, err = codings(r.Header); err != nil {
			return nil, err
		}
	}
	if r.ContentLength > set.MaxBody {
		return nil, errTooLarge
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	size := r.ContentLength
	if size < 0 || len(list) > 0 {
		size = set.MaxBody // an unknown length counts in full until it is read
	}
	if err := s.inflight.acquire(r.Context(), size, set.MaxInflight); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, max(r.ContentLength+1, 4<<10)) // one more: reading its end needs room, too
	in := r.Body
	if len(list) > 0 {
		in = &decoded{body: http.MaxBytesReader(w, r.Body, set.MaxBody), codings: list}
		defer in.Close()
		r.Header.Del("Content-Encoding")
	}
	body, err := readAll(http.MaxBytesReader(w, in, set.MaxBody), buf)
	if err != nil {
		s.inflight.release(size)
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, errTooLarge
		}
		return nil, fmt.Errorf("read request body: %w", err)
	}
	s.inflight.release(size - int64(len(body)))
	return body, nil
}

func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Server) readError(w http.ResponseWriter, a wire.Adapter, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		s.errorIn(w, a, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
	case errors.Is(err, errCoding):
		s.errorIn(w, a, http.StatusUnsupportedMediaType, "unsupported_encoding", err.Error())
	default:
		s.errorIn(w, a, http.StatusBadRequest, "invalid_request_error", err.Error())
	}
}

// errorIn answers in the client's format, or in plain JSON where no format is known.
func (s *Server) errorIn(w http.ResponseWriter, a wire.Adapter, status int, kind, message string) {
	if a == nil {
		s.deny(w, status, kind, message)
		return
	}
	s.Refused.Add(1)
	s.policyHeaders(w.Header())
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("X-Should-Retry") == "" {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(status)
	_, _ = w.Write(a.Error(status, kind, message)) // the client may be gone
}

func (s *Server) deny(w http.ResponseWriter, status int, kind, message string) {
	s.Refused.Add(1)
	s.policyHeaders(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"type":%s,"message":%s}}`+"\n", wire.Quote(kind), wire.Quote(strings.ToValidUTF8(message, "\uFFFD"))) // the client may be gone
}

func (s *Server) policyHeaders(h http.Header) {
	h.Set("X-Gettier-Policy-Version", s.Policy)
	if s.Head != nil {
		size, root := s.Head()
		h.Set("X-Gettier-Chain", fmt.Sprintf("%d:%s", size, root))
	}
}

// NewTransport is a pooled transport to upstreams that trusts further roots
// besides the system's. Redirects are never followed: RoundTrip is called.
func NewTransport(roots []byte) (http.RoundTripper, error) {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true, // bytes stay as the upstream sent them
	}
	if roots != nil {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read system roots: %w", err)
		}
		if !pool.AppendCertsFromPEM(roots) {
			return nil, errors.New("no certificate in it")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return t, nil
}

type connKey struct{}

// connPeer looks the process behind a connection up once; where it stands now is
// read for each request.
type connPeer struct {
	once sync.Once
	proc peer.Process
	err  error
}

// ConnContext remembers the peer of a connection for its requests.
func (s *Server) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &connPeer{})
}
