package action

import (
	"slices"

	"gettier.dev/gettierd/daemon/action/shell"
)

// capabilityGate asks whether the actor's role has the tool and the operation
// (I-199, B6). A tool that nobody knows is confirmed, not denied.
func capabilityGate(w *weighing) error {
	if !w.operates() {
		return nil
	}
	c := w.policy.Capabilities
	name, listedActor := c.Actors[w.action.Actor]
	if !listedActor {
		name = c.Default
	}
	role, ok := c.Roles[name]
	switch op := w.operation(); {
	case !ok && name == "":
		w.signal(Signal{Stage: "capability_gate", Tag: "unknown_actor", Score: 90, Confidence: 95, State: Allow, Reason: "no role is given to this actor"})
	case !ok:
		w.signal(Signal{Stage: "capability_gate", Tag: "unknown_role", Score: 92, Confidence: 95, State: Allow, Reason: "the actor's role is not defined"})
	case !listed(role.Tools, w.toolNames()):
		w.signal(Signal{Stage: "capability_gate", Tag: "capability_tool_denied", Score: 95, Confidence: 95, State: Allow, Reason: "role " + name + " has no tool " + shell.OneLine(w.toolNames()[0], 80)})
	case !slices.Contains(role.Operations, op):
		w.signal(Signal{Stage: "capability_gate", Tag: "capability_operation_denied", Score: 90, Confidence: 90, State: Allow, Reason: "role " + name + " has no operation " + op})
	}
	if w.read.Kind == "unknown" {
		w.signal(Signal{Stage: "capability_gate", Tag: tagUnknownTool, Score: 50, Confidence: 90, State: RequireConfirm, Reason: "nobody knows what the tool " + shell.OneLine(w.action.Tool, 80) + " does"})
	}
	return nil
}

const tagUnknownTool = "capability_unknown"

// operation is what kind of thing an action does.
func (w *weighing) operation() string {
	switch {
	case w.effect.AtLeast(shell.Destroy):
		return "delete"
	case w.read.Kind == "http" || w.read.Kind == "browser":
		return "request"
	case w.effect == shell.ReadOnly:
		return "read"
	case w.read.Kind == "shell" || w.read.Kind == kindText:
		return "command"
	}
	return "write"
}
