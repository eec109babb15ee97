package story

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// Every body of the contract has something to say of itself; one of a later
// contract is named, and one that is broken says so.
func TestEveryKindTells(t *testing.T) {
	files, err := filepath.Glob("../../ledger/lemma/testdata/bodies/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d bodies, %v", len(files), err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(filepath.Base(f), ".json")
		if _, ok := tellers[lemma.Kind(kind)]; !ok {
			t.Errorf("%s has no teller", kind)
			continue
		}
		got := Gist(ipc.Entry{Kind: kind, Body: body}, Options{})
		if got == "" || strings.Contains(got, "cannot be read") || strings.Contains(got, "%!") {
			t.Errorf("%s says %q", kind, got)
		}
	}
	if got := Gist(ipc.Entry{Kind: "a.later", Body: []byte(`{}`)}, Options{}); got != "a.later" {
		t.Errorf("unknown: %q", got)
	}
	if got := Gist(ipc.Entry{Kind: "turn.closed", Body: []byte(`[`)}, Options{}); !strings.Contains(got, "cannot be read") {
		t.Errorf("broken: %q", got)
	}
}

func TestVerdicts(t *testing.T) {
	entry := func(b lemma.Body) ipc.Entry {
		raw, err := ipc.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return ipc.Entry{Kind: string(b.Kind()), Body: raw}
	}
	d := ipc.TurnDetail{Entries: []ipc.Entry{
		entry(lemma.ClaimJudged{Claim: "a", Verdict: lemma.Unverifiable}),
		entry(lemma.SensorInvoked{Invocation: lemma.Invocation{ID: "i_1", DurationMS: 12, OutputBlob: "ab"}}),
		entry(lemma.ClaimJudged{Claim: "b", Verdict: lemma.Confirmed, Invocation: "i_1", Key: "limit", Measured: "1m"}),
		entry(lemma.ClaimJudged{Claim: "c", Verdict: lemma.Contradicted}),
		entry(lemma.HoldAnsweredBody{Answers: []lemma.Answer{{Answer: lemma.AnswerWaive}}}),
	}}
	var got []string
	for _, v := range Verdicts(d) {
		got = append(got, v.Claim)
	}
	if strings.Join(got, "") != "cba" {
		t.Errorf("order %v: the contradicted first", got)
	}
	if v := Verdicts(d)[1]; v.MS != 12 || len(v.Facts) != 1 || v.Facts[0] != `limit = "1m"` {
		t.Errorf("got %+v", v)
	}
	if inv, ok := Output(d, "i_1"); !ok || inv.OutputBlob != "ab" {
		t.Error("the output was not found")
	}
	if len(Answers(d)) != 1 || !HasEvidence(d) {
		t.Error("answers or evidence")
	}
}
