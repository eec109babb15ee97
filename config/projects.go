package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// WithProjects returns c with another list of projects, in the file's values too.
func (c *Config) WithProjects(ps []Project) *Config {
	n := *c
	n.Projects = slices.Clone(ps)
	n.file = maps.Clone(c.file)
	if n.file == nil {
		n.file = map[string]any{}
	}
	n.file["projects"] = n.Projects
	return &n
}

// SetProjects rewrites the projects of the file at path and nothing else: every
// other line stays as it is, comments included. A file that is not there is
// made. The result is read back before it replaces the file.
func SetProjects(path string, ps []Project) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		old = []byte("version: 1\n")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make configuration directory: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	data := replaceProjects(string(old), ps)
	c, _, err := Parse(path, []byte(data), nil, nil)
	if err != nil {
		return fmt.Errorf("write projects: %w", err)
	}
	if !slices.Equal(c.Projects, ps) {
		return fmt.Errorf("write projects: %s has a form of projects that cannot be edited here; set it by hand", path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link to a file in a dotfiles repository stays one
	}
	return replaceFile(path, []byte(data))
}

// replaceProjects puts the block of ps where the old one stood, else at the end.
func replaceProjects(text string, ps []Project) string {
	var b strings.Builder
	if len(ps) > 0 {
		b.WriteString("projects:\n")
		for _, p := range ps {
			fmt.Fprintf(&b, "  - name: %s\n    root: %s\n", strconv.Quote(p.Name), strconv.Quote(p.Root))
		}
	}
	lines := strings.SplitAfter(text, "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "projects:") })
	if from < 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + b.String()
	}
	to := from + 1
	for to < len(lines) && (lines[to] != "" && strings.ContainsRune(" \t-", rune(lines[to][0]))) {
		to++
	}
	return strings.Join(lines[:from], "") + b.String() + strings.Join(lines[to:], "")
}
