package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// A week counts what lies in it, over every page, and weighs tokens by price.
func TestWeek(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w.b.TurnRows, w.b.HoldRows = nil, nil
	turn := func(i int, age time.Duration, kind string, d lemma.Decision, ours int64) {
		w.b.TurnRows = append(w.b.TurnRows, ipc.Turn{ID: fmt.Sprintf("t_%026d", i), RequestKind: kind, Decision: d, OpenedAt: lemma.Time(now.Add(-age)),
			UsageClient: lemma.Usage{Input: 100}, UsageOurs: lemma.Usage{Input: ours}})
	}
	for i := range 2*ipc.MaxLimit + 10 {
		turn(i, time.Duration(i)*time.Minute, "loop", lemma.DecPassThrough, 0)
	}
	turn(5000, 48*time.Hour, "new", lemma.DecCaught, 3000)
	turn(5001, 49*time.Hour, "new", lemma.DecBlocked, 20)
	turn(5002, 8*24*time.Hour, "new", lemma.DecCaught, 1e9)
	hold := func(age, answered time.Duration) {
		h := lemma.Hold{ID: fmt.Sprintf("h_%026d", len(w.b.HoldRows)), OpenedAt: lemma.Time(now.Add(-age)), State: lemma.HoldOpen, Items: []lemma.HoldItem{{ID: "1"}}}
		if answered > 0 {
			h.State = lemma.HoldAnswered
			h.Items[0].Answer = &lemma.Answer{At: lemma.Time(now.Add(-age + answered))}
		}
		w.b.HoldRows = append(w.b.HoldRows, h)
	}
	hold(time.Hour, 6*time.Second)
	hold(2*time.Hour, 4*time.Second)
	hold(3*time.Hour, 90*time.Second)
	hold(time.Minute, 0)
	hold(9*24*time.Hour, time.Second)

	code, out, errs := w.gettier("week")
	if code != exitOK {
		t.Fatal(errs)
	}
	if got, want := strings.SplitN(out, "\n", 2)[0], "2 prompts · 1 corrected · 1 stopped · 4 asked (median 6.0 s) · +1.5 % tokens"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if n := strings.Count(out, "caught") + strings.Count(out, "blocked"); n != 2 {
		t.Errorf("%d rows:\n%s", n, out)
	}
	if code, _, errs := w.gettier("week", "--days", "0"); code != exitUsage || !strings.Contains(errs, "between 1 and 366") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Without an argument the newest turn that is worth a question comes, not the
// newest.
func TestWhyPicks(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	slices.Reverse(w.b.TurnRows)
	for _, c := range []struct{ args, has string }{
		{"why", "measured  ✗ contradicted  proxy.config limit"},
		{"why last", "nothing"},
		{"why 7abc", "explore"},
	} {
		code, out, errs := w.gettier(strings.Fields(c.args)...)
		if code != exitOK || !strings.Contains(out, c.has) {
			t.Errorf("%s: exit %d %s\n%s", c.args, code, errs, out)
		}
	}
	w.b.TurnRows = nil
	if code, _, errs := w.gettier("why"); code != exitUsage || !strings.Contains(errs, "no turns yet") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
