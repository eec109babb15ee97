package ipcserver

import (
	"context"
	"net/http"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

func (s *Server) holdAnswer(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(a ipc.HoldAnswer) error {
		if len(a.Items) == 0 {
			return bad("no item is answered")
		}
		return nil
	}, func(ctx context.Context, a ipc.HoldAnswer, by lemma.Answerer) (lemma.Hold, error) {
		return s.o.Backend.AnswerHold(ctx, r.PathValue("id"), a, by)
	})
}

func (s *Server) holdRevoke(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(ipc.Revocation) error { return nil }, func(ctx context.Context, v ipc.Revocation, by lemma.Answerer) ([]lemma.Hold, error) {
		return s.o.Backend.RevokeAnswer(ctx, r.PathValue("id"), v, by)
	})
}

func (s *Server) factTell(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(t ipc.Tell) error {
		if strings.TrimSpace(t.Claim) == "" {
			return bad("the claim is missing")
		}
		return nil
	}, s.o.Backend.Tell)
}

func (s *Server) factInvalidate(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(t ipc.Invalidation) error {
		if strings.TrimSpace(t.Reason) == "" {
			return bad("a reason is missing")
		}
		return nil
	}, func(ctx context.Context, t ipc.Invalidation, by lemma.Answerer) (lemma.Fact, error) {
		return s.o.Backend.InvalidateFact(ctx, r.PathValue("id"), t.Reason, by)
	})
}

func (s *Server) turnForget(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(struct{}) error { return nil }, func(ctx context.Context, _ struct{}, by lemma.Answerer) (ipc.Forgotten, error) {
		return s.o.Backend.ForgetTurn(ctx, r.PathValue("id"), by)
	})
}
