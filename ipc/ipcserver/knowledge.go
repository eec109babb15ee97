package ipcserver

import (
	"context"
	"net/http"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

func (s *Server) knowledge(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "scope", "text")
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := filled(s.o.Backend.Knowledge(r.Context(), ipc.KnowledgeQuery{Scope: q.str("scope"), Text: q.str("text")}))
	s.answer(w, r, v, err)
}

func (s *Server) knowledgePiece(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (lemma.Knowledge, error) {
		return s.o.Backend.KnowledgePiece(ctx, r.PathValue("id"))
	})
}

func (s *Server) knowledgeChange(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(e ipc.KnowledgeEdit) error {
		switch n := len(e.Changes); {
		case n == 0:
			return bad("nothing is to change")
		case n > ipc.MaxKnowledgeChanges:
			return bad("%d changes at once, at most %d", n, ipc.MaxKnowledgeChanges)
		}
		return nil
	}, s.o.Backend.ChangeKnowledge)
}
