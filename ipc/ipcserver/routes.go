package ipcserver

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// routes is the table of calls; PROTOCOL.md has the same rows.
func (s *Server) routes() {
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /v1/status":                 s.status,
		"GET /v1/events":                 s.events,
		"GET /v1/facts":                  s.facts,
		"GET /v1/facts/{id}":             s.fact,
		"GET /v1/holds":                  s.holds,
		"GET /v1/holds/{id}":             s.hold,
		"POST /v1/holds/{id}/answer":     s.holdAnswer,
		"POST /v1/holds/{id}/revoke":     s.holdRevoke,
		"POST /v1/facts":                 s.factTell,
		"POST /v1/facts/{id}/invalidate": s.factInvalidate,
		"GET /v1/knowledge":              s.knowledge,
		"GET /v1/knowledge/{id}":         s.knowledgePiece,
		"POST /v1/knowledge":             s.knowledgeChange,
		"GET /v1/turns":                  s.turns,
		"GET /v1/turns/{id}":             s.turn,
		"POST /v1/turns/{id}/forget":     s.turnForget,
		"GET /v1/audit":                  s.audit,
		"GET /v1/audit/checkpoint":       s.checkpoint,
		"POST /v1/audit/verify":          s.auditVerify,
		"GET /v1/audit/export":           s.auditExport,
		"GET /v1/ledger/backup":          s.ledgerBackup,
		"GET /v1/ledger/size":            s.ledgerSize,
		"GET /v1/audit/keys":             s.auditKeys,
		"GET /v1/audit/{seq}/proof":      s.auditProof,
		"GET /v1/blobs/{sum}":            s.blob,
		"GET /v1/sensors":                s.sensors,
		"GET /v1/sensors/{id}/diff":      s.sensorDiff,
		"POST /v1/sensors/{id}/run":      s.sensorRun,
		"POST /v1/sensors/approve":       s.sensorsApprove,
		"GET /v1/packs":                  s.packs,
		"GET /v1/projects":               s.projects,
		"POST /v1/projects":              s.projectAdd,
		"DELETE /v1/projects/{name}":     s.projectRemove,
		"GET /v1/config":                 s.config,
		"POST /v1/config/approve":        s.configApprove,
		"POST /v1/decide":                s.decide,
		"POST /v1/warmup":                s.warmup,
	} {
		s.mux.HandleFunc(pattern, h)
	}
	for pattern, h := range s.keyRoutes() {
		s.mux.HandleFunc(pattern, h)
	}
}

// plain answers a call without parameters.
func plain[T any](s *Server, w http.ResponseWriter, r *http.Request, f func(context.Context) (T, error)) {
	if q := readQuery(r); q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := f(r.Context())
	s.answer(w, r, v, err)
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.Status, error) {
		st, err := s.o.Backend.Status(ctx)
		if st.Counters == nil {
			st.Counters = map[string]int64{}
		}
		if st.Warnings == nil {
			st.Warnings = []string{}
		}
		if st.Upstreams == nil {
			st.Upstreams = []ipc.Upstream{}
		}
		if st.Outside == nil {
			st.Outside = []ipc.OutsideCopy{}
		}
		if st.Registry.Problems == nil {
			st.Registry.Problems = []ipc.RegistryError{}
		}
		if st.Config.Pending == nil {
			st.Config.Pending = []string{}
		}
		return st, err
	})
}

func (s *Server) facts(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "limit", "cursor", "scope", "status", "provenance", "text")
	fq := ipc.FactQuery{Page: q.page(), Scope: q.str("scope"), Text: q.str("text"),
		Status: q.word("status", string(lemma.StatusActive), string(lemma.StatusStale),
			string(lemma.StatusContradicted), string(lemma.StatusInvalidated)),
		Provenance: q.word("provenance", string(lemma.Measured), string(lemma.Told), string(lemma.Believed))}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := filled(s.o.Backend.Facts(r.Context(), fq))
	s.answer(w, r, v, err)
}

func (s *Server) fact(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (lemma.Fact, error) { return s.o.Backend.Fact(ctx, r.PathValue("id")) })
}

func (s *Server) holds(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "limit", "cursor", "state")
	hq := ipc.HoldQuery{Page: q.page(), State: q.word("state", string(lemma.HoldOpen), string(lemma.HoldAnswered),
		string(lemma.HoldExpired), string(lemma.HoldCancelled))}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := filled(s.o.Backend.Holds(r.Context(), hq))
	s.answer(w, r, v, err)
}

func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (lemma.Hold, error) { return s.o.Backend.Hold(ctx, r.PathValue("id")) })
}

func (s *Server) turns(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "limit", "cursor", "scope", "conversation", "decision", "agent")
	all := make([]string, len(lemma.Decisions))
	for i, d := range lemma.Decisions {
		all[i] = string(d)
	}
	tq := ipc.TurnQuery{Page: q.page(), Scope: q.str("scope"), Conversation: q.str("conversation"),
		Decision: q.word("decision", all...), Agent: q.str("agent")}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := filled(s.o.Backend.Turns(r.Context(), tq))
	s.answer(w, r, v, err)
}

func (s *Server) turn(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.TurnDetail, error) {
		t, err := s.o.Backend.Turn(ctx, r.PathValue("id"))
		if t.Entries == nil {
			t.Entries = []ipc.Entry{}
		}
		if t.Blocks == nil {
			t.Blocks = []ipc.Block{}
		}
		return t, err
	})
}

