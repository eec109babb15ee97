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

// Sensor is one approved or pending definition.
type Sensor struct {
	ID             string
	Description    string
	Argv           []Word
	Cwd            string // project | worktree | config | absolute path
	Env            []string
	EnvFrom        string // "" (daemon) | agent
	Params         []Param
	Extract        []Extract
	Effects        Effects
	Ambient        bool
	Expect         []Expect
	Redact         []string
	RedactAllow    []string
	TTL            time.Duration
	Timeout        time.Duration
	MaxOutputBytes int
	ExitOK         []int
	Network        []string // nil = none; ["host"]; or host:port list
	RunsAs         string
	Sensitivity    string // public | internal | secret
	Source         string
	Deterministic  bool
	Verifies       []string
	Judge          []Rule
	Pos            Pos
	// Hash is the SHA-256 hex of this definition in canonical form: what the
	// approval pin compares.
	Hash string
	// Level is the registry file's level; Level + "/" + ID is the qualified id.
	Level string
}

// Qualified is the id with its file's level in front.
func (s *Sensor) Qualified() string { return s.Level + "/" + s.ID }

// Word is one argument of a command: literal text and placeholders.
type Word struct {
	Text  string // as spelled, placeholders included
	Parts []WordPart
}

// WordPart is a literal or the name of a parameter.
type WordPart struct {
	Literal string
	Param   string // set: substituted
}

// Param is a typed parameter.
type Param struct {
	Name      string
	Type      string // path | int | number | bool | enum | string | host | port | identifier
	Allow     string // glob for path
	Pattern   string // RE2 for string
	Default   *string
	FromClaim string // RE2 with group value
	AllowDash bool
	Min, Max  *float64
	Values    []string // enum
}

// Extract is one named value of an output. Exactly one kind is set.
type Extract struct {
	Name    string
	Bare    bool   // bare name: `name value`, `name = value` or `name: value`
	Regex   string // group value
	JSON    string // gjson path
	KV      string
	Line    string // directive
	Lines   string // regex, counted
	Table   *Table
	Exit    bool
	Which   string // "" | last | first | all | effective
	Type    Type
	Map     map[string]string
	TypeSet bool // type was written, not defaulted
}

// Table picks a column of the rows that match Where.
type Table struct {
	Column string
	Where  map[string]string
}

// Expect is what an ambient sensor stands guard over.
type Expect struct {
	Key      string
	Operator lemma.Operator
	Value    string // source text
	Claim    string
	Category string
}

// Rule is a curated judge rule.
type Rule struct {
	When     string
	Unless   string
	Key      string
	Type     Type // "" = the extract's
	Operator lemma.Operator
	Value    string // source text, may hold {{group}}
	Negated  bool
	Examples []Example
	Pos      Pos
}

// Example is checked when the registry loads.
type Example struct {
	Claim    string
	Measured string
	Verdict  string // confirmed | contradicted | inconclusive | skip
	Pos      Pos
}

// Premise is what an action takes for granted.
type Premise struct {
	ID        string
	Program   string
	Args      []string
	Effect    string
	Claim     string
	Sensor    string
	Params    map[string]string
	Key       string
	Operator  lemma.Operator
	Value     string
	OnFalse   string // hold | correct | deny | annotate
	OnUnknown string // annotate | hold | release
	Fires     []string
	Not       []string
	Pos       Pos
	Level     string
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
	Problem string
}

// Evidence is what one successful run yields: values in the registry's order.
type Evidence struct {
	Sensor     string // id
	Invocation string
	Values     []Value
}
