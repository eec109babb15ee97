package sensors

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/packs"
)

// TestHostilePacks: every sensor of every pack, in a repository in which all
// traps are set that can be set at once, and whose configuration files are pipes
// and files without end. None springs, and none waits.
func TestHostilePacks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	if !*thorough {
		t.Skip("only with -thorough")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	root, mark := testDir(t), filepath.Join(testDir(t), "mark")
	clean(t, root)
	for _, tr := range traps {
		if tr.plant == nil && tr.name != "submodule" {
			tr.set(t, root, mark)
		}
	}
	gitattributes := "* filter=evil diff=evil\n"
	if err := os.WriteFile(filepath.Join(root, ".gitattributes"), []byte(gitattributes), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", ".nvmrc", "compose.yaml", ".python-version", "pyproject.toml", ".node-version", ".tool-versions"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"package-lock.json", "yarn.lock", ".env.local"} {
		f, err := os.Create(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
			t.Skip("no sparse files here:", err)
		}
	}
	all, err := packs.All()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(Options{StateDir: testDir(t), Projects: []Project{{Name: "shop", Root: root}}, Packs: all})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if _, err := r.Approve(t.Context(), []string{fmt.Sprintf("pack/%s@%s", p.Name, p.Hash)}, "", lemma.Answerer{Via: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	v := r.View(root)
	if len(v.Sensors) < 20 {
		t.Fatalf("%d sensors in force", len(v.Sensors))
	}
	var reqs []Request
	for _, s := range v.Sensors {
		if len(s.Network) > 0 {
			continue // it asks services, and may wait for them
		}
		reqs = append(reqs, Request{Sensor: s, Root: root, Cwd: root, Env: func(string) (string, bool) { return "", false }})
	}
	for _, confine := range []bool{true, false} {
		runner := NewRunner(RunnerOptions{Permit: r.Permit, Confine: confine})
		measured := 0
		for _, rd := range runner.Run(t.Context(), reqs) {
			switch reason, failed := Failed(rd); {
			case !failed:
				measured++
			case reason == ReasonTimeout:
				t.Errorf("%s waits: %s", rd.Sensor.Qualified(), rd.Detail)
			case strings.Contains(rd.Detail, "since the approval"):
				t.Errorf("%s: %s", rd.Sensor.Qualified(), rd.Detail)
			}
		}
		runner.Close()
		if measured < 8 {
			t.Errorf("sandbox %v: only %d of %d sensors measured", confine, measured, len(reqs))
		}
		if b, err := os.ReadFile(mark); err == nil {
			t.Fatalf("sprung, sandbox %v: %q", confine, b)
		}
	}
}
