package probe

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// manifest is what is read of a package.json.
type manifest struct {
	Name           string            `json:"name"`
	PackageManager string            `json:"packageManager"`
	Scripts        map[string]string `json:"scripts"`
	Engines        map[string]string `json:"engines"`
	Dependencies   map[string]string `json:"dependencies"`
	DevDeps        map[string]string `json:"devDependencies"`
	Volta          struct {
		Node string `json:"node"`
	} `json:"volta"`
	Prisma struct {
		Schema string `json:"schema"`
	} `json:"prisma"`
	dir string
}

// manifest reads the nearest package.json on the way up; nil when there is none.
func (t *tree) manifest() (*manifest, error) {
	dir, found, err := t.nearest("package.json")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return t.manifestIn(dir)
}

func (t *tree) manifestIn(dir string) (*manifest, error) {
	text, err := t.file(path.Join(dir, "package.json"))
	if err != nil {
		return nil, err
	}
	// Each field by itself: a strange one must not hide the others.
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &raw); err != nil {
		return nil, fmt.Errorf("read package.json: %w", err)
	}
	m := &manifest{dir: dir}
	for name, into := range map[string]any{
		"name": &m.Name, "packageManager": &m.PackageManager, "scripts": &m.Scripts, "engines": &m.Engines,
		"dependencies": &m.Dependencies, "devDependencies": &m.DevDeps, "volta": &m.Volta, "prisma": &m.Prisma,
	} {
		if v, ok := raw[name]; ok && json.Unmarshal(v, into) != nil && name == "packageManager" {
			return nil, fmt.Errorf("read package.json: %s has another form", name)
		}
	}
	return m, nil
}

func (m *manifest) depends(name string) bool {
	_, a := m.Dependencies[name]
	_, b := m.DevDeps[name]
	return a || b
}

// locks are the lock files that tell which package manager made them.
var locks = []struct{ file, manager string }{
	{"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"}, {"yarn.lock", "yarn"}, {"pnpm-lock.yaml", "pnpm"},
	{"bun.lock", "bun"}, {"bun.lockb", "bun"},
}

// nodePM: which package manager is this project's? (row 6)
func (p *probe) nodePM() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	m, err := t.manifest()
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("%w: no package.json", ErrNone)
	}
	declared, version, from, err := t.declaredManager()
	if err != nil {
		return err
	}
	files := make([]string, len(locks))
	for i, l := range locks {
		files[i] = l.file
	}
	dir, found, err := t.nearest(files...)
	if err != nil {
		return err
	}
	var by []string
	for _, l := range locks {
		if contains(found, l.file) && !contains(by, l.manager) {
			by = append(by, l.manager)
		}
	}
	_, workspace, err := t.nearest("pnpm-workspace.yaml")
	if err != nil {
		return err
	}
	p.put("declared", declared)
	p.put("lockfiles", or(strings.Join(found, ","), "none"))
	p.put("lockfile_managers", or(strings.Join(by, ","), "none"))
	switch {
	case declared != "" && (len(by) == 0 || contains(by, declared)):
		p.put("manager", declared)
		p.put("version", version)
		p.put("source", from)
	case declared != "":
		p.put("conflict", "packageManager and the lock file disagree")
	case len(by) == 1 && (len(workspace) == 0 || by[0] == "pnpm"):
		p.put("manager", by[0])
		p.put("source", path.Join(dir, found[0]))
	case len(by) > 1:
		p.put("conflict", "several lock files")
	}
	installed, err := t.has(path.Join(m.dir, "node_modules"))
	if err != nil {
		return err
	}
	if dir != "" && !installed {
		if installed, err = t.has(path.Join(dir, "node_modules")); err != nil {
			return err
		}
	}
	p.putBool("installed", installed)
	return nil
}

