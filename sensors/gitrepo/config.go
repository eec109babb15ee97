package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Config is a configuration file: full names, section and variable in lower
// case, with their values in order.
type Config struct {
	values map[string][]string
	order  []string
	// Includes says that other files were named, which are not read.
	Includes bool
}

// Config reads the repository's own configuration and that of its work tree.
// Files that it includes, the user's and the system's are not read.
func (r *Repo) Config() (*Config, error) {
	c := &Config{values: map[string][]string{}}
	for i, path := range []string{filepath.Join(r.Common, "config"), filepath.Join(r.Dir, "config.worktree")} {
		b, err := readFile(path, maxSmall)
		if i > 0 && (err != nil || !isTrue(c.Get("extensions.worktreeconfig"))) {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read git configuration: %w", err)
		}
		c.parse(string(b))
	}
	return c, nil
}

// ParseConfig reads the text of a configuration file.
func ParseConfig(text string) *Config {
	c := &Config{values: map[string][]string{}}
	c.parse(text)
	return c
}

// Get is the last value of a variable, "" for none. Section and variable are in
// lower case, a subsection as it is spelled: branch.Main.remote.
func (c *Config) Get(name string) string {
	if vs := c.values[name]; len(vs) > 0 {
		return vs[len(vs)-1]
	}
	return ""
}

// All is every value of a variable.
func (c *Config) All(name string) []string { return c.values[name] }

// Sections lists the subsections of a section in order.
func (c *Config) Sections(section string) []string {
	var out []string
	seen := map[string]bool{}
	for _, name := range c.order {
		rest, ok := strings.CutPrefix(name, section+".")
		i := strings.LastIndexByte(rest, '.')
		if !ok || i < 0 || seen[rest[:i]] {
			continue
		}
		seen[rest[:i]] = true
		out = append(out, rest[:i])
	}
	return out
}

func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// maxValues bounds how many variables one file may set.
const maxValues = 20_000

func (c *Config) parse(text string) {
	section := ""
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "[") {
			end := sectionEnd(line)
			if end < 0 {
				section = ""
				continue
			}
			section = sectionName(line[1:end])
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' || section == "" {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) && len(line) < maxSmall {
			i++
			line = line[:len(line)-1] + strings.TrimRight(lines[i], "\r")
		}
		name, value, assigned := strings.Cut(line, "=")
		name = section + "." + strings.ToLower(strings.TrimSpace(name))
		if !assigned {
			value = "true"
		}
		if len(c.order) >= maxValues {
			return
		}
		if strings.HasPrefix(name, "include.") || strings.HasPrefix(name, "includeif.") {
			c.Includes = true
		}
		c.values[name] = append(c.values[name], configValue(value))
		c.order = append(c.order, name)
	}
}

func sectionEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ']':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

func sectionName(s string) string {
	name, sub, ok := strings.Cut(s, `"`)
	name = strings.ToLower(strings.TrimSpace(name))
	if !ok {
		return name
	}
	sub = strings.TrimSuffix(strings.TrimSpace(sub), `"`)
	return name + "." + strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(sub)
}

// configValue takes quotes, escapes and comments out.
func configValue(s string) string {
	var b strings.Builder
	quoted := false
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(s[i])
			}
		case ch == '"':
			quoted = !quoted
		case !quoted && (ch == '#' || ch == ';'):
			return strings.TrimRight(b.String(), " \t")
		default:
			b.WriteByte(ch)
		}
	}
	return b.String()
}
