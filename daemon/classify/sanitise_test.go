package classify

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/route"
)

// TestNothingPrivateStays: secrets, ids, users and prose go; what a rule looks at stays.
func TestNothingPrivateStays(t *testing.T) {
	key := "sk-" + "ant-api03-" + "hV7xQ2mN9pL4kR8sT1wY6zB3cD5fG0jH2uE7iO4aX9vM1nQ8rS6tK3yW5bC0dF2gJ7lP4-" + "Zq8eU1hA9AA"
	id := "0198c0de-1111-4222-8333-123456789abc"
	body := `{"model":"claude-opus-4-8","system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cc_is_subagent=true;"},{"type":"text","text":"You are an interactive program and the rest is the vendor's own prose, line one\n - Primary working directory: /home/sandra/shop\n<env>the words after a tag are another start of prose here</env>"}],` +
		`"metadata":{"user_id":"user_` + strings.Repeat("a1", 20) + `_session_` + id + `"},"big":12345678901234567890,` +
		`"messages":[{"role":"user","content":"Please tell nobody that Project Bluebird is late"},{"role":"user","content":"Please tell nobody that Project Bluebird is late"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01AbCdEfGhIjKlMnOpQr","name":"Task","input":{"prompt":"Please tell nobody that Project Bluebird is late","key":"` + key + `"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01AbCdEfGhIjKlMnOpQr","content":"ok"}]}]}`
	q := Request{Method: "POST", Path: "/v1/messages?beta=true", Body: []byte(body), Header: http.Header{
		"Authorization": {"Bearer " + key}, "X-Api-Key": {key}, "Cookie": {"a=b"}, "User-Agent": {"claude-cli/2.1.197 (external, cli)"}, "X-Claude-Code-Session-Id": {id},
	}}
	out, err := NewSanitiser([]byte("a key of a test")).Request(q)
	if err != nil {
		t.Fatal(err)
	}
	text := string(HTTP(out))
	for _, gone := range []string{key, id, "sandra", "Bluebird", "vendor's own", "toolu_01AbCdEfGhIjKlMnOpQr", "a=b", "another start of prose here"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q stays", gone)
		}
	}
	for _, stays := range []string{
		"POST /v1/messages?beta=true HTTP/1.1\r\n", "Authorization: Bearer REDACTED\r\n", "X-Api-Key: REDACTED\r\n", "claude-cli/2.1.197 (external, cli)", "cc_is_subagent=true;", "12345678901234567890",
		"You are an interactive p", "Primary working directory: /home/", "/shop", "<env>the words after a tag ar", "</env>", "Please tell nobody that ",
	} {
		if !strings.Contains(text, stays) {
			t.Errorf("%q is gone from\n%s", stays, text)
		}
	}
	m := gjson.GetBytes(out.Body, "messages")
	if m.Get("0.content").Str != m.Get("1.content").Str || m.Get("0.content").Str != m.Get("2.content.0.input.prompt").Str {
		t.Error("equal texts are equal no more")
	}
	if a, b := m.Get("2.content.0.id").Str, m.Get("3.content.0.tool_use_id").Str; a != b || !regexp.MustCompile(`^toolu_[A-Za-z0-9]{20}$`).MatchString(a) {
		t.Errorf("ids %q and %q", a, b)
	}
	if s := out.Header.Get("X-Claude-Code-Session-Id"); !strings.Contains(gjson.GetBytes(out.Body, "metadata.user_id").Str, s) || s == id {
		t.Errorf("the session %q is not the one in the body: %s", s, gjson.GetBytes(out.Body, "metadata.user_id").Str)
	}
	if again, err := NewSanitiser([]byte("another key")).Request(q); err != nil || bytes.Equal(again.Body, out.Body) {
		t.Errorf("another key makes the same of it: %v", err)
	}
}

