package action

import (
	"fmt"

	"gettier.dev/gettierd/daemon/action/shell"
)

// policyEngine turns tags, the sum of risk and the policy's own rules into
// states (I-205, I-207). A rule that allows lifts no more than what is merely
// unknown; nothing lifts what destroys, gettier's own, or a DENY (13, invariant).
func policyEngine(w *weighing) error {
	p := w.policy
	limits := p.Modes.Operative
	if !w.operates() {
		limits = p.Modes.Consultive
	}
	verdict := func(tag string, s State, why string) {
		w.signal(Signal{Stage: "policy_engine", Tag: tag, State: s, Reason: why})
	}
	for _, s := range w.signals {
		if p.hardDeny[s.Tag] && s.State != Deny {
			verdict("hard_deny", Deny, s.Reason)
			break
		}
	}
	lifted := false
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.fires(w) {
			continue
		}
		switch r.Then {
		case "deny":
			verdict("rule:"+r.ID, Deny, r.reason())
		case "confirm":
			verdict("rule:"+r.ID, RequireConfirm, r.reason())
		case "allow":
			if w.effect.AtLeast(shell.Destroy) || w.found("send.secret") {
				continue // neither is merely unknown
			}
			lifted = true
			verdict("rule:"+r.ID, Allow, r.reason())
		}
	}
	if lifted {
		for i := range w.signals {
			switch s := &w.signals[i]; {
			case s.Stage == "effect" && w.effect == shell.Opaque, s.Tag == tagUnknownTool, s.Tag == tagConfirm:
				s.State = Allow
			}
		}
	}
	switch {
	case w.total-w.extra >= limits.DenyAt: // meaning alone asks, it never denies
		verdict("risk", Deny, fmt.Sprintf("the sum of its risks is %d, %d or more is denied", w.total-w.extra, limits.DenyAt))
	case w.total >= limits.ConfirmAt && !lifted:
		verdict("risk", RequireConfirm, fmt.Sprintf("the sum of its risks is %d, %d or more is confirmed", w.total, limits.ConfirmAt))
	}
	return nil
}

// found reports that a rule of the reader spoke.
func (w *weighing) found(rule string) bool {
	for _, f := range w.findings {
		if f.Rule == rule {
			return true
		}
	}
	return false
}

// Enforced is what the policy's phase makes of a decision (B22). The decision
// itself stays as it is. What destroys, gettier's own and every DENY count in
// each phase; so does a stage that failed.
func (p *Policy) Enforced(d Decision) State { return EnforcedIn(p.Enforce, d) }

// EnforcedIn is Enforced for any phase; one that nobody knows is PhaseFull.
func EnforcedIn(phase Phase, d Decision) State {
	if phase != PhaseShadow && phase != PhaseHardDeny || d.State == Deny || d.State == Allow || d.Effect.AtLeast(shell.Destroy) {
		return d.State
	}
	for _, s := range d.Signals {
		if s.State.Rank() < Escalate.Rank() {
			continue
		}
		if s.Tag != tagThrottled && s.Stage != "effect" || s.Tag == tagThrottled && phase != PhaseShadow {
			return d.State // fail_closed, or a throttled actor
		}
	}
	return Allow
}
