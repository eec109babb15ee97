package action

import (
	"fmt"
	"strconv"
)

// Semantic is what an evaluator of meaning found out about an action: how near its
// text lies to each principle of the constitution. It is an input of Decide and
// stands on the decision, so that the same decision can be made again without the
// model.
type Semantic struct {
	// Skipped is why nothing was measured, "" when something was: model_not_warm,
	// timeout, failed.
	Skipped string `json:"skipped,omitempty"`
	Near    []Near `json:"near,omitempty"` // the order is of no account
}

// Near is how near a text lies to a principle: the cosine of the two embeddings in
// percent, −100–100, half to even.
type Near struct {
	Principle string `json:"principle"`
	Percent   int    `json:"percent"`
}

// Reasons to skip.
const (
	SkippedCold    = "model_not_warm"
	SkippedTimeout = "timeout"
	SkippedFailed  = "failed"
)

const (
	semanticStage = "constitution.semantic"
	tagSkipped    = "constitution.semantic_skipped"
	// percent from which a text speaks against a principle, and from which it may (B13).
	semanticAgainst = 55
	semanticGray    = 35
)

// semantic weighs what the evaluator found: the nearest principle, by its severity, in
// the gray zone by three fifths of it, and never by more than semantic_max_risk. It
// says no tag that denies, and what it adds counts towards a question only (I-211).
func semantic(w *weighing) {
	found := w.about.Semantic
	if found == nil {
		return
	}
	w.semantic = found
	if found.Skipped != "" {
		why := found.Skipped
		switch why {
		case SkippedCold, SkippedTimeout:
		default: // a caller's text is no reason of ours
			why = SkippedFailed
		}
		w.signal(Signal{Stage: semanticStage, Tag: tagSkipped, State: Allow, Reason: why})
		return
	}
	var worst Signal
	for _, p := range w.policy.principles {
		for _, n := range found.Near {
			if n.Principle != p.name || n.Percent < semanticGray {
				continue
			}
			score := p.severity
			if n.Percent < semanticAgainst {
				score = halfEven(score*3, 5)
			}
			s := Signal{Stage: semanticStage, Tag: "principle:" + p.name, Score: min(score, w.policy.Constitution.SemanticMaxRisk), State: Allow, Reason: fmt.Sprintf("is %d %% near to what speaks against %s", min(n.Percent, 100), p.name)}
			if s.Score > worst.Score || s.Score == worst.Score && s.Reason < worst.Reason {
				worst = s
			}
		}
	}
	if worst.Score > 0 {
		w.signal(worst)
	}
}

// Strings is what was found in words, a principle and its percent each, or that
// nothing was and why; nil for nil.
func (s *Semantic) Strings() []string {
	if s == nil {
		return nil
	}
	if s.Skipped != "" {
		return []string{"skipped " + s.Skipped}
	}
	out := make([]string, 0, len(s.Near))
	for _, n := range s.Near {
		out = append(out, n.Principle+" "+strconv.Itoa(n.Percent))
	}
	return out
}
