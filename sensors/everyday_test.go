package sensors

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/probe"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// project is one fixture of testdata/everyday.txt.
type project struct {
	t    *testing.T
	root string
	cwd  string
	env  map[string]string
	view *View
	run  *Runner
}

var midsummer = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

func (p *project) git(line string) {
	cmd := exec.Command("git", strings.Fields(line)[1:]...)
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// judge is what a turn would make of a claim, with one sensor.
func (p *project) judge(id, claim string) (string, string) {
	s, ok := p.view.Lookup(id)
	if !ok {
		p.t.Fatalf("there is no sensor %s", id)
	}
	req := Request{Sensor: s, Claim: claim, Root: p.root, Cwd: p.cwd, Env: func(n string) (string, bool) { v, ok := p.env[n]; return v, ok }}
	l := lemma.Lemma{Claim: claim, LoadBearing: true}
	matches, _ := verdict.Match(l, verdict.Sensors{InForce: p.view.Sensors, Matching: p.view.Matching, Binds: func(s *spec.Sensor, claim string) bool {
		return Binds(Request{Sensor: s, Claim: claim, Root: p.root, Cwd: p.cwd})
	}})
	if !slices.ContainsFunc(matches, func(m lemma.SensorMatch) bool { return m.ID == id }) {
		return "unmatched", ""
	}
	rd := p.run.Run(p.t.Context(), []Request{req})[0]
	if reason, failed := Failed(rd); failed {
		return string(lemma.Inconclusive), reason + " " + rd.Detail
	}
	for _, v := range rd.Evidence.Values {
		if strings.Contains(v.Text, "secret") || strings.Contains(v.Text, "pa$$") {
			p.t.Errorf("%s gives a password away: %s", id, v.Text)
		}
	}
	res := verdict.Judge(verdict.Claim{Lemma: &l}, s, rd.Evidence)
	return string(res.Verdict), res.Reason + " " + res.Key + " " + res.Measured
}

var claimLine = regexp.MustCompile(`^([a-z]+\.[a-z]+): (.+) => (confirmed|contradicted|inconclusive|unjudged|unmatched)$`)

// TestEveryday reads testdata/everyday.txt: each row of the everyday pack, with
// true and false claims on fixture projects.
func TestEveryday(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	data, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]map[string]int{}
	r := withPacks(t, shop(t, nil), "everyday")
	for _, part := range strings.Split(string(data), "\n== ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		t.Run(title, func(t *testing.T) {
			p := &project{t: t, root: shop(t, nil), env: map[string]string{}}
			p.cwd = p.root
			p.env["HOME"] = filepath.Join(p.root, "home")
			r.Configure(nil, []Project{{Name: "shop", Root: p.root}}, false)
			p.view = r.View(p.root)
			p.run = NewRunner(RunnerOptions{Permit: r.Permit, Now: func() time.Time { return midsummer }, Env: func(n string) (string, bool) { v, ok := p.env[n]; return v, ok }})
			var file string
			var text strings.Builder
			end := func() {
				if file == "" {
					return
				}
				path := filepath.Join(p.root, file)
				mode := os.FileMode(0o600)
				if strings.Contains(file, "bin/") {
					mode = 0o700
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text.String()), mode)); err != nil {
					t.Fatal(err)
				}
				file = ""
				text.Reset()
			}
			for n, line := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
				m := claimLine.FindStringSubmatch(line)
				switch {
				case strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --"):
					end()
					file = strings.TrimSuffix(strings.TrimPrefix(line, "-- "), " --")
				case strings.HasPrefix(line, "$ git "):
					end()
					p.git(line[2:])
				case strings.HasPrefix(line, "@ "):
					end()
					k, v, _ := strings.Cut(line[2:], "=")
					p.env[k] = strings.ReplaceAll(v, "$ROOT", p.root)
				case strings.HasPrefix(line, "cd "):
					end()
					p.cwd = filepath.Join(p.root, line[3:])
				case m != nil:
					end()
					got, why := p.judge(m[1], m[2])
					if got != m[3] {
						t.Errorf("line %d, %s: %q is %s, want %s (%s)", n+2, m[1], m[2], got, m[3], why)
					}
					if verdicts[m[1]] == nil {
						verdicts[m[1]] = map[string]int{}
					}
					verdicts[m[1]][got]++
				default:
					text.WriteString(line + "\n")
				}
			}
		})
	}
	for _, s := range parsedPack(t, "everyday").Sensors {
		switch s.ID {
		case "ports.owner", "proc.fresh": // need processes: TestPorts
			continue
		}
		if verdicts[s.ID]["confirmed"] == 0 || verdicts[s.ID]["contradicted"] == 0 {
			t.Errorf("%s has no true and no false claim in everyday.txt: %v", s.ID, verdicts[s.ID])
		}
	}
}

