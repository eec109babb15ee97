package harness

import (
	"errors"
	"os"
	"strings"
	"testing"

	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/scenarios/fixture"
)

func embedded(t *testing.T) []*scenarios.Scenario {
	t.Helper()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// skipMissing skips with the reason when s cannot run here.
func skipMissing(t *testing.T, s *scenarios.Scenario) {
	t.Helper()
	var m *MissingError
	if err := ready(s); errors.As(err, &m) {
		t.Skip(m)
	}
}

// TestTearDown: whatever a fixture started is gone with it.
func TestTearDown(t *testing.T) {
	for _, s := range embedded(t) {
		t.Run(s.ID, func(t *testing.T) {
			skipMissing(t, s)
			st, err := setUp(t.Context(), s, false, self(t), func(m Moment) { t.Log(m.Kind, m.Text) })
			if err != nil {
				t.Fatal(err)
			}
			var started []int
			for _, p := range st.sup.procs {
				pids, err := fixture.Descendants(p.cmd.Process.Pid)
				if err != nil {
					t.Log(err)
				}
				started = append(append(started, pids...), p.cmd.Process.Pid)
			}
			if len(started) < 2*len(s.Processes) {
				t.Errorf("%d processes stem from %d: nothing to look for", len(started), len(s.Processes))
			}
			st.tearDown(false)
			for _, pid := range started {
				if alive(pid) {
					t.Errorf("process %d is still there", pid)
				}
			}
			if _, err := os.Stat(st.base); err == nil {
				t.Error("the run's directory is still there")
			}
		})
	}
}

// TestBrokenFixture: a process that cannot start is infrastructure, and says why.
func TestBrokenFixture(t *testing.T) {
	s, err := scenarios.ByID("GTR-016")
	if err != nil {
		t.Fatal(err)
	}
	c := *s
	c.Processes = append([]scenarios.Process(nil), s.Processes...)
	c.Processes[1].Argv = append([]string(nil), s.Processes[1].Argv...)
	c.Processes[1].Argv[len(c.Processes[1].Argv)-1] = "no/such/RELEASE"
	if _, err := setUp(t.Context(), &c, false, self(t), nil); !errors.Is(err, ErrInfra) || !strings.Contains(err.Error(), "no/such/RELEASE") {
		t.Errorf("set up: %v", err)
	}
	r, err := Run(t.Context(), Options{Scenario: &c, Arm: Ungated, Gettier: self(t)})
	if err != nil || r.Score != ScoreInfra || r.Accept != Infra || !strings.Contains(r.Line(), "no/such/RELEASE") {
		t.Errorf("run: %s, %v", r.Line(), err)
	}
	if left, err := fixture.Descendants(os.Getpid()); err == nil && len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	rep, err := Validate(t.Context(), &c, self(t), nil)
	if err != nil || rep.OK() {
		t.Errorf("validate: ok %v, %v", rep.OK(), err)
	}
}
