package turn

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// full is a ledger that can record nothing more.
type full struct{ prompt }

func (full) Append(context.Context, ...ledger.Draft) (ledger.Receipt, error) {
	return ledger.Receipt{}, errors.New("disk full")
}

// TestRule: what is asked outside of an answer is on the chain before it is
// answered, and is refused where it cannot be.
func TestRule(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		in    action.Action
		state action.State
		tool  string
	}{
		{action.Action{Command: "ls", Actor: "hook"}, action.Allow, "command"},
		{action.Action{Argv: []string{"rm", "-rf", "data"}}, action.RequireConfirm, "argv"},
		{action.Action{Tool: "Bash", Args: []byte(`{"command":"gettier answer 7f3"}`)}, action.Deny, "Bash"},
		{action.Action{}, action.Escalate, ""},
	} {
		before := r.led.Head().Size
		d := r.Rule(t.Context(), tc.in)
		es, err := r.led.Entries(before, 10)
		if err != nil || len(es) != 1 || es[0].Kind != string(lemma.KActionDecided) {
			t.Fatalf("%+v: entries %v %v", tc.in, es, err)
		}
		var b lemma.ActionDecided
		if err := json.Unmarshal(es[0].Body, &b); err != nil {
			t.Fatal(err)
		}
		if d.State != tc.state || b.State != string(tc.state) || b.DecisionID != d.DecisionID || b.ContextHash != d.ContextHash || b.Tool != tc.tool || len(b.Signals) == 0 {
			t.Errorf("%+v: %s, entry %+v", tc.in, d.State, b)
		}
	}
	r.Store = full{prompt{r.led}}
	if d := r.Rule(t.Context(), action.Action{Command: "ls"}); d.Allowed || d.State != action.Escalate || !d.Refused() || !strings.Contains(d.Reason, "cannot record") {
		t.Errorf("unrecorded: %+v", d)
	}
	if d := r.Rule(t.Context(), action.Action{Command: "rm -rf /"}); d.State != action.Deny {
		t.Errorf("unrecorded: %+v", d)
	}
}
