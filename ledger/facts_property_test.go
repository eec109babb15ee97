package ledger_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// world is the reference: what the contract says of facts, answers and knowledge,
// in maps and without an index.
type world struct {
	now       time.Time
	facts     map[string]*lemma.Fact
	answers   []said
	knowledge map[string]lemma.Knowledge
	untold    map[string][]string // successor → ids of what it ended and nobody was told of
	told      map[string]int      // how often a block told the end of a fact
	n         int
}

// said is an answer that reaches further than its turn.
type said struct {
	scope, claim, conversation string
	answer                     lemma.AnswerKind
	end                        time.Time
	withdrawn                  bool
}

func (w *world) id(letter string) string {
	w.n++
	return fmt.Sprintf("%s_%04d", letter, w.n)
}

// current is the active fact of an identity, whatever the time.
func (w *world) current(scope, subject, key string) *lemma.Fact {
	for _, f := range w.facts {
		if f.Status == lemma.StatusActive && f.Scope == scope && f.Subject == subject && f.Key == key {
			return f
		}
	}
	return nil
}

func (w *world) over(f *lemma.Fact) bool {
	end, err := time.Parse(time.RFC3339Nano, *f.ExpiresAt)
	return err == nil && !w.now.Before(end)
}

func (w *world) end(f *lemma.Fact, status lemma.FactStatus, by string) {
	f.Status = status
	if by != "" {
		f.SupersededBy = &by
	}
	delete(w.untold, f.ID)
}

// write makes a fact the one of its identity and returns the change, if there is
// one to tell.
func (w *world) write(f lemma.Fact) (drafts []ledger.Draft) {
	drafts = append(drafts, write(f))
	old := w.current(f.Scope, f.Subject, f.Key)
	w.facts[f.ID] = &f
	if old == nil {
		// One that went stale before points at what came after it, too.
		var last *lemma.Fact
		for _, o := range w.facts {
			if o.ID != f.ID && o.Scope == f.Scope && o.Subject == f.Subject && o.Key == f.Key && (last == nil || o.ID > last.ID) {
				last = o
			}
		}
		if last != nil && last.Status == lemma.StatusStale {
			w.end(last, lemma.StatusStale, f.ID)
		}
		return drafts
	}
	differs := old.Value != f.Value || f.Value == "" && old.Claim != f.Claim
	if differs && !w.over(old) {
		w.end(old, lemma.StatusContradicted, f.ID)
		w.untold[f.ID] = append(w.untold[f.ID], old.ID)
		return append(drafts, ledger.Draft{Body: lemma.FactContradicted{Contract: lemma.Contract, Fact: old.ID, By: f.ID, Delta: "it changed"}})
	}
	w.end(old, lemma.StatusStale, f.ID)
	return drafts
}

func (w *world) find(scope, conversation, claim string) (lemma.AnswerKind, bool) {
	for i := len(w.answers) - 1; i >= 0; i-- {
		a := w.answers[i]
		if a.scope == scope && a.claim == claim && !a.withdrawn && w.now.Before(a.end) && (a.conversation == "" || a.conversation == conversation) {
			return a.answer, true
		}
	}
	return "", false
}

var (
	worldScopes = []string{"host", "project:a"}
	worldClaims = []string{"claim0", "claim1"}
)

