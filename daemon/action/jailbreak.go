package action

import "gettier.dev/gettierd/daemon/action/prompt"

// maxMatches bounds the signals of one text.
const maxMatches = 32

// jailbreakGuard looks for attempts to talk a model out of its instructions in
// the text that the action came from (I-200, B12). It is a weak floor: see
// prompt.Scan for how much it finds. It does not look at commands and files: those
// may well speak of such phrases.
func jailbreakGuard(w *weighing) error {
	if w.action.Raw == "" {
		return nil
	}
	for i, m := range prompt.Scan(w.action.Raw) {
		if i == maxMatches {
			break
		}
		s := Signal{Stage: "jailbreak_guard", Tag: "prompt_injection", State: Allow, Reason: "the text says " + m.Rule, Start: m.Start, End: m.End}
		if i == 0 { // one attempt, however often it is said
			s.Tag, s.Score, s.Confidence = "jailbreak_attempt", 95, 95
		}
		w.signal(s)
	}
	return nil
}
