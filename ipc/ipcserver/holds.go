package ipcserver

import (
	"net/http"
	"strings"

	"gettier.dev/gettierd/ipc"
)

func (s *Server) holdAnswer(w http.ResponseWriter, r *http.Request) {
	a, err := read[ipc.HoldAnswer](w, r, false)
	if err == nil && len(a.Items) == 0 {
		err = bad("no item is answered")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	by, err := s.person(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.o.Backend.AnswerHold(r.Context(), r.PathValue("id"), a, by)
	s.answer(w, r, v, err)
}

func (s *Server) factTell(w http.ResponseWriter, r *http.Request) {
	t, err := read[ipc.Tell](w, r, false)
	if err == nil && strings.TrimSpace(t.Claim) == "" {
		err = bad("the claim is missing")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	by, err := s.person(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.o.Backend.Tell(r.Context(), t, by)
	s.answer(w, r, v, err)
}

func (s *Server) factInvalidate(w http.ResponseWriter, r *http.Request) {
	t, err := read[ipc.Invalidation](w, r, false)
	if err == nil && strings.TrimSpace(t.Reason) == "" {
		err = bad("a reason is missing")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	by, err := s.person(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.o.Backend.InvalidateFact(r.Context(), r.PathValue("id"), t.Reason, by)
	s.answer(w, r, v, err)
}
