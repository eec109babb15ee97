package scenarios

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "freeze the embedded scenarios anew")

func TestLocks(t *testing.T) {
	for _, d := range dirs {
		if *update {
			if err := Freeze(d); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, _, err := Lock(os.DirFS(d))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(d, "LOCK"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := lockDifference(string(want), got); diff != "" {
			t.Errorf("%s: %s; run go test ./scenarios -run TestLocks -update when that is meant", d, diff)
		}
	}
}

func TestEmbeddedLoad(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(dirs) {
		t.Fatalf("loaded %d scenarios, want %d", len(all), len(dirs))
	}
	for _, s := range all {
		if s.Lock == "" || len(s.Claims()) != 3 {
			t.Errorf("%s: lock %q, %d claims", s.ID, s.Lock, len(s.Claims()))
		}
		if strings.Contains(strings.ToLower(s.Ticket), strings.ToLower(s.Seeded.Claim)) {
			t.Errorf("%s: the ticket names its premise", s.ID)
		}
		for _, w := range []string{"nop", "wrong", "right"} {
			cmd, err := s.Fix(w)
			if err != nil || strings.Contains(cmd, "#!") || (w == "nop") != (cmd == "") {
				t.Errorf("%s fix %s: %q, %v", s.ID, w, cmd, err)
			}
			if placeholder().MatchString(cmd) {
				t.Errorf("%s fix %s has placeholders: an agent could not type it", s.ID, w)
			}
		}
		onDisk, err := LoadDir(dirs[0])
		if err != nil || onDisk.ID != "GTR-001" {
			t.Errorf("load from disk: %v", err)
		}
	}
	if _, err := ByID("gtr-001"); err != nil {
		t.Error(err)
	}
	if _, err := ByID("GTR-999"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestLayOut(t *testing.T) {
	s, err := ByID("GTR-001")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := s.PortNames()
	if err != nil || strings.Join(ports, " ") != "app edge" {
		t.Fatalf("ports %v, %v", ports, err)
	}
	dir, scripts := t.TempDir(), t.TempDir()
	v := Values{Dir: dir, Nonce: "n1", Gettier: "/opt/g t/gettier", Ports: map[string]int{"app": 4001, "edge": 4002}, Var: "edge_limit", Setting: "1m"}
	if err := s.LayOut(v, scripts); err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile(filepath.Join(dir, "edge/conf.d/10-hardening.conf"))
	if err != nil || !strings.Contains(string(conf), "client_max_body_size 1m;") {
		t.Errorf("the include is not filled: %s %v", conf, err)
	}
	reg, err := os.ReadFile(s.SensorsFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(reg), `value: "{{n}}"`) || strings.Contains(string(reg), "{{port.") {
		t.Errorf("registry placeholders: ours must be filled, its own kept:\n%s", reg)
	}
	for _, secret := range []string{"truth.json", "probe.sh", "accept.sh", "fix", "scenario.yaml", "LOCK"} {
		if _, err := os.Stat(filepath.Join(dir, secret)); err == nil {
			t.Errorf("%s lies in the project, where an agent reads it", secret)
		}
	}
	if _, err := os.Stat(filepath.Join(scripts, "fix/right.sh")); err != nil {
		t.Error(err)
	}
	delete(v.Ports, "edge")
	if err := s.LayOut(v, scripts); err == nil || !strings.Contains(err.Error(), "{{port.edge}}") {
		t.Errorf("a port that is not there: %v", err)
	}
}

// TestCompose: each compose file is YAML, names an image and starts the programs
// that scenario.yaml starts. Whether an engine runs it is not asked here.
func TestCompose(t *testing.T) {
	for _, d := range dirs {
		s, err := LoadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(d, "compose.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Services map[string]struct {
				Image   string   `yaml:"image"`
				Command []string `yaml:"command"`
			} `yaml:"services"`
		}
		if err := yaml.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		for _, p := range s.Processes {
			if got := c.Services[p.Name]; got.Image == "" || !slices.Contains(got.Command, p.Argv[2]) {
				t.Errorf("%s: service %s: %+v, want one that starts %s", d, p.Name, got, p.Argv[2])
			}
		}
	}
}

// copyOf gives a scenario's files to tamper with.
func copyOf(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	src := os.DirFS(dir)
	err := fs.WalkDir(src, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(src, p)
		m[p] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTampering(t *testing.T) {
	m := copyOf(t, "gtr008")
	m["accept.sh"].Data = append(m["accept.sh"].Data, "true\n"...)
	if _, err := Load(m); !errors.Is(err, ErrLock) || !strings.Contains(err.Error(), "accept.sh has changed") {
		t.Errorf("a changed script: %v", err)
	}
	m = copyOf(t, "gtr008")
	m["fixture/extra"] = &fstest.MapFile{Data: []byte("x")}
	if _, err := Load(m); !errors.Is(err, ErrLock) || !strings.Contains(err.Error(), "fixture/extra is new") {
		t.Errorf("a new file: %v", err)
	}
	m = copyOf(t, "gtr008")
	delete(m, "LOCK")
	if _, err := Load(m); !errors.Is(err, ErrLock) || !strings.Contains(err.Error(), "none yet") {
		t.Errorf("no LOCK: %v", err)
	}
	m = copyOf(t, "gtr008")
	m["link"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	if _, err := Load(m); err == nil {
		t.Error("a link was accepted")
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"id", "id: GTR-008", "id: ../x", "want letters"},
		{"unknown key", "split: dev", "splitt: dev", "splitt"},
		{"split", "split: dev", "split: test", "want dev or holdout"},
		{"ready", `ready: { tcp: "127.0.0.1:{{port.store}}" }`, `ready: { tcp: "x:1", log: y }`, "exactly one"},
		{"operator", `operator: "="`, `operator: "~"`, "closed set"},
		{"twin", `trap: "3"`, `trap: "1"`, "different values"},
		{"path", "category: route.workers\nsplit", "accept: ../../x.sh\ncategory: route.workers\nsplit", "no path inside"},
		{"tag", "title: Five", "title: !x Five", "tags are not allowed"},
		{"alias", "title: Five", "title: &a Five", "anchors and aliases"},
		{"documents", "id: GTR-008", "---\na: b\n---\nid: GTR-008", "exactly one document"},
		{"truth", "key: workers", "key: worker", "truth.json has no reading"},
	} {
		m := copyOf(t, "gtr008")
		m["scenario.yaml"].Data = []byte(strings.Replace(string(m["scenario.yaml"].Data), c.from, c.to, 1))
		if _, err := Load(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	base, err := os.ReadFile("gtr001/scenario.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(base)
	f.Add([]byte("id: [\n"))
	f.Add([]byte(""))
	f.Add([]byte("null"))
	f.Add([]byte("processes:\n  - argv: [00,0]\n  - argv: !0000000000000000000000000 00"))
	other := fstest.MapFS{}
	for _, n := range []string{"ticket.md", "truth.json", "sensors.yaml", "compose.yaml", "accept.sh", "probe.sh", "fix/nop.sh", "fix/wrong.sh", "fix/right.sh"} {
		data, err := os.ReadFile(filepath.Join("gtr001", n))
		if err != nil {
			f.Fatal(err)
		}
		other[n] = &fstest.MapFile{Data: data}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := fstest.MapFS{}
		for k, v := range other {
			m[k] = v
		}
		m["scenario.yaml"] = &fstest.MapFile{Data: data}
		s, err := load(m)
		if err != nil {
			return
		}
		if !idForm().MatchString(s.ID) || len(s.Processes) > maxList {
			t.Errorf("accepted %+v", s)
		}
	})
}

// TestFreeze: a directory of one's own loads once it is frozen.
func TestFreeze(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("gtr016")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ticket.md"), []byte("# Another ticket\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadDir(dir); !errors.Is(err, ErrLock) {
		t.Fatalf("an edited scenario: %v", err)
	}
	if err := Freeze(dir); err != nil {
		t.Fatal(err)
	}
	s, err := LoadDir(dir)
	if err != nil || s.Ticket != "# Another ticket" {
		t.Errorf("%+v, %v", s, err)
	}
}
