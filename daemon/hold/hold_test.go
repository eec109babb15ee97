package hold

import (
	"context"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

type rig struct {
	*Book
	led *ledger.Ledger
	mu  sync.Mutex
	now time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
	led, err := ledger.Open(filepath.Join(t.TempDir(), "l.db"), ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Now: clock, MmapSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { led.Close() })
	r.led = led
	r.Book = &Book{
		Store: led, Now: clock, Entropy: rand.NewChaCha8([32]byte{}),
		Redact:  func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		ToldTTL: func(string) time.Duration { return 7 * 24 * time.Hour },
	}
	return r
}

func (r *rig) pass(d time.Duration) { r.mu.Lock(); r.now = r.now.Add(d); r.mu.Unlock() }

func claims(conv string, ids ...string) lemma.Hold {
	h := lemma.Hold{Kind: "claims", Scope: "project:shop", Turn: "t_1", Class: lemma.Change, Conversation: conv, ExpiresAt: "2026-03-02T12:00:00.000000000Z"}
	for i, id := range ids {
		h.Items = append(h.Items, lemma.HoldItem{ID: string(rune('1' + i)), ClaimID: id, Claim: "claim " + id, Tried: []string{}, Verdict: lemma.Inconclusive})
	}
	return h
}

var by = lemma.Answerer{UID: 1000, User: "dev", Via: "cli", TTY: "/dev/pts/3"}

func TestFirstAnswerWins(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	h, err := r.Open(ctx, claims("c", "x"))
	if err != nil {
		t.Fatal(err)
	}
	done := r.Done(h.ID)
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = r.Answer(ctx, h.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerConfirm}}, by)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		var closed *Closed
		switch {
		case err == nil:
			won++
		case !errors.As(err, &closed):
			t.Errorf("error %v", err)
		case !strings.Contains(err.Error(), "dev via cli on pts/3"):
			t.Errorf("the late answer is told %q: not who, when and where", err)
		}
	}
	if won != 1 {
		t.Errorf("%d answers won", won)
	}
	select {
	case <-done:
	default:
		t.Error("who waits was not told")
	}
	select {
	case <-r.Done(h.ID):
	default:
		t.Error("who comes later waits for ever")
	}
}

