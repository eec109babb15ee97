package action

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/action/strict"
)

//go:embed default.yaml
var defaultYAML []byte

// Policy says which rules are in force. It does not change once it is made.
type Policy struct {
	Terms
	fingerprint string
	weights     [sources]int // thousandths
	principles  []principle
	hardDeny    map[string]bool
	regenerable map[string]bool
}

// Terms are a policy as its file has it.
type Terms struct {
	Version      int          `yaml:"version" json:"version"`
	Enforce      Phase        `yaml:"enforce" json:"enforce"`
	Modes        Modes        `yaml:"modes" json:"modes"`
	Weights      Weights      `yaml:"weights" json:"weights"`
	HardDeny     []string     `yaml:"hard_deny" json:"hard_deny"`
	RateLimit    RateLimit    `yaml:"rate_limit" json:"rate_limit"`
	Tools        Tools        `yaml:"tools" json:"tools"`
	Execution    Execution    `yaml:"execution" json:"execution"`
	Capabilities Capabilities `yaml:"capabilities" json:"capabilities"`
	Constitution Constitution `yaml:"constitution" json:"constitution"`
	Confirm      Confirm      `yaml:"confirm" json:"confirm"`
	Regenerable  []string     `yaml:"regenerable" json:"regenerable"`
	Rules        []Rule       `yaml:"rules" json:"rules"`
}

// Modes are the thresholds for questions and for what acts (B2).
type Modes struct {
	Consultive Thresholds `yaml:"consultive" json:"consultive"`
	Operative  Thresholds `yaml:"operative" json:"operative"`
}

// Thresholds are sums of risk, 1–100.
type Thresholds struct {
	DenyAt    int `yaml:"deny_at" json:"deny_at"`
	ConfirmAt int `yaml:"confirm_at" json:"confirm_at"`
}

// Weights multiply what each source of risk says, 0–10.
type Weights struct {
	ExecutionGate   float64 `yaml:"execution_gate" json:"execution_gate"`
	CapabilityGate  float64 `yaml:"capability_gate" json:"capability_gate"`
	JailbreakGuard  float64 `yaml:"jailbreak_guard" json:"jailbreak_guard"`
	ProceduralGuard float64 `yaml:"procedural_guard" json:"procedural_guard"`
	Constitution    float64 `yaml:"constitution" json:"constitution"`
}

// RateLimit is how many actions one actor may ask for within so many seconds,
// and how many actors are counted (B27).
type RateLimit struct {
	Actions int `yaml:"actions" json:"actions"`
	Seconds int `yaml:"seconds" json:"seconds"`
	Actors  int `yaml:"actors" json:"actors"`
}

// Tools names tools.
type Tools struct {
	Aliases map[string]string `yaml:"aliases" json:"aliases"`
	Allow   []string          `yaml:"allow" json:"allow"`
	Deny    []string          `yaml:"deny" json:"deny"`
}

// Execution bounds where an action reaches; empty lists bound nothing.
type Execution struct {
	Roots   []string `yaml:"roots" json:"roots"`
	Hosts   []string `yaml:"hosts" json:"hosts"`
	Methods []string `yaml:"methods" json:"methods"`
}

// Capabilities is the matrix of who may do what.
type Capabilities struct {
	Default string            `yaml:"default" json:"default"`
	Actors  map[string]string `yaml:"actors" json:"actors"`
	Roles   map[string]Role   `yaml:"roles" json:"roles"`
}

// Role grants tools (or kinds of tools) and operations.
type Role struct {
	Tools      []string `yaml:"tools" json:"tools"`
	Operations []string `yaml:"operations" json:"operations"`
}

// Constitution holds the principles that texts are read by.
type Constitution struct {
	Principles []Principle `yaml:"principles" json:"principles"`
	// SemanticMaxRisk is the most that an evaluator of meaning adds to the sum, under
	// every deny_at.
	SemanticMaxRisk int `yaml:"semantic_max_risk" json:"semantic_max_risk"`
}

