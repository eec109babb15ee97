package symbols

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// libraries lists where the agent's python imports from, in its order: the
// project, the library, site-packages. ok is false when that cannot be told.
func (s *search) libraries() (own []dir, installed []dir, ok bool) {
	dirs, err := s.up()
	if err != nil || s.w.Env == nil {
		return nil, nil, false
	}
	if s.env("PYTHONPATH") != "" || s.env("PYTHONHOME") != "" {
		return nil, nil, false
	}
	marked := false
	for _, d := range dirs {
		for _, f := range []string{"pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile", "uv.lock", "poetry.lock"} {
			marked = marked || d.has(f)
		}
		own = append(own, d)
		if d.isDir("src") {
			own = append(own, d.at("src"))
		}
	}
	if !marked {
		return nil, nil, false
	}
	for _, d := range dirs { // the project's own environment, used or not
		for _, venv := range []string{".venv", "venv"} {
			if !d.has(path.Join(venv, "pyvenv.cfg")) {
				continue
			}
			lib := d.at(venv).at("lib")
			entries, err := lib.list()
			if err != nil {
				continue
			}
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "python") && lib.isDir(path.Join(e.Name(), "site-packages")) {
					sp := lib.at(e.Name()).at("site-packages")
					sp.name = sp.path
					return own, append(installed, sp), true
				}
			}
		}
	}
	bin := s.program("python3")
	m := regexp.MustCompile(`^(.*)/bin/python(3\.[0-9]+)$`).FindStringSubmatch(bin)
	if m == nil {
		return own, nil, true
	}
	for _, l := range []string{"lib/python" + m[2] + "/site-packages", "local/lib/python" + m[2] + "/dist-packages", "lib/python3/dist-packages", "lib/python" + m[2]} {
		if d, err := s.outside(filepath.Join(m[1], filepath.FromSlash(l))); err == nil {
			installed = append(installed, d)
		}
	}
	return own, installed, true
}

var (
	pyName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	pyDef    = regexp.MustCompile(`(?m)^(?:async\s+)?(?:def|class)\s+([A-Za-z_]\w*)|^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=[^=]`)
	pyImport = regexp.MustCompile(`(?m)^\s*(?:from\s+[\w.]+\s+)?import\s+(?:\(([^)]*)\)|([^\n\\]+))`)
	pyStar   = regexp.MustCompile(`(?m)^\s*from\s+([\w.]+)\s+import\s+\*`)
	// pyMakes are ways to have names that no line of the file says.
	pyMakes = regexp.MustCompile(`__getattr__|\bglobals\(\)|\bsetattr\(|\bexec\(|\bsys\.modules\b|\b__path__\b|importlib|\b__dict__\b|lazy|\bvars\(|\blocals\(\)|\b__import__\(|\b_convert_?\(|\bglobal_enum\b|\bpkgutil\b|\bctypes\b`)
)

