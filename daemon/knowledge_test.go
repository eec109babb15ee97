package daemon

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/redact"
)

// shelfRig is a daemon as far as knowledge needs one; its clock stands still.
func shelfRig(t *testing.T) backend {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	l, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), MmapSize: 1 << 20, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d := &Daemon{o: Options{Now: now, Entropy: rand.NewChaCha8([32]byte{1})}, ledger: l, redact: redact.New()}
	c := config.Default()
	c.Projects = []config.Project{{Name: "shop", Root: "/srv/shop"}}
	d.conf = &settings{d: d}
	d.conf.cur.Store(&inForce{c: c})
	return backend{d}
}

func TestChangeKnowledge(t *testing.T) {
	b := shelfRig(t)
	ctx, by := context.Background(), lemma.Answerer{UID: 1, User: "dev", Via: "cli"}
	change := func(want error, cs ...ipc.KnowledgeChange) []lemma.Knowledge {
		t.Helper()
		size := b.d.ledger.Head().Size
		out, err := b.ChangeKnowledge(ctx, ipc.KnowledgeEdit{Changes: cs}, by)
		if !errors.Is(err, want) {
			t.Fatalf("%+v: %v, want %v", cs, err, want)
		}
		if err != nil && b.d.ledger.Head().Size != size {
			t.Errorf("%v, and something was written", err)
		}
		return out.Items
	}
	secret := "T4" + "^zq!" + "Lm9xW"
	k := change(nil, ipc.KnowledgeChange{Scope: "project:shop", Text: "  DB_PASSWORD=" + secret + " opens the till ", Topics: []string{" till "}})[0]
	if strings.Contains(k.Text, secret) || k.Sensitivity != "internal" || k.Topics[0] != "till" || !strings.HasPrefix(k.ID, "k_") {
		t.Errorf("kept: %+v", k)
	}
	edit := ipc.KnowledgeChange{ID: k.ID, Was: k.ChangedAt, Scope: k.Scope, Text: "the till opens by itself", Sensitivity: "public"}
	k2 := change(nil, edit)[0]
	if k2.ChangedAt <= k.ChangedAt || k2.CreatedAt != k.CreatedAt {
		t.Errorf("the second version has the first one's time: %+v", k2)
	}
	change(ipcserver.ErrConflict, edit) // what was seen is gone
	edit.Was = k2.ChangedAt
	size := b.d.ledger.Head().Size
	if got := change(nil, edit)[0]; got.ChangedAt != k2.ChangedAt || b.d.ledger.Head().Size != size {
		t.Errorf("no change was recorded: %+v", got)
	}
	for _, bad := range []struct {
		err error
		c   ipc.KnowledgeChange
	}{
		{ipcserver.ErrInvalid, ipc.KnowledgeChange{Scope: "shop", Text: "x"}},
		{ipcserver.ErrInvalid, ipc.KnowledgeChange{Scope: "host", Text: "a\nb"}},
		{ipcserver.ErrInvalid, ipc.KnowledgeChange{Scope: "host", Text: strings.Repeat("x", 401)}},
		{ipcserver.ErrInvalid, ipc.KnowledgeChange{Scope: "host", Text: "x", Sensitivity: "top"}},
		{ipcserver.ErrInvalid, ipc.KnowledgeChange{Remove: true}},
		{ipcserver.ErrNotFound, ipc.KnowledgeChange{Scope: "project:nowhere", Text: "x"}},
		{ipcserver.ErrConflict, ipc.KnowledgeChange{ID: "k_nobody", Text: "x", Scope: "host"}},
		{ipcserver.ErrConflict, ipc.KnowledgeChange{Scope: k2.Scope, Text: k2.Text}}, // it is there already
	} {
		// All or none: the good one before it is not made either.
		change(bad.err, ipc.KnowledgeChange{Scope: "host", Text: "good"}, bad.c)
	}
	// One edit may move a text from one piece to another.
	moved := change(nil, ipc.KnowledgeChange{ID: k.ID, Was: k2.ChangedAt, Remove: true}, ipc.KnowledgeChange{Scope: k2.Scope, Text: k2.Text})
	if l, err := b.Knowledge(ctx, ipc.KnowledgeQuery{}); err != nil || len(l.Items) != 1 || l.Items[0].ID != moved[1].ID {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := b.Knowledge(ctx, ipc.KnowledgeQuery{Text: "ill ope"}); err != nil || len(l.Items) != 1 {
		t.Errorf("by substring: %+v, %v", l, err)
	}
	if r, err := b.d.ledger.Verify(ctx, nil); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOneOfManyEdits: of those who saw the same version one is taken.
func TestOneOfManyEdits(t *testing.T) {
	b := shelfRig(t)
	out, err := b.ChangeKnowledge(t.Context(), ipc.KnowledgeEdit{Changes: []ipc.KnowledgeChange{{Scope: "host", Text: "zero"}}}, lemma.Answerer{})
	if err != nil {
		t.Fatal(err)
	}
	k := out.Items[0]
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for i := range 16 {
		wg.Go(func() {
			_, err := b.ChangeKnowledge(t.Context(), ipc.KnowledgeEdit{Changes: []ipc.KnowledgeChange{{ID: k.ID, Was: k.ChangedAt, Scope: "host", Text: fmt.Sprint("edit ", i)}}}, lemma.Answerer{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else if !errors.Is(err, ipcserver.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if taken != 1 {
		t.Errorf("%d were taken", taken)
	}
}
