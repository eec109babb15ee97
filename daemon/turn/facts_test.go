package turn

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// untrusted is the scripted endpoint over plain http to somewhere else.
type untrusted struct{ upstream }

func (untrusted) Trusted() bool { return false }

// prompts sends a fresh prompt in a conversation of its own and returns what the
// upstream got of it.
func (r *rig) prompts(words string, edit ...func(*Request)) string {
	r.t.Helper()
	r.bodies = nil
	r.pass(time.Second) // ids are in order of time
	if _, err := r.request(wire.Chat, chatRequest(false, false, user(ticket+" "+words)), edit...); err != nil {
		r.t.Fatal(err)
	}
	return string(bytes.Join(r.bodies, []byte("\n")))
}

func answering(r *rig) {
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, `{"plan_summary":"look","lemmas":[]}`)
		}
		return 200, "application/json", chatText("done")
	}
}

// measures has a turn read the sensor anew.
func (r *rig) measures(value string) {
	r.t.Helper()
	r.value = value
	r.reuse.changed("project:shop", r.clock())
	r.pass(time.Second)
}

// TestChangeIsToldOnce: what a reading changed reaches one block of its scope,
// even when the turn that measured it had none, and none after it.
func TestChangeIsToldOnce(t *testing.T) {
	const changed = "previously 1m, now measured 2m"
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			r := newRig(t)
			answering(r)
			if sent := r.prompts("one"); strings.Contains(sent, "- changed:") {
				t.Errorf("a first reading is no change: %s", sent)
			}
			r.measures("2m")
			// A turn at the action: the premise stands, so there is no block.
			r.answer = func(_ int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(wire.Chat, body, `{"plan_summary":"raise the upload limit of nginx to 25 MB","lemmas":[]}`)
				}
				return 200, "application/json", chatCall("call1", "shell", `{"command":"sed -i s/1/2/ app.json"}`)
			}
			out, err := r.request(wire.Chat, chatRequest(false, true, user(ticket+" two")))
			if err != nil {
				t.Fatal(err)
			}
			if kinds := r.kinds(out.headers.Turn); count(kinds, "fact.contradicted") != 1 {
				t.Fatalf("the second reading: %v", kinds)
			}
			if restart {
				r.restart()
			}
			answering(r)
			told := 0
			for _, words := range []string{"three", "four", "five"} {
				sent := r.prompts(words)
				told += strings.Count(r.lastBlocks(), changed)
				if !strings.Contains(sent, `edge.limit limit = \"2m\"`) {
					t.Errorf("prompt %s was not told what holds: %s", words, sent)
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
			r.verifyLedger()
		})
	}
}

