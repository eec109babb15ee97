package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// compose is what a compose file says.
type compose struct {
	file, dir string
	name      string // "" when it cannot be told
	services  []string
	whole     bool // services may be all there are
}

var composeFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// notInNames is what compose takes out of a directory's name.
var notInNames = regexp.MustCompile(`[^a-z0-9_-]`)

// compose reads the nearest compose file and the one that overrides it; nil when
// there is none.
func (p *probe) compose() (*compose, error) {
	t, err := p.files()
	if err != nil {
		return nil, err
	}
	for _, n := range []string{"COMPOSE_FILE", "COMPOSE_PROJECT_DIRECTORY"} {
		if _, set, _ := p.env(n); set {
			return nil, fmt.Errorf("%s is set, so other files count", n)
		}
	}
	dir, found, err := t.nearest(composeFiles...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	c := &compose{file: path.Join(dir, found[0]), dir: dir, whole: true}
	stem := strings.TrimSuffix(found[0], path.Ext(found[0]))
	named := ""
	for i, name := range []string{found[0], stem + ".override.yaml", stem + ".override.yml"} {
		text, err := t.file(path.Join(dir, name))
		if i > 0 && absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		doc, err := parseYAML(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		named = or(doc.at("name").text(), named)
		if doc.at("include").n != nil || doc.at("extends").n != nil {
			c.whole = false
		}
		for _, s := range doc.at("services").keys() {
			if s == "<<" {
				c.whole = false
			} else if s != "" && !contains(c.services, s) {
				c.services = append(c.services, s)
			}
		}
	}
	slices.Sort(c.services)
	files, err := t.envFiles(dir, ".env")
	if err != nil {
		return nil, err
	}
	s := p.setting("COMPOSE_PROJECT_NAME", files)
	switch {
	case s.unknown != "":
	case s.set && strings.Contains(s.value, "$"):
	case s.set && s.value != "":
		c.name = s.value
	case strings.Contains(named, "$"):
	case named != "":
		c.name = named
	default:
		base := filepath.Base(filepath.Join(p.Dir, filepath.FromSlash(dir)))
		c.name = strings.TrimLeft(notInNames.ReplaceAllString(strings.ToLower(base), ""), "_-")
	}
	if len(files) > 0 {
		if _, ok := files[0].vars["COMPOSE_FILE"]; ok {
			return nil, fmt.Errorf("COMPOSE_FILE is set in .env, so other files count")
		}
	}
	return c, nil
}

// composeProject: which project, and has it this service? (row 19)
func (p *probe) composeProject() error {
	c, err := p.compose()
	if err != nil {
		return err
	}
	if c == nil {
		return fmt.Errorf("%w: no compose file", ErrNone)
	}
	p.put("file", c.file)
	p.put("project", c.name)
	p.putBool("in_cwd", c.dir == p.tree.cwd)
	if c.whole {
		p.put("services", or(strings.Join(c.services, ","), "none"))
		p.putInt("count", len(c.services))
	}
	if s := p.param("service"); s != "" {
		p.put("service", s)
		if ok := contains(c.services, s); ok || c.whole {
			p.putBool("has_service", ok)
		}
	}
	return nil
}