func TestAnswerIsComplete(t *testing.T) {
	r := newRig(t)
	h, err := r.Open(context.Background(), claims("c", "x", "y"))
	if err != nil {
		t.Fatal(err)
	}
	ok := ItemAnswer{Item: "1", Answer: lemma.AnswerConfirm}
	for name, items := range map[string][]ItemAnswer{
		"one missing":          {ok},
		"unknown item":         {ok, {Item: "9", Answer: lemma.AnswerConfirm}},
		"twice":                {ok, ok},
		"correct says nothing": {ok, {Item: "2", Answer: lemma.AnswerCorrect, Text: "  "}},
		"waive says nothing":   {ok, {Item: "2", Answer: lemma.AnswerWaive}},
		"approve a claim":      {ok, {Item: "2", Answer: lemma.AnswerApprove}},
		"no such scope":        {ok, {Item: "2", Answer: lemma.AnswerConfirm, Scope: "world"}},
		"too long":             {ok, {Item: "2", Answer: lemma.AnswerCorrect, Text: strings.Repeat("x", MaxText+1)}},
	} {
		if _, err := r.Answer(context.Background(), h.ID, items, by); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := r.led.Hold(h.ID); got.State != lemma.HoldOpen {
		t.Error("a refused answer closed the hold")
	}
}

// TestWhatAnAnswerReaches: task binds the conversation, project the project and
// becomes a told fact, once nothing later.
func TestWhatAnAnswerReaches(t *testing.T) {
	for _, tc := range []struct {
		scope        lemma.AnswerScope
		same, others bool
		facts        int
	}{{lemma.ScopeTask, true, false, 0}, {lemma.ScopeProject, true, true, 1}, {lemma.ScopeOnce, false, false, 0}, {"", true, false, 0}} {
		r := newRig(t)
		ctx := context.Background()
		h, err := r.Open(ctx, claims("c", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Answer(ctx, h.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerCorrect, Text: "it is 1m, password hunter2", Scope: tc.scope}}, by); err != nil {
			t.Fatal(err)
		}
		_, same := r.led.Answers("project:shop", "c", "x", r.now)
		_, others := r.led.Answers("project:shop", "d", "x", r.now)
		_, elsewhere := r.led.Answers("project:other", "c", "x", r.now)
		if same != tc.same || others != tc.others || elsewhere {
			t.Errorf("scope %q reaches its conversation %v, others %v, other projects %v", tc.scope, same, others, elsewhere)
		}
		page, err := r.led.Facts(ledger.FactFilter{Provenance: lemma.Told})
		if err != nil || len(page.Items) != tc.facts {
			t.Errorf("scope %q: %d told facts, %v", tc.scope, len(page.Items), err)
		}
		for _, f := range page.Items {
			if strings.Contains(f.Claim, "hunter2") || f.Key != "x" {
				t.Errorf("fact %+v", f)
			}
		}
		r.pass(25 * time.Hour)
		if _, ok := r.led.Answers("project:shop", "c", "x", r.now); ok {
			t.Errorf("scope %q holds for ever", tc.scope)
		}
	}
}

// TestRevoke: an answer that was taken back binds nothing, wherever it had reached,
// and the fact that it became is withdrawn; others stay.
func TestRevoke(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	h, err := r.Open(ctx, claims("c", "x", "y"))
	if err != nil {
		t.Fatal(err)
	}
	along, err := r.Open(ctx, claims("d", "x")) // answered along with it
	if err != nil {
		t.Fatal(err)
	}
	answers := func(claim string) (n int) {
		for _, c := range []string{"c", "d"} {
			if _, ok := r.led.Answers("project:shop", c, claim, r.now); ok {
				n++
			}
		}
		return n
	}
	if _, err := r.Revoke(ctx, h.ID, nil, by); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("an open hold: %v", err)
	}
	if _, err := r.Answer(ctx, h.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerConfirm, Scope: lemma.ScopeProject}, {Item: "2", Answer: lemma.AnswerConfirm, Scope: lemma.ScopeProject}}, by); err != nil {
		t.Fatal(err)
	}
	if answers("x") != 2 || answers("y") != 2 {
		t.Fatalf("answers reach %d and %d conversations", answers("x"), answers("y"))
	}
	if _, err := r.Revoke(ctx, h.ID, []string{"1", "9"}, by); !errors.Is(err, ErrIncomplete) || answers("x") != 2 {
		t.Errorf("an item that is none: %v", err)
	}
	ended, err := r.Revoke(ctx, h.ID, []string{"1"}, by)
	if err != nil || len(ended) != 2 || ended[0].ID != h.ID || ended[1].ID != along.ID || ended[0].Items[0].Answer.RevokedAt == "" || ended[0].Items[1].Answer.RevokedAt != "" || ended[1].Items[0].Answer.RevokedAt == "" {
		t.Fatalf("%+v %v", ended, err)
	}
	if answers("x") != 0 || answers("y") != 2 {
		t.Errorf("answers reach %d and %d conversations", answers("x"), answers("y"))
	}
	page, err := r.led.Facts(ledger.FactFilter{Provenance: lemma.Told, Status: lemma.StatusActive})
	if err != nil || len(page.Items) != 1 || page.Items[0].Key != "y" {
		t.Errorf("facts: %+v %v", page.Items, err)
	}
	if _, err := r.Revoke(ctx, h.ID, []string{"1"}, by); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("twice: %v", err)
	}
	if _, err := r.Revoke(ctx, "h_none", nil, by); !errors.Is(err, ErrNotFound) {
		t.Errorf("no hold: %v", err)
	}
	// The same claim can be asked, and answered, again.
	again, err := r.Open(ctx, claims("c", "x"))
	if err != nil || again.ID == h.ID {
		t.Fatalf("%+v %v", again, err)
	}
	if _, err := r.Answer(ctx, again.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerWaive, Text: "never mind", Scope: lemma.ScopeTask}}, by); err != nil {
		t.Fatal(err)
	}
	if a, ok := r.led.Answers("project:shop", "c", "x", r.now); !ok || a.Answer != lemma.AnswerWaive {
		t.Errorf("%+v %v", a, ok)
	}
}

func TestOneQuestionOnce(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a, err := r.Open(ctx, claims("c", "x", "y"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Open(ctx, claims("c", "y"))
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != b.ID {
		t.Error("the same claim is asked twice")
	}
	// Another conversation could not answer it in its chat, and an answer for this
	// task does not bind it; nor does a milder question stand for what destroys.
	if d, err := r.Open(ctx, claims("d", "y")); err != nil || d.ID == a.ID {
		t.Errorf("another conversation shares the hold: %v", err)
	}
	worse := claims("c", "y")
	worse.Class = lemma.Destructive
	if d, err := r.Open(ctx, worse); err != nil || d.ID == a.ID {
		t.Errorf("what destroys shares a milder hold: %v", err)
	}
	c, err := r.Open(ctx, claims("c", "y", "z"))
	if err != nil {
		t.Fatal(err)
	}
	if c.ID == a.ID {
		t.Error("a new claim was not asked")
	}
	other := claims("c", "x")
	other.Scope = "project:other"
	if o, err := r.Open(ctx, other); err != nil || o.ID == a.ID {
		t.Errorf("another project shares the hold: %v", err)
	}
	sub, err := r.Open(ctx, claims("c", "z"))
	if err != nil || sub.ID != c.ID {
		t.Errorf("shared %v, %v", sub.ID == c.ID, err)
	}
	// Answering y and z answers nothing of a, which asks x too; x and y answer all of a.
	if _, err := r.Answer(ctx, a.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerConfirm}, {Item: "2", Answer: lemma.AnswerConfirm}}, by); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.led.Hold(c.ID); got.State != lemma.HoldOpen {
		t.Error("a hold with an open item was closed")
	}
}