// act draws one thing that happens and tells both: the drafts go to the ledger.
func (w *world) act(t *rapid.T) []ledger.Draft {
	scope := rapid.SampledFrom(worldScopes).Draw(t, "scope")
	claim := rapid.SampledFrom(worldClaims).Draw(t, "claim")
	known := func() *lemma.Fact {
		ids := make([]string, 0, len(w.facts))
		for id := range w.facts {
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return nil
		}
		slices.Sort(ids)
		return w.facts[rapid.SampledFrom(ids).Draw(t, "fact")]
	}
	switch act := rapid.SampledFrom([]string{"measure", "measure", "answer", "correct", "waive", "conflict", "invalidate", "knowledge"}).Draw(t, "act"); act {
	case "measure":
		f := factOf(w.id("f"), scope, fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "value")), rapid.Int64Range(20, 90).Draw(t, "ttl"), w.now)
		f.Key = rapid.SampledFrom([]string{"limit", "workers"}).Draw(t, "key")
		return w.write(f)
	case "answer", "correct", "waive":
		kind := map[string]lemma.AnswerKind{"answer": lemma.AnswerConfirm, "correct": lemma.AnswerCorrect, "waive": lemma.AnswerWaive}[act]
		reach := rapid.SampledFrom([]lemma.AnswerScope{lemma.ScopeOnce, lemma.ScopeTask, lemma.ScopeProject}).Draw(t, "reach")
		h, end := holdOf(w.id("h"), claim), w.now.Add(time.Minute)
		h.Scope = scope
		drafts := []ledger.Draft{{Body: lemma.HoldOpened{Contract: lemma.Contract, Hold: h}}, {Body: answer(h.ID, claim, kind, reach, end)}}
		switch reach {
		case lemma.ScopeTask:
			w.answers = append(w.answers, said{scope: scope, claim: claim, conversation: h.Conversation, answer: kind, end: end})
		case lemma.ScopeProject:
			w.answers = append(w.answers, said{scope: scope, claim: claim, answer: kind, end: end})
			if kind != lemma.AnswerWaive {
				f := factOf(w.id("f"), scope, "", 60, w.now)
				f.Subject, f.Key, f.Claim, f.Provenance = "person", claim, act, lemma.Told
				drafts = append(drafts, w.write(f)...)
			}
		}
		return drafts
	case "conflict": // a reading contradicts what a person said
		told := w.current(scope, "person", claim)
		reading := w.current(scope, "proxy.config@1", "limit")
		if told == nil || reading == nil {
			return nil
		}
		w.end(told, lemma.StatusContradicted, reading.ID)
		w.untold[reading.ID] = append(w.untold[reading.ID], told.ID)
		return []ledger.Draft{{Body: lemma.FactContradicted{Contract: lemma.Contract, Fact: told.ID, By: reading.ID, Delta: "it was told otherwise"}}}
	case "invalidate":
		f := known()
		if f == nil {
			return nil
		}
		w.end(f, lemma.StatusInvalidated, "")
		if f.Provenance == lemma.Told {
			for i, a := range w.answers {
				if a.scope == f.Scope && a.claim == f.Key && a.answer != lemma.AnswerWaive {
					w.answers[i].withdrawn = true
				}
			}
		}
		return []ledger.Draft{{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: f.ID, Reason: "not so", By: "a person"}}}
	}
	k := lemma.Knowledge{ID: fmt.Sprint("k_", rapid.IntRange(0, 2).Draw(t, "piece")), Scope: scope, Text: claim + " matters", Topics: []string{}, Sensitivity: "internal"}
	op := rapid.SampledFrom([]lemma.KnowledgeOp{lemma.KnowledgeAdded, lemma.KnowledgeEdited, lemma.KnowledgeRemoved}).Draw(t, "op")
	if w.knowledge[k.ID] = k; op == lemma.KnowledgeRemoved {
		delete(w.knowledge, k.ID)
	}
	return []ledger.Draft{{Body: lemma.KnowledgeChanged{Contract: lemma.Contract, Op: op, Knowledge: k}}}
}

// sweep is what Expire must do.
func (w *world) sweep() (n int) {
	for _, f := range w.facts {
		if f.Status == lemma.StatusActive && w.over(f) {
			w.end(f, lemma.StatusStale, "")
			n++
		}
	}
	return n
}