// declaredManager is what the nearest packageManager field says, as corepack
// looks it up.
func (t *tree) declaredManager() (name, version, from string, err error) {
	for _, dir := range t.up() {
		ok, err := t.has(path.Join(dir, "package.json"))
		if err != nil {
			return "", "", "", err
		}
		if !ok {
			continue
		}
		m, err := t.manifestIn(dir)
		if err != nil {
			return "", "", "", err
		}
		if m.PackageManager == "" {
			continue
		}
		name, version, _ := strings.Cut(m.PackageManager, "@")
		version, _, _ = strings.Cut(version, "+")
		if !slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name) {
			return "", "", "", fmt.Errorf("read package.json: packageManager names %q", cut(name, 40))
		}
		return name, version, "packageManager in " + path.Join(dir, "package.json"), nil
	}
	return "", "", "", nil
}

func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// testCommand: does the test script exist, does it end, does it run tests? (row 11)
func (p *probe) testCommand() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	m, err := t.manifest()
	if err != nil {
		return err
	}
	name := or(p.param("script"), "test")
	if m == nil {
		return p.otherTests(t, name)
	}
	text, ok := m.Scripts[name]
	p.put("kind", "package.json")
	p.put("script", name)
	p.putBool("exists", ok)
	if !ok {
		p.put("scripts", strings.Join(slices.Sorted(keysOf(m.Scripts)), ","))
		return nil
	}
	p.put("command", text)
	s := readScript(text, m.Scripts, 0)
	p.put("runner", s.runner)
	if s.runs != maybe {
		p.putBool("runs_tests", s.runs == yes)
	}
	if s.watch != maybe {
		p.putBool("watch", s.watch == yes)
	}
	return nil
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// three says yes, no, or that it cannot be told.
type three int

const (
	maybe three = iota
	yes
	no
)

// script is what is known of a package script.
type script struct {
	runner string
	runs   three
	watch  three
}

// readScript reads the commands of a script and follows those that name another
// one. It is read, never run.
func readScript(text string, all map[string]string, depth int) script {
	out := script{runs: no, watch: no}
	if strings.Contains(text, "no test specified") {
		return out
	}
	for _, cmd := range commands(text) {
		s := readCommand(cmd, all, depth)
		if s.runner != "" && !contains(strings.Split(out.runner, ","), s.runner) {
			out.runner = strings.TrimPrefix(out.runner+","+s.runner, ",")
		}
		out.runs = joined(out.runs, s.runs)
		out.watch = joined(out.watch, s.watch)
	}
	return out
}

// joined: one yes is enough, and what cannot be told beats no.
func joined(a, b three) three {
	switch {
	case a == yes || b == yes:
		return yes
	case a == maybe || b == maybe:
		return maybe
	}
	return no
}

// commands splits a script where a shell begins another command.
func commands(text string) [][]string {
	var out [][]string
	for _, part := range strings.FieldsFunc(strings.NewReplacer("&&", "\n", "||", "\n", ";", "\n", "|", "\n").Replace(text), func(r rune) bool { return r == '\n' }) {
		f := strings.Fields(part)
		for len(f) > 0 && (strings.Contains(f[0], "=") || contains([]string{"cross-env", "npx", "env", "exec", "dotenv", "--", "-e", "time", "c8", "nyc", "bunx"}, f[0])) {
			f = f[1:]
		}
		if len(f) > 0 && len(out) < 32 {
			out = append(out, f)
		}
	}
	return out
}

// quiet are commands that neither run tests nor wait.
var quiet = []string{
	"echo", "true", "exit", "rm", "rimraf", "mkdir", "cp", "tsc", "eslint", "prettier", "cd", "cat", "printf", "biome", "stylelint", "del-cli", "shx", ":",
}

var runners = []string{"vitest", "jest", "mocha", "ava", "tap", "jasmine", "playwright", "cypress", "karma", "wtr", "web-test-runner", "uvu", "tape", "lab"}

