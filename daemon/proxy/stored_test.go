package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestKeptAnswers: what an upstream keeps of an earlier answer leaves where it is
// words, and does not where it asks the client to act or cannot be read.
func TestKeptAnswers(t *testing.T) {
	var status int
	var contentType, encoding, answer string
	var asked *http.Request
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Clone(r.Context())
		w.Header().Set("Content-Type", contentType)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer up.Close()
	ts := serveAll(t, up.URL)
	const (
		words   = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hello"}]},{"type":"web_search_call","id":"ws_1","status":"completed"}]}`
		call    = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"shell","arguments":"{}"}]}`
		queued  = `{"id":"resp_1","object":"response","status":"queued","output":[]}`
		unknown = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"new_tool_call","call_id":"c","arguments":"{}"}]}`
	)
	for _, tc := range []struct {
		name, method, path string
		status             int
		answer, encoding   string
		want               int
	}{
		{"words", "GET", "/v1/responses/resp_1", 200, words, "", 200},
		{"not ready", "GET", "/v1/responses/resp_1", 200, queued, "", 200},
		{"a call", "GET", "/v1/responses/resp_1", 200, call, "", 403},
		{"a call, by another spelling", "GET", "/V1//responses/./resp_1/", 200, call, "", 403},
		{"a call, when it is cancelled", "POST", "/v1/responses/resp_1/cancel", 200, call, "", 403},
		{"a call of a type that nobody knows", "GET", "/v1/responses/resp_1", 200, unknown, "", 403},
		{"duplicate keys", "GET", "/v1/responses/resp_1", 200, `{"output":[],"output":[{"type":"function_call"}]}`, "", 403},
		{"no JSON", "GET", "/v1/responses/resp_1", 200, "event: x\n\n", "", 403},
		{"an encoded call", "GET", "/v1/responses/resp_1", 200, gzipped(t, call), "gzip", 403},
		{"a stream", "GET", "/v1/responses/resp_1?stream=true&starting_after=3", 200, words, "", 403},
		{"a stream that is none", "GET", "/v1/responses/resp_1?stream=false", 200, words, "", 200},
		{"an error", "GET", "/v1/responses/resp_1", 404, `{"error":{"message":"no such response"}}`, "", 404},
		{"deleted", "DELETE", "/v1/responses/resp_1", 200, `{"id":"resp_1","object":"response.deleted","deleted":true}`, "", 200},
		{"input items", "GET", "/v1/responses/resp_1/input_items", 200, `{"object":"list","data":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}`, "", 200},
		{"input items with a call", "GET", "/v1/responses/resp_1/input_items", 200, `{"object":"list","data":[{"type":"message","role":"user","content":[]},{"type":"custom_tool_call","call_id":"c","name":"x","input":""}]}`, "", 403},
		{"compaction", "POST", "/v1/responses/compact", 200, `{"object":"response.compaction","output":[{"type":"message","role":"user","content":[]},{"type":"compaction","encrypted_content":"x"}]}`, "", 200},
		{"a conversation's items", "GET", "/v1/conversations/conv_1/items", 200, `{"object":"list","data":[{"type":"local_shell_call","call_id":"c","action":{"command":["ls"]}}]}`, "", 403},
		{"one item", "GET", "/v1/conversations/conv_1/items/fc_1", 200, `{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}`, "", 403},
		{"kept chat completions", "GET", "/v1/chat/completions", 200, `{"object":"list","data":[{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}}]}]}`, "", 403},
		{"a kept chat completion of words", "GET", "/v1/chat/completions/c_1", 200, `{"choices":[{"message":{"role":"assistant","content":"hello","tool_calls":null}}]}`, "", 200},
		{"models", "GET", "/v1/models", 200, `{"object":"list","data":[{"id":"m","type":"function_call"}]}`, "", 200},
	} {
		status, contentType, encoding, answer, asked = tc.status, "application/json", tc.encoding, tc.answer, nil
		req, err := http.NewRequest(tc.method, ts.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil || resp.StatusCode != tc.want:
			t.Errorf("%s: %d %v, want %d: %s", tc.name, resp.StatusCode, err, tc.want, got)
		case tc.want != 403 && string(got) != tc.answer:
			t.Errorf("%s: came as %s", tc.name, got)
		case tc.want == 403 && (!strings.Contains(string(got), "ungated_answer") || strings.Contains(string(got), `"call_id"`)):
			t.Errorf("%s: refused by %s", tc.name, got)
		case asked != nil && strings.Contains(tc.path, "responses/resp_1") && asked.Header.Get("Accept-Encoding") != "identity":
			t.Errorf("%s: asked for %q", tc.name, asked.Header.Get("Accept-Encoding"))
		}
	}
}

// TestBackgroundWithTools: an answer that is fetched later would bring its calls
// past the gate, so the request does not go out.
func TestBackgroundWithTools(t *testing.T) {
	asked := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","status":"queued","model":"m","output":[]}`)
	}))
	defer up.Close()
	ts := serveAll(t, up.URL)
	for body, want := range map[string]int{
		`{"model":"m","background":true,"input":"hello","tools":[{"type":"function","name":"shell","parameters":{}}]}`:  400,
		`{"model":"m","background":false,"input":"hello","tools":[{"type":"function","name":"shell","parameters":{}}]}`: 200,
		`{"model":"m","background":true,"input":"hello"}`:                                                               200,
	} {
		before := asked
		resp, err := http.Post(ts.URL+"/v1/responses", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || (asked > before) != (want == 200) || want == 400 && !strings.Contains(string(got), "background") {
			t.Errorf("%s: %d %s, %d requests went out", body, resp.StatusCode, got, asked-before)
		}
	}
}
