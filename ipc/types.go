package ipc

import "gettier.dev/gettierd/ledger/lemma"

// Status is the daemon at a glance.
type Status struct {
	Version       string           `json:"version"`
	PID           int              `json:"pid"`
	StartedAt     string           `json:"started_at"`
	UptimeSeconds int64            `json:"uptime_seconds"`
	Proxy         string           `json:"proxy"` // host:port it listens on
	Socket        string           `json:"socket"`
	StateDir      string           `json:"state_dir"`
	Mode          string           `json:"mode"` // ask | watch
	Chain         Head             `json:"chain"`
	OpenHolds     int              `json:"open_holds"`
	Counters      map[string]int64 `json:"counters"` // requests, turns, in_flight, caught, held, blocked, …
	Registry      RegistryStatus   `json:"registry"`
	Config        ConfigStatus     `json:"config"`
	PolicyVersion string           `json:"policy_version"`
	Projects      int              `json:"projects"`
	Upstreams     []Upstream       `json:"upstreams"`
	// Outside are the places where checkpoints of the log are kept.
	Outside []OutsideCopy `json:"outside"`
	// Warnings are things a person should know: a widened bind address, a ledger
	// that cannot write, turns that an unclean stop cut off.
	Warnings []string     `json:"warnings"`
	Ledger   LedgerStatus `json:"ledger"`
}

// LedgerStatus says whether the ledger can write.
type LedgerStatus struct {
	File  string `json:"file"`
	Error string `json:"error,omitempty"` // why it cannot, in the system's words
	Since string `json:"since,omitempty"`
	Lost  uint64 `json:"lost,omitempty"` // entries that were refused since
}

// OutsideCopy is the newest checkpoint that a place outside the log has.
type OutsideCopy struct {
	Place string `json:"place"`
	Size  uint64 `json:"size"` // entries that it covers, 0 = none yet
	// Until is when the newest entry that it covers was written: the log of
	// before could not be rewritten without its being seen there.
	Until string `json:"until,omitempty"`
	Error string `json:"error,omitempty"` // of the last attempt
}

// LedgerSize is what the ledger takes of the disk.
type LedgerSize struct {
	File    string       `json:"file"`
	Bytes   int64        `json:"bytes"` // of the file, with the room that was taken ahead
	Used    int64        `json:"used"`
	Entries uint64       `json:"entries"`
	Day     uint64       `json:"day"`     // entries of the last 24 hours
	PerDay  int64        `json:"per_day"` // bytes that a day like the last one adds
	Room    uint64       `json:"room"`    // bytes left on its disk
	Buckets []BucketSize `json:"buckets"`
}

// BucketSize is what one bucket of the ledger takes.
type BucketSize struct {
	Name  string `json:"name"`
	Keys  int    `json:"keys"`
	Bytes int64  `json:"bytes"`
}

// Head is the end of the chain.
type Head struct {
	Size   uint64 `json:"size"`
	Root   string `json:"root"` // hex
	Origin string `json:"origin"`
}

// Upstream is a configured place to forward to; never with a key in it.
type Upstream struct {
	Name    string `json:"name"`
	Format  string `json:"format"`
	BaseURL string `json:"base_url"`
	Default bool   `json:"default"`
}

// RegistryStatus sums up the sensors.
type RegistryStatus struct {
	Version  string          `json:"version"`
	Sensors  int             `json:"sensors"` // in force
	Pending  int             `json:"pending"` // new or changed, waiting for approval
	Broken   int             `json:"broken"`
	Problems []RegistryError `json:"problems"` // files whose last edit was refused
}

// RegistryError is a refused edit; the last good registry stays in force.
type RegistryError struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Reason string `json:"reason"`
}

// ConfigStatus sums up the configuration.
type ConfigStatus struct {
	File    string   `json:"file"`
	Hash    string   `json:"hash"`
	Pending []string `json:"pending"` // keys that loosen and wait for a person
	Error   string   `json:"error,omitempty"`
}

// Config is the configuration in force, key by key.
type Config struct {
	ConfigStatus
	// PendingHash is what an approval must name; empty when nothing waits.
	PendingHash string      `json:"pending_hash,omitempty"`
	Keys        []ConfigKey `json:"keys"`
}

// ConfigKey is one setting. Value is source text as the file would spell it.
type ConfigKey struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Source  string `json:"source"`            // default | file | env | flag
	Applies string `json:"applies"`           // live | restart
	Pending string `json:"pending,omitempty"` // value that waits for approval
	Help    string `json:"help,omitempty"`
}

