package turn

import (
	"context"
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/ledger/lemma"
)

// holdFor opens one hold for all that a person must settle, and ends the turn
// with the question as text.
func (e *Engine) holdFor(ctx context.Context, q *Request, t *live, p pass, v verified, d gate.Out, decided lemma.GateDecided) (outcome, error) {
	now := e.Now()
	id, err := lemma.NewID(lemma.IDHold, now, e.Entropy)
	if err != nil {
		return outcome{}, err
	}
	h := lemma.Hold{
		ID: id, Kind: "claims", State: lemma.HoldOpen, Scope: scopeName(t.scope), Turn: t.id, Conversation: t.conversation,
		Model: cutText(q.Wire.Model, maxValueText), Agent: q.Principal.Agent, OpenedAt: lemma.Time(now), ExpiresAt: lemma.Time(now.Add(e.Settings().HoldTTL)),
	}
	if p.decl != nil {
		h.PlanSummary = p.decl.PlanSummary
	}
	for n, i := range d.Hold {
		f := v.found[i]
		h.Items = append(h.Items, lemma.HoldItem{
			ID: fmt.Sprint(n + 1), ClaimID: f.claimID, TopicID: f.topicID, Claim: f.claim, Reason: f.reason, Verdict: f.verdict,
			Sensor: f.sensor, Invocation: f.inv, Tried: noNil(f.tried), EvidenceExcerpt: cutText(f.measured, maxValueText),
		})
	}
	if d.HoldTurn {
		h.Items = append(h.Items, lemma.HoldItem{
			ID: fmt.Sprint(len(h.Items) + 1), ClaimID: "turn:" + t.id, Claim: "this action rests on no false premise", Verdict: lemma.Inconclusive,
			Reason: "nothing about the plan was declared", Tried: []string{},
		})
	}
	if err := e.write(ctx, t, decided, lemma.HoldOpened{Contract: lemma.Contract, Hold: h}); err != nil {
		return outcome{}, err
	}
	e.holds.add(now)
	t.hold, t.stage = id, "hold"
	return outcome{ends: true, text: holdText(h), state: "REQUIRE_CONFIRM", why: "held: " + id}, nil
}

// holdText asks the person in the chat. It says what is assumed, what was tried
// and how to go on.
func holdText(h lemma.Hold) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gettier needs an answer before this goes on (hold %s).\n", h.ID[len(h.ID)-lemma.ShortLen:])
	for _, it := range h.Items {
		fmt.Fprintf(&b, "  Assumed:  %s\n", unframed(it.Claim))
		if len(it.Tried) == 0 {
			fmt.Fprintf(&b, "  Tried:    nothing could be measured (%s)\n", unframed(it.Reason))
		}
		for _, tr := range it.Tried {
			fmt.Fprintf(&b, "  Tried:    %s\n", unframed(tr))
		}
	}
	b.WriteString("Nothing was run. Say what is true in your next message, in the words of the assumption, or mend the sensor; `gettier holds` shows the details.")
	return b.String()
}

// blockedText says why nothing was run and how to go on.
func blockedText(found []finding, d gate.Out) string {
	var b strings.Builder
	b.WriteString("gettier stopped this: a destructive action rests on something that was not settled, and nobody is here to answer.\n")
	for _, i := range d.Hold {
		fmt.Fprintf(&b, "  Assumed:  %s\n", unframed(found[i].claim))
		for _, tr := range found[i].tried {
			fmt.Fprintf(&b, "  Tried:    %s\n", unframed(tr))
		}
	}
	if d.HoldTurn {
		b.WriteString("  The model did not say which facts the plan depends on.\n")
	}
	b.WriteString("Nothing was run. Add or mend a sensor for it (`gettier sensors list`), or do it by hand.")
	return b.String()
}

// noteText is the end of an answer that was verified beside it.
func noteText(found []finding, which []int) string {
	var b strings.Builder
	b.WriteString("\n\n[gettier]")
	for _, i := range which {
		f := found[i]
		switch f.verdict {
		case lemma.Contradicted:
			fmt.Fprintf(&b, "\n- not so here: %s. Measured by %s: %s = %s", unframed(f.claim), f.sensor, f.key, quote(f.measured, maxValueText))
		default:
			fmt.Fprintf(&b, "\n- not verified: %s (%s)", unframed(f.claim), strings.TrimSpace(string(f.verdict)+" "+unframed(f.reason)))
		}
	}
	return b.String()
}

// unframed is foreign text on one line, without anything that could pass for a frame of ours.
func unframed(s string) string {
	s = quote(s, maxClaimText)
	return s[1 : len(s)-1]
}
