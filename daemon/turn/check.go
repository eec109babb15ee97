package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// occasion is why premises are checked now.
type occasion struct {
	at     string // prompt | action
	class  lemma.Class
	effect shell.Effect // of the actions that wait, "" at the prompt
	action string       // the strongest of them in one line
	calls  string       // hash of all of them, "" at the prompt
	acts   []*ruled     // the calls themselves, none at the prompt
	taken  verified     // what they take for granted
}

// destroys reports whether what waits may destroy something.
func (o occasion) destroys() bool {
	return o.class.Rank() >= lemma.Destructive.Rank() || o.effect.Rank() >= shell.Destroy.Rank()
}

// takes reports whether an answer counts here: not one that was taken back, and one
// that was given in a chat never carries what destroys (13.2).
func (o occasion) takes(a lemma.Answer) bool {
	return a.RevokedAt == "" && (a.By.Via != "chat" || !o.destroys())
}

// outcome is what a check means for the answer.
type outcome struct {
	again bool   // a block was stored: make the answer (anew) with it
	ends  bool   // text is the whole answer
	text  string // the answer's end, or a note to add to it
	state string // what became of the actions that waited: DENY | REQUIRE_CONFIRM
	why   string
}

// minVerification is room for a correction however small inject.max_bytes is: a
// caught claim is always told.
const minVerification = 2 << 10

// checked is a check up to its decision: what was declared and found. It is
// also what a stored turn is read back into.
type checked struct {
	verified
	oc         occasion
	plan       string
	rung       int
	undeclared bool
	before     lemma.Decision   // of the turn, before this check
	counts     lemma.Counts     // likewise
	turnAnswer lemma.AnswerKind // a person's word on a turn that declared nothing
	bare       bool             // no premise was due: only the action gate spoke
	asks       bool             // its acts are put before a person
}

// check declares, verifies and decides once, and writes every step down before
// it returns. body is the request as it was sent upstream.
func (e *Engine) check(ctx context.Context, q *Request, t *live, body []byte, oc occasion) (outcome, error) {
	t.show(func(s *snapshot) { s.checking = true })
	defer t.show(func(s *snapshot) { s.checking = false })

	began := e.Now()
	t.stage = "declare"
	p, err := e.declare(ctx, q, body, oc.action)
	t.spent("declare", e.Now().Sub(began))
	t.usageOurs = t.usageOurs.Add(p.usage)
	if err != nil {
		return outcome{}, fmt.Errorf("declare premises: %w", err)
	}
	if err := e.write(ctx, t, declared(p, oc)...); err != nil {
		return outcome{}, err
	}
	c := &checked{oc: oc, rung: p.rung, undeclared: p.decl == nil, before: t.decision, counts: t.counts}
	t.rung = p.rung
	if p.decl != nil {
		c.plan = p.decl.PlanSummary
		e.counts.declared.Add(1)
	}

	began = e.Now()
	t.stage = "verify"
	c.verified, err = e.verify(ctx, q, t, p.decl, oc)
	t.spent("verify", e.Now().Sub(began))
	if err != nil {
		return outcome{}, fmt.Errorf("verify premises: %w", err)
	}
	c.with(oc.taken)
	t.stage = "decide"
	return e.decideOn(ctx, q, t, c)
}

