// Package sensors keeps the sensor registry live and runs what it holds: files
// are loaded, compared with what a person approved, swapped in as a whole, and
// their commands run as argument vectors under limits. What a definition may
// say is package spec's business, what a reading means is sensors/verdict's;
// neither stands here, nor does anything that asks a model.
package sensors

import (
	"io"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/redact"
	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/spec"
)

// Project is a registered root.
type Project struct {
	Name string
	Root string // absolute, symlinks resolved
}

// Options of Open.
type Options struct {
	// StateDir holds sensors.lock and keys/lock.
	StateDir string
	// Files are the user-level registries, most important first. A file that
	// does not exist is an empty registry.
	Files []string
	// Projects bring <root>/.gettier/sensors.yaml each.
	Projects []Project
	// Packs are offered: each counts only once a person approved it.
	Packs []packs.Pack
	// AutoApprove pins new and changed definitions of user-level files at once.
	AutoApprove bool
	// Record takes each event; nil drops them. It is called in order, never
	// while a reader waits, and must not call Registry's methods that change it.
	Record func(lemma.Body)
	// Check runs a sensor's judge examples; nil = verdict.CheckExamples.
	Check   func(*spec.Sensor) []spec.Problem
	Now     func() time.Time
	Entropy io.Reader // for the lock key when it has to be made
}

// View is what a turn of one project sees. It does not change once made.
type View struct {
	// Sensors are in force, in registry order: the project's, then the user's;
	// of one id only the nearest.
	Sensors []*spec.Sensor
	// Pending says why a short id is not in force, Waiting holds its definition
	// where the file has one: known, for a note, never for a run.
	Pending  map[string]string
	Waiting  []*spec.Sensor
	Matching map[string][]string
	Premises []*spec.Premise
	// Inactive says why a premise is not in force, by its id.
	Inactive map[string]string
	// Version is the hash over all that is in force here.
	Version string

	asleep []*spec.Premise // known and not in force; Inactive says why
}

// Lookup finds the sensor in force with this short id.
func (v *View) Lookup(id string) (*spec.Sensor, bool) {
	if v == nil {
		return nil, false
	}
	for _, s := range v.Sensors {
		if s.ID == id {
			return s, true
		}
	}
	return nil, false
}

// Standing is where a definition stands.
type Standing string

const (
	Approved Standing = "approved"
	Pending  Standing = "pending" // new, or a script it runs changed: not in force
	Changed  Standing = "changed" // edited: the approved definition stays in force
	Removed  Standing = "removed" // gone from the file: the approved definition stays in force
	Broken   Standing = "broken"  // cannot be used; Reason says why
)

// State is one row of the registry as people see it. A row without an ID is a
// whole file that is broken.
type State struct {
	ID      string
	Kind    string // sensor | premise | matching
	Level   string
	File    string
	Line    int
	State   Standing
	Reason  string
	InForce bool
	Hash    string // of the definition in the file, "" when removed
	Pinned  string // hash of the approved definition, "" when none
	Sensor  *spec.Sensor
	Last    *Reading
}

// Qualified is the name that an approval takes: level/id, level/premise:id for
// a premise, level/matching for a file's own phrases.
func (s State) Qualified() string { return s.Level + "/" + approvedName(s.Kind, s.ID) }

// Named reports whether id means this definition: its short or qualified id.
func (s State) Named(id string) bool {
	return id != "" && (s.ID == id || approvedName(s.Kind, s.ID) == id || s.Qualified() == id)
}

// Request asks for one measurement.
type Request struct {
	Sensor *spec.Sensor
	Params map[string]string
	Claim  string // fills from_claim parameters and allowed path words
	Root   string // the project's root, "" for host scope
	Cwd    string // where the agent stands, for cwd: worktree
	// Draft runs a definition that nobody approved, because a person tries it.
	Draft bool
	// Env looks names up in the agent's environment; nil when it is not known.
	Env func(string) (string, bool)
	// Set are NAME=value words that the action sets for its command; only a probe
	// looks at them, over Env.
	Set []string
	Why string
}

// Reading is the outcome of a request: evidence, or a Reason why there is none.
// Ask Failed, not the fields.
type Reading struct {
	Sensor     *spec.Sensor
	Invocation lemma.Invocation
	Evidence   spec.Evidence
	Output     []byte // redacted; the bytes of Invocation.OutputBlob
	Hits       []redact.Hit
	Reason     string
	Detail     string
}

// RunnerOptions of NewRunner; every field but Width may be left out.
type RunnerOptions struct {
	Width   int // of effects: none sensors beside each other; 0 = DefaultWidth
	Now     func() time.Time
	Entropy io.Reader
	Redact  func([]byte) ([]byte, []redact.Hit)
	// OriginKey keys the HMAC over the original output; empty = no MAC.
	OriginKey []byte
	// Extract reads values out of raw output.
	Extract func(s *spec.Sensor, raw []byte, exit int) []spec.Value
	// Permit is asked right before a run that is no draft; nil permits.
	// Registry.Permit is meant.
	Permit func(s *spec.Sensor, root, cwd string) error
	// Confine puts sensors into a sandbox, as far as the kernel allows.
	Confine bool
	// RunsAsHold does not run what only another user may run (runs_as) and we
	// cannot; else it runs as ourselves, and says so.
	RunsAsHold bool
	// Hide are files and directories that no sensor without effects sees: our own
	// state and sockets. Those of agents and of the machine's services are known.
	Hide []string
	// Env is the daemon's environment; nil = os.LookupEnv.
	Env func(string) (string, bool)
	// Record takes sensor.backed_off events; nil drops them.
	Record func(lemma.Body)
}

// DefaultWidth is how many effects: none sensors run beside each other.
const DefaultWidth = 4

// Hit is the redaction engine's, named here for those who wire a runner.
type Hit = redact.Hit
