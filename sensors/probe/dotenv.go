package probe

import (
	"path"
	"regexp"
	"strings"
)

// variable is one assignment of a dotenv file.
type variable struct {
	name, value string
	literal     bool // in single quotes: nothing in it is expanded
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// dotenv reads a dotenv file: NAME=value, export, quotes, comments, values over
// several lines in quotes. A name that stands twice has its last value.
func dotenv(text string) []variable {
	var out []variable
	for len(text) > 0 && len(out) < 5000 {
		line, rest, _ := strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || strings.HasPrefix(line, "#") || !envName.MatchString(name) {
			text = rest
			continue
		}
		v := variable{name: name}
		value = strings.TrimSpace(value)
		if value != "" && strings.ContainsRune("\"'`", rune(value[0])) {
			q := value[0]
			all := value[1:] + "\n" + rest
			if end := closing(all, q); end >= 0 {
				v.value, v.literal = all[:end], q == '\''
				if q == '"' {
					v.value = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(v.value)
				}
				_, rest, _ = strings.Cut(all[end:], "\n")
				out, text = append(out, v), rest
				continue
			}
		}
		if i := strings.Index(value, " #"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
		v.value = value
		out, text = append(out, v), rest
	}
	return out
}

func closing(s string, q byte) int {
	for i := 0; i < len(s) && i < 64<<10; i++ {
		if s[i] == '\\' && q == '"' {
			i++
		} else if s[i] == q {
			return i
		}
	}
	return -1
}

// envFile is one dotenv file that stands here.
type envFile struct {
	name string
	vars map[string]variable
}

// envFiles reads those of the names that are there, strongest first.
func (t *tree) envFiles(dir string, names ...string) ([]envFile, error) {
	var out []envFile
	for _, n := range names {
		text, err := t.file(path.Join(dir, n))
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := envFile{name: path.Join(dir, n), vars: map[string]variable{}}
		for _, v := range dotenv(text) {
			f.vars[v.name] = v
		}
		out = append(out, f)
	}
	return out, nil
}

// setting is a variable's value and where it comes from.
type setting struct {
	value, source string
	set           bool
	unknown       string // why it cannot be told
}

// setting looks a name up as a program does that loads dotenv files and lets its
// own environment win.
func (p *probe) setting(name string, files []envFile) setting {
	v, set, known := p.env(name)
	if !known {
		return setting{unknown: "the agent's environment is not known"}
	}
	if set {
		return setting{value: v, source: "environment", set: true}
	}
	for _, f := range files {
		if v, ok := f.vars[name]; ok {
			value, ok := p.expand(v, files, 0)
			if !ok { // a password may hold what looks like a reference; who reads the value refuses one elsewhere
				value = v.value
			}
			return setting{value: value, source: f.name, set: true}
		}
	}
	return setting{}
}

var reference = regexp.MustCompile(`\$\{?[A-Za-z_][A-Za-z0-9_]*[^}]*\}?`)

// expand puts ${NAME} in; any other form of reference cannot be told. Programs
// differ in whether they expand at all; ok is false when a reference stays, and a
// value that still holds one is not told.
func (p *probe) expand(v variable, files []envFile, depth int) (string, bool) {
	if v.literal || !strings.Contains(v.value, "$") {
		return v.value, true
	}
	if depth > 5 {
		return "", false
	}
	ok := true
	out := reference.ReplaceAllStringFunc(v.value, func(ref string) string {
		name := strings.Trim(ref, "${}")
		if !envName.MatchString(name) || ref != "${"+name+"}" && ref != "$"+name {
			ok = false
			return ref
		}
		if value, set, _ := p.env(name); set {
			return value
		}
		for _, f := range files {
			if w, found := f.vars[name]; found && name != v.name {
				value, good := p.expand(w, files, depth+1)
				ok = ok && good
				return value
			}
		}
		ok = false
		return ref
	})
	return out, ok
}

// envNames: is a variable set, and which file would win? Names only (row 14).
func (p *probe) envNames() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	name := p.param("name")
	dir, _, err := t.nearest(".env", ".env.local", "package.json", "pyproject.toml", "Gemfile", "composer.json")
	if err != nil {
		return err
	}
	mode, err := p.mode()
	if err != nil {
		return err
	}
	names := []string{".env." + mode + ".local", ".env.local", ".env." + mode, ".env"}
	files, err := t.envFiles(or(dir, "."), names...)
	if err != nil {
		return err
	}
	var have, in []string
	for _, f := range files {
		have = append(have, f.name)
		if _, ok := f.vars[name]; ok && name != "" {
			in = append(in, f.name)
		}
	}
	p.put("files", or(strings.Join(have, ","), "none"))
	if name == "" {
		return nil
	}
	p.put("name", name)
	p.put("defined_in", or(strings.Join(in, ","), "none"))
	_, set, known := p.env(name)
	if known {
		p.putBool("in_environment", set)
	}
	switch {
	case set:
		p.put("defined", "yes")
		p.put("source", "environment")
	case len(in) > 0:
		p.put("defined", "yes")
		// Next, Vite and Rails read them all, plain dotenv only .env.
		if known && (len(in) == 1 && path.Base(in[0]) == ".env" || p.layered(t)) {
			p.put("source", in[0])
		}
	case known:
		p.put("defined", "no")
	}
	if len(in) > 0 {
		for _, f := range files {
			if f.name == in[0] {
				p.putBool("empty", strings.TrimSpace(f.vars[name].value) == "")
			}
		}
	}
	return nil
}

// mode is the agent's NODE_ENV or RAILS_ENV, development where none is set.
func (p *probe) mode() (string, error) {
	for _, n := range []string{"NODE_ENV", "RAILS_ENV", "APP_ENV"} {
		if v, set, _ := p.env(n); set && v != "" && envName.MatchString(v) {
			return v, nil
		}
	}
	return "development", nil
}

// layered reports whether the project's framework reads .env.local and the like.
func (p *probe) layered(t *tree) bool {
	m, err := t.manifest()
	return err == nil && m != nil && (m.depends("next") || m.depends("vite") || m.depends("react-scripts") || m.depends("@rsbuild/core") || m.depends("nuxt"))
}
