package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "gettier.dev/gettierd"

// tiers is the one direction in which imports go: a package may import packages
// of a lower tier only. A new package takes its place here first.
var tiers = map[string]int{
	"ledger/lemma": 0, "ledger/chain": 0, "ledger/verify": 0, "ledger/powerloss": 0, "tui/clean": 0, "tui/termbg": 0, "sensors/confine": 0, "daemon/logs": 0, "daemon/credential": 0, "daemon/apikey": 0, "daemon/connect": 0, "config/watch": 0,
	"sensors/gitrepo": 1, "sensors/symbols": 1, "sensors/packs": 0, "sensors/probe": 2,
	"sensors/spec": 1, "daemon/action/shell": 1, "config": 1, "daemon/wire": 1, "daemon/peer": 1, "daemon/wire/wiretest": 2, "daemon/e2e": 15, "tui/story": 3, "tui/words": 2,
	"ledger/redact": 2, "ledger/archive": 2, "ledger/snapshot": 2, "ledger/keyfile": 2, "sensors/extract": 2, "ledger/belief": 2, "ipc": 2,
	"sensors/verdict": 3, "ledger": 3, "ledger/witness": 3, "tui": 4, "tui/rows": 2, "tui/theme": 2,
	"sensors":              4,
	"daemon/action/strict": 1, "daemon/action/prompt": 1, "daemon/action/rate": 6, "daemon/action/evidence": 6, "daemon/action/endpoint": 1, "daemon/action/semantic": 6, "daemon/action/opinion": 6, "daemon/action/replay": 6,
	"daemon/route": 5, "daemon/action": 5, "daemon/floor": 5, "daemon/policy": 5, "ledger/export": 5,
	"daemon/gate": 6,
	"daemon/hold": 7, "daemon/approval": 6,
	"daemon/recall": 4, "tui/sheet": 2,
	"daemon/turn":         8,
	"daemon/proxy/openai": 9, "daemon/proxy/anthropic": 9, "daemon/proxy/responses": 9, "ipc/ipcserver": 9, "daemon/mcp": 9, "ipc/ipctest": 10,
	"daemon/proxy/dialect": 10, "daemon/classify": 11,
	"daemon/proxy":    11,
	"daemon":          12,
	"daemon/gettierd": 13,
	"scenarios":       3, "scenarios/fixture": 3, "scenarios/model": 4, "scenarios/harness": 5,
	"tui/gettier": 14,
}

// rule forbids imports, with the reason that a failure prints.
type rule struct {
	why       string
	applies   func(pkg string) bool
	forbidden func(imp string) bool
	deep      bool // through everything it links, not only its own import lines
}

func in(names ...string) func(string) bool {
	return func(p string) bool { return slices.Contains(names, p) }
}

func under(dir string) func(string) bool {
	return func(p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
}

func except(f func(string) bool, names ...string) func(string) bool {
	return func(p string) bool { return f(p) && !slices.Contains(names, p) }
}

func all(string) bool { return true }

// domain: paths outside the standard library begin with a domain.
func domain(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

var charm = under("github.com/charmbracelet")

var pure = in("daemon/gate", "daemon/connect", "daemon/approval", "daemon/route", "daemon/recall", "daemon/action", "daemon/action/shell", "daemon/wire", "sensors/verdict", "sensors/extract",
	"sensors/spec", "ledger/belief", "ledger/chain", "ledger/lemma", "daemon/proxy/openai", "daemon/proxy/anthropic", "daemon/proxy/responses")

var rules = []rule{
	{"tui and its libraries see the world through ipc alone", except(under("tui"), "tui/gettier"),
		func(i string) bool { return under(module+"/daemon")(i) || under("go.etcd.io/bbolt")(i) }, true},
	{"the daemon links no Charm: its package init asks the terminal and can wait 5 s", under("daemon"), charm, true},
	{"replay must be exact: what rules does no I/O and draws no random numbers", pure,
		in("os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"), false},
	{"viper is imported in config and nowhere else", except(all, "config"), under("github.com/spf13/viper"), false},
	{"go-openai is used only where a model is called", except(all, "scenarios/harness", "scenarios/model", "daemon/floor/judge", "daemon/action/endpoint", "daemon/action/semantic", "daemon/action/opinion"), under("github.com/sashabaranov/go-openai"), false},
	{"gettier never links the proxy itself, only the format readers under it", under("tui"), in(module + "/daemon/proxy"), true},
	{"the clean-room verifier uses the standard library alone", in("ledger/verify"), domain, true},
	{"cutting the power is for tests", in("daemon/gettierd", "tui/gettier"), in(module + "/ledger/powerloss"), true},
	{"tests use the standard library and go-cmp", all, under("github.com/stretchr/testify"), false},
}

type listed struct {
	ImportPath   string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages", len(pkgs))
	}
	return pkgs
}

func TestArchitecture(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if p.Doc == "" {
			t.Errorf("%s has no doc comment: say what lives there and what must not", name)
		}
		tier, ok := tiers[name]
		if !ok {
			t.Errorf("%s has no place in tiers", name)
		}
		for _, imp := range p.Imports {
			other, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if t2, ok := tiers[other]; ok && t2 >= tier {
				t.Errorf("%s imports %s: imports go one way, from higher tiers to lower ones (%d → %d)", name, other, tier, t2)
			}
		}
		for _, r := range rules {
			if !r.applies(name) {
				continue
			}
			imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			if r.deep {
				imports = p.Deps
			} else if pure(name) {
				imports = p.Imports // tests of pure packages may read testdata
			}
			for _, imp := range imports {
				if r.forbidden(imp) {
					t.Errorf("%s reaches %s: %s", name, imp, r.why)
				}
			}
		}
	}
}

// TestPureCallNoClock looks for a clock in the files of packages that rule.
func TestPureCallNoClock(t *testing.T) {
	for name := range tiers {
		if !pure(name) {
			continue
		}
		dir := path.Join("..", name)
		files, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			src, err := os.ReadFile(path.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, clock := range []string{"time.Now(", "time.Since(", "time.Until("} {
				if bytes.Contains(src, []byte(clock)) {
					t.Errorf("%s/%s calls %s): time comes in by parameter", name, f.Name(), clock)
				}
			}
		}
	}
}

// TestTopLevel holds the fixed layout and a root module without replace.
func TestTopLevel(t *testing.T) {
	allowed := []string{"daemon", "tui", "ipc", "ledger", "sensors", "scenarios", "config", "go.mod", "go.sum", "justfile", "README.md", "LICENSE"}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(allowed, e.Name()) && e.Name() != "bin" {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mod, []byte("\nreplace ")) {
		t.Error("go.mod has a replace: benchmark and tool dependencies live in modules of their own")
	}
}
