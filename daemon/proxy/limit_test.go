package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/apikey"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/proxy/dialect"
)

// TestSpend: each program and each key has a minute of its own, and a key a day.
func TestSpend(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &Server{Now: func() time.Time { return now }, Keys: &apikey.Book{}}
	program := func(pid int) caller { return caller{proc: peer.Process{PID: pid, Start: 1}} }
	key := caller{proc: peer.Process{PID: 1, Start: 1}, key: &apikey.Key{ID: "k", PerMinute: 1, PerDay: 2}}
	step := func(what string, c caller, leader int, wait time.Duration) {
		t.Helper()
		var l peer.Process
		if leader != 0 {
			l = peer.Process{PID: leader, Start: 1}
		}
		e := s.spend(c, l, 2)
		switch {
		case wait == 0 && e != nil:
			t.Errorf("%s: refused: %v", what, e)
		case wait != 0 && (e == nil || e.wait != wait):
			t.Errorf("%s: %+v, not %v", what, e, wait)
		}
	}
	step("first", program(2), 0, 0)
	now = now.Add(10 * time.Second)
	step("second", program(2), 0, 0)
	step("third", program(2), 0, 50*time.Second)
	step("another program", program(3), 0, 0)
	step("a key from the same process", key, 0, 0)
	step("the key again", key, 0, time.Minute)
	now = now.Add(50 * time.Second)
	step("when the first has left the window", program(2), 0, 0)
	now = now.Add(10 * time.Second)
	step("the key's next minute", key, 0, 0)
	now = now.Add(time.Minute)
	step("the key's day", key, 0, 11*time.Hour+57*time.Minute+50*time.Second)
	step("one worker of a command", program(4), 9, 0)
	step("another of it", program(5), 9, 0)
	step("a third", program(6), 9, time.Minute)
	if e := s.spend(program(2), peer.Process{}, 0); e != nil {
		t.Errorf("no limit: %v", e)
	}
}

// TestTooMany: the answer says when to come back, and whether to.
func TestTooMany(t *testing.T) {
	s := &Server{Policy: "0"}
	for _, c := range []struct {
		wait  time.Duration
		after string
		retry string
	}{{time.Nanosecond, "1", "true"}, {59*time.Second + 1, "60", "true"}, {5 * time.Hour, "18000", "false"}} {
		for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"} {
			w := httptest.NewRecorder()
			s.refuseTooMany(w, dialect.Gated(http.MethodPost, path), &tooMany{"enough", c.wait})
			h := w.Header()
			gated := path != "/v1/embeddings"
			if w.Code != 429 || h.Get("Retry-After") != c.after || gated && h.Get("X-Should-Retry") != c.retry || !strings.Contains(w.Body.String(), "gettierd: enough") {
				t.Errorf("%s %v: %d %v %s", path, c.wait, w.Code, h, w.Body)
			}
		}
	}
}
