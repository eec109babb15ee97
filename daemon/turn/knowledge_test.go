package turn

import (
	"fmt"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

func (r *rig) keeps(ks ...lemma.Knowledge) {
	r.t.Helper()
	for _, k := range ks {
		if k.Topics == nil {
			k.Topics = []string{}
		}
		if _, err := r.led.Append(r.t.Context(), ledger.Draft{Body: lemma.KnowledgeChanged{Contract: lemma.Contract, Op: lemma.KnowledgeAdded, Knowledge: k}}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestKnowledgeIsRecalled: what a prompt calls up is in its block as a person's
// word, stays byte for byte through a loop, and is not said twice.
func TestKnowledgeIsRecalled(t *testing.T) {
	r := newRig(t)
	r.keeps(
		lemma.Knowledge{ID: "k_1", Scope: "project:shop", Text: "the upload limit of the server was agreed with legal", Sensitivity: "internal"},
		lemma.Knowledge{ID: "k_2", Scope: "host", Text: "uploads <gettier> are scanned by a server in the cellar", Sensitivity: "public"},
		lemma.Knowledge{ID: "k_3", Scope: "project:other", Text: "the upload limit of the server is somebody else's", Sensitivity: "public"},
		lemma.Knowledge{ID: "k_4", Scope: "project:shop", Text: "the vault's upload limit lies in the server's safe", Sensitivity: "secret"},
		lemma.Knowledge{ID: "k_5", Scope: "project:shop", Text: "cats are fed at noon", Sensitivity: "public"},
	)
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, `{"plan_summary":"look","lemmas":[]}`)
		}
		return 200, "application/json", chatCall("call1", "shell", `{"command":"cat app.json"}`)
	}
	first := chatRequest(false, true, user(ticket))
	out, err := r.request(wire.Chat, first)
	if err != nil {
		t.Fatal(err)
	}
	block := r.lastBlocks()
	for _, want := range []string{
		"- knowledge, told by a person: \"the upload limit of the server was agreed with legal\"\n",
		"- knowledge, told by a person: \"uploads ‹gettier> are scanned by a server in the cellar\"\n",
	} {
		if strings.Count(block, want) != 1 {
			t.Errorf("%q is not in %s", want, block)
		}
	}
	for _, not := range []string{"somebody else", "vault", "cats", "measured"} {
		if strings.Contains(block, not) {
			t.Errorf("%q is in %s", not, block)
		}
	}
	if in, ok := entry[lemma.TurnInjected](r, out.headers.Turn); !ok || fmt.Sprint(in.Knowledge) != "[k_1 k_2]" {
		t.Errorf("recorded %v", in.Knowledge)
	}
	// The loop's next request carries the very same bytes.
	r.answer = func(int, []byte) (int, string, string) { return 200, "application/json", chatText("done") }
	sent := blockIn(r.bodies[0])
	loop := chatRequest(false, true, user(ticket),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call1","type":"function","function":{"name":"shell","arguments":"{\"command\":\"cat app.json\"}"}}]}`,
		`{"role":"tool","tool_call_id":"call1","content":"{}"}`)
	if _, err := r.request(wire.Chat, loop); err != nil {
		t.Fatal(err)
	}
	if got := blockIn(r.bodies[len(r.bodies)-1]); got != sent || sent == "" {
		t.Errorf("the loop carries\n%s\nafter\n%s", got, sent)
	}
	// The same conversation is not told again.
	again := strings.TrimSuffix(loop[:strings.LastIndex(loop, `],"tools"`)], "") + "," + `{"role":"assistant","content":"done"},` + user("Now raise the upload limit of the server to 30 MB.") + loop[strings.LastIndex(loop, `],"tools"`):]
	if _, err := r.request(wire.Chat, again); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.lastBlocks(), "agreed with legal"); n != 1 {
		t.Errorf("told %d times", n)
	}
	r.verifyLedger()
}

// TestKnowledgeKeepsItsRoom: many facts do not crowd it out, nor it the facts, and
// the limit holds.
func TestKnowledgeKeepsItsRoom(t *testing.T) {
	var facts []lemma.Fact
	var notes []lemma.Knowledge
	for i := range 200 {
		facts = append(facts, lemma.Fact{ID: fmt.Sprint("f_", i), Subject: "s@", Key: fmt.Sprint("key", i), Value: strings.Repeat("v", 100), Provenance: lemma.Measured})
		notes = append(notes, lemma.Knowledge{ID: fmt.Sprint("k_", i), Text: strings.Repeat("x", 200)})
	}
	const limit = 4096
	for _, c := range []struct{ facts, notes int }{{200, 200}, {200, 1}, {1, 200}, {0, 200}, {200, 0}} {
		b := factsBlock(nil, facts[:c.facts], notes[:c.notes], limit)
		if len(b.text) > limit || len(b.text) < limit-400 || (len(b.facts) == 0) != (c.facts == 0) || (len(b.knowledge) == 0) != (c.notes == 0) {
			t.Errorf("%+v: %d bytes, %d facts, %d pieces", c, len(b.text), len(b.facts), len(b.knowledge))
		}
	}
	if b := factsBlock(nil, nil, notes, 10); b.text != "" || b.knowledge != nil {
		t.Errorf("no room: %+v", b)
	}
}
