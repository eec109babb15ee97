package config

import (
	"crypto/ed25519"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"github.com/google/go-cmp/cmp"
)

// Each row: a change of the file, and the keys that loosen by it.
func TestEffective(t *testing.T) {
	const base = "version: 1\nupstreams: {local: {base_url: 'http://127.0.0.1:1', headers: {a: b}}}\nprojects: [{name: a, root: /tmp}]\n"
	for name, c := range map[string]struct {
		old, new string
		pending  []string
		holds    func(*Config) bool
	}{
		"mode loosened":   {"gate: {mode: ask}", "gate: {mode: watch}", []string{"gate.mode"}, func(c *Config) bool { return c.Gate.Mode == "ask" }},
		"mode tightened":  {"gate: {mode: watch}", "gate: {mode: ask}", nil, func(c *Config) bool { return c.Gate.Mode == "ask" }},
		"class loosened":  {"", "gate: {classes: {change: 'off'}}", []string{"gate.classes.change"}, func(c *Config) bool { return c.Gate.Classes.Change == lemma.Block }},
		"class tightened": {"", "gate: {classes: {edit: block}}", nil, func(c *Config) bool { return c.Gate.Classes.Edit == lemma.Block }},
		"both": {"", "gate: {classes: {edit: block, change: log}}", []string{"gate.classes.change"}, func(c *Config) bool {
			return c.Gate.Classes.Edit == lemma.Block && c.Gate.Classes.Change == lemma.Block
		}},
		"line removed":   {"gate: {hold_on_unverifiable: true}", "", []string{"gate.hold_on_unverifiable"}, func(c *Config) bool { return c.Gate.HoldOnUnverifiable }},
		"budget down":    {"", "gate: {budget: {per_hour: 0}}", []string{"gate.budget.per_hour"}, func(c *Config) bool { return c.Gate.Budget.PerHour == 2 }},
		"budget up":      {"", "gate: {budget: {per_day: 9}}", nil, func(c *Config) bool { return c.Gate.Budget.PerDay == 9 }},
		"reuse longer":   {"", "declare: {reuse: 2h}", []string{"declare.reuse"}, func(c *Config) bool { return c.Declare.Reuse == DefaultReuse }},
		"retain appears": {"", "ledger: {retain: 1d}", []string{"ledger.retain"}, func(c *Config) bool { return c.Ledger.Retain == DefaultRetain }},
		"retain goes":    {"ledger: {retain: 1d}", "", nil, func(c *Config) bool { return c.Ledger.Retain == DefaultRetain }},
		"auto approve":   {"", "sensors: {auto_approve: true}", []string{"sensors.auto_approve"}, func(c *Config) bool { return !c.Sensors.AutoApprove }},
		"bind host":      {"", "proxy: {bind_host: '::1'}", []string{"proxy.bind_host"}, func(c *Config) bool { return c.Proxy.BindHost == DefaultHost }},
		"free key":       {"", "log: {level: debug}", nil, func(c *Config) bool { return c.Log.Level == "debug" }},
	} {
		t.Run(name, func(t *testing.T) {
			old, fresh := parse(t, base+c.old+"\n"), parse(t, base+c.new+"\n")
			eff, pending := Effective(old, fresh)
			if !slices.Equal(pending, c.pending) || !c.holds(eff) {
				t.Errorf("pending %v, gate %+v", pending, eff.Gate)
			}
			// Once approved, it is in force.
			if eff, pending := Effective(fresh, fresh); len(pending) > 0 || Hash(eff) != Hash(fresh) {
				t.Errorf("after approval %v", pending)
			}
		})
	}
}

func TestEffectiveUpstreams(t *testing.T) {
	old := parse(t, "version: 1\nupstreams: {a: {base_url: 'https://good', key_env: GOOD, mode: observe}}\n")
	// A new address with the old key, a new upstream, and one tightening.
	fresh := parse(t, "version: 1\nupstreams: {a: {base_url: 'https://evil', key_env: GOOD, mode: gate}, b: {base_url: 'https://other'}}\n")
	eff, pending := Effective(old, fresh)
	if a := eff.Upstreams["a"]; a.BaseURL != "https://good" || a.KeyEnv != "GOOD" || a.Mode != "gate" {
		t.Errorf("a is %+v", a)
	}
	if _, ok := eff.Upstreams["b"]; ok {
		t.Error("a new upstream counts before its approval")
	}
	if !slices.Contains(pending, "upstreams.a.base_url") || !slices.Contains(pending, "upstreams.b.base_url") {
		t.Errorf("pending %v", pending)
	}
	// One that is gone stays as approved.
	eff, pending = Effective(old, parse(t, "version: 1\n"))
	if eff.Upstreams["a"].BaseURL != "https://good" || len(pending) == 0 {
		t.Errorf("a is %+v, pending %v", eff.Upstreams["a"], pending)
	}
}

