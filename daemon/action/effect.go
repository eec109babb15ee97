package action

import "gettier.dev/gettierd/daemon/action/shell"

// effect turns what the action does into what happens to it (design: catastrophe
// is denied, destroy confirmed, opaque escalated; the rest runs). The scores are
// the seed's (B7): 100 for what ends a machine, 55 for what destroys.
func effect(w *weighing) error {
	s := Signal{Stage: "effect", Tag: w.read.Rule, Reason: w.read.Why}
	switch w.read.Effect {
	case shell.ReadOnly:
		s.State = Allow
	case shell.Mutate:
		s.State, s.Score = Allow, 10
	case shell.Destroy:
		s.State, s.Score = RequireConfirm, 55
	case shell.Catastrophe:
		s.State, s.Score, s.Tag = Deny, 100, "critical_tag_detected"
	default:
		s.State, s.Score = Escalate, 50
	}
	w.signal(s)
	return nil
}
