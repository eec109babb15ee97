package action

import "fmt"

const tagThrottled = "rate_limited"

// limitRate stops an actor that asks too often (I-197, B27). Where nobody counts
// there is nothing to say; where counting failed, the answer is no. It adds to the
// other stages and takes nothing from them: a DENY stays one.
func limitRate(w *weighing) error {
	r := w.about.Rate
	if r == nil {
		return nil
	}
	limit := w.policy.RateLimit
	switch {
	case r.Full:
		w.signal(Signal{Stage: "rate_limiter", Tag: tagThrottled, State: Escalate, Reason: "too many actors ask at once to count one more"})
	case r.Throttled || r.Seen > limit.Actions || r.Seen < 0:
		w.signal(Signal{Stage: "rate_limiter", Tag: tagThrottled, State: Escalate, Reason: fmt.Sprintf("the actor asks for more than %d actions in %d s", limit.Actions, limit.Seconds)})
	}
	return nil
}
