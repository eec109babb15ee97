// Package spec holds the types of the sensor registry (contract 2), and reads
// and validates them: YAML in, typed definitions or errors with line and column
// out. Pure: no files, no processes, no clock. Who may run a sensor is decided
// in package sensors; what a reading means, in sensors/verdict.
package spec

import (
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Type is how values compare.
type Type string

const (
	String   Type = "string"
	Number   Type = "number"
	Bool     Type = "bool"
	Bytes    Type = "bytes"
	Duration Type = "duration"
	Version  Type = "version"
)

// Effects says whether measuring changes the system.
type Effects string

const (
	None    Effects = "none"
	Mutates Effects = "mutates"
)

// Pos is a place in a registry file, 1-based.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Registry is one parsed file.
type Registry struct {
	File     string // path as given
	Level    string // user | project/<name> | pack
	Hash     string // SHA-256 hex of the canonical content: the registry_version
	Sensors  []*Sensor
	Matching map[string][]string // category → own phrases
	Premises []*Premise
	Warnings []Problem
}

// Problem is a fault or a warning at a place, with what to do about it.
type Problem struct {
	Pos
	What string `json:"what"`
	Hint string `json:"hint,omitempty"` // "did you mean …"
}

// Sensor is one approved or pending definition. Its JSON form, without what
// says where it was read, is canonical: Definition writes it, the approval pin
// stores it, and a field added later must be left out when it is empty.
type Sensor struct {
	ID             string        `json:"id"`
	Description    string        `json:"description,omitempty"`
	Argv           []Word        `json:"argv"`
	Probe          string        `json:"probe,omitempty"` // a built-in sensor in place of Argv
	Cwd            string        `json:"cwd,omitempty"`   // "" (project, else the file's directory) | project | worktree | config | empty | absolute path
	Env            []string      `json:"env,omitempty"`
	EnvFrom        string        `json:"env_from,omitempty"` // "" (daemon) | agent
	Params         []Param       `json:"params,omitempty"`
	Extract        []Extract     `json:"extract"`
	Effects        Effects       `json:"effects"`
	Ambient        bool          `json:"ambient,omitempty"`
	Expect         []Expect      `json:"expect,omitempty"`
	Redact         []string      `json:"redact,omitempty"`
	RedactAllow    []string      `json:"redact_allow,omitempty"`
	TTL            time.Duration `json:"ttl"`
	Timeout        time.Duration `json:"timeout"`
	MaxOutputBytes int           `json:"max_output_bytes"`
	ExitOK         []int         `json:"exit_ok"`
	Network        []string      `json:"network,omitempty"` // nil = none; ["host"]; or host:port list
	RunsAs         string        `json:"runs_as,omitempty"`
	Sensitivity    string        `json:"sensitivity"`      // public | internal | secret
	Source         string        `json:"source,omitempty"` // origin; the id where none is written
	Deterministic  bool          `json:"deterministic,omitempty"`
	Verifies       []string      `json:"verifies,omitempty"`
	Judge          []Rule        `json:"judge,omitempty"`
	Pos            Pos           `json:"-"`
	// Hash is the SHA-256 hex of this definition in canonical form: what the
	// approval pin compares.
	Hash string `json:"-"`
	// Level is the registry file's level; Level + "/" + ID is the qualified id.
	Level string `json:"-"`
	// File is the registry file as given, and Version its registry_version.
	File    string `json:"-"`
	Version string `json:"-"`
}

// Qualified is the id with its file's level in front.
func (s *Sensor) Qualified() string { return s.Level + "/" + s.ID }

// Word is one argument of a command: literal text and placeholders.
type Word struct {
	Text  string     `json:"text"` // as spelled, placeholders included
	Parts []WordPart `json:"parts,omitempty"`
}

// WordPart is a literal or the name of a parameter.
type WordPart struct {
	Literal string `json:"literal,omitempty"`
	Param   string `json:"param,omitempty"` // set: substituted
}

// Param is a typed parameter.
type Param struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`              // path | int | number | bool | enum | string | host | port | identifier
	Allow     string   `json:"allow,omitempty"`   // glob for path
	Pattern   string   `json:"pattern,omitempty"` // RE2 for string, matched whole
	Default   *string  `json:"default,omitempty"`
	FromClaim string   `json:"from_claim,omitempty"` // RE2 with group value
	AllowDash bool     `json:"allow_dash,omitempty"`
	Min       *float64 `json:"min,omitempty"`
	Max       *float64 `json:"max,omitempty"`
	Values    []string `json:"values,omitempty"` // enum
}

// Extract is one named value of an output. Exactly one kind is set.
type Extract struct {
	Name    string            `json:"name"`
	Bare    bool              `json:"bare,omitempty"`  // bare name: `name value`, `name = value` or `name: value`
	Regex   string            `json:"regex,omitempty"` // group value
	JSON    string            `json:"json,omitempty"`  // gjson path
	KV      string            `json:"kv,omitempty"`
	Line    string            `json:"line,omitempty"`  // directive
	Lines   string            `json:"lines,omitempty"` // regex, counted
	Table   *Table            `json:"table,omitempty"`
	Exit    bool              `json:"exit,omitempty"`
	Which   string            `json:"which,omitempty"` // "" | last | first | all | effective
	Type    Type              `json:"type"`
	Map     map[string]string `json:"map,omitempty"`
	TypeSet bool              `json:"type_set,omitempty"` // type was written, not defaulted
}

// Table picks a column of the rows that match Where.
type Table struct {
	Column string            `json:"column"`
	Where  map[string]string `json:"where,omitempty"`
}

// Expect is what an ambient sensor stands guard over.
type Expect struct {
	Key      string         `json:"key"`
	Operator lemma.Operator `json:"operator"`
	Value    string         `json:"value"` // source text
	Claim    string         `json:"claim"`
	Category string         `json:"category,omitempty"`
}

// Rule is a curated judge rule.
type Rule struct {
	When     string         `json:"when"`
	Unless   string         `json:"unless,omitempty"`
	Key      string         `json:"key"`
	Type     Type           `json:"type,omitempty"` // "" = the extract's
	Operator lemma.Operator `json:"operator"`
	Value    string         `json:"value"` // source text, may hold {{group}}
	Negated  bool           `json:"negated,omitempty"`
	Examples []Example      `json:"examples,omitempty"`
	Pos      Pos            `json:"-"`
}

// Example is checked when the registry loads.
type Example struct {
	Claim    string `json:"claim"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"` // confirmed | contradicted | inconclusive | skip
	Pos      Pos    `json:"-"`
}

