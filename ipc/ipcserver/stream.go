package ipcserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// sse writes one event stream; every write has a deadline.
type sse struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	buf   []byte
}

func (s *Server) newSSE(w http.ResponseWriter) *sse {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return &sse{w: w, rc: http.NewResponseController(w), stall: s.o.Stall}
}

// add puts one event into the buffer. data is one line of JSON.
func (e *sse) add(id *uint64, event string, data []byte) {
	if id != nil {
		e.buf = fmt.Appendf(e.buf, "id: %d\n", *id)
	}
	e.buf = fmt.Appendf(e.buf, "event: %s\ndata: %s\n\n", event, data)
}

func (e *sse) beat(seq uint64) { e.buf = fmt.Appendf(e.buf, ": hb %d\n\n", seq) }

func (e *sse) flush() error {
	if len(e.buf) == 0 {
		return nil
	}
	if err := e.rc.SetWriteDeadline(time.Now().Add(e.stall)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	if err != nil {
		return err
	}
	return e.rc.Flush()
}

// kindFilter reads ?kinds=: exact kinds and families like turn.*
func kindFilter(spec string) (func(kind string) bool, error) {
	if spec == "" {
		return func(string) bool { return true }, nil
	}
	exact := map[string]bool{}
	var families []string
	for k := range strings.SplitSeq(spec, ",") {
		if f, ok := strings.CutSuffix(k, "*"); ok && strings.HasSuffix(f, ".") {
			if !slices.ContainsFunc(lemma.Kinds, func(l lemma.Kind) bool { return strings.HasPrefix(string(l), f) }) {
				return nil, bad("no kind starts with %q", f)
			}
			families = append(families, f)
			continue
		}
		if !slices.Contains(lemma.Kinds, lemma.Kind(k)) {
			return nil, bad("unknown kind %q", k)
		}
		exact[k] = true
	}
	return func(kind string) bool {
		return exact[kind] || slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(kind, f) })
	}, nil
}

// take gets a stream's slot.
func (s *Server) take() (release func(), err error) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, &ipc.Problem{Title: "Not available", Status: 503, Detail: fmt.Sprintf("%d event streams are open", cap(s.streams))}
	}
}

