package probe

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// lookPath finds a program on the agent's PATH, links resolved.
func (p *probe) lookPath(name string) string {
	list, set, known := p.env("PATH")
	if !known || !set {
		return ""
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			return "" // what it is depends on where the command stands
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		return file
	}
	return ""
}

func resolved(file string) string {
	if file == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	return real
}

// shim reports whether a program of this path only chooses another one.
func shim(file string) bool {
	for _, s := range []string{"/shims/", "/.volta/", "/.proto/", "/corepack/"} {
		if strings.Contains(file, s) {
			return true
		}
	}
	return false
}

var dotted = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}`)

// runtimeVersions: is the runtime that the agent has the one of the project?
// (row 7) No program is asked: where its version stands is read.
func (p *probe) runtimeVersions() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	for _, f := range []func(*tree) error{p.nodeVersion, p.pythonVersion, p.goVersion} {
		if err := f(t); err != nil {
			return err
		}
	}
	if p.out.Len() == 0 {
		return fmt.Errorf("%w: no runtime", ErrNone)
	}
	return nil
}

// wanted finds the version that a file on the way up pins; the nearest counts.
func (t *tree) wanted(tool []string, files ...string) (version, from string, err error) {
	for _, dir := range t.up() {
		for _, name := range append(files, ".tool-versions") {
			text, err := t.file(path.Join(dir, name))
			if absent(err) {
				continue
			}
			if err != nil {
				return "", "", err
			}
			for _, l := range lines(text, "#") {
				if name == ".tool-versions" {
					f := strings.Fields(l)
					if len(f) < 2 || !contains(tool, f[0]) {
						continue
					}
					l = f[1]
				}
				return strings.TrimPrefix(l, "v"), path.Join(dir, name), nil
			}
		}
	}
	return "", "", nil
}

func (p *probe) versions(tool, wanted, from, active, activeFrom string) {
	p.put(tool+"_active", active)
	p.put(tool+"_active_from", activeFrom)
	if !dotted.MatchString(wanted) || dotted.FindString(wanted) != wanted {
		return // lts/iron, system: not a version
	}
	p.put(tool+"_wanted", wanted)
	p.put(tool+"_wanted_from", from)
	if active != "" && strings.Count(active, ".") >= strings.Count(wanted, ".") {
		p.putBool(tool+"_matches", active == wanted || strings.HasPrefix(active, wanted+"."))
	}
}

var (
	nodeDir   = regexp.MustCompile(`/(?:node-)?v?([0-9]+\.[0-9]+\.[0-9]+)(?:-[a-z0-9-]+)?(?:/installation)?/bin/node$`)
	nodeMacro = regexp.MustCompile(`(?m)^#define NODE_(MAJOR|MINOR|PATCH)_VERSION ([0-9]+)$`)
)

func (p *probe) nodeVersion(t *tree) error {
	wanted, from, err := t.wanted([]string{"nodejs", "node"}, ".nvmrc", ".node-version")
	if err != nil {
		return err
	}
	m, err := t.manifest()
	if err != nil {
		return err
	}
	if wanted == "" && m != nil && m.Volta.Node != "" {
		wanted, from = m.Volta.Node, "volta in package.json"
	}
	if wanted == "" && m == nil {
		return nil
	}
	file := p.lookPath("node")
	active, activeFrom := p.nodeAt(file)
	p.versions("node", wanted, from, active, activeFrom)
	if m != nil && m.Engines["node"] != "" {
		p.put("node_range", m.Engines["node"])
		if active != "" {
			if ok, known := inRange(active, m.Engines["node"]); known {
				p.putBool("node_in_range", ok)
			}
		}
	}
	return nil
}

// nodeAt reads a node's version from its path, its headers, or the system's list
// of packages.
func (p *probe) nodeAt(file string) (version, from string) {
	real := resolved(file)
	if real == "" || shim(file) || shim(real) {
		return "", ""
	}
	if m := nodeDir.FindStringSubmatch(real); m != nil {
		return m[1], real
	}
	prefix := filepath.Dir(filepath.Dir(real))
	for _, dir := range []string{"node", "nodejs/src"} {
		text, err := p.outside(filepath.Join(prefix, "include", dir, "node_version.h"))
		if err != nil {
			continue
		}
		var v [3]string
		for _, m := range nodeMacro.FindAllStringSubmatch(text, -1) {
			v[map[string]int{"MAJOR": 0, "MINOR": 1, "PATCH": 2}[m[1]]] = m[2]
		}
		if v[0] != "" && v[1] != "" && v[2] != "" {
			return strings.Join(v[:], "."), real
		}
	}
	if prefix == "/usr" {
		return dotted.FindString(p.debian("nodejs")), real
	}
	return "", ""
}

