package lemma_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"
)

func TestNewIDIsAULID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "ms"))
		entropy := rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "entropy")
		got, err := lemma.NewID(lemma.IDTurn, at, bytes.NewReader(entropy))
		if err != nil {
			t.Fatal(err)
		}
		want, err := ulid.New(ulid.Timestamp(at), bytes.NewReader(entropy))
		if err != nil {
			t.Fatal(err)
		}
		if got != "t_"+strings.ToLower(want.String()) {
			t.Fatalf("got %s, a ULID is %s", got, want)
		}
	})
	if _, err := lemma.NewID(lemma.IDHold, time.UnixMilli(1), iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("no entropy: %v", err)
	}
}

func TestIDsSortByTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	full := bytes.Repeat([]byte{0xff}, 10)
	before, err := lemma.NewID(lemma.IDFact, at, bytes.NewReader(full))
	if err != nil {
		t.Fatal(err)
	}
	after, err := lemma.NewID(lemma.IDFact, at.Add(time.Millisecond), bytes.NewReader(make([]byte, 10)))
	if err != nil {
		t.Fatal(err)
	}
	if before >= after {
		t.Errorf("%s does not sort before %s", before, after)
	}
}

func TestTimeHasNineDigitsAndUTC(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, 500, time.FixedZone("x", 3600))
	if got := lemma.Time(at); got != "2026-03-01T12:00:00.000000500Z" {
		t.Error(got)
	}
}

func TestShort(t *testing.T) {
	all := []string{"h_01aaaa7f3c", "h_01bbbb7f3c", "h_01cccc9999"}
	for id, want := range map[string]string{all[0]: "a7f3c", all[1]: "b7f3c", all[2]: "9999", "h_x": "h_x"} {
		if got := lemma.Short(id, all); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestOrders(t *testing.T) {
	if lemma.Class("new").Rank() != lemma.Destructive.Rank() {
		t.Error("an unknown class must rank as destructive")
	}
	if got := lemma.MaxClass(lemma.Change, lemma.Edit); got != lemma.Change {
		t.Error(got)
	}
	if got := lemma.Stronger(lemma.DecReleased, lemma.DecCaught); got != lemma.DecCaught {
		t.Error(got)
	}
	for _, o := range []lemma.Operator{"=", "!=", "<", "<=", ">", ">=", "contains", "not_contains"} {
		if !o.Valid() {
			t.Errorf("%s is of the closed set", o)
		}
	}
	if lemma.Operator("~").Valid() || lemma.Operator("").Valid() {
		t.Error("an operator outside the closed set is valid")
	}
}