// ConfigApproval approves the pending configuration with this hash and no other.
type ConfigApproval struct {
	Hash string `json:"hash"`
}

// FactQuery filters facts; empty fields do not filter.
type FactQuery struct {
	Page
	Scope      string
	Status     string // active | stale | contradicted | invalidated
	Provenance string // measured | told | believed
	Text       string // substring of claim, subject, key or value
}

// HoldQuery filters holds.
type HoldQuery struct {
	Page
	State string // open | answered | expired | cancelled
}

// TurnQuery filters turns, newest first.
type TurnQuery struct {
	Page
	Scope        string
	Conversation string
	Decision     string
	Agent        string
}

// Turn is one row of the turn list.
type Turn struct {
	ID           string         `json:"id"`
	Conversation string         `json:"conversation"`
	Key          string         `json:"key"`
	Scope        string         `json:"scope"`
	Class        lemma.Class    `json:"class"`
	RequestKind  string         `json:"kind"`
	Format       string         `json:"format"`
	Upstream     string         `json:"upstream"`
	Model        string         `json:"model"`
	Agent        string         `json:"agent"`
	Prompt       string         `json:"prompt"`
	OpenedAt     string         `json:"opened_at"`
	ClosedAt     string         `json:"closed_at,omitempty"`
	Stage        string         `json:"stage"` // kind of its last entry
	Decision     lemma.Decision `json:"decision,omitempty"`
	Counts       lemma.Counts   `json:"counts"`
	Rung         *int           `json:"rung,omitempty"`
	UsageClient  lemma.Usage    `json:"usage_client"`
	UsageOurs    lemma.Usage    `json:"usage_ours"`
	Error        string         `json:"error,omitempty"`
}

// TurnDetail is the whole story: the turn's own entries in order, and the
// blocks it put into requests.
type TurnDetail struct {
	Turn
	Entries []Entry `json:"entries"`
	Blocks  []Block `json:"blocks"`
}

// Block is text that stands in the model's context because of a turn.
type Block struct {
	Seq  uint64 `json:"seq"`
	Why  string `json:"why"` // facts | verification
	Text string `json:"text"`
}

// Sensor states.
const (
	SensorApproved  = "approved"
	SensorPending   = "pending"
	SensorChanged   = "changed" // the approved definition stays in force
	SensorRemoved   = "removed" // gone from its file, the approved definition stays in force
	SensorBroken    = "broken"
	SensorBackedOff = "backed_off"
)

// SensorQuery picks what to list; Project is a registered name.
type SensorQuery struct {
	Page
	Project string
	State   string
}

// Sensor is one definition of a registry and its state. Besides sensors these
// are premises and own phrases (kinds premise and matching), which are approved
// the same way; a row without an id is a whole file that is broken.
type Sensor struct {
	ID          string        `json:"id"`
	Kind        string        `json:"kind"`      // sensor | premise | matching
	Qualified   string        `json:"qualified"` // level/id, level/premise:id, level/matching
	Level       string        `json:"level"`     // user | project/<name> | pack
	File        string        `json:"file"`
	Line        int           `json:"line"`
	Description string        `json:"description"`
	Command     string        `json:"command"` // as spelled
	State       string        `json:"state"`
	Reason      string        `json:"reason,omitempty"`
	InForce     bool          `json:"in_force"`
	Hash        string        `json:"hash"` // of the definition found in the file, "" when removed: what an approval binds
	Effects     string        `json:"effects"`
	Ambient     bool          `json:"ambient"`
	TTLSeconds  int64         `json:"ttl_seconds"`
	Network     string        `json:"network,omitempty"`
	Verifies    []string      `json:"verifies"`
	Keys        []string      `json:"keys"` // names it extracts
	Params      []SensorParam `json:"params"`
	Last        *Reading      `json:"last,omitempty"`
}

// SensorParam is one parameter of a sensor.
type SensorParam struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Default  string `json:"default,omitempty"`
}

// Value is one extracted value. Problem is empty when it is clear.
type Value struct {
	Key     string `json:"key"`
	Type    string `json:"type,omitempty"`
	Text    string `json:"text"`
	Place   string `json:"place,omitempty"`
	Problem string `json:"problem,omitempty"` // missing_value | ambiguous_value | type_mismatch
}

