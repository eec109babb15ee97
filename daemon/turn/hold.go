package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// Holds is what a turn needs of the book of holds.
type Holds interface {
	Open(ctx context.Context, h lemma.Hold, before ...ledger.Draft) (lemma.Hold, error)
	Answer(ctx context.Context, id string, items []hold.ItemAnswer, by lemma.Answerer) (lemma.Hold, error)
	Done(id string) <-chan struct{}
	Expire(ctx context.Context, now time.Time) error
}

// turnClaim begins the claim id of an item that stands for a turn as a whole: it
// binds the very calls that wait, or the turn where none do.
const turnClaim = "turn:"

// askPerson opens one hold for all that a person must settle, waits as long as this
// client can, and decides again with the answers. Otherwise the turn ends with
// the question as text and the stored turn waits for its answer.
func (e *Engine) askPerson(ctx context.Context, q *Request, t *live, c *checked, d gate.Out, decided ledger.Draft) (outcome, error) {
	now := e.Now()
	kind, pending := "claims", []*ruled(nil)
	if c.asks {
		kind, pending = "action", c.oc.pending()
	}
	h := lemma.Hold{
		Kind: kind, Scope: scopeName(t.scope), Turn: t.id, Conversation: t.conversation, Class: d.Class,
		Model: cutText(q.Wire.Model, maxValueText), Agent: q.Principal.Agent, PlanSummary: c.plan,
		ExpiresAt: lemma.Time(now.Add(e.Settings().HoldTTL)), Asker: &lemma.Asker{PID: q.Principal.PID, Start: q.Principal.Start},
	}
	for _, i := range d.Hold {
		f := c.found[i]
		h.Items = append(h.Items, lemma.HoldItem{
			ID: fmt.Sprint(len(h.Items) + 1), ClaimID: f.claimID, TopicID: f.topicID, Claim: f.claim, Reason: f.reason, Verdict: f.verdict,
			Sensor: f.sensor, Invocation: f.inv, Tried: noNil(f.tried), EvidenceExcerpt: cutText(f.measured, maxValueText),
		})
	}
	if d.HoldTurn {
		h.Items = append(h.Items, lemma.HoldItem{
			ID: fmt.Sprint(len(h.Items) + 1), ClaimID: turnClaim + cmp.Or(c.oc.calls, t.id), Claim: "this action rests on no false premise", Verdict: lemma.Inconclusive,
			Reason: "the model did not say what its plan depends on", Tried: []string{},
		})
	}
	for _, r := range pending {
		r.waits = true
		h.Items = append(h.Items, e.actionItem(t, len(h.Items)+1, r, c.undeclared))
	}
	wait := e.patience(q)
	if wait > 0 {
		h.ClientDeadline = lemma.Time(now.Add(wait))
	}
	h, err := e.Holds.Open(ctx, h, decided)
	if err != nil {
		return outcome{}, err
	}
	if d.Decision == lemma.DecHeld && h.Turn == t.id && kind == "claims" && c.oc.effect.Rank() < shell.Destroy.Rank() {
		e.budget.add(now)
	}
	t.hold, t.stage = h.ID, "hold"
	t.show(func(s *snapshot) { s.hold = h.ID })
	if d.Decision == lemma.DecBlocked {
		t.stage = "decide"
		return outcome{ends: true, text: blockedText(c, d, h), state: "DENY", why: "blocked, hold " + h.ID}, nil
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-e.Holds.Done(h.ID):
			return e.answered(ctx, q, t, c, h.ID)
		case <-timer.C:
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
	return outcome{ends: true, text: hold.Question(h, unframed), state: "REQUIRE_CONFIRM", why: "held: " + h.ID}, nil
}

// patience is how long this client is kept waiting for a person who is there.
func (e *Engine) patience(q *Request) time.Duration {
	set := e.Settings()
	if !set.WaitAlways && (e.Attended == nil || !e.Attended()) {
		return 0
	}
	wait := set.ClientWait
	if !q.Wire.Stream && q.Timeout > 0 { // nothing can be sent to keep it alive
		wait = min(wait, max(q.Timeout-15*time.Second, 0))
	}
	return wait
}

// answered decides again with what a person said to the hold.
func (e *Engine) answered(ctx context.Context, q *Request, t *live, c *checked, id string) (outcome, error) {
	h, err := e.Store.Hold(id)
	if err != nil {
		return outcome{}, fmt.Errorf("read hold: %w", err)
	}
	switch h.State {
	case lemma.HoldOpen:
		return outcome{ends: true, text: hold.Question(h, unframed), state: "REQUIRE_CONFIRM", why: "held: " + h.ID}, nil
	case lemma.HoldAnswered:
	default:
		t.decision, t.stage = decide(c.before, lemma.DecBlocked), "decide"
		return outcome{ends: true, text: stopped("hold " + short(h.ID) + " " + string(h.State) + " without an answer. Nothing was run; ask again."), state: "DENY", why: "hold " + string(h.State)},
			e.write(ctx, t, lemma.GateDecided{Contract: lemma.Contract, Decision: lemma.DecBlocked, Class: c.oc.class, Mode: lemma.Block, Reasons: []string{"hold " + string(h.State)}})
	}
	for i := range c.found {
		f := &c.found[i]
		for _, it := range h.Items {
			if it.ClaimID == f.claimID && it.Answer != nil && c.oc.takes(*it.Answer) {
				a := *it.Answer
				f.answer, f.reason = &a, "answered in hold "+h.ID
				f.verdict = lemma.VerdictTold
				if a.Answer == lemma.AnswerWaive {
					f.verdict = lemma.Waived
				}
			}
		}
	}
	for _, it := range h.Items {
		if strings.HasPrefix(it.ClaimID, turnClaim) && it.Answer != nil && c.oc.takes(*it.Answer) {
			c.turnAnswer = it.Answer.Answer
		}
	}
	t.hold, t.stage = "", "decide"
	t.show(func(s *snapshot) { s.hold = "" })
	if why := e.heard(h, c.oc.acts); why != "" {
		t.decision = decide(c.before, lemma.DecBlocked)
		return outcome{ends: true, text: stopped(unframed(why) + ". Nothing was run."), state: "DENY", why: why + ", hold " + h.ID},
			e.write(ctx, t, lemma.GateDecided{Contract: lemma.Contract, Decision: lemma.DecBlocked, Class: c.oc.class, Mode: lemma.Block, Reasons: []string{"a person said no, hold " + h.ID}})
	}
	if len(c.oc.acts) == 0 && c.turnAnswer == "" && slices.ContainsFunc(h.Items, func(it lemma.HoldItem) bool {
		return it.Action != nil && it.Answer != nil && it.Answer.RevokedAt == ""
	}) {
		c.turnAnswer = lemma.AnswerApprove // a stored turn: the calls come again, and are ruled on again
	}
	return e.decideOn(ctx, q, t, c)
}

// resume goes on with a stored turn whose hold was open when it was left: after a
// lost connection, a restart of the daemon, or in the chat's next message.
// Declaration, verdicts and answers are those of the chain; nothing is asked anew.
func (e *Engine) resume(ctx context.Context, q *Request, t *live, id string) (outcome, error) {
	h, err := e.Store.Hold(id)
	if err != nil {
		return outcome{}, fmt.Errorf("read hold: %w", err)
	}
	c, err := e.stored(h)
	if err != nil {
		return outcome{}, err
	}
	if view := e.Sensors.View(t.scope.Root); view != nil { // one that is gone counts as internal
		for i := range c.found {
			if s, ok := view.Lookup(c.found[i].sensor); ok {
				c.found[i].sensitivity = s.Sensitivity
			}
		}
	}
	c.before = lemma.DecPassThrough
	t.class = lemma.MaxClass(t.class, c.oc.class)
	t.rung, t.gated = c.rung, true
	if h.State == lemma.HoldOpen {
		t.hold, t.stage, t.decision = h.ID, "hold", lemma.DecHeld
		t.show(func(s *snapshot) { s.hold = h.ID })
		if wait := e.patience(q); wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-e.Holds.Done(h.ID):
			case <-timer.C:
			case <-ctx.Done():
				return outcome{}, ctx.Err()
			}
		}
	}
	return e.answered(ctx, q, t, c, h.ID)
}

