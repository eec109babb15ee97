// Package action decides whether an action may run. It is pure: the same action,
// policy and situation give the same decision, whatever the clock, the machine or
// the files on it. It weighs what package shell reads; it looks at nothing itself.
package action

import (
	"encoding/json"
	"fmt"
	"slices"
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
const Rules = "builtin/2"

// Mode says whether an action asks or acts.
type Mode string

const (
	Consultive Mode = "consultive"
	Operative  Mode = "operative"
)

// Action is one thing that an agent wants to do: a command line, a program with
// its arguments, a call of a tool, or a text that may ask for any of these.
// Exactly one of command, argv and tool is given, or a text alone.
type Action struct {
	Actor   string          `json:"actor,omitempty"` // key id, else uid and process root; never a name that the agent gives itself
	Cwd     string          `json:"cwd,omitempty"`   // where it starts, as the agent says
	Command string          `json:"command,omitempty"`
	Argv    []string        `json:"argv,omitempty"`
	Tool    string          `json:"tool,omitempty"` // by any name that an agent has for it
	Args    json.RawMessage `json:"args,omitempty"` // the tool's arguments as they came
	// Raw is the text of a person, a tool or a sensor that the action came from. It
	// is looked at as text; alone it is the action.
	Raw string `json:"raw_input,omitempty"`
	// Mode is a hint: ask, operate or "". A hint to ask does not hold for what acts.
	Mode string `json:"mode,omitempty"`
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

// Signal is what one stage says.
type Signal struct {
	Stage      string `json:"stage"`
	Tag        string `json:"tag"`
	Score      int    `json:"score"`      // 0–100
	Confidence int    `json:"confidence"` // percent
	Points     int    `json:"points"`     // score × confidence × weight, as it counts in the sum
	State      State  `json:"state"`      // the mildest state that this signal lets through
	Reason     string `json:"reason"`
	Start      int    `json:"start,omitempty"` // bytes of raw_input, end exclusive, where the signal is about a place in it
	End        int    `json:"end,omitempty"`
}

// Decision is the ruling on one action.
type Decision struct {
	State       State        `json:"state"`
	Allowed     bool         `json:"allowed"`
	Effect      shell.Effect `json:"effect"`
	Mode        Mode         `json:"mode"`
	RiskScore   int          `json:"risk_score"` // 0–100 (D3)
	RawTotal    int          `json:"raw_total"`  // the sum of points, not cut off
	Reason      string       `json:"reason"`
	Violated    *string      `json:"violated_principle"`
	Findings    []Finding    `json:"findings"`
	Signals     []Signal     `json:"signals"`
	Semantic    *Semantic    `json:"semantic,omitempty"` // as it came in
	Rules       string       `json:"rules"`
	Policy      string       `json:"policy"`       // fingerprint of the policy that it was made by
	DecisionID  string       `json:"decision_id"`  // 16 hex digits: SHA-256 of policy and context_hash
	ContextHash string       `json:"context_hash"` // SHA-256 of the action, hex
}

// Refused reports a decision that no answer of a person turns into a yes: a DENY,
// what a stage failed on, and an actor that asks too often. Any other state but
// ALLOW is a hold.
func (d Decision) Refused() bool {
	if d.State == Deny {
		return true
	}
	for _, s := range d.Signals {
		if d.State == Escalate && (strings.HasPrefix(s.Tag, tagFailed) || s.Tag == tagThrottled) {
			return true
		}
	}
	return false
}

// weighing is one action on its way through the stages.
type weighing struct {
	action   Action
	policy   *Policy
	about    Situation
	read     shell.Action
	effect   shell.Effect // what the action does, evidence of the disk counted in
	asks     bool         // nothing in the action acts
	mode     Mode
	findings []Finding
	signals  []Signal
	total    int
	extra    int // of total, what the evaluator of meaning added
	semantic *Semantic
	violated string
}

func (w *weighing) signal(s Signal) {
	if s.Confidence == 0 {
		s.Confidence = 100
	}
	w.signals = append(w.signals, s)
}

// operates reports an action that acts, which the gates of tools and paths are for.
func (w *weighing) operates() bool { return !w.asks }

// stage looks at an action and adds signals. Its error, like its panic, refuses
// the action.
type stage struct {
	name string
	run  func(*weighing) error
}

// stages in the order in which they run. self_protection, effect and
// sensitive_write together are the procedural guard.
func stages() []stage { return slices.Clone(pipeline[:]) }

var pipeline = [...]stage{
	{"contract", contract},
	{"intent_escalation", escalateIntent},
	{"mode", setMode},
	{"rate_limiter", limitRate},
	{"execution_gate", executionGate},
	{"capability_gate", capabilityGate},
	{"jailbreak_guard", jailbreakGuard},
	{"self_protection", selfProtection},
	{"effect", weighEffect},
	{"sensitive_write", sensitiveWrite},
	{"constitution", constitution},
	{"risk_aggregation", aggregate},
	{"confirmation_gate", confirmationGate},
	{"policy_engine", policyEngine},
}

// Decide rules on an action by a policy (nil is Default) in a situation. It
// always gives a decision: what cannot be read or weighed is escalated, never let
// through.
func Decide(a Action, p *Policy, s Situation) Decision {
	if p == nil {
		p = Default()
	}
	return decide(a, p, s, pipeline[:])
}

// decide runs every stage, also after one that failed: a failure must not hide
// what a later stage would have denied. Only an action that cannot be read at all
// goes no further.
func decide(a Action, p *Policy, about Situation, all []stage) Decision {
	w := &weighing{action: a, policy: p, about: about, signals: make([]Signal, 0, 4)}
	for i, s := range all {
		if err := runStage(w, s); err != nil {
			w.signal(Signal{Stage: s.name, Tag: tagFailed + s.name, State: Escalate, Reason: err.Error()})
			if i == 0 {
				break
			}
		}
	}
	return conclude(w)
}

// tagFailed begins the tag of a stage that could not do its work.
const tagFailed = "fail_closed:"

func runStage(w *weighing, s stage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("stage %s broke down", s.name)
		}
	}()
	return s.run(w)
}
