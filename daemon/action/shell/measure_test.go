package shell

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestCorpora measures the reader on labelled commands that lie outside of the
// repository, in the folder GETTIER_CASES. Rows of guards.disputed.json are
// counted apart. Without the folder there is nothing to measure.
func TestCorpora(t *testing.T) {
	dir := os.Getenv("GETTIER_CASES")
	if dir == "" {
		t.Skip("GETTIER_CASES names no folder of labelled commands")
	}
	disputed := map[string]bool{}
	var ds []struct{ Command string }
	raw, err := os.ReadFile(filepath.Join(dir, "guards.disputed.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &ds); err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		disputed[d.Command] = true
	}
	for _, name := range []string{"guards.dev", "tldr.dev", "nl2bash.dev"} {
		f, err := os.Open(filepath.Join(dir, name+".jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var deny, caught, allow, flagged, benign, proven, apart int
		effects := map[Effect]int{}
		for sc := bufio.NewScanner(z); sc.Scan(); {
			var r struct{ Command, Expected, Category string }
			if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			got := Read(r.Command)
			effects[got.Effect]++
			switch {
			case disputed[r.Command]:
				apart++
				t.Logf("disputed %s: %q is %s by %s", r.Expected, r.Command, got.Effect, got.Rule)
			case r.Expected == "deny", r.Expected == "destructive-by-description":
				if deny++; got.Effect.AtLeast(Opaque) {
					caught++
				} else {
					t.Logf("MISSED %q: %s by %s [%s]", r.Command, got.Effect, got.Rule, r.Category)
				}
			case r.Expected == "allow", r.Expected == "benign":
				if benign++; got.Effect == ReadOnly {
					proven++
				}
				if allow++; got.Effect.AtLeast(Opaque) {
					flagged++
					t.Logf("FLAGGED %q: %s by %s [%s]", r.Command, got.Effect, got.Rule, r.Category)
				}
			case name == "nl2bash.dev": // unlabelled, all from people's daily work
				if benign++; got.Effect == ReadOnly {
					proven++
				}
			case os.Getenv("GETTIER_CASES_ALL") != "":
				t.Logf("%s %q: %s by %s: %s", name, r.Command, got.Effect, got.Rule, got.Why)
			}
		}
		t.Logf("%s: recall %d/%d, false flags %d/%d, proven read_only %d/%d, disputed %d, effects %v", name, caught, deny, flagged, allow, proven, benign, apart, effects)
		_, _ = z.Close(), f.Close()
	}
}
