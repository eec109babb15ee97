package ipc

import "gettier.dev/gettierd/ledger/lemma"

// HoldAnswer answers every item of a hold at once; one that leaves an item out
// is refused.
type HoldAnswer struct {
	Items []ItemAnswer `json:"items"`
}

// Revocation takes back the answers to these items, to all when there are none.
type Revocation struct {
	Items []string `json:"items,omitempty"`
}

// ItemAnswer is a person's word on one item. Correct and waive need Text: what
// is true, and why it does not matter. An empty Scope is the task.
type ItemAnswer struct {
	Item   string            `json:"item"`
	Answer lemma.AnswerKind  `json:"answer"`
	Text   string            `json:"text,omitempty"`
	Scope  lemma.AnswerScope `json:"scope,omitempty"`
}

// Tell is a fact that a person states. Scope is host or project:<name>.
type Tell struct {
	Scope string `json:"scope"`
	Claim string `json:"claim"`
}

// Invalidation withdraws a fact.
type Invalidation struct {
	Reason string `json:"reason"`
}
