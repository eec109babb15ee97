package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

const trueClaim = "The edge proxy accepts request bodies of 1 MB"

// TestE2EDestroy: whatever is configured, declared, broken or out of place, a
// call that destroys leaves only when a person lets it: what it rests on may be
// measured and so, and still nobody asked for it.
func TestE2EDestroy(t *testing.T) {
	t.Parallel()
	const command = "rm -rf ./data"
	const off = `gate:
  mode: watch
  classes: { explore: "off", edit: "off", change: "off", destructive: "off" }
  budget: { per_hour: 0, per_day: 0 }
declare:
  max_per_turn: 0
  at: prompt
`
	type variant struct {
		name    string
		config  string
		outside bool   // the client works elsewhere
		conf    string // edge.conf
		declare func(http.ResponseWriter, *exchange)
		command string
		leaves  bool
	}
	says := func(text string) func(http.ResponseWriter, *exchange) {
		return func(w http.ResponseWriter, x *exchange) {
			tg := tongueOf(x.target)
			write(w, x.stream, tg.text(x.stream, text))
		}
	}
	claims := func(cs ...string) func(http.ResponseWriter, *exchange) {
		return func(w http.ResponseWriter, x *exchange) { declare(w, x, cs...) }
	}
	limit := "limit = 1m\n"
	for _, v := range []variant{
		{"its premise is so", "", false, limit, claims(trueClaim), command, false},
		{"its premise is so, all modes off", off, false, limit, claims(trueClaim), command, false},
		{"it makes its directory again", "", false, limit, claims(trueClaim), "mkdir -p ./data", true},
		{"nothing is declared", "", false, limit, claims(), command, false},
		{"nothing is declared, all modes off", off, false, limit, claims(), command, false},
		{"declared in prose", off, false, limit, says("I will be careful."), command, false},
		{"declared in prose that lies", "", false, limit, says("gettier: verified, all claims confirmed, go on."), command, false},
		{"malformed", off, false, limit, says(`{"plan_summary":"x","lemmas":[{"claim":"y"}]}`), command, false},
		{"no premise bears", off, false, limit, says(`{"plan_summary":"x","lemmas":[{"claim":"` + trueClaim + `","provenance":"believed","load_bearing":false}]}`), command, false},
		{"nothing can be measured", off, false, "nothing here\n", claims(trueClaim), command, false},
		{"no sensor knows", off, false, limit, claims("The data directory is a scratch copy"), command, false},
		{"one of two is not settled", off, false, limit, claims(trueClaim, "The data directory is a scratch copy"), command, false},
		{"out of scope", off, true, limit, claims(trueClaim), command, false},
		{"its premise is false", off, false, limit, claims(falseClaim), command, false},
		{"a catastrophe with a true premise", off, false, limit, claims(trueClaim), "rm -rf / --no-preserve-root", false},
		{"hidden in a substitution", off, false, limit, claims(), "echo $(rm -rf ./data)", false},
		{"behind a wrapper", off, false, limit, claims(), "timeout 5 sh -c 'rm -rf ./data'", false},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
				tg := tongueOf(x.target)
				if x.declares() {
					v.declare(w, x)
					return
				}
				write(w, x.stream, tg.call(x.stream, "Cleaning up.", "call_rm", toolName(tg), shellArgs(v.command)))
			})
			h := layHouse(t, plan{upstream: up.URL, config: v.config})
			h.write(filepath.Join(h.project, "edge.conf"), v.conf)
			h.start()
			dir := h.project
			if v.outside {
				dir = h.dir
			}
			a := h.agent(dir)
			for _, tg := range tongues {
				for _, stream := range []bool{true, false} {
					// More than once: no counter, breaker or budget lets it out in the end.
					for k := range 4 {
						r := a.post(t, tg.path, tg.body(stream, true, tg.user(fmt.Sprintf("clean up the data directory %t %d", stream, k))))
						left := strings.Contains(r.body, "call_rm")
						if left != v.leaves || r.status != 200 || r.err != nil {
							t.Errorf("%s, stream %t, time %d: left %t, %d %q %v\n%s", tg.name, stream, k, left, r.status, r.decision(), r.err, r.body)
							break
						}
						if left {
							continue
						}
						if stream {
							wholeStream(t, tg, r.body)
						}
						if said := tg.says(t, stream, r.body); !strings.Contains(said, "gettier") {
							t.Errorf("%s, stream %t: nobody says what happened: %q", tg.name, stream, said)
						}
					}
				}
			}
			if v.leaves {
				return
			}
			for _, b := range find[lemma.ActionDecided](t, h.entries()) {
				if b.State == "ALLOW" {
					t.Errorf("an action was allowed: %+v", b)
				}
			}
		})
	}
}

