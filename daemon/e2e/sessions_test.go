package e2e

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// recording is one session of a real client, as it came over the socket.
type recording struct {
	name     string
	requests []recorded
}

type recorded struct {
	file string
	kind string
	why  string
	raw  []byte // request line, headers, blank line, body
	answer
}

// answer is what the provider of the recording said.
type answer struct {
	N     string
	Text  string
	Cut   *int     `json:"cut_after_events"`
	Raw   []string // status, content type, body
	Calls []struct {
		Name string
		Args json.RawMessage
		ID   string
	}
}

// sessionPacks are the recordings that package route classifies.
const sessionPacks = "../route/testdata/sessions/"

func unpackSessions(t *testing.T, client string) []recording {
	t.Helper()
	f, err := os.Open(sessionPacks + client + ".tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	var names []string
	for tr := tar.NewReader(z); ; {
		hd, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[hd.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		if path.Base(hd.Name) == "session.json" {
			names = append(names, hd.Name)
		}
	}
	slices.Sort(names)
	var out []recording
	for _, n := range names {
		var s struct {
			Requests []struct{ File, Kind, Why string }
			Answers  []answer
		}
		if err := json.Unmarshal(files[n], &s); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		rec := recording{name: path.Dir(n)}
		for _, q := range s.Requests {
			r := recorded{file: q.File, kind: q.Kind, why: q.Why, raw: files[path.Join(rec.name, q.File)]}
			for _, a := range s.Answers {
				if a.N+".request" == q.File {
					r.answer = a
				}
			}
			rec.requests = append(rec.requests, r)
		}
		out = append(out, rec)
	}
	if len(out) == 0 {
		t.Fatal("no recorded session of " + client)
	}
	return out
}

// split takes a recorded request apart.
func (r recorded) split(t testing.TB) (method, target string, header http.Header, body string) {
	t.Helper()
	head, b, ok := bytes.Cut(r.raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("a request without a blank line")
	}
	lines := strings.Split(string(head), "\r\n")
	f := strings.Fields(lines[0])
	header = http.Header{}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		header.Add(k, v)
	}
	return f[0], f[1], header, string(b)
}

// say is the recorded answer in the format and mode of the request.
func (r recorded) say(target string, stream bool) string {
	tg := tongueOf(target)
	if len(r.Calls) == 0 {
		return tg.text(stream, r.Text)
	}
	c := r.Calls[0]
	return tg.call(stream, r.Text, c.ID, c.Name, string(c.Args))
}

// TestE2ERecordedSessions replays whole sessions of real clients from a place
// that no project holds: each byte reaches the upstream, each byte comes back,
// and each request belongs to the turn that its label says.
func TestE2ERecordedSessions(t *testing.T) {
	t.Parallel()
	for _, clients := range [][]string{{"claude-code"}, {"opencode-chat", "opencode-messages", "continue-chat", "continue-messages", "cline-chat"}} {
		t.Run(clients[0], func(t *testing.T) {
			t.Parallel()
			var now recorded // one request at a time
			up := newRecorder(t, func(w http.ResponseWriter, _ *http.Request, x *exchange) {
				switch {
				case len(now.Raw) == 3:
					var status int
					fmt.Sscan(now.Raw[0], &status)
					w.Header().Set("Content-Type", now.Raw[1])
					w.WriteHeader(status)
					io.WriteString(w, now.Raw[2])
				case strings.Contains(x.target, "count_tokens"):
					write(w, false, `{"input_tokens":7}`)
				case now.Cut != nil:
					all := strings.SplitAfter(now.say(x.target, x.stream), "\n\n")
					write(w, x.stream, strings.Join(all[:min(*now.Cut, len(all)-2)], ""))
					panic(http.ErrAbortHandler)
				default:
					write(w, x.stream, now.say(x.target, x.stream))
				}
			})
			h := newHouse(t, plan{upstream: up.URL})
			total := map[string]int{}
			for _, client := range clients {
				for _, rec := range unpackSessions(t, client) {
					a := h.agent(h.dir)
					s := session{t: t, a: a, up: up, name: rec.name, turnOf: map[string]string{}, nameless: strings.HasPrefix(client, "continue") || strings.HasPrefix(client, "cline")}
					for _, r := range rec.requests {
						now = r
						s.replay(r)
						total[r.kind]++
					}
				}
			}
			for _, k := range []string{"new", "loop", "resend", "subagent", "side:title", "side:compaction"} {
				if total[k] == 0 {
					t.Errorf("no request of kind %s was replayed", k)
				}
			}
			t.Logf("%v", total)
			if n := up.declares(); n != 0 {
				t.Errorf("%d declare passes from a place that no project holds", n)
			}
			for _, turn := range h.turns() {
				if turn.Scope != "host" || turn.Decision != "" && turn.Decision != "pass_through" && turn.Decision != "error" {
					t.Errorf("turn %s: scope %s, decision %s", turn.ID, turn.Scope, turn.Decision)
				}
			}
			h.verified()
		})
	}
}

// session is the state of one replay.
type session struct {
	t    *testing.T
	a    *agent
	up   *recorder
	name string

	current string            // the open turn of the main conversation
	broken  string            // the turn whose last answer failed
	turnOf  map[string]string // turn → kind of the request that opened it

	nameless  bool // the client sends no session header
	compacted bool // its history was just summarised
}

func (s *session) replay(r recorded) {
	s.t.Helper()
	at := s.name + "/" + r.file
	method, target, header, body := r.split(s.t)
	before := len(s.up.all())
	got := s.send(r)
	seen := s.up.all()[before:]
	if r.kind == "local" {
		if len(seen) != 0 || got.status != http.StatusOK || got.turn() != "" {
			s.t.Errorf("%s (%s): status %d, %d requests upstream", at, r.why, got.status, len(seen))
		}
		return
	}
	if len(seen) != 1 {
		s.t.Errorf("%s: the upstream saw %d requests", at, len(seen))
		return
	}
	x := seen[0]
	if x.method != method || x.target != target || x.body != body {
		s.t.Errorf("%s: %s %s with %d bytes arrived as %s %s with %d", at, method, target, len(body), x.method, x.target, len(x.body))
	}
	counts := strings.Contains(target, "count_tokens")
	for k, v := range header {
		switch k = textproto.CanonicalMIMEHeaderKey(k); k {
		case "Host", "Connection", "Content-Length", "Keep-Alive":
			continue
		case "Accept-Encoding":
			if !counts {
				v = []string{"identity"}
			}
		}
		if !slices.Equal(x.header[k], v) {
			s.t.Errorf("%s: %s arrived as %q, was %q", at, k, x.header[k], v)
		}
	}
	for k := range x.header {
		if _, ok := header[k]; !ok && k != "Content-Length" {
			s.t.Errorf("%s: %s was added: %q", at, k, x.header[k])
		}
	}
	s.answered(at, r, x, got)
	if counts {
		return
	}
	s.belongs(at, r, got)
}

// answered holds that the upstream's bytes came back.
func (s *session) answered(at string, r recorded, x *exchange, got reply) {
	s.t.Helper()
	switch {
	case len(r.Raw) == 3:
		if !strings.HasPrefix(r.Raw[0], fmt.Sprint(got.status)) || got.body != r.Raw[2] || got.header.Get("Content-Type") != r.Raw[1] {
			s.t.Errorf("%s: the refusal %q came back as %d %q", at, r.Raw, got.status, got.body)
		}
	case strings.Contains(x.target, "count_tokens"):
		if got.body != `{"input_tokens":7}` {
			s.t.Errorf("%s: %s", at, got.body)
		}
	case r.Cut != nil:
		if got.err == nil {
			s.t.Errorf("%s: a cut answer ended cleanly: %s", at, got.body)
		}
	default:
		if want := r.say(x.target, x.stream); got.status != 200 || got.err != nil || got.body != want {
			s.t.Errorf("%s: %d %v: came back as\n%s\nwas\n%s", at, got.status, got.err, got.body, want)
		}
	}
}

// belongs holds a request's turn against its label.
func (s *session) belongs(at string, r recorded, got reply) {
	s.t.Helper()
	id := got.turn()
	if id == "" {
		s.t.Errorf("%s: no turn", at)
		return
	}
	opened, known := s.turnOf[id]
	switch {
	case r.kind == "new":
		if known {
			s.t.Errorf("%s (%s): new, but joined the turn of a %s", at, r.why, opened)
		}
		s.current = id
	case r.kind == "loop" && s.compacted && !known && s.nameless:
		s.current = id // a history that begins anew, of a client that names no session
	case r.kind == "loop":
		if id != s.current {
			s.t.Errorf("%s (%s): loop, in turn %s (%s) instead of %s", at, r.why, id, opened, s.current)
		}
	case r.kind == "resend":
		if id != s.broken {
			s.t.Errorf("%s (%s): resend, in turn %s (%s) instead of %s", at, r.why, id, opened, s.broken)
		}
		s.current = id
	case known && (r.kind != "subagent" || opened != "subagent"):
		s.t.Errorf("%s (%s): %s, but joined the turn of a %s", at, r.why, r.kind, opened)
	}
	if !known {
		s.turnOf[id] = r.kind
	}
	s.compacted = r.kind == "side:compaction"
	s.broken = ""
	if got.err != nil || got.status != http.StatusOK {
		s.broken = id
	}
}

// send writes the recorded bytes as they are, but for the host.
func (s *session) send(r recorded) reply {
	s.t.Helper()
	c := s.a.dial(s.t)
	defer c.Close()
	head, body, _ := bytes.Cut(r.raw, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	for i, l := range lines {
		if strings.HasPrefix(strings.ToLower(l), "host:") {
			lines[i] = "Host: " + s.a.h.proxy
		}
	}
	if _, err := c.Write(append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), body...)); err != nil {
		s.t.Fatal(err)
	}
	method, _, _ := strings.Cut(lines[0], " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		s.t.Fatalf("%s/%s: %v", s.name, r.file, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b), err}
}

// TestE2ECaughtSessions replays sessions from inside the project while the
// provider wants to act on a false claim until it is told better: from the catch
// on, each request of the conversation carries the correction once and as the
// same bytes, compaction included, and nothing else of it changes.
func TestE2ECaughtSessions(t *testing.T) {
	t.Parallel()
	var now recorded
	up := newRecorder(t, func(w http.ResponseWriter, _ *http.Request, x *exchange) {
		tg := tongueOf(x.target)
		switch {
		case x.declares():
			declare(w, x, falseClaim)
		case strings.Contains(x.target, "count_tokens"):
			write(w, false, `{"input_tokens":7}`)
		case (now.kind == "new" || now.kind == "loop") && verificationIn(x.body) == "":
			write(w, x.stream, tg.call(x.stream, "", "toolu_wrong", "Bash", shellArgs(wrongCommand)))
		default:
			write(w, x.stream, now.say(x.target, x.stream))
		}
	})
	h := newHouse(t, plan{upstream: up.URL})
	left := []string{"tool-loop", "two-prompts", "compact", "stop-hook", "tui-suggest", "tui-refuse"}
	for _, rec := range unpackSessions(t, "claude-code") {
		i := slices.Index(left, path.Base(rec.name))
		if i < 0 {
			continue
		}
		left = slices.Delete(left, i, i+1)
		s := session{t: t, a: h.agent(h.project), up: up, name: rec.name}
		block, carried := "", 0
		for _, r := range rec.requests {
			now = r
			before := len(up.all())
			got := s.send(r)
			at := rec.name + "/" + r.file
			if got.status != http.StatusOK || got.err != nil {
				t.Fatalf("%s: %d %v %s", at, got.status, got.err, got.body)
			}
			if strings.Contains(got.body, "toolu_wrong") {
				t.Errorf("%s: the wrong command left", at)
			}
			_, _, _, body := r.split(t)
			for _, x := range up.all()[before:] {
				if x.declares() || !strings.HasPrefix(x.target, "/v1/messages?") {
					continue
				}
				onlyAdded(t, body, x.body)
				b := verificationIn(x.body)
				switch {
				case r.kind == "side:title" && b != "":
					t.Errorf("%s: a title request carries a correction", at)
				case r.kind == "side:title":
				case block == "":
					block = b
				case b != block || strings.Count(x.body, `id=\"v1\"`) != 1:
					t.Errorf("%s (%s): carries %q, not once %q", at, r.kind, b, block)
				default:
					carried++
				}
			}
			if r.kind == "side:compaction" { // the anchor is gone from here on
				break
			}
		}
		if block == "" || carried < 2 {
			t.Errorf("%s: the correction was carried %d times", rec.name, carried)
		}
	}
	if len(left) > 0 {
		t.Errorf("not replayed: %v", left)
	}
	h.verified()
}

// verificationIn is the verification that stands in a body, "" when none does.
func verificationIn(body string) string {
	_, rest, ok := strings.Cut(body, blockOpen+` id=\"v1\"`)
	if !ok {
		return ""
	}
	in, _, _ := strings.Cut(rest, blockClose)
	return in
}
