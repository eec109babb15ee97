package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

func created(id, at string) ledger.Draft {
	return ledger.Draft{Body: lemma.KeyCreated{Contract: lemma.Contract, ID: id, Name: "ci", SHA256: sum(id), Scopes: []string{"proxy"}, Upstreams: []string{}, Projects: []string{}, CreatedAt: at}}
}

func revoked(id string) ledger.Draft {
	return ledger.Draft{Body: lemma.KeyRevoked{Contract: lemma.Contract, ID: id, By: "test"}}
}

func sealedKey(name, sealed string) ledger.Draft {
	return ledger.Draft{Body: lemma.KeySealed{Contract: lemma.Contract, Name: name, Sealed: sealed}}
}

// TestGrants: what is listed is what was created, and a key that was revoked stays so.
func TestGrants(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, created("k_b", "2026-03-01"), created("k_a", "2026-03-02"), revoked("k_b"), revoked("k_unknown"), revoked("K!"), revoked("upstream:"), revoked("k_b"))
	add(t, l, created("k_b", "2026-03-03"))
	add(t, l, sealedKey("openai", "aa"), sealedKey("other", "bb"), sealedKey("openai", "cc"), sealedKey("", "dd"), sealedKey(strings.Repeat("n", 600), "ee"))
	add(t, l, revoked(ledger.SealedID("other")), revoked(ledger.SealedID(strings.Repeat("n", 600))))
	check := func(l *ledger.Ledger) {
		t.Helper()
		verified(t, l)
		page, err := l.APIKeys()
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, k := range page.Items {
			ids = append(ids, k.ID)
		}
		if !slices.Equal(ids, []string{"k_b", "k_a"}) || page.Items[0].RevokedAt == "" || page.Items[1].RevokedAt != "" {
			t.Errorf("%+v", page.Items)
		}
		if k, err := l.APIKey("k_a"); err != nil || k.Name != "ci" {
			t.Errorf("%+v %v", k, err)
		}
		sealed, err := l.SealedKeys()
		if err != nil || len(sealed.Items) != 1 || sealed.Items[0].Sealed != "cc" {
			t.Errorf("%+v %v", sealed.Items, err)
		}
		if _, err := l.SealedKey("other"); !errors.Is(err, ledger.ErrNotFound) {
			t.Error(err)
		}
	}
	check(l)
	check(reopen(t, b, l))
	if _, err := l.Append(t.Context(), created("NO ID", "")); err == nil {
		t.Error("a key without an id")
	}
}
