package ipcserver

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// Keys is what a Backend does with keys. All that changes something is a person's
// call; no secret but a new key's own ever comes out of it.
type Keys interface {
	// RotateLogKey gives the log its next signing key.
	RotateLogKey(ctx context.Context, by lemma.Answerer) (ipc.KeyRotation, error)
	APIKeys(ctx context.Context) (ipc.List[ipc.APIKey], error)
	// CreateAPIKey makes a key; its secret is in the answer and nowhere else.
	CreateAPIKey(ctx context.Context, k ipc.KeyRequest, by lemma.Answerer) (ipc.NewAPIKey, error)
	RevokeAPIKey(ctx context.Context, id string, by lemma.Answerer) error
	SealedKeys(ctx context.Context) (ipc.List[ipc.SealedKey], error)
	// SealKey encrypts an upstream key and keeps it under a name.
	SealKey(ctx context.Context, name, secret string, by lemma.Answerer) (ipc.SealedKey, error)
	ForgetKey(ctx context.Context, name string, by lemma.Answerer) error
}

func (s *Server) keyRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /v1/audit/rotate-key":       s.rotateLogKey,
		"GET /v1/keys":                    s.apiKeys,
		"POST /v1/keys":                   s.keyCreate,
		"DELETE /v1/keys/{id}":            s.keyRevoke,
		"GET /v1/upstream-keys":           s.sealedKeys,
		"POST /v1/upstream-keys":          s.maySeal,
		"PUT /v1/upstream-keys/{name}":    s.keySeal,
		"DELETE /v1/upstream-keys/{name}": s.keyForget,
	}
}

func (s *Server) rotateLogKey(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(struct{}) error { return nil }, func(ctx context.Context, _ struct{}, by lemma.Answerer) (ipc.KeyRotation, error) {
		return s.o.Backend.RotateLogKey(ctx, by)
	})
}

func (s *Server) apiKeys(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.List[ipc.APIKey], error) { return filled(s.o.Backend.APIKeys(ctx)) })
}

func (s *Server) keyCreate(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(k ipc.KeyRequest) error {
		if !validName(k.Name) {
			return &ipc.Problem{Title: "Not valid", Status: 422, Detail: "a name has 1 to 64 letters, digits, dots, dashes or underscores and starts with a letter or digit"}
		}
		return nil
	}, s.o.Backend.CreateAPIKey)
}

func (s *Server) keyRevoke(w http.ResponseWriter, r *http.Request) {
	s.personally(w, r, func(ctx context.Context, by lemma.Answerer) error {
		return s.o.Backend.RevokeAPIKey(ctx, r.PathValue("id"), by)
	})
}

// personally answers a person's call without a body and without an answer.
func (s *Server) personally(w http.ResponseWriter, r *http.Request, do func(context.Context, lemma.Answerer) error) {
	by, err := s.person(r)
	if err == nil {
		err = do(r.Context(), by)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) sealedKeys(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.List[ipc.SealedKey], error) {
		return filled(s.o.Backend.SealedKeys(ctx))
	})
}

// sealers are the connections whose process was looked at and found to be a
// person's command: it may then close itself to all eyes, ours included, before
// it reads a secret.
type sealers struct {
	mu sync.Mutex
	by map[net.Conn]lemma.Answerer
}

func (s *sealers) allow(c net.Conn, by lemma.Answerer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[net.Conn]lemma.Answerer{}
	}
	s.by[c] = by
}

// take gives the permission of a connection, which is good for one call.
func (s *sealers) take(c net.Conn) (lemma.Answerer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by, ok := s.by[c]
	delete(s.by, c)
	return by, ok
}

// maySeal looks at the caller now, for a secret that comes later.
func (s *Server) maySeal(w http.ResponseWriter, r *http.Request) {
	s.personally(w, r, func(ctx context.Context, by lemma.Answerer) error {
		if _, err := read[struct{}](w, r, true); err != nil {
			return err
		}
		if c, ok := ctx.Value(connKey{}).(net.Conn); ok {
			s.sealers.allow(c, by)
		}
		return nil
	})
}

func (s *Server) keySeal(w http.ResponseWriter, r *http.Request) {
	k, err := read[ipc.SealRequest](w, r, false)
	switch {
	case err != nil:
	case !validName(r.PathValue("name")):
		err = &ipc.Problem{Title: "Not valid", Status: 422, Detail: "a name has 1 to 64 letters, digits, dots, dashes or underscores and starts with a letter or digit"}
	case strings.TrimSpace(k.Secret) == "":
		err = bad("there is no key in it")
	}
	var by lemma.Answerer
	if err == nil {
		c, _ := r.Context().Value(connKey{}).(net.Conn)
		var ok bool
		if by, ok = s.sealers.take(c); !ok {
			by, err = s.person(r)
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.o.Backend.SealKey(r.Context(), r.PathValue("name"), k.Secret, by)
	s.answer(w, r, v, err)
}

func (s *Server) keyForget(w http.ResponseWriter, r *http.Request) {
	s.personally(w, r, func(ctx context.Context, by lemma.Answerer) error {
		return s.o.Backend.ForgetKey(ctx, r.PathValue("name"), by)
	})
}