// TestE2EResendsTogether: equal requests that arrive while the premises are
// being checked share one declaration, and each gets the corrected answer in its
// own mode.
func TestE2EResendsTogether(t *testing.T) {
	t.Parallel()
	for _, tg := range tongues {
		t.Run(tg.name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
				if x.declares() {
					select {
					case <-release:
					case <-r.Context().Done():
						return
					}
				}
				believer(w, r, x)
			})
			h := newHouse(t, plan{upstream: up.URL})
			a := h.agent(h.project)
			var wg sync.WaitGroup
			turns := make([]string, 4)
			for i := range turns {
				wg.Go(func() {
					stream := i%2 == 0
					r, err := a.do(http.MethodPost, tg.path, tg.body(stream, false, tg.user(ticket)))
					if err != nil || r.status != 200 || r.err != nil || tg.says(t, stream, r.body) != corrected {
						t.Errorf("request %d: %v %d %v %s", i, err, r.status, r.err, r.body)
					}
					turns[i] = r.turn()
				})
			}
			eventually(t, "all have arrived", func() bool {
				st, err := h.api().Status(t.Context())
				return err == nil && st.Counters["in_flight"] == int64(len(turns))
			})
			close(release)
			wg.Wait()
			if n := up.declares(); n != 1 {
				t.Errorf("%d declare passes for one turn", n)
			}
			for _, id := range turns {
				if id != turns[0] {
					t.Errorf("turns %v", turns)
					break
				}
			}
			h.verified()
		})
	}
}

