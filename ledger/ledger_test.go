package ledger_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// testKey is the same in every run, so that origins and vectors are, too.
var testKey = ed25519.NewKeyFromSeed([]byte("gettier ledger test key, 32 byte"))

// begin is when every test's clock starts.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type bench struct {
	dir string
	opt ledger.Options
}

func newBench(t testing.TB) *bench {
	dir := t.TempDir()
	return &bench{dir: dir, opt: ledger.Options{
		Key: testKey, CheckpointFile: filepath.Join(dir, "keys", "checkpoint"), Version: "test",
		Now: func() time.Time { return begin }, MmapSize: 64 << 20, LockWait: 100 * time.Millisecond,
	}}
}

func (b *bench) path() string { return filepath.Join(b.dir, "ledger.db") }

func (b *bench) open(t testing.TB) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(b.path(), b.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func reopen(t testing.TB, b *bench, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b.open(t)
}

func add(t testing.TB, l *ledger.Ledger, drafts ...ledger.Draft) ledger.Receipt {
	t.Helper()
	r, err := l.Append(context.Background(), drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func opened(conversation string) lemma.TurnOpened {
	return lemma.TurnOpened{Contract: lemma.Contract, RequestKind: "new", Format: "openai", Upstream: "up", Model: "m",
		Conversation: conversation, Key: "k", Scope: "project:shop", Class: lemma.Change, Reasons: []string{"verb:deploy"}}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// verified fails the test unless every check of Verify passes.
func verified(t testing.TB, l *ledger.Ledger) ledger.Report {
	t.Helper()
	r, err := l.Verify(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Size != l.Head().Size || r.Root != fmt.Sprintf("%x", l.Head().Root) {
		t.Fatalf("verify: %+v", r)
	}
	return r
}

func TestAppendAndRead(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	r := add(t, l, ledger.Draft{Turn: "t_a", Body: opened("c1")}, ledger.Draft{Turn: "t_a", Body: lemma.TurnClosed{Contract: lemma.Contract, Decision: lemma.DecReleased, Status: 200}})
	if r.First != 1 || r.Last != 2 || r.Size != 3 || r.Root != l.Head().Root {
		t.Fatalf("receipt %+v, head %+v", r, l.Head())
	}
	e, raw, err := l.At(2)
	if err != nil || e.Kind != "turn.closed" || len(raw) == 0 {
		t.Fatalf("entry 2: %+v, %v", e, err)
	}
	row, err := l.Turn("t_a")
	if err != nil || row.ClosedAt == "" || row.Decision != lemma.DecReleased || row.Stage != lemma.KTurnClosed || row.Entries != 2 {
		t.Fatalf("turn: %+v, %v", row, err)
	}
	if _, _, err := l.At(3); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("entry 3: %v", err)
	}
	l = reopen(t, b, l)
	if h := l.Head(); h.Size != 4 {
		t.Fatalf("head after reopen: %+v", h)
	}
	if es, err := l.TurnEntries("t_a"); err != nil || len(es) != 2 {
		t.Fatalf("turn entries: %v, %v", es, err)
	}
}
