package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// modeOf is the mode of a class; watch mode changes outcomes, not the table.
func modeOf(set Settings, c lemma.Class) lemma.Mode {
	if m, ok := set.Modes[c]; ok {
		return m
	}
	return gate.DefaultModes()[c]
}

// rule is the one choke point of all tool calls in answers: the action gate and
// implied premises sit here. It decides before a call leaves.
func (e *Engine) rule(ctx context.Context, q *Request, t *live, ans *wire.Answer, round int) (ruling, error) {
	if len(ans.Calls) == 0 {
		note := t.notes
		t.notes = ""
		return ruling{note: note}, nil
	}
	t.stage = "action"
	rs := e.judgeCalls(q, t, ans.Calls)
	effect, class := shell.Effect(""), lemma.Explore
	var edits []shell.Edit
	var summary string
	for _, r := range rs {
		if !effect.AtLeast(r.act.Effect) {
			summary = r.act.Summary
		}
		effect = shell.Join(effect, r.act.Effect)
		class = lemma.MaxClass(class, gate.CallClass(r.act))
		edits = append(edits, r.act.Edits...)
		t.external = t.external || r.act.External
	}
	if class.Rank() > t.class.Rank() {
		t.class = class
		t.reasons = append(t.reasons, "action: "+summary)
		if err := e.write(ctx, t, lemma.TurnClassified{Contract: lemma.Contract, Class: class, Reasons: []string{"action " + cutText(e.Redact(summary), maxValueText)}}); err != nil {
			return ruling{}, err
		}
	}
	if r := refusedCall(q, t, rs); r != nil { // no premise makes it right
		t.decision = decide(t.decision, lemma.DecBlocked)
		e.counts.blocked.Add(1)
		return ruling{text: refusalText(r, len(rs))}, e.refused(ctx, t, rs)
	}
	if n := e.revocations(); !stands(q, t.anchor) || n != t.revoked {
		// The model no longer knows what was found, or a person thought better of it.
		t.covered, t.passes, t.anchor, t.revoked = "", 0, "", n
	}
	oc := occasion{at: "action", class: class, effect: effect, action: summary, calls: callsHash(ans.Calls), acts: rs}
	taken, err := e.implied(ctx, q, t, rs, effect)
	if err != nil {
		return ruling{}, fmt.Errorf("measure what the action takes for granted: %w", err)
	}
	oc.taken = taken
	var o outcome
	why := e.uncovered(q, t, rs, edits, effect, class)
	switch {
	case round+1 >= maxRounds && (why == "" || len(taken.found) > 0):
		t.decision = decide(t.decision, lemma.DecBlocked)
		if err := e.actions(ctx, t, rs, "DENY", "rounds: the plan still rests on what was measured to be false"); err != nil {
			return ruling{}, err
		}
		return ruling{text: stopped("the plan was corrected several times and still rests on something that this system contradicts.")}, nil
	case why == "":
		body, err := e.body(q)
		if err != nil {
			return ruling{}, err
		}
		if o, err = e.check(ctx, q, t, body, oc); err != nil {
			return ruling{}, err
		}
	case len(oc.pending())+len(taken.found) > 0:
		if o, err = e.decideOn(ctx, q, t, &checked{verified: taken, oc: oc, rung: t.rung, before: t.decision, counts: t.counts, bare: true}); err != nil {
			return ruling{}, err
		}
	}
	switch {
	case o.again:
		return ruling{again: true}, e.actions(ctx, t, rs, "WITHHELD", "premise contradicted")
	case o.ends:
		return ruling{text: o.text}, e.actions(ctx, t, rs, o.state, o.why)
	}
	t.notes += o.text
	return ruling{}, e.allow(ctx, t, rs, why)
}

