package ipcserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// Entries appended before, while and after a stream opens come once each.
func TestEventsHaveNoGap(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	const each, writers = 300, 4
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range each {
				b.Append("t_1", lemma.TurnClassified{Class: lemma.Edit, Reasons: []string{fmt.Sprint(i)}})
			}
		})
	}
	zero := uint64(0)
	want := uint64(1)
	for e, err := range ipc.New(path, "cli").Watch(t.Context(), &zero) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != want {
			t.Fatalf("entry %d came, want %d", e.Seq, want)
		}
		want++
		if want > each*writers {
			break
		}
	}
	wg.Wait()
}

func TestEventsFilterAndResume(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	for range 3 {
		b.Append("t_1", lemma.TurnOpened{})
		b.Append("t_1", lemma.GateDecided{})
		b.Append("t_1", lemma.HoldOpened{})
	}
	ipctest.Serve(t, path, ipcserver.Options{Backend: b, Heartbeat: 10 * time.Millisecond})
	repeat := false
	read := func(target, headers string, n int) []string {
		resp := raw(t, path, "GET "+target+" HTTP/1.1\r\nHost: gettierd\r\n"+headers+"\r\n")
		var got []string
		sc := bufio.NewScanner(resp.Body)
		for len(got) < n && sc.Scan() {
			l := sc.Text()
			beats := strings.Contains(l, "hb") && len(got) > 0 && got[len(got)-1] == l
			if l != "" && !strings.HasPrefix(l, "data:") && (!beats || repeat) {
				got = append(got, l)
			}
		}
		return got
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	same("kinds", read("/v1/events?since=0&kinds=hold.opened", "", 5),
		": hb 0", "id: 3", "event: hold.opened", "id: 6", "event: hold.opened")
	same("family and kind", read("/v1/events?since=6&kinds=turn.*,gate.decided", "", 6),
		": hb 6", "id: 7", "event: turn.opened", "id: 8", "event: gate.decided", ": hb 9")
	same("Last-Event-ID wins", read("/v1/events?since=0", "Last-Event-ID: 8\r\n", 4),
		": hb 8", "id: 9", "event: hold.opened", ": hb 9")
	repeat = true // an idle stream says where it stands again and again
	same("live only", read("/v1/events", "", 2), ": hb 9", ": hb 9")
}

// watched tells when a Watch was let go.
type watched struct {
	ipcserver.Backend
	done chan struct{}
}

func (w watched) Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error] {
	return func(yield func(ipc.Entry, error) bool) {
		defer close(w.done)
		for e, err := range w.Backend.Watch(ctx, since) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestSlowReaderIsToldAndLetGo(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	const n = 3000
	for range n {
		b.Append("t_1", lemma.TurnOpened{Prompt: strings.Repeat("x", 1000)})
	}
	w := watched{b, make(chan struct{})}
	ipctest.Serve(t, path, ipcserver.Options{Backend: w, Lag: 30 * time.Millisecond, Stall: time.Minute})
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /v1/events?since=0 HTTP/1.1\r\nHost: gettierd\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-w.done // nothing was read so far: the cursor on the log is free again
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Count(string(all), "\nid: ")
	want := fmt.Sprintf("event: lagged\ndata: {\"since\":%d}\n\n", ids)
	if ids == 0 || ids >= n || !strings.HasSuffix(string(all), want) {
		t.Errorf("%d events, then %q; want it to end in %q", ids, all[max(0, len(all)-80):], want)
	}
}

// A client that lagged goes on by itself and misses nothing.
func TestWatchGoesOnAfterLag(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	const n = 2500
	for range n {
		b.Append("t_1", lemma.TurnOpened{Prompt: strings.Repeat("x", 1000)})
	}
	first := make(chan struct{})
	w := &firstWatch{Backend: b, done: first}
	ipctest.Serve(t, path, ipcserver.Options{Backend: w, Lag: 30 * time.Millisecond, Stall: time.Minute})
	zero, want, lagged := uint64(0), uint64(1), false
	for e, err := range ipc.New(path, "cli").Watch(t.Context(), &zero) {
		if err != nil {
			lagged = true
			continue
		}
		if e.Seq != want {
			t.Fatalf("entry %d came, want %d", e.Seq, want)
		}
		if e.Seq == 1 {
			<-first // take nothing until the server gave up
		}
		want++
		if want > n {
			break
		}
	}
	if !lagged {
		t.Error("the lag was not shown")
	}
}

type firstWatch struct {
	ipcserver.Backend
	once sync.Once
	done chan struct{}
}

func (w *firstWatch) Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error] {
	return func(yield func(ipc.Entry, error) bool) {
		defer w.once.Do(func() { close(w.done) })
		for e, err := range w.Backend.Watch(ctx, since) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New(), Streams: 1})
	first := raw(t, path, "GET /v1/events HTTP/1.1\r\nHost: gettierd\r\n\r\n")
	if first.StatusCode != 200 {
		t.Fatalf("status %d", first.StatusCode)
	}
	if p := problemOf(t, raw(t, path, "GET /v1/events HTTP/1.1\r\nHost: gettierd\r\n\r\n")); p.Status != 503 {
		t.Errorf("got %+v", p)
	}
}

func TestShutdownEndsStreams(t *testing.T) {
	path := ipctest.Socket(t)
	stop := ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New()})
	resp := raw(t, path, "GET /v1/events HTTP/1.1\r\nHost: gettierd\r\n\r\n")
	stop() // must not wait for the stream's reader
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream was cut, not ended: %v", err)
	}
}

// What a TUI that opens on a long log pays for an entry.
func BenchmarkReplay(b *testing.B) {
	path := ipctest.Socket(b)
	be := ipctest.New()
	const n = 10_000
	for range n {
		be.Append("t_1", lemma.TurnOpened{Prompt: strings.Repeat("x", 200)})
	}
	ipctest.Serve(b, path, ipcserver.Options{Backend: be})
	c := ipc.New(path, "tui")
	for b.Loop() {
		zero, got := uint64(0), 0
		for _, err := range c.Watch(b.Context(), &zero) {
			if err != nil {
				b.Fatal(err)
			}
			if got++; got == n {
				break
			}
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// Holds wait while a surface looks on that can answer; a program that merely
// reads events is none.
func TestWhoAttends(t *testing.T) {
	for via, want := range map[string]int64{"tui": 1, "editor": 1, "harness": 1, "cli": 0, "": 0, "person": 0} {
		var looking, left atomic.Int64
		path := ipctest.Socket(t)
		b := ipctest.New()
		b.Append("", lemma.HoldOpened{})
		stop := ipctest.Serve(t, path, ipcserver.Options{Backend: b, Person: ipctest.Nobody, Attach: func() func() {
			looking.Add(1)
			return func() { left.Add(1) }
		}})
		c := ipc.New(path, via)
		since := uint64(0)
		for e, err := range c.Watch(t.Context(), &since) {
			if err != nil || e.Kind != "hold.opened" {
				t.Errorf("%q: %v %v", via, e.Kind, err)
			}
			break
		}
		if got := looking.Load(); got != want {
			t.Errorf("%q: %d attached, want %d", via, got, want)
		}
		c.Close()
		stop()
		if left.Load() != want {
			t.Errorf("%q: %d left, want %d", via, left.Load(), want)
		}
	}
}
