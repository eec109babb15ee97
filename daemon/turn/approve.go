package turn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/approval"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// Phases of action.enforce, strictest first (13.4).
const (
	EnforceFull     = "full"      // DENY is refused, the rest that is not ALLOW is asked
	EnforceHardDeny = "hard_deny" // DENY is refused, nothing is asked
	EnforceShadow   = "shadow"    // only recorded
)

// Bounds of what a hold shows of an action.
const (
	maxActionText = 16 << 10 // bytes of its command or arguments; a longer one is not asked about
	maxArgvs      = 64       // programs, likewise
	maxAsked      = 16       // actions of one answer, likewise
	maxArgv       = 32       // words of each
	maxSignals    = 16
	maxTargets    = 16
)

// actionClaim begins the claim id of an item that is an action.
const actionClaim = "action:"

// ruled is one call of an answer with what the action gate says of it.
type ruled struct {
	call  wire.Call
	act   shell.Action // Effect is the gate's
	d     action.Decision
	phase string
	state action.State // what is carried out of d
	bind  approval.Binding
	waits bool // it stands in an open hold of this answer

	premises []string      // what it takes for granted, with the verdict
	refusal  string        // why it must not leave, "" when it may
	answer   *lemma.Answer // a person's word that covers it
}

// judgeCalls asks the action gate about each call.
func (e *Engine) judgeCalls(q *Request, t *live, calls []wire.Call) []*ruled {
	phase := e.phase()
	out := make([]*ruled, len(calls))
	for i, c := range calls {
		r := &ruled{call: c, act: shell.Tool(c.Name, c.Args), phase: phase}
		r.d = e.decideAction(action.Action{Actor: actorOf(q.Principal), Cwd: q.Scope.Cwd, Tool: c.Name, Args: c.Args}, t.opened)
		r.act.Effect = r.d.Effect
		r.state = carriedOut(phase, q.Observe, r.d)
		r.bind = approval.Of(approval.Call{Tool: c.Name, Args: c.Args, Read: r.act, Cwd: q.Scope.Cwd, Effect: r.act.Effect, Policy: r.d.Policy})
		if r.state == action.RequireConfirm || r.state == action.Escalate {
			r.answer = e.saidBefore(t, r)
		}
		for _, o := range out[:i] { // what was said for once lets one call out
			if r.answer != nil && r.answer.Scope == lemma.ScopeOnce && o.answer != nil && o.answer.Hold == r.answer.Hold && o.answer.Item == r.answer.Item {
				r.answer = nil
			}
		}
		out[i] = r
	}
	return out
}

// decideAction asks the engine's gate; one without rules of its own has the
// built-in ones.
func (e *Engine) decideAction(a action.Action, since time.Time) action.Decision {
	if e.Decide != nil {
		return e.Decide(a, since)
	}
	return action.Decide(a, nil, action.Situation{})
}

// actorOf names who acts: the key, else the user and the process (06).
func actorOf(p lemma.Principal) string {
	if p.KeyID != "" {
		return p.KeyID
	}
	return fmt.Sprintf("uid:%d pid:%d", p.UID, p.PID)
}

// carriedOut is what a phase does with a decision. What would end the system or
// reaches for gettier itself is refused in every one.
func carriedOut(phase string, observe bool, d action.Decision) action.State {
	if d.Effect.AtLeast(shell.Catastrophe) {
		return action.Deny
	}
	for _, s := range d.Signals {
		if s.Tag == "self_protection" {
			return action.Deny
		}
	}
	switch phase {
	case EnforceShadow:
		return action.Allow
	case EnforceHardDeny:
		if d.State == action.Deny {
			return action.Deny
		}
		return action.Allow
	}
	if d.Refused() {
		return action.Deny
	}
	if observe && !d.Effect.AtLeast(shell.Destroy) {
		return action.Allow
	}
	return d.State
}