// events replays from the ledger and then follows it. The log is read by a
// goroutine of its own, so a reader that stops reading is noticed, told and
// let go instead of holding a cursor for ever.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "since", "kinds")
	since := q.seq("since")
	wants, err := kindFilter(q.str("kinds"))
	if q.err == nil {
		q.err = err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && q.err == nil {
		n, err := parseSeq(id)
		if err != nil {
			q.err = bad("Last-Event-ID must be a sequence number")
		}
		since = &n // newer than the URL's, which a reconnecting client repeats
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	release, err := s.take()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer release()
	if s.o.Attach != nil && s.attends(r) {
		defer s.o.Attach()()
	}
	head, err := s.o.Backend.Head(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if since == nil {
		// From here on nothing is missed, also before the first byte arrives.
		since = &head
	} else if *since > head {
		s.fail(w, r, &ipc.Problem{Title: "Conflict", Status: 409, Detail: fmt.Sprintf("the log ends at %d, before %d", head, *since),
			Hint: "this is another or an older log: read the lists anew"})
		return
	}
	s.follow(w, r, *since, wants)
}

// attends reports whether somebody who can answer looks at this stream: a screen,
// an editor or a harness, or any other program in the foreground of a person's
// terminal.
func (s *Server) attends(r *http.Request) bool {
	switch r.Header.Get(ipc.ViaHeader) {
	case "tui", "editor", "harness":
		return true
	}
	c, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok || s.o.Person == nil {
		return false
	}
	_, err := s.o.Person(c)
	return err == nil
}

type next struct {
	entry ipc.Entry
	err   error
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request, since uint64, wants func(string) bool) {
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	// 64: a group commit's worth, so that short pauses of the socket do not
	// count as lag.
	entries := make(chan next, 64)
	var lagged atomic.Bool
	wg.Go(func() {
		defer close(entries)
		for e, err := range s.o.Backend.Watch(ctx, &since) {
			if !s.pass(ctx, entries, next{e, err}, &lagged) || err != nil {
				return
			}
		}
	})

	out := s.newSSE(w)
	at := since
	out.beat(at)
	if out.flush() != nil {
		return
	}
	tick := time.NewTicker(s.o.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		case <-tick.C:
			out.beat(at)
		case n, ok := <-entries:
			if !ok {
				s.end(out, at, lagged.Load(), nil)
				return
			}
			for more := true; more; {
				if n.err != nil {
					if ctx.Err() == nil {
						s.end(out, at, false, n.err)
					}
					return
				}
				at = n.entry.Seq
				if wants(n.entry.Kind) {
					data, err := ipc.Marshal(n.entry)
					if err != nil {
						s.end(out, at, false, fmt.Errorf("write entry %d: %w", at, err))
						return
					}
					out.add(&at, n.entry.Kind, data)
				}
				more = len(out.buf) < 64<<10
				if more {
					select {
					case n, ok = <-entries:
						if !ok {
							s.end(out, at, lagged.Load(), nil)
							return
						}
					default:
						more = false
					}
				}
			}
		}
		if out.flush() != nil {
			return // the reader is gone, or took nothing for the whole stall
		}
	}
}

// pass hands one entry to the stream's writer. A writer that takes nothing for
// the whole lag means a reader that does not read: false, and lagged is set.
func (s *Server) pass(ctx context.Context, to chan<- next, n next, lagged *atomic.Bool) bool {
	select {
	case to <- n:
		return true
	default:
	}
	t := time.NewTimer(s.o.Lag)
	defer t.Stop()
	select {
	case to <- n:
		return true
	case <-ctx.Done():
		return false
	case <-t.C:
		lagged.Store(true)
		return false
	}
}

// end tells why a stream ends, so that the client knows where to go on.
func (s *Server) end(out *sse, at uint64, lagged bool, err error) {
	switch {
	case lagged:
		out.add(nil, "lagged", fmt.Appendf(nil, `{"since":%d}`, at))
	case err != nil && !errors.Is(err, context.Canceled):
		s.log.Error("event stream ended", "at", at, "err", err)
		if data, merr := ipc.Marshal(&ipc.Problem{Type: "about:blank", Title: "The stream ended", Status: 500, Detail: err.Error()}); merr == nil {
			out.add(nil, "problem", data)
		}
	}
	_ = out.flush() // the reader is gone: nobody to tell
}

// auditVerify checks the live log and streams its progress, then the report.
func (s *Server) auditVerify(w http.ResponseWriter, r *http.Request) {
	if q := readQuery(r); q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	select {
	case s.verify <- struct{}{}:
		defer func() { <-s.verify }()
	case <-r.Context().Done():
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	var done, total atomic.Uint64
	type result struct {
		v   ipc.Verification
		err error
	}
	finished := make(chan result, 1) // the goroutine ends even when nobody listens any more
	wg.Go(func() {
		v, err := s.o.Backend.Verify(ctx, func(d, t uint64) { done.Store(d); total.Store(t) })
		finished <- result{v, err}
	})
	out := s.newSSE(w)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		case <-tick.C:
			if d := done.Load(); d != last {
				last = d
				out.add(nil, "progress", fmt.Appendf(nil, `{"done":%d,"total":%d}`, d, total.Load()))
			}
		case f := <-finished:
			if f.err != nil {
				if data, err := ipc.Marshal(s.asProblem(r, f.err)); err == nil {
					out.add(nil, "problem", data)
				}
			} else if data, err := ipc.Marshal(f.v); err == nil {
				out.add(nil, "report", data)
			}
			_ = out.flush() // the reader is gone: nobody to tell
			return
		}
		if out.flush() != nil {
			return
		}
	}
}
