package ledger_test

import (
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestClockSteps: a clock that is set back and forth changes no order, takes no
// young blob for an old one, and expires facts by the time that it is asked for.
func TestClockSteps(t *testing.T) {
	b := newBench(t)
	now := begin
	b.opt.Now = func() time.Time { return now }
	l := b.open(t)
	blob := func(turn string) {
		t.Helper()
		add(t, l, ledger.Draft{Turn: turn, Body: opened("c")},
			ledger.Draft{Turn: turn, Body: lemma.TurnInjected{Conversation: "c", BlockBlob: sum(turn), Anchor: "a"}, Blobs: [][]byte{[]byte(turn)}})
	}
	blob("t_old")
	now = begin.Add(48 * time.Hour)
	blob("t_young")
	add(t, l, write(factOf("f_1", "host", "1m", 300, now)))
	now = begin.Add(-1000 * time.Hour) // set back: an empty battery
	for range 40 {
		add(t, l, note("set back"))
	}
	now = begin.Add(49 * time.Hour)
	blob("t_last")
	var prev uint64
	es, err := l.Entries(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range es {
		if i > 0 && e.Seq != prev+1 {
			t.Errorf("entry %d follows %d", e.Seq, prev)
		}
		prev = e.Seq
	}
	n, err := l.Expire(t.Context(), begin)
	if err != nil || n != 0 {
		t.Errorf("%d facts expired before their time, %v", n, err)
	}
	if n, err := l.Expire(t.Context(), now.Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("%d facts expired, %v", n, err)
	}
	forgotten, err := l.Forget(t.Context(), begin.Add(time.Hour))
	if err != nil || forgotten != 1 {
		t.Errorf("%d blobs forgotten, %v", forgotten, err)
	}
	for turn, there := range map[string]bool{"t_old": false, "t_young": true, "t_last": true} {
		if _, err := l.Blob(sum(turn)); (err == nil) != there {
			t.Errorf("blob of %s: %v", turn, err)
		}
	}
	// The time that is asked for goes back, too: nothing more is old then.
	if n, err := l.Forget(t.Context(), begin); err != nil || n != 0 {
		t.Errorf("%d blobs forgotten, %v", n, err)
	}
	size, err := l.Size(now)
	if err != nil || size.Entries != l.Head().Size || size.Used() <= 0 || size.Used() > size.File {
		t.Errorf("size: %+v, %v", size, err)
	}
	if size.Day == 0 || size.Day >= size.Entries || size.PerDay() <= 0 {
		t.Errorf("a day: %d of %d entries, %d bytes", size.Day, size.Entries, size.PerDay())
	}
	verified(t, reopen(t, b, l))
}
