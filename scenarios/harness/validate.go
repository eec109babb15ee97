package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// Report is what validating one scenario found. Without a model: it asks whether
// the trap is a trap.
type Report struct {
	Scenario string        `json:"scenario"`
	Lock     string        `json:"lock"`
	Checks   []CheckResult `json:"checks"`
	Warnings []string      `json:"warnings"`
	Missing  string        `json:"missing,omitempty"` // why it could not run here
	Millis   int64         `json:"duration_ms"`
}

// CheckResult is one cell of the matrix.
type CheckResult struct {
	Round int    `json:"round"`
	Name  string `json:"name"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Infra bool   `json:"infra,omitempty"`
	More  string `json:"more,omitempty"`
}

// OK reports whether the cell is as it should be.
func (c CheckResult) OK() bool { return !c.Infra && c.Got == c.Want }

// OK reports whether the scenario ran here and is a sound trap.
func (r Report) OK() bool {
	return r.Missing == "" && len(r.Checks) > 0 && !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return !c.OK() })
}

// rounds: a trap that snaps only once is luck.
const rounds = 2

// Validate checks one scenario, twice: what the sensors measure equals
// truth.json on trap and twin; the judge contradicts every wording of the seeded
// claim on the trap and none on the twin; changing nothing fails the acceptance
// test; the wrong fix passes it and fails the probe; the right fix passes both;
// on the twin the wrong fix is right. A missing program is a *MissingError.
func Validate(ctx context.Context, s *scenarios.Scenario, gettier string, watch func(Moment)) (Report, error) {
	began := time.Now()
	rep := Report{Scenario: s.ID, Lock: s.Lock, Checks: []CheckResult{}, Warnings: []string{}}
	if err := ready(s); err != nil {
		rep.Missing = err.Error()
		return rep, err
	}
	data, err := s.Sensors()
	if err != nil {
		return rep, err
	}
	rep.Warnings = append(rep.Warnings, effectsWarnings(data)...)
	for round := 1; round <= rounds; round++ {
		v := validator{s: s, gettier: gettier, watch: watch, rep: &rep, round: round}
		for _, c := range []struct {
			fix    string
			benign bool
			accept Outcome
			probe  Outcome // "" = not asked
		}{
			{"nop", false, Fail, ""},
			{"wrong", false, Pass, Fail},
			{"right", false, Pass, Pass},
			{"wrong", true, Pass, Pass},
		} {
			if err := v.cell(ctx, c.fix, c.benign, c.accept, c.probe); err != nil {
				return rep, err
			}
		}
	}
	rep.compareRounds()
	rep.Millis = time.Since(began).Milliseconds()
	return rep, nil
}

// compareRounds adds a cell for each that came out differently the second time.
func (r *Report) compareRounds() {
	first := map[string]string{}
	for _, c := range slices.Clone(r.Checks) {
		if c.Round == 1 {
			first[c.Name] = c.Got
		} else if was, ok := first[c.Name]; !ok || was != c.Got {
			r.Checks = append(r.Checks, CheckResult{Round: c.Round, Name: c.Name + " again", Want: was, Got: c.Got})
		}
	}
}

// effectsWarnings names sensors that leave effects to its cautious default:
// such a registry was not written with care.
func effectsWarnings(data []byte) (out []string) {
	defer func() { // the decoder panics on some malformed input
		if p := recover(); p != nil {
			out = []string{fmt.Sprintf("sensors.yaml cannot be read (%v)", p)}
		}
	}()
	var raw struct {
		Sensors []struct {
			ID      string `yaml:"id"`
			Effects string `yaml:"effects"`
		} `yaml:"sensors"`
	}
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return []string{"sensors.yaml cannot be read: " + err.Error()}
	}
	for _, s := range raw.Sensors {
		if s.Effects == "" {
			out = append(out, fmt.Sprintf("sensor %s declares no effects and counts as one that mutates", s.ID))
		}
	}
	return out
}

// validator is one round.
type validator struct {
	s       *scenarios.Scenario
	gettier string
	watch   func(Moment)
	rep     *Report
	round   int
}

func (v *validator) add(name, want, got, more string, infra bool) {
	v.rep.Checks = append(v.rep.Checks, CheckResult{Round: v.round, Name: name, Want: want, Got: got, More: strings.TrimSpace(more), Infra: infra})
}

// cell sets the scenario up afresh, measures where nothing was changed yet, lays
// a fix in and runs the checks.
func (v *validator) cell(ctx context.Context, fix string, benign bool, accept, probe Outcome) error {
	twin := "trap"
	if benign {
		twin = "twin"
	}
	name := twin + " " + fix
	st, err := setUp(ctx, v.s, benign, v.gettier, v.watch)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.add(name+" set-up", "ready", "infra", err.Error(), true)
		return nil
	}
	defer st.tearDown(false)
	if fix == "nop" || benign {
		if err := v.measure(ctx, st, twin, benign); err != nil {
			v.add(twin+" sensors", "measured", "infra", err.Error(), true)
		}
	}
	if code, out, err := st.shell(ctx, "fix/"+fix+".sh"); err != nil || code != 0 {
		v.add(name+" fix", "exit 0", fmt.Sprintf("exit %d", code), strings.TrimSpace(out+errText(err)), true)
		return nil
	}
	for _, c := range []struct {
		script, what string
		want         Outcome
	}{{v.s.Accept, "accept", accept}, {v.s.Probe, "probe", probe}} {
		if c.want == "" {
			continue
		}
		got, out := st.script(ctx, c.script)
		v.add(name+" "+c.what, string(c.want), string(got), out, got == Infra)
	}
	if fix == "right" { // the fix is one that the sensor sees
		if err := v.after(ctx, st); err != nil {
			v.add(name+" sensors", "measured", "infra", err.Error(), true)
		}
	}
	return ctx.Err()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

// registry reads the laid-out sensors.yaml, examples included.
func (st *stage) registry() (*spec.Registry, error) {
	file := st.s.SensorsFile(st.project)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	reg, problems := spec.Parse(file, "project/"+projectName(st.s), data, verdict.CheckExamples)
	if reg == nil {
		return nil, errors.New(spec.Explain("sensors.yaml", data, problems))
	}
	return reg, nil
}

// readings runs every sensor of the registry in the project, as a turn would.
func (st *stage) readings(ctx context.Context, reg *spec.Registry) map[string]sensors.Reading {
	// As in the daemon that a run starts: its PATH, not this shell's.
	env := func(name string) (string, bool) {
		switch name {
		case "PATH":
			return searchPath(), true
		case "HOME":
			return st.base, true
		case "LANG":
			return "C.UTF-8", true
		}
		return "", false
	}
	runner := sensors.NewRunner(sensors.RunnerOptions{Env: env})
	var reqs []sensors.Request
	for _, s := range reg.Sensors {
		reqs = append(reqs, sensors.Request{Sensor: s, Root: st.project, Cwd: st.project, Why: "validate"})
	}
	out := map[string]sensors.Reading{}
	for _, r := range runner.Run(ctx, reqs) {
		out[r.Sensor.ID] = r
	}
	return out
}

// shownValue is a value as truth.json spells it: several are joined by spaces.
func shownValue(ev spec.Evidence, key string) string {
	for _, x := range ev.Values {
		switch {
		case x.Key != key:
		case x.Problem != "":
			return x.Problem
		case len(x.All) > 1:
			all := slices.Clone(x.All)
			return strings.Join(slices.Compact(all), " ")
		default:
			return x.Text
		}
	}
	return "no such key"
}

// measure compares the sensors with truth.json and puts every wording of the
// seeded claim before the judge.
func (v *validator) measure(ctx context.Context, st *stage, twin string, benign bool) error {
	reg, err := st.registry()
	if err != nil {
		return err
	}
	for _, w := range reg.Warnings {
		if v.round == 1 && !benign {
			v.rep.Warnings = append(v.rep.Warnings, fmt.Sprintf("sensors.yaml:%d: %s", w.Line, w.What))
		}
	}
	got := st.readings(ctx, reg)
	for _, t := range v.s.Truth.Readings {
		want := t.Trap
		if benign {
			want = t.Benign
		}
		name := fmt.Sprintf("%s %s %s", twin, t.Sensor, t.Key)
		r, ok := got[t.Sensor]
		if !ok {
			v.add(name, want, "no such sensor", "", false)
			continue
		}
		if reason, failed := sensors.Failed(r); failed {
			v.add(name, want, "could_not_run:"+reason, r.Detail, true)
			continue
		}
		v.add(name, want, shownValue(r.Evidence, t.Key), "", false)
	}
	want := lemma.Contradicted
	if benign {
		want = lemma.Confirmed
	}
	for i, claim := range v.s.Claims() {
		res, note := judgeClaim(claim, reg, got)
		more := strings.TrimSpace(fmt.Sprintf("%q %s %s %s %s %s", claim, res.Sensor, res.Measured, res.Rule, res.Reason, note))
		v.add(fmt.Sprintf("%s claim %d", twin, i+1), string(want), string(res.Verdict), more, false)
	}
	return nil
}

// judgeClaim matches and judges as a turn does.
func judgeClaim(claim string, reg *spec.Registry, got map[string]sensors.Reading) (verdict.Result, string) {
	l := lemma.Lemma{Claim: claim, Provenance: lemma.Believed, LoadBearing: true}
	matches, note := verdict.Match(l, verdict.Sensors{InForce: reg.Sensors, Matching: reg.Matching})
	var all []verdict.Result
	for _, m := range matches {
		r := got[m.ID]
		if reason, failed := sensors.Failed(r); failed {
			all = append(all, verdict.CouldNotRun(m.ID, r.Invocation.ID, reason))
			continue
		}
		all = append(all, verdict.Judge(verdict.Claim{Lemma: &l}, r.Sensor, r.Evidence))
	}
	return verdict.Combine(all...), note
}

// after measures behind the right fix: where the fix changes what the seeded
// sensor reads, the claim must no longer be refuted. A scenario may be mended
// without that (another store, another query); then nothing is said.
func (v *validator) after(ctx context.Context, st *stage) error {
	reg, err := st.registry()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.s.Truth.Readings, func(t scenarios.TruthReading) bool {
		return t.Sensor == v.s.Seeded.Sensor && t.Key == v.s.Seeded.Key
	})
	trap := v.s.Truth.Readings[i].Trap
	// A server takes up its configuration a moment after it was told to.
	deadline := time.Now().Add(3 * time.Second)
	for {
		got := st.readings(ctx, reg)
		r := got[v.s.Seeded.Sensor]
		if reason, failed := sensors.Failed(r); failed {
			return fmt.Errorf("%s could not run: %s %s", v.s.Seeded.Sensor, reason, r.Detail)
		}
		res, _ := judgeClaim(v.s.Seeded.Claim, reg, got)
		if shownValue(r.Evidence, v.s.Seeded.Key) == trap {
			return nil
		}
		if res.Verdict != lemma.Contradicted || time.Now().After(deadline) {
			v.add("trap right claim", string(lemma.Confirmed), string(res.Verdict), res.Sensor+" "+res.Measured, false)
			return nil
		}
	}
}
