package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger/lemma"
)

// scoped is the name under which a conversation is kept: the same words from
// another place or another credential are another conversation, so that a
// reading of one project never stands in a request of another (13.7).
func (e *Engine) scoped(conversation, cred string, sc Scope) string {
	if conversation == "" {
		return ""
	}
	name := scopeName(sc)
	msg := make([]byte, route.MACRoom, route.MACRoom+16+len(conversation)+len(cred)+len(name))
	msg = append(msg, "conversation\x00"...)
	msg = append(append(msg, conversation...), 0)
	msg = append(append(msg, cred...), 0)
	sum := route.MAC(e.Key, append(msg, name...))
	return hex.EncodeToString(sum[:16])
}

// conversation finds or makes what is remembered of a conversation.
func (e *Engine) conversation(id string) *conversation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.convs == nil {
		e.convs = map[string]*conversation{}
	}
	c := e.convs[id]
	if c == nil {
		c = &conversation{}
		e.convs[id] = c
	}
	c.touched = e.Now()
	return c
}

// join finds the turn that a request belongs to, or opens one.
func (e *Engine) join(ctx context.Context, q *Request) (*live, error) {
	rt := q.Route
	key := route.KeyOf(e.Key, q.CredHash, q.Upstream.Name(), rt)
	if rt.Kind.Side() || rt.Kind == route.Unknown {
		return e.open(q, key, nil)
	}
	c := e.conversation(q.conversation)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil {
		c.cur = e.restore(q)
	}
	if cur := c.cur; cur != nil {
		at := cur.look()
		graced := at.broken && e.Now().Sub(at.ended) < ResendGrace
		if rt.Continues && (!at.closed || cur.key == key) || // the next lap
			cur.key == key && at.serving && at.checking || // a resend: it waits for the verification and gets its answer
			cur.key == key && !at.serving && (!at.closed || graced) {
			cur.show(func(s *snapshot) { s.serving = true })
			return cur, nil
		}
		// A person's new words end whatever was open.
		if !at.closed && !at.serving {
			if err := e.finish(ctx, cur); err != nil {
				e.Log.Warn("close turn", "turn", cur.id, "error", err.Error())
			}
		}
	}
	t, err := e.open(q, key, c)
	if err != nil {
		return nil, err
	}
	// An equal request may come before the check has begun.
	due := !rt.Continues && e.checksPrompt(q, t)
	t.show(func(s *snapshot) { s.serving, s.checking = true, due })
	c.cur = t
	return t, nil
}

// finish closes a turn that nobody is being served from.
func (e *Engine) finish(ctx context.Context, t *live) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.close(ctx, t)
}

// Prior implements route.Prior for the requests of one process and credential.
func (e *Engine) Prior(pid int, cred string, sc Scope) route.Prior { return prior{e, pid, cred, sc} }

type prior struct {
	e     *Engine
	pid   int
	cred  string
	scope Scope
}

// Pending implements route.Prior.
func (p prior) Pending(conversation string) [][]byte {
	p.e.mu.Lock()
	c := p.e.convs[p.e.scoped(conversation, p.cred, p.scope)]
	p.e.mu.Unlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	cur := c.cur
	c.mu.Unlock()
	if cur == nil {
		return nil
	}
	at := cur.look()
	if at.body == nil || at.closed && !(at.broken && p.e.Now().Sub(at.ended) < ResendGrace) {
		return nil
	}
	return [][]byte{at.body}
}

// OpenCalls implements route.Prior.
func (p prior) OpenCalls() []route.Call {
	p.e.mu.Lock()
	var convs []*conversation
	for _, c := range p.e.convs {
		convs = append(convs, c)
	}
	p.e.mu.Unlock()
	type call struct {
		route.Call
		at time.Time
	}
	var calls []call
	for _, c := range convs {
		c.mu.Lock()
		cur := c.cur
		c.mu.Unlock()
		if cur == nil || cur.pid != p.pid || cur.cred != p.cred {
			continue
		}
		at := cur.look()
		for _, w := range at.calls {
			calls = append(calls, call{route.Call{Conversation: cur.named, Name: w.Name, Args: w.Args}, at.ended})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int { // newest first; the order of the map must not show
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.Conversation, b.Conversation))
	})
	out := make([]route.Call, len(calls))
	for i, c := range calls {
		out[i] = c.Call
	}
	return out
}

