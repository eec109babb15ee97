package probe

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// pythonEnv: is the project's virtual environment the one in use? (row 8)
func (p *probe) pythonEnv() error {
	t, err := p.files()
	if err != nil {
		return err
	}
	dir, found, err := t.nearest("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile", "uv.lock", "poetry.lock", ".venv", "venv")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: no python project", ErrNone)
	}
	venv := ""
	for _, d := range t.up() {
		for _, name := range []string{".venv", "venv", "env"} {
			ok, err := t.has(path.Join(d, name, "pyvenv.cfg"))
			if err != nil {
				return err
			}
			if ok && venv == "" {
				venv = path.Join(d, name)
			}
		}
	}
	p.putBool("venv_exists", venv != "")
	p.put("venv", venv)
	var managers []string
	for _, l := range [...][2]string{{"uv.lock", "uv"}, {"poetry.lock", "poetry"}, {"Pipfile.lock", "pipenv"}, {"pdm.lock", "pdm"}, {"pixi.lock", "pixi"}} {
		ok, err := t.has(path.Join(dir, l[0]))
		if err != nil {
			return err
		}
		if ok {
			managers = append(managers, l[1])
		}
	}
	switch len(managers) {
	case 0:
		if contains(found, "requirements.txt") {
			p.put("manager", "pip")
		}
	case 1:
		p.put("manager", managers[0])
	}
	p.put("lockfiles_of", or(strings.Join(managers, ","), "none"))
	if venv != "" {
		if text, err := t.file(path.Join(venv, "pyvenv.cfg")); err == nil {
			for _, l := range lines(text, "#") {
				if k, v, ok := strings.Cut(l, "="); ok && (strings.TrimSpace(k) == "version" || strings.TrimSpace(k) == "version_info") {
					p.put("venv_python", dotted.FindString(strings.TrimSpace(v)))
				}
			}
		}
	}
	active, set, known := p.env("VIRTUAL_ENV")
	if conda, condaSet, _ := p.env("CONDA_PREFIX"); condaSet && !set {
		active, set = conda, true
	}
	if !known {
		return nil
	}
	python := p.lookPath("python3")
	if python == "" {
		python = p.lookPath("python")
	}
	if python == "" {
		return nil
	}
	own := filepath.Join(p.Dir, filepath.FromSlash(venv))
	switch {
	case venv != "" && below(own, python):
		p.put("python", "project venv")
		p.put("venv_active", "yes")
	case set && active != "" && below(active, python):
		p.put("python", "another venv")
		p.put("venv_active", "no")
	default:
		p.put("python", "no venv")
		if venv != "" { // where there is none, none is missed
			p.put("venv_active", "no")
		}
	}
	return nil
}
