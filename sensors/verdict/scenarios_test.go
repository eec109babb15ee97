package verdict

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Every wording of a shipped scenario's false belief finds its sensor by the
// built-in table alone, is contradicted by the trap and not by the twin.
func TestScenarioWordings(t *testing.T) {
	dirs, err := filepath.Glob("../../scenarios/gtr*/scenario.yaml")
	if err != nil || len(dirs) == 0 {
		t.Skip("no scenarios beside the sensors")
	}
	braces := regexp.MustCompile(`\{\{(port|dir|gettier|var|nonce)[^}]*\}\}`)
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var sc struct {
				Lemma struct {
					Claim  string `yaml:"claim"`
					Sensor string `yaml:"sensor"`
				} `yaml:"seeded_lemma"`
				Scripted struct {
					Paraphrases []string `yaml:"paraphrases"`
				} `yaml:"scripted"`
			}
			var truth struct {
				Readings []struct{ Sensor, Key, Trap, Benign string }
			}
			read(t, file, &sc)
			read(t, filepath.Join(dir, "truth.json"), &truth)
			data, err := os.ReadFile(filepath.Join(dir, "sensors.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			reg, problems := spec.Parse("sensors.yaml", "project/x", braces.ReplaceAll(data, []byte("9")))
			if len(problems) > 0 {
				t.Fatalf("%v", problems)
			}
			for _, s := range reg.Sensors {
				for _, p := range CheckExamples(s) {
					t.Errorf("line %d: %s (%s)", p.Line, p.What, p.Hint)
				}
			}
			in := Sensors{InForce: reg.Sensors} // without its own phrases
			for _, claim := range append(sc.Scripted.Paraphrases, sc.Lemma.Claim) {
				l := lemma.Lemma{Claim: claim}
				got, note := Match(l, in)
				var traps, twins []Result
				for _, m := range got {
					s := byID(reg.Sensors, m.ID)
					for _, r := range truth.Readings {
						if r.Sensor == s.ID {
							e := extractOf(s, r.Key)
							traps = append(traps, Judge(Claim{Lemma: &l}, s, evidenceOf(e, r.Trap)))
							twins = append(twins, Judge(Claim{Lemma: &l}, s, evidenceOf(e, r.Benign)))
						}
					}
				}
				if trap := Combine(traps...); trap.Verdict != lemma.Contradicted {
					t.Errorf("%q (%v %s): trap %+v", claim, got, note, trap)
				}
				if twin := Combine(twins...); twin.Verdict != lemma.Confirmed {
					t.Errorf("%q: twin %+v", claim, twin)
				}
			}
		})
	}
}

func evidenceOf(e *spec.Extract, text string) spec.Evidence {
	v := extract.Typed(e, text)
	if parts := strings.Fields(text); e.Which == "all" && len(parts) > 1 {
		v = extract.Typed(e, parts[0])
		v.All = parts
	}
	return spec.Evidence{Values: []spec.Value{v}}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
