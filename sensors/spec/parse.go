package spec

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"gettier.dev/gettierd/ledger/lemma"
)

// What a definition gets where it says nothing.
const (
	DefaultTTL            = 300 * time.Second
	DefaultTimeout        = 10 * time.Second
	DefaultMaxOutputBytes = 64 << 10
	DefaultSensitivity    = "internal"
)

// Bounds of one file and of one definition.
const (
	maxSensors   = 500
	maxTTL       = 365 * 24 * 3600
	maxTimeout   = 600
	maxOutputCap = 16 << 20
	maxRegexp    = 1000
	maxList      = 100
)

// Check looks at one sensor beyond its form, e.g. runs its judge examples.
type Check func(*Sensor) []Problem

// Parse reads a registry file. Faults come all at once, in the order of the
// file; with any, the registry is nil and the caller keeps the one it has.
// Warnings are on the registry. Parse never runs anything.
func Parse(file, level string, data []byte, checks ...Check) (*Registry, []Problem) {
	r := &reader{}
	reg := &Registry{File: file, Level: level}
	r.guarded(func() {
		if root, ok := r.document(data); ok {
			r.registry(root, reg)
		}
	})
	if len(r.problems) > 0 {
		return nil, inOrder(r.problems)
	}
	for _, s := range reg.Sensors {
		s.Level, s.File = level, file
		s.Hash = HashOf(s)
		for _, check := range checks {
			if check != nil && len(r.problems) == 0 {
				r.problems = append(r.problems, check(s)...)
			}
		}
	}
	for _, p := range reg.Premises {
		p.Level, p.Hash = level, HashOf(p)
	}
	if len(r.problems) > 0 {
		return nil, inOrder(r.problems)
	}
	reg.Warnings = r.warnings
	reg.Hash = registryHash(reg)
	for _, s := range reg.Sensors {
		s.Version = reg.Hash
	}
	return reg, nil
}

// inOrder sorts problems as they stand in the file.
func inOrder(ps []Problem) []Problem {
	sort.SliceStable(ps, func(i, j int) bool { return before(ps[i].Pos, ps[j].Pos) })
	return ps
}

func before(a, b Pos) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
}

func (r *reader) registry(root ast.Node, reg *Registry) {
	es, ok := r.mapping(root, "the registry", "version", "sensors", "matching", "premises")
	if !ok {
		return
	}
	versioned := false
	for _, e := range es {
		switch e.key {
		case "version":
			versioned = true
			if s, f := r.scalar(e.val, "version"); f != absent && (f != number || s != "1") {
				r.fault(pos(e.val), fmt.Sprintf("version %q is not known", clip(s)), "this program reads version: 1")
			}
		case "sensors":
			r.sensors(e, reg)
		case "matching":
			reg.Matching = r.matching(e.val)
		}
	}
	if !versioned {
		r.fault(pos(root), "version is missing", "begin with version: 1")
	}
	for _, e := range es { // after the sensors, whose keys and params they name
		if e.key == "premises" {
			r.premises(e.val, reg)
		}
	}
}

func (r *reader) sensors(e entry, reg *Registry) {
	if e.val == nil || e.val.Type() == ast.NullType {
		return // a list whose entries are all commented out
	}
	seq, ok := r.sequence(e.val, "sensors")
	if !ok {
		return
	}
	if len(seq) > maxSensors {
		r.fault(e.pos, fmt.Sprintf("more than %d sensors", maxSensors), "")
		return
	}
	seen := map[string]Pos{}
	for _, n := range seq {
		s := r.sensor(n)
		if s == nil {
			continue
		}
		if first, dup := seen[s.ID]; dup && s.ID != "" {
			r.fault(s.Pos, fmt.Sprintf("the id %s is taken on line %d", s.ID, first.Line), "an id is unique in its file")
			continue
		}
		seen[s.ID] = s.Pos
		reg.Sensors = append(reg.Sensors, s)
	}
}