func unpack(t *testing.T, client, dir string) {
	t.Helper()
	f, err := os.Open("../route/testdata/sessions/" + client + ".tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordedSessions: every recorded request gets its label here, as in the
// daemon, and still does after it went through the recorder.
func TestRecordedSessions(t *testing.T) {
	dir := t.TempDir()
	clients := []string{"claude-code", "cline-chat", "codex", "continue-chat", "continue-messages", "opencode-chat", "opencode-messages"}
	for _, c := range clients {
		unpack(t, c, dir)
	}
	n := 0
	if err := Sessions(dir, func(l Labelled) error {
		n++
		if !l.Right() {
			t.Errorf("%s/%s: %s (%s) %v, labelled %s: %s", l.Session, l.File, l.Result.Kind, l.Result.Why, l.Err, l.Label, l.Note)
		}
		return nil
	}); err != nil || n != 368 {
		t.Errorf("%d requests: %v", n, err)
	}

	// Cline has the largest share of what only memory tells, and small bodies.
	again := t.TempDir()
	n = 0
	for _, name := range []string{"cline-chat/subagent", "cline-chat/resend"} {
		s, err := readSession(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := NewRecorder(again, strings.ReplaceAll(name, "/", "-"), NewSanitiser([]byte("k")))
		if err != nil {
			t.Fatal(err)
		}
		var live, safe Classifier
		var qs []Request
		for _, r := range s.Requests {
			raw, err := os.ReadFile(filepath.Join(dir, name, r.File))
			if err != nil {
				t.Fatal(err)
			}
			q, err := ParseHTTP(raw)
			if err != nil {
				t.Fatal(err)
			}
			qs = append(qs, q)
		}
		Learn(qs)
		for _, q := range qs {
			res, err := live.Classify(q)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rec.Add(q, res, safe.Classify); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n++
		}
	}
	if err := Sessions(again, func(l Labelled) error {
		n--
		if !l.Right() {
			t.Errorf("recorded %s/%s: %s (%s) %v, was %s", l.Session, l.File, l.Result.Kind, l.Result.Why, l.Err, l.Label)
		}
		return nil
	}); err != nil || n != 0 {
		t.Errorf("%d more were recorded than read: %v", n, err)
	}
}

// TestRecorderKeepsWhatStands: a second run goes on after the first, and a name
// leads nowhere else.
func TestRecorderKeepsWhatStands(t *testing.T) {
	dir := t.TempDir()
	q := Request{Path: "/v1/chat/completions", Body: []byte(chatBody), Header: http.Header{}}
	for n := range 2 {
		rec, err := NewRecorder(dir, "s", NewSanitiser([]byte("k")))
		if err != nil {
			t.Fatal(err)
		}
		var c, again Classifier
		res, err := c.Classify(q)
		if err != nil {
			t.Fatal(err)
		}
		file, err := rec.Add(q, res, again.Classify)
		if want := filepath.Join(dir, "other", "s", []string{"001", "002"}[n]+".request"); err != nil || file != want {
			t.Errorf("%s, %v; want %s", file, err, want)
		}
	}
	for _, name := range []string{"", "..", "a/b", ".x", strings.Repeat("a", 90), "a b"} {
		if _, err := NewRecorder(dir, name, nil); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	// A session.json that points out of its directory is refused.
	evil := filepath.Join(dir, "evil", "s")
	if err := os.MkdirAll(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(evil, "session.json"), []byte(`{"requests":[{"file":"../../../etc/passwd","kind":"new"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Sessions(filepath.Dir(evil), func(Labelled) error { return nil }); err == nil || !strings.Contains(err.Error(), "not beside it") {
		t.Errorf("%v", err)
	}
}

// TestFixtureThatTestsNothing: what is told apart only by what goes is refused.
func TestFixtureThatTestsNothing(t *testing.T) {
	rec, err := NewRecorder(t.TempDir(), "s", NewSanitiser([]byte("k")))
	if err != nil {
		t.Fatal(err)
	}
	q := Request{Path: "/v1/chat/completions", Body: []byte(chatBody), Header: http.Header{}}
	if _, err := rec.Add(q, Result{Kind: route.SideBTW}, func(Request) (Result, error) { return Result{Kind: route.New}, nil }); err == nil || !strings.Contains(err.Error(), "beyond what is kept") {
		t.Errorf("%v", err)
	}
}
