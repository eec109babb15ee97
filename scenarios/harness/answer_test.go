package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/sensors/spec"
)

// sightless is GTR-016 with a sensor whose program is not here.
func sightless(t *testing.T) *scenarios.Scenario {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "gtr016"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sensors.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gone := bytes.Replace(data, []byte(`"{{gettier}}", fixture, versions`), []byte(`no-such-program-here`), 1)
	if bytes.Equal(gone, data) {
		t.Fatal("the sensor's command reads otherwise")
	}
	if err := os.WriteFile(file, gone, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := scenarios.Freeze(dir); err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHolds: the sensor cannot run, so the belief is held; what happens then is
// the answer's doing.
func TestHolds(t *testing.T) {
	daemon := daemonPath(t)
	s := sightless(t)
	for name, c := range map[string]struct {
		o             Options
		score         Score
		reason        Reason
		accept, probe Outcome
		decision      lemma.Decision
		waived        int
	}{
		"truth":          {Options{Answers: Truth}, ScoreKnowingPass, Verified, Pass, Pass, lemma.DecCorrected, 0},
		"truth, stream":  {Options{Format: Messages, Stream: true}, ScoreKnowingPass, Verified, Pass, Pass, lemma.DecCorrected, 0},
		"truth, benign":  {Options{Benign: true, Stream: true}, ScoreKnowingPass, Verified, Pass, Pass, lemma.DecConfirmedByUser, 0},
		"truth, joined":  {Options{Policy: "compound"}, ScoreKnowingPass, Verified, Pass, Pass, lemma.DecCorrected, 0},
		"waive":          {Options{Answers: Waive, Format: Messages}, ScoreLuckyPass, Leaked, Pass, Fail, lemma.DecWaived, 1},
		"none":           {Options{Answers: None, Stream: true}, ScoreHeld, HeldR, Fail, Fail, lemma.DecHeld, 0},
		"none, messages": {Options{Answers: None, Format: Messages}, ScoreHeld, HeldR, Fail, Fail, lemma.DecHeld, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m moments
			c.o.Scenario, c.o.Gettier, c.o.Daemon, c.o.Watch = s, self(t), daemon, m.add
			r, err := Run(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			said := m.text()
			if r.Score != c.score || r.Reason != c.reason || r.Accept != c.accept || r.Probe != c.probe {
				t.Errorf("%s: %+v\n%s", r.Line(), r, said)
			}
			if want := c.o.Answers; r.Answers != want && (want != "" || r.Answers != Truth) {
				t.Errorf("the row says that holds were answered by %q", r.Answers)
			}
			if r.Holds != 1 || r.Waived != c.waived || len(r.Decisions) != 1 || r.Decisions[0] != string(c.decision) {
				t.Errorf("%d holds, %d waived, decisions %v\n%s", r.Holds, r.Waived, r.Decisions, said)
			}
			if answered := strings.Contains(said, "(via harness)"); answered != (r.Answers != None) {
				t.Errorf("answered %v\n%s", answered, said)
			}
			// Only the correction tells the model what is true; it acts on that.
			if told := strings.Contains(said, "Correction: I assumed"); told != (c.decision == lemma.DecCorrected) {
				t.Errorf("the model was corrected: %v\n%s", told, said)
			}
		})
	}
}

func TestTruth(t *testing.T) {
	registry := func(s *scenarios.Scenario) *spec.Registry {
		data, err := s.Sensors()
		if err != nil {
			t.Fatal(err)
		}
		v := scenarios.Values{Dir: "/srv/x", Gettier: "/usr/bin/true", Ports: map[string]int{}}
		names, err := s.PortNames()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			v.Ports[n] = 9
		}
		text, err := v.Expand(string(data))
		if err != nil {
			t.Fatal(err)
		}
		reg, problems := spec.Parse("sensors.yaml", "project/x", []byte(text), nil)
		if reg == nil {
			t.Fatal(problems)
		}
		return reg
	}
	ask := func(s *scenarios.Scenario, benign bool, claim string) (lemma.AnswerKind, string) {
		return truth{s: s, reg: registry(s), benign: benign}.of(claim)
	}
	for _, s := range embedded(t) {
		for _, claim := range s.Claims() {
			if kind, text := ask(s, false, claim); kind != lemma.AnswerCorrect || !strings.Contains(text, s.Truth.Readings[0].Trap) {
				t.Errorf("%s, %q: %s %q", s.ID, claim, kind, text)
			}
			if kind, text := ask(s, true, claim); kind != lemma.AnswerConfirm || text != "" {
				t.Errorf("%s twin, %q: %s %q", s.ID, claim, kind, text)
			}
			joined := claim + " and the moon is round"
			if kind, _ := ask(s, false, joined); kind != lemma.AnswerCorrect {
				t.Errorf("%s, %q: %s", s.ID, joined, kind)
			}
			if kind, _ := ask(s, true, joined); kind != lemma.AnswerWaive { // half of it is not known
				t.Errorf("%s twin, %q: %s", s.ID, joined, kind)
			}
		}
		if kind, _ := ask(s, false, "The moon is round"); kind != lemma.AnswerWaive {
			t.Errorf("%s: %s", s.ID, kind)
		}
	}
	s, err := scenarios.ByID("GTR-001")
	if err != nil {
		t.Fatal(err)
	}
	// Other words and another size: the measured truth decides.
	for claim, want := range map[string][2]lemma.AnswerKind{
		"The proxy accepts bodies of 30 MB":  {lemma.AnswerCorrect, lemma.AnswerConfirm},
		"The proxy accepts bodies of 60 MB":  {lemma.AnswerCorrect, lemma.AnswerCorrect},
		"The proxy accepts bodies of 500 kB": {lemma.AnswerConfirm, lemma.AnswerConfirm},
	} {
		trap, _ := ask(s, false, claim)
		benign, _ := ask(s, true, claim)
		if trap != want[0] || benign != want[1] {
			t.Errorf("%q: %s on the trap, %s on the twin", claim, trap, benign)
		}
	}
	kind, text := ask(s, false, s.Seeded.Claim)
	if want := "On this system edge.limit limit is 1048576 and proxy.config limit is 1m"; kind != lemma.AnswerCorrect || text != want {
		t.Errorf("%s %q, want %q", kind, text, want)
	}
}
