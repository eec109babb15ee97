package rate

import (
	"strconv"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/action"
)

func TestLimiter(t *testing.T) {
	l := New(action.RateLimit{Actions: 3, Seconds: 10, Actors: 2})
	t0 := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	for i, want := range []action.Rate{{Seen: 1}, {Seen: 2}, {Seen: 3}, {Seen: 4, Throttled: true}, {Seen: 4, Throttled: true}} {
		if got := l.Take("a", at(i)); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if got := l.Take("a", at(10)); got != (action.Rate{Seen: 3}) { // the one of second 0 has left, refusals did not count
		t.Errorf("%+v", got)
	}
	if got := l.Take("b", at(10)); got.Seen != 1 {
		t.Errorf("another actor: %+v", got)
	}
	if got := l.Take("c", at(10)); got.Seen != 1 { // b makes room, a is at its limit and stays
		t.Errorf("a third actor: %+v", got)
	}
	if got := l.Take("a", at(10)); !got.Throttled {
		t.Errorf("a throttled actor was forgotten: %+v", got)
	}
	l.Take("c", at(10))
	l.Take("c", at(10))
	if got := l.Take("d", at(10)); !got.Full {
		t.Errorf("no room, and no refusal: %+v", got)
	}
	if got := l.Take("d", at(30)); got.Seen != 1 {
		t.Errorf("room again: %+v", got)
	}
	if got := New(action.RateLimit{}).Take("x", t0); got.Seen != 1 {
		t.Errorf("no limits at all: %+v", got)
	}
}

func BenchmarkTake(b *testing.B) {
	l := New(action.Default().RateLimit)
	now := time.Unix(1_700_000_000, 0)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Take(names[i%len(names)], now)
	}
}
