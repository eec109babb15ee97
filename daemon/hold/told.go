package hold

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// RefTell is the source of a told fact that answers no hold.
const RefTell = "tell"

// maxDelta bounds each side of a change in words, in bytes: both fit into the line
// that a block gives them.
const maxDelta = 300

// replaced ends the told fact whose place f takes, if a person now says something
// else than the last time.
func (b *Book) replaced(f lemma.Fact) []ledger.Draft {
	old, ok := b.Store.FactBy(f.Scope, f.Subject, f.Key)
	if !ok || old.Claim == f.Claim || old.ExpiresAt != nil && *old.ExpiresAt <= f.CreatedAt || f.Source.Ref == RefTell {
		return nil // said again in other letters, or said long ago
	}
	return []ledger.Draft{{Body: lemma.FactContradicted{
		Contract: lemma.Contract, Fact: old.ID, By: f.ID, Delta: fmt.Sprintf("a person said %s, and says now %s", cut(old.Claim), cut(f.Claim)),
	}}}
}

func cut(s string) string {
	if len(s) > maxDelta {
		return strings.ToValidUTF8(s[:maxDelta], "") + "…"
	}
	return s
}
