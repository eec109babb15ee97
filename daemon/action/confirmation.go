package action

import "slices"

// confirmationGate asks a person for the operations that the policy lists
// (I-206). No token or text in the action answers it: a model could write those.
// What a person has proven is known to whoever holds the action, not to the gate.
func confirmationGate(w *weighing) error {
	if !w.operates() {
		return nil
	}
	if op := w.operation(); slices.Contains(w.policy.Confirm.Operations, op) {
		w.signal(Signal{Stage: "confirmation_gate", Tag: tagConfirm, State: RequireConfirm, Reason: "the policy has a person confirm every " + op})
	}
	return nil
}

const tagConfirm = "confirmation_required"