// refusedCall finds the first call that must not leave and says why of each.
func refusedCall(q *Request, t *live, rs []*ruled) (first *ruled) {
	asked := 0
	for _, r := range rs {
		waits := r.answer == nil && (r.state == action.RequireConfirm || r.state == action.Escalate)
		if waits {
			asked++
		}
		switch {
		case r.state == action.Deny:
			r.refusal = r.d.Reason
		case r.answer != nil && r.answer.Answer == lemma.AnswerDeny:
			r.refusal = deniedBy(*r.answer)
		case t.side && r.state != action.Allow:
			r.refusal = r.d.Reason + " (a client's own errand asks nobody)"
		case waits && (len(textOf(r)) > maxActionText || len(r.d.Findings) > maxArgvs):
			// What cannot be shown whole cannot be approved.
			r.refusal = r.d.Reason + " (it is too long for a person to be asked about: take a smaller step)"
		case waits && asked > maxAsked:
			r.refusal = r.d.Reason + " (more actions than a person can be asked about at once: take fewer)"
		}
		if r.refusal != "" && first == nil {
			first = r
		}
	}
	return first
}

func deniedBy(a lemma.Answer) string {
	why := "a person denied it"
	if a.Text != "" {
		why += ": " + a.Text
	}
	return why
}

// refusalText tells the model, and whoever reads along, what was refused and why.
func refusalText(r *ruled, calls int) string {
	text := fmt.Sprintf("%s: %s.", unframed(r.act.Summary), unframed(r.refusal))
	if calls > 1 {
		text += " None of the " + strconv.Itoa(calls) + " calls of this answer was run."
	} else {
		text += " Nothing was run."
	}
	if r.state != action.Deny {
		return stopped(text)
	}
	return stopped(text + " Do not try it in another way; say what you need it for, or do without it.")
}

// pending are the acts that wait for a person.
func (o occasion) pending() []*ruled {
	var out []*ruled
	for _, r := range o.acts {
		if r.answer == nil && (r.state == action.RequireConfirm || r.state == action.Escalate) {
			out = append(out, r)
		}
	}
	return out
}

// approved reports that a person approved every act that destroys.
func (o occasion) approved() bool {
	some := false
	for _, r := range o.acts {
		if !r.act.Effect.AtLeast(shell.Destroy) {
			continue
		}
		if r.answer == nil || r.answer.Answer != lemma.AnswerApprove {
			return false
		}
		some = true
	}
	return some
}

// saidBefore finds a person's word on this action: for the task, or once and not
// used yet. A chat's word never counts, nor one that was said of other content.
func (e *Engine) saidBefore(t *live, r *ruled) *lemma.Answer {
	if t.conversation == "" {
		return nil
	}
	for _, a := range e.Store.Approvals(scopeName(t.scope), t.conversation, actionClaim+r.bind.Task, e.Now()) {
		h, err := e.Store.Hold(a.Hold)
		if err != nil {
			continue
		}
		for _, it := range h.Items {
			if it.ID == a.Item && it.Action != nil && reaches(a, *it.Action, r) {
				return &a
			}
		}
	}
	return nil
}

// reaches reports whether a word on one action covers another that is filed
// under the same id.
func reaches(a lemma.Answer, asked lemma.HeldAction, r *ruled) bool {
	switch {
	case a.By.Via == "chat", a.Answer == lemma.AnswerDeny && a.Scope == lemma.ScopeOnce:
		return false
	case asked.Hash == r.bind.Hash:
		return true
	case a.Answer != lemma.AnswerApprove || a.Scope != lemma.ScopeTask || r.act.Effect.AtLeast(shell.Destroy):
		return false
	}
	return len(asked.Prefix) > 0 && asked.State == string(r.state) && approval.Covers(asked.Targets, r.bind.Targets)
}

// textOf is what a person reads of a call: its command, or its arguments.
func textOf(r *ruled) string {
	if r.act.Command != "" {
		return r.act.Command
	}
	return string(r.call.Args)
}

// spend uses up what was said for once. It is false when another request let an
// action out by the same word meanwhile.
func (e *Engine) spend(rs []*ruled) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range rs {
		if r.answer == nil || r.answer.Scope != lemma.ScopeOnce {
			continue
		}
		word := r.answer.Hold + "/" + r.answer.Item
		if e.spent[word] {
			return false
		}
		if e.spent == nil || len(e.spent) >= maxSpent {
			e.spent = map[string]bool{} // older ones stand on the chain
		}
		e.spent[word] = true
	}
	return true
}

// maxSpent bounds the words remembered beside the chain.
const maxSpent = 4096

