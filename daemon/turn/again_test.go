package turn

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// TestCutOffCheckIsDueAgain: a client that leaves while its premises are being
// declared does not get its answer unchecked when it asks again.
func TestCutOffCheckIsDueAgain(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancel(context.Background())
	r.answer = func(_ int, body []byte) (int, string, string) {
		if !isDeclare(body) {
			return 200, "application/json", chatText("ok")
		}
		if ctx.Err() == nil {
			leave()
			return 0, "", ""
		}
		return declareAnswer(wire.Chat, body, declared25)
	}
	body := chatRequest(false, false, user(ticket))
	out := &sink{}
	if err := r.Serve(ctx, r.build(wire.Chat, body), out); err == nil || out.started {
		t.Fatalf("the client left: %v %d", err, out.status)
	}
	again, err := r.request(wire.Chat, body)
	if err != nil || again.headers.Decision != lemma.DecCaught || blockIn(r.bodies[len(r.bodies)-1]) == "" {
		t.Errorf("the resend: %+v %v", again.headers, err)
	}
	if rows, err := r.led.Turns(10, "", ledger.TurnFilter{}); err != nil || len(rows.Items) != 1 {
		t.Errorf("the resend is no resend: %d turns, %v", len(rows.Items), err)
	}
}

// TestSameWordsElsewhere: the same first words from another project share nothing.
func TestSameWordsElsewhere(t *testing.T) {
	r := newRig(t)
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		return 200, "application/json", chatText("ok")
	}
	if out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket))); err != nil || out.headers.Decision != lemma.DecCaught {
		t.Fatal(out.headers, err)
	}
	r.view = &sensors.View{}
	out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)), func(q *Request) {
		q.Scope = Scope{Name: "project:other", Root: "/other", Cwd: "/other"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if last := r.bodies[len(r.bodies)-1]; blockIn(last) != "" {
		t.Errorf("a block of another project: %s", last)
	}
	if out.headers.Decision == lemma.DecCaught {
		t.Error("a catch from another project's reading")
	}
}

// TestCompactionEndsCoverage: once the block with the correction is gone from the
// history, the next wrong call is checked again, and a new prompt is told the
// facts again.
func TestCompactionEndsCoverage(t *testing.T) {
	r := newRig(t)
	wrong, right := `{"command":"sed -i s/1mb/25mb/ app.json"}`, `{"command":"sed -i s/1m/25m/ nginx.conf"}`
	r.answer = func(_ int, body []byte) (int, string, string) {
		switch {
		case isDeclare(body):
			return declareAnswer(wire.Chat, body, declared25)
		case bytes.Contains(body, []byte("→ contradicted")):
			return 200, "application/json", chatCall("c", "shell", right)
		}
		return 200, "application/json", chatCall("c", "shell", wrong)
	}
	in := func(loop bool) func(*Request) {
		return func(q *Request) {
			q.Route.Conversation = "session"
			q.Route.Continues = loop
			if loop {
				q.Route.Kind, q.Route.AnchorItem = route.Loop, len(q.Wire.Items)-1
			}
		}
	}
	call := func(out *sink) string {
		t.Helper()
		ans := readClient(t, wire.Chat, false, out.buf.Bytes())
		if len(ans.Calls) != 1 {
			t.Fatalf("client got %s", out.buf.String())
		}
		return string(ans.Calls[0].Args)
	}
	first, err := r.request(wire.Chat, chatRequest(false, true, user(ticket)), in(false))
	if err != nil || call(first) != right {
		t.Fatal(err, first.buf.String())
	}
	// The client compacts: the anchor is gone, the turn goes on, for three laps.
	for lap := range 3 {
		body := chatRequest(false, true, user("Summary of the work so far."), `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"shell","arguments":"{}"}}]}`,
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c","content":"done %d"}`, lap))
		out, err := r.request(wire.Chat, body, in(true))
		if err != nil {
			t.Fatal(err)
		}
		if out.headers.Turn != first.headers.Turn {
			t.Fatalf("lap %d opened turn %s", lap, out.headers.Turn)
		}
		if got := call(out); got != right {
			t.Errorf("lap %d: the wrong call left: %s", lap, got)
		}
	}
	next, err := r.request(wire.Chat, chatRequest(false, true, user("Now raise the timeout in the nginx config.")), in(false))
	if err != nil {
		t.Fatal(err)
	}
	if row, _ := r.led.Turn(next.headers.Turn); !slices.Contains(r.kinds(row.ID), "turn.injected") {
		t.Errorf("the facts were not said again: %v", r.kinds(row.ID))
	}
	r.verifyLedger()
}
