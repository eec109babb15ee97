package turn

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestRequestsAreKept: a turn that changes something keeps its redacted request,
// and a person may have it dropped; a turn that only looks keeps none.
func TestRequestsAreKept(t *testing.T) {
	r := newRig(t)
	r.RedactBody = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("25 MB"), []byte("[redacted]")) }
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		return 200, "application/json", chatText("done")
	}
	kept := func(prompt string) (turn, blob string) {
		t.Helper()
		out, err := r.request(wire.Chat, chatRequest(false, true, user(prompt)))
		if err != nil {
			t.Fatal(err)
		}
		es, err := r.led.TurnEntries(out.headers.Turn)
		if err != nil || es[0].Kind != string(lemma.KTurnOpened) {
			t.Fatalf("%+v, %v", es, err)
		}
		var b lemma.TurnOpened
		if err := json.Unmarshal(es[0].Body, &b); err != nil {
			t.Fatal(err)
		}
		return out.headers.Turn, b.RequestBlob
	}
	turn, blob := kept(ticket)
	text, err := r.led.Blob(blob)
	if err != nil || bytes.Contains(text, []byte("25 MB")) || !bytes.Contains(text, []byte("[redacted]")) || !bytes.Contains(text, []byte(`"messages"`)) {
		t.Errorf("kept of %q: %q, %v", turn, text, err)
	}
	if n, _, err := r.led.ForgetRequest(t.Context(), turn, lemma.Answerer{}); err != nil || n != 1 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if _, err := r.led.Blob(blob); err == nil {
		t.Error("it is still there")
	}
	if _, blob := kept("what does this file do?"); blob != "" {
		t.Error("a question's request was kept")
	}
}

// TestKeep names what is not kept.
func TestKeep(t *testing.T) {
	e := &Engine{RedactBody: func(b []byte) []byte { return b }}
	large := &wire.Request{Body: []byte(strings.Repeat(" ", maxRequestKept+1))}
	small := &wire.Request{Body: []byte("{}")}
	for name, c := range map[string]struct {
		q    Request
		t    *live
		kept bool
	}{
		"change":      {Request{Wire: small}, &live{class: lemma.Change}, true},
		"destructive": {Request{Wire: small}, &live{class: lemma.Destructive}, true},
		"explore":     {Request{Wire: small}, &live{class: lemma.Explore}, false},
		"side":        {Request{Wire: small}, &live{class: lemma.Change, side: true}, false},
		"observed":    {Request{Wire: small, Observe: true}, &live{class: lemma.Change}, false},
		"large":       {Request{Wire: large}, &live{class: lemma.Change}, false},
	} {
		if got := e.keep(&c.q, c.t) != nil; got != c.kept {
			t.Errorf("%s: kept %v", name, got)
		}
	}
	if (&Engine{}).keep(&Request{Wire: small}, &live{class: lemma.Change}) != nil {
		t.Error("kept without redaction")
	}
}