// lastBlocks are the texts of the newest turn's blocks.
func (r *rig) lastBlocks() string {
	r.t.Helper()
	page, err := r.led.Turns(1, "", ledger.TurnFilter{})
	if err != nil || len(page.Items) != 1 {
		r.t.Fatal(err)
	}
	blocks, err := r.led.Blocks(page.Items[0].Conversation)
	if err != nil {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, bl := range blocks {
		b.WriteString(bl.Text)
	}
	return b.String()
}

// TestReadingOverrulesTold: what a person said ends where a reading says
// otherwise, with one change, and is told to nobody after that.
func TestReadingOverrulesTold(t *testing.T) {
	r := newRig(t)
	answering(r)
	book := r.Holds.(*hold.Book)
	said, err := book.Tell(context.Background(), "project:shop", "the edge accepts uploads of 25 MB", person)
	if err != nil {
		t.Fatal(err)
	}
	host, err := book.Tell(context.Background(), "host", "the edge accepts uploads of 25 MB", person)
	if err != nil {
		t.Fatal(err)
	}
	small, err := book.Tell(context.Background(), "project:shop", "the edge accepts uploads of 1 KB", person)
	if err != nil {
		t.Fatal(err)
	}
	r.prompts("one")
	for id, want := range map[string]lemma.FactStatus{said.ID: lemma.StatusContradicted, host.ID: lemma.StatusActive, small.ID: lemma.StatusActive} {
		if f, err := r.led.Fact(id); err != nil || f.Status != want {
			t.Errorf("%s (%s) is %s, %v", f.Claim, f.Scope, f.Status, err)
		}
	}
	f, _ := r.led.Fact(said.ID)
	if by, err := r.led.Fact(*f.SupersededBy); err != nil || by.Value != "1m" {
		t.Errorf("by %+v, %v", by, err)
	}
	if b := r.lastBlocks(); strings.Count(b, "a person said the edge accepts uploads of 25 MB, now measured 1m") != 1 {
		t.Error(b)
	}
	r.prompts("two")
	if b := r.lastBlocks(); strings.Contains(b, "now measured") || strings.Count(b, "accepts uploads of 25 MB") != 1 { // the host's
		t.Error(b)
	}
	r.verifyLedger()
}

// TestCorrectionBacksNothing: the told fact behind a correction stands under the
// id of the claim that it corrects.
func TestCorrectionBacksNothing(t *testing.T) {
	for kind, backs := range map[lemma.AnswerKind]bool{lemma.AnswerConfirm: true, lemma.AnswerCorrect: false} {
		r := newRig(t)
		h, err := r.Holds.Open(context.Background(), lemma.Hold{
			Kind: "claims", Scope: "project:shop", Turn: "t_1", Conversation: "c", ExpiresAt: lemma.Time(r.clock().Add(time.Hour)),
			Items: []lemma.HoldItem{{ID: "1", ClaimID: "claim", Claim: "x is on", Tried: []string{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Holds.Answer(context.Background(), h.ID, []hold.ItemAnswer{{Item: "1", Answer: kind, Text: "x is off", Scope: lemma.ScopeProject}}, person); err != nil {
			t.Fatal(err)
		}
		b := r.backing(&live{scope: Scope{Name: "project:shop"}}, finding{claimID: "claim"})
		if (len(b.Facts) == 1) != backs {
			t.Errorf("%s: backed by %+v", kind, b.Facts)
		}
		r.pass(2 * time.Hour)
		if b := r.backing(&live{scope: Scope{Name: "project:shop"}}, finding{claimID: "claim"}); len(b.Facts) != 0 {
			t.Errorf("%s: backed by what is over: %+v", kind, b.Facts)
		}
	}
}

// TestUntrustedUpstream: what is internal reaches no endpoint that is not
// trusted: no fact, no change, no reading, no note and no resumed check.
func TestUntrustedUpstream(t *testing.T) {
	elsewhere := func(q *Request) { q.Upstream = untrusted{upstream{q.Upstream.(upstream).r}} }
	r := newRig(t)
	answering(r)
	r.prompts("one")
	r.measures("2m")
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		return 200, "application/json", chatText("done")
	}
	sent := r.prompts("two", elsewhere)
	if strings.Contains(sent, "2m") || strings.Contains(sent, "1m") || !strings.Contains(sent, "withheld") {
		t.Errorf("sent: %s", sent)
	}
	note := noteText([]finding{{claim: "c", verdict: lemma.Contradicted, sensor: "edge.limit", key: "limit", measured: "2m", sensitivity: "internal"}}, []int{0}, false)
	if strings.Contains(note, "2m") {
		t.Error(note)
	}
	// What waited is told as soon as somebody may read it.
	if sent := r.prompts("three"); !strings.Contains(sent, "previously 1m, now measured 2m") {
		t.Errorf("sent: %s", sent)
	}
	for _, c := range []struct {
		sensitivity string
		trusted, ok bool
	}{{"public", false, true}, {"internal", true, true}, {"internal", false, false}, {"secret", true, false}, {"", true, false}} {
		if mayRead(c.sensitivity, c.trusted) != c.ok {
			t.Errorf("%+v", c)
		}
	}
	if got := (finding{measured: "2m"}).shown(false); strings.Contains(got, "2m") {
		t.Errorf("of a sensor that is gone: %s", got)
	}
}

// TestTells: a value is told when blocks say it and say it last.
func TestTells(t *testing.T) {
	f := func(v string) lemma.Fact {
		return lemma.Fact{Subject: "edge.limit@x", Key: "limit", Value: v, Provenance: lemma.Measured}
	}
	one, two := "- fact: "+factLine(f("1m"))+"\n", "- measured: "+factLine(f("2m"))+"\n"
	for _, c := range []struct {
		sent, value string
		want        bool
	}{
		{"", "1m", false}, {one, "1m", true}, {one, "2m", false}, {one + two, "1m", false}, {one + two, "2m", true},
		{one + two + one, "1m", true}, {one, "1", false}, {"- fact: my." + factLine(f("1m")), "1m", false},
		{one + "- fact: my." + factLine(f("2m")), "1m", true}, {"(" + factLine(f("1m")) + ")", "1m", true},
	} {
		if got := tells(c.sent, f(c.value)); got != c.want {
			t.Errorf("%q tells %s: %t", c.sent, c.value, got)
		}
	}
	told := lemma.Fact{Claim: "it rains", Provenance: lemma.Told}
	if !tells("- fact: "+factLine(told), told) || tells("it rains", told) {
		t.Error("told")
	}
}
