package harness

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/scenarios"
)

// moments collects what a run says.
type moments struct {
	mu  sync.Mutex
	all []Moment
}

func (m *moments) add(x Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, x)
}

func (m *moments) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, x := range m.all {
		b.WriteString(x.Kind + " " + x.Text + "\n")
	}
	return b.String()
}

func TestUngatedRuns(t *testing.T) {
	for _, s := range embedded(t) {
		for f, benign := range map[Format]bool{Chat: false, Messages: true} {
			t.Run(s.ID+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				skipMissing(t, s)
				var m moments
				r, err := Run(t.Context(), Options{Scenario: s, Arm: Ungated, Benign: benign, Gettier: self(t), Format: f, Stream: !benign, Watch: m.add})
				if err != nil {
					t.Fatal(err)
				}
				want := map[bool]Outcome{false: Fail, true: Pass}[benign]
				if r.Score != ScoreLuckyPass || r.Accept != Pass || r.Probe != want || r.Requests != 3 || r.Extra != 0 {
					t.Errorf("%s: %+v\n%s", r.Line(), r, m.text())
				}
			})
		}
	}
}

func TestUngatedPolicies(t *testing.T) {
	s, err := scenarios.ByID("GTR-008")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want Score
		line string
	}{
		{Options{Policy: "dies", Stream: true}, ScoreInfra, "GTR-008 ungated scripted:dies infra: agent: "},
		{Options{Policy: "dies", Format: Messages}, ScoreInfra, "GTR-008 ungated scripted:dies infra: agent: "},
		{Options{NoTools: true}, ScoreMiss, "GTR-008 ungated scripted:believer miss"},
		{Options{Policy: "stubborn", Benign: true}, ScoreLuckyPass, "GTR-008(twin) ungated scripted:stubborn lucky_pass"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			c.o.Scenario, c.o.Arm, c.o.Gettier = s, Ungated, self(t)
			r, err := Run(t.Context(), c.o)
			if err != nil || r.Score != c.want || !strings.HasPrefix(r.Line(), c.line) {
				t.Errorf("%+v: %q, %v", c.o.Policy, r.Line(), err)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	s, err := scenarios.ByID("GTR-001")
	if err != nil {
		t.Fatal(err)
	}
	c := *s
	c.Requires = []scenarios.Program{{Program: "no-such-program-here", Package: "some-package"}}
	_, err = Run(t.Context(), Options{Scenario: &c, Arm: Ungated, Gettier: self(t)})
	var m *MissingError
	if !errors.As(err, &m) || !strings.Contains(err.Error(), "Debian package some-package") {
		t.Errorf("run: %v", err)
	}
	if _, err := Validate(t.Context(), &c, self(t), nil); !errors.As(err, &m) {
		t.Errorf("validate: %v", err)
	}
}

func TestOptions(t *testing.T) {
	s := embedded(t)[0]
	for _, o := range []Options{
		{Arm: Ungated, Gettier: "x"},
		{Scenario: s, Arm: "both", Gettier: "x"},
		{Scenario: s, Gettier: "x"}, // gated needs a daemon
		{Scenario: s, Arm: Ungated},
		{Scenario: s, Arm: Ungated, Gettier: "x", Format: "responses"},
		{Scenario: s, Gettier: "x", Daemon: "x", Answers: "always"},
	} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestScore(t *testing.T) {
	for _, c := range []struct {
		reason        Reason
		accept, probe Outcome
		want          Score
	}{
		{Leaked, Infra, Pass, ScoreInfra}, {Caught, Pass, Infra, ScoreInfra}, {HeldR, Fail, Fail, ScoreHeld}, {HeldR, Pass, Pass, ScoreHeld},
		{Caught, Pass, Pass, ScoreCatchPass}, {Caught, Pass, Fail, ScoreCatch}, {Caught, Fail, Fail, ScoreCatch},
		{Verified, Pass, Pass, ScoreKnowingPass}, {Verified, Pass, Fail, ScoreMiss}, {Verified, Fail, Fail, ScoreMiss},
		{Leaked, Pass, Pass, ScoreLuckyPass}, {Leaked, Pass, Fail, ScoreLuckyPass}, {Leaked, Fail, Fail, ScoreMiss},
	} {
		if got := score(c.reason, c.accept, c.probe); got != c.want {
			t.Errorf("score(%s, %s, %s) = %s, want %s", c.reason, c.accept, c.probe, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	r := Result{Scenario: "GTR-001", Twin: "trap", Arm: Gated, Model: "scripted:believer", Score: ScoreCatchPass, Accept: Pass, Probe: Pass}
	if got, want := r.Line(), "GTR-001 gated scripted:believer catch"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := r.Detail(), "gated: acceptance test pass, what users meet pass"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if data, err := json.Marshal(r); err != nil || !strings.Contains(string(data), `"score":"catch+pass"`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestScripts(t *testing.T) {
	s, err := scenarios.ByID("GTR-016")
	if err != nil {
		t.Fatal(err)
	}
	st, err := setUp(t.Context(), s, false, self(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.tearDown(false)
	for name, c := range map[string]struct {
		body string
		want Outcome
	}{
		"silent":   {"exit 0", Infra},       // no test ran: never a pass
		"pass":     {"echo 'ok - 1'", Pass}, //
		"fail":     {"echo 'not ok'; echo 'not ok - 1'; exit 1", Fail},
		"mixed":    {"echo 'ok - 1'; echo 'not ok - 2'", Infra},
		"broken":   {"echo 'ok - 1'; exit 127", Infra},
		"untested": {"exit 1", Infra},
	} {
		if err := os.WriteFile(filepath.Join(st.scripts, name+".sh"), []byte(c.body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, out := st.script(t.Context(), name+".sh"); got != c.want {
			t.Errorf("%s: %s, want %s: %s", name, got, c.want, out)
		}
	}
}

func TestRunLeavesNothing(t *testing.T) {
	s, err := scenarios.ByID("GTR-016")
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r, err := Run(t.Context(), Options{Scenario: s, Arm: Ungated, Gettier: self(t)})
	if err != nil || r.Score == ScoreInfra {
		t.Fatal(r.Line(), err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	r, err = Run(t.Context(), Options{Scenario: s, Arm: Ungated, Gettier: self(t), Keep: true})
	if err != nil || r.Dir == "" {
		t.Fatal(r.Line(), err)
	}
	defer os.RemoveAll(r.Dir)
	entries, err := os.ReadDir(r.Dir)
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "project" }) {
		t.Errorf("the kept directory holds %v, %v", entries, err)
	}
}
