package route

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	anthropicapi "gettier.dev/gettierd/daemon/proxy/anthropic"
	openaiapi "gettier.dev/gettierd/daemon/proxy/openai"
	responsesapi "gettier.dev/gettierd/daemon/proxy/responses"
	"gettier.dev/gettierd/daemon/wire"
)

// recording is one session: its requests in order, each with its label.
type recording struct {
	name     string
	requests []recorded
}

type recorded struct {
	file   string
	kind   string
	why    string
	path   string
	header http.Header
	body   []byte
	req    *wire.Request // nil for a request that is not of a gated format
	answer answer
}

type answer struct {
	N     string          `json:"n"`
	Text  string          `json:"text"`
	Cut   *int            `json:"cut_after_events"`
	Raw   json.RawMessage `json:"raw"` // a plain error
	Calls []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
		ID   string          `json:"id"`
	} `json:"calls"`
}

// failed: the client never got a proper end, so it may send the same again.
func (a answer) failed() bool { return a.Cut != nil || len(a.Raw) > 0 }

var (
	unpackOnce sync.Once
	unpacked   []recording
)

func recordings(t testing.TB) []recording {
	t.Helper()
	unpackOnce.Do(func() { unpacked = readRecordings(t) })
	if len(unpacked) == 0 {
		t.Fatal("no recorded sessions")
	}
	return unpacked
}

func readRecordings(t testing.TB) []recording {
	t.Helper()
	packs, err := filepath.Glob("testdata/sessions/*.tar.zst")
	if err != nil || len(packs) == 0 {
		t.Fatalf("no recorded sessions: %v", err)
	}
	var out []recording
	for _, p := range packs {
		out = append(out, unpack(t, p)...)
	}
	return out
}

func unpack(t testing.TB, file string) []recording {
	t.Helper()
	f, err := os.Open(file)
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
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = b
	}
	var names []string
	for n := range files {
		if path.Base(n) == "session.json" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
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
			r := parseRequest(t, files[path.Join(rec.name, q.File)])
			r.file, r.kind, r.why = q.File, q.Kind, q.Why
			for _, a := range s.Answers {
				if a.N == strings.TrimSuffix(q.File, ".request") {
					r.answer = a
				}
			}
			rec.requests = append(rec.requests, r)
		}
		out = append(out, rec)
	}
	return out
}

func parseRequest(t testing.TB, raw []byte) recorded {
	t.Helper()
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("a request without a blank line")
	}
	lines := strings.Split(string(head), "\r\n")
	r := recorded{header: http.Header{}, body: body, path: strings.Fields(lines[0])[1]}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		r.header.Add(k, v)
	}
	var a wire.Adapter
	switch p, _, _ := strings.Cut(r.path, "?"); {
	case len(body) == 0:
		return r
	case strings.HasPrefix(p, "/v1/messages"):
		a = anthropicapi.Adapter{}
	case p == "/v1/chat/completions":
		a = openaiapi.Adapter{}
	case p == "/v1/responses":
		a = responsesapi.Adapter{}
	default:
		return r
	}
	req, err := a.Read(body)
	if err != nil {
		t.Fatalf("read %s: %v", r.path, err)
	}
	r.req = req
	return r
}

// memory is what a daemon would remember while a session runs: bodies whose
// answer failed, and calls that have no result yet.
type memory struct {
	pending map[string][][]byte
	calls   []openCall
}

type openCall struct {
	id string
	Call
}

func (m *memory) Pending(c string) [][]byte { return m.pending[c] }

func (m *memory) OpenCalls() []Call {
	var out []Call
	for _, c := range m.calls {
		out = append(out, c.Call)
	}
	return out
}

func (m *memory) saw(r recorded, rt Route) {
	for i := range r.req.Items {
		for _, p := range r.req.Items[i].Parts {
			if p.Kind != wire.ToolResult {
				continue
			}
			for k := range m.calls {
				if m.calls[k].id == p.CallID {
					m.calls = append(m.calls[:k], m.calls[k+1:]...)
					break
				}
			}
		}
	}
	if r.answer.failed() {
		m.pending[rt.Conversation] = append([][]byte{r.body}, m.pending[rt.Conversation]...)
	} else {
		delete(m.pending, rt.Conversation)
	}
	if rt.Kind.Side() {
		return
	}
	for _, c := range r.answer.Calls {
		m.calls = append(m.calls, openCall{c.ID, Call{Conversation: rt.Conversation, Name: c.Name, Args: c.Args}})
	}
}

var testKey = []byte("a local key of 32 bytes for tests")

// replay routes a session as it happened.
func replay(rec recording, each func(recorded, Route)) {
	m := &memory{pending: map[string][][]byte{}}
	for _, r := range rec.requests {
		if r.req == nil {
			continue
		}
		rt := Classify(testKey, r.req, r.header.Get, r.path, m)
		each(r, rt)
		m.saw(r, rt)
	}
}

func TestRecordedKinds(t *testing.T) {
	total, wrong := map[string]int{}, map[string]int{}
	for _, rec := range recordings(t) {
		client := path.Dir(rec.name)
		replay(rec, func(r recorded, rt Route) {
			total[client]++
			if string(rt.Kind) != r.kind {
				wrong[client]++
				t.Errorf("%s/%s: %s (%s), want %s: %s", rec.name, r.file, rt.Kind, rt.Why, r.kind, r.why)
			}
		})
	}
	for c, n := range total {
		t.Logf("%s: %d of %d right", c, n-wrong[c], n)
	}
	if total["claude-code"] < 150 {
		t.Errorf("only %d requests of claude-code were read", total["claude-code"])
	}
}