// python resolves module.name, package.module.Class.method. Absent is told of
// the first name behind the module only, for a module of plain text that makes
// no names up.
func (s *search) python(symbol string) Answer {
	parts := strings.Split(symbol, ".")
	for _, p := range parts {
		if !pyName.MatchString(p) {
			return Answer{Why: "no name of a module"}
		}
	}
	if len(parts) < 2 || len(parts) > 12 {
		return Answer{Why: "no name of a module"}
	}
	own, installed, ok := s.libraries()
	if !ok {
		return Answer{Why: "no python project here"}
	}
	for i, lib := range append(own, installed...) {
		if !lib.isDir(parts[0]) && !lib.has(parts[0]+".py") {
			continue
		}
		a := Answer{Package: parts[0], Place: path.Join(lib.name, parts[0])}
		if i >= len(own) {
			a.Version = distVersion(lib, parts[0])
		}
		at, names := lib, parts
		for len(names) > 0 && at.isDir(names[0]) {
			at, names = at.at(names[0]), names[1:]
		}
		file := "__init__.py"
		if len(names) > 0 && at.has(names[0]+".py") {
			file, names = names[0]+".py", names[1:]
		}
		if len(names) == 0 {
			a.Presence, a.Name = Exists, symbol
			return a
		}
		a.Name = strings.Join(names, ".")
		a.Place = path.Join(lib.name, at.path, file)
		if i < len(own) || lib.name == lib.path {
			a.Place = path.Join(at.path, file)
		}
		entries, err := at.list()
		if err != nil {
			a.Why = "the package cannot be read"
			return a
		}
		for _, e := range entries { // a compiled module of that name
			if strings.HasPrefix(e.Name(), names[0]+".") {
				a.Why = "it is compiled"
				return a
			}
		}
		p := &pyModule{done: map[string]bool{}}
		a.Presence, a.Why = p.look(at, file, names[0])
		if a.Presence == Absent {
			a.Nearest = nearest(names[0], p.names)
			if i >= len(own) {
				why, files := s.doubt("python", parts[0], names[0])
				if why == "" {
					binds, imports := files.bindsPython(parts[0])
					switch {
					case binds:
						why = "the project calls something else so"
					case !imports && at.root != s.top && len(names) == len(parts)-1:
						why = "the project does not import it" // a variable may have the name of a module that comes with python
					}
				}
				if why != "" {
					a.Presence, a.Nearest, a.Why = Unknown, "", why
				}
			}
		}
		if a.Presence == Exists && len(names) > 1 {
			a.Presence, a.Why = Unknown, "members are not followed"
		}
		return a
	}
	return Answer{Why: "no module " + parts[0] + " is installed here"}
}

// distVersion reads the version of a distribution whose directory bears the
// module's name; "" when it has another one.
func distVersion(lib dir, module string) string {
	entries, err := lib.list()
	if err != nil {
		return ""
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".dist-info")
		if !ok {
			continue
		}
		dist, version, ok := strings.Cut(name, "-")
		if ok && strings.EqualFold(strings.ReplaceAll(dist, "-", "_"), module) {
			return version
		}
	}
	return ""
}

type pyModule struct {
	done  map[string]bool
	names []string
}

// look reads a module and those whose names it takes with a star.
func (p *pyModule) look(at dir, file, name string) (Presence, string) {
	key := path.Join(at.path, file)
	if p.done[key] {
		return Absent, ""
	}
	if len(p.done) > 60 {
		return Unknown, "it takes names of too many modules"
	}
	p.done[key] = true
	text, err := at.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Unknown, "a package without __init__.py"
	}
	if err != nil {
		return Unknown, "the module cannot be read"
	}
	for _, m := range pyDef.FindAllStringSubmatch(text, 5000) {
		p.names = append(p.names, m[1]+m[2])
		if m[1]+m[2] == name {
			return Exists, ""
		}
	}
	for _, m := range pyImport.FindAllStringSubmatch(text, 5000) {
		for part := range strings.SplitSeq(m[1]+m[2], ",") {
			part, _, _ = strings.Cut(strings.TrimSpace(part), "#")
			f := strings.Fields(part)
			if len(f) == 0 || !pyName.MatchString(f[len(f)-1]) {
				continue
			}
			p.names = append(p.names, f[len(f)-1])
			if f[len(f)-1] == name {
				return Exists, ""
			}
		}
	}
	switch {
	case hasWord(text, name):
		return Unknown, "the module says the word, whether it defines it is not certain"
	case pyMakes.MatchString(text):
		return Unknown, "the module makes names up when it runs"
	case strings.HasPrefix(name, "__"):
		return Unknown, "every module has names like that"
	}
	for _, m := range pyStar.FindAllStringSubmatch(text, 200) {
		rel, ok := strings.CutPrefix(m[1], ".")
		if !ok || strings.HasPrefix(rel, ".") {
			return Unknown, "it takes all names of another module"
		}
		sub, f := at, strings.ReplaceAll(rel, ".", "/")+".py"
		if at.isDir(strings.ReplaceAll(rel, ".", "/")) {
			sub, f = at.at(strings.ReplaceAll(rel, ".", "/")), "__init__.py"
		}
		if got, why := p.look(sub, f, name); got != Absent {
			return got, why
		}
	}
	return Absent, ""
}