var (
	idForm       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*$`)
	categoryForm = idForm
	keyForm      = regexp.MustCompile(`^[A-Za-z0-9_.@/:-]+$`)
	envForm      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	userForm     = regexp.MustCompile(`^[a-z_][a-z0-9_-]*\$?$`)
	socketForm   = regexp.MustCompile(`^unix:/[^\x00-\x20]+$`)
	hostPortForm = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([1-9][0-9]{0,4})$`)
)

var sensorKeys = []string{
	"id", "description", "command", "probe", "cwd", "env", "env_from", "params", "extract", "effects", "ambient", "expect", "redact",
	"redact_allow", "ttl", "timeout", "max_output_bytes", "exit_ok", "network", "runs_as", "sensitivity", "source",
	"deterministic", "verifies", "judge",
}

// RedactClasses are the classes that redact: may name; tokens are always on.
var RedactClasses = []string{"env_values", "tokens", "connstrings"}

func (r *reader) sensor(n ast.Node) *Sensor {
	es, ok := r.mapping(n, "a sensor", sensorKeys...)
	if !ok {
		return nil
	}
	s := &Sensor{
		Effects: Mutates, TTL: DefaultTTL, Timeout: DefaultTimeout, MaxOutputBytes: DefaultMaxOutputBytes,
		Sensitivity: DefaultSensitivity, ExitOK: []int{0}, Pos: pos(n),
	}
	have := map[string]entry{}
	for _, e := range es {
		have[e.key] = e
		r.sensorKey(s, e)
	}
	name := s.ID
	if _, ok := have["id"]; !ok {
		r.fault(s.Pos, "a sensor without an id", "add id: some.name")
		name = "this sensor"
	}
	_, probed := have["probe"]
	if _, ok := have["command"]; !ok && !probed {
		r.fault(s.Pos, name+" has no command", "")
	}
	if _, ok := have["effects"]; !ok && probed {
		s.Effects = None
	} else if !ok {
		r.warn(s.Pos, name+" declares no effects and counts as mutates", "add effects: none when it only reads")
	}
	if _, ok := have["network"]; !ok && s.Effects == Mutates {
		s.Network = []string{"host"}
	}
	if s.Source == "" {
		s.Source = s.ID
	}
	if len(s.Extract) == 0 {
		r.warn(s.Pos, name+" extracts nothing, so no rule can judge by it", "add extract:")
	}
	r.sensorWhole(s, have)
	// Rules and expectations name extracted keys, so they are read last.
	if e, ok := have["judge"]; ok {
		s.Judge = r.rules(e.val, s)
	}
	if e, ok := have["expect"]; ok {
		s.Expect = r.expects(e.val, s)
	}
	return s
}