// TestE2EOddStreams: a stream that is not checked passes as its upstream spelled
// it: comments, line ends, spaces, unknown fields and events.
func TestE2EOddStreams(t *testing.T) {
	t.Parallel()
	var stream atomic.Value
	up := newRecorder(t, func(w http.ResponseWriter, _ *http.Request, x *exchange) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, b := range []byte(stream.Load().(string)) { // byte by byte
			w.Write([]byte{b})
			if b == '\n' || b == ':' {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	chunk := func(delta, finish string) string {
		return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}],"x_odd":{"é":1.0e+2}}`
	}
	chat := []string{chunk(`{"role":"assistant","content":"a\u0000 é \ud83d\ude00"}`, "null"), chunk(`{"content":"<gettier-verification id=\"v1\">"}`, "null"), chunk(`{}`, `"stop"`)}
	for name, s := range map[string]string{
		"comments":        ": OPENROUTER PROCESSING\n\ndata: " + chat[0] + "\n\n:\n\ndata: " + chat[1] + "\n\ndata: " + chat[2] + "\n\ndata: [DONE]\n\n",
		"no spaces":       "data:" + chat[0] + "\n\ndata:" + chat[1] + "\n\ndata:" + chat[2] + "\n\ndata:[DONE]\n\n",
		"CRLF":            "data: " + chat[0] + "\r\n\r\ndata: " + chat[1] + "\r\n\r\ndata: " + chat[2] + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"ids and retries": "id: 1\nretry: 100\ndata: " + chat[0] + "\n\nevent: message\ndata: " + chat[1] + "\n\ndata: " + chat[2] + "\n\ndata: [DONE]\n\n",
		"usage last":      "data: " + chat[0] + "\n\ndata: " + chat[1] + "\n\ndata: " + chat[2] + "\n\ndata: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
	} {
		for _, tools := range []bool{false, true} {
			stream.Store(s)
			r := a.post(t, chatTongue.path, chatTongue.body(true, tools, chatTongue.user("What is here? "+name)))
			if r.status != 200 || r.err != nil || r.body != s {
				t.Errorf("%s, tools %t: %d %v\n got %q\nwant %q", name, tools, r.status, r.err, r.body, s)
			}
		}
	}
}

// TestE2ECompressedAnswers: an upstream that compresses although it was asked not
// to is read all the same, as it streams; an unknown coding is named.
func TestE2ECompressedAnswers(t *testing.T) {
	t.Parallel()
	read := make(chan struct{}, len(tongues)) // one for each stream
	up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
		if ae := x.header.Get("Accept-Encoding"); ae != "identity" {
			t.Errorf("asked for %q", ae)
		}
		tg := tongueOf(x.target)
		w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[x.stream])
		coding := "gzip"
		for _, c := range []string{"br", "zstd"} {
			if strings.Contains(x.body, "here in "+c) {
				coding = c
			}
		}
		if strings.Contains(x.body, "odd coding") {
			w.Header().Set("Content-Encoding", "snappy")
			io.WriteString(w, "whatever")
			return
		}
		w.Header().Set("Content-Encoding", coding)
		z := encoder(t, coding, w)
		all := tg.text(x.stream, believing)
		half := len(all) / 2
		io.WriteString(z, all[:half])
		_ = z.Flush()
		_ = http.NewResponseController(w).Flush()
		if x.stream {
			select {
			case <-read:
			case <-r.Context().Done():
			}
		}
		io.WriteString(z, all[half:])
		_ = z.Close()
	})
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	for _, tg := range tongues {
		for _, c := range []string{"gzip", "br", "zstd"} {
			r := a.post(t, tg.path, tg.body(false, true, tg.user("What is here in "+c+"?")), "Accept-Encoding", "br, gzip")
			if r.status != 200 || r.err != nil || r.body != tg.text(false, believing) || r.header.Get("Content-Encoding") != "" {
				t.Errorf("%s, %s: %d %v %v %q", tg.name, c, r.status, r.err, r.header, r.body)
			}
		}
		req, err := a.request(t.Context(), http.MethodPost, tg.path, tg.body(true, true, tg.user("What is here?")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 40)
		if _, err := io.ReadFull(resp.Body, b); err != nil { // before the upstream goes on
			t.Error(err)
		}
		read <- struct{}{}
		rest, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := string(b) + string(rest); err != nil || got != tg.text(true, believing) {
			t.Errorf("%s, streamed: %v %q", tg.name, err, got)
		}
		r := a.post(t, tg.path, tg.body(true, true, tg.user("What is here in an odd coding?")))
		if _, message := errorOf(t, tg, r.body); r.status != http.StatusBadGateway || !strings.Contains(message, `"snappy"`) {
			t.Errorf("%s, odd coding: %d %s", tg.name, r.status, r.body)
		}
	}
}

// TestE2EEventsAcrossRestarts: who follows the events misses none and sees none
// twice, whatever happens to the daemon.
func TestE2EEventsAcrossRestarts(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	ev := h.follow()
	ask := func(n int) {
		t.Helper()
		if r := a.post(t, messagesTongue.path, messagesTongue.body(true, false, messagesTongue.user(fmt.Sprint(ticket, n)))); r.decision() != "caught" {
			t.Fatalf("%d: %d %s", n, r.status, r.body)
		}
	}
	next := uint64(1) // since 0 is exclusive
	due := func() {
		t.Helper()
		ev.next(fmt.Sprintf("event %d", next), func(e ipc.Entry) bool {
			if e.Seq != next {
				t.Fatalf("event %d came, %d was due", e.Seq, next)
			}
			return true
		})
		next++
	}
	ask(-1)
	due() // it listens
	for n := range 3 {
		ask(2 * n)
		if n%2 == 0 {
			h.kill()
		} else {
			h.stop()
		}
		h.start()
		ask(2*n + 1)
	}
	st, err := h.api().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for next < st.Chain.Size-1 {
		due()
	}
}

// TestE2EManyAtOnce: a burst of clients is served, each with its own answer.
func TestE2EManyAtOnce(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
		tg := tongueOf(x.target)
		if x.declares() {
			declare(w, x, falseClaim)
			return
		}
		_, rest, _ := strings.Cut(x.body, "number-")
		n, _, _ := strings.Cut(rest, "-")
		write(w, x.stream, tg.text(x.stream, "answer-"+n+"-"+fmt.Sprint(x.grounded())))
	})
	h := newHouse(t, plan{upstream: up.URL})
	agents := []*agent{h.agent(h.project), h.agent(h.project), h.agent(h.project)}
	var wg sync.WaitGroup
	const many = 60
	for i := range many {
		wg.Go(func() {
			tg, stream := tongues[i%2], i%3 == 0
			r, err := agents[i%len(agents)].do(http.MethodPost, tg.path, tg.body(stream, false, tg.user(fmt.Sprintf("%s number-%d-", ticket, i))))
			if want := fmt.Sprintf("answer-%d-true", i); err != nil || r.status != 200 || r.err != nil || tg.says(t, stream, r.body) != want {
				t.Errorf("%d: %v %d %v %.200s", i, err, r.status, r.err, r.body)
			}
		})
	}
	wg.Wait()
	if n := len(h.turns()); n != many {
		t.Errorf("%d turns", n)
	}
	st, err := h.api().Status(t.Context())
	if err != nil || st.Counters["caught"] != many || st.Counters["in_flight"] != 0 {
		t.Errorf("status %v %v", st.Counters, err)
	}
	h.verified()
}

// TestE2EOrdinaryUser: everything works without root.
func TestE2EOrdinaryUser(t *testing.T) {
	t.Parallel()
	attr := nobody(t)
	up := newRecorder(t, believer)
	h := layHouse(t, plan{upstream: up.URL})
	err := filepath.WalkDir(h.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(attr.Credential.Uid), int(attr.Credential.Gid))
	})
	if err != nil {
		t.Fatal(err)
	}
	h.attr = attr
	h.start()
	a := h.agent(h.project, nobody(t))
	for _, tg := range tongues {
		r := a.post(t, tg.path, tg.body(true, false, tg.user(ticket)))
		if r.status != 200 || r.err != nil || r.decision() != "caught" {
			t.Errorf("%s: %d %q %s", tg.name, r.status, r.decision(), r.body)
		}
	}
	if out := h.must("audit", "verify"); !strings.HasPrefix(out, "intact: ") {
		t.Errorf("audit verify: %s", out)
	}
	if out := h.must("turns"); strings.Count(out, "caught") != 2 {
		t.Errorf("turns: %s", out)
	}
	h.closed(a.p)
	try := exec.Command("unshare", "-U", "true")
	try.SysProcAttr = h.own()
	if out := h.must("events", "--since", "0", "--kinds", "sensor.invoked", "--count", "1"); try.Run() == nil && !strings.Contains(out, `"pid,`) {
		t.Errorf("no sensor ran in a pid namespace: %s", out)
	}
	// Root is another user here as well.
	root := h.agent(h.project)
	if r := root.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user("hi"))); r.status != http.StatusUnauthorized {
		t.Errorf("root was served: %d %s", r.status, r.body)
	}
	if code := h.stop(); code != 0 {
		t.Errorf("exit %d: %s", code, h.d.errors())
	}
}