// stored reads a check back from the entries of the turn that was held.
func (e *Engine) stored(h lemma.Hold) (*checked, error) {
	entries, err := e.Store.TurnEntries(h.Turn)
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	c := &checked{rung: -1, oc: occasion{at: "prompt", class: h.Class}}
	for _, en := range entries {
		switch lemma.Kind(en.Kind) {
		case lemma.KTurnDeclared:
			var b lemma.TurnDeclared
			if err := json.Unmarshal(en.Body, &b); err != nil {
				return nil, fmt.Errorf("read entry %d: %w", en.Seq, err)
			}
			c.found, c.undeclared, c.rung, c.plan = nil, false, b.Rung, b.PlanSummary
		case lemma.KTurnUndeclared:
			c.found, c.undeclared = nil, true
		case lemma.KClaimJudged:
			var b lemma.ClaimJudged
			if err := json.Unmarshal(en.Body, &b); err != nil {
				return nil, fmt.Errorf("read entry %d: %w", en.Seq, err)
			}
			c.found = append(c.found, finding{
				claim: b.Claim, claimID: b.ClaimID, topicID: b.TopicID, lemma: b.Lemma, origin: b.Origin, bearing: true, provenance: b.Provenance,
				verdict: b.Verdict, reason: b.Reason, rule: b.Rule, sensor: b.Sensor, inv: b.Invocation, key: b.Key, measured: b.Measured, claimed: b.Claimed,
			})
		case lemma.KGateDecided:
			var b lemma.GateDecided
			if err := json.Unmarshal(en.Body, &b); err != nil {
				return nil, fmt.Errorf("read entry %d: %w", en.Seq, err)
			}
			c.oc.class = b.Class
		}
	}
	return c, nil
}

