package action

// Opinion is what a model or another policy thinks of an action (I-211, B26). It
// is recorded beside a decision and is no part of what Decide takes.
type Opinion struct {
	From  string   `json:"from"`
	Score int      `json:"risk_score"` // 0–100
	Text  string   `json:"reasoning,omitempty"`
	Flags []string `json:"flags,omitempty"`
	// State is what it would have done, "" where only its score tells.
	State State `json:"state,omitempty"`
}

// Flags are what a model may say of an action beside its score (B26).
var Flags = []string{"harmful", "irreversible", "data_exfiltration", "privilege_escalation", "policy_bypass", "pii_exposure", "resource_abuse"}

// Divergence is how far an opinion is from a decision.
type Divergence struct {
	DecisionID string `json:"decision_id"`
	From       string `json:"from"`
	Delta      int    `json:"delta"` // the opinion's score less the decision's, −100–100
	// Disagrees: it would have done something else, by its state, else by its score and
	// the thresholds of operative actions.
	Disagrees bool `json:"disagrees"`
}

// Compare tells how an opinion differs. It cannot change the decision: d is a copy.
func (d Decision) Compare(o Opinion) Divergence {
	score := min(max(o.Score, 0), 100)
	opinion := o.State
	if opinion == "" {
		limits := Default().Modes.Operative
		switch {
		case score >= limits.DenyAt:
			opinion = Deny
		case score >= limits.ConfirmAt:
			opinion = RequireConfirm
		default:
			opinion = Allow
		}
	}
	return Divergence{DecisionID: d.DecisionID, From: o.From, Delta: score - d.RiskScore, Disagrees: opinion != d.State}
}

// Project is another policy's view of the same action in the same situation.
func Project(a Action, p *Policy, s Situation) Opinion {
	d := Decide(a, p, s)
	return Opinion{From: "policy:" + p.fingerprint[:16], Score: d.RiskScore, Text: d.Reason, State: d.State}
}
