package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// modeOf is the mode of a class; watch mode changes outcomes, not the table.
func modeOf(set Settings, c lemma.Class) lemma.Mode {
	if m, ok := set.Modes[c]; ok {
		return m
	}
	return gate.DefaultModes()[c]
}

// rule is the one choke point of all tool calls in answers: implied premises and
// the action gate sit here. It decides before a call leaves.
func (e *Engine) rule(ctx context.Context, q *Request, t *live, ans *wire.Answer, round int) (ruling, error) {
	if len(ans.Calls) == 0 {
		note := t.notes
		t.notes = ""
		return ruling{note: note}, nil
	}
	acts := make([]shell.Action, len(ans.Calls))
	effect, class := shell.Effect(""), lemma.Explore
	var edits []shell.Edit
	var summary string
	for i, c := range ans.Calls {
		a := shell.Tool(c.Name, c.Args)
		acts[i] = a
		if !effect.AtLeast(a.Effect) {
			summary = a.Summary
		}
		effect = shell.Join(effect, a.Effect)
		class = lemma.MaxClass(class, gate.CallClass(a))
		edits = append(edits, a.Edits...)
		t.external = t.external || a.External
	}
	if class.Rank() > t.class.Rank() {
		t.class = class
		t.reasons = append(t.reasons, "action: "+summary)
		if err := e.write(ctx, t, lemma.TurnClassified{Contract: lemma.Contract, Class: class, Reasons: []string{"action " + cutText(e.Redact(summary), maxValueText)}}); err != nil {
			return ruling{}, err
		}
	}
	if effect == shell.Catastrophe { // no premise makes it right
		t.decision = decide(t.decision, lemma.DecBlocked)
		e.counts.blocked.Add(1)
		return ruling{text: stopped("it would destroy this system: " + unframed(summary) + ". Nothing was run.")}, e.actions(ctx, t, ans.Calls, acts, "DENY", "catastrophe")
	}
	if !stands(q, t.anchor) {
		t.covered, t.passes, t.anchor = "", 0, "" // the model no longer knows what was found
	}
	why := e.uncovered(q, t, acts, edits, effect, class)
	if why != "" {
		return ruling{}, e.allow(ctx, t, ans.Calls, acts, why)
	}
	if round+1 >= maxRounds {
		t.decision = decide(t.decision, lemma.DecBlocked)
		if err := e.actions(ctx, t, ans.Calls, acts, "DENY", "rounds: the plan still rests on what was measured to be false"); err != nil {
			return ruling{}, err
		}
		return ruling{text: stopped("the plan was corrected several times and still rests on something that this system contradicts.")}, nil
	}
	body, err := e.body(q)
	if err != nil {
		return ruling{}, err
	}
	o, err := e.check(ctx, q, t, body, occasion{at: "action", class: class, effect: effect, action: summary, calls: callsHash(ans.Calls)})
	if err != nil {
		return ruling{}, err
	}
	switch {
	case o.again:
		return ruling{again: true}, e.actions(ctx, t, ans.Calls, acts, "WITHHELD", "premise contradicted")
	case o.ends:
		return ruling{text: o.text}, e.actions(ctx, t, ans.Calls, acts, o.state, o.why)
	}
	t.notes += o.text
	return ruling{}, e.allow(ctx, t, ans.Calls, acts, "")
}

// uncovered says why no declare pass is due before these actions, "" when one is.
// Nothing here may spare an action of effect destroy or above (13).
func (e *Engine) uncovered(q *Request, t *live, acts []shell.Action, edits []shell.Edit, effect shell.Effect, class lemma.Class) string {
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
	if onlyEdits(acts) {
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

func onlyEdits(acts []shell.Action) bool {
	for _, a := range acts {
		if a.Effect.AtLeast(shell.Mutate) && len(a.Edits) == 0 {
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

// allow records the calls as allowed.
func (e *Engine) allow(ctx context.Context, t *live, calls []wire.Call, acts []shell.Action, why string) error {
	for _, a := range acts {
		if a.Effect.AtLeast(shell.Mutate) && t.scope.Name != "" {
			e.reuse.changed(t.scope.Name, e.Now())
		}
	}
	t.openCalls = calls
	return e.actions(ctx, t, calls, acts, "ALLOW", why)
}

// actions records one ruling for all calls of an answer, before any of them leaves.
func (e *Engine) actions(ctx context.Context, t *live, calls []wire.Call, acts []shell.Action, state, why string) error {
	bodies := make([]lemma.Body, 0, len(calls))
	for i, c := range calls {
		h := sha256.New()
		h.Write([]byte(c.Name + "\x00"))
		h.Write(c.Args)
		b := lemma.ActionDecided{
			Contract: lemma.Contract, ActionHash: hex.EncodeToString(h.Sum(nil)), Tool: cutText(c.Name, maxValueText),
			Summary: cutText(e.Redact(acts[i].Summary), maxValueText), State: state, Effect: string(acts[i].Effect),
			Findings: []string{}, Premises: []string{},
		}
		if acts[i].Rule != "" {
			b.Findings = append(b.Findings, acts[i].Rule)
		}
		if why != "" {
			b.Findings = append(b.Findings, cutText(why, maxValueText))
		}
		bodies = append(bodies, b)
	}
	switch state {
	case "ALLOW":
		t.counts.Allowed += len(calls)
	case "DENY":
		t.counts.Denied += len(calls)
	case "REQUIRE_CONFIRM":
		t.counts.Held += len(calls)
	}
	return e.write(ctx, t, bodies...)
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