// reply takes a person's chat message as the answer to a hold, under the
// conditions of 13.2. why is set when it looks like one and must not count.
func (e *Engine) reply(ctx context.Context, q *Request, t *live) (h lemma.Hold, ok bool, why string, err error) {
	if len(q.Route.Queued) > 0 {
		return h, false, "", nil
	}
	r, ok := hold.ReadReply(q.Route.PersonText)
	h, named, err := e.meant(q, r, ok)
	if err != nil || !named {
		return h, false, "", err // an ordinary message
	}
	switch {
	case !ok:
		why = "it cannot be read as one"
	case h.State != lemma.HoldOpen:
		why = (&hold.Closed{Hold: h}).Error()
	case h.Kind != "claims" || h.Class.Rank() >= lemma.Destructive.Rank():
		why = "what destroys is answered in a terminal only"
		if h.Kind == "action" {
			why = "actions are approved in a terminal only"
		}
	case h.Conversation != t.conversation:
		why = "it was not asked in this conversation"
	case !asked(q.Wire, q.Route.PersonItem, hold.Question(h, unframed)):
		why = "it does not stand straight after the question"
	case h.Asker == nil || h.Asker.PID != q.Principal.PID || h.Asker.Start != q.Principal.Start || q.Principal.Start == 0:
		why = "it comes from another process than the one that was asked"
	case !q.Route.Interactive:
		why = "this client is not an interactive chat"
	}
	by := lemma.Answerer{UID: q.Principal.UID, User: q.Principal.User, Via: "chat"}
	if why == "" && q.Person != nil {
		who, perr := q.Person()
		if perr != nil {
			why = perr.Error()
		} else {
			by = who
		}
	}
	if why != "" && hold.PersonRule {
		return h, false, why, nil
	}
	answered, err := e.Holds.Answer(ctx, h.ID, r.Items, by)
	var closed *hold.Closed
	if errors.As(err, &closed) || errors.Is(err, hold.ErrIncomplete) {
		return h, false, err.Error(), nil
	}
	return answered, err == nil, "", err
}

// meant finds the hold that a person's message is about: an open one that a reply
// names, or, whatever its state, the one whose question the message stands
// straight after and names. What was meant as an answer never goes on to a model
// as if nothing had been said.
func (e *Engine) meant(q *Request, r hold.Reply, read bool) (lemma.Hold, bool, error) {
	find := func(state lemma.HoldState, fits func(lemma.Hold) bool) (lemma.Hold, bool, error) {
		page, err := e.Store.Holds(state, ledger.MaxLimit, "")
		if err != nil {
			return lemma.Hold{}, false, fmt.Errorf("list holds: %w", err)
		}
		i := slices.IndexFunc(page.Items, fits)
		if i < 0 {
			return lemma.Hold{}, false, nil
		}
		return page.Items[i], true, nil
	}
	if read && len(r.Hold) >= lemma.ShortLen-1 {
		if h, ok, err := find(lemma.HoldOpen, func(o lemma.Hold) bool { return strings.HasSuffix(o.ID, r.Hold) }); ok || err != nil {
			return h, ok, err
		}
	}
	if !questioned(q.Wire, q.Route.PersonItem) {
		return lemma.Hold{}, false, nil
	}
	return find("", func(o lemma.Hold) bool {
		return hold.Names(q.Route.PersonText, o.ID) && asked(q.Wire, q.Route.PersonItem, hold.Question(o, unframed))
	})
}

