package ipcserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// Defaults of the timings in Options.
const (
	// DefaultHeartbeat is how often an idle event stream says where it stands.
	DefaultHeartbeat = 15 * time.Second
	// DefaultLag is how long a reader may take nothing before it counts as lagging.
	DefaultLag = 10 * time.Second
	// DefaultStall is how long one write may block before the connection is cut.
	DefaultStall = 30 * time.Second
	// DefaultStreams bounds open event streams: a runaway client must not eat the daemon.
	DefaultStreams = 64
)

// Options wire a Server. Backend and Peer are required; without Person every
// person's call is refused.
type Options struct {
	Backend Backend
	Peer    PeerFunc
	Person  PersonFunc
	// Attach is called when a person starts to look at the event stream; what it
	// returns, when they stop. May be nil.
	Attach func() func()
	// Refused takes a person's call that did not count, for the record; may be nil.
	Refused func(c *net.UnixConn, call string, why error)
	// UID is whose calls are served; the default is this process's effective uid.
	UID *int
	Log *slog.Logger // nil: silent
	// Kept: a connection may be silent for as long as it likes. For a server with
	// one connection that cannot be made again.
	Kept bool

	Heartbeat, Lag, Stall time.Duration
	Streams               int
}

// Server answers calls on the socket.
type Server struct {
	o       Options
	uid     int
	log     *slog.Logger
	http    *http.Server
	mux     *http.ServeMux
	streams chan struct{} // one slot per open stream
	verify  chan struct{} // one slot: verifying reads the whole log
	closing chan struct{}
	once    sync.Once
	sealers sealers
}

// New makes a server; it listens nowhere yet.
func New(o Options) *Server {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Heartbeat, DefaultHeartbeat)
	def(&o.Lag, DefaultLag)
	def(&o.Stall, DefaultStall)
	if o.Streams <= 0 {
		o.Streams = DefaultStreams
	}
	s := &Server{
		o: o, uid: os.Geteuid(), log: o.Log, mux: http.NewServeMux(),
		streams: make(chan struct{}, o.Streams), // a counting semaphore
		verify:  make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
	if o.UID != nil {
		s.uid = *o.UID
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.routes()
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(c net.Conn, st http.ConnState) {
			if st == http.StateClosed || st == http.StateHijacked {
				s.sealers.take(c)
			}
		},
	}
	if o.Kept {
		s.http.ReadHeaderTimeout, s.http.IdleTimeout = 0, 0
	}
	return s
}

type connKey struct{}

// Serve accepts connections until Shutdown; it returns nil then. A connection
// of another uid is refused before any of it is parsed.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&ownListener{Listener: l, s: s})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve socket: %w", err)
}

// Shutdown ends the streams, lets running calls finish until ctx ends and
// closes the listener.
func (s *Server) Shutdown(ctx context.Context) error {
	s.once.Do(func() { close(s.closing) })
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // the deadline is over: the rest is cut
		return fmt.Errorf("shut down socket: %w", err)
	}
	return nil
}

// ownListener hands out only connections of the served uid.
type ownListener struct {
	net.Listener
	s *Server
}

func (l *ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		why := l.s.foreign(c)
		if why == "" {
			return c, nil
		}
		l.s.log.Warn("connection refused", "why", why)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write(rawRefusal(why))
		_ = c.Close()
	}
}

// foreign says why a connection is not ours to serve, or "".
func (s *Server) foreign(c net.Conn) string {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return "not a unix socket"
	}
	p, err := s.o.Peer(u)
	if err != nil {
		return "the peer is unknown"
	}
	if p.UID != s.uid {
		return fmt.Sprintf("this gettierd serves uid %d, the caller is uid %d", s.uid, p.UID)
	}
	return ""
}

func rawRefusal(why string) []byte {
	body, err := ipc.Marshal(&ipc.Problem{Type: "about:blank", Title: "Forbidden", Status: 403, Detail: why,
		Hint: "each user runs their own gettierd: gettier up"})
	if err != nil {
		body = []byte(`{"status":403}`)
	}
	return fmt.Appendf(nil, "HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		ipc.ProblemType, len(body), body)
}

// hosts are the names that a client of the socket may send.
var hosts = map[string]bool{"gettierd": true, "localhost": true}

// serve is the one door: what looks like a browser or a forwarded request is
// refused, then the route is found, and every failure is a problem document.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	tw := &tracked{ResponseWriter: w}
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("handler failed", "path", r.URL.Path, "panic", fmt.Sprint(p))
			if tw.wrote {
				panic(http.ErrAbortHandler) // headers left: only a cut tells the client
			}
			problem(tw, &ipc.Problem{Title: "Internal error", Status: 500, Detail: "the daemon failed while answering; its log says where"})
		}
	}()
	if p := browserLike(r); p != nil {
		problem(tw, p)
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		s.unknown(tw, r)
		return
	}
	s.mux.ServeHTTP(tw, r)
}

// browserLike refuses what only a web page, or something that relays one, sends.
func browserLike(r *http.Request) *ipc.Problem {
	no := func(why string) *ipc.Problem {
		return &ipc.Problem{Title: "Forbidden", Status: 403, Detail: why, Hint: "the socket serves gettier and curl, not web pages"}
	}
	for _, name := range []string{"Origin", "Referer"} {
		if _, ok := r.Header[name]; ok {
			return no("requests with " + name + " are refused")
		}
	}
	for _, v := range r.Header.Values("Sec-Fetch-Site") {
		if v != "none" {
			return no("requests with Sec-Fetch-Site are refused")
		}
	}
	if r.Method == http.MethodConnect || r.URL.IsAbs() || r.URL.Host != "" {
		return no("this is no proxy")
	}
	if !hosts[strings.ToLower(r.Host)] {
		return no("Host must be gettierd or localhost")
	}
	return nil
}

// unknown answers a path or method that is not served.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = m
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allow = append(allow, m)
		}
	}
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		problem(w, &ipc.Problem{Title: "Method not allowed", Status: 405, Detail: "allowed here: " + strings.Join(allow, ", ")})
		return
	}
	problem(w, &ipc.Problem{Title: "Not found", Status: 404, Detail: "no such call", Hint: "ipc/PROTOCOL.md lists the calls"})
}

// tracked remembers whether anything was sent.
type tracked struct {
	http.ResponseWriter
	wrote bool
}

func (t *tracked) WriteHeader(code int) { t.wrote = true; t.ResponseWriter.WriteHeader(code) }

func (t *tracked) Write(b []byte) (int, error) { t.wrote = true; return t.ResponseWriter.Write(b) }

// Unwrap lets http.ResponseController reach deadlines and Flush.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// person runs the positive chain for a person's call.
func (s *Server) person(r *http.Request) (lemma.Answerer, error) {
	refuse := func(why string) error {
		return &ipc.Problem{Title: "Only a person may do this", Status: 403, Detail: why}
	}
	c, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok || s.o.Person == nil {
		return lemma.Answerer{}, refuse("the caller cannot be told from a program")
	}
	by, err := s.o.Person(c)
	if err != nil {
		if s.o.Refused != nil {
			s.o.Refused(c, r.Method+" "+r.URL.Path, err)
		}
		return lemma.Answerer{}, refuse(err.Error())
	}
	switch via := r.Header.Get(ipc.ViaHeader); {
	case by.Via == "harness": // no header makes a person of it
	case via == "cli" || via == "tui" || via == "editor":
		by.Via = via
	case by.Via == "":
		by.Via = "cli"
	}
	return by, nil
}
