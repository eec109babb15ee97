package action

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/prompt"
)

// principle is one rule of the constitution, its phrases cut into words.
type principle struct {
	name     string
	severity int
	phrases  [][]string
}

func newPrinciple(c Principle) principle {
	p := principle{name: c.Name, severity: c.Severity}
	for _, k := range c.Keywords {
		if words := prompt.Words(k); len(words) > 0 {
			p.phrases = append(p.phrases, words)
		}
	}
	return p
}

// lookBack is how many words before a phrase may take it back (B13).
const lookBack = 5

// constitution weighs the text that the action came from by the principles of
// the policy (I-202). A phrase that is denied ("do not …", "how to prevent …") does
// not count.
func constitution(w *weighing) error {
	semantic(w)
	if w.action.Raw == "" || len(w.policy.principles) == 0 {
		return nil
	}
	words := prompt.Words(w.action.Raw)
	worst := 0
	for _, p := range w.policy.principles {
		for _, phrase := range p.phrases {
			if !says(words, phrase) {
				continue
			}
			w.signal(Signal{Stage: "constitution", Tag: "principle:" + p.name, Score: p.severity, Confidence: 90, State: Allow, Reason: "speaks against " + p.name + ": " + strings.Join(phrase, " ")})
			if p.severity > worst {
				worst, w.violated = p.severity, p.name
			}
			break
		}
	}
	return nil
}

// says finds a phrase that nothing before it takes back.
func says(words, phrase []string) bool {
	for i := 0; i+len(phrase) <= len(words); i++ {
		match := true
		for j, p := range phrase {
			match = match && words[i+j] == p
		}
		if match && !denied(words[max(0, i-lookBack):i]) {
			return true
		}
	}
	return false
}

func denied(before []string) bool {
	for i, w := range before {
		switch w {
		case "not", "no", "never", "without", "avoid", "prevent", "don't", "dont", "stop", "against", "detect":
			return true
		case "how":
			if i+2 < len(before) && before[i+1] == "to" && (before[i+2] == "stop" || before[i+2] == "prevent") {
				return true
			}
		}
	}
	return false
}
