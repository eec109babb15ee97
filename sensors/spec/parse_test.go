package spec

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestFaults holds every message with its place: what people see after a bad edit.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no fault files", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			reg, problems := Parse("sensors.yaml", "user", data)
			if reg != nil || len(problems) == 0 {
				t.Fatal("a faulty file is accepted")
			}
			golden(t, strings.TrimSuffix(f, ".yaml")+".txt", []byte(Explain("sensors.yaml", data, problems)))
		})
	}
}

func parseFull(t *testing.T) *Registry {
	t.Helper()
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reg, problems := Parse("/x/sensors.yaml", "project/shop", data)
	if len(problems) > 0 {
		t.Fatal(Explain("full.yaml", data, problems))
	}
	return reg
}

// TestDefinitionsStayStable pins the canonical form: approvals on disk hold its
// hash, so a change here unpins every sensor of every user.
func TestDefinitionsStayStable(t *testing.T) {
	reg := parseFull(t)
	var out bytes.Buffer
	put := func(v any, hash string) {
		b, err := Definition(v)
		if err != nil {
			t.Fatal(err)
		}
		if HashOf(v) != hash {
			t.Errorf("a stored hash differs from that of %s", b)
		}
		fmt.Fprintf(&out, "%s\n%s\n", hash, b)
	}
	for _, s := range reg.Sensors {
		put(s, s.Hash)
	}
	for _, p := range reg.Premises {
		put(p, p.Hash)
	}
	put(reg.Matching, HashOf(reg.Matching))
	fmt.Fprintln(&out, reg.Hash)
	golden(t, "testdata/good/full.txt", out.Bytes())
}

func TestDefinitionsComeBack(t *testing.T) {
	reg := parseFull(t)
	for _, s := range reg.Sensors {
		b, _ := Definition(s)
		back, err := SensorOf(b)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Definition(back)
		if !bytes.Equal(b, again) || back.Hash != s.Hash {
			t.Errorf("%s changed on its way:\n%s\n%s", s.ID, b, again)
		}
	}
	b, _ := Definition(reg.Premises[0])
	if p, err := PremiseOf(b); err != nil || p.Hash != reg.Premises[0].Hash {
		t.Errorf("the premise changed on its way: %v", err)
	}
	if _, err := SensorOf([]byte(`{"id":"a","later":1}`)); err == nil {
		t.Error("a definition with an unknown key is accepted, though its hash cannot cover it")
	}
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	reg := parseFull(t)
	edge, node, probe := reg.Sensors[0], reg.Sensors[1], reg.Sensors[2]
	if edge.Qualified() != "project/shop/edge.limits" || edge.Version != reg.Hash || edge.Pos.Line != 4 {
		t.Errorf("qualified %s, version %s, line %d", edge.Qualified(), edge.Version, edge.Pos.Line)
	}
	if edge.Network != nil || probe.Network == nil || edge.TTL != 10*time.Minute || node.TTL != DefaultTTL || edge.Timeout != 20*time.Second {
		t.Error("network, ttl or timeout differ")
	}
	if edge.Extract[2].Map["0"] != "unlimited" || edge.Expect[0].Value != "8MB" {
		t.Error("a value lost its source text")
	}
	if node.Judge[0].Value != "20.10" || node.Judge[0].Examples[0].Measured != "20.10" || *probe.Params[5].Default != "0.50" {
		t.Error("numbers must stay as spelled")
	}
	if x, _ := probe.Value("code"); x.Type != Number || !x.TypeSet {
		t.Error("an exit code is a number")
	}
	if probe.Description != "A check that talks to one host" {
		t.Errorf("description %q", probe.Description)
	}
	if reg.Premises[0].Effect != "mutate" {
		t.Errorf("effect %q", reg.Premises[0].Effect)
	}
}