// actionItem is an act as a hold shows it.
func (e *Engine) actionItem(t *live, id int, r *ruled, undeclared bool) lemma.HoldItem {
	text := e.Redact(strings.ToValidUTF8(textOf(r), "�"))
	a := &lemma.HeldAction{
		Hash: r.bind.Hash, Tool: cutText(r.call.Name, maxValueText), Text: text, Cwd: cutText(e.Redact(t.scope.Cwd), maxClaimText), Effect: string(r.act.Effect),
		State: string(r.state), DecisionID: r.d.DecisionID, Policy: cutText(r.d.Policy, maxValueText), Findings: []string{},
	}
	if r.act.Dir != "" {
		a.Cwd = cutText(e.Redact(r.act.Dir), maxClaimText)
	}
	if len(text) > maxActionText {
		a.Text = strings.ToValidUTF8(text[:maxActionText], "")
		a.Cut = len(text) - len(a.Text)
	}
	for i, f := range r.d.Findings {
		if i == maxArgvs {
			break
		}
		a.Findings = append(a.Findings, cutText(e.Redact(fmt.Sprintf("%s %s: %s", f.Effect, f.Rule, f.Why)), maxValueText))
		if len(f.Argv) > 0 {
			a.Runs = append(a.Runs, lemma.HeldCommand{Argv: e.redacted(f.Argv, maxArgv), Wrappers: e.redacted(f.Wrappers, maxArgv)})
		}
	}
	// What an approval covers beside this call is written as it is compared, so a
	// list that a secret stands in, or that is long, covers nothing else.
	if len(r.bind.Targets) <= maxTargets && same(r.bind.Targets, e.redacted(r.bind.Targets, maxTargets)) {
		a.Prefix, a.Targets = e.redacted(r.bind.Prefix, maxArgvs), r.bind.Targets
	}
	it := lemma.HoldItem{
		ID: strconv.Itoa(id), ClaimID: actionClaim + r.bind.Task, Claim: cutText(e.Redact(r.act.Summary), maxClaimText), Reason: cutText(e.Redact(r.d.Reason), maxValueText),
		Verdict: lemma.Unjudged, Tried: []string{}, Action: a,
	}
	if undeclared {
		it.Tried = append(it.Tried, "the model did not say which facts its plan depends on")
	}
	return it
}

func (e *Engine) redacted(words []string, most int) []string {
	out := make([]string, 0, min(len(words), most))
	for _, w := range words[:min(len(words), most)] {
		out = append(out, cutText(e.Redact(w), maxValueText))
	}
	return out
}

func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// heard takes a hold's answers over to the acts that waited in it; why is set
// when a person said no.
func (e *Engine) heard(h lemma.Hold, acts []*ruled) (why string) {
	for _, it := range h.Items {
		if it.Action == nil || it.Answer == nil || it.Answer.By.Via == "chat" {
			continue
		}
		a := *it.Answer
		if a.RevokedAt != "" { // whatever it was, it is a no by now
			a.Answer, a.Text = lemma.AnswerDeny, "the answer was taken back"
		}
		for _, r := range acts {
			if r.bind.Hash == it.Action.Hash {
				r.answer = &a
				if a.Answer != lemma.AnswerApprove {
					r.refusal = deniedBy(a)
				}
			}
		}
		if a.Answer != lemma.AnswerApprove && why == "" {
			why = deniedBy(a)
		}
	}
	return why
}

// askAction adds what the action gate asks for to what the premises said, so that
// a person is asked once. A corrected plan comes back anew, with its own acts.
// Their approval settles that nothing was declared, too.
func (e *Engine) askAction(q *Request, c *checked, d *gate.Out) {
	pending := c.oc.pending()
	if len(pending) == 0 {
		for _, r := range c.oc.acts {
			if r.answer != nil && !d.Deny {
				d.Decision = lemma.Stronger(d.Decision, lemma.DecConfirmedByUser)
			}
		}
		return
	}
	if len(d.Correct) > 0 {
		return
	}
	for _, r := range pending {
		if r.act.Effect.AtLeast(shell.Destroy) {
			d.HoldTurn = false
		}
		d.Reasons = append(d.Reasons, cutText(e.Redact("action "+string(r.d.State)+": "+r.d.Reason), maxValueText))
	}
	dec := lemma.DecHeld
	if !e.attended(q) {
		dec = lemma.DecBlocked
	}
	d.Decision, d.Deny, c.asks = lemma.Stronger(d.Decision, dec), true, true
}
