package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"github.com/google/go-cmp/cmp"
)

func factOf(id, scope, value string, ttl int64, created time.Time) lemma.Fact {
	end := lemma.Time(created.Add(time.Duration(ttl) * time.Second))
	return lemma.Fact{ID: id, Scope: scope, Subject: "proxy.config@1", Claim: "limit is " + value, Key: "limit", Value: value, Provenance: lemma.Measured,
		Status: lemma.StatusActive, Sensitivity: "internal", TTLSeconds: &ttl, CreatedAt: lemma.Time(created), ExpiresAt: &end}
}

func write(f lemma.Fact) ledger.Draft {
	return ledger.Draft{Body: lemma.FactWritten{Contract: lemma.Contract, Fact: f}}
}

func TestFactSuccession(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, write(factOf("f_1", "project:shop", "1m", 300, begin)))
	add(t, l, write(factOf("f_2", "project:shop", "10m", 300, begin.Add(time.Minute))))   // other value inside the ttl
	add(t, l, write(factOf("f_3", "project:shop", "10m", 300, begin.Add(2*time.Minute)))) // same value
	add(t, l, write(factOf("f_4", "project:shop", "20m", 300, begin.Add(time.Hour))))     // other value after the end
	add(t, l, write(factOf("f_5", "host", "1m", 300, begin)))                             // another scope
	for id, want := range map[string]struct {
		status lemma.FactStatus
		by     string
	}{"f_1": {lemma.StatusContradicted, "f_2"}, "f_2": {lemma.StatusStale, "f_3"}, "f_3": {lemma.StatusStale, "f_4"}, "f_4": {lemma.StatusActive, ""}, "f_5": {lemma.StatusActive, ""}} {
		f, err := l.Fact(id)
		by := ""
		if f.SupersededBy != nil {
			by = *f.SupersededBy
		}
		if err != nil || f.Status != want.status || by != want.by {
			t.Errorf("%s: %s by %q, %v; want %s by %q", id, f.Status, by, err, want.status, want.by)
		}
	}
	if f, ok := l.FactBy("project:shop", "proxy.config@1", "limit"); !ok || f.ID != "f_4" {
		t.Errorf("current fact: %+v", f)
	}
	if _, ok := l.FactBy("project:other", "proxy.config@1", "limit"); ok {
		t.Error("a fact of another project")
	}
	add(t, l, ledger.Draft{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: "f_4", Reason: "wrong host", By: "tui"}})
	if _, ok := l.FactBy("project:shop", "proxy.config@1", "limit"); ok {
		t.Error("an invalidated fact is current")
	}
	add(t, l, ledger.Draft{Body: lemma.FactContradicted{Contract: lemma.Contract, Fact: "f_none", By: "f_5"}}) // unknown: changes nothing
	verified(t, l)
}

