package ledger_test

import (
	"context"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestAppendAllocations counts what appending and verifying an entry allocates,
// writer and file included: time depends on the machine, this does not. The
// bounds are a tenth above what it is.
func TestAppendAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates, too")
	}
	b := newBench(t)
	l := b.open(t)
	body := lemma.StateLost{Contract: lemma.Contract, Reason: strings.Repeat("x", 800)}
	add(t, l, ledger.Draft{Turn: "t_1", Body: opened("c1")})
	const batch = 200
	plain, folded := make([]ledger.Draft, batch), make([]ledger.Draft, batch)
	for i := range batch {
		plain[i].Body = body
		folded[i] = ledger.Draft{Turn: "t_1", Body: body}
	}
	for _, c := range []struct {
		name   string
		most   float64 // an entry
		drafts []ledger.Draft
	}{{"plain", 7.5, plain}, {"of a turn", 11, folded}} {
		got := testing.AllocsPerRun(10, func() {
			if _, err := l.Append(context.Background(), c.drafts...); err != nil {
				t.Error(err)
			}
		}) / batch
		t.Logf("%s: %.2f an entry", c.name, got)
		if got > c.most {
			t.Errorf("%s: an entry allocates %.2f times, at most %.2f", c.name, got, c.most)
		}
	}
	size := float64(l.Head().Size)
	got := testing.AllocsPerRun(3, func() {
		if r, err := l.Verify(context.Background(), nil); err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	}) / size
	if t.Logf("verify: %.2f an entry", got); got > 1.7 {
		t.Errorf("a verification allocates %.2f times an entry, at most 1.70", got)
	}
}