// compare holds the ledger against the reference.
func (w *world) compare(t *rapid.T, l *ledger.Ledger) {
	t.Helper()
	var active []string
	for id, want := range w.facts {
		got, err := l.Fact(id)
		if err != nil || got.Status != want.Status || gocmp.Diff(want.SupersededBy, got.SupersededBy) != "" {
			t.Fatalf("%s is %s by %v, want %s by %v, %v", id, got.Status, show(got.SupersededBy), want.Status, show(want.SupersededBy), err)
		}
		if want.Status != lemma.StatusActive {
			continue
		}
		if by, ok := l.FactBy(want.Scope, want.Subject, want.Key); !ok || by.ID != id {
			t.Fatalf("%s is not the fact of its identity: %s, %t", id, by.ID, ok)
		}
		if !w.over(want) {
			active = append(active, id)
		}
	}
	// Swept or not, what is over is in no list of what holds now.
	page, err := l.Facts(ledger.FactFilter{Status: lemma.StatusActive, At: w.now, Limit: ledger.MaxLimit})
	var listed []string
	for _, f := range page.Items {
		listed = append(listed, f.ID)
	}
	slices.Sort(active)
	slices.Sort(listed)
	if err != nil || !slices.Equal(active, listed) {
		t.Fatalf("active %v, listed %v, %v", active, listed, err)
	}
	for _, scope := range worldScopes {
		for _, claim := range worldClaims {
			for _, conversation := range []string{"c1", "c2"} {
				want, found := w.find(scope, conversation, claim)
				if got, ok := l.Answers(scope, conversation, claim, w.now); ok != found || got.Answer != want {
					t.Fatalf("answer to %s in %s %s: %q %t, want %q %t", claim, scope, conversation, got.Answer, ok, want, found)
				}
			}
		}
	}
	kept, err := l.Knowledge()
	want := make([]lemma.Knowledge, 0, len(w.knowledge))
	for _, k := range w.knowledge {
		want = append(want, k)
	}
	slices.SortFunc(want, func(a, b lemma.Knowledge) int { return cmp.Compare(a.ID, b.ID) })
	if d := gocmp.Diff(want, kept.Items); d != "" || err != nil {
		t.Fatal(d, err)
	}
	w.deltas(t, l)
}

func show(s *string) string {
	if s == nil {
		return "nobody"
	}
	return *s
}

// deltas compares the changes that wait for a block, and returns them.
func (w *world) deltas(t *rapid.T, l *ledger.Ledger) (ids []string) {
	t.Helper()
	got, err := l.Deltas(worldScopes, w.now)
	var want, have []string
	for by, ended := range w.untold {
		if f := w.facts[by]; f.Status == lemma.StatusActive && !w.over(f) {
			for _, id := range ended {
				want = append(want, id+" by "+by)
			}
		}
	}
	for _, d := range got {
		have = append(have, d.Old.ID+" by "+d.Fact.ID)
		ids = append(ids, d.Fact.ID)
	}
	slices.Sort(want)
	slices.Sort(have)
	if err != nil || !slices.Equal(want, have) {
		t.Fatalf("changes %v, want %v, %v", have, want, err)
	}
	return slices.Compact(ids)
}

