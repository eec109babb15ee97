package route

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// side recognises a client's own errands. Each tell is the start of a text at a
// known place together with the shape of the request; a text that merely holds
// such words is never enough (13.8).
func side(r *wire.Request, c Client, m codexMeta, s scanned) (Kind, string) {
	switch c {
	case Codex:
		return codexSide(r, m, s)
	case ClaudeCode:
		return claudeSide(r, s)
	case OpenCode:
		if len(r.Tools) > 0 {
			return "", ""
		}
		switch sys := firstSystem(r); {
		case strings.HasPrefix(sys, "You are a title generato"):
			return SideTitle, "title generator, no tools"
		case strings.HasPrefix(sys, "You are a context summar") && strings.HasPrefix(s.last, "Here is the conversation"):
			return SideCompaction, "context summary, no tools"
		}
	case Continue:
		if strings.HasPrefix(s.last, "Please provide a concise") && s.user == len(r.Items)-1 && (s.user > 0 || len(r.Items[s.user].Parts) > 1) {
			return SideCompaction, "Continue's summary prompt is last"
		}
		fallthrough
	default:
		// Continue's title request carries no system text that names it.
		if len(r.Tools) == 0 && s.users == 1 && len(r.Items) == 1 && r.MaxTokens == 16 && !r.Stream && strings.HasPrefix(s.last, "Given the following... p") {
			return SideTitle, "title prompt with 16 tokens, no tools"
		}
	}
	return "", ""
}

func claudeSide(r *wire.Request, s scanned) (Kind, string) {
	if len(r.Tools) == 0 && !r.Thinking && r.OutputFormat && s.users == 1 && len(r.Items) == 1 &&
		(strings.HasPrefix(s.last, "<session>\n") || strings.HasPrefix(s.last, "<conversation>\n")) {
		return SideTitle, "title with an output format, no tools"
	}
	if r.MaxTokens == 1 && !r.Stream && len(r.Items) == 1 && s.users == 1 && len(r.System) == 0 {
		return SideCountTokens, "one token asked for, no system text"
	}
	if s.user < 0 {
		return "", ""
	}
	// What follows stands in the newest user item, after which only system
	// entries may come.
	for i := s.user + 1; i < len(r.Items); i++ {
		if r.Items[i].Role != "system" {
			return "", ""
		}
	}
	switch last := s.last; {
	case strings.HasPrefix(last, tellCompaction) && len(r.Items[s.user].Parts) > 1:
		return SideCompaction, "compaction prompt beside other text"
	case strings.HasPrefix(last, tellCompaction) && len(last) > 500:
		return SideCompaction, "compaction prompt"
	case s.plain && strings.HasPrefix(last, tellSuggestion):
		return SideSuggestion, "suggestion mode"
	case s.plain && strings.HasPrefix(last, "<system-reminder>This is a side question "):
		return SideBTW, "side question in a reminder"
	case strings.HasPrefix(last, "Stop hook feedback:\n"):
		return SideStopHook, "stop hook feedback"
	case one(last, "task-notification"):
		return SideTaskNotification, "one task notification"
	}
	if it := &r.Items[s.user]; shellLine(it) {
		return SideShell, "a shell line of the person and its output"
	}
	return "", ""
}

// one reports a text that is exactly one element.
func one(text, name string) bool {
	t := strings.TrimSpace(text)
	open, close := "<"+name+">", "</"+name+">"
	return strings.HasPrefix(t, open) && strings.HasSuffix(t, close) && strings.Count(t, close) == 1
}

// shellLine: nothing but <bash-input> and what it printed.
func shellLine(it *wire.Item) bool {
	input := false
	for _, p := range it.Parts {
		if p.Kind != wire.Text {
			return false
		}
		t := strings.TrimSpace(p.Text)
		switch {
		case strings.HasPrefix(t, "<bash-input>") && strings.HasSuffix(t, "</bash-input>"):
			input = true
		case strings.HasPrefix(t, "<bash-stdout>") && strings.HasSuffix(t, "</bash-stderr>"), strings.HasPrefix(t, "<bash-stdout>") && strings.HasSuffix(t, "</bash-stdout>"), strings.HasPrefix(t, "<bash-stderr>") && strings.HasSuffix(t, "</bash-stderr>"):
		default:
			return false
		}
	}
	return input
}
