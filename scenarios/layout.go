package scenarios

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Values fill the placeholders of one run.
type Values struct {
	Dir     string         // {{dir}}: the project directory
	Nonce   string         // {{nonce}}: different in each run
	Gettier string         // {{gettier}}: path of the running gettier binary
	Ports   map[string]int // {{port.NAME}}
	Var     string         // name of the twin's variable
	Setting string         // {{var.NAME}}: its value in this run
}

// Compiled when first used: every fixture, guard and command is a start of this
// program and uses few of its patterns.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{(dir|nonce|gettier|port\.[a-z][a-z0-9_]*|var\.[a-z][a-z0-9_]*)\}\}`)
})

// Expand fills the placeholders that belong to a scenario and leaves every other
// {{word}} alone: sensors.yaml has templates of its own.
func (v Values) Expand(text string) (string, error) {
	var missing string
	out := placeholder().ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-2]
		switch {
		case name == "dir":
			return v.Dir
		case name == "nonce":
			return v.Nonce
		case name == "gettier":
			return v.Gettier
		case strings.HasPrefix(name, "port."):
			if p, ok := v.Ports[name[len("port."):]]; ok {
				return fmt.Sprint(p)
			}
		case name == "var."+v.Var:
			return v.Setting
		}
		missing = m
		return m
	})
	if missing != "" {
		return "", fmt.Errorf("expand placeholder %s: nothing of that name", missing)
	}
	return out, nil
}

// Env is what scripts are given: GETTIER, DIR, NONCE and PORT_<NAME>.
func (v Values) Env() []string {
	out := []string{"GETTIER=" + v.Gettier, "DIR=" + v.Dir, "NONCE=" + v.Nonce}
	for n, p := range v.Ports {
		out = append(out, fmt.Sprintf("PORT_%s=%d", strings.ToUpper(n), p))
	}
	slices.Sort(out)
	return out
}

// PortNames are the ports that the scenario's files mention, sorted.
func (s *Scenario) PortNames() ([]string, error) {
	files, err := list(s.fsys)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		if f != "scenario.yaml" && f != "sensors.yaml" && !strings.HasSuffix(f, tmpl) {
			continue
		}
		data, err := readCapped(s.fsys, f, maxFileBytes)
		if err != nil {
			return nil, err
		}
		for _, m := range placeholder().FindAllSubmatch(data, -1) {
			if n, ok := bytes.CutPrefix(m[1], []byte("port.")); ok && !slices.Contains(out, string(n)) {
				out = append(out, string(n))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// tmpl marks the fixture's files whose placeholders are filled when laid out.
const tmpl = ".tmpl"

// LayOut writes the project into v.Dir (the fixture, and the registry at
// .gettier/sensors.yaml) and the scripts into scripts, a directory beside it
// that no agent works in: accept, probe and fixes give the trap away.
func (s *Scenario) LayOut(v Values, scripts string) error {
	files, err := list(s.fsys)
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := readCapped(s.fsys, f, maxFileBytes)
		if err != nil {
			return err
		}
		var to string
		rel, inFixture := strings.CutPrefix(f, "fixture/")
		switch {
		case inFixture:
			if cut, ok := strings.CutSuffix(rel, tmpl); ok {
				rel = cut
				text, err := v.Expand(string(data))
				if err != nil {
					return fmt.Errorf("lay out %s: %w", f, err)
				}
				data = []byte(text)
			}
			to = filepath.Join(v.Dir, filepath.FromSlash(rel))
		case f == "sensors.yaml":
			text, err := v.Expand(string(data))
			if err != nil {
				return fmt.Errorf("lay out %s: %w", f, err)
			}
			data, to = []byte(text), s.SensorsFile(v.Dir)
		case strings.HasSuffix(f, ".sh"):
			to = filepath.Join(scripts, filepath.FromSlash(f))
		default:
			continue
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(to, ".sh") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("lay out %s: %w", f, err)
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			return fmt.Errorf("lay out %s: %w", f, err)
		}
	}
	return nil
}

// SensorsFile is where the registry stands in a project directory.
func (s *Scenario) SensorsFile(dir string) string {
	return filepath.Join(dir, ".gettier", "sensors.yaml")
}
