package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// follow reads every entry of the chain as it lands, from the first: it tells
// watch (nil = nobody), and answers holds. attached is closed with the first.
func (d *daemon) follow(ctx context.Context, watch func(Moment), attached chan<- struct{}) {
	since := uint64(0) // entry 0 opens the chain, everything of the run follows it
	for e, err := range d.client.Watch(ctx, &since) {
		if err != nil {
			continue // the client goes on by itself; the run itself will say what failed
		}
		if attached != nil {
			close(attached)
			attached = nil
		}
		d.answers.look(ctx, e)
		if watch == nil {
			continue
		}
		if text := Tell(e); text != "" {
			at, perr := time.Parse(time.RFC3339Nano, e.TS)
			if perr != nil {
				at = time.Now()
			}
			watch(Moment{At: at, Kind: e.Kind, Text: text})
		}
	}
}

// Tell puts an entry of the chain into a line of plain words, "" for entries that
// say nothing about a turn. What it quotes comes from models and sensors: clean
// it before it meets a terminal.
func Tell(e ipc.Entry) string {
	switch lemma.Kind(e.Kind) {
	case lemma.KTurnOpened:
		return tell(e, func(b lemma.TurnOpened) string {
			return fmt.Sprintf("%s request in %s, class %s (%s)", b.RequestKind, b.Scope, b.Class, strings.Join(b.Reasons, ", "))
		})
	case lemma.KTurnClassified:
		return tell(e, func(b lemma.TurnClassified) string {
			return fmt.Sprintf("class is now %s (%s)", b.Class, strings.Join(b.Reasons, ", "))
		})
	case lemma.KTurnInjected:
		return tell(e, func(b lemma.TurnInjected) string { return fmt.Sprintf("a %s block goes to the model", b.Why) })
	case lemma.KTurnDeclared:
		return tell(e, func(b lemma.TurnDeclared) string {
			s := fmt.Sprintf("rung %d, at the %s: %q", b.Rung, b.At, b.PlanSummary)
			for _, l := range b.Lemmas {
				s += fmt.Sprintf("\n%s: %q", l.Provenance, l.Claim)
			}
			return s
		})
	case lemma.KTurnUndeclared:
		return tell(e, func(b lemma.TurnUndeclared) string { return b.Reason })
	case lemma.KProvenanceDowngrade:
		return tell(e, func(b lemma.ProvenanceDowngraded) string {
			return fmt.Sprintf("said to be %s, taken as believed: %s", b.From, b.Reason)
		})
	case lemma.KLemmaMatched:
		return tell(e, func(b lemma.LemmaMatched) string {
			var ids []string
			for _, s := range b.Sensors {
				ids = append(ids, s.ID+" ("+s.Why+")")
			}
			if len(ids) == 0 {
				return "no sensor: " + b.Note
			}
			return strings.Join(ids, ", ")
		})
	case lemma.KSensorInvoked:
		return tell(e, func(b lemma.SensorInvoked) string {
			return fmt.Sprintf("%s, %d ms: %s", b.Invocation.SensorID, b.Invocation.DurationMS, strings.Join(b.Invocation.Argv, " "))
		})
	case lemma.KSensorFailed:
		return tell(e, func(b lemma.SensorFailed) string {
			return fmt.Sprintf("%s could not run: %s %s", b.Invocation.SensorID, b.Reason, b.Detail)
		})
	case lemma.KClaimJudged:
		return tell(e, func(b lemma.ClaimJudged) string {
			s := fmt.Sprintf("%s: %q", b.Verdict, b.Claim)
			switch {
			case b.Sensor == "":
			case b.Key == "":
				s += fmt.Sprintf("\n%s settles nothing: %s", b.Sensor, b.Reason)
			default:
				s += fmt.Sprintf("\n%s measured %s = %q by %s", b.Sensor, b.Key, b.Measured, b.Rule)
			}
			return s
		})
	case lemma.KFactWritten:
		return tell(e, func(b lemma.FactWritten) string {
			return fmt.Sprintf("%s %s = %q", b.Fact.Subject, b.Fact.Key, b.Fact.Value)
		})
	case lemma.KFactContradicted:
		return tell(e, func(b lemma.FactContradicted) string { return b.Delta })
	case lemma.KHoldOpened:
		return tell(e, func(b lemma.HoldOpened) string {
			if len(b.Hold.Items) == 1 {
				return "one claim waits for an answer"
			}
			return fmt.Sprintf("%d claims wait for an answer", len(b.Hold.Items))
		})
	case lemma.KHoldAnswered:
		return tell(e, func(b lemma.HoldAnsweredBody) string {
			var said []string
			for _, a := range b.Answers {
				said = append(said, strings.TrimSuffix(fmt.Sprintf("%s (via %s): %s", a.Answer, a.By.Via, a.Text), ": "))
			}
			return strings.Join(said, "\n")
		})
	case lemma.KGateDecided:
		return tell(e, func(b lemma.GateDecided) string {
			return fmt.Sprintf("%s (class %s, mode %s)", b.Decision, b.Class, b.Mode)
		})
	case lemma.KTurnGrounded:
		return "the answer is made anew with the measurement in the request"
	case lemma.KActionDecided:
		return tell(e, func(b lemma.ActionDecided) string {
			return fmt.Sprintf("%s %s, effect %s: %s", b.State, b.Tool, b.Effect, b.Summary)
		})
	case lemma.KTurnClosed:
		return tell(e, func(b lemma.TurnClosed) string {
			return fmt.Sprintf("%s; tokens of ours: %d in, %d out", b.Decision, b.UsageOurs.Input, b.UsageOurs.Output)
		})
	}
	return ""
}

func tell[B any](e ipc.Entry, say func(B) string) string {
	var b B
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return "unreadable: " + err.Error()
	}
	return say(b)
}
