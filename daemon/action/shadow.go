package action

// Opinion is what a model or another policy thinks of an action (I-211, B26). It
// is recorded beside a decision and is no part of what Decide takes.
type Opinion struct {
	From  string   `json:"from"`
	Score int      `json:"risk_score"` // 0–100
	Text  string   `json:"reasoning,omitempty"`
	Flags []string `json:"flags,omitempty"`
}

// Divergence is how far an opinion is from a decision.
type Divergence struct {
	DecisionID string `json:"decision_id"`
	From       string `json:"from"`
	Delta      int    `json:"delta"` // the opinion's score less the decision's, −100–100
	// Disagrees: by its score the opinion would have let through what the decision
	// did not, or the other way round, by the thresholds of operative actions.
	Disagrees bool `json:"disagrees"`
}

// Compare tells how an opinion differs. It cannot change the decision: d is a copy.
func (d Decision) Compare(o Opinion) Divergence {
	score := min(max(o.Score, 0), 100)
	limits := Default().Modes.Operative
	opinion := Allow
	switch {
	case score >= limits.DenyAt:
		opinion = Deny
	case score >= limits.ConfirmAt:
		opinion = RequireConfirm
	}
	return Divergence{DecisionID: d.DecisionID, From: o.From, Delta: score - d.RiskScore, Disagrees: opinion != d.State}
}
