package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	blockOpen  = "<gettier-verification"
	blockClose = "</gettier-verification>"
)

// exchange is one request as the upstream received it.
type exchange struct {
	n              int // from 0
	method, target string
	host           string
	header         http.Header
	body           string
	stream         bool
	// gone is closed when the daemon left before the answer was complete; left
	// says when.
	gone chan struct{}
	left time.Time
}

// declares tells a declare pass by the words of its instruction.
func (x *exchange) declares() bool { return strings.Contains(x.body, "Stop before acting.") }

// grounded tells a request that carries a block of ours.
func (x *exchange) grounded() bool { return strings.Contains(x.body, blockOpen) }

// forced tells a declare pass that offers and forces the tool.
func (x *exchange) forced() bool {
	return strings.Contains(x.body, `"declare_lemmas"`)
}

// recorder is a provider that keeps what it received.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*exchange
}

// newRecorder starts a provider that answers as told. The request's context
// ends when the daemon leaves.
func newRecorder(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, x *exchange)) *recorder {
	t.Helper()
	u := &recorder{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return // the daemon went away in the middle
		}
		x := &exchange{method: r.Method, target: r.RequestURI, host: r.Host, header: r.Header.Clone(), body: string(b), gone: make(chan struct{})}
		x.stream = strings.Contains(x.body, `"stream":true`)
		u.mu.Lock()
		x.n = len(u.seen)
		u.seen = append(u.seen, x)
		u.mu.Unlock()
		answer(w, r, x)
		if r.Context().Err() != nil {
			x.leave()
		}
	}))
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

// leave notes that the daemon left.
func (x *exchange) leave() {
	if !isClosed(x.gone) {
		x.left = time.Now()
		close(x.gone)
	}
}

// all returns what was received so far.
func (u *recorder) all() []*exchange {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*exchange(nil), u.seen...)
}

// answers are those requests that are no declare passes.
func (u *recorder) answers() []*exchange {
	var out []*exchange
	for _, x := range u.all() {
		if !x.declares() {
			out = append(out, x)
		}
	}
	return out
}

func (u *recorder) declares() int { return len(u.all()) - len(u.answers()) }

// last waits until n requests came and returns the last.
func (u *recorder) last(t testing.TB, n int) *exchange {
	t.Helper()
	eventually(t, "the upstream has requests", func() bool { return len(u.all()) >= n })
	return u.all()[n-1]
}

// write sends an answer of a format, whole or streamed.
func write(w http.ResponseWriter, stream bool, body string) {
	if stream {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusOK)
		rc := http.NewResponseController(w)
		for ev := range strings.SplitAfterSeq(body, "\n\n") {
			if _, err := io.WriteString(w, ev); err != nil {
				return
			}
			_ = rc.Flush() // a lost daemon shows at the next write
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body) // a lost daemon shows elsewhere
}

// tongueOf is the format of a path.
func tongueOf(path string) tongue {
	if strings.Contains(path, "messages") {
		return messagesTongue
	}
	return chatTongue
}

const planSummary = "raise the upload limit of the app"

func declaration(claims ...string) string {
	var b strings.Builder
	b.WriteString(`{"plan_summary":"` + planSummary + `","lemmas":[`)
	for i, c := range claims {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"claim":` + quoted(c) + `,"provenance":"believed","load_bearing":true}`)
	}
	b.WriteString("]}")
	return b.String()
}

// declare answers a declare pass on whatever rung it comes.
func declare(w http.ResponseWriter, x *exchange, claims ...string) {
	tg := tongueOf(x.target)
	if x.forced() {
		write(w, x.stream, tg.call(x.stream, "", "call_d", "declare_lemmas", declaration(claims...)))
		return
	}
	write(w, x.stream, tg.text(x.stream, declaration(claims...)))
}

// Texts of the scripted provider.
const (
	believing = "Raising the limit in app.json is enough."
	corrected = "Correction: the edge lets only 1m through. Both limits have to go up."
)

// believer is a provider without an agent's loop: it declares its false claim
// when asked, and corrects itself once a verification stands in the request.
func believer(w http.ResponseWriter, r *http.Request, x *exchange) {
	tg := tongueOf(x.target)
	switch {
	case x.declares():
		declare(w, x, falseClaim)
	case x.grounded():
		write(w, x.stream, tg.text(x.stream, corrected))
	default:
		write(w, x.stream, tg.text(x.stream, believing))
	}
}