// Principle is a name, a severity of 1–100 and the phrases that speak against it.
type Principle struct {
	Name     string   `yaml:"name" json:"name"`
	Severity int      `yaml:"severity" json:"severity"`
	Keywords []string `yaml:"keywords" json:"keywords"`
}

// Confirm lists operations that a person always confirms.
type Confirm struct {
	Operations []string `yaml:"operations" json:"operations"`
}

// Phase is how much of the decisions counts (B22).
type Phase string

const (
	PhaseShadow   Phase = "shadow"
	PhaseHardDeny Phase = "hard_deny"
	PhaseFull     Phase = "full"
)

// operations that an action can be.
var operations = []string{"read", "write", "request", "command", "delete"}

// alwaysHard are the tags that no policy takes out of force.
var alwaysHard = []string{"critical_tag_detected", "jailbreak_attempt", "tool_not_allowed", "capability_tool_denied"}

var builtin = sync.OnceValue(func() *Policy {
	p, doc := parse(defaultYAML, Terms{})
	if p == nil {
		panic("action: the embedded policy is faulty: " + doc.Text("default.yaml"))
	}
	return p
})

// Default is the built-in policy. It needs no file.
func Default() *Policy { return builtin() }

// ParsePolicy reads a policy file on top of the built-in one. With any fault the
// policy is nil and the document holds all of them.
func ParsePolicy(data []byte) (*Policy, *strict.Doc) { return parse(data, Default().Terms) }

func parse(data []byte, terms Terms) (*Policy, *strict.Doc) {
	terms.Version = 0 // each file says its own
	d := strict.Decode(data, &terms)
	if len(d.Problems) == 0 {
		terms.check(d)
	}
	if len(d.Problems) > 0 {
		return nil, d
	}
	p := compile(terms)
	for i, r := range p.Rules {
		r.checkExamples(p, d, "rules["+strconv.Itoa(i)+"]")
	}
	if len(d.Problems) > 0 {
		return nil, d
	}
	return p, d
}

