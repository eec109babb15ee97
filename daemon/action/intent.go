package action

import (
	"regexp"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// escalateIntent finds out whether an action asks or acts (I-195, B10). It only
// goes one way: what acts never counts as a question, whatever it calls itself.
// A command or a call of a tool acts unless it is marked as a question and only
// looks; a text asks until its shape says that it is a command.
func escalateIntent(w *weighing) error {
	w.asks = w.action.Mode == "ask" || w.action.Mode == "" && w.read.Kind == kindText
	if !w.asks {
		return nil
	}
	say := func(tag, why string) {
		w.asks = false
		w.signal(Signal{Stage: "intent_escalation", Tag: tag, State: Allow, Reason: why})
	}
	if w.read.Kind != kindText {
		if w.effect.AtLeast(shell.Mutate) {
			say("procedural_command_detected", "it is called a question and changes something")
		}
		return nil
	}
	text := w.action.Raw
	if metaQuestion.MatchString(text) && !strings.ContainsAny(text, "\n;|&`") {
		return nil // what does … do?
	}
	for _, c := range w.read.Shell.Commands {
		if c.Effect.AtLeast(shell.Destroy) && shell.KnownProgram(c.Program()) {
			say("procedural_command_detected", "the text reads as a command that destroys")
			break
		}
	}
	for _, s := range shapes {
		if s.re.MatchString(text) {
			say(s.tag, s.why)
		}
	}
	if !w.asks {
		return nil
	}
	for _, c := range w.read.Shell.Commands {
		if len(c.Argv) > 1 && shell.KnownProgram(c.Program()) && strings.ContainsAny(strings.Join(c.Argv[1:], " "), "-/.") && !strings.Contains(text, "?") {
			say("binary_with_arguments", "the text begins with a program and its arguments: "+c.Program())
			return nil
		}
	}
	return nil
}

// setMode picks the thresholds: an action whose intent could not be found out acts.
func setMode(w *weighing) error {
	w.mode = Operative
	if w.asks {
		w.mode = Consultive
	}
	return nil
}

var metaQuestion = regexp.MustCompile(`(?i)^\s*(?:what|why|how|when|which|who|is|are|does|do|can|could|should|would|explain|describe|tell me|was|wie|warum|que|qué|pourquoi|comment)\b`)

var shapes = [...]struct {
	tag, why string
	re       *regexp.Regexp
}{
	{"command_substitution", "the text holds a command substitution", regexp.MustCompile("\\$\\([^)]+\\)|`[^`\n]*[ /][^`\n]*`")},
	{"pipe_to_shell", "the text pipes into a shell", regexp.MustCompile(`\|\s*(?:sudo\s+)?(?:ba|z|da|k|a)?sh\b`)},
	{"redirect_to_path", "the text redirects into a file", regexp.MustCompile(`(?:^|\s)>{1,2}\s*[~/.\w]+/[^\s]+`)},
	{"device_operand", "the text names a device", regexp.MustCompile(`/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|loop|mapper)`)},
	{"privilege_escalation", "the text asks for root", regexp.MustCompile(`(?:^|[;&|]\s*)(?:sudo|doas|pkexec|su)\s+\S`)},
}
