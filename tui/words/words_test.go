package words

import (
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

func TestSpelling(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for _, c := range []struct{ got, want string }{
		{Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(-1234567), "-1,234,567"}, {Thousands(uint64(48211)), "48,211"},
		{Count(1, "entry", "entries"), "1 entry"}, {Count(2000, "entry", "entries"), "2,000 entries"},
		{Span(1500 * time.Millisecond), "1.5 s"}, {Span(12 * time.Second), "12 s"}, {Span(90 * time.Minute), "1 h 30 min"}, {Span(72 * time.Hour), "3 days"},
		{Clock(-time.Second), "0:00"}, {Clock(72 * time.Second), "1:12"}, {Clock(3*time.Hour + 61*time.Second), "3:01:01"},
		{Millis(38), "38 ms"}, {Millis(2100), "2.1 s"},
		{Stamp(lemma.Time(now.Add(-time.Hour)), now), "11:00:00"}, {Stamp(lemma.Time(now.Add(-48*time.Hour)), now), "2026-02-27 12:00"}, {Stamp("soon", now), "soon"},
		{Hash("0123456789abcdef"), "0123456789ab…"}, {Argv([]string{"a", "", "b c", "d'e"}), `a '' 'b c' 'd'\''e'`},
		{Provenance(lemma.Told), "≈ told"}, {Decision(""), "… open"}, {Decision(lemma.DecReleasedUnverified), "· released_unverified"},
		{Verdict(lemma.OutOfScope), "? out_of_scope"}, {Verdicts(lemma.Counts{Contradicted: 1, Told: 2}), "1 contradicted, 2 told"},
		{Rung(1), "forced tool call"}, {Rung(9), "unknown"}, {Tokens(lemma.Usage{Input: 1000, CacheRead: 5}), "1,000 in, 0 out, 5 from cache"},
		{Person(lemma.Answerer{UID: 7}), "uid 7"}, {Asked("side:title", "<session> x"), "(title, asked by the client itself)"}, {Asked("new", "x"), "x"}, {Scope("project:shop"), "shop"}, {Scope("host"), "host"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if d, ok := Between("2026-01-02T03:04:05Z", "2026-01-02T03:04:06.5Z"); !ok || d != 1500*time.Millisecond {
		t.Errorf("between: %v, %v", d, ok)
	}
	if _, ok := Between("x", ""); ok {
		t.Error("a time was read from nothing")
	}
}