func (s *Server) audit(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "since", "limit", "cursor")
	p, since := q.page(), q.seq("since")
	var from uint64
	if since != nil {
		from = *since + 1
	}
	if c := p.Cursor; c != "" {
		n, err := parseSeq(c)
		if err != nil && q.err == nil {
			q.err = bad("cursor is not one of ours")
		}
		from = n
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	l, err := filled(s.o.Backend.Entries(r.Context(), from, p.Limit))
	if n := len(l.Items); err == nil && l.NextCursor == "" && n > 0 && l.Items[n-1].Seq < l.AsOfSeq {
		l.NextCursor = strconv.FormatUint(l.Items[n-1].Seq+1, 10)
	}
	s.answer(w, r, l, err)
}

func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	if q := readQuery(r); q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	b, err := s.o.Backend.Checkpoint(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(b) // the client is gone: nobody to tell
}

func (s *Server) blob(w http.ResponseWriter, r *http.Request) {
	sum := r.PathValue("sum")
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		s.fail(w, r, bad("a blob is named by 64 lower-case hex digits"))
		return
	}
	b, err := s.o.Backend.Blob(r.Context(), sum)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b) // the client is gone: nobody to tell
}

func (s *Server) sensors(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "limit", "cursor", "project", "state")
	sq := ipc.SensorQuery{Page: q.page(), Project: q.str("project"),
		State: q.word("state", ipc.SensorApproved, ipc.SensorPending, ipc.SensorChanged, ipc.SensorRemoved,
			ipc.SensorBroken, ipc.SensorBackedOff)}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := filled(s.o.Backend.Sensors(r.Context(), sq))
	s.answer(w, r, v, err)
}

func (s *Server) sensorDiff(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r, "project")
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	v, err := s.o.Backend.SensorDiff(r.Context(), r.PathValue("id"), q.str("project"))
	s.answer(w, r, v, err)
}

func (s *Server) sensorRun(w http.ResponseWriter, r *http.Request) {
	t, err := read[ipc.SensorTry](w, r, true)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var by *lemma.Answerer
	if t.Draft {
		p, err := s.person(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		by = &p
	}
	v, err := s.o.Backend.TrySensor(r.Context(), r.PathValue("id"), t, by)
	s.answer(w, r, v, err)
}

// personal answers a call that only a person may make: the body is read and
// checked before it is asked who calls.
func personal[T, V any](s *Server, w http.ResponseWriter, r *http.Request, check func(T) error, do func(context.Context, T, lemma.Answerer) (V, error)) {
	t, err := read[T](w, r, false)
	if err == nil {
		err = check(t)
	}
	var by lemma.Answerer
	if err == nil {
		by, err = s.person(r)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := do(r.Context(), t, by)
	s.answer(w, r, v, err)
}

func (s *Server) sensorsApprove(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(a ipc.SensorApproval) error {
		if len(a.Sensors) == 0 {
			return bad("no sensor is named")
		}
		for _, p := range a.Sensors {
			if p.Qualified == "" {
				return bad("each sensor needs its qualified id")
			}
		}
		return nil
	}, s.o.Backend.ApproveSensors)
}

func (s *Server) packs(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.List[ipc.Pack], error) { return filled(s.o.Backend.Packs(ctx)) })
}

func (s *Server) projects(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, func(ctx context.Context) (ipc.List[ipc.Project], error) { return filled(s.o.Backend.Projects(ctx)) })
}

func (s *Server) projectAdd(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, checkProject, s.o.Backend.AddProject)
}

// checkProject keeps names usable as scope, path prefix and table cell.
func checkProject(p ipc.Project) error {
	if p.Root == "" || !filepath.IsAbs(p.Root) || !utf8.ValidString(p.Root) || strings.ContainsFunc(p.Root, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return &ipc.Problem{Title: "Not valid", Status: 422, Detail: "root must be an absolute path without control characters"}
	}
	if p.Name != "" && !validName(p.Name) {
		return &ipc.Problem{Title: "Not valid", Status: 422, Detail: "a name has 1 to 64 letters, digits, dots, dashes or underscores and starts with a letter or digit"}
	}
	return nil
}

func validName(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return true
}

func (s *Server) projectRemove(w http.ResponseWriter, r *http.Request) {
	by, err := s.person(r)
	if err == nil {
		err = s.o.Backend.RemoveProject(r.Context(), r.PathValue("name"), by)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) config(w http.ResponseWriter, r *http.Request) { plain(s, w, r, s.o.Backend.Config) }

func (s *Server) configApprove(w http.ResponseWriter, r *http.Request) {
	personal(s, w, r, func(a ipc.ConfigApproval) error {
		if a.Hash == "" {
			return bad("the hash that was shown is missing")
		}
		return nil
	}, s.o.Backend.ApproveConfig)
}

// decide asks the action gate; it is nobody's answer, so anyone of our uid may.
func (s *Server) warmup(w http.ResponseWriter, r *http.Request) { plain(s, w, r, s.o.Backend.Warmup) }

func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r)
	a, err := read[ipc.Action](w, r, false)
	if err = errors.Join(q.err, err); err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.o.Backend.Decide(r.Context(), a)
	s.answer(w, r, v, err)
}