// decideOn asks the gate and carries out what it says.
func (e *Engine) decideOn(ctx context.Context, q *Request, t *live, c *checked) (outcome, error) {
	set := e.Settings()
	var err error
	if c.turnAnswer == "" && c.oc.calls != "" { // the same calls, asked for again after a person answered
		if ans, ok := e.Store.Answers(scopeName(t.scope), t.conversation, turnClaim+c.oc.calls, e.Now()); ok && c.oc.takes(ans) {
			c.turnAnswer = ans.Answer
		}
	}
	if c.turnAnswer == "" && c.oc.approved() {
		c.turnAnswer = lemma.AnswerApprove
	}
	d := gate.Decide(gate.In{
		Class: c.oc.class, Effect: c.oc.effect, Modes: set.Modes, Watch: set.Watch, Attended: e.attended(q),
		OverBudget: e.budget.over(e.Now(), set.HoldsPerHour, set.HoldsPerDay), Undeclared: c.undeclared, Answer: c.turnAnswer,
		HoldOnUnverifiable: set.HoldOnUnverifiable, AnnotateGaps: set.AnnotateGaps, Claims: claims(c.found),
	})
	t.gated, c.asks = true, false
	switch {
	case d.Decision == lemma.DecBlocked && c.deniedByPremise():
		d.Hold, d.HoldTurn = nil, false // no answer of a person would let it out
	case !d.Deny || len(d.Hold) > 0 || d.HoldTurn:
		e.askAction(q, c, &d)
	}
	t.decision = decide(c.before, d.Decision)
	t.counts = addCounts(c.counts, d.Counts)
	t.counts.Allowed, t.counts.Denied, t.counts.Held = c.counts.Allowed, c.counts.Denied, c.counts.Held
	decided := lemma.GateDecided{Contract: lemma.Contract, Decision: d.Decision, Class: d.Class, Mode: d.Mode, Counts: d.Counts, Reasons: noNil(d.Reasons)}

	switch d.Decision {
	case lemma.DecCaught:
		e.counts.caught.Add(1)
	case lemma.DecHeld:
		e.counts.held.Add(1)
	case lemma.DecBlocked:
		e.counts.blocked.Add(1)
	}
	if len(d.Hold) > 0 || d.HoldTurn || c.asks {
		return e.askPerson(ctx, q, t, c, d, ledger.Draft{Turn: t.id, Body: decided})
	}
	if !c.bare {
		e.cover(t, c)
	}
	if d.Deny {
		if err := e.write(ctx, t, decided); err != nil {
			return outcome{}, err
		}
		return outcome{ends: true, text: blockedText(c, d, lemma.Hold{}), state: "DENY", why: "blocked: " + strings.Join(d.Reasons, "; ")}, nil
	}
	o := outcome{}
	if len(d.Correct) > 0 || c.oc.at == "prompt" {
		o.again, err = e.tellFound(ctx, q, t, c, decided)
		o.again = o.again && len(d.Correct) > 0
	} else {
		err = e.write(ctx, t, decided)
	}
	if err != nil {
		return outcome{}, err
	}
	if len(d.Note) > 0 {
		o.text = noteText(c.found, d.Note, q.Upstream.Trusted())
	}
	return o, nil
}

// tellFound stores the block of a check beside its decision, and reports whether
// there was anything to say.
func (e *Engine) tellFound(ctx context.Context, q *Request, t *live, c *checked, decided lemma.Body) (bool, error) {
	trusted := q.Upstream.Trusted()
	e.telling.Lock()
	defer e.telling.Unlock()
	deltas, err := e.untold(t.scope.Name, trusted)
	if err != nil {
		return false, err
	}
	b := verificationBlock(c.verified, deltas, trusted, max(e.Settings().InjectMaxBytes, minVerification))
	if b.text == "" {
		return false, e.write(ctx, t, decided)
	}
	return true, e.store(ctx, q, t, b, decided, true)
}