// Whatever the two files say, what is in force is never looser than what was
// approved, and approving what pends is all that is missing.
func TestEffectiveIsNeverLooser(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() *Config {
		vals := values(Default())
		for key := range vals {
			k := keyOf(key)
			switch {
			case r.IntN(3) > 0:
			case k.Type == Bool:
				vals[key] = r.IntN(2) == 0
			case k.Type == Enum && k.Order == Listed:
				vals[key] = k.Values[r.IntN(len(k.Values))]
			case k.Type == Int && k.Order != Pinned:
				vals[key] = int(k.Min + r.Int64N(k.Max-k.Min+1))
			case k.Type == Duration:
				vals[key] = time.Duration(k.Min + r.Int64N(k.Max-k.Min+1))
			case k.Type == String && strings.HasSuffix(key, "key_env"):
				vals[key] = []string{"A", "B"}[r.IntN(2)]
			}
		}
		c, err := fromValues(vals)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 200 {
		approved, fresh := random(), random()
		eff, pending := Effective(approved, fresh)
		if _, looser, _ := Compare(approved, eff); len(looser) > 0 {
			t.Fatalf("%v loosened unapproved", looser)
		}
		if _, looser, _ := Compare(approved, fresh); !slices.Equal(looser, pending) {
			t.Fatalf("pending %v, looser %v", pending, looser)
		}
	}
}

func TestCompare(t *testing.T) {
	a := Default()
	b := parse(t, "version: 1\nproxy: {port: 1}\ngate: {mode: watch, annotate_gaps: true}\n")
	tighter, looser, restart := Compare(a, b)
	if d := cmp.Diff([][]string{{"proxy.port", "gate.annotate_gaps"}, {"gate.mode"}, {"proxy.port"}}, [][]string{tighter, looser, restart}); d != "" {
		t.Error(d)
	}
	want := []Change{
		{Key: "proxy.port", Old: "11435", New: "1", Restart: true},
		{Key: "gate.mode", Old: "ask", New: "watch", Loosens: true},
		{Key: "gate.annotate_gaps", Old: "false", New: "true"},
	}
	if d := cmp.Diff(want, Diff(a, b)); d != "" {
		t.Error(d)
	}
}

func TestResolve(t *testing.T) {
	load := func(file string, env ...string) *Config {
		c, _, err := Parse("f", []byte("version: 1\n"+file), env, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// A fresh state: the file is the baseline, even a loose one.
	res := Resolve(nil, load("gate: {mode: watch}\n"), false)
	if res.Config.Gate.Mode != "watch" || len(res.Pending) > 0 {
		t.Errorf("fresh state: %+v", res)
	}
	// The environment may always tighten.
	res = Resolve(nil, load("", "GETTIER_HOLD_ON_UNVERIFIABLE=1"), false)
	if !res.Config.Gate.HoldOnUnverifiable || len(res.Named)+len(res.Refused) > 0 {
		t.Errorf("tightening: %+v", res)
	}
	// It loosens only in a terminal, and is named then.
	loose := load("", "GETTIER_GATE_MODE=watch")
	if res = Resolve(nil, loose, false); res.Config.Gate.Mode != "ask" || len(res.Refused) != 1 || res.Refused[0].Origin.Name != "GETTIER_GATE_MODE" {
		t.Errorf("no terminal: %+v", res)
	}
	if res = Resolve(nil, loose, true); res.Config.Gate.Mode != "watch" || len(res.Named) != 1 || res.Named[0].Value != "watch" {
		t.Errorf("terminal: %+v", res)
	}
	// It never becomes what is approved.
	if Hash(loose.Base()) != Hash(load("")) {
		t.Error("the environment is part of the base")
	}
	// A file that loosens waits, beside an environment that tightens.
	res = Resolve(Default(), load("sensors: {auto_approve: true}\n", "GETTIER_GATE_CLASSES_EDIT=block"), true)
	if res.Config.Sensors.AutoApprove || res.Config.Gate.Classes.Edit != lemma.Block || !slices.Equal(res.Pending, []string{"sensors.auto_approve"}) {
		t.Errorf("both: %+v", res)
	}
}

func TestLock(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state", "config.lock")
	if _, err := ReadLock(path, pub); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	c := parse(t, "version: 1\nupstreams: {local: {base_url: 'http://127.0.0.1:1', headers: {a: '<b>&'}}}\nprojects: [{name: a, root: /tmp}]\ngate: {mode: watch, client_wait: 90s}\nproxy: {max_body: 1MiB}\nsensors: {files: [/a, /b]}\n")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	by := lemma.Answerer{UID: 7, User: "u", Via: "cli", TTY: "pts/1", Chain: []string{"a", "b"}}
	for range 2 { // it replaces itself as well
		if err := WriteLock(path, key, c, by, at); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	l, err := ReadLock(path, pub)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, l.Config, ignore); d != "" {
		t.Error(d)
	}
	if l.Hash != Hash(c) || Hash(l.Config) != l.Hash || l.At != lemma.Time(at) || l.By.TTY != "pts/1" {
		t.Errorf("%+v", l)
	}
	if _, pending := Effective(l.Config, c); len(pending) > 0 {
		t.Errorf("what was approved pends: %v", pending)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".config*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	// Any edit by other hands shows.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{{`"watch"`, `"ask"`}, {`pts/1`, `pts/2`}, {`"hash": "`, `"hash": "0`}, {`"approved_at": "2026`, `"approved_at": "2027`}} {
		forged := strings.Replace(string(data), edit[0], edit[1], 1)
		if forged == string(data) {
			t.Fatalf("%q is not in the lock", edit[0])
		}
		if err := os.WriteFile(path, []byte(forged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLock(path, pub); !errors.Is(err, ErrLockForged) {
			t.Errorf("%v: %v", edit, err)
		}
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLock(path, other); !errors.Is(err, ErrLockForged) {
		t.Errorf("another key: %v", err)
	}
}