// debian is the version of an installed package, "" where there is none.
func (p *probe) debian(name string) string {
	text, err := p.outside("/var/lib/dpkg/status")
	if err != nil {
		return ""
	}
	i := strings.Index("\n"+text, "\nPackage: "+name+"\n")
	if i < 0 {
		return ""
	}
	stanza, _, _ := strings.Cut(text[i:], "\n\n")
	if !strings.Contains(stanza, "\nStatus: install ok installed\n") {
		return ""
	}
	_, v, _ := strings.Cut(stanza, "\nVersion: ")
	v, _, _ = strings.Cut(v, "\n")
	if _, after, epoch := strings.Cut(v, ":"); epoch {
		v = after
	}
	return v
}

var (
	pythonName   = regexp.MustCompile(`/python([23]\.[0-9]+)$`)
	pythonDir    = regexp.MustCompile(`/versions/([0-9]+\.[0-9]+\.[0-9]+)/bin/python[0-9.]*$`)
	uvDir        = regexp.MustCompile(`/cpython-([0-9]+\.[0-9]+\.[0-9]+)-[^/]*/bin/python[0-9.]*$`)
	requiresPy   = regexp.MustCompile(`(?m)^\s*requires-python\s*=\s*"([^"]+)"`)
	pythonDotted = regexp.MustCompile(`^[23]\.[0-9]+(\.[0-9]+)?$`)
)

func (p *probe) pythonVersion(t *tree) error {
	wanted, from, err := t.wanted([]string{"python"}, ".python-version")
	if err != nil {
		return err
	}
	dir, found, err := t.nearest("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile")
	if err != nil {
		return err
	}
	if wanted == "" && len(found) == 0 {
		return nil
	}
	active, activeFrom := p.pythonAt(t)
	p.versions("python", wanted, from, active, activeFrom)
	if !contains(found, "pyproject.toml") {
		return nil
	}
	text, err := t.file(path.Join(dir, "pyproject.toml"))
	if err != nil {
		return err
	}
	if m := requiresPy.FindStringSubmatch(text); m != nil {
		p.put("python_range", m[1])
		if active != "" {
			if ok, known := inRange(active, strings.ReplaceAll(m[1], ",", " ")); known {
				p.putBool("python_in_range", ok)
			}
		}
	}
	return nil
}

// pythonAt reads the version of the agent's python3 from its path; a pyenv shim
// is followed as pyenv does.
func (p *probe) pythonAt(t *tree) (version, from string) {
	file := p.lookPath("python3")
	if file == "" {
		return "", ""
	}
	if strings.HasSuffix(filepath.Dir(file), "/.pyenv/shims") {
		v, set, _ := p.env("PYENV_VERSION")
		if !set {
			v, _, _ = t.wantedPyenv()
		}
		if v == "" {
			if text, err := p.outside(filepath.Join(filepath.Dir(filepath.Dir(file)), "version")); err == nil {
				v = strings.TrimSpace(text)
			}
		}
		if pythonDotted.MatchString(v) {
			return v, "pyenv"
		}
		return "", ""
	}
	real := resolved(file)
	for _, re := range []*regexp.Regexp{pythonDir, uvDir, pythonName} {
		if m := re.FindStringSubmatch(real); m != nil && !shim(real) {
			return m[1], real
		}
	}
	return "", ""
}

func (t *tree) wantedPyenv() (string, string, error) { return t.wanted(nil, ".python-version") }

