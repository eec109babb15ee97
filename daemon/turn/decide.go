package turn

import (
	"context"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
)

// Rule asks the action gate about an action that stands in no answer: of a hook,
// of a tool server, of whoever asks on the socket. What it says is on the chain
// when it returns; one that cannot be recorded is refused (06, fail closed).
func (e *Engine) Rule(ctx context.Context, a action.Action) action.Decision {
	d := e.decideAction(a, time.Time{})
	r := &ruled{d: d, phase: e.phase(), call: wire.Call{Name: a.Tool, Args: a.Args}}
	switch {
	case a.Command != "":
		r.call = wire.Call{Name: "command", Args: []byte(a.Command)}
		r.act.Summary = shell.OneLine(a.Command, maxValueText)
	case len(a.Argv) > 0:
		r.call = wire.Call{Name: "argv", Args: []byte(strings.Join(a.Argv, "\x00"))}
		r.act.Summary = shell.OneLine(strings.Join(a.Argv, " "), maxValueText)
	default:
		r.act = shell.Tool(a.Tool, a.Args)
	}
	r.act.Effect = d.Effect
	if len(d.Findings) > 0 {
		r.act.Rule = d.Findings[0].Rule
	}
	if _, err := e.Store.Append(ctx, ledger.Draft{Body: e.actionBody(a.Cwd, r, string(d.State), "asked by "+cutText(e.Redact(a.Actor), maxValueText))}); err != nil {
		d.Signals = append(d.Signals, action.Signal{Stage: "audit", Tag: "fail_closed:audit", Score: 100, State: action.Escalate, Reason: "the ledger cannot record this decision"})
		if d.State.Rank() < action.Escalate.Rank() {
			d.State, d.Reason = action.Escalate, "the ledger cannot record this decision"
		}
		d.Allowed, d.RiskScore = false, 100
	}
	return d
}

func (e *Engine) phase() string {
	if p := e.Settings().Enforce; p != "" {
		return p
	}
	return EnforceFull
}
