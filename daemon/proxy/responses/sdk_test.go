package responsesapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

// TestOfficialClients has the official node clients read what we put together.
// GETTIER_NODE_SDK names a node_modules directory with openai in it, and ai with
// @ai-sdk/openai if those are to be asked too.
func TestOfficialClients(t *testing.T) {
	modules := os.Getenv("GETTIER_NODE_SDK")
	if modules == "" {
		t.Skip("GETTIER_NODE_SDK names no node_modules directory")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	run := func(stream string, then func(s wire.Stream, held []wire.Piece) []byte) []byte {
		s, out := Adapter{}.NewStream(), []byte(nil)
		pieces, err := s.Feed([]byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		var held, lead []wire.Piece
		for _, p := range pieces {
			switch {
			case len(held) > 0 || p.Kind == wire.PieceCall || p.Kind == wire.PieceFinish:
				held, lead = append(append(held, lead...), p), nil
			case p.Kind == wire.PieceLead:
				lead = append(lead, p)
			default:
				for _, p := range append(lead, p) {
					s.Sent(p)
					out = append(out, p.Raw...)
				}
				lead = nil
			}
		}
		return append(out, then(s, held)...)
	}
	second := answering("resp_2").think("rs_3", "no").say("msg_2", "It is not so.").think("rs_4", "then").call("call_9", "shell", "{}").end(60, 50, 5)
	carry := func(s wire.Stream) (out []byte) {
		more, t2 := wiretest.Pieces(t, Adapter{}, []byte(second))
		for _, p := range more {
			out = append(out, s.Continue(t2, p)...)
		}
		return out
	}
	cases := []struct {
		name, text, calls string
		body              []byte
	}{
		{"whole text", "no", "", Adapter{}.TextAnswer("m", "t_1", "no", false)},
		{"whole note", "hi\n\nnote", `shell{}`, func() []byte {
			b, err := Adapter{}.Note(answerOf(thought, said("hi"), thought, called("a", "shell", "{}")), "note")
			if err != nil {
				t.Fatal(err)
			}
			return b
		}()},
		{"text", "no", "", Adapter{}.TextAnswer("m", "t_1", "no", true)},
		{"finish", "Let me look é.\n\nno", "", run(full, func(s wire.Stream, _ []wire.Piece) []byte { return s.Finish("no") })},
		{"finish in a message", "Let me\n\nno", "", run(answering("resp_1").sayOpen("msg_1", "Let ", "me").String(), func(s wire.Stream, _ []wire.Piece) []byte { return s.Finish("no") })},
		{"note", "Let me look é.\n\nnote", `shell{"cmd":"ls"} read{}`, run(full, func(s wire.Stream, held []wire.Piece) []byte {
			out := s.Note("note")
			for _, p := range held {
				out = append(out, s.Continue(s, p)...)
			}
			return out
		})},
		{"second", "Let me look é.It is not so.", `shell{}`, run(full, func(s wire.Stream, _ []wire.Piece) []byte {
			return append(append(s.(wire.Waiter).KeepAlive(), s.(wire.Waiter).KeepAlive()...), carry(s)...)
		})},
		{"early", "It is not so.", `shell{}`, run(string(Adapter{}.Start("m", "t_1")), func(s wire.Stream, _ []wire.Piece) []byte {
			return append(append(s.(wire.Waiter).KeepAlive(), Adapter{}.KeepAlive(true)...), carry(s)...)
		})},
		{"failed", "error: the upstream was cut", "", append([]byte(answering("resp_1").sayOpen("msg_1", "Let ").String()), Adapter{}.StreamError("upstream_cut", "the upstream was cut")...)},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range cases {
			if c.name != r.Header.Get("X-Case") {
				continue
			}
			w.Header().Set("Content-Type", "application/json")
			if bytes.HasPrefix(c.body, []byte("event:")) {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = w.Write(c.body)
		}
	}))
	defer srv.Close()
	abs, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"testdata/sdk.mjs", abs, srv.URL}
	for _, c := range cases {
		args = append(args, c.name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AI_SDK_LOG_WARNINGS=0"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	read := map[string]int{}
	for line := range bytes.Lines(out) {
		var got struct {
			Name, How, Text string
			Calls           []string
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, c := range cases {
			if c.name != got.Name {
				continue
			}
			read[c.name]++
			same := got.Text == c.text && strings.Join(got.Calls, " ") == c.calls
			if !same {
				t.Errorf("%s by %s: %q %q, want %q %q", c.name, got.How, got.Text, got.Calls, c.text, c.calls)
			}
			t.Logf("%s by %s: %q %q", c.name, got.How, got.Text, got.Calls)
		}
	}
	if len(read) != len(cases) {
		t.Errorf("only %d of %d answers were read\n%s", len(read), len(cases), stderr.String())
	}
}