// uncovered says why no declare pass is due before these actions, "" when one is.
// Nothing here may spare an action of effect destroy or above (13).
func (e *Engine) uncovered(q *Request, t *live, rs []*ruled, edits []shell.Edit, effect shell.Effect, class lemma.Class) string {
	set := e.Settings()
	if effect.AtLeast(shell.Destroy) {
		return ""
	}
	if !effect.AtLeast(shell.Mutate) {
		return "read_only"
	}
	if q.Observe {
		return "this upstream is only observed"
	}
	if t.side {
		return "a side request declares nothing"
	}
	if modeOf(set, class) == lemma.Off {
		return "mode off for " + string(class)
	}
	if !set.DeclareAtAction {
		return "declared at the prompt"
	}
	if onlyEdits(rs) {
		if ok, why := gate.Trivial(edits); ok {
			return "trivial: " + why
		}
	}
	if t.passes >= set.DeclareMaxPerTurn {
		return "declared as often as declare.max_per_turn allows"
	}
	if t.covered != "" && class.Rank() <= t.covered.Rank() {
		return "covered by this turn's declaration"
	}
	if stage := e.broken(t, class); stage != "" {
		return "the breaker is open for " + stage
	}
	if cov := e.reusable(q, t, class); cov != "" {
		return cov
	}
	return e.measurable(t, q.Route.PersonText)
}

// broken names a stage whose breaker is open for what class asks, "" when none
// is: classes that may block are never spared (03, Failure).
func (e *Engine) broken(t *live, class lemma.Class) string {
	for _, stage := range []string{"declare", "verify", "decide"} {
		if class.Rank() <= lemma.Edit.Rank() && e.breaker.open(stage, t.conversation, e.Now()) {
			return stage
		}
	}
	return ""
}

func onlyEdits(rs []*ruled) bool {
	for _, r := range rs {
		if r.act.Effect.AtLeast(shell.Mutate) && len(r.act.Edits) == 0 {
			return false
		}
	}
	return true
}

// stands reports whether the block at anchor is still part of the request; no
// anchor always is.
func stands(q *Request, anchor string) bool {
	return anchor == "" || slices.Contains(route.Anchors(q.Wire), anchor)
}

// reusable reports an earlier declaration of the conversation that still covers
// an action of class: same root, young enough, nothing foreign came in, and for
// class change no new person's words but a bare continuation (13.8).
func (e *Engine) reusable(q *Request, t *live, class lemma.Class) string {
	e.mu.Lock()
	var cov *coverage
	if c := e.convs[t.conversation]; c != nil {
		cov = c.covered
	}
	e.mu.Unlock()
	if cov == nil || cov.turn == t.id || cov.root != t.scope.Root || t.external || !stands(q, cov.anchor) {
		return ""
	}
	if e.Now().Sub(cov.at) > e.Settings().DeclareReuse || class.Rank() > cov.class.Rank() {
		return ""
	}
	if class.Rank() >= lemma.Change.Rank() && !gate.BareContinuation(q.Route.PersonText) {
		return ""
	}
	return "covered by the declaration of turn " + cov.turn
}

// measurable says why nothing could be measured for this turn, "" when something can.
func (e *Engine) measurable(t *live, text string) string {
	if t.scope.Root == "" {
		return "no certain scope: " + t.scope.Evidence
	}
	v := e.Sensors.View(t.scope.Root)
	if v == nil || len(v.Sensors) == 0 {
		return "no approved sensor applies here"
	}
	return ""
}

// allow records the calls as allowed. What a person approved leaves on that
// word, and a word that was given for once is used up by this entry.
func (e *Engine) allow(ctx context.Context, t *live, rs []*ruled, why string) error {
	if !e.spend(rs) {
		return errors.New("fail_closed:approval: what was approved once has happened already")
	}
	t.openCalls = nil
	for _, r := range rs {
		if r.act.Effect.AtLeast(shell.Mutate) && t.scope.Name != "" {
			e.reuse.changed(t.scope.Name, e.Now())
		}
		t.openCalls = append(t.openCalls, r.call)
	}
	return e.actions(ctx, t, rs, "ALLOW", why)
}

// refused records calls of which at least one must not leave: none of them does.
func (e *Engine) refused(ctx context.Context, t *live, rs []*ruled) error {
	bodies := make([]lemma.Body, len(rs))
	for i, r := range rs {
		state, why := "WITHHELD", "another call of this answer was refused"
		if r.refusal != "" {
			state, why = "DENY", r.refusal
		}
		bodies[i] = e.actionBody(t.scope.Cwd, r, state, why)
	}
	return e.recordActions(ctx, t, rs, bodies, "DENY")
}

