package turn

import (
	"slices"
	"testing"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestWordsInMidLoop: what a person says while a tool runs may make a question a
// change. The record says so once, and a bare "go on" changes nothing.
func TestWordsInMidLoop(t *testing.T) {
	r := newRig(t)
	r.answer = func(n int, _ []byte) (int, string, string) {
		if n < 3 {
			return 200, "application/json", chatCall("call"+string(rune('0'+n)), "read_file", `{"path":"src/tax.js"}`)
		}
		return 200, "application/json", chatText("done")
	}
	lap := func(n int) string {
		items := []string{user("What does the tax helper do?")}
		for i := range n {
			id := "call" + string(rune('0'+i))
			items = append(items, `{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/tax.js\"}"}}]}`, `{"role":"tool","tool_call_id":"`+id+`","content":"x"}`)
		}
		return chatRequest(false, true, items...)
	}
	said := func(texts ...string) func(*Request) {
		return func(q *Request) { q.Route.Queued = texts }
	}
	var turn string
	for i, step := range []struct {
		queued []string
		class  lemma.Class
		wrote  int
	}{
		{nil, lemma.Explore, 0},
		{[]string{"go on"}, lemma.Explore, 0},
		{[]string{"go on", "and then deploy it to staging"}, lemma.Change, 1},
		{[]string{"go on", "and then deploy it to staging"}, lemma.Change, 1},
	} {
		out, err := r.request(wire.Chat, lap(i), said(step.queued...))
		if err != nil {
			t.Fatal(err)
		}
		if turn == "" {
			turn = out.headers.Turn
		}
		if out.headers.Turn != turn {
			t.Fatalf("lap %d is of another turn", i)
		}
		row, err := r.led.Turn(turn)
		if err != nil {
			t.Fatal(err)
		}
		wrote := 0
		for _, k := range r.kinds(turn) {
			if k == string(lemma.KTurnClassified) {
				wrote++
			}
		}
		if row.Class != step.class || wrote != step.wrote {
			t.Errorf("lap %d: class %s with %d entries, want %s with %d", i, row.Class, wrote, step.class, step.wrote)
		}
	}
	if b, ok := entry[lemma.TurnClassified](r, turn); !ok || !slices.Contains(b.Reasons, "mid-loop words.release") {
		t.Errorf("the record says %+v", b)
	}
	r.verifyLedger()
}

// TestFirstRequestWithQueuedWords: a turn that opens with words queued beside
// its prompt counts both.
func TestFirstRequestWithQueuedWords(t *testing.T) {
	r := newRig(t)
	r.answer = func(int, []byte) (int, string, string) { return 200, "application/json", chatText("done") }
	out, err := r.request(wire.Chat, chatRequest(false, true, user("Explain the tax helper.")), func(q *Request) {
		q.Route.Kind, q.Route.Queued = route.New, []string{"drop the users table"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := r.led.Turn(out.headers.Turn); err != nil || row.Class != lemma.Destructive {
		t.Errorf("class %s, %v", row.Class, err)
	}
}
