package turn

import (
	"context"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/ledger/lemma"
)

// interject takes in what a person said in the middle of a turn: text queued
// while a tool ran, words beside a refusal. It may ask for more than the prompt
// did, and a declaration made before it knows nothing of it (13.8).
func (e *Engine) interject(ctx context.Context, q *Request, t *live) error {
	said := q.Route.Queued
	if t.side || len(said) <= t.queued {
		return nil
	}
	class, reasons, more := lemma.Explore, []string(nil), false
	for _, text := range said[t.queued:] {
		c, why := gate.PromptClass(text, len(q.Wire.Tools) > 0)
		class = lemma.MaxClass(class, c)
		for _, w := range why {
			reasons = append(reasons, "mid-loop "+w)
		}
		more = more || !gate.BareContinuation(text)
	}
	t.queued = len(said)
	if more && t.covered.Rank() >= lemma.Change.Rank() && t.covered != "" {
		t.covered = lemma.Edit
	}
	if class.Rank() <= t.class.Rank() {
		return nil
	}
	t.class = class
	t.reasons = append(t.reasons, reasons...)
	return e.write(ctx, t, lemma.TurnClassified{Contract: lemma.Contract, Class: class, Reasons: reasons})
}
