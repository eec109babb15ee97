package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// conclude takes the strictest signal; among equals the first.
func conclude(w *weighing) Decision {
	d := Decision{State: Allow, Effect: w.effect, Mode: w.mode, RawTotal: w.total, RiskScore: min(max(w.total, 0), 100), Findings: w.findings, Signals: w.signals, Rules: Rules, Policy: w.policy.fingerprint, Semantic: w.semantic}
	if d.Findings == nil {
		d.Findings = []Finding{}
	}
	if d.Mode == "" {
		d.Mode = Operative
	}
	if d.Effect == "" {
		d.Effect = w.read.Effect
	}
	if d.Effect == "" {
		d.Effect = shell.Opaque
	}
	if !judged(d.Signals) {
		d.Signals = append(d.Signals, Signal{Stage: "conclusion", Tag: tagFailed + "conclusion", Confidence: 100, State: Escalate, Reason: "no stage said what the action does"})
	}
	set := false
	for _, s := range d.Signals {
		if quiet(s) {
			continue
		}
		if !set || s.State.Rank() > d.State.Rank() {
			d.State, d.Reason, set = s.State, s.Reason, true
		}
	}
	d.Allowed = d.State == Allow
	if w.violated != "" {
		d.Violated = &w.violated
	}
	d.ContextHash = w.action.Hash()
	var both [2 * 2 * sha256.Size]byte // two hashes in hex
	id := sha256.Sum256(append(append(both[:0], d.Policy...), d.ContextHash...))
	d.DecisionID = hexed(id[:8])
	return d
}

// judged reports that the effect was weighed, or that it was told why not:
// without either nothing is allowed.
func judged(signals []Signal) bool {
	for _, s := range signals {
		if s.Stage == "effect" || strings.HasPrefix(s.Tag, tagFailed) {
			return true
		}
	}
	return false
}

// quiet signals tell how a decision came about and are no reason for it.
func quiet(s Signal) bool { return s.State == Allow && s.Stage != "effect" }

// Hash is the SHA-256 of the action in its canonical form, its JSON, hex.
func (a Action) Hash() string {
	var room [256]byte
	context, ok := a.plainJSON(room[:0])
	if !ok {
		var err error
		if context, err = json.Marshal(a); err != nil { // raw arguments that are no JSON
			a.Args, _ = json.Marshal(string(a.Args))
			context, _ = json.Marshal(a)
		}
	}
	sum := sha256.Sum256(context)
	return hexed(sum[:])
}

// plainJSON is what json.Marshal gives for a command line in which nothing needs an
// escape: most are such, and they are hashed for each decision.
func (a Action) plainJSON(b []byte) ([]byte, bool) {
	if len(a.Argv) > 0 || a.Tool != "" || len(a.Args) > 0 || a.Raw != "" {
		return nil, false
	}
	b = append(b, '{')
	for _, f := range [...]struct{ name, text string }{{`"actor":"`, a.Actor}, {`"cwd":"`, a.Cwd}, {`"command":"`, a.Command}, {`"mode":"`, a.Mode}} {
		if f.text == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, f.name...)
		for i := range len(f.text) {
			if c := f.text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return nil, false
			}
		}
		b = append(append(b, f.text...), '"')
	}
	return append(b, '}'), true
}

func hexed(b []byte) string {
	var room [2 * sha256.Size]byte
	return string(hex.AppendEncode(room[:0], b))
}
