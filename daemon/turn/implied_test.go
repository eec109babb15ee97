package turn

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

const premise = `premises:
  - id: edge.takes-uploads
    on_action: { program: %s, effect: ">= mutate" }
    claim: "the edge takes 25 MB"
    sensor: edge.limit
    key: limit
    operator: ">="
    value: 25MB
    on_false: %s
    on_unknown: %s
    examples: { fires: ["%s"], not: ["echo %s"] }
`

// TestImpliedPremises: what a call takes for granted is measured without asking
// the model, whatever was declared; what follows is as its definition says, and
// a premise that stands lets out nothing that the action gate asks about.
func TestImpliedPremises(t *testing.T) {
	for _, tc := range []struct {
		name, command, onFalse, onUnknown string
		value, fails                      string
		attended                          bool
		want                              lemma.Decision
		calls                             int
		says                              string
	}{
		{"it stands", "npm install zod", "hold", "annotate", "30m", "", true, lemma.DecReleased, 1, ""},
		{"false, hold", "npm install zod", "hold", "annotate", "1m", "", true, lemma.DecHeld, 0, "the edge takes 25 MB"},
		{"false, deny", "npm install zod", "deny", "annotate", "1m", "", true, lemma.DecBlocked, 0, "limit = 1m"},
		{"false, annotate", "npm install zod", "annotate", "annotate", "1m", "", true, lemma.DecAnnotated, 1, ""},
		{"false, correct, over and over", "npm install zod", "correct", "annotate", "1m", "", true, lemma.DecBlocked, 0, "corrected several times"},
		{"unknown, annotate", "npm install zod", "hold", "annotate", "", sensors.ReasonPermission, true, lemma.DecAnnotated, 1, ""},
		{"unknown, hold", "npm install zod", "hold", "hold", "", sensors.ReasonPermission, true, lemma.DecHeld, 0, "could not run"},
		{"unknown, release", "npm install zod", "hold", "release", "", sensors.ReasonPermission, true, lemma.DecReleased, 1, ""},
		{"it stands, and destroys", "rm -rf data", "hold", "annotate", "30m", "", true, lemma.DecHeld, 0, "Wants:    rm -rf data"},
		{"it stands, and destroys, nobody there", "rm -rf data", "hold", "annotate", "30m", "", false, lemma.DecBlocked, 0, "Wants:    rm -rf data"},
		{"unknown, and destroys", "rm -rf data", "hold", "release", "", sensors.ReasonPermission, true, lemma.DecHeld, 0, "Assumed:  the edge takes 25 MB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			program := strings.Fields(tc.command)[0]
			text := registry + fmt.Sprintf(premise, program, tc.onFalse, tc.onUnknown, tc.command, tc.command)
			reg, problems := spec.Parse("sensors.yaml", "user", []byte(text), verdict.CheckExamples)
			if len(problems) > 0 {
				t.Fatal(spec.Explain("sensors.yaml", []byte(text), problems))
			}
			r := acting(t, wire.Chat, false, always(tc.command))
			r.view = &sensors.View{Sensors: reg.Sensors, Premises: reg.Premises, Version: "v"}
			r.value, r.fails = tc.value, tc.fails
			r.set.HoldsPerHour, r.set.HoldsPerDay = 5, 5
			r.set.DeclareMaxPerTurn = 0 // nothing is declared, below destroy
			r.Attended = func() bool { return tc.attended }
			answer := r.answer
			r.answer = func(n int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(wire.Chat, body, `{"plan_summary":"p","lemmas":[]}`)
				}
				return answer(n, body)
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			out, err := r.request(wire.Chat, chatRequest(false, true, user("go on with it")), func(q *Request) { q.Scope.Root, q.Scope.Cwd = dir, dir })
			if err != nil {
				t.Fatal(err)
			}
			ans := readClient(t, wire.Chat, false, out.buf.Bytes())
			if out.headers.Decision != tc.want || len(ans.Calls) != tc.calls || !strings.Contains(ans.Text, tc.says) {
				t.Errorf("decision %s with %d calls, want %s with %d and %q; %s", out.headers.Decision, len(ans.Calls), tc.want, tc.calls, tc.says, ans.Text)
			}
			b, ok := entry[lemma.ActionDecided](r, out.headers.Turn)
			if !ok || len(b.Premises) != 1 || !strings.HasPrefix(b.Premises[0], "edge.takes-uploads ") {
				t.Errorf("entry %+v", b)
			}
			if j, ok := entry[lemma.ClaimJudged](r, out.headers.Turn); !ok || j.Origin != "implied" {
				t.Errorf("judged %+v", j)
			}
			r.verifyLedger()
		})
	}
}
