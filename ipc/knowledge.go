package ipc

import (
	"context"
	"net/http"
	"net/url"

	"gettier.dev/gettierd/ledger/lemma"
)

// KnowledgeQuery picks knowledge; empty fields do not filter. With Text it is what
// a prompt of these words would call up, the best first, then what only has the
// text in it.
type KnowledgeQuery struct {
	Scope string // host or project:NAME
	Text  string
}

// KnowledgeEdit is a set of changes that are made together or not at all.
type KnowledgeEdit struct {
	Changes []KnowledgeChange `json:"changes"`
}

// MaxKnowledgeChanges bounds one edit.
const MaxKnowledgeChanges = 200

// KnowledgeChange adds a piece of knowledge (no ID), or changes or removes the one
// that stood there with this changed_at when the person looked.
type KnowledgeChange struct {
	ID          string   `json:"id,omitempty"`
	Was         string   `json:"was,omitempty"`
	Remove      bool     `json:"remove,omitempty"`
	Scope       string   `json:"scope,omitempty"`
	Text        string   `json:"text,omitempty"`
	Topics      []string `json:"topics,omitempty"`
	Sensitivity string   `json:"sensitivity,omitempty"` // internal when empty
}

// KnowledgeChanged is what now stands there, in the order of the changes; a piece
// that was removed is as it was.
type KnowledgeChanged struct {
	Items []lemma.Knowledge `json:"items"`
}

// Knowledge lists what persons keep for models.
func (c *Client) Knowledge(ctx context.Context, q KnowledgeQuery) (List[lemma.Knowledge], error) {
	return get[List[lemma.Knowledge]](ctx, c, "/v1/knowledge", params(Page{}, "scope", q.Scope, "text", q.Text))
}

// KnowledgePiece is one piece of knowledge.
func (c *Client) KnowledgePiece(ctx context.Context, id string) (lemma.Knowledge, error) {
	return get[lemma.Knowledge](ctx, c, "/v1/knowledge/"+url.PathEscape(id), nil)
}

// ChangeKnowledge makes all changes or none; a person's call.
func (c *Client) ChangeKnowledge(ctx context.Context, e KnowledgeEdit) (KnowledgeChanged, error) {
	return call[KnowledgeChanged](ctx, c, http.MethodPost, "/v1/knowledge", nil, e)
}
