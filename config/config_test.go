package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"github.com/goccy/go-yaml/ast"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var ignore = cmpopts.IgnoreUnexported(Config{})

func parse(t *testing.T, yaml string) *Config {
	t.Helper()
	c, _, err := Parse("gettierd.yaml", []byte(yaml), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTableAndStructAgree(t *testing.T) {
	vals := values(Default())
	for _, k := range Keys {
		name := strings.Replace(k.Name, "*", "openai", 1)
		v, ok := vals[name]
		if !ok {
			t.Errorf("%s is in the table and not in the struct", name)
			continue
		}
		if text, _ := check(k, name, v); text != "" {
			t.Errorf("%s: its own default %v %s", name, v, text)
		}
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s has no sentence", k.Name)
		}
	}
	for key := range vals {
		if keyOf(key).Name == "" {
			t.Errorf("%s is in the struct and not in the table", key)
		}
	}
	for from, to := range renames {
		if keyOf(from).Name != "" || keyOf(to).Name == "" {
			t.Errorf("rename %s → %s", from, to)
		}
	}
}

func TestDefaults(t *testing.T) {
	c := Default()
	if c.Proxy.Port != 11435 || c.Proxy.BindHost != "127.0.0.1" || c.Reachable() {
		t.Errorf("proxy %+v", c.Proxy)
	}
	g := c.Gate
	if g.Classes.Of(lemma.Destructive) != lemma.Block || g.Classes.Of(lemma.Change) != lemma.Block || g.Classes.Of(lemma.Edit) != lemma.Correct || g.Classes.Of(lemma.Explore) != lemma.Off || g.Classes.Of("?") != lemma.Block {
		t.Errorf("classes %+v", g.Classes)
	}
	if g.Mode != "ask" || g.ClientWait != 2*time.Minute || g.HoldTTL != 24*time.Hour || g.Budget != (Budget{2, 6}) {
		t.Errorf("gate %+v", g)
	}
	if c.Declare != (Declare{"action", 600, 2, 30 * time.Minute}) {
		t.Errorf("declare %+v", c.Declare)
	}
	if u := c.Upstreams["anthropic"]; u.Format != "anthropic" || !u.Trusted || u.Mode != "gate" {
		t.Errorf("anthropic %+v", u)
	}
	missing, _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, missing, ignore); d != "" {
		t.Error("a missing file differs from the defaults:", d)
	}
}

