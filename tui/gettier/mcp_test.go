package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/mcp"
)

// dialog is both ends of a client that says its lines and waits for answers
// before it goes away.
type dialog struct {
	mu    sync.Mutex
	heard *sync.Cond
	lines []string
	want  int // answers
	out   bytes.Buffer
}

func (d *dialog) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines) > 0 {
		n := copy(p, d.lines[0]) // the SDK's buffer is larger than any line here
		d.lines = d.lines[1:]
		return n, nil
	}
	for bytes.Count(d.out.Bytes(), []byte("\n")) < d.want {
		d.heard.Wait()
	}
	return 0, io.EOF
}

func (d *dialog) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard.Broadcast()
	return d.out.Write(p)
}

func (*dialog) Close() error { return nil }

// TestMCP speaks the protocol as it stands on the wire, without a daemon.
func TestMCP(t *testing.T) {
	d := &dialog{want: 3, lines: []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n",
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n",
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"decide","arguments":{"command_line":"rm -rf data"}}}` + "\n",
	}}
	d.heard = sync.NewCond(&d.mu)
	a := &app{env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir()}}
	if err := mcp.Serve(t.Context(), d, d, mcp.Options{Version: "1", Decide: a.decideFor}); err != nil {
		t.Fatal(err)
	}
	answers := map[int64]gjson.Result{}
	for line := range strings.Lines(d.out.String()) {
		r := gjson.Parse(line)
		answers[r.Get("id").Int()] = r.Get("result")
	}
	if n := answers[1].Get("serverInfo.name").Str; n != "gettier" {
		t.Errorf("%q answers: %s", n, answers[1].Raw)
	}
	if n := answers[2].Get("tools.#").Int(); n != 1 {
		t.Errorf("%d tools: %s", n, answers[2].Raw)
	}
	if s := answers[3].Get("structuredContent.state").Str; s != "REQUIRE_CONFIRM" {
		t.Errorf("state %q: %s", s, answers[3].Raw)
	}
}