func TestDefaults(t *testing.T) {
	reg, problems := Parse("f", "user", []byte("version: 1\nsensors:\n- id: a\n  command: x\n"))
	if problems != nil {
		t.Fatal(problems)
	}
	s := reg.Sensors[0]
	want := &Sensor{
		ID: "a", Argv: []Word{{Text: "x", Parts: []WordPart{{Literal: "x"}}}}, Effects: Mutates, TTL: 300 * time.Second,
		Timeout: 10 * time.Second, MaxOutputBytes: 65536, ExitOK: []int{0}, Network: []string{"host"}, Sensitivity: "internal",
		Source: "a", Pos: Pos{3, 3}, Hash: s.Hash, Level: "user", File: "f", Version: reg.Hash,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if len(reg.Warnings) != 2 {
		t.Errorf("warnings: %v", reg.Warnings)
	}
}

// TestHashIgnoresLooks: comments, order of keys and quoting are no change.
func TestHashIgnoresLooks(t *testing.T) {
	a, _ := Parse("f", "user", []byte("version: 1\nsensors:\n- id: a\n  command: ls -l\n  effects: none\n"))
	b, _ := Parse("g", "project/x", []byte("# note\nsensors:\n  - effects: \"none\"\n    ttl: 300\n    command: [ls, '-l']\n    id: a\nversion: 1\n"))
	c, _ := Parse("f", "user", []byte("version: 1\nsensors:\n- id: a\n  command: ls -a\n  effects: none\n"))
	if a.Sensors[0].Hash != b.Sensors[0].Hash || a.Hash != b.Hash {
		t.Error("looks count")
	}
	if a.Sensors[0].Hash == c.Sensors[0].Hash || a.Hash == c.Hash {
		t.Error("another command has the same hash")
	}
}

// TestLineEnds: a mark in front and Windows line ends are no change either.
func TestLineEnds(t *testing.T) {
	text := "version: 1\nsensors:\n  - id: a\n    command: ls -l\n    description: >\n      two\n      lines\n    extract:\n      - x\n"
	a, _ := Parse("f", "user", []byte(text))
	b, problems := Parse("f", "user", []byte("\ufeff"+strings.ReplaceAll(text, "\n", "\r\n")))
	if b == nil {
		t.Fatal(problems)
	}
	if a.Hash != b.Hash {
		x, _ := Definition(a.Sensors[0])
		y, _ := Definition(b.Sensors[0])
		t.Errorf("%s\n%s", x, y)
	}
	if _, problems := Parse("f", "user", []byte(strings.ReplaceAll(text, "\n", "\r\n")+"bad: 1\r\n")); len(problems) != 1 || problems[0].Line != 10 {
		t.Errorf("%v", problems)
	}
}

func TestChecksSeeOnlySoundSensors(t *testing.T) {
	called := 0
	check := func(s *Sensor) []Problem {
		called++
		return []Problem{{Pos: s.Pos, What: "the example does not hold"}}
	}
	if reg, p := Parse("f", "user", []byte("version: 1\nsensors: [{id: a, command: x}]\n"), check); reg != nil || len(p) != 1 || called != 1 {
		t.Errorf("registry %v, problems %v, %d calls", reg, p, called)
	}
	if Parse("f", "user", []byte("version: 1\nsensors: [{id: a}]\n"), check); called != 1 {
		t.Error("a check ran on a sensor without a command")
	}
}

func TestHostileFilesEndQuickly(t *testing.T) {
	var keys strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&keys, "key%d: v\n", i)
	}
	for name, data := range map[string]string{
		"brackets": strings.Repeat("[", 200_000),
		"braces":   "a: " + strings.Repeat("{a: ", 100_000),
		"dashes":   strings.Repeat("- ", 200_000),
		"keys":     strings.Repeat("? ", 200_000),
		"large":    strings.Repeat("x", MaxFileBytes+1),
		"lines":    "version: 1\nsensors:\n" + strings.Repeat("  - id: a\n", 40_000),
		"map":      keys.String(),
		"flow":     "a: [" + strings.Repeat("a,", 500_000) + "]",
		"tags":     "version: 1\nsensors: " + strings.Repeat("!!a ", 200_000),
		"bare":     strings.Repeat("! ", 500_000),
		"anchors":  strings.Repeat("&a ", 300_000),
		"tagged":   "version: 1\nsensors:\n" + strings.Repeat("!a ! !\n", 19_000),
		"colons":   "version: 1\nsensors: \"" + strings.Repeat("x:y ", 200_000), // an error far behind much text
	} {
		began := time.Now()
		if reg, p := Parse("f", "user", []byte(data)); reg != nil || len(p) == 0 || len(p) > maxProblems {
			t.Errorf("%s: %d problems", name, len(p))
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

// oddTags are what YAML libraries trip over; with something behind them they are
// faults with a place.
var oddTags = []string{
	"!", "!!", "! ", "!\n", "!!binary", "!!binary x", "!!map [", "!!seq {", "!!set {? a}", "!<", "!<tag:x> y", "!x!y z", "a: !!int", "a: !!float .", "? !\n: !",
	"- !!null", "!!merge <<: *a", "a: !!timestamp 2", "a: &x !", "a: !!str &x *x", "%TAG ! x\n---\n! a", "!!int 0x", "a: !!bool [", "!!omap [a: b]",
}

func TestOddTags(t *testing.T) {
	good := "version: 1\nsensors:\n  - id: a\n    command: x\n"
	for _, tag := range oddTags {
		for _, in := range []string{tag, "version: 1\n" + tag, "version: 1\nsensors: " + tag, good + "    description: " + tag, good + "    extract: [" + tag + "]\n",
			strings.Replace(good, "command: x", "command: ["+tag+"]", 1), strings.Replace(good, "- id", "- "+tag+" id", 1)} {
			reg, problems := Parse("f", "user", []byte(in))
			switch {
			case reg != nil && len(reg.Sensors) == 0: // a tag of nothing reads as nothing
			case reg != nil || len(problems) == 0 || problems[0].Line < 1 || problems[0].What == "":
				t.Errorf("%q: registry %v, %+v", in, reg != nil, problems)
			}
			Explain("f", []byte(in), problems)
		}
	}
}

// A panic over a file is a fault of the file, whoever panics.
func TestGuarded(t *testing.T) {
	r := &reader{}
	r.guarded(func() {
		r.fault(Pos{7, 7}, "half read", "")
		var none *entry
		_ = none.key
	})
	if len(r.problems) != 1 || r.problems[0].Line != 1 || !strings.Contains(r.problems[0].What, "not YAML that can be read") {
		t.Errorf("%+v", r.problems)
	}
}

// FuzzParse: no input panics, a refusal has a place, and what is accepted has
// definitions that come back from their canonical form.
func FuzzParse(f *testing.F) {
	for _, glob := range []string{"testdata/good/*.yaml", "testdata/faults/*.yaml"} {
		files, _ := filepath.Glob(glob)
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	for _, tag := range oddTags {
		f.Add([]byte("version: 1\nsensors: " + tag))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reg, problems := Parse("f", "user", data)
		if (reg == nil) == (len(problems) == 0) {
			t.Fatalf("registry %v with %d problems", reg != nil, len(problems))
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.What == "" {
				t.Fatalf("a problem without a place: %+v", p)
			}
		}
		Explain("f", data, problems)
		if reg == nil {
			return
		}
		for _, s := range reg.Sensors {
			b, err := Definition(s)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := SensorOf(b); err != nil || back.Hash != s.Hash {
				t.Fatalf("%s does not come back: %v", b, err)
			}
			if s.ID == "" || len(s.Argv) == 0 && s.Probe == "" || s.Ambient && s.Effects != None {
				t.Fatalf("accepted: %+v", s)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if reg, _ := Parse("f", "user", data); reg == nil {
			b.Fatal("refused")
		}
	}
}