// actions records one ruling for all calls of an answer, before any of them leaves.
func (e *Engine) actions(ctx context.Context, t *live, rs []*ruled, state, why string) error {
	bodies := make([]lemma.Body, len(rs))
	for i, r := range rs {
		of := state
		if r.waits && (state == "REQUIRE_CONFIRM" || state == "ESCALATE") {
			of = string(r.state)
		}
		bodies[i] = e.actionBody(t.scope.Cwd, r, of, why)
	}
	return e.recordActions(ctx, t, rs, bodies, state)
}

// recordActions makes the entries durable. What the gate did not plainly allow,
// and what it cannot read, never leaves unrecorded, whatever else may.
func (e *Engine) recordActions(ctx context.Context, t *live, rs []*ruled, bodies []lemma.Body, state string) error {
	must := false
	for _, r := range rs {
		must = must || r.d.State != action.Allow || r.act.Effect.AtLeast(shell.Opaque)
	}
	switch state {
	case "ALLOW":
		t.counts.Allowed += len(rs)
	case "DENY":
		t.counts.Denied += len(rs)
	case "REQUIRE_CONFIRM", "ESCALATE":
		t.counts.Held += len(rs)
	}
	if !must || state != "ALLOW" {
		return e.write(ctx, t, bodies...)
	}
	drafts := make([]ledger.Draft, len(bodies))
	for i, b := range bodies {
		drafts[i] = ledger.Draft{Turn: t.id, Body: b}
	}
	if err := e.durable(ctx, t); err != nil {
		return fmt.Errorf("fail_closed:audit: %w", err)
	}
	if _, err := e.Store.Append(ctx, drafts...); err != nil {
		return fmt.Errorf("fail_closed:audit: %w", err)
	}
	return nil
}

// actionBody is what stands on the chain of one call.
func (e *Engine) actionBody(cwd string, r *ruled, state, why string) lemma.Body {
	h := sha256.New()
	h.Write([]byte(r.call.Name + "\x00"))
	h.Write(r.call.Args)
	b := lemma.ActionDecided{
		Contract: lemma.Contract, ActionHash: hex.EncodeToString(h.Sum(nil)), Tool: cutText(r.call.Name, maxValueText),
		Summary: cutText(e.Redact(r.act.Summary), maxValueText), State: state, Effect: string(r.act.Effect), Risk: r.d.RiskScore,
		Findings: []string{}, Premises: noNil(r.premises),
		Semantic: r.d.Semantic.Strings(), Ruled: string(r.d.State), Enforce: r.phase, DecisionID: r.d.DecisionID, ContextHash: r.d.ContextHash, Policy: cutText(r.d.Policy, maxValueText),
		Cwd: cutText(e.Redact(cwd), maxValueText),
	}
	if r.act.Rule != "" {
		b.Findings = append(b.Findings, r.act.Rule)
	}
	if why != "" {
		b.Findings = append(b.Findings, cutText(e.Redact(why), maxValueText))
	}
	for _, s := range r.d.Signals[:min(len(r.d.Signals), maxSignals)] {
		b.Signals = append(b.Signals, cutText(e.Redact(fmt.Sprintf("%s %s %d %s: %s", s.Stage, s.Tag, s.Score, s.State, s.Reason)), maxValueText))
	}
	if state == "ALLOW" && r.answer != nil {
		b.Approval = r.answer.Hold + "/" + r.answer.Item
	}
	return b
}

// stopped frames a text of ours that stands in place of an answer.
func stopped(why string) string { return "gettier stopped this: " + why }

// callsHash names the very calls of an answer, names and arguments.
func callsHash(calls []wire.Call) string {
	h := sha256.New()
	for _, c := range calls {
		fmt.Fprintf(h, "%d:%s%d:", len(c.Name), c.Name, len(c.Args))
		h.Write(c.Args)
	}
	return hex.EncodeToString(h.Sum(nil))
}
