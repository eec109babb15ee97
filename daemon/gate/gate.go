// Package gate rules on premises: how consequential a turn is, which provenance
// a claim really has, and what the verdicts on its claims mean for the answer.
// Pure: the same input gives the same decision, so that a replay is exact. It
// measures nothing, asks nobody and keeps nothing.
package gate

import (
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// DefaultModes is the mode of each class when nothing is configured.
func DefaultModes() map[lemma.Class]lemma.Mode {
	return map[lemma.Class]lemma.Mode{
		lemma.Explore: lemma.Off, lemma.Edit: lemma.Correct,
		lemma.Change: lemma.Block, lemma.Destructive: lemma.Block,
	}
}

// In is everything a decision depends on.
type In struct {
	Class lemma.Class
	// Effect is the strongest effect among the actions that this decision would
	// let out, "" when it lets none out.
	Effect shell.Effect
	Modes  map[lemma.Class]lemma.Mode // an absent class has its default
	Watch  bool                       // gate.mode: watch
	// Attended: a person can answer now (TUI, editor, interactive chat).
	Attended bool
	// OverBudget: the hold budget of this hour or day is used up.
	OverBudget bool
	// Undeclared: a declaration was due and none came. An empty declaration
	// on a destructive turn counts as none, whatever this says.
	Undeclared         bool
	HoldOnUnverifiable bool
	AnnotateGaps       bool
	Claims             []Claim
	// Answer is a person's answer to the turn as a whole (Out.HoldTurn).
	Answer lemma.AnswerKind
	// Failed is a stage of ours that failed: actions and blocked classes close,
	// the others go on visibly.
	Failed string
}

// Claim is one premise with its verdict.
type Claim struct {
	Origin      string // declared | implied | ambient
	LoadBearing bool
	Provenance  lemma.Provenance // effective, after the audit
	Verdict     lemma.Verdict
	Reason      string
	// Answer is what a person answered in this turn, "" when nobody did.
	Answer lemma.AnswerKind
	// Class and Effect are those of the action that implies the claim; empty for
	// declared and ambient ones.
	Class     lemma.Class
	Effect    shell.Effect
	OnFalse   string // hold | correct | deny | annotate, implied only
	OnUnknown string // annotate | hold | release, implied only
}

// Out is the decision.
type Out struct {
	Decision lemma.Decision
	Class    lemma.Class
	Mode     lemma.Mode
	Counts   lemma.Counts
	Reasons  []string
	Hold     []int // claims that a person must settle (also when blocked unattended)
	Correct  []int // claims whose truth goes back to the model before it answers
	Note     []int // claims that get a line at the end of the answer
	// HoldTurn: the turn as a whole needs a person (undeclared and destructive).
	HoldTurn bool
	// Deny: actions of this answer must not leave now.
	Deny bool
}

// strength orders decisions inside one ruling, strongest first. It is the
// contract's order with the three that a mode alone sets put where they say
// something: a note outranks a plain release, never a gap.
var strength = [...]lemma.Decision{
	lemma.DecError, lemma.DecBlocked, lemma.DecHeld, lemma.DecCaught, lemma.DecCorrected, lemma.DecWaived, lemma.DecConfirmedByUser,
	lemma.DecReleasedUnverified, lemma.DecAnnotated, lemma.DecLogged, lemma.DecReleased, lemma.DecPassThrough,
}

func stronger(a, b lemma.Decision) lemma.Decision {
	for _, d := range strength {
		if d == a || d == b {
			return d
		}
	}
	return a
}

// Decide is the table class × mode × verdict × attendance of the contracts.
//
// One thing no input changes: while an action of effect destroy or above would
// leave, nothing but a person's answer or a settled verdict lets it; everything
// else is held or blocked (13).
func Decide(in In) Out {
	d := decider{in: in}
	d.out.Class = in.Class
	d.out.Mode = d.mode(in.Class, in.Effect)
	d.out.Decision = lemma.DecPassThrough
	if d.out.Mode != lemma.Off {
		d.out.Decision = lemma.DecReleased
	}
	declared := 0
	for i := range in.Claims {
		c := &in.Claims[i]
		d.count(c)
		if c.Origin == "declared" || c.Origin == "" {
			declared++
		}
		if !c.LoadBearing {
			continue
		}
		d.claim(i, c)
	}
	if in.Undeclared || declared == 0 && d.destructive(in.Class, in.Effect) {
		d.undeclared()
	}
	if in.Failed != "" {
		d.failed()
	}
	switch d.out.Decision {
	case lemma.DecError, lemma.DecBlocked, lemma.DecHeld:
		d.out.Deny = true
	}
	return d.out
}

type decider struct {
	in  In
	out Out
}

// mode is the column of the table: the class's, and block for what destroys.
func (d *decider) mode(c lemma.Class, e shell.Effect) lemma.Mode {
	if e.AtLeast(shell.Destroy) {
		return lemma.Block
	}
	switch m := d.in.Modes[c]; m {
	case lemma.Block, lemma.Correct, lemma.Annotate, lemma.Log, lemma.Off:
		return m
	}
	if m, ok := DefaultModes()[c]; ok {
		return m
	}
	return lemma.Block // an unknown class is never the harmless one
}

func (d *decider) destructive(c lemma.Class, e shell.Effect) bool {
	return c.Rank() >= lemma.Destructive.Rank() || e.AtLeast(shell.Destroy)
}

func (d *decider) raise(dec lemma.Decision, reason string) {
	d.out.Decision = stronger(d.out.Decision, dec)
	if reason == "" {
		return
	}
	for _, r := range d.out.Reasons {
		if r == reason {
			return
		}
	}
	d.out.Reasons = append(d.out.Reasons, reason)
}

// claim settles one load-bearing claim.
func (d *decider) claim(i int, c *Claim) {
	class, effect := d.in.Class, shell.Join(d.in.Effect, c.Effect)
	if c.Class != "" {
		class = c.Class
	}
	if c.Origin == "implied" && c.Effect != "" {
		effect = c.Effect
	}
	mode := d.mode(class, effect)
	destroys := effect.AtLeast(shell.Destroy)
	switch c.Verdict {
	case lemma.Contradicted:
		d.contradicted(i, c, mode, class, effect)
	case lemma.Inconclusive, lemma.Unjudged:
		d.unsettled(i, c, mode, class, effect)
	case lemma.Unverifiable, lemma.OutOfScope:
		switch {
		case c.Answer != "":
			d.answered(i, c)
		case c.Origin == "ambient", mode == lemma.Off:
		case d.in.HoldOnUnverifiable, destroys:
			// A sensor that is missing, pending, broken or out of scope must not be
			// the way to let an action out that destroys.
			d.unsettled(i, c, mode, class, effect)
		default:
			d.raise(lemma.DecReleasedUnverified, "gap: "+string(c.Verdict))
			if d.in.AnnotateGaps {
				d.out.Note = append(d.out.Note, i)
			}
		}
	case lemma.Confirmed:
		if mode != lemma.Off {
			d.raise(lemma.DecReleased, "")
		}
	case lemma.VerdictTold, lemma.Waived:
		if c.Answer != "" {
			d.answered(i, c)
		} else if mode != lemma.Off {
			d.raise(lemma.DecReleased, "")
		}
	default:
		// A verdict this build does not know settles nothing.
		d.unsettled(i, c, mode, class, effect)
	}
}

func (d *decider) contradicted(i int, c *Claim, mode lemma.Mode, class lemma.Class, effect shell.Effect) {
	if c.Origin == "implied" && (mode == lemma.Block || mode == lemma.Correct) {
		onFalse := c.OnFalse
		if effect.AtLeast(shell.Destroy) && (onFalse == "annotate" || onFalse == "") {
			onFalse = "hold"
		}
		switch onFalse {
		case "deny":
			d.raise(lemma.DecBlocked, "an action's premise is false: deny")
			return
		case "hold":
			if c.Answer != "" {
				d.answered(i, c)
				return
			}
			d.hold(i, class, effect, "an action's premise is false: hold")
			return
		case "annotate":
			d.raise(lemma.DecAnnotated, "an action's premise is false: annotate")
			d.out.Note = append(d.out.Note, i)
			return
		}
	}
	switch mode {
	case lemma.Block, lemma.Correct:
		d.raise(lemma.DecCaught, "contradicted")
		d.out.Correct = append(d.out.Correct, i)
	case lemma.Annotate:
		d.raise(lemma.DecAnnotated, "contradicted, mode annotate")
		d.out.Note = append(d.out.Note, i)
	case lemma.Log:
		d.raise(lemma.DecLogged, "contradicted, mode log")
	}
}

// unsettled is a claim that was looked at and not decided. Below destroy only a
// believed one that a sensor was matched to may hold; a swept one is counted.
func (d *decider) unsettled(i int, c *Claim, mode lemma.Mode, class lemma.Class, effect shell.Effect) {
	if c.Answer != "" {
		d.answered(i, c)
		return
	}
	switch {
	case c.Origin == "ambient":
		return
	case c.Origin == "implied":
		onUnknown := c.OnUnknown
		if effect.AtLeast(shell.Destroy) {
			onUnknown = "hold"
		}
		switch {
		case mode == lemma.Off:
		case onUnknown == "release":
			d.raise(lemma.DecReleased, "")
		case onUnknown == "hold" && (mode == lemma.Block || mode == lemma.Correct):
			d.hold(i, class, effect, "an action's premise is not settled: hold")
		default:
			d.annotate(i, mode)
		}
		return
	case !effect.AtLeast(shell.Destroy) && (c.Provenance == lemma.Measured || c.Provenance == lemma.Told):
		// What the conversation backs is no verdict: it spares a question, never
		// what destroys.
		if mode != lemma.Off {
			d.raise(lemma.DecReleased, "")
		}
		return
	}
	switch mode {
	case lemma.Block:
		d.hold(i, class, effect, string(c.Verdict))
	case lemma.Correct, lemma.Annotate, lemma.Log:
		d.annotate(i, mode)
	}
}

func (d *decider) annotate(i int, mode lemma.Mode) {
	if mode == lemma.Log {
		d.raise(lemma.DecLogged, "unsettled, mode log")
		return
	}
	d.raise(lemma.DecAnnotated, "unsettled, mode "+string(mode))
	d.out.Note = append(d.out.Note, i)
}

// hold asks a person, where one can be asked and the budget allows; what
// destroys waits in any case. i < 0 is the turn as a whole.
func (d *decider) hold(i int, class lemma.Class, effect shell.Effect, why string) {
	destructive := d.destructive(class, effect)
	dec, reason := lemma.DecHeld, why
	switch {
	case destructive && !d.in.Attended:
		dec, reason = lemma.DecBlocked, why+"; nobody attends"
	case destructive && d.in.Watch:
		dec, reason = lemma.DecBlocked, why+"; watching, blocked until answered"
	case destructive:
	case !d.in.Attended:
		dec, reason = lemma.DecAnnotated, why+"; nobody attends"
	case d.in.Watch:
		dec, reason = lemma.DecAnnotated, why+"; watching"
	case d.in.OverBudget:
		dec, reason = lemma.DecAnnotated, why+"; over the hold budget"
	}
	d.raise(dec, reason)
	switch {
	case dec == lemma.DecAnnotated && i >= 0:
		d.out.Note = append(d.out.Note, i)
	case dec == lemma.DecAnnotated:
	case i < 0:
		d.out.HoldTurn = true
	default:
		d.out.Hold = append(d.out.Hold, i)
	}
}

func (d *decider) answered(i int, c *Claim) {
	switch c.Answer {
	case lemma.AnswerConfirm, lemma.AnswerApprove:
		d.raise(lemma.DecConfirmedByUser, "")
	case lemma.AnswerCorrect:
		d.raise(lemma.DecCorrected, "")
		d.out.Correct = append(d.out.Correct, i)
	case lemma.AnswerWaive:
		d.raise(lemma.DecWaived, "")
	default: // deny, and whatever this build does not know
		d.raise(lemma.DecBlocked, "a person said no")
	}
}

// undeclared: the model named no premises where it had to.
func (d *decider) undeclared() {
	if d.out.Mode == lemma.Off {
		return
	}
	if d.out.Mode == lemma.Block && d.destructive(d.in.Class, d.in.Effect) {
		switch d.in.Answer {
		case "":
			d.hold(-1, d.in.Class, d.in.Effect, "undeclared")
		case lemma.AnswerConfirm, lemma.AnswerApprove:
			d.raise(lemma.DecConfirmedByUser, "undeclared")
		case lemma.AnswerWaive:
			d.raise(lemma.DecWaived, "undeclared")
		default:
			d.raise(lemma.DecBlocked, "a person said no")
		}
		return
	}
	d.raise(lemma.DecReleasedUnverified, "undeclared")
}

// failed: an error of ours closes what acts or is blocked, and nothing else.
func (d *decider) failed() {
	if d.out.Mode == lemma.Block || d.in.Effect.AtLeast(shell.Mutate) || d.destructive(d.in.Class, d.in.Effect) {
		d.raise(lemma.DecError, "fail_closed:"+d.in.Failed)
		return
	}
	d.raise(lemma.DecReleasedUnverified, "failed:"+d.in.Failed)
}

func (d *decider) count(c *Claim) {
	n := &d.out.Counts
	if c.Origin == "declared" || c.Origin == "" {
		n.Lemmas++
	}
	switch c.Verdict {
	case lemma.Confirmed:
		n.Confirmed++
	case lemma.Contradicted:
		n.Contradicted++
	case lemma.Inconclusive:
		n.Inconclusive++
	case lemma.Unjudged:
		n.Unjudged++
	case lemma.Unverifiable:
		n.Unverifiable++
	case lemma.OutOfScope:
		n.OutOfScope++
	case lemma.VerdictTold:
		n.Told++
	case lemma.Waived:
		n.Waived++
	}
}
