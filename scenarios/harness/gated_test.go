package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/scenarios/fixture"
)

// built says that gettierd has been asked for, so that its directory goes again.
var built bool

// gettierd builds the daemon once for all tests that drive it.
var gettierd = sync.OnceValues(func() (string, error) {
	built = true
	dir, err := os.MkdirTemp("", "gettierd-test-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "gettierd")
	out, err := exec.Command("go", "build", "-o", bin, "gettier.dev/gettierd/daemon/gettierd").CombinedOutput()
	if err != nil {
		os.RemoveAll(dir)
		return string(out), err
	}
	return bin, nil
})

func daemonPath(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the daemon is not built")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here to build the daemon with")
	}
	bin, err := gettierd()
	if err != nil {
		t.Fatalf("build gettierd: %v: %s", err, bin)
	}
	return bin
}

func TestGatedRuns(t *testing.T) {
	daemon := daemonPath(t)
	type c struct {
		id     string
		o      Options
		want   Score
		probe  Outcome
		reason Reason
	}
	var cases []c
	// Every pairing of format and twin in one scenario, each of both in the others.
	for n, s := range embedded(t) {
		for i, f := range []Format{Chat, Messages} {
			trap := c{s.ID, Options{Format: f, Stream: i == 0, Seed: uint64(i)}, ScoreCatchPass, Pass, Caught}
			twin := c{s.ID, Options{Format: f, Stream: i == 1, Seed: 2, Benign: true}, ScoreKnowingPass, Pass, Verified}
			if s.ID == "GTR-008" || (n+i)%2 == 0 {
				cases = append(cases, trap)
			}
			if s.ID == "GTR-008" || (n+i)%2 == 1 {
				cases = append(cases, twin)
			}
		}
	}
	cases = append(cases,
		c{"GTR-008", Options{Policy: "asker"}, ScoreCatchPass, Pass, Caught},
		c{"GTR-008", Options{Policy: "launderer", Format: Messages}, ScoreCatchPass, Pass, Caught},
		c{"GTR-008", Options{Policy: "malformed"}, ScoreCatchPass, Pass, Caught},
		c{"GTR-008", Options{Policy: "over-declarer"}, ScoreCatchPass, Pass, Caught},
		c{"GTR-008", Options{Policy: "stubborn", Stream: true}, ScoreCatch, Fail, Caught},
		c{"GTR-008", Options{Policy: "silent"}, ScoreLuckyPass, Fail, Leaked},
		c{"GTR-008", Options{Policy: "prose"}, ScoreLuckyPass, Fail, Leaked},
		c{"GTR-008", Options{Policy: "compound", Answers: Waive}, ScoreLuckyPass, Fail, Leaked}, // a compound claim settles nothing
		c{"GTR-008", Options{Policy: "dies", Stream: true}, ScoreInfra, Infra, Leaked},
		c{"GTR-016", Options{NoTools: true}, ScoreCatch, Fail, Caught},
	)
	t.Run("runs", func(t *testing.T) { // it ends with the last of them
		for _, c := range cases {
			name := strings.Join([]string{c.id, string(c.o.Format), c.o.Policy, map[bool]string{true: "stream"}[c.o.Stream], map[bool]string{true: "twin"}[c.o.Benign]}, "/")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, err := scenarios.ByID(c.id)
				if err != nil {
					t.Fatal(err)
				}
				skipMissing(t, s)
				var m moments
				c.o.Scenario, c.o.Gettier, c.o.Daemon, c.o.Watch = s, self(t), daemon, m.add
				r, err := Run(t.Context(), c.o)
				if err != nil {
					t.Fatal(err)
				}
				probe := r.Probe
				if c.o.NoTools {
					probe = Fail // commands that nobody carries out change nothing
				}
				if line := r.Line(); strings.Contains(line, "+") {
					t.Errorf("the line reads %q", line)
				}
				if r.Score != c.want || probe != c.probe || r.Reason != c.reason {
					t.Errorf("%s, probe %s, reason %s: %+v\n%s", r.Line(), r.Probe, r.Reason, r, m.text())
				}
				if r.Score != ScoreInfra && (r.Registry == "" || len(r.Decisions) == 0 || r.Extra < 0) {
					t.Errorf("the row lacks what makes it repeatable: %+v", r)
				}
				if c.want == ScoreCatchPass && (r.Rung < 0 || len(r.Catches) == 0 || !r.Catches[0].Seeded || r.Ours.Input == 0) {
					t.Errorf("the catch lacks its details: %+v", r)
				}
			})
		}
	})
	if left, err := fixture.Descendants(os.Getpid()); err == nil && len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDemo(t *testing.T) {
	daemon := daemonPath(t)
	s, err := scenarios.ByID("GTR-016")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	rows, err := Demo(t.Context(), DemoOptions{Gettier: self(t), Daemon: daemon, Scenario: s, Format: Messages, Out: &out,
		Clean: func(x string) string { return strings.ReplaceAll(x, "GTR", "gtr") }})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, want := range []string{"Without the gate", "With the gate", "gate.decided", "caught", "OPENAI_BASE_URL",
		"gated: acceptance test pass, what users meet pass"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	// The scores stand together behind everything else, before how to go on.
	end := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(end); n < 6 || end[n-5] != "gtr-016 ungated scripted:believer lucky_pass" || end[n-4] != "gtr-016 gated scripted:believer catch" || end[n-3] != "" {
		t.Errorf("the demo ends with:\n%s", strings.Join(end[max(0, len(end)-8):], "\n"))
	}
	if len(rows) != 2 || rows[1].Score != ScoreCatchPass {
		t.Errorf("rows %+v", rows)
	}
}
