package harness

import (
	"errors"
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

func TestFixes(t *testing.T) {
	want := map[string][2]Outcome{"nop": {Fail, ""}, "wrong": {Pass, Fail}, "right": {Pass, Pass}}
	for _, s := range embedded(t) {
		for fix, w := range want {
			t.Run(s.ID+"/"+fix, func(t *testing.T) {
				skipMissing(t, s)
				st, err := setUp(t.Context(), s, false, self(t), func(m Moment) { t.Log(m.Kind, m.Text) })
				if err != nil {
					t.Fatal(err)
				}
				defer st.tearDown(false)
				if code, out, err := st.shell(t.Context(), "fix/"+fix+".sh"); code != 0 || err != nil {
					t.Fatalf("fix: exit %d, %v: %s", code, err, out)
				}
				accept, out := st.script(t.Context(), s.Accept)
				if accept != w[0] {
					t.Errorf("accept %s, want %s: %s", accept, w[0], out)
				}
				probe, out := st.script(t.Context(), s.Probe)
				if w[1] != "" && probe != w[1] {
					t.Errorf("probe %s, want %s: %s", probe, w[1], out)
				}
				pid := st.sup.procs[0].cmd.Process.Pid
				st.tearDown(false)
				st.sup = newSupervisor("", "", "")
				if left, _ := fixture.Descendants(pid); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}