// restore brings the newest turn of a conversation back after a restart.
func (e *Engine) restore(q *Request) *live {
	row, ok := e.Store.LastTurn(q.conversation)
	// A turn that a stop of the daemon cut off goes on where it was.
	stopped := strings.HasPrefix(row.Error, "stopped at")
	if !ok || (row.ClosedAt != "" && !stopped) || row.Scope != scopeName(q.Scope) {
		return nil
	}
	t := &live{
		id: row.ID, conversation: row.Conversation, key: row.Key, scope: q.Scope, class: row.Class, prompt: row.Prompt, pid: q.Principal.PID, cred: q.CredHash, named: q.Route.Conversation,
		decision: row.Decision, counts: row.Counts, rung: -1,
		usageClient: row.UsageClient, usageOurs: row.UsageOurs,
	}
	if t.decision == "" || t.decision == lemma.DecError {
		t.decision = lemma.DecPassThrough
	}
	if row.Hold != "" {
		t.hold, t.stage, t.snap.hold = row.Hold, "hold", row.Hold
	}
	t.rung = row.Rung
	if row.Mode == "" { // the gate never decided: what its prompt was due still is
		t.fresh = true
	} else {
		t.passes, t.gated = 1, true
	}
	return t
}

func scopeName(s Scope) string {
	if s.Name == "" {
		return "host"
	}
	return s.Name
}

// maxPromptRead is how much of a prompt is redacted for the record, of which
// 200 bytes are kept: a secret that is cut at its end lies far behind them.
const maxPromptRead = 4 << 10

// open starts a turn. Its first entry commits while the upstream works.
func (e *Engine) open(q *Request, key string, c *conversation) (*live, error) {
	id, err := lemma.NewID(lemma.IDTurn, e.Now(), e.Entropy)
	if err != nil {
		return nil, err
	}
	class, reasons := lemma.Explore, []string{string(q.Route.Kind) + ": " + q.Route.Why}
	said := 0
	if c != nil && (q.Route.PersonText != "" || len(q.Route.Queued) > 0) {
		var why []string
		class, why = gate.RequestClass(q.Route, len(q.Wire.Tools) > 0)
		said = len(q.Route.Queued)
		reasons = append(reasons, why...)
	}
	t := &live{
		id: id, key: key, scope: q.Scope, class: class, reasons: reasons, decision: lemma.DecPassThrough, rung: -1,
		prompt: e.Redact(q.Route.PersonText[:min(len(q.Route.PersonText), maxPromptRead)]), opened: e.Now(), stage: "route", fresh: true, queued: said, side: c == nil, pid: q.Principal.PID, cred: q.CredHash, named: q.Route.Conversation,
	}
	if c != nil {
		t.conversation = q.conversation
	}
	body := lemma.TurnOpened{
		Contract: lemma.Contract, Principal: q.Principal, RequestKind: string(q.Route.Kind), Format: string(q.Adapter.Format()),
		Upstream: q.Upstream.Name(), Model: cutText(q.Wire.Model, maxValueText), Conversation: t.conversation, Key: key,
		Scope: scopeName(q.Scope), ScopeEvidence: q.Scope.Evidence, Class: class, Reasons: reasons, Prompt: cutText(t.prompt, maxValueText),
	}
	e.counts.turns.Add(1)
	if kept := e.keep(q, t); kept != nil {
		sum := sha256.Sum256(kept)
		body.RequestBlob = hex.EncodeToString(sum[:])
		e.hand(t, body, kept)
	} else {
		e.hand(t, body)
	}
	return t, nil
}

// maxRequestKept is the largest request, in bytes, that is kept with a turn.
const maxRequestKept = 8 << 20

// keep returns the request as the record keeps it, redacted, nil when it keeps
// none: of turns that begin below class change, of side requests, of upstreams
// that are only observed, and of requests over maxRequestKept. The class is the one at
// the opening: a turn whose class rises later keeps no request, because its
// first entry was written by then.
func (e *Engine) keep(q *Request, t *live) []byte {
	if e.RedactBody == nil || t.side || q.Observe || t.class.Rank() < lemma.Change.Rank() || len(q.Wire.Body) > maxRequestKept {
		return nil
	}
	return e.RedactBody(q.Wire.Body)
}

// Sweep ends turns that have been silent for Idle, forgets conversations that
// nothing was heard of for as long, and expires holds.
func (e *Engine) Sweep(ctx context.Context, now time.Time) error {
	e.mu.Lock()
	type entry struct {
		id    string
		c     *conversation
		quiet bool
	}
	var all []entry
	for id, c := range e.convs {
		all = append(all, entry{id, c, now.Sub(c.touched) > Idle})
	}
	e.mu.Unlock()
	var errs []error
	for _, x := range all {
		x.c.mu.Lock()
		cur, quiet := x.c.cur, x.quiet
		if cur != nil && quiet {
			if at := cur.look(); !at.serving {
				errs = append(errs, e.finish(ctx, cur))
			} else {
				quiet = false
			}
		}
		x.c.mu.Unlock()
		if quiet {
			e.mu.Lock()
			delete(e.convs, x.id)
			e.mu.Unlock()
		}
	}
	return errors.Join(append(errs, e.Holds.Expire(ctx, now))...)
}
