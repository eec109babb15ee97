package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"pgregory.net/rapid"
)

// anyDraft draws bodies that refer to a small world, so that they meet: facts of
// the same identity, answers to holds that are shut, turns that were never opened.
func anyDraft(t *rapid.T, now time.Time) ledger.Draft {
	pick := func(name string, n int) string {
		return fmt.Sprintf("%s_%d", name, rapid.IntRange(0, n-1).Draw(t, name))
	}
	turn := ""
	if rapid.Bool().Draw(t, "in a turn") {
		turn = pick("t", 4)
	}
	scope := rapid.SampledFrom([]string{"host", "project:a"}).Draw(t, "scope")
	text := rapid.SampledFrom([]string{"", "x", "<&>", "a\x00b", "\u2028", "ü", "\xff"}).Draw(t, "text")
	switch rapid.IntRange(0, 15).Draw(t, "body") {
	case 0:
		o := opened(pick("c", 2) + text)
		o.RequestKind = rapid.SampledFrom([]string{"new", "side:title", "subagent"}).Draw(t, "kind")
		o.Model = pick("m", 2)
		return ledger.Draft{Turn: turn, Body: o}
	case 1, 2:
		f := factOf(pick("f", 6), scope, text, rapid.Int64Range(0, 100).Draw(t, "ttl"), now)
		f.Key = pick("key", 2)
		if rapid.Bool().Draw(t, "told") { // so that withdrawing it meets answers
			f.Provenance, f.Key = lemma.Told, pick("claim", 2)
		}
		f.Status = rapid.SampledFrom([]lemma.FactStatus{"", lemma.StatusActive, lemma.StatusStale}).Draw(t, "status")
		if rapid.Bool().Draw(t, "no end") {
			f.ExpiresAt = nil
		}
		return write(f)
	case 3:
		return ledger.Draft{Turn: turn, Body: lemma.FactContradicted{Fact: pick("f", 6), By: pick("f", 6)}}
	case 4:
		return ledger.Draft{Body: lemma.FactInvalidated{Fact: pick("f", 6)}}
	case 5:
		h := holdOf(pick("h", 3), pick("claim", 2))
		h.Scope = scope
		return ledger.Draft{Turn: turn, Body: lemma.HoldOpened{Hold: h}}
	case 6:
		kind := rapid.SampledFrom([]lemma.AnswerKind{lemma.AnswerConfirm, lemma.AnswerWaive, lemma.AnswerDeny}).Draw(t, "answer")
		reach := rapid.SampledFrom([]lemma.AnswerScope{lemma.ScopeOnce, lemma.ScopeTask, lemma.ScopeProject}).Draw(t, "reach")
		return ledger.Draft{Turn: turn, Body: answer(pick("h", 3), pick("claim", 2), kind, reach, now.Add(time.Hour))}
	case 7:
		if rapid.Bool().Draw(t, "revoked") {
			return ledger.Draft{Turn: turn, Body: lemma.AnswerRevoked{Hold: pick("h", 3), Items: []string{"1", "2"}}}
		}
		return ledger.Draft{Turn: turn, Body: lemma.HoldExpiredBody{Hold: pick("h", 3)}}
	case 8:
		return ledger.Draft{Turn: turn, Body: lemma.GateDecided{Decision: lemma.DecCaught, Class: lemma.Change, Mode: lemma.Block}}
	case 9:
		return ledger.Draft{Turn: turn, Body: lemma.ActionDecided{State: rapid.SampledFrom([]string{"ALLOW", "DENY", "ESCALATE"}).Draw(t, "state")}}
	case 10:
		return ledger.Draft{Turn: turn, Body: lemma.TurnDeclared{Rung: rapid.IntRange(-1, 6).Draw(t, "rung"), Lemmas: []lemma.Lemma{{Claim: text}}}}
	case 11:
		return ledger.Draft{Turn: turn, Body: lemma.TurnInjected{Conversation: pick("c", 2), BlockBlob: sum(text), Anchor: text}, Blobs: [][]byte{[]byte(text)}}
	case 13, 14:
		op := rapid.SampledFrom([]lemma.KnowledgeOp{lemma.KnowledgeAdded, lemma.KnowledgeEdited, lemma.KnowledgeRemoved}).Draw(t, "op")
		return ledger.Draft{Body: lemma.KnowledgeChanged{Op: op, Knowledge: lemma.Knowledge{ID: pick("k", 3), Scope: scope, Text: text, Topics: []string{}, Sensitivity: "internal"}}}
	case 12:
		return ledger.Draft{Turn: turn, Body: lemma.TurnUndeclared{Tried: []string{text}}}
	}
	return ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased, Error: text}}
}

// TestFoldIsRefold appends what it likes, with sweeps and restarts between, and
// expects the folds to be what a second fold of the chain gives.
func TestFoldIsRefold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		now := begin
		b.opt.Now = func() time.Time { return now }
		l, err := ledger.Open(b.path(), b.opt)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close() }()
		for range rapid.IntRange(1, 12).Draw(rt, "groups") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "seconds")) * time.Second)
			var drafts []ledger.Draft
			for range rapid.IntRange(1, 8).Draw(rt, "drafts") {
				drafts = append(drafts, anyDraft(rt, now))
			}
			if _, err := l.Append(context.Background(), drafts...); err != nil {
				rt.Fatal(err)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "between") {
			case 0:
				if _, err := l.Expire(context.Background(), now); err != nil {
					rt.Fatal(err)
				}
			case 1:
				if _, err := l.Forget(context.Background(), now); err != nil {
					rt.Fatal(err)
				}
			case 2:
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				if l, err = ledger.Open(b.path(), b.opt); err != nil {
					rt.Fatal(err)
				}
			}
		}
		r, err := l.Verify(context.Background(), nil)
		if err != nil || !r.OK() {
			rt.Fatalf("%+v, %v", r, err)
		}
	})
}

// TestVerifyBesideAppends: a check of a living ledger finds nothing wrong.
func TestVerifyBesideAppends(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			turn := fmt.Sprint("t_", i)
			add(t, l, ledger.Draft{Turn: turn, Body: opened("c")}, write(factOf(fmt.Sprint("f_", i), "host", fmt.Sprint(i), 300, begin)), ledger.Draft{Turn: turn, Body: lemma.TurnClosed{}})
		}
	}()
	for range 15 {
		r, err := l.Verify(context.Background(), nil)
		if err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	close(stop)
	<-done
}