// questioned reports cheaply whether the item before the person's words may be a
// question of ours.
func questioned(r *wire.Request, person int) bool {
	if person < 1 || person >= len(r.Items) {
		return false
	}
	return slices.ContainsFunc(r.Items[person-1].Parts, func(p wire.Part) bool { return strings.Contains(p.Text, hold.Opening) })
}

// asked reports whether the item before the person's words is the very question.
func asked(r *wire.Request, person int, question string) bool {
	if person < 1 || person >= len(r.Items) {
		return false
	}
	prev := r.Items[person-1]
	if prev.Role != "assistant" {
		return false
	}
	var text strings.Builder
	for _, p := range prev.Parts {
		if p.Kind == wire.Text {
			text.WriteString(p.Text)
		}
	}
	// Text that had left before the question may stand in front of it.
	return strings.HasSuffix(strings.TrimSpace(text.String()), question)
}

func short(id string) string { return id[max(len(id)-lemma.ShortLen, 0):] }

// blockedText says why nothing was run and how to go on.
func blockedText(c *checked, d gate.Out, h lemma.Hold) string {
	var b strings.Builder
	acts := slices.ContainsFunc(h.Items, func(it lemma.HoldItem) bool { return it.Action != nil })
	if acts {
		b.WriteString("gettier stopped this: it needs a person's approval, and nobody attends.\n")
	} else if len(h.Items) == 0 {
		b.WriteString("gettier stopped this: it rests on something that is not so here.\n")
	} else {
		b.WriteString("gettier stopped this: a destructive action rests on something that was not settled.\n")
	}
	for _, i := range d.Hold {
		fmt.Fprintf(&b, "  Assumed:  %s\n", unframed(c.found[i].claim))
		for _, tr := range c.found[i].tried {
			fmt.Fprintf(&b, "  Tried:    %s\n", unframed(tr))
		}
	}
	for _, f := range c.found {
		if len(h.Items) == 0 && f.verdict == lemma.Contradicted {
			fmt.Fprintf(&b, "  Assumed:  %s\n  Measured: %s = %s (%s)\n", unframed(f.claim), unframed(f.key), unframed(f.measured), unframed(f.sensor))
		}
	}
	for _, it := range h.Items {
		if it.Action != nil {
			fmt.Fprintf(&b, "  Wants:    %s\n  Because:  %s: %s\n", unframed(hold.Clip(it.Action.Text)), unframed(it.Action.Effect), unframed(it.Reason))
		}
	}
	if d.HoldTurn || acts && c.undeclared {
		b.WriteString("  The model did not say which facts the plan depends on.\n")
	}
	if len(h.Items) == 0 {
		b.WriteString("Nothing was run.")
	} else if acts {
		fmt.Fprintf(&b, "Nothing was run. A person can approve it in a terminal (gettier answer %s), then ask again.", short(h.ID))
	} else {
		fmt.Fprintf(&b, "Nothing was run. A person can answer in a terminal (gettier answer %s), then ask again; or mend the sensor.", short(h.ID))
	}
	return b.String()
}

// noteText is the end of an answer that was verified beside it.
func noteText(found []finding, which []int, trusted bool) string {
	var b strings.Builder
	b.WriteString("\n\n[gettier]")
	for _, i := range which {
		f := found[i]
		switch f.verdict {
		case lemma.Contradicted:
			fmt.Fprintf(&b, "\n- not so here: %s. Measured by %s: %s = %s", unframed(f.claim), f.sensor, f.key, f.shown(trusted)) // the next request carries it
		default:
			fmt.Fprintf(&b, "\n- not verified: %s (%s)", unframed(f.claim), strings.TrimSpace(string(f.verdict)+" "+unframed(f.reason)))
		}
	}
	return b.String()
}

// unframed is foreign text on one line, without anything that could pass for a
// frame of ours. What a person is asked about is shown whole: claims and what
// was tried are shorter than this by contract.
func unframed(s string) string {
	s = quote(s, hold.MaxText)
	return s[1 : len(s)-1]
}
