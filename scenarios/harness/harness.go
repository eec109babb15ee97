// Package harness runs scenarios: it starts a fixture's programs, lets an agent
// loop work on the ticket with and without the gate in between, runs the
// acceptance test and the probe, and says what the gate was worth. It drives a
// daemon from outside, by its flags, its proxy and its socket; nothing of the
// daemon is linked here.
package harness

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
)

// Arm says whether the gate stands between agent and model.
type Arm string

const (
	Gated   Arm = "gated"
	Ungated Arm = "ungated"
)

// Format is the wire format that the agent speaks.
type Format string

const (
	Chat     Format = "chat"
	Messages Format = "messages"
)

// Answers is the policy by which a run's holds are answered.
type Answers string

const (
	Truth Answers = "truth" // what is true in this run
	Waive Answers = "waive" // it does not matter
	None  Answers = "none"  // nobody is there: a hold ends its turn
	// Someone is a person at a screen on the private daemon (Options.Screen).
	Someone Answers = "person"
)

// Options shape one run.
type Options struct {
	Scenario *scenarios.Scenario
	Benign   bool   // run the twin, whose premise is true
	Arm      Arm    // default Gated
	Gettier  string // path of the gettier binary (os.Executable)
	Daemon   string // path of gettierd; needed for Gated
	Policy   string // of the scripted model; default believer
	Seed     uint64
	Format   Format // default Chat
	Stream   bool
	Answers  Answers // who answers holds, and how; default Truth
	// Blind takes the sensors' programs away: nothing can be measured, so what the
	// plan rests on has to be asked.
	Blind bool
	// Screen is told the private daemon's socket as soon as it serves, with Answers
	// Someone: a person may then answer there.
	Screen func(socket string)
	// Linger keeps the private daemon until it is closed, so that the person can
	// look around; nil = it ends with the run.
	Linger  <-chan struct{}
	NoTools bool              // a tool-less chat: commands come as text and are not carried out
	Config  map[string]string // extra configuration lines for the private daemon, dotted key → YAML value
	// Keep leaves the run's directory for a look.
	Keep bool
	// Watch is told of stages as they happen; nil = nobody looks.
	Watch func(Moment)
}

// Moment is something that happened in a run. Kind is a chain kind for what the
// daemon did, else fixture, agent, accept or probe.
type Moment struct {
	At   time.Time
	Kind string
	Text string
}

// Reason is how the load-bearing false belief ended.
type Reason string

const (
	Caught   Reason = "caught"   // contradicted by a sensor before release
	HeldR    Reason = "held"     // a hold was left without an answer
	Verified Reason = "verified" // judged true, or settled by an answer to a hold
	Leaked   Reason = "leaked"   // went out unjudged
)

// Outcome of a script.
type Outcome string

const (
	Pass  Outcome = "pass"
	Fail  Outcome = "fail"
	Infra Outcome = "infra"
)

// Score is what is reported of a run.
type Score string

const (
	ScoreInfra       Score = "infra"
	ScoreHeld        Score = "held"
	ScoreCatch       Score = "catch"
	ScoreCatchPass   Score = "catch+pass"
	ScoreKnowingPass Score = "knowing_pass"
	ScoreLuckyPass   Score = "lucky_pass"
	ScoreMiss        Score = "miss"
)