func readCommand(f []string, all map[string]string, depth int) script {
	name, args := path.Base(f[0]), f[1:]
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return contains(words, a) })
	}
	switch {
	case contains(quiet, name):
		return script{runs: no, watch: no}
	case contains([]string{"npm", "pnpm", "yarn", "bun"}, name) && len(args) > 0:
		to := args[0]
		if to == "run" && len(args) > 1 {
			to = args[1]
		}
		if name == "bun" && to == "test" && args[0] == "test" {
			return script{runner: "bun", runs: yes, watch: when(has("--watch"))}
		}
		if text, ok := all[to]; ok && depth < 5 {
			return readScript(text, all, depth+1)
		}
		return script{}
	case name == "node" && has("--test"):
		return script{runner: "node", runs: yes, watch: when(has("--watch"))}
	case name == "nodemon":
		return script{watch: yes}
	case contains(runners, name):
		return script{runner: name, runs: yes, watch: watches(name, args)}
	case name == "react-scripts" && has("test"):
		if has("--watchAll=false", "--watch=false") {
			return script{runner: "jest", runs: yes, watch: no}
		}
		return script{runner: "jest", runs: yes}
	case name == "ng" && has("test"):
		if has("--watch=false", "--no-watch") {
			return script{runner: "karma", runs: yes, watch: no}
		}
		return script{runner: "karma", runs: yes}
	}
	return script{}
}

func when(b bool) three {
	if b {
		return yes
	}
	return no
}

// watches: does a runner wait for changes? Some do only at a terminal, and an
// agent may or may not give them one: that cannot be told.
func watches(runner string, args []string) three {
	off := slices.ContainsFunc(args, func(a string) bool {
		return contains([]string{"--watch=false", "--no-watch", "--watchAll=false", "--run", "--single-run", "--ci"}, a)
	})
	on := slices.ContainsFunc(args, func(a string) bool {
		return contains([]string{"--watch", "--watchAll", "--watch=true", "--ui"}, a) || a == "-w" && contains([]string{"vitest", "mocha", "ava"}, runner)
	})
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch {
	case off && !on:
		return no
	case on && !off:
		return yes
	case on:
		return maybe
	case runner == "vitest" && first == "run":
		return no
	case runner == "vitest" && (first == "watch" || first == "dev"), runner == "cypress" && first == "open":
		return yes
	case runner == "vitest":
		return maybe
	case runner == "karma":
		return maybe
	}
	return no
}

// otherTests looks for the usual test commands of projects without package.json.
func (p *probe) otherTests(t *tree, name string) error {
	for _, k := range []struct{ file, kind string }{
		{"justfile", "just"}, {"Justfile", "just"}, {"Makefile", "make"}, {"GNUmakefile", "make"}, {"makefile", "make"},
	} {
		dir, found, err := t.nearest(k.file)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue
		}
		text, err := t.file(path.Join(dir, k.file))
		if err != nil {
			return err
		}
		if hasTarget(text, name) {
			p.put("kind", k.kind)
			p.put("script", name)
			p.put("exists", "yes")
			return nil
		}
	}
	for _, k := range []struct{ file, kind, runner string }{
		{"go.mod", "go", "go test"}, {"Cargo.toml", "cargo", "cargo test"}, {"pytest.ini", "python", "pytest"}, {"tox.ini", "python", "tox"},
		{"pyproject.toml", "python", "pytest"}, {"mix.exs", "elixir", "mix test"}, {"Gemfile", "ruby", ""}, {"pom.xml", "maven", "mvn test"},
	} {
		_, found, err := t.nearest(k.file)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			p.put("kind", k.kind)
			p.put("runner", k.runner)
			return nil
		}
	}
	return fmt.Errorf("%w: no test command", ErrNone)
}

// hasTarget reports whether a makefile or justfile has a target of this name at the
// beginning of a line.
func hasTarget(text, name string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(l, name)
		if !ok || rest == "" {
			continue
		}
		head, after, colon := strings.Cut(rest, ":")
		if colon && !strings.HasPrefix(after, "=") && (head == "" || head[0] == ' ' || head[0] == '\t') {
			return true
		}
	}
	return false
}
