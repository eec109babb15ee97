package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/ledger/lemma"
)

// TestReportWouldHave counts what a stricter phase would have changed, and
// nothing that a person let out or that did not leave.
func TestReportWouldHave(t *testing.T) {
	w := newWorld(t, nil)
	clean := func() (code int, out gjson.Result) {
		code, text, errs := w.gettier("report", "--would-have", "--json", "--since", "100000h")
		if code != exitOK && code != exitFound {
			t.Fatalf("exit %d: %s", code, errs)
		}
		return code, gjson.Parse(text)
	}
	_, before := clean()
	act := func(state, ruled, approval string) lemma.ActionDecided {
		return lemma.ActionDecided{Contract: lemma.Contract, Tool: "Bash", Summary: "do " + ruled, State: state, Ruled: ruled, Effect: "mutate", Enforce: "shadow", Approval: approval, Findings: []string{}, Premises: []string{}}
	}
	for range 12 {
		w.b.Append("t_1", act("ALLOW", "ESCALATE", ""))
	}
	for _, b := range []lemma.Body{
		act("ALLOW", "DENY", ""), act("ALLOW", "ALLOW", ""), act("DENY", "DENY", ""), act("ALLOW", "REQUIRE_CONFIRM", "h_1/1"), act("REQUIRE_CONFIRM", "REQUIRE_CONFIRM", ""),
		lemma.GateDecided{Contract: lemma.Contract, Decision: lemma.DecAnnotated, Reasons: []string{"could_not_run; watching"}},
		lemma.GateDecided{Contract: lemma.Contract, Decision: lemma.DecAnnotated, Reasons: []string{"over the hold budget"}},
	} {
		w.b.Append("t_1", b)
	}
	w.b.Append("", act("ALLOW", "DENY", "")) // only asked about, nothing left
	code, got := clean()
	diff := func(name string) int64 { return got.Get(name).Int() - before.Get(name).Int() }
	if s := fmt.Sprint(diff("actions"), diff("refuse_n"), diff("ask_n"), diff("held_n")); code != exitFound || s != "15 1 12 1" {
		t.Errorf("exit %d, counts %s: %s", code, s, got.Raw)
	}
	if n := got.Get("asked.#").Int(); n != maxExamples {
		t.Errorf("%d examples", n)
	}
	code, text, _ := w.gettier("report", "--would-have", "--since", "100000h")
	if code != exitFound || !strings.Contains(text, "would have been refused by action.enforce hard_deny") || !strings.Contains(text, "deny  mutate  Bash  do DENY") || !strings.Contains(text, "before them") {
		t.Errorf("exit %d\n%s", code, text)
	}
	if code, _, errs := w.gettier("report"); code != exitUsage || !strings.Contains(errs, "--would-have") {
		t.Errorf("exit %d %s", code, errs)
	}
}