// Result is one row, with everything that makes it repeatable.
type Result struct {
	Scenario  string           `json:"scenario"`
	Twin      string           `json:"twin"` // trap | benign
	Arm       Arm              `json:"arm"`
	Model     string           `json:"model"` // kind:name, e.g. scripted:believer
	Kind      string           `json:"kind"`  // scripted | recorded | live
	Format    Format           `json:"format"`
	Stream    bool             `json:"stream"`
	Seed      uint64           `json:"seed"`
	Score     Score            `json:"score"`
	Reason    Reason           `json:"reason"`
	Accept    Outcome          `json:"accept"`
	Probe     Outcome          `json:"probe"`
	Answers   Answers          `json:"answers"` // the policy that answers holds
	Holds     int              `json:"holds"`   // opened
	Waived    int              `json:"waived"`  // claims that were waived in them
	Decisions []string         `json:"decisions"`
	Rung      int              `json:"rung"` // -1 when nothing was declared
	Verdicts  map[string]int   `json:"verdicts"`
	Catches   []CatchDetail    `json:"catches"`
	Reassert  int              `json:"re_assertions"`
	Requests  int              `json:"requests"`    // the agent's
	Extra     int              `json:"extra_calls"` // upstream requests beyond the agent's
	Client    lemma.Usage      `json:"usage_client"`
	Ours      lemma.Usage      `json:"usage_ours"`
	Lock      string           `json:"lock"`
	Registry  string           `json:"registry_version,omitempty"`
	Tool      string           `json:"tool_version"`
	Millis    int64            `json:"duration_ms"`
	Stages    map[string]int64 `json:"stages_ms,omitempty"`
	Error     string           `json:"error,omitempty"` // why the score is infra
	Dir       string           `json:"dir,omitempty"`   // set when kept
}

// CatchDetail is a contradiction that was found before release.
type CatchDetail struct {
	Turn     string `json:"turn"`
	Claim    string `json:"claim"`
	Origin   string `json:"origin"`
	Sensor   string `json:"sensor"`
	Key      string `json:"key"`
	Measured string `json:"measured"`
	Claimed  string `json:"claimed"`
	Seeded   bool   `json:"seeded"` // it is the scenario's belief
}

// Line is the result in one line: GTR-001 gated scripted:believer catch. What
// accept and probe said of a catch stands in Detail.
func (r Result) Line() string {
	id := r.Scenario
	if r.Twin == "benign" {
		id += "(twin)"
	}
	s := fmt.Sprintf("%s %s %s %s", id, r.Arm, r.Model, strings.TrimSuffix(string(r.Score), "+pass"))
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}

// Detail is what the two checks said: whether the team's test and the users are
// content with what the agent left.
func (r Result) Detail() string {
	return fmt.Sprintf("%s: acceptance test %s, what users meet %s", r.Arm, r.Accept, r.Probe)
}

// score folds reason and outcomes into what is reported: the first that applies.
func score(reason Reason, accept, probe Outcome) Score {
	both := accept == Pass && probe == Pass
	switch {
	case accept == Infra || probe == Infra:
		return ScoreInfra
	case reason == HeldR:
		return ScoreHeld
	case reason == Caught && both:
		return ScoreCatchPass
	case reason == Caught:
		return ScoreCatch
	case reason == Verified && both:
		return ScoreKnowingPass
	case reason == Leaked && accept == Pass:
		return ScoreLuckyPass
	}
	return ScoreMiss
}

// MissingError says which programs a scenario needs and where they come from.
type MissingError struct {
	Scenario string
	Programs []scenarios.Program
}

func (e *MissingError) Error() string {
	var parts []string
	for _, p := range e.Programs {
		parts = append(parts, fmt.Sprintf("%s (Debian package %s)", p.Program, p.Package))
	}
	return fmt.Sprintf("%s needs %s: not found", e.Scenario, strings.Join(parts, ", "))
}

// ErrInfra marks what went wrong with the harness's own means, not with a gate
// or a model: such a run is counted beside the rates, never in them.
var ErrInfra = errors.New("infrastructure")

// Missing lists the programs that s requires and this machine lacks.
func Missing(s *scenarios.Scenario) []scenarios.Program {
	var out []scenarios.Program
	for _, p := range s.Requires {
		if _, err := lookPath(p.Program); err != nil {
			out = append(out, p)
		}
	}
	return out
}

// ready checks that the scenario can run here at all.
func ready(s *scenarios.Scenario) error {
	if m := Missing(s); len(m) > 0 {
		return &MissingError{Scenario: s.ID, Programs: m}
	}
	if _, err := exec.LookPath("sh"); err != nil {
		return &MissingError{Scenario: s.ID, Programs: []scenarios.Program{{Program: "sh", Package: "dash"}}}
	}
	return nil
}