// TestFactsAgainstAReference lets everything happen that ends a fact, in any
// order and over restarts and refolds, and compares each step with the reference.
func TestFactsAgainstAReference(t *testing.T) {
	steps := 4 // of several acts each
	if *thorough {
		steps = 40
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		w := &world{now: begin, facts: map[string]*lemma.Fact{}, knowledge: map[string]lemma.Knowledge{}, untold: map[string][]string{}, told: map[string]int{}}
		b.opt.Now = func() time.Time { return w.now }
		l, err := ledger.Open(b.path(), b.opt)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close() }()
		ctx := context.Background()
		for range rapid.IntRange(1, steps).Draw(rt, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
			var drafts []ledger.Draft
			for range rapid.IntRange(0, 4).Draw(rt, "acts") {
				drafts = append(drafts, w.act(rt)...)
			}
			if len(drafts) > 0 {
				if _, err := l.Append(ctx, drafts...); err != nil {
					rt.Fatal(err)
				}
			}
			switch rapid.SampledFrom([]string{"", "", "expire", "tell", "restart", "rebuild"}).Draw(rt, "between") {
			case "expire":
				want := w.sweep()
				if n, err := l.Expire(ctx, w.now); n != want || err != nil {
					rt.Fatalf("expired %d, want %d, %v", n, want, err)
				}
			case "tell":
				ids := w.deltas(rt, l)
				for _, id := range ids {
					for _, ended := range w.untold[id] {
						if w.told[ended]++; w.told[ended] > 1 {
							rt.Fatalf("the end of %s was told twice", ended)
						}
					}
					delete(w.untold, id)
				}
				if _, err := l.Append(ctx, ledger.Draft{Turn: "t_1", Body: lemma.TurnInjected{Contract: lemma.Contract, BlockBlob: sum(""), Facts: []string{}, Deltas: ids}, Blobs: [][]byte{{}}}); err != nil {
					rt.Fatal(err)
				}
			case "restart", "rebuild":
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "refold") {
					if _, err := ledger.Rebuild(ctx, b.path(), b.opt); err != nil {
						rt.Fatal(err)
					}
				}
				if l, err = ledger.Open(b.path(), b.opt); err != nil {
					rt.Fatal(err)
				}
			}
			w.compare(rt, l)
		}
		r, err := l.Verify(ctx, nil)
		if err != nil || !r.OK() {
			rt.Fatalf("%+v, %v", r, err)
		}
	})
}

// TestOneSuccessor: of two that ended the same fact the first counts, one that a
// person withdrew stays withdrawn, and an id that was written again for something
// else is no fact of its old identity.
func TestOneSuccessor(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	contradict := func(fact, by string) {
		add(t, l, ledger.Draft{Body: lemma.FactContradicted{Contract: lemma.Contract, Fact: fact, By: by, Delta: fact + " by " + by}})
	}
	at := func(id, key, value string) lemma.Fact {
		f := factOf(id, "host", value, 300, begin)
		f.Key = key
		return f
	}
	add(t, l, write(at("f_1", "limit", "1")), write(at("f_2", "limit", "2")), write(at("f_3", "other", "3")))
	contradict("f_1", "f_2")
	contradict("f_1", "f_2") // written twice
	contradict("f_1", "f_3") // too late
	contradict("f_1", "f_1")
	contradict("f_9", "f_3")
	contradict("f_3", "f_9") // by something unknown: it ends, and there is nothing to tell
	deltas, err := l.Deltas([]string{"host"}, begin)
	if err != nil || len(deltas) != 1 || deltas[0].Fact.ID != "f_2" || deltas[0].Old.ID != "f_1" || deltas[0].Text != "f_1 by f_2" {
		t.Errorf("%+v, %v", deltas, err)
	}
	if d, _ := l.Deltas([]string{"project:a"}, begin); len(d) != 0 {
		t.Errorf("another scope's: %+v", d)
	}
	if d, _ := l.Deltas([]string{"host"}, begin.Add(time.Hour)); len(d) != 0 {
		t.Errorf("of a fact that is over: %+v", d)
	}
	add(t, l, ledger.Draft{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: "f_2", Reason: "no", By: "me"}})
	contradict("f_2", "f_3")
	if f, _ := l.Fact("f_2"); f.Status != lemma.StatusInvalidated {
		t.Errorf("a withdrawn fact is %s", f.Status)
	}
	if d, _ := l.Deltas([]string{"host"}, begin); len(d) != 0 {
		t.Errorf("of a withdrawn fact: %+v", d)
	}
	add(t, l, write(at("f_4", "a", "1")))
	add(t, l, write(at("f_4", "b", "2")))
	if f, ok := l.FactBy("host", "proxy.config@1", "a"); ok {
		t.Errorf("of another identity: %+v", f)
	}
	add(t, l, write(at("f_5", "a", "9")))
	if f, _ := l.Fact("f_4"); f.Status != lemma.StatusActive {
		t.Errorf("ended by the fact of another identity: %s", f.Status)
	}
	verified(t, l)
}
