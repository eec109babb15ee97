package action

import "math"

// sources of risk, in the order of the policy's weights.
const (
	fromExecution = iota
	fromCapability
	fromJailbreak
	fromProcedure
	fromConstitution
	sources
)

// sourceOf is the weight that a stage's signals are multiplied by; a stage
// without one counts as it is (B3).
func sourceOf(stage string) (int, bool) {
	switch stage {
	case "execution_gate":
		return fromExecution, true
	case "capability_gate":
		return fromCapability, true
	case "jailbreak_guard":
		return fromJailbreak, true
	case "effect", "self_protection", "sensitive_write":
		return fromProcedure, true
	case "constitution", semanticStage:
		return fromConstitution, true
	}
	return 0, false
}

// aggregate sums score × confidence × weight, each rounded to even at its half
// (I-204, B3). It reckons in whole numbers, so that no machine differs. The sum is
// cut off at 100 on the wire only (D3).
func aggregate(w *weighing) error {
	for i := range w.signals {
		s := &w.signals[i]
		weight := 1000
		if k, ok := sourceOf(s.Stage); ok {
			weight = w.policy.weights[k]
		}
		s.Points = halfEven(s.Score*s.Confidence*weight, 100*1000)
		if s.Stage == semanticStage { // the cap holds whatever the weight
			s.Points = min(s.Points, w.policy.Constitution.SemanticMaxRisk)
			w.extra += s.Points
		}
		w.total += s.Points
	}
	return nil
}

// halfEven divides and rounds, a half to the even neighbour.
func halfEven(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	q, r := a/b, a%b
	if 2*r > b || 2*r == b && q%2 == 1 {
		q++
	}
	return min(q, math.MaxInt32)
}