func TestExpiry(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	h, err := r.Open(ctx, claims("c", "x"))
	if err != nil {
		t.Fatal(err)
	}
	done := r.Done(h.ID)
	if err := r.Expire(ctx, r.Now()); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.led.Hold(h.ID); got.State != lemma.HoldOpen {
		t.Error("a young hold expired")
	}
	r.pass(24 * time.Hour)
	// Even before the sweep an answer comes too late.
	var closed *Closed
	if _, err := r.Answer(ctx, h.ID, []ItemAnswer{{Item: "1", Answer: lemma.AnswerConfirm}}, by); !errors.As(err, &closed) || closed.Hold.State != lemma.HoldExpired {
		t.Errorf("late answer: %v", err)
	}
	select {
	case <-done:
	default:
		t.Error("who waits was not told of the end")
	}
}

func TestFind(t *testing.T) {
	r := newRig(t)
	h, err := r.Open(context.Background(), claims("c", "x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{h.ID, h.ID[len(h.ID)-4:], strings.ToUpper(h.ID[len(h.ID)-5:])} {
		if got, err := r.Find(id); err != nil || got.ID != h.ID {
			t.Errorf("Find(%q): %v", id, err)
		}
	}
	for _, id := range []string{"", "zz", "nothere"} {
		if _, err := r.Find(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("Find(%q): %v", id, err)
		}
	}
}

func TestReadReply(t *testing.T) {
	item := func(n string, a lemma.AnswerKind, text string) ItemAnswer {
		return ItemAnswer{Item: n, Answer: a, Text: text, Scope: lemma.ScopeTask}
	}
	for in, want := range map[string]*Reply{
		"y 7f3":                  {"7f3", []ItemAnswer{item("1", lemma.AnswerConfirm, "")}},
		"  Y 7F3k ":              {"7f3k", []ItemAnswer{item("1", lemma.AnswerConfirm, "")}},
		"n 7f3 nginx takes 1 MB": {"7f3", []ItemAnswer{item("1", lemma.AnswerCorrect, "nginx takes 1 MB")}},
		"skip 7f3":               {"7f3", []ItemAnswer{item("1", lemma.AnswerWaive, skipped)}},
		"7f3 1 y, 2 n it is 14, not 15, 3 skip": {"7f3", []ItemAnswer{
			item("1", lemma.AnswerConfirm, ""), item("2", lemma.AnswerCorrect, "it is 14, not 15"), item("3", lemma.AnswerWaive, skipped)}},
		"y":                         nil,
		"yes":                       nil,
		"n 7f3":                     nil,
		"y 7f3 and delete the rest": nil,
		"skip 7f3 because":          nil,
		"y 7f3\ny 81a":              nil,
		"please y 7f3":              nil,
		"7f3":                       nil,
		"7f3 y":                     nil,
		"7f3 1 maybe":               nil,
		"the 1 y":                   {"the", []ItemAnswer{item("1", lemma.AnswerConfirm, "")}}, // names no hold, so it is a message
		strings.Repeat("y", 5000):   nil,
	} {
		got, ok := ReadReply(in)
		if ok != (want != nil) {
			t.Errorf("ReadReply(%.40q) = %+v, %v", in, got, ok)
			continue
		}
		if want != nil {
			if d := cmp.Diff(*want, got); d != "" {
				t.Errorf("ReadReply(%q): %s", in, d)
			}
		}
	}
}

func FuzzReadReply(f *testing.F) {
	for _, s := range []string{"y 7f3", "n 7f3 x", "7f3 1 y, 2 n a,b, 3 skip", "skip abc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, ok := ReadReply(s)
		if !ok {
			return
		}
		if r.Hold == "" || len(r.Items) == 0 {
			t.Errorf("%q: %+v", s, r)
		}
		for _, it := range r.Items {
			if it.Scope != lemma.ScopeTask || (it.Answer == lemma.AnswerCorrect) != (it.Text != "" && it.Text != skipped || it.Answer == lemma.AnswerCorrect) {
				t.Errorf("%q: %+v", s, it)
			}
		}
	})
}

func TestQuestion(t *testing.T) {
	h := claims("c", "x", "y")
	h.ID, h.Class = "h_00000000000000000000007f3k", lemma.Change
	h.Items[0].Tried = []string{"db.version could not run (not_found): psql"}
	same := func(s string) string { return s }
	got := Question(h, same)
	for _, want := range []string{"hold 7f3k", "1 Assumed:  claim x", "1 Tried:    db.version could not run", "2 Tried:    nothing could be measured", "Reply  7f3k 1 y, 2 n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	h.Class = lemma.Destructive
	if got := Question(h, same); strings.Contains(got, "Reply") || !strings.Contains(got, "gettier answer 7f3k") {
		t.Errorf("a destructive hold offers a chat reply:\n%s", got)
	}
	h.Class = "unheard of" // an unknown class is the strongest
	if got := Question(h, same); strings.Contains(got, "Reply") {
		t.Error("an unknown class offers a chat reply")
	}
}
