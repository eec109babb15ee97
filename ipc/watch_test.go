package ipc

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// A daemon that hangs is noticed: the stream has gone silent.
func TestWatchNoticesSilence(t *testing.T) {
	dir, err := os.MkdirTemp("", "gt") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, ": hb 7\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})}
	served := make(chan error, 1) // one result
	go func() { served <- srv.Serve(l) }()
	defer func() { srv.Close(); <-served }()
	c := New(filepath.Join(dir, "s"), "cli")
	c.idle = 50 * time.Millisecond
	for _, err := range c.Watch(t.Context(), nil) {
		var u *Unreachable
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "nothing was heard") {
			t.Errorf("got %v", err)
		}
		return
	}
}

func TestFrames(t *testing.T) {
	in := ": hb 7\n\nid: 8\nevent: turn.opened\ndata: {\"seq\":8}\n\n: a comment\n\nevent: lagged\r\ndata: {\"since\":8}\r\n\r\n"
	fr := newFrames(iotest.OneByteReader(strings.NewReader(in)))
	f, err := fr.next()
	if err != nil || f.beat == nil || *f.beat != 7 {
		t.Fatalf("heartbeat: %+v, %v", f, err)
	}
	f, err = fr.next()
	if err != nil || f.id == nil || *f.id != 8 || f.event != "turn.opened" || string(f.data) != `{"seq":8}` {
		t.Fatalf("event: %+v, %v", f, err)
	}
	f, err = fr.next()
	if err != nil || f.id != nil || f.event != "lagged" || string(f.data) != `{"since":8}` {
		t.Fatalf("lagged: %+v, %v", f, err)
	}
	if _, err = fr.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("end: %v", err)
	}
	if _, err = newFrames(strings.NewReader("data: " + strings.Repeat("x", maxFrame+1))).next(); err == nil {
		t.Error("an endless event was read")
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(": hb 7\n\nid: 8\nevent: x\ndata: {}\n\n")
	f.Add("id: x\n\n")
	f.Add("data\n:\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		fr := newFrames(strings.NewReader(in))
		for {
			f, err := fr.next()
			if err != nil {
				return
			}
			if f.event == "" && f.beat == nil {
				t.Fatalf("an empty frame from %q", in)
			}
			if strings.ContainsAny(f.event, "\r\n") && !strings.Contains(in, "\r") {
				t.Fatalf("a line end inside a field of %q", in)
			}
		}
	})
}

func TestEntryJSON(t *testing.T) {
	const in = `{"body":{"a":"<&>"},"kind":"turn.opened","prev":"00","seq":3,"tenant":"local","ts":"T","turn":"t_1","v":1}`
	var e Entry
	if err := json.Unmarshal([]byte(in), &e); err != nil {
		t.Fatal(err)
	}
	out, err := Marshal(e)
	if err != nil || string(out) != in {
		t.Errorf("got %s, %v", out, err)
	}
	e.Turn = ""
	out, err = Marshal(e)
	if err != nil || strings.Contains(string(out), "turn\":") && !strings.Contains(string(out), "turn.opened") {
		t.Errorf("got %s, %v", out, err)
	}
	if want := strings.Replace(in, `"turn":"t_1",`, "", 1); string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
}
