package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
)

func entries(t *testing.T, bodies ...lemma.Body) []ipc.Entry {
	t.Helper()
	var out []ipc.Entry
	for _, b := range bodies {
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ipc.Entry{Kind: string(b.Kind()), Body: data})
	}
	return out
}

func TestFold(t *testing.T) {
	s, err := scenarios.ByID("GTR-001")
	if err != nil {
		t.Fatal(err)
	}
	judged := func(claim string, v lemma.Verdict, sensor, key string) lemma.ClaimJudged {
		return lemma.ClaimJudged{Claim: claim, Origin: "declared", Verdict: v, Sensor: sensor, Key: key, Measured: "1m"}
	}
	seeded := judged(s.Seeded.Claim, lemma.Contradicted, "edge.limit", "limit")
	decided := func(d lemma.Decision) lemma.GateDecided { return lemma.GateDecided{Decision: d} }
	hold := lemma.HoldOpened{Hold: lemma.Hold{ID: "h_1", Items: []lemma.HoldItem{{ID: "1", ClaimID: "c1", Claim: s.Claims()[1]}, {ID: "2", ClaimID: "c2", Claim: "The moon is round"}}}}
	answered := func(one, two lemma.AnswerKind) lemma.HoldAnsweredBody {
		return lemma.HoldAnsweredBody{Hold: "h_1", Answers: []lemma.Answer{{ClaimID: "c1", Answer: one}, {ClaimID: "c2", Answer: two}}}
	}
	unjudged := judged(s.Claims()[1], lemma.Unjudged, "proxy.config", "")
	for _, c := range []struct {
		name    string
		turns   [][]lemma.Body
		reason  Reason
		catches int
		again   int
	}{
		{"nothing", [][]lemma.Body{{}}, Leaked, 0, 0},
		{"caught", [][]lemma.Body{{lemma.TurnDeclared{Rung: 1}, seeded, decided(lemma.DecCaught)}}, Caught, 1, 0},
		{"contradicted, but only noted", [][]lemma.Body{{seeded, decided(lemma.DecAnnotated)}}, Leaked, 0, 0},
		{"another claim caught", [][]lemma.Body{{judged("the moon is round", lemma.Contradicted, "x", "y"), decided(lemma.DecCaught)}}, Leaked, 1, 0},
		{"other words, same reading", [][]lemma.Body{{judged("the edge takes 25 MB", lemma.Contradicted, "proxy.config", "limit"), decided(lemma.DecCaught)}}, Caught, 1, 0},
		{"confirmed", [][]lemma.Body{{judged(s.Claims()[1], lemma.Confirmed, "proxy.config", "limit"), decided(lemma.DecReleased)}}, Verified, 0, 0},
		{"held", [][]lemma.Body{{unjudged, decided(lemma.DecHeld), hold}}, HeldR, 0, 0},
		{"corrected", [][]lemma.Body{{unjudged, decided(lemma.DecHeld), hold, answered(lemma.AnswerCorrect, lemma.AnswerWaive), decided(lemma.DecCorrected)}}, Verified, 0, 0},
		{"waived", [][]lemma.Body{{unjudged, decided(lemma.DecHeld), hold, answered(lemma.AnswerWaive, lemma.AnswerConfirm), decided(lemma.DecWaived)}}, Leaked, 0, 0},
		{"expired", [][]lemma.Body{{unjudged, decided(lemma.DecHeld), hold, lemma.HoldExpiredBody{Hold: "h_1"}, decided(lemma.DecBlocked)}}, HeldR, 0, 0},
		{"caught beside what was answered", [][]lemma.Body{{seeded, decided(lemma.DecHeld), hold, answered(lemma.AnswerWaive, lemma.AnswerWaive), decided(lemma.DecCaught)}}, Caught, 1, 0},
		{"said again", [][]lemma.Body{{seeded, decided(lemma.DecCaught)}, {seeded, decided(lemma.DecCaught)}}, Caught, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Scenario: s, Policy: "believer"}
			r := o.row()
			r.Stages = map[string]int64{}
			f := newFolder(s, &r)
			for _, bodies := range c.turns {
				if err := f.turn(ipc.TurnDetail{Turn: ipc.Turn{ID: "t_1"}, Entries: entries(t, bodies...)}); err != nil {
					t.Fatal(err)
				}
			}
			f.finish()
			if r.Reason != c.reason || len(r.Catches) != c.catches || r.Reassert != c.again {
				t.Errorf("%s, %d catches, %d again: %+v", r.Reason, len(r.Catches), r.Reassert, r)
			}
		})
	}
}

func TestConfigText(t *testing.T) {
	text := configText("gtr-001", t.TempDir(), map[string]string{"gate.hold_on_unverifiable": "true", "declare.at": "prompt", "gate.mode": "watch"})
	c, warnings, err := config.Parse("gettierd.yaml", text, nil, nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v\n%s", err, warnings, text)
	}
	if len(c.Projects) != 1 || c.Projects[0].Name != "gtr-001" {
		t.Errorf("projects %+v\n%s", c.Projects, text)
	}
	if !strings.Contains(string(text), "gate:\n  hold_on_unverifiable: true\n  mode: watch\n") {
		t.Errorf("sections are not folded:\n%s", text)
	}
}

func TestTell(t *testing.T) {
	es := entries(t,
		lemma.TurnOpened{RequestKind: "new", Scope: "project:x", Class: lemma.Change, Reasons: []string{"infra"}},
		lemma.TurnDeclared{Rung: 1, At: "action", PlanSummary: "p", Lemmas: []lemma.Lemma{{Claim: "c", Provenance: lemma.Believed}}},
		lemma.ClaimJudged{Verdict: lemma.Contradicted, Claim: "c", Sensor: "s", Key: "k", Measured: "1m", Rule: "judge[1]"},
		lemma.GateDecided{Decision: lemma.DecCaught},
		lemma.ClaimJudged{Verdict: lemma.Unjudged, Claim: "d", Sensor: "s", Reason: "no_rule"},
		lemma.HoldOpened{Hold: lemma.Hold{Items: []lemma.HoldItem{{ID: "1"}}}},
		lemma.HoldAnsweredBody{Answers: []lemma.Answer{{Answer: lemma.AnswerCorrect, Text: "it is so", By: lemma.Answerer{Via: "harness"}}, {Answer: lemma.AnswerConfirm, By: lemma.Answerer{Via: "tui"}}}},
	)
	opened := len(es)
	es = append(es, ipc.Entry{Kind: "chain.opened"}, ipc.Entry{Kind: "gate.decided", Body: json.RawMessage(`"x"`)})
	var all []string
	for _, e := range es {
		all = append(all, Tell(e))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"new request in project:x, class change (infra)", "rung 1, at the action: \"p\"\nbelieved: \"c\"",
		"contradicted: \"c\"\ns measured k = \"1m\" by judge[1]", "caught", "unreadable",
		"unjudged: \"d\"\ns settles nothing: no_rule", "one claim waits", "correct (via harness): it is so\nconfirm (via tui)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told in:\n%s", want, text)
		}
	}
	if all[opened] != "" {
		t.Errorf("an entry about no turn was told: %q", all[opened])
	}
}