// parsedPack reads the files of a pack as one registry.
func parsedPack(t *testing.T, name string) *spec.Registry {
	t.Helper()
	all, err := packs.All()
	if err != nil {
		t.Fatal(err)
	}
	out := &spec.Registry{}
	for _, p := range all {
		if p.Name != name {
			continue
		}
		for _, f := range p.Files {
			reg, problems := spec.Parse(f.Name, "pack", f.Data, verdict.CheckExamples)
			if len(problems) > 0 {
				t.Fatal(spec.Explain(f.Name, f.Data, problems))
			}
			if problems := verdict.CheckPremises(reg); len(problems) > 0 {
				t.Fatal(spec.Explain(f.Name, f.Data, problems))
			}
			out.Sensors, out.Premises = append(out.Sensors, reg.Sensors...), append(out.Premises, reg.Premises...)
		}
	}
	return out
}

// Every pack loads, by itself and beside the others: no id twice, each sensor
// only reads, each rule and each premise has examples, each category leads to it.
func TestPacks(t *testing.T) {
	all, err := packs.All()
	if err != nil {
		t.Fatal(err)
	}
	ids, premises := map[string]string{}, 0
	for _, p := range all {
		reg := parsedPack(t, p.Name)
		if len(reg.Sensors) == 0 || strings.Contains(p.Name, ".") {
			t.Errorf("the pack %s has %d sensors", p.Name, len(reg.Sensors))
		}
		for _, s := range reg.Sensors {
			if ids[s.ID] != "" || !strings.Contains(s.ID, ".") {
				t.Errorf("%s stands in %s and in %s", s.ID, ids[s.ID], p.Name)
			}
			ids[s.ID] = p.Name
			if s.Effects != spec.None || s.RunsAs != "" || s.Ambient || s.Description == "" {
				t.Errorf("%s/%s: effects %s, runs as %q, ambient %v", p.Name, s.ID, s.Effects, s.RunsAs, s.Ambient)
			}
			if p.Name == "everyday" && (s.Probe == "" || s.TTL > time.Minute || s.TTL < 5*time.Second) {
				t.Errorf("%s of the everyday pack runs a program or lives %v", s.ID, s.TTL)
			}
			for _, x := range verdict.Unreachable(s, nil) {
				t.Errorf("%s: %s", s.ID, x.What)
			}
			for _, r := range s.Judge {
				seen := map[string]bool{}
				for _, x := range r.Examples {
					seen[x.Verdict] = true
				}
				if !seen["confirmed"] || !seen["contradicted"] || !seen["skip"] {
					t.Errorf("%s: a rule on %s lacks an example that it confirms, contradicts or skips", s.ID, r.Key)
				}
			}
		}
		for _, m := range reg.Premises {
			premises++
			if len(m.Fires) == 0 || len(m.Not) == 0 {
				t.Errorf("the premise %s has %d examples for it and %d against", m.ID, len(m.Fires), len(m.Not))
			}
			if ids[m.Sensor] == "" && m.Sensor != "" {
				found := slices.ContainsFunc(reg.Sensors, func(s *spec.Sensor) bool {
					if s.ID != m.Sensor {
						return false
					}
					_, ok := s.Value(m.Key)
					return ok
				})
				if !found {
					t.Errorf("the premise %s asks %s for %s", m.ID, m.Sensor, m.Key)
				}
			}
		}
	}
	if premises < 60 {
		t.Errorf("only %d premises", premises)
	}
	for _, n := range spec.Probes() {
		if !slices.Contains(probe.Names(), n) {
			t.Errorf("there is no probe %s", n)
		}
	}
	if len(probe.Names()) != len(spec.Probes()) {
		t.Errorf("%d probes are implemented, %d can be named", len(probe.Names()), len(spec.Probes()))
	}
}