func compile(terms Terms) *Policy {
	p := &Policy{Terms: terms, hardDeny: map[string]bool{}, regenerable: map[string]bool{}}
	canonical, err := json.Marshal(terms)
	if err != nil {
		panic("action: terms are plain data: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte(Rules+"\n"), canonical...))
	p.fingerprint = hex.EncodeToString(sum[:])
	for i, w := range [sources]float64{terms.Weights.ExecutionGate, terms.Weights.CapabilityGate, terms.Weights.JailbreakGuard, terms.Weights.ProceduralGuard, terms.Weights.Constitution} {
		p.weights[i] = int(w*1000 + 0.5)
	}
	for _, t := range slices.Concat(alwaysHard, terms.HardDeny) {
		p.hardDeny[t] = true
	}
	for _, n := range terms.Regenerable {
		p.regenerable[n] = true
	}
	for _, c := range terms.Constitution.Principles {
		p.principles = append(p.principles, newPrinciple(c))
	}
	return p
}

// Fingerprint is the SHA-256 of the built-in rules' version and the policy in its
// canonical form, hex. Defaults count as if the file had named them.
func (p *Policy) Fingerprint() string { return p.fingerprint }

// YAML is the whole policy as a file that reads back to the same fingerprint.
func (p *Policy) YAML() ([]byte, error) {
	b, err := yaml.MarshalWithOptions(p.Terms, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write policy: %w", err)
	}
	return b, nil
}

// check finds what is well formed and yet makes no sense.
func (t *Terms) check(d *strict.Doc) {
	between := func(path string, v, lo, hi int) {
		if v < lo || v > hi {
			d.Fault(path, fmt.Sprintf("%s must lie between %d and %d", last(path), lo, hi), "")
		}
	}
	oneOf := func(path, v string, of ...string) {
		if !slices.Contains(of, v) {
			hint := strict.Meant(v, of)
			if hint == "" {
				hint = "one of: " + strings.Join(of, ", ")
			}
			d.Fault(path, fmt.Sprintf("%s cannot be %q", last(path), v), hint)
		}
	}
	if t.Version != 1 {
		d.Fault("version", "version must be 1", "")
	}
	if between("constitution.semantic_max_risk", t.Constitution.SemanticMaxRisk, 0, 99); t.Constitution.SemanticMaxRisk >= min(t.Modes.Consultive.DenyAt, t.Modes.Operative.DenyAt) {
		d.Fault("constitution.semantic_max_risk", "semantic_max_risk must lie under every mode's deny_at: meaning alone never denies", "it is 60 where the file says nothing")
	}
	oneOf("enforce", string(t.Enforce), string(PhaseShadow), string(PhaseHardDeny), string(PhaseFull))
	for _, m := range [...]struct {
		path string
		Thresholds
	}{{"modes.consultive", t.Modes.Consultive}, {"modes.operative", t.Modes.Operative}} {
		between(m.path+".deny_at", m.DenyAt, 1, 100)
		between(m.path+".confirm_at", m.ConfirmAt, 1, 100)
		if m.ConfirmAt >= m.DenyAt {
			d.Fault(m.path+".confirm_at", "confirm_at must lie under deny_at", "")
		}
	}
	for _, w := range [...]struct {
		path string
		v    float64
	}{{"execution_gate", t.Weights.ExecutionGate}, {"capability_gate", t.Weights.CapabilityGate}, {"jailbreak_guard", t.Weights.JailbreakGuard}, {"procedural_guard", t.Weights.ProceduralGuard}, {"constitution", t.Weights.Constitution}} {
		if !(w.v >= 0 && w.v <= 10) {
			d.Fault("weights."+w.path, "a weight must lie between 0 and 10", "")
		}
	}
	between("rate_limit.actions", t.RateLimit.Actions, 1, 100_000)
	between("rate_limit.seconds", t.RateLimit.Seconds, 1, 86_400)
	between("rate_limit.actors", t.RateLimit.Actors, 1, 1_000_000)
	for name, target := range t.Tools.Aliases {
		if !shell.KnownTool(target) {
			d.Fault("tools.aliases."+name, fmt.Sprintf("no tool is known as %q", target), "name one that agents have, like bash, read, edit, webfetch or sql")
		}
	}
	if _, ok := t.Capabilities.Roles[t.Capabilities.Default]; !ok && t.Capabilities.Default != "" {
		d.Fault("capabilities.default", fmt.Sprintf("no role is named %q", t.Capabilities.Default), "")
	}
	for actor, role := range t.Capabilities.Actors {
		if _, ok := t.Capabilities.Roles[role]; !ok {
			d.Fault("capabilities.actors."+actor, fmt.Sprintf("no role is named %q", role), "")
		}
	}
	for name, role := range t.Capabilities.Roles {
		for i, op := range role.Operations {
			oneOf("capabilities.roles."+name+".operations["+strconv.Itoa(i)+"]", op, operations...)
		}
	}
	for i, op := range t.Confirm.Operations {
		oneOf("confirm.operations["+strconv.Itoa(i)+"]", op, operations...)
	}
	for i, root := range t.Execution.Roots {
		if !strings.HasPrefix(root, "/") && !strings.HasPrefix(root, "~/") && root != "." {
			d.Fault("execution.roots["+strconv.Itoa(i)+"]", "a root must be an absolute path, or begin with ~/, or be . for where the action starts", "")
		}
	}
	names := map[string]bool{}
	for i, c := range t.Constitution.Principles {
		path := "constitution.principles[" + strconv.Itoa(i) + "]"
		between(path+".severity", c.Severity, 1, 100)
		if c.Name == "" || len(c.Keywords) == 0 {
			d.Fault(path, "a principle needs a name and keywords", "")
		}
		if names[c.Name] {
			d.Fault(path+".name", fmt.Sprintf("%q stands twice", c.Name), "")
		}
		names[c.Name] = true
	}
	for i, n := range t.Regenerable {
		if n == "" || strings.ContainsAny(n, "/*?[~$") || n[0] == '.' && len(n) < 3 || shell.Precious(n) {
			d.Fault("regenerable["+strconv.Itoa(i)+"]", fmt.Sprintf("%q cannot count as made again by a build", n), "name a directory, without a path or a pattern")
		}
	}
	t.checkRules(d)
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