// cover notes what this check stands for. Only one that came to its decision,
// answers included, covers anything.
func (e *Engine) cover(t *live, c *checked) {
	t.passes++
	if c.undeclared {
		return
	}
	t.anchor = ""
	if t.covered == "" || c.oc.class.Rank() > t.covered.Rank() {
		t.covered = c.oc.class
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if conv := e.convs[t.conversation]; conv != nil {
		conv.covered = &coverage{at: e.Now(), class: c.oc.class, root: t.scope.Root, turn: t.id}
	}
}

// decide keeps the strongest decision of a turn; anything the gate decided
// replaces a mere pass-through.
func decide(old, now lemma.Decision) lemma.Decision {
	if old == "" || old == lemma.DecPassThrough {
		return now
	}
	return lemma.Stronger(old, now)
}

func (e *Engine) attended(q *Request) bool {
	return q.Route.Interactive || e.Settings().WaitAlways || (e.Attended != nil && e.Attended())
}

// declared are the entries of a declare pass.
func declared(p pass, oc occasion) []lemma.Body {
	if p.decl == nil {
		return []lemma.Body{lemma.TurnUndeclared{Contract: lemma.Contract, Reason: "no rung yielded a declaration", Tried: noNil(p.tried), Usage: p.usage}}
	}
	out := []lemma.Body{lemma.TurnDeclared{
		Contract: lemma.Contract, Rung: p.rung, At: oc.at, PlanSummary: p.decl.PlanSummary, Lemmas: p.decl.Lemmas, Attempts: p.tries, Usage: p.usage,
	}}
	for _, w := range p.warns {
		out = append(out, w)
	}
	return out
}

// claims turns findings into what the gate rules over.
func claims(found []finding) []gate.Claim {
	out := make([]gate.Claim, len(found))
	for i, f := range found {
		out[i] = gate.Claim{Origin: f.origin, LoadBearing: f.bearing, Provenance: f.provenance, Verdict: f.verdict, Reason: f.reason, Class: f.class, Effect: f.effect, OnFalse: f.onFalse, OnUnknown: f.onUnknown}
		if f.answer != nil {
			out[i].Answer = f.answer.Answer
		}
	}
	return out
}

func addCounts(a, b lemma.Counts) lemma.Counts {
	a.Lemmas += b.Lemmas
	a.Confirmed += b.Confirmed
	a.Contradicted += b.Contradicted
	a.Inconclusive += b.Inconclusive
	a.Unjudged += b.Unjudged
	a.Unverifiable += b.Unverifiable
	a.OutOfScope += b.OutOfScope
	a.Told += b.Told
	a.Waived += b.Waived
	return a
}

func noNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// store makes a block sticky: its exact bytes and the place where it stands are
// durable before a request carries it.
func (e *Engine) store(ctx context.Context, q *Request, t *live, b block, before lemma.Body, ground bool) error {
	at := q.Route.AnchorItem
	if at < 0 {
		at = len(q.Wire.Items) - 1
	}
	anchor := route.Anchor(q.Wire, at)
	sum := sha256.Sum256([]byte(b.text))
	hash := hex.EncodeToString(sum[:])
	var drafts []ledger.Draft
	if before != nil {
		drafts = append(drafts, ledger.Draft{Turn: t.id, Body: before})
	}
	drafts = append(drafts, ledger.Draft{Turn: t.id, Blobs: [][]byte{[]byte(b.text)}, Body: lemma.TurnInjected{
		Contract: lemma.Contract, Conversation: t.conversation, BlockBlob: hash, Anchor: anchor, Why: b.why, Facts: noNil(b.facts), Deltas: b.deltas, Knowledge: b.knowledge,
	}})
	if ground {
		drafts = append(drafts, ledger.Draft{Turn: t.id, Body: lemma.TurnGrounded{Contract: lemma.Contract, BlockBlob: hash, Anchor: anchor}})
	}
	if err := e.durable(ctx, t); err != nil {
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	// A block that is not stored cannot be repeated, so nothing here fails open.
	if _, err := e.Store.Append(ctx, drafts...); err != nil {
		return fmt.Errorf("%w: store block: %w", errUnrecorded, err)
	}
	if ground {
		t.anchor = anchor
		e.mu.Lock()
		if c := e.convs[t.conversation]; c != nil && c.covered != nil && c.covered.turn == t.id {
			c.covered.anchor = anchor
		}
		e.mu.Unlock()
	}
	return nil
}
