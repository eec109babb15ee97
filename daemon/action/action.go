// Package action decides whether an action may run. It is pure: the same action
// gives the same decision, whatever the clock, the machine or the files on it. It
// weighs what package shell reads; it looks at nothing itself.
package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// State is what happens to an action (D2: the wire form).
type State string

const (
	Allow          State = "ALLOW"
	RequireConfirm State = "REQUIRE_CONFIRM"
	Escalate       State = "ESCALATE"
	Deny           State = "DENY"
)

// Rank orders states, mildest first; an unknown one is as strict as Deny.
func (s State) Rank() int {
	switch s {
	case Allow:
		return 0
	case RequireConfirm:
		return 1
	case Escalate:
		return 2
	}
	return 3
}

// Rules names the built-in rules that a decision was made by.
const Rules = "builtin/1"

// Action is one thing that an agent wants to do: a command line, a program with
// its arguments, or a call of a tool. Exactly one of the three is given.
type Action struct {
	Actor   string          `json:"actor,omitempty"` // told, never weighed
	Cwd     string          `json:"cwd,omitempty"`   // where it starts, as the agent says
	Command string          `json:"command,omitempty"`
	Argv    []string        `json:"argv,omitempty"`
	Tool    string          `json:"tool,omitempty"` // by any name that an agent has for it
	Args    json.RawMessage `json:"args,omitempty"` // the tool's arguments as they came
}

// Finding is one thing in an action that a rule spoke to.
type Finding struct {
	Rule     string       `json:"rule"`
	Effect   shell.Effect `json:"effect"`
	Why      string       `json:"why"`
	Argv     []string     `json:"argv,omitempty"`     // wrappers and quotes resolved
	Wrappers []string     `json:"wrappers,omitempty"` // outermost first
	Start    int          `json:"start"`              // bytes of the command, end exclusive; both 0
	End      int          `json:"end"`                // where there is no command to point into
}

// Refused reports a decision that no answer of a person turns into a yes: a DENY,
// what a stage failed on, and an actor that asks too often. Any other state but
// ALLOW is a hold.
func (d Decision) Refused() bool {
	if d.State == Deny {
		return true
	}
	for _, s := range d.Signals {
		if d.State == Escalate && (strings.HasPrefix(s.Tag, "fail_closed:") || s.Tag == "rate_limited") {
			return true
		}
	}
	return false
}

// Signal is what one stage says.
type Signal struct {
	Stage  string `json:"stage"`
	Tag    string `json:"tag"`
	Score  int    `json:"score"` // 0–100
	State  State  `json:"state"` // the mildest state that this signal lets through
	Reason string `json:"reason"`
}

// Decision is the ruling on one action.
type Decision struct {
	State       State        `json:"state"`
	Allowed     bool         `json:"allowed"`
	Effect      shell.Effect `json:"effect"`
	RiskScore   int          `json:"risk_score"` // 0–100, the strongest signal's
	Reason      string       `json:"reason"`
	Findings    []Finding    `json:"findings"`
	Signals     []Signal     `json:"signals"`
	Explain     Graph        `json:"explain"`
	Rules       string       `json:"rules"`
	Policy      string       `json:"policy"`       // fingerprint of the policy that it was made by
	DecisionID  string       `json:"decision_id"`  // 16 hex digits: SHA-256 of policy and context_hash
	ContextHash string       `json:"context_hash"` // SHA-256 of the action, hex
}

// weighing is one action on its way through the stages.
type weighing struct {
	action   Action
	policy   *Policy
	about    Situation
	read     shell.Action
	findings []Finding
	signals  []Signal
}

func (w *weighing) signal(s Signal) { w.signals = append(w.signals, s) }

// stage looks at an action and adds signals. Its error, like its panic, refuses
// the action.
type stage struct {
	name string
	run  func(*weighing) error
}

// stages in the order in which they run.
func stages() []stage {
	return []stage{{"contract", contract}, {"self_protection", selfProtection}, {"effect", effect}, {"sensitive_write", sensitiveWrite}}
}

// Decide rules on an action by a policy (nil is Default) in a situation. It
// always gives a decision: what cannot be read or weighed is escalated, never let
// through.
func Decide(a Action, p *Policy, s Situation) Decision {
	if p == nil {
		p = Default()
	}
	return decide(a, p, s, stages())
}

func decide(a Action, p *Policy, about Situation, all []stage) Decision {
	w := &weighing{action: a, policy: p, about: about}
	for _, s := range all {
		if err := runStage(w, s); err != nil {
			w.signal(Signal{Stage: s.name, Tag: "fail_closed:" + s.name, Score: 100, State: Escalate, Reason: err.Error()})
			break
		}
	}
	return conclude(w)
}

func runStage(w *weighing, s stage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("stage %s broke down", s.name)
		}
	}()
	return s.run(w)
}

// conclude takes the strictest signal; among equals the first.
func conclude(w *weighing) Decision {
	d := Decision{State: Allow, Effect: w.read.Effect, Findings: w.findings, Signals: w.signals, Rules: Rules, Policy: w.policy.fingerprint}
	if d.Findings == nil {
		d.Findings = []Finding{}
	}
	if len(d.Signals) == 0 {
		d.Signals = []Signal{{Stage: "conclusion", Tag: "fail_closed:conclusion", Score: 100, State: Escalate, Reason: "no stage said anything"}}
	}
	if d.Effect == "" {
		d.Effect = shell.Opaque
	}
	for i, s := range d.Signals {
		if i == 0 || s.State.Rank() > d.State.Rank() {
			d.State, d.Reason = s.State, s.Reason
		}
		d.RiskScore = max(d.RiskScore, s.Score)
	}
	d.Allowed = d.State == Allow
	context, err := json.Marshal(w.action)
	if err != nil { // raw arguments that are no JSON
		w.action.Args, _ = json.Marshal(string(w.action.Args))
		context, _ = json.Marshal(w.action)
	}
	sum := sha256.Sum256(context)
	d.ContextHash = hex.EncodeToString(sum[:])
	id := sha256.Sum256([]byte(d.Policy + d.ContextHash))
	d.DecisionID = hex.EncodeToString(id[:8])
	d.Explain = graph(d)
	return d
}
