package sensors

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// TestElsewhere holds every rule of every pack against claims that are not about
// what it measures, with readings that would contradict them if they were.
func TestElsewhere(t *testing.T) {
	raw, err := os.ReadFile("testdata/elsewhere.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, err := packs.All()
	if err != nil {
		t.Fatal(err)
	}
	rules, caught := 0, 0
	for _, p := range all {
		for _, f := range p.Files {
			reg, problems := spec.Parse(f.Name, "pack", f.Data)
			if reg == nil {
				t.Fatal(problems)
			}
			for _, s := range reg.Sensors {
				for i := range s.Judge {
					rules++
					alone := *s
					alone.Judge = s.Judge[i : i+1]
					at := slices.IndexFunc(s.Extract, func(e spec.Extract) bool { return e.Name == s.Judge[i].Key })
					judged := func(claim, reading string) lemma.Verdict {
						ev := spec.Evidence{Sensor: s.ID, Values: []spec.Value{extract.Typed(&s.Extract[at], reading)}}
						return verdict.Judge(verdict.Claim{Text: claim}, &alone, ev).Verdict
					}
					for claim := range strings.Lines(string(raw)) {
						if claim = strings.TrimSpace(claim); claim == "" || claim[0] == '#' {
							continue
						}
						for _, reading := range []string{"yes", "no", "0", "1", "other", "9.9.9", "zzz.example", "1m", "100"} {
							if judged(claim, reading) == lemma.Contradicted {
								t.Errorf("%s rule %d, %s = %s: %s", s.ID, i+1, s.Judge[i].Key, reading, claim)
							}
						}
					}
					for _, x := range s.Judge[i].Examples { // the rules do catch what is about here
						if judged(x.Claim, x.Measured) == lemma.Contradicted {
							caught++
							break
						}
					}
				}
			}
		}
	}
	if rules < 60 || caught < rules*3/4 {
		t.Errorf("%d of %d rules contradict anything", caught, rules)
	}
}