// Premise is what an action takes for granted. Effect is the least effect of an
// action that it applies to ("" = any): read_only, mutate, opaque, destroy or
// catastrophe. Program is a base name, or @edit for a tool that writes a file.
// Args are alternatives, Except what must not stand there; a value of Params may
// be taken from the action, like {{opt:--context}}: sensors/verdict reads both.
type Premise struct {
	ID        string            `json:"id"`
	Program   string            `json:"program"`
	Args      []string          `json:"args,omitempty"`
	Except    []string          `json:"except,omitempty"`
	Effect    string            `json:"effect,omitempty"`
	Claim     string            `json:"claim"`
	Sensor    string            `json:"sensor"`
	Params    map[string]string `json:"params,omitempty"`
	Key       string            `json:"key"`
	Operator  lemma.Operator    `json:"operator"`
	Value     string            `json:"value"`
	OnFalse   string            `json:"on_false"`   // hold | correct | deny | annotate
	OnUnknown string            `json:"on_unknown"` // annotate | hold | release
	Fires     []string          `json:"fires,omitempty"`
	Not       []string          `json:"not,omitempty"`
	Pos       Pos               `json:"-"`
	Level     string            `json:"-"`
	Hash      string            `json:"-"`
}

// Value is one extracted, typed value. Problem is "" for a single clear value,
// missing_value, ambiguous_value or type_mismatch otherwise.
type Value struct {
	Key     string
	Type    Type
	TypeSet bool     // declared in the registry (else taken from the value's form)
	Text    string   // as printed, after map
	All     []string // every value found, when which: all or ambiguous
	Which   string   // all = every value must agree
	Place   string   // file:line where the output says so
	Places  []string // beside All: where each of them stands
	Problem string
}

// Evidence is what one successful run yields: values in the registry's order.
type Evidence struct {
	Sensor     string // id
	Invocation string
	Values     []Value
}