func (r *reader) sensorKey(s *Sensor, e entry) {
	switch e.key {
	case "id":
		if v, ok := r.str(e.val, "id"); ok {
			if s.ID = v; len(v) > 64 || !idForm.MatchString(v) {
				r.fault(pos(e.val), fmt.Sprintf("the id %q is not a name", clip(v)), "letters, digits, _ and -, parts joined by dots, at most 64 bytes")
			}
		}
	case "description":
		s.Description, _ = r.str(e.val, "description")
	case "command":
		s.Argv = r.command(e.val)
	case "probe":
		s.Probe = r.probe(e.val)
	case "cwd":
		if v, ok := r.str(e.val, "cwd"); ok {
			if s.Cwd = v; v != "project" && v != "worktree" && v != "config" && v != "empty" && !strings.HasPrefix(v, "/") {
				r.fault(pos(e.val), fmt.Sprintf("cwd cannot be %q", clip(v)), "project, worktree, config, empty or an absolute path")
			}
		}
	case "env":
		s.Env = r.texts(e.val, "env", maxList)
		for _, name := range s.Env {
			if !envForm.MatchString(name) {
				r.fault(pos(e.val), fmt.Sprintf("env takes names of variables, not %q", clip(name)), "values come from the environment itself")
			}
		}
	case "env_from":
		if v, ok := r.oneOf(e.val, "env_from", "daemon", "agent"); ok && v == "agent" {
			s.EnvFrom = v
		}
	case "params":
		s.Params = r.params(e.val)
	case "extract":
		s.Extract = r.extracts(e.val)
	case "effects":
		if v, ok := r.oneOf(e.val, "effects", "none", "mutates"); ok {
			s.Effects = Effects(v)
		}
	case "ambient":
		s.Ambient, _ = r.boolean(e.val, "ambient")
	case "redact":
		s.Redact = r.texts(e.val, "redact", maxList)
		for _, c := range s.Redact {
			if !contains(RedactClasses, c) {
				hint := meant(c, RedactClasses)
				if hint == "" {
					hint = "one of: " + strings.Join(RedactClasses, ", ")
				}
				r.fault(pos(e.val), fmt.Sprintf("there is no redaction class %q", clip(c)), hint)
			}
		}
	case "redact_allow":
		s.RedactAllow = r.texts(e.val, "redact_allow", maxList)
	case "ttl":
		if v, ok := r.integer(e.val, "ttl", 0, maxTTL); ok {
			s.TTL = time.Duration(v) * time.Second
		}
	case "timeout":
		if v, ok := r.integer(e.val, "timeout", 1, maxTimeout); ok {
			s.Timeout = time.Duration(v) * time.Second
		}
	case "max_output_bytes":
		if v, ok := r.integer(e.val, "max_output_bytes", 1, maxOutputCap); ok {
			s.MaxOutputBytes = v
		}
	case "exit_ok":
		r.exitOK(s, e)
	case "network":
		r.network(s, e)
	case "runs_as":
		if v, ok := r.str(e.val, "runs_as"); ok {
			if s.RunsAs = v; !userForm.MatchString(v) {
				r.fault(pos(e.val), fmt.Sprintf("runs_as: %q is not the name of a user", clip(v)), "")
			}
		}
	case "sensitivity":
		if v, ok := r.oneOf(e.val, "sensitivity", "public", "internal", "secret"); ok {
			s.Sensitivity = v
		}
	case "source":
		s.Source, _ = r.str(e.val, "source")
	case "deterministic":
		s.Deterministic, _ = r.boolean(e.val, "deterministic")
	case "verifies":
		s.Verifies = r.texts(e.val, "verifies", maxList)
		for _, c := range s.Verifies {
			r.category(pos(e.val), c)
		}
	}
}

func (r *reader) category(p Pos, c string) {
	if !categoryForm.MatchString(c) || len(c) > 64 {
		r.fault(p, fmt.Sprintf("%q is not a category", clip(c)), "like request_path.size_limits")
	}
}

func (r *reader) command(n ast.Node) []Word {
	var words []Word
	var err error
	p := pos(n)
	if seq, ok := n.(*ast.SequenceNode); ok {
		elems := make([]string, 0, len(seq.Values))
		for _, e := range seq.Values {
			s, f := r.scalar(e, "an argument")
			if f == absent {
				return nil
			}
			elems = append(elems, s)
		}
		var i int
		if words, i, err = List(elems); err != nil && i < len(seq.Values) {
			p = pos(seq.Values[i])
		}
	} else {
		s, f := r.scalar(n, "command")
		if f == absent {
			return nil
		}
		if words, err = Split(s); err != nil {
			r.commandFaults(n, p, s)
			return nil
		}
	}
	if err != nil {
		var se *SplitError
		if !errors.As(err, &se) {
			se = &SplitError{What: err.Error()}
		}
		r.fault(inside(n, p, se.Offset), "command: "+se.What, se.Hint)
		return nil
	}
	return words
}