// Reading is one run of a sensor. Reason is set when it could not measure.
type Reading struct {
	Invocation lemma.Invocation `json:"invocation"`
	Values     []Value          `json:"values"`
	Reason     string           `json:"reason,omitempty"`
	Detail     string           `json:"detail,omitempty"`
}

// SensorTry asks for one run. Draft also runs a definition that nobody approved
// yet, which only a person may do.
type SensorTry struct {
	Params  map[string]string `json:"params,omitempty"`
	Claim   string            `json:"claim,omitempty"`
	Project string            `json:"project,omitempty"`
	Cwd     string            `json:"cwd,omitempty"` // where params and cwd: project count from; must lie in the project
	Draft   bool              `json:"draft,omitempty"`
}

// SensorTried is what a try found.
type SensorTried struct {
	Sensor     Sensor      `json:"sensor"`
	Reading    Reading     `json:"reading"`
	Output     string      `json:"output"`    // redacted
	Redacted   []Redaction `json:"redacted"`  // rules that hit
	Truncated  bool        `json:"truncated"` // Output was cut for this answer
	Categories []string    `json:"categories"`
	Matches    string      `json:"matches,omitempty"` // why the claim reaches this sensor
	Judged     *Judged     `json:"judged,omitempty"`  // set when a claim was given
	// Suggestion is a judge rule to add, when nothing could read the claim.
	Suggestion string `json:"suggestion,omitempty"`
}

// Redaction is a rule and how often it hit.
type Redaction struct {
	Rule  string `json:"rule"`
	Count int    `json:"count"`
}

// Judged is a verdict and how it came about.
type Judged struct {
	Verdict  lemma.Verdict `json:"verdict"`
	Reason   string        `json:"reason"`
	Rule     string        `json:"rule,omitempty"`
	Key      string        `json:"key,omitempty"`
	Operator string        `json:"operator,omitempty"`
	Measured string        `json:"measured,omitempty"`
	Claimed  string        `json:"claimed,omitempty"`
}

// SensorDiff is what an approval would change.
type SensorDiff struct {
	ID        string `json:"id"`
	Qualified string `json:"qualified"`
	File      string `json:"file"`
	State     string `json:"state"`
	Hash      string `json:"hash"` // of the definition and of the project's files that it runs; "" = removed
	Text      string `json:"text"` // lines: "!" what it may do and what to mind, "+", "-" or " "
}

// Pack is a set of tested sensors that is part of gettierd's program.
type Pack struct {
	Name     string   `json:"name"`
	About    string   `json:"about"`
	State    string   `json:"state"` // offered | not_here | enabled | changed
	Sensors  int      `json:"sensors"`
	Premises int      `json:"premises"`
	Hash     string   `json:"hash"`  // what an approval of pack/NAME names
	Reach    []string `json:"reach"` // in words, what each sensor may do
	// ReadsOnly: none of its sensors asks for a connection or changes anything.
	ReadsOnly bool `json:"reads_only"`
}

// States of a pack.
const (
	PackOffered = "offered"  // its program is here, and nobody took it
	PackNotHere = "not_here" // its program is not
	PackEnabled = "enabled"
	PackChanged = "changed" // in force as another version of this program had it
)

// SensorApproval approves definitions by what the person saw of them.
type SensorApproval struct {
	Sensors []SensorPin `json:"sensors"`
}

// SensorPin names a definition: the approval fails when Hash is no longer what
// SensorDiff says. An empty Hash approves that the definition is gone.
type SensorPin struct {
	Qualified string `json:"qualified"`
	Hash      string `json:"hash"`
}

// SensorsApproved is the answer to an approval.
type SensorsApproved struct {
	Approved []string `json:"approved"` // qualified ids
	Version  string   `json:"version"`
}

// Project is a registered root.
type Project struct {
	Name string `json:"name"`
	Root string `json:"root"` // absolute, symlinks resolved
}

// Verification is the result of checking the whole log.
type Verification struct {
	OK          bool   `json:"ok"`
	Entries     uint64 `json:"entries"`
	Root        string `json:"root"` // hex
	Origin      string `json:"origin"`
	Checkpoints int    `json:"checkpoints"`
	Blobs       int    `json:"blobs"`
	BadSeq      uint64 `json:"bad_seq,omitempty"` // first entry that fails, when OK is false
	What        string `json:"what,omitempty"`    // what failed there
	DurationMS  int64  `json:"duration_ms"`
}

// Progress counts work done.
type Progress struct {
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
}
