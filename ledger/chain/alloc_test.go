package chain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/chain"
)

// TestAllocations: a verification reads millions of entries, so what one costs is
// counted. Time would depend on the machine.
func TestAllocations(t *testing.T) {
	raw, err := chain.Encode(chain.Entry{
		V: chain.Version, TS: "2026-12-01T10:00:00.000000000Z", Kind: "state.lost", Tenant: "local", Turn: "t_1", Prev: chain.ZeroPrev,
		Body: json.RawMessage(`{"contract":"0.9","reason":"` + strings.Repeat("x", 800) + `"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := chain.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	room := make([]byte, 0, len(raw))
	tree := new(chain.Tree)
	for name, c := range map[string]struct {
		most float64
		run  func()
	}{
		"Decode": {1, func() { // the string of the frame
			if _, err := chain.Decode(raw); err != nil {
				t.Error(err)
			}
		}},
		"IsCanonical": {0, func() {
			if !chain.IsCanonical(raw) {
				t.Error("an entry is not canonical")
			}
		}},
		"AppendNext": {0, func() {
			if _, err := chain.AppendNext(room[:0], e, chain.Digest{}); err != nil {
				t.Error(err)
			}
		}},
		"Hash":        {0, func() { _ = chain.Hash(raw) }},
		"Tree.Append": {0.1, func() { tree.Append(chain.Digest{}, nil) }},
	} {
		if got := testing.AllocsPerRun(200, c.run); got > c.most {
			t.Errorf("%s allocates %.1f times, at most %.1f", name, got, c.most)
		}
	}
}
