package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gettier.dev/gettierd/daemon/apikey"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/proxy/dialect"
	"gettier.dev/gettierd/ledger/lemma"
)

// caller is who sent a request: a process of this machine, and a key of
// gettier's where it brought one. Who brings a key acts as that key.
type caller struct {
	proc  peer.Process // zero but for the uid where it cannot be told
	key   *apikey.Key
	given apikey.Given
}

// noUID stands for a peer of whom not even the user is known.
const noUID = -1

// errStranger: no key, and not the user whose daemon this is.
var errStranger = errors.New("without a key of gettier's (X-Gettier-Key) only the user who started it is served")

// errNoCredential: the key stood where the upstream's belongs.
var errNoCredential = errors.New("the request brings a key of gettier's instead of one of the provider's")

// admit says who calls, before anything of the body is read (13.9).
func (s *Server) admit(r *http.Request) (caller, error) {
	proc, err := s.peer(r)
	if err != nil {
		uid := noUID
		if errors.Is(err, peer.ErrOtherUser) {
			uid = proc.UID
		}
		proc = peer.Process{UID: uid}
	}
	c := caller{proc: proc}
	given, ok := apikey.From(r.Header)
	switch {
	case ok && s.Keys == nil:
		return c, apikey.ErrUnknown
	case ok:
		now := time.Now
		if s.Now != nil {
			now = s.Now
		}
		key, err := s.Keys.Check(given.Secret, now(), proc.UID)
		if err != nil {
			return c, err
		}
		c.key, c.given = &key, given
	case err != nil || proc.UID != s.UID:
		return c, fmt.Errorf("%w; this connection's user is %s", errStranger, who(proc, err))
	}
	return c, nil
}

// reaches is an error unless the caller's key is for this upstream and one of
// these projects, and something is left to authenticate with.
func (c caller) reaches(up Upstream, projects ...string) error {
	if c.key == nil {
		return nil
	}
	if err := c.key.Reaches(up.Name, projects...); err != nil {
		return err
	}
	if c.given.Instead && up.Key == "" && !up.authenticates() {
		return fmt.Errorf("%w, and none is configured for the upstream %q (gettier key store-upstream, then upstreams.%s.key_ledger)", errNoCredential, up.Name, up.Name)
	}
	return nil
}

// authenticates reports whether the upstream's configured headers do.
func (u Upstream) authenticates() bool {
	for name := range u.Headers {
		switch http.CanonicalHeaderKey(name) {
		case "Authorization", "X-Api-Key", "Api-Key":
			return true
		}
	}
	return false
}

// facts reports whether what this machine knows may go into the caller's requests.
func (c caller) facts(uid int) bool {
	return c.proc.UID == uid || c.key != nil && c.key.Has(apikey.ScopeFacts)
}

// person is whose words the caller's chat carries. A key never answers (13.13).
func (c caller) person() (lemma.Answerer, error) {
	if c.key != nil {
		return lemma.Answerer{}, &peer.Refusal{Why: "the request was sent with a key", Hint: "answer in gettier, at the machine itself"}
	}
	return peer.Chat(c.proc)
}

// principal is who asks.
func (c caller) principal(leader peer.Process, agent string) lemma.Principal {
	p := c.proc
	out := lemma.Principal{UID: p.UID, PID: p.PID, Start: p.Start, Agent: agent}
	if c.key != nil {
		out.KeyID = c.key.ID
	}
	if leader.PID != 0 {
		out.Command = &lemma.Asker{PID: leader.PID, Start: leader.Start}
	}
	return out
}

// credential tells callers apart: by what the client authenticates with, as a
// hash, and by the key of ours that it brought.
func (c caller) credential(clients string) string {
	if c.key == nil {
		return clients
	}
	sum := sha256.Sum256([]byte(clients + "\x00" + c.key.ID))
	return hex.EncodeToString(sum[:])
}

// refuse says in the format of the client's path why it is not served.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why error) {
	set := s.Settings()
	t := dialect.Split(r.URL.Path, r.Header.Get("X-Gettier-Project"), func(name string) bool { _, ok := set.Upstreams[name]; return ok })
	status, kind := http.StatusUnauthorized, "authentication_error"
	if errors.Is(why, apikey.ErrScope) {
		status, kind = http.StatusForbidden, "permission_error"
	}
	s.errorIn(w, dialect.Gated(r.Method, t.Path), status, kind, "gettierd: "+why.Error())
}
