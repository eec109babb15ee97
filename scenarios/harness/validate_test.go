package harness

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, s := range embedded(t) {
		t.Run(s.ID, func(t *testing.T) {
			t.Parallel()
			skipMissing(t, s)
			rep, err := Validate(t.Context(), s, self(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range rep.Checks {
				if !c.OK() {
					t.Errorf("round %d %s: got %s, want %s: %s", c.Round, c.Name, c.Got, c.Want, c.More)
				}
			}
			if !rep.OK() || len(rep.Checks) < 2*10 || len(rep.Warnings) > 0 {
				t.Errorf("%d checks, ok %v, warnings %v, %d ms", len(rep.Checks), rep.OK(), rep.Warnings, rep.Millis)
			}
		})
	}
}

func TestEffectsWarnings(t *testing.T) {
	w := effectsWarnings([]byte("version: 1\nsensors:\n  - id: a.b\n    command: [x]\n  - id: c.d\n    effects: none\n    command: [x]\n"))
	if len(w) != 1 || !strings.Contains(w[0], "a.b") {
		t.Errorf("warnings %v", w)
	}
}