func (p *probe) goVersion(t *tree) error {
	dir, found, err := t.nearest("go.mod")
	if err != nil || len(found) == 0 {
		return err
	}
	text, err := t.file(path.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	mod, err := modfile.ParseLax("go.mod", []byte(text), nil)
	if err != nil {
		return fmt.Errorf("read go.mod: %w", err)
	}
	if mod.Module != nil {
		p.put("go_module", mod.Module.Mod.Path)
	}
	wanted := ""
	if mod.Go != nil {
		wanted = mod.Go.Version
	}
	p.put("go_wanted", wanted)
	p.put("go_wanted_from", path.Join(dir, "go.mod"))
	if mod.Toolchain != nil {
		p.put("go_toolchain", strings.TrimPrefix(mod.Toolchain.Name, "go"))
	}
	real := resolved(p.lookPath("go"))
	if real == "" {
		return nil
	}
	version, err := p.outside(filepath.Join(filepath.Dir(filepath.Dir(real)), "VERSION"))
	if err != nil {
		return nil //nolint:nilerr // a go that does not say its version: nothing is told
	}
	active := dotted.FindString(strings.TrimPrefix(version, "go"))
	p.put("go_active", active)
	if wanted == "" || active == "" {
		return nil
	}
	// An older go fetches the wanted one by itself, unless it is told not to.
	if c, ok := compareVersions(active, dotted.FindString(wanted)); ok && c >= 0 {
		p.put("go_matches", "yes")
	} else if v, set, _ := p.env("GOTOOLCHAIN"); ok && set && v == "local" {
		p.put("go_matches", "no")
	}
	return nil
}

// compareVersions compares numbers part by part, missing ones as zero.
func compareVersions(a, b string) (int, bool) {
	x, ok := numbers(a)
	y, ok2 := numbers(b)
	if !ok || !ok2 {
		return 0, false
	}
	for i := range 3 {
		if x[i] != y[i] {
			if x[i] < y[i] {
				return -1, true
			}
			return 1, true
		}
	}
	return 0, true
}

func numbers(v string) ([3]int, bool) {
	var out [3]int
	parts := strings.Split(v, ".")
	if len(parts) > 3 {
		return out, false
	}
	for i, s := range parts {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

var comparator = regexp.MustCompile(`^(>=|<=|>|<|\^|~=|~|==|=|!=)?\s*v?([0-9xX*]+(?:\.[0-9xX*]+){0,2})$`)

// inRange reports whether a version lies in a range of npm or of PEP 440; known
// is false for a form that is not read here, or a version too short to tell.
func inRange(version, expr string) (in, known bool) {
	for alternative := range strings.SplitSeq(expr, "||") {
		ok, known := inAll(version, alternative)
		if !known {
			return false, false
		}
		in = in || ok
	}
	return in, true
}

func inAll(version, expr string) (in, known bool) {
	expr = regexp.MustCompile(`(>=|<=|>|<|\^|~=|~|==|=|!=)\s+`).ReplaceAllString(strings.TrimSpace(expr), "$1")
	if strings.Contains(expr, " - ") {
		return false, false
	}
	in = true
	for f := range strings.FieldsSeq(expr) {
		m := comparator.FindStringSubmatch(f)
		if m == nil {
			return false, false
		}
		ok, known := compares(version, m[1], m[2])
		if !known {
			return false, false
		}
		in = in && ok
	}
	return in, true
}

// compares holds one comparator against a version. A part of x or nothing is
// any.
func compares(version, op, bound string) (ok, known bool) {
	var want []int
	for s := range strings.SplitSeq(bound, ".") {
		n, err := strconv.Atoi(s)
		if err != nil {
			break // x or *
		}
		want = append(want, n)
	}
	if len(want) == 0 {
		return true, true
	}
	have := strings.Split(version, ".")
	if len(have) < len(want) {
		return false, false
	}
	v, good := numbers(strings.Join(have, "."))
	if !good {
		return false, false
	}
	var low [3]int
	copy(low[:], want)
	high := low // the first version beyond
	bump := func(i int) {
		high = low
		high[i]++
		for j := i + 1; j < 3; j++ {
			high[j] = 0
		}
	}
	less := func(a, b [3]int) bool {
		for i := range 3 {
			if a[i] != b[i] {
				return a[i] < b[i]
			}
		}
		return false
	}
	switch op {
	case ">=":
		return !less(v, low), true
	case "<":
		return less(v, low), true
	case ">":
		bump(len(want) - 1)
		return !less(v, high), true
	case "<=":
		bump(len(want) - 1)
		return less(v, high), true
	case "^":
		i := 0
		for i < len(want)-1 && want[i] == 0 {
			i++
		}
		bump(i)
	case "~":
		bump(min(len(want)-1, 1))
	case "~=":
		bump(max(len(want)-2, 0))
	case "!=":
		bump(len(want) - 1)
		return less(v, low) || !less(v, high), true
	default:
		bump(len(want) - 1)
	}
	return !less(v, low) && less(v, high), true
}