func TestSampleIsTheDefault(t *testing.T) {
	sample := parse(t, string(Sample()))
	if d := cmp.Diff(Default(), sample, ignore); d != "" {
		t.Error(d)
	}
	// With every comment taken away it still is.
	var live []string
	for line := range strings.SplitSeq(string(Sample()), "\n") {
		if strings.HasPrefix(line, "# ") && strings.Contains(line, ":") && !strings.HasPrefix(line, "# What") && !strings.HasPrefix(line, "# Settings") {
			line = line[2:]
		}
		live = append(live, line)
	}
	if d := cmp.Diff(Default(), parse(t, strings.Join(live, "\n")), ignore); d != "" {
		t.Error(d)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "gettierd.yaml")
	text := `version: 1
upstreams:
  local: {base_url: "http://127.0.0.1:8000/v1", headers: {X-Team: Blue}, timeout: 90s}
  lan:
    base_url: http://10.0.0.5:8000
    format: anthropic
    key_env: LAN_KEY
default_upstream: {openai: local}
proxy: {max_body: 32MiB}
gate:
  classes:
    explore: off
    edit: block
  client_wait: 45s
declare:
  reuse: 0
projects:
  - {name: Shop, root: ` + link + `}
ledger:
  retain: 90d
  told_ttl: {host: 7d}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, w, err := Load(path, nil, nil)
	if err != nil || len(w) > 0 {
		t.Fatal(err, w)
	}
	want := Default()
	want.Upstreams["local"] = Upstream{BaseURL: "http://127.0.0.1:8000/v1", Format: "openai", Headers: map[string]string{"x-team": "Blue"}, Timeout: 90 * time.Second, Mode: "gate", Trusted: true}
	want.Upstreams["lan"] = Upstream{BaseURL: "http://10.0.0.5:8000", Format: "anthropic", KeyEnv: "LAN_KEY", Headers: map[string]string{}, Timeout: DefaultTimeout, Mode: "gate"}
	want.DefaultUpstream.OpenAI = "local"
	want.Proxy.MaxBody = 32 << 20
	want.Gate.Classes.Edit = lemma.Block
	want.Gate.ClientWait = 45 * time.Second
	want.Declare.Reuse = 0
	want.Projects = []Project{{"Shop", resolved}}
	want.Ledger.Retain = 90 * 24 * time.Hour
	want.Ledger.ToldTTL.Host = 7 * 24 * time.Hour
	if d := cmp.Diff(want, c, ignore); d != "" {
		t.Error(d)
	}
	if o := c.Origin("gate.client_wait"); o.Kind != "file" || o.Name != path+":14" {
		t.Errorf("origin %+v", o)
	}
	for _, s := range c.Settings() {
		if s.Key == "upstreams.local.headers" && strings.Contains(s.Value, "Blue") {
			t.Error("a header's value is shown")
		}
	}
}

// Each fault: the file, then what the message has to contain.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"version missing":      {"gate: {mode: ask}\n", "gettierd.yaml:1:1: version: is missing"},
		"empty file":           {"\n", "version: is missing"},
		"version unknown":      {"version: 2\n", "1:10: version: 2 is not between 1 and 1"},
		"unknown key":          {"version: 1\ngate:\n  mood: ask\n", `3:3: gate.mood: is not a key; did you mean "mode"?`},
		"unknown section":      {"version: 1\ngates: {}\n", `2:1: gates: is not a key; did you mean "gate"?`},
		"other section":        {"version: 1\nproxy:\n  hold_ttl: 1h\n", "did you mean gate.hold_ttl?"},
		"later key":            {"version: 1\npolicy: {}\n", "policy: is not a key"},
		"enum":                 {"version: 1\ngate: {mode: aks}\n", `gate.mode: "aks" is none of ask, watch; did you mean ask?`},
		"answer not built":     {"version: 1\nanswer: {require: presence}\n", `"presence" is none of tty`},
		"type":                 {"version: 1\nproxy: {port: '80'}\n", "2:15: proxy.port: is no whole number"},
		"octal":                {"version: 1\nproxy: {port: 010}\n", "octal"},
		"range":                {"version: 1\nsensors: {width: 99}\n", "99 is not between 1 and 16"},
		"duration":             {"version: 1\ngate: {hold_ttl: 24}\n", "write such as 90s"},
		"bool":                 {"version: 1\nsensors: {auto_approve: yes}\n", "write true or false"},
		"section as value":     {"version: 1\ngate: on\n", "is a section, not a value"},
		"value as section":     {"version: 1\nlog: {level: {a: b}}\n", "is no string"},
		"null":                 {"version: 1\nlog:\n  level:\n", "has no value"},
		"twice":                {"version: 1\nlog: {level: warn}\nlog: {level: info}\n", "log"},
		"second document":      {"version: 1\n---\nversion: 1\n", "second document"},
		"anchor":               {"version: 1\nlog: &a {level: info}\n", "anchors"},
		"alias":                {"version: 1\nlog: *a\n", "aliases"},
		"syntax":               {"version: 1\ngate: [\n", "gettierd.yaml:2"},
		"control":              {"version: 1\nlog: {level: \"in\x01fo\"}\n", "control character 0x01"},
		"upstream name":        {"version: 1\nupstreams: {Local: {base_url: 'http://x'}}\n", "is no name for an upstream"},
		"base_url missing":     {"version: 1\nupstreams: {local: {timeout: 5s}}\n", "upstreams.local.base_url: is missing"},
		"base_url secret":      {"version: 1\nupstreams: {local: {base_url: 'http://a:b@x'}}\n", "holds a user name or password"},
		"base_url scheme":      {"version: 1\nupstreams: {local: {base_url: 'ftp://x'}}\n", "is no http or https URL"},
		"ollama":               {"version: 1\nupstreams: {local: {base_url: 'http://x', format: ollama}}\n", "is none of openai, anthropic"},
		"key itself":           {"version: 1\nupstreams: {openai: {key_env: sk-abc}}\n", "the variable's name belongs here"},
		"two keys":             {"version: 1\nupstreams: {openai: {key_env: A, key_file: /b}}\n", "stands beside key_env"},
		"keyring and age":      {"version: 1\nupstreams: {openai: {key_keyring: a/b, key_age: /b, key_age_identity: /c}}\n", "stands beside key_keyring"},
		"age without identity": {"version: 1\nupstreams: {openai: {key_age: /b}}\n", "go together"},
		"identity alone":       {"version: 1\nupstreams: {openai: {key_age_identity: /b}}\n", "go together"},
		"keyring without user": {"version: 1\nupstreams: {openai: {key_keyring: a}}\n", "is not SERVICE/USER"},
		"default upstream":     {"version: 1\ndefault_upstream: {openai: opnai}\n", "did you mean openai?"},
		"wrong format":         {"version: 1\ndefault_upstream: {openai: anthropic}\n", "upstream anthropic speaks anthropic"},
		"project relative":     {"version: 1\nprojects: [{name: a, root: b}]\n", "no absolute path"},
		"project root":         {"version: 1\nprojects: [{name: a, root: /}]\n", "whole file system"},
		"project twice":        {"version: 1\nprojects: [{name: a, root: /tmp}, {name: a, root: /var}]\n", "a is there twice"},
		"project member":       {"version: 1\nprojects: [{name: a, roof: /tmp}]\n", `no "roof"`},
		"bind host":            {"version: 1\nproxy: {bind_host: example.com}\n", "is no IP address"},
		"header":               {"version: 1\nupstreams: {openai: {headers: {Host: x}}}\n", "set by the proxy itself"},
		"header break":         {"version: 1\nupstreams: {openai: {headers: {A: \"x\\r\\nB: y\"}}}\n", "no header that could be sent"},
		"budget":               {"version: 1\ngate: {budget: {per_day: 1}}\n", "is less than gate.budget.per_hour"},
		"inflight":             {"version: 1\nproxy: {max_inflight_bytes: 1MiB}\n", "one body of full size"},
		"deep":                 {"version: 1\nlog: " + strings.Repeat("[", 100), "nested too deeply"},
		"long":                 {"version: 1\n#" + strings.Repeat("x", fileMost), "at most"},
		"renamed and current":  {"version: 1\nhold_on_unverifiable: true\ngate: {hold_on_unverifiable: true}\n", "set twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse("gettierd.yaml", []byte(c.yaml), nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, _, err := Parse("f", []byte("version: 1\ngate:\n  mood: ask\n  mode: aks\nlog:\n  level: loud\n"), nil, nil)
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 3 || ps[0].Line != 3 || ps[1].Line != 4 || ps[2].Line != 6 {
		t.Errorf("got %#v", err)
	}
}

func TestRenamedKey(t *testing.T) {
	c, w, err := Parse("f", []byte("version: 1\nhold_on_unverifiable: true\n"), nil, nil)
	if err != nil || !c.Gate.HoldOnUnverifiable {
		t.Fatal(err, c)
	}
	if len(w) != 1 || w[0].Line != 2 || !strings.Contains(w[0].String(), "gate.hold_on_unverifiable") {
		t.Errorf("warnings %v", w)
	}
}

func TestEnvironmentAndFlags(t *testing.T) {
	file := []byte("version: 1\nupstreams: {my-llm: {base_url: 'http://127.0.0.1:1'}}\ngate: {mode: watch}\nproxy: {port: 1}\n")
	env := []string{"GETTIER_GATE_MODE=ask", "GETTIER_PROXY_PORT=2", "GETTIER_HOLD_ON_UNVERIFIABLE=1", "GETTIER_PROXY_BIND_HOST=0.0.0.0", "GETTIER_UPSTREAMS_MY_LLM_BASE_URL=http://127.0.0.1:9",
		"GETTIER_GATE_CLASSES_EDIT=block", "GETTIER_DECLARE_REUSE=5m", "GETTIER_GATE_MOOD=x", "GETTIER_STATE_DIR=/s", "GETTIER_LOG_LEVEL=", "HOME=/h", "GETTIER_SENSORS_FILES=/a:/b"}
	c, w, err := Parse("f", file, env, map[string]string{"proxy.port": "3"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Gate.Mode != "ask" || c.Proxy.Port != 3 || !c.Gate.HoldOnUnverifiable || !c.Reachable() || c.Upstreams["my-llm"].BaseURL != "http://127.0.0.1:9" ||
		c.Gate.Classes.Edit != lemma.Block || c.Declare.Reuse != 5*time.Minute || !slices.Equal(c.Sensors.Files, []string{"/a", "/b"}) || c.Log.Level != "info" {
		t.Errorf("got %+v", c)
	}
	if len(w) != 1 || !strings.Contains(w[0].Text, "did you mean GETTIER_GATE_MODE?") {
		t.Errorf("warnings %v", w)
	}
	if o := c.Origin("proxy.port"); o.Kind != "flag" {
		t.Errorf("origin %+v", o)
	}
	if o := c.Origin("gate.hold_on_unverifiable"); o != (Origin{"env", "GETTIER_HOLD_ON_UNVERIFIABLE"}) {
		t.Errorf("origin %+v", o)
	}
	for _, bad := range [][]string{{"GETTIER_PROXY_PORT=x"}, {"GETTIER_GATE_MODE=loud"}, {"GETTIER_PROJECTS=a"}} {
		if _, _, err := Parse("f", nil, bad, nil); err == nil || !strings.Contains(err.Error(), strings.Split(bad[0], "=")[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, _, err := Parse("f", nil, nil, map[string]string{"gate.mood": "x"}); err == nil {
		t.Error("an unknown flag was taken")
	}
}

func TestPaths(t *testing.T) {
	p := Paths([]string{"HOME=/h"})
	if p.Config != "/h/.config/gettier/gettierd.yaml" || p.Sensors != "/h/.config/gettier/sensors.yaml" || p.Ledger != "/h/.local/state/gettier/ledger.db" || p.Socket != "/h/.local/state/gettier/gettierd.sock" || p.Keys != "/h/.local/state/gettier/keys" {
		t.Errorf("%+v", p)
	}
	p = Paths([]string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s", "XDG_RUNTIME_DIR=/r"})
	if p.Config != "/c/gettier/gettierd.yaml" || p.Lock != "/s/gettier/config.lock" || p.Socket != "/r/gettier/gettierd.sock" {
		t.Errorf("%+v", p)
	}
	p = Paths([]string{"HOME=/h", "XDG_STATE_HOME=relative", "XDG_RUNTIME_DIR=/r", "GETTIER_STATE_DIR=/mine", "GETTIER_CONFIG=/etc/g.yaml"})
	if p.Registry != "/mine/sensors.lock" || p.Socket != "/mine/gettierd.sock" || p.Sensors != "/etc/sensors.yaml" {
		t.Errorf("%+v", p)
	}
	c := Default()
	c.Ledger.Path = "/l.db"
	c.Sensors.Files = []string{"/a"}
	if p.With(c).Ledger != "/l.db" || p.SensorFiles(c)[0] != "/a" || p.SensorFiles(Default())[0] != p.Sensors {
		t.Error("configured paths are not used")
	}
}

// oddTags are what YAML libraries trip over; with something behind them they are
// faults.
var oddTags = []string{
	"!", "!!", "! ", "!\n", "!!binary", "!!binary x", "!!map [", "!!seq {", "!!set {? a}", "!<", "!<tag:x> y", "!x!y z", "!!int", "!!float .", "? !\n: !",
	"- !!null", "!!merge <<: *a", "!!timestamp 2", "&x !", "!!str &x *x", "!!int 0x", "!!bool [", "!!omap [a: b]",
}

func TestOddTags(t *testing.T) {
	for _, tag := range oddTags {
		for _, in := range []string{tag, "version: " + tag, "version: 1\n" + tag, "version: 1\ngate: " + tag, "version: 1\ngate:\n  mode: " + tag,
			"version: 1\nprojects: [" + tag + "]", "version: 1\nprojects:\n  - " + tag + "\n", "version: 1\nprojects:\n  - name: " + tag + "\n    root: /tmp\n",
			"version: 1\nsensors:\n  files: [" + tag + "]\n", "version: 1\nupstreams:\n  a: {base_url: 'http://127.0.0.1', headers: {a: " + tag + "}}\n", "version: 1\n? " + tag + "\n: b"} {
			c, _, err := Parse("f", []byte(in), nil, nil)
			var ps Problems
			switch {
			case c != nil && Hash(c) == Hash(Default()): // a tag of nothing reads as nothing
			case c != nil || !errors.As(err, &ps):
				t.Errorf("%q: %v", in, err)
			}
		}
	}
}

// A tree that no parser should make is a fault, and no reason to stop.
func TestGuardedValue(t *testing.T) {
	for _, n := range []ast.Node{nil, (*ast.LiteralNode)(nil), &ast.LiteralNode{}, &ast.IntegerNode{}, &ast.MappingNode{Values: []*ast.MappingValueNode{nil}}, &ast.SequenceNode{Values: []ast.Node{nil}}} {
		for _, k := range Keys {
			if v, err := guardedValue(k, n); err == nil && v != nil && k.Type != Headers && k.Type != List && k.Type != Roots {
				t.Errorf("%s of %T: %v", k.Name, n, v)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tag := range oddTags {
		f.Add([]byte("version: 1\ngate: " + tag))
	}
	f.Add([]byte("version: 1\n"))
	f.Add(Sample())
	f.Add([]byte("version: 1\nupstreams: {a: {base_url: 'http://x', headers: {A: b}}}\nprojects:\n- {name: a, root: /tmp}\n"))
	f.Add([]byte("version: 1\ngate: &x {<<: *x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		c, _, err := Parse("f", data, nil, nil)
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("%q took %v", data, took)
		}
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("%q: not a list of faults: %v", data, err)
			}
			return
		}
		for key, v := range values(c) {
			if text, _ := check(keyOf(key), key, v); text != "" {
				t.Fatalf("%q: %s %s", data, key, text)
			}
		}
		again, err := fromValues(values(c))
		if err != nil || Hash(again) != Hash(c) {
			t.Fatalf("%q does not come back: %v", data, err)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	data := Sample()
	for b.Loop() {
		if _, _, err := Parse("f", data, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