func TestFactLists(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	for i := range 30 {
		scope := []string{"host", "project:a", "project:b"}[i%3]
		f := factOf(fmt.Sprintf("f_%02d", i), scope, fmt.Sprint(i), 300, begin)
		f.Key = fmt.Sprint("key", i)
		if i%5 == 0 {
			f.Provenance, f.Subject = lemma.Told, "person"
		}
		add(t, l, write(f))
	}
	ids := func(q ledger.FactFilter) (ids []string, pages int) {
		for {
			p, err := l.Facts(q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			if p.AsOf != l.Head().Size-1 {
				t.Errorf("as of %d of %d", p.AsOf, l.Head().Size)
			}
			for _, f := range p.Items {
				ids = append(ids, f.ID)
			}
			if q.Cursor = p.Next; q.Cursor == "" {
				return ids, pages
			}
		}
	}
	all, pages := ids(ledger.FactFilter{Limit: 7})
	if len(all) != 30 || all[0] != "f_29" || all[29] != "f_00" || pages != 5 {
		t.Errorf("all, by pages of 7: %v in %d", all, pages)
	}
	if got, _ := ids(ledger.FactFilter{Scope: []string{"host", "project:b"}, Limit: 3}); strings.Join(got, " ") !=
		"f_29 f_27 f_26 f_24 f_23 f_21 f_20 f_18 f_17 f_15 f_14 f_12 f_11 f_09 f_08 f_06 f_05 f_03 f_02 f_00" {
		t.Errorf("two scopes: %v", got)
	}
	if got, _ := ids(ledger.FactFilter{Scope: []string{"host"}, Status: lemma.StatusActive, Provenance: lemma.Told}); strings.Join(got, " ") != "f_15 f_00" {
		t.Errorf("told in host: %v", got)
	}
	if got, _ := ids(ledger.FactFilter{Text: "KEY1"}); len(got) != 11 {
		t.Errorf("text: %v", got)
	}
	if got, _ := ids(ledger.FactFilter{Status: lemma.StatusStale}); len(got) != 0 {
		t.Errorf("stale before the sweep: %v", got)
	}
	if got, _ := ids(ledger.FactFilter{At: begin.Add(time.Hour)}); len(got) != 0 {
		t.Errorf("past their ttl: %v", got)
	}
	if _, err := l.Facts(ledger.FactFilter{Cursor: "no cursor!"}); err == nil {
		t.Error("a bad cursor lists")
	}
}

func TestExpire(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	ctx := context.Background()
	for i := range 600 {
		f := factOf(fmt.Sprintf("f_%03d", i), "host", "1", int64(60+i), begin)
		f.Key = fmt.Sprint(i)
		add(t, l, write(f))
	}
	forever := factOf("f_told", "host", "1", 1, begin)
	forever.Key, forever.TTLSeconds, forever.ExpiresAt = "told", nil, nil
	noEnd := factOf("f_noend", "host", "1", 100, begin) // a ttl, but nobody wrote its end
	noEnd.Key, noEnd.ExpiresAt = "noend", nil
	add(t, l, write(forever), write(noEnd))
	refreshed := factOf("f_000", "host", "1", 5000, begin)
	refreshed.Key = "0"
	add(t, l, write(refreshed))
	before := l.Head().Size
	n, err := l.Expire(ctx, begin.Add(359*time.Second))
	if err != nil || n != 300 { // 61 to 359 seconds, and the one without an end
		t.Fatalf("expired %d, %v", n, err)
	}
	if got := l.Head().Size - before; got != 300 {
		t.Errorf("%d entries for it", got)
	}
	for id, want := range map[string]lemma.FactStatus{"f_000": lemma.StatusActive, "f_299": lemma.StatusStale, "f_300": lemma.StatusActive, "f_told": lemma.StatusActive, "f_noend": lemma.StatusStale} {
		if f, err := l.Fact(id); err != nil || f.Status != want {
			t.Errorf("%s: %s, %v; want %s", id, f.Status, err, want)
		}
	}
	if n, err := l.Expire(ctx, begin.Add(359*time.Second)); n != 0 || err != nil {
		t.Errorf("swept twice: %d, %v", n, err)
	}
	// A sweep that lost the race against a refresh changes nothing.
	add(t, l, ledger.Draft{Body: lemma.FactExpired{Contract: lemma.Contract, Fact: "f_000", ExpiresAt: lemma.Time(begin.Add(time.Minute))}})
	if f, _ := l.Fact("f_000"); f.Status != lemma.StatusActive {
		t.Error("a refreshed fact went stale")
	}
	verified(t, l)
}

func holdOf(id, claim string) lemma.Hold {
	return lemma.Hold{ID: id, Kind: "claims", Scope: "project:shop", Turn: "t_1", Conversation: "c1", OpenedAt: lemma.Time(begin), ExpiresAt: lemma.Time(begin.Add(24 * time.Hour)),
		Items: []lemma.HoldItem{{ID: "1", ClaimID: claim, Claim: "x is on", Verdict: lemma.Unjudged, Tried: []string{}}}}
}

func answer(hold, claim string, kind lemma.AnswerKind, scope lemma.AnswerScope, until time.Time) lemma.HoldAnsweredBody {
	return lemma.HoldAnsweredBody{Contract: lemma.Contract, Hold: hold, Answers: []lemma.Answer{{Hold: hold, Item: "1", ClaimID: claim, Answer: kind, Text: "because", Scope: scope, ExpiresAt: lemma.Time(until), By: lemma.Answerer{UID: 1000, Via: "tui"}, At: lemma.Time(begin)}}}
}

func TestHolds(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	open := func(id, claim string) {
		add(t, l, ledger.Draft{Turn: "t_1", Body: lemma.HoldOpened{Contract: lemma.Contract, Hold: holdOf(id, claim)}})
	}
	for i := range 5 {
		open(fmt.Sprintf("h_%d", i), fmt.Sprint("claim", i))
	}
	day := begin.Add(24 * time.Hour)
	add(t, l, ledger.Draft{Body: answer("h_0", "claim0", lemma.AnswerConfirm, lemma.ScopeProject, day)})
	add(t, l, ledger.Draft{Body: answer("h_0", "claim0", lemma.AnswerWaive, lemma.ScopeProject, day)}) // too late
	add(t, l, ledger.Draft{Body: answer("h_1", "claim1", lemma.AnswerCorrect, lemma.ScopeTask, day)})
	add(t, l, ledger.Draft{Body: answer("h_2", "claim2", lemma.AnswerConfirm, lemma.ScopeOnce, day)})
	add(t, l, ledger.Draft{Body: lemma.HoldExpiredBody{Contract: lemma.Contract, Hold: "h_3"}})
	add(t, l, ledger.Draft{Body: lemma.HoldCancelledBody{Contract: lemma.Contract, Hold: "h_3", Reason: "late"}})
	add(t, l, ledger.Draft{Body: answer("h_none", "claim9", lemma.AnswerConfirm, lemma.ScopeProject, day)})
	states := map[string]lemma.HoldState{}
	p, err := l.Holds("", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range p.Items {
		states[h.ID] = h.State
	}
	want := map[string]lemma.HoldState{"h_0": lemma.HoldAnswered, "h_1": lemma.HoldAnswered, "h_2": lemma.HoldAnswered, "h_3": lemma.HoldExpired, "h_4": lemma.HoldOpen}
	if d := cmp.Diff(want, states); d != "" {
		t.Error(d)
	}
	if p, err := l.Holds(lemma.HoldOpen, 10, ""); err != nil || len(p.Items) != 1 || p.Items[0].ID != "h_4" || p.Next != "" {
		t.Errorf("open holds: %+v, %v", p, err)
	}
	h, err := l.Hold("h_0")
	if err != nil || h.Items[0].Answer == nil || h.Items[0].Answer.Answer != lemma.AnswerConfirm || h.Items[0].Answer.Conversation != "c1" {
		t.Errorf("the first answer must stand: %+v, %v", h.Items, err)
	}
	for _, c := range []struct {
		name, scope, conversation, claim string
		at                               time.Time
		found                            bool
	}{
		{"project", "project:shop", "c9", "claim0", begin, true},
		{"project, other scope", "project:x", "c1", "claim0", begin, false},
		{"project, over", "project:shop", "c1", "claim0", day, false},
		{"task", "project:shop", "c1", "claim1", begin, true},
		{"task, other conversation", "project:shop", "c2", "claim1", begin, false},
		{"task, no conversation", "project:shop", "", "claim1", begin, false},
		{"once", "project:shop", "c1", "claim2", begin, false},
		{"not asked", "project:shop", "c1", "claim4", begin, false},
		{"a claim whose id is the start of another's", "project:shop", "c1", "claim", begin, false},
	} {
		if a, ok := l.Answers(c.scope, c.conversation, c.claim, c.at); ok != c.found {
			t.Errorf("%s: %t, %+v", c.name, ok, a)
		}
	}
	// The newest answer counts.
	open("h_5", "claim0")
	add(t, l, ledger.Draft{Body: answer("h_5", "claim0", lemma.AnswerCorrect, lemma.ScopeProject, day)})
	if a, _ := l.Answers("project:shop", "c1", "claim0", begin); a.Answer != lemma.AnswerCorrect {
		t.Errorf("newest answer: %+v", a)
	}
	// An answer that names another claim than was asked binds nothing.
	open("h_6", "claim6")
	add(t, l, ledger.Draft{Body: answer("h_6", "claim7", lemma.AnswerConfirm, lemma.ScopeProject, day)})
	for _, id := range []string{"claim6", "claim7"} {
		if a, ok := l.Answers("project:shop", "c1", id, begin); ok {
			t.Errorf("%s: %+v", id, a)
		}
	}
	verified(t, l)
}

func TestTurnStory(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	turn := func(id string, bodies ...lemma.Body) {
		var ds []ledger.Draft
		for _, body := range bodies {
			ds = append(ds, ledger.Draft{Turn: id, Body: body})
		}
		add(t, l, ds...)
	}
	first := opened("c1")
	first.Class = lemma.Edit
	turn("t_1", first)
	if r, ok := l.OpenTurn("c1"); !ok || r.ID != "t_1" || r.Rung != -1 || r.Stage != lemma.KTurnOpened {
		t.Fatalf("open turn: %+v", r)
	}
	turn("t_1",
		lemma.TurnClassified{Class: lemma.Change}, lemma.TurnClassified{Class: lemma.Explore},
		lemma.TurnDeclared{Rung: 1, Usage: lemma.Usage{Output: 10}, Lemmas: []lemma.Lemma{}},
		lemma.HoldOpened{Hold: holdOf("h_1", "claim")},
		lemma.ActionDecided{State: "ALLOW"}, lemma.ActionDecided{State: "DENY"}, lemma.ActionDecided{State: "WITHHELD"}, lemma.ActionDecided{State: "ALLOW"},
		lemma.GateDecided{Decision: lemma.DecCaught, Class: lemma.Change, Mode: lemma.Block, Counts: lemma.Counts{Lemmas: 2, Contradicted: 1}},
	)
	r, err := l.Turn("t_1")
	if err != nil {
		t.Fatal(err)
	}
	if r.Class != lemma.Change || r.Rung != 1 || r.Hold != "h_1" || r.Decision != lemma.DecCaught || r.Mode != lemma.Block || r.UsageOurs.Output != 10 || r.Entries != 10 {
		t.Errorf("row: %+v", r)
	}
	if d := cmp.Diff(lemma.Counts{Lemmas: 2, Contradicted: 1, Allowed: 2, Denied: 1}, r.Counts); d != "" {
		t.Error(d)
	}
	turn("t_1", lemma.TurnClosed{Decision: lemma.DecCaught, Status: 200, UsageClient: lemma.Usage{Input: 5}, UsageOurs: lemma.Usage{Output: 12}})
	side := opened("c1")
	side.RequestKind = "side:title"
	turn("t_2", side)
	if _, ok := l.OpenTurn("c1"); ok {
		t.Error("a side request's turn is open in the conversation")
	}
	if r, ok := l.LastTurn("c1"); !ok || r.ID != "t_1" || r.UsageOurs.Output != 12 || r.ClosedAt == "" {
		t.Errorf("last turn: %+v", r)
	}
	turn("t_3", opened("c1"))
	turn("t_4", opened("c2"))
	turn("t_3", opened("c9")) // opened again: changes nothing but the count
	if r, ok := l.LastTurn("c1"); !ok || r.ID != "t_3" || r.Entries != 2 {
		t.Errorf("last turn: %+v", r)
	}
	list := func(q ledger.TurnFilter) string {
		p, err := l.Turns(0, "", q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range p.Items {
			ids = append(ids, r.ID)
		}
		return strings.Join(ids, " ")
	}
	for q, want := range map[ledger.TurnFilter]string{
		{}:                               "t_4 t_3 t_2 t_1",
		{Conversation: "c1"}:             "t_3 t_1",
		{Open: true}:                     "t_4 t_3 t_2",
		{Decision: lemma.DecCaught}:      "t_1",
		{Open: true, Conversation: "c2"}: "t_4",
		{Scope: "project:other"}:         "",
	} {
		if got := list(q); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	if es, err := l.TurnEntries("t_3"); err != nil || len(es) != 2 || es[0].Turn != "t_3" {
		t.Errorf("entries: %+v, %v", es, err)
	}
	verified(t, l)
}

func TestBlocks(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, ledger.Draft{Turn: "t_1", Body: opened("c1")})
	for i, text := range []string{"block one", "block <two>", "block one"} {
		add(t, l, ledger.Draft{Turn: "t_1", Body: lemma.TurnInjected{Conversation: "c1", BlockBlob: sum(text), Anchor: fmt.Sprint("anchor", i), Why: "facts", Facts: []string{}}, Blobs: [][]byte{[]byte(text)}})
	}
	add(t, l, ledger.Draft{Turn: "t_1", Body: lemma.TurnInjected{Conversation: "c11", BlockBlob: sum("block one"), Anchor: "x"}}) // stored before
	got, err := l.Blocks("c1")
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Block{
		{Turn: "t_1", Anchor: "anchor0", Why: "facts", Text: "block one", Sum: sum("block one"), Seq: 2},
		{Turn: "t_1", Anchor: "anchor1", Why: "facts", Text: "block <two>", Sum: sum("block <two>"), Seq: 3},
		{Turn: "t_1", Anchor: "anchor2", Why: "facts", Text: "block one", Sum: sum("block one"), Seq: 4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, err := l.Blocks("c2"); err != nil || len(got) != 0 {
		t.Errorf("another conversation: %v, %v", got, err)
	}
	verified(t, l)
}

func TestModelRung(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	if m := l.ModelRung("up", "m"); m.Rung != -1 {
		t.Errorf("unknown model: %+v", m)
	}
	add(t, l, ledger.Draft{Turn: "t_1", Body: opened("c1")})
	for _, body := range []lemma.Body{
		lemma.TurnDeclared{Rung: 0}, lemma.TurnDeclared{Rung: 1}, lemma.TurnDeclared{Rung: 1},
		lemma.TurnUndeclared{Reason: "all rungs failed", Tried: []string{"1", "3"}}, lemma.TurnUndeclared{Reason: "nothing to measure"},
		lemma.TurnDeclared{Rung: 77}, // no such rung: not counted
	} {
		add(t, l, ledger.Draft{Turn: "t_1", Body: body})
	}
	want := ledger.Rung{Rung: 1, Turns: 2, Declared: 3, Undeclared: 1, Failing: 1, Uses: [5]int{1, 2}, At: lemma.Time(begin)}
	if d := cmp.Diff(want, l.ModelRung("up", "m")); d != "" {
		t.Error(d)
	}
	if m := l.ModelRung("upm", ""); m.Rung != -1 {
		t.Errorf("upstream and model ran together: %+v", m)
	}
}

// TestForget drops what only old entries name, says so, and still verifies.
func TestForget(t *testing.T) {
	b := newBench(t)
	now := begin
	b.opt.Now = func() time.Time { return now }
	l := b.open(t)
	inject := func(text string) {
		add(t, l, ledger.Draft{Turn: "t_1", Body: lemma.TurnInjected{Conversation: "c1", BlockBlob: sum(text), Anchor: "a"}, Blobs: [][]byte{[]byte(text)}})
	}
	add(t, l, ledger.Draft{Turn: "t_1", Body: opened("c1")})
	inject("old")
	inject("old and new")
	now = begin.Add(48 * time.Hour)
	inject("old and new")
	inject("new")
	n, err := l.Forget(context.Background(), begin.Add(24*time.Hour))
	if err != nil || n != 1 {
		t.Fatalf("forgot %d, %v", n, err)
	}
	if _, err := l.Blob(sum("old")); err == nil {
		t.Error("the old blob is still there")
	}
	if bs, err := l.Blocks("c1"); err != nil || len(bs) != 3 {
		t.Errorf("blocks: %+v, %v", bs, err)
	}
	if n, err := l.Forget(context.Background(), begin.Add(24*time.Hour)); err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
	r := verified(t, l)
	if r.Forgotten != 1 || r.Blobs != 2 {
		t.Errorf("report: %+v", r)
	}
}

// TestWithdrawnFactEndsItsAnswer: whoever takes back what was told in a hold is
// asked again; what was said after that holds, and so does a waiver, which told
// nothing.
func TestWithdrawnFactEndsItsAnswer(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	day := begin.Add(24 * time.Hour)
	say := func(hold, claim string, kind lemma.AnswerKind) {
		add(t, l, ledger.Draft{Turn: "t_1", Body: lemma.HoldOpened{Contract: lemma.Contract, Hold: holdOf(hold, claim)}})
		add(t, l, ledger.Draft{Body: answer(hold, claim, kind, lemma.ScopeProject, day)})
	}
	told := func(id, claim string) lemma.Fact {
		f := factOf(id, "project:shop", "", 86400, begin)
		f.Provenance, f.Subject, f.Key = lemma.Told, "person", claim
		return f
	}
	withdraw := func(id string) {
		add(t, l, ledger.Draft{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: id, Reason: "it was the other host", By: "tui"}})
	}
	say("h_1", "claim1", lemma.AnswerConfirm)
	add(t, l, write(told("f_1", "claim1")))
	say("h_2", "claim2", lemma.AnswerConfirm)
	say("h_3", "claim3", lemma.AnswerWaive)
	add(t, l, write(told("f_3", "claim3")))
	measured := factOf("f_4", "project:shop", "1m", 300, begin)
	measured.Key = "claim2"
	add(t, l, write(measured))
	for _, id := range []string{"f_1", "f_3", "f_4"} {
		withdraw(id)
	}
	for claim, want := range map[string]bool{"claim1": false, "claim2": true, "claim3": true} {
		if _, ok := l.Answers("project:shop", "c9", claim, begin); ok != want {
			t.Errorf("%s is answered: %v, want %v", claim, ok, want)
		}
	}
	say("h_5", "claim1", lemma.AnswerCorrect)
	if a, ok := l.Answers("project:shop", "c9", "claim1", begin); !ok || a.Hold != "h_5" {
		t.Errorf("after the second answer: %+v, %v", a, ok)
	}
	verified(t, l)
	l = reopen(t, b, l)
	if a, ok := l.Answers("project:shop", "c9", "claim1", begin); !ok || a.Hold != "h_5" {
		t.Errorf("after a restart: %+v, %v", a, ok)
	}
}
