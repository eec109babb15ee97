package turn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// A helper that the installed package does not have (I-148): the declaration
// names it among its symbols, no claim's words match a sensor, and it is caught.
func TestInventedSymbolIsCaught(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "node_modules", "yaml")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(filepath.Join(home, "package.json"), []byte(`{"version":"2.3.1"}`), 0o600),
		os.WriteFile(filepath.Join(home, "index.js"), []byte("exports.stringify = (v) => v\nexports.parse = (s) => s\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	reg, problems := spec.Parse("sensors.yaml", "pack", []byte(`version: 1
sensors:
  - id: symbols.exist
    probe: symbols
    cwd: worktree
    params:
      symbol: { type: string, pattern: '[@A-Za-z_$][\w$./@-]{0,200}' }
    extract: [{name: exists, kv: exists, type: bool}, place, nearest]
    verifies: [api.symbols]
`), verdict.CheckExamples)
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, c := range []struct {
		symbol string
		caught bool
	}{{"yaml.stringifyAll", true}, {"yaml.stringify", false}, {"toml.parse", false}, {"stringifyAll", false}} {
		r := newRig(t)
		r.view = &sensors.View{Sensors: reg.Sensors, Version: "v"}
		run := sensors.NewRunner(sensors.RunnerOptions{})
		r.Sensors = probing{r, run}
		declaration := `{"plan_summary":"Write every document","lemmas":[{"claim":"The documents can be written in one go","provenance":"believed","load_bearing":true,"symbols":["` + c.symbol + `"]}]}`
		seen := false
		r.answer = func(_ int, body []byte) (int, string, string) {
			if isDeclare(body) {
				return declareAnswer(wire.Chat, body, declaration)
			}
			seen = bytes.Contains(body, []byte("contradicted")) && bytes.Contains(body, []byte("stringify"))
			return speak(wire.Chat, false, "Then I write them one by one.", "", "", "")
		}
		out, err := r.request(wire.Chat, chatRequest(false, false, user("Change the exporter in the config of the server so that it writes every document.")), func(q *Request) {
			q.Scope.Root, q.Scope.Cwd = root, root
			q.Scope.Env = func(string) (string, bool) { return "", false }
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.headers.Decision == lemma.DecCaught; got != c.caught || seen != c.caught {
			t.Errorf("%s: decision %s, the correction was sent: %v, want caught %v\n%s", c.symbol, out.headers.Decision, seen, c.caught, strings.Join(r.kinds(out.headers.Turn), " "))
		}
		r.verifyLedger()
	}
}

// probing is the rig with a real runner.
type probing struct {
	*rig
	run *sensors.Runner
}

func (p probing) Run(ctx context.Context, reqs []sensors.Request) []sensors.Reading {
	return p.run.Run(ctx, reqs)
}