// commandFaults reports what is wrong with a command, once a word: a faulty byte
// is read as a letter to find the next.
func (r *reader) commandFaults(n ast.Node, p Pos, text string) {
	last := -1
	b := []byte(text)
	for range 40 { // each costs a reading of the whole
		_, err := Split(string(b))
		var se *SplitError
		if !errors.As(err, &se) {
			return
		}
		if last >= 0 && se.Offset <= last {
			if last > 0 && se.Offset == 0 { // of the program, which is looked at once the words are known
				r.fault(p, "command: "+se.What, se.Hint)
			}
			return
		}
		if last < 0 || strings.ContainsAny(text[last:se.Offset], " \t\n") {
			r.fault(inside(n, p, se.Offset), "command: "+se.What, se.Hint)
		}
		if last = se.Offset; last >= len(b) || b[last] >= 0x80 {
			return
		}
		b[last] = 'x'
	}
}

// inside moves p to a byte of a scalar where that is certain: plain and quoted
// text of one line without escapes.
func inside(n ast.Node, p Pos, off int) Pos {
	s, ok := n.(*ast.StringNode)
	if !ok || strings.ContainsAny(s.Value, "\n\"'\\") || off > len(s.Value) {
		return p
	}
	if t := s.GetToken(); strings.HasPrefix(strings.TrimSpace(t.Origin), "'") || strings.HasPrefix(strings.TrimSpace(t.Origin), `"`) {
		p.Column++
	}
	p.Column += len([]rune(s.Value[:off]))
	return p
}

func (r *reader) exitOK(s *Sensor, e entry) {
	seq, ok := r.sequence(e.val, "exit_ok")
	if !ok {
		return
	}
	if len(seq) == 0 || len(seq) > 256 {
		r.fault(e.pos, "exit_ok needs at least one exit code", "leave it out for [0]")
		return
	}
	s.ExitOK = nil
	for _, n := range seq {
		if v, ok := r.integer(n, "an exit code", 0, 255); ok {
			s.ExitOK = append(s.ExitOK, v)
		}
	}
}

func (r *reader) network(s *Sensor, e entry) {
	if _, list := e.val.(*ast.SequenceNode); !list {
		if v, ok := r.oneOf(e.val, "network", "none", "host"); ok && v == "host" {
			s.Network = []string{"host"}
		}
		return
	}
	s.Network = r.texts(e.val, "network", maxList)
	for _, hp := range s.Network {
		if !hostPortForm.MatchString(hp) && !socketForm.MatchString(hp) {
			r.fault(pos(e.val), fmt.Sprintf("network: %q is not host:port", clip(hp)), "none, host, or a list like [db.local:5432] or [unix:/run/docker.sock]")
		}
	}
}

// steers lists variables that change which code runs. From an agent's process
// they would be an environment that a model chose.
var steers = regexp.MustCompile(`^(PATH|LD_.*|DYLD_.*|.*_OPTIONS|PYTHON.*|NODE_.*|GIT_.*|BASH_ENV|ENV|SHELL|KUBECONFIG|.*_CONFIG|PERL5.*|RUBYOPT|RUBYLIB|IFS)$`)

