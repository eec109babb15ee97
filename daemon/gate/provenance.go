package gate

import (
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// Conversation is what a claim's provenance is audited against, in order.
type Conversation struct {
	said []said
}

type said struct {
	by       route.Speaker
	text     string
	args     string
	readOnly bool
}

// NewConversation reads a history once; audit as many claims against it as there are.
func NewConversation(r *wire.Request, rt route.Route) Conversation { return Conversation{} }

// Backing is what the ledger knows about a claim.
type Backing struct {
	Facts []lemma.Fact
	// Satisfies reports whether a fact's value makes the claim true.
	Satisfies func(lemma.Fact) bool
	ClaimID   string
}

// AuditProvenance returns the provenance that a lemma really has, and why it
// was lowered ("" when the tag stands).
func AuditProvenance(l lemma.Lemma, c Conversation, b Backing) (lemma.Provenance, string) {
	return lemma.Believed, ""
}
