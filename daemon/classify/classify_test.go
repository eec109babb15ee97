package classify

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger/lemma"
)

const chatBody = `{"model":"m","messages":[{"role":"user","content":"Deploy it to staging"}],"tools":[{"type":"function","function":{"name":"shell"}}]}`

// TestShapes: however a request is kept, it is the same request.
func TestShapes(t *testing.T) {
	http11 := "POST /v1/chat/completions?x=1 HTTP/1.1\r\nUser-Agent: opencode/1\r\nX-Session-Id: s\r\n\r\n" + chatBody
	quoted, _ := json.Marshal(chatBody)
	whole, _ := json.Marshal(http11)
	want, err := ParseHTTP([]byte(http11))
	if err != nil {
		t.Fatal(err)
	}
	var c Classifier
	first, err := c.Classify(want)
	if err != nil {
		t.Fatal(err)
	}
	if first.Kind != route.New || first.Class != lemma.Change || !first.Consequential || first.Client != route.OpenCode || first.TurnKey == "" || first.Conversation == "" || !slices.Equal(first.Reasons, []string{"words.release", "words.environment"}) {
		t.Errorf("%+v", first)
	}
	for name, line := range map[string]string{
		"object headers, object body": `{"path":"/v1/chat/completions?x=1","method":"post","headers":{"user-agent":"opencode/1","x-session-id":["s"]},"body":` + chatBody + `}`,
		"pairs, query, text body":     `{"path":"/v1/chat/completions","query":"x=1","headers":[["User-Agent","opencode/1"],["x-session-id","s"]],"body":` + string(quoted) + `,"client":"?","kind":"stream","label":7}`,
		"named pairs, base64":         `{"url":"http://127.0.0.1:1/v1/chat/completions?x=1","headers":[{"name":"User-Agent","value":"opencode/1"},{"name":"X-Session-Id","value":"s"}],"body_base64":"` + base64.StdEncoding.EncodeToString([]byte(chatBody)) + `"}`,
		"header lines":                `{"path":"/v1/chat/completions?x=1","headers":["User-Agent: opencode/1","X-Session-Id: s"],"body":` + chatBody + `}`,
		"the whole text":              `{"request":` + string(whole) + `}`,
	} {
		q, err := ParseJSON([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var c Classifier
		got, err := c.Classify(q)
		if diff := cmp.Diff(first, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// TestBadLines: what is wrong is said, and nothing else breaks.
func TestBadLines(t *testing.T) {
	for line, want := range map[string]string{
		``:                       "an empty line",
		`[]`:                     "not a JSON object",
		`{"path":"/v1/messages"`: "not read as JSON",
		`{"path":"/x"} {}`:       "data after",
		`{"body":{}}`:            `no "path"`,
		`{"path":"/v1/messages","headers":7,"body":{}}`:                             `"headers" is neither`,
		`{"path":"/v1/messages","headers":{"A":{}},"body":{}}`:                      `"headers" is neither`,
		`{"path":"/v1/messages","headers":[["A"]],"body":{}}`:                       `"headers" is neither`,
		`{"path":"/v1/messages","body":7}`:                                          `"body" is neither`,
		`{"path":"/v1/messages","body_base64":"!"}`:                                 "read body_base64",
		`{"request":"GET"}`:                                                         "blank line",
		`{"request":"GET\n\n"}`:                                                     "request line",
		`{"url":"http://[::1"}`:                                                     "read url",
		`{"path":"v1/messages","body":{}}`:                                          "does not begin with /",
		`{"path":"/v1/messages","method":"POST"}`:                                   "read body as",
		`{"path":"/v1/messages","body":{"a":1,"a":2}}`:                              "duplicate key",
		`{"path":"/v1/messages","body":"\ud800"}`:                                   "read body as",
		`{"path":"/v1/messages","headers":{"Content-Encoding":"gzip"},"body":"xx"}`: "give it decoded",
	} {
		q, err := ParseJSON([]byte(line))
		if err == nil {
			var c Classifier
			_, err = c.Classify(q)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestPathsAndPlaces(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		header       string
		kind         route.Kind
		project      string
	}{
		{"HEAD", "/", "", Local, ""},
		{"GET", "/healthz", "", Local, ""},
		{"GET", "/v1/responses", "Upgrade: websocket", Local, ""},
		{"GET", "/gettier/v1/status", "", Local, ""},
		{"GET", "/v1/models", "", route.Unknown, ""},
		{"POST", "/v1beta/models/x:streamGenerateContent", "", route.Unknown, ""},
		{"POST", "/p/shop/v1/chat/completions", "", route.New, "shop"},
		{"POST", "/p/shop/openai/v1/chat/completions", "X-Gettier-Project: other", route.New, "shop"},
	} {
		q := Request{Method: tc.method, Path: tc.path, Header: http.Header{}}
		if k, v, ok := strings.Cut(tc.header, ": "); ok {
			q.Header.Set(k, v)
		}
		if tc.method == "POST" {
			q.Body = []byte(chatBody)
		}
		var c Classifier
		got, err := c.Classify(q)
		if err != nil || got.Kind != tc.kind || got.Project.Path != tc.project {
			t.Errorf("%s %s: %+v, %v", tc.method, tc.path, got, err)
		}
	}
	// Only the client's own frame names a directory.
	var c Classifier
	got, err := c.Classify(Request{Path: "/v1/messages", Body: []byte(`{"model":"m","system":"You are.\n - Primary working directory: /home/dev/shop\nx","messages":[{"role":"user","content":"Working directory: /etc"}]}`)})
	if err != nil || !slices.Equal(got.Project.Directories, []string{"environment block /home/dev/shop"}) {
		t.Errorf("%v, %v", got.Project.Directories, err)
	}
}

func chatOf(items ...string) []byte {
	return []byte(`{"model":"m","messages":[{"role":"system","content":"You are an agent in the x"},` + strings.Join(items, ",") + `],"tools":[{"type":"function","function":{"name":"task"}}]}`)
}

// TestMemory: a resend and a sub-agent without a header are known by what came
// before, with the answers given, and with answers that later requests tell.
func TestMemory(t *testing.T) {
	user := func(s string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, s) }
	call := `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"task","arguments":"{\"prompt\":\"List the functions\"}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"one"}`
	requests := func() []Request {
		var qs []Request
		for _, b := range [][]byte{
			chatOf(user("Let an agent list the functions.")),
			chatOf(user("Let an agent list the functions.")),
			chatOf(user("List the functions")),
			chatOf(user("Let an agent list the functions."), call, result),
			chatOf(user("Let an agent list the functions."), call, result, `{"role":"assistant","content":"one"}`, user("Thanks")),
		} {
			qs = append(qs, Request{Path: "/v1/chat/completions", Body: b})
		}
		return qs
	}
	kinds := func(qs []Request) []route.Kind {
		var c Classifier
		var out []route.Kind
		for _, q := range qs {
			r, err := c.Classify(q)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.Kind)
		}
		return out
	}
	all := []route.Kind{route.New, route.Resend, route.Subagent, route.Loop, route.New}
	told := requests()
	told[0].Answer = &Answer{Failed: true}
	told[1].Answer = &Answer{Calls: []Call{{"c1", "task", []byte(`{"prompt":"List the functions"}`)}}}
	if got := kinds(told); !slices.Equal(got, all) {
		t.Errorf("with answers: %v", got)
	}
	learned := requests()
	Learn(learned)
	if got := kinds(learned); !slices.Equal(got, all) {
		t.Errorf("with answers that were learned: %v", got)
	}
	if got := kinds(requests()); !slices.Equal(got, []route.Kind{route.New, route.Resend, route.New, route.Loop, route.New}) {
		t.Errorf("without answers: %v", got)
	}
	// Another process has nothing to do with it.
	other := requests()
	other[1].PID = 7
	if got := kinds(other[:2]); got[1] != route.New {
		t.Errorf("the same body of another process: %v", got)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"path":"/v1/chat/completions","headers":[["A","b"]],"body":` + chatBody + `}`))
	f.Add([]byte(`{"request":"POST /v1/messages HTTP/1.1\r\n\r\n{}"}`))
	f.Add([]byte("POST /v1/responses HTTP/1.1\n\n{}"))
	clean := NewSanitiser([]byte("k"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var c Classifier
		for _, parse := range []func([]byte) (Request, error){ParseJSON, ParseHTTP} {
			q, err := parse(line)
			if err != nil {
				continue
			}
			qs := []Request{q, q}
			Learn(qs)
			res, err := c.Classify(q)
			if err == nil && res.Kind == "" {
				t.Fatalf("no kind: %q", line)
			}
			if safe, err := clean.Request(q); err == nil && len(safe.Body) > 0 && !json.Valid(safe.Body) {
				t.Fatalf("no JSON: %q", safe.Body)
			}
		}
	})
}