// Ports and processes, with real ones: ours, another project's, none.
func TestPorts(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("there is no process table here")
	}
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("python3 is not installed")
	}
	shopRoot, other := shop(t, map[string]string{"a.js": "x"}), shop(t, nil)
	listen := func(dir string) (string, string) {
		cmd := exec.Command(python, "-I", "-S", "-c", "import socket,sys\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(1); print(s.getsockname()[1], flush=True); sys.stdin.read()")
		cmd.Dir = dir
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		b := make([]byte, 16)
		n, err := io.ReadAtLeast(out, b, 2)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b[:n])), strconv.Itoa(cmd.Process.Pid)
	}
	mine, pid := listen(shopRoot)
	foreign, foreignPid := listen(other)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, free, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	r := withPacks(t, shopRoot, "everyday")
	p := &project{t: t, root: shopRoot, cwd: shopRoot, env: map[string]string{}, view: r.View(shopRoot), run: NewRunner(RunnerOptions{Permit: r.Permit})}
	for _, c := range []struct{ sensor, claim, want string }{
		{"ports.owner", "port " + mine + " is in use", "confirmed"},
		{"ports.owner", "port " + mine + " is free", "contradicted"},
		{"ports.owner", "port " + free + " is free", "confirmed"},
		{"ports.owner", "port " + free + " is in use", "contradicted"},
		{"ports.owner", "the process on port " + mine + " belongs to this project", "confirmed"},
		{"ports.owner", "the process on port " + foreign + " belongs to this project", "contradicted"},
		{"ports.owner", "the process on port " + free + " belongs to this project", "inconclusive"},
		{"ports.owner", "the server listens on port " + free, "unjudged"},
		// What is not known to load its sources once is never called stale.
		{"proc.fresh", "the server on port " + mine + " runs the latest code", "inconclusive"},
		{"proc.fresh", "the server on port " + free + " runs the latest code", "inconclusive"},
	} {
		if got, why := p.judge(c.sensor, c.claim); got != c.want {
			t.Errorf("%s: %s, want %s (%s)", c.claim, got, c.want, why)
		}
	}
	s, _ := p.view.Lookup("ports.owner")
	for of, want := range map[string]string{pid: "yes", foreignPid: "no"} {
		rd := p.run.Run(t.Context(), []Request{{Sensor: s, Params: map[string]string{"pid": of}, Root: shopRoot, Cwd: shopRoot}})[0]
		for _, v := range rd.Evidence.Values {
			if v.Key == "in_project" && v.Text != want {
				t.Errorf("process %s in the project: %q, want %s", of, v.Text, want)
			}
		}
	}
}

func BenchmarkEveryday(b *testing.B) {
	all, err := packs.All()
	if err != nil {
		b.Fatal(err)
	}
	top, err := filepath.Abs("..")
	if err != nil {
		b.Fatal(err)
	}
	run := NewRunner(RunnerOptions{})
	for _, f := range all[0].Files {
		reg, problems := spec.Parse(f.Name, "pack", f.Data)
		if len(problems) > 0 {
			b.Fatal(problems[0])
		}
		for _, s := range reg.Sensors {
			b.Run(s.ID, func(b *testing.B) {
				for b.Loop() {
					run.Run(b.Context(), []Request{{Sensor: s, Draft: true, Claim: "the file go.mod exists on port 4711, the function `gjson.GetByte` and MY_NAME", Root: top, Cwd: top, Env: os.LookupEnv}})
				}
			})
		}
	}
}
