package story

import (
	"encoding/json"
	"fmt"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

// Reason is one line of why a turn ended as it did. A line without a label goes
// on about the same premise.
type Reason struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Why is a turn for the person whom it concerns: what the plan rested on, what was
// measured and by which rule it counts, the command to look for oneself, who
// answered, which actions did not simply pass, and what the model was told.
func Why(d ipc.TurnDetail) []Reason {
	var out []Reason
	say := func(label, format string, args ...any) {
		out = append(out, Reason{label, fmt.Sprintf(format, args...)})
	}
	runs := runsOf(d)
	for _, j := range Verdicts(d) {
		say("assumed", "%s%s", j.Claim, inBrackets(j.Origin, "declared"))
		switch {
		case j.Measured != "":
			say("measured", "%s  %s = %s", words.Verdict(j.Verdict), strings.TrimSpace(j.Sensor+" "+j.Key), words.Quote(j.Measured))
			if j.Rule != "" {
				say("by", "%s, assumed %s", j.Rule, words.Or(j.Claimed, "otherwise"))
			}
		default:
			say("measured", "%s  %s", words.Verdict(j.Verdict), words.Or(j.Reason, "nothing"))
		}
		if r, ok := runs[j.Invocation]; ok && len(r.Argv) > 0 {
			look := words.Argv(r.Argv)
			if r.Cwd != "" {
				look = "cd " + words.Argv([]string{r.Cwd}) + " && " + look
			}
			say("look", "%s", look)
		}
	}
	for _, e := range d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KHoldOpened:
			if b, ok := body[lemma.HoldOpened](e); ok {
				for _, it := range b.Hold.Items {
					say("asked", "%s  (%s)", it.Claim, it.Reason)
				}
			}
		case lemma.KHoldAnswered:
			if b, ok := body[lemma.HoldAnsweredBody](e); ok {
				for _, a := range b.Answers {
					say("answered", "%s by %s via %s  %s", a.Answer, words.Person(a.By), words.Or(a.By.Via, "unknown"), a.Text)
				}
			}
		case lemma.KHoldExpired:
			say("answered", "nobody, in time")
		case lemma.KTurnUndeclared:
			if b, ok := body[lemma.TurnUndeclared](e); ok {
				say("assumed", "not said: %s", b.Reason)
			}
		case lemma.KActionDecided:
			b, ok := body[lemma.ActionDecided](e)
			if !ok || b.State == "ALLOW" && b.Approval == "" && len(b.Premises) == 0 {
				break
			}
			say("action", "%s  %s  %s %s", strings.ToLower(b.State), b.Effect, b.Tool, b.Summary)
			for _, f := range append(b.Findings, b.Premises...) {
				say("", "%s", f)
			}
		}
	}
	for _, b := range d.Blocks {
		if b.Why != "verification" {
			continue
		}
		label := "changed"
		for l := range strings.Lines(b.Text) {
			// The frame around the lines is for models.
			if l = strings.TrimSpace(l); l == "" || strings.HasPrefix(l, "<") {
				continue
			}
			say(label, "%s", l)
			label = ""
		}
	}
	if len(out) == 0 {
		say("nothing", "no premise was judged, no action stopped: %s", whyNot(d))
	}
	return out
}

// whyNot says why there was nothing to judge.
func whyNot(d ipc.TurnDetail) string {
	for _, e := range d.Entries {
		if b, ok := body[lemma.GateDecided](e); ok && lemma.Kind(e.Kind) == lemma.KGateDecided && len(b.Reasons) > 0 {
			return strings.Join(b.Reasons, ", ")
		}
	}
	for _, e := range d.Entries {
		if b, ok := body[lemma.TurnOpened](e); ok && lemma.Kind(e.Kind) == lemma.KTurnOpened {
			return fmt.Sprintf("%s, class %s: %s", b.RequestKind, b.Class, words.Or(strings.Join(b.Reasons, ", "), "no particular reason"))
		}
	}
	return "the turn left no entries"
}

// runsOf are the sensor runs of a turn by invocation, those that could not
// measure too.
func runsOf(d ipc.TurnDetail) map[string]lemma.Invocation {
	out := map[string]lemma.Invocation{}
	for _, e := range d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KSensorInvoked:
			if b, ok := body[lemma.SensorInvoked](e); ok {
				out[b.Invocation.ID] = b.Invocation
			}
		case lemma.KSensorFailed:
			if b, ok := body[lemma.SensorFailed](e); ok {
				out[b.Invocation.ID] = b.Invocation
			}
		}
	}
	return out
}

func body[T any](e ipc.Entry) (b T, ok bool) { return b, json.Unmarshal(e.Body, &b) == nil }

// inBrackets adds what a reader would not expect.
func inBrackets(s, usual string) string {
	if s == "" || s == usual {
		return ""
	}
	return "  (" + s + ")"
}