// sensorWhole holds the rules that need more than one key.
func (r *reader) sensorWhole(s *Sensor, have map[string]entry) {
	if s.Ambient && s.Effects != None {
		r.fault(have["ambient"].pos, "only a sensor with effects: none may be ambient", "add effects: none")
	}
	if e, ok := have["expect"]; ok && !s.Ambient {
		r.fault(e.pos, "expect: is for ambient sensors", "add ambient: true")
	}
	if _, ok := have["probe"]; ok {
		r.probeWhole(s, have)
	}
	if s.EnvFrom == "agent" {
		if len(s.Env) == 0 {
			r.fault(have["env_from"].pos, "env_from: agent without names", "add env: [NAME]")
		}
		for _, name := range s.Env {
			if steers.MatchString(name) {
				r.fault(have["env"].pos, fmt.Sprintf("%s changes what runs and is not taken from an agent", name), "drop it, or take it from the daemon")
			}
		}
	}
	for _, x := range s.Extract {
		if _, ok := have["exit_ok"]; x.Exit && !ok {
			r.fault(have["extract"].pos, "an exit code is a value only with exit_ok", "add exit_ok: [0, 1]")
		}
	}
	used := map[string]bool{}
	for _, w := range s.Argv {
		for _, p := range w.Parts {
			if p.Param == "" {
				continue
			}
			used[p.Param] = true
			if _, ok := s.Param(p.Param); !ok {
				known := make([]string, len(s.Params))
				for i := range s.Params {
					known[i] = s.Params[i].Name
				}
				r.fault(pos(have["command"].val), fmt.Sprintf("command: the parameter %s is not declared", p.Param), orElse(meant(p.Param, known), "add it under params:"))
			}
		}
	}
	for _, p := range s.Params {
		if !used[p.Name] && s.Argv != nil {
			r.warn(have["params"].pos, fmt.Sprintf("the parameter %s is never used in the command", p.Name), "")
		}
	}
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// Param finds a declared parameter.
func (s *Sensor) Param(name string) (*Param, bool) {
	for i := range s.Params {
		if s.Params[i].Name == name {
			return &s.Params[i], true
		}
	}
	return nil, false
}

// Value finds an extract by its name.
func (s *Sensor) Value(key string) (*Extract, bool) {
	for i := range s.Extract {
		if s.Extract[i].Name == key {
			return &s.Extract[i], true
		}
	}
	return nil, false
}

func (r *reader) matching(n ast.Node) map[string][]string {
	es, ok := r.mapping(n, "matching")
	if !ok {
		return nil
	}
	out := map[string][]string{}
	for _, e := range es {
		r.category(e.pos, e.key)
		out[e.key] = r.texts(e.val, "the phrases of "+clip(e.key), maxList)
		for _, p := range out[e.key] {
			if len(p) > 200 {
				r.fault(pos(e.val), "a phrase longer than 200 bytes", "")
			}
		}
	}
	return out
}

func operators() []string {
	return []string{
		string(lemma.Eq), string(lemma.Ne), string(lemma.Lt), string(lemma.Le), string(lemma.Gt), string(lemma.Ge),
		string(lemma.Contains), string(lemma.NotContains),
	}
}

func (r *reader) operator(n ast.Node) (lemma.Operator, bool) {
	s, ok := r.str(n, "operator")
	if !ok {
		return "", false
	}
	op := lemma.Operator(s)
	if !op.Valid() {
		hint := map[string]string{"==": `did you mean "="?`, "<>": `did you mean "!="?`, "=>": `did you mean ">="?`, "=<": `did you mean "<="?`}[s]
		r.fault(pos(n), fmt.Sprintf("operator cannot be %q", clip(s)), orElse(hint, orElse(meant(s, operators()), "one of: "+strings.Join(operators(), " "))))
		return "", false
	}
	return op, true
}

func ordered(op lemma.Operator) bool {
	switch op {
	case lemma.Lt, lemma.Le, lemma.Gt, lemma.Ge:
		return true
	}
	return false
}

func sortable(t Type) bool {
	switch t {
	case Number, Bytes, Duration, Version:
		return true
	}
	return false
}

func (r *reader) regexp(n ast.Node, what string, groups ...string) (string, *regexp.Regexp) {
	s, ok := r.str(n, what)
	if !ok {
		return "", nil
	}
	if len(s) > maxRegexp {
		r.fault(pos(n), fmt.Sprintf("%s is longer than %d bytes", what, maxRegexp), "")
		return "", nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		hint := "RE2: no look-around, no back-references"
		if strings.Contains(err.Error(), "escape") {
			hint += "; write patterns in single quotes"
		}
		r.fault(pos(n), fmt.Sprintf("%s: %s", what, strings.TrimPrefix(err.Error(), "error parsing regexp: ")), hint)
		return "", nil
	}
	for _, g := range groups {
		if re.SubexpIndex(g) < 0 {
			r.fault(pos(n), fmt.Sprintf("%s has no group %s", what, g), fmt.Sprintf("write (?P<%s>…) round what it should take", g))
			return "", nil
		}
	}
	return s, re
}
