package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetProjects(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for i, d := range []*string{&a, &b} {
		real, err := filepath.EvalSymlinks(*d)
		if err != nil {
			t.Fatal(i, err)
		}
		*d = real
	}
	one, two := Project{"shop", a}, Project{"api.v2", b}
	for name, tc := range map[string]struct{ before, after string }{
		"nothing there":        {"", "version: 1\nprojects:\n"},
		"other keys stay":      {"version: 1 # format\n\n# how it asks\ngate:\n  mode: watch\n", "# how it asks\ngate:\n  mode: watch\nprojects:\n"},
		"replaced in place":    {"version: 1\nprojects:\n  - name: old\n    root: /\n# after\ngate:\n  mode: ask\n", "# after\ngate:\n  mode: ask\n"},
		"dashes at the edge":   {"version: 1\nprojects:\n- name: old\n  root: /\ngate:\n  mode: ask\n", "gate:\n  mode: ask\n"},
		"no newline at eof":    {"version: 1\ngate: {mode: ask}", "gate: {mode: ask}\nprojects:\n"},
		"flow on the key line": {"version: 1\nprojects: []\ngate: {mode: ask}\n", "gate: {mode: ask}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x", "gettierd.yaml")
			if tc.before != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range [][]Project{{one}, {one, two}, {two}} {
				if err := SetProjects(path, want); err != nil {
					t.Fatal(err)
				}
				c, _, err := Load(path, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, c.Projects); d != "" {
					t.Error(d)
				}
				got, _ := os.ReadFile(path)
				if !strings.Contains(string(got), tc.after) {
					t.Errorf("file is\n%s\nwithout\n%s", got, tc.after)
				}
			}
			if err := SetProjects(path, nil); err != nil {
				t.Fatal(err)
			}
			if c, _, err := Load(path, nil, nil); err != nil || len(c.Projects) != 0 {
				t.Errorf("after removing all: %v, %v", c, err)
			}
		})
	}
}

func TestSetProjectsKeepsABrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gettierd.yaml")
	broken := "version: 1\ngate: {mode: askk}\n"
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := SetProjects(path, []Project{{"x", "/tmp"}}); err == nil {
		t.Error("a broken file was edited")
	}
	if got, _ := os.ReadFile(path); string(got) != broken {
		t.Errorf("the broken file is now\n%s", got)
	}
}
