package route

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// dropped are elements that clients wrap around what no person typed. An
// element counts only where it starts a line.
var dropped = [...]string{
	"system-reminder", "command-name", "command-message", "command-args", "local-command-stdout", "local-command-stderr", "local-command-caveat",
	"bash-input", "bash-stdout", "bash-stderr", "task-notification", // Claude Code
	"environment_context", "user_instructions", "permissions instructions", "turn_aborted", "subagent_notification", "user_shell_command",
	"skills_instructions", "collaboration_mode", "side_conversation", // Codex
	"environment_details", "file_content", "folder_content", "workspace_diagnostics", "explicit_instructions", // Cline
	"selection", "ide_selection", "ide_opened_file", "ide_diagnostics", "attached_files", "attachments", "open_files", "additional_data",
	"gettier-verification",
}

// droppedPlain are opencode's: names too plain to be anyone else's wrappers.
var droppedPlain = [...]string{"env", "file", "files", "path", "type", "content"}

// droppedCodex are Codex's, likewise.
var droppedCodex = [...]string{"skill"}

// framed are elements whose inside is the person's.
var framed = [...]string{"task", "user_message", "user_query", "feedback"}

// starts are texts that a client writes itself, known by their first bytes: no
// recorded one shares them with a person's words.
var starts = map[Client][]string{
	ClaudeCode: {"[Request interrupted by ", "Stop hook feedback:\n", "This session is being co", tellCompaction, tellSuggestion, "Caveat: The messages bel"},
	OpenCode:   {"Continue if you have nex", "Called the Read tool wit"},
}

const (
	tellCompaction = "CRITICAL: Respond with T"
	tellSuggestion = "[SUGGESTION MODE: Sugges"
	tellInterrupt  = "[Request interrupted by "
	tellRefusal    = "The user doesn't want to"
	tellQueued     = "The user sent a new mess"
)

// strip takes wrappers out of a text and returns what a person may have
// written. It allocates nothing when there are none.
func strip(text string, c Client) string {
	if strings.IndexByte(text, '<') < 0 {
		return strings.TrimSpace(text)
	}
	var b strings.Builder
	rest, changed := text, false
	for {
		at, end, keep := element(rest, c)
		if at < 0 {
			break
		}
		changed = true
		b.WriteString(rest[:at])
		if keep != "" {
			b.WriteString(keep)
			b.WriteByte('\n')
		}
		rest = rest[end:]
	}
	if !changed {
		return strings.TrimSpace(text)
	}
	b.WriteString(rest)
	return strings.TrimSpace(b.String())
}

// element finds the first wrapper that starts a line: where it stands, and for
// a frame what it holds.
func element(s string, c Client) (at, end int, keep string) {
	for from := 0; from < len(s); {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			return -1, 0, ""
		}
		i += from
		from = i + 1
		if !lineStart(s, i) {
			continue
		}
		name := tag(s[i:], dropped[:])
		if name == "" && c == OpenCode {
			name = tag(s[i:], droppedPlain[:])
		}
		if name == "" && c == Codex {
			name = tag(s[i:], droppedCodex[:])
		}
		if name != "" {
			close := "</" + name + ">"
			if j := strings.Index(s[i:], close); j > 0 {
				return i, i + j + len(close), ""
			}
		}
		if name := tag(s[i:], framed[:]); name != "" {
			open := strings.IndexByte(s[i:], '>')
			close := "</" + name + ">"
			if j := strings.Index(s[i:], close); j > open && open > 0 {
				return i, i + j + len(close), strings.TrimSpace(s[i+open+1 : i+j])
			}
		}
	}
	return -1, 0, ""
}

func lineStart(s string, i int) bool {
	for i--; i >= 0; i-- {
		switch s[i] {
		case ' ', '\t', '\r':
		case '\n':
			return true
		default:
			return false
		}
	}
	return true
}

func tag(s string, names []string) string {
	for _, n := range names {
		if len(s) > len(n)+1 && s[1] == n[0] && s[1:1+len(n)] == n {
			if c := s[1+len(n)]; c == '>' || c == ' ' || c == '\n' {
				return n
			}
		}
	}
	return ""
}

// written reports a text that the client itself wrote, wrapper or not.
func written(text string, c Client) bool {
	for _, p := range starts[c] {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return c == OpenCode && text == "What did we do so far?"
}

// words is what a person wrote in one text part, "" when none of it is theirs.
func words(text string, c Client) string {
	if written(text, c) || wire.IsBlock(text) {
		return ""
	}
	if c == Codex {
		return codexWords(text)
	}
	t := strip(text, c)
	if c == OpenCode && len(t) > 1 && t[0] == '"' && t[len(t)-1] == '"' { // opencode run quotes the prompt
		t = strings.TrimSpace(t[1 : len(t)-1])
	}
	return t
}

// speaker is whose word the newest thing of a request is.
type speaker int

const (
	byNobody speaker = iota
	byPerson
	byTool
	byClient
)

// scanned is what one walk over the items finds.
type scanned struct {
	newest  speaker
	text    string // newest prompt
	item    int
	prompts int
	first   string // first prompt; else the first text of all
	queued  []string
	anchor  int
	last    string // last text part of the newest user item, as sent
	plain   bool   // that item's content was a plain string
	user    int    // newest user item
	users   int    // how many user items there are
	summing bool   // Codex: the newest item is the prompt of a compaction
}

// scan walks the items once, oldest first: later findings replace earlier ones.
func scan(r *wire.Request, c Client) scanned {
	s := scanned{item: -1, anchor: -1, user: -1}
	for i := range r.Items {
		it := &r.Items[i]
		switch it.Role {
		case "system", "developer":
			if c == ClaudeCode {
				if q := queued(it); q != "" && s.item >= 0 {
					s.queued = append(s.queued, q)
				}
			}
		case "tool", "function":
			s.newest, s.anchor = byTool, i
		case "user":
			s.userItem(r, i, c)
		case "assistant":
			// An answer begun by the client (a prefill) leaves the prompt before it
			// the newest thing; Continue goes on from its summary that way.
			if c == Continue && i == len(r.Items)-1 {
				s.newest = byClient
			}
			if s.first == "" {
				s.first = firstText(it)
			}
		}
	}
	return s
}

func (s *scanned) userItem(r *wire.Request, i int, c Client) {
	it := &r.Items[i]
	s.user, s.users, s.anchor, s.plain, s.last = i, s.users+1, i, it.Plain, ""
	result, interrupted, any := false, false, false
	text, command := "", ""
	local := false
	for k := range it.Parts {
		p := &it.Parts[k]
		switch p.Kind {
		case wire.ToolResult:
			result, any = true, true
			// Only what stands after the last result is new.
			text, interrupted = "", false
			if q := refusal(r, i, p, c); q != "" && s.item >= 0 {
				s.queued = append(s.queued, q)
			}
		case wire.Text:
			if wire.IsBlock(p.Text) {
				continue
			}
			any = true
			s.last = p.Text
			if c == ClaudeCode {
				interrupted = interrupted || strings.HasPrefix(p.Text, tellInterrupt)
				if strings.HasPrefix(p.Text, "<local-command-") {
					local, command = true, ""
				} else if cmd := slash(p.Text); cmd != "" && !local {
					command = cmd
				}
				// Beside a result stand hook feedback and skill texts, unless the
				// person has broken in.
				if result && !interrupted {
					continue
				}
			}
			if w := words(p.Text, c); w != "" {
				if text != "" {
					text += "\n"
				}
				text += w
			}
		case wire.Media:
			any = true
		}
	}
	if !any {
		return // only blocks of ours
	}
	if text != "" && command != "" {
		text = command + "\n\n" + text
	}
	if text != "" && c == Continue && text == "continue" && afterSummary(r, i) {
		text = ""
	}
	switch {
	case text != "":
		s.newest, s.text, s.item, s.queued = byPerson, text, i, nil
		s.prompts++
		if s.prompts == 1 {
			s.first = text
		}
	case result:
		s.newest = byTool
	case s.media(it):
		s.newest, s.text, s.item, s.queued = byPerson, "", i, nil
		s.prompts++
	default:
		s.newest = byClient
	}
}

// media: a prompt that is only a picture.
func (s *scanned) media(it *wire.Item) bool {
	for _, p := range it.Parts {
		if p.Kind != wire.Media {
			return false
		}
	}
	return len(it.Parts) > 0
}

// afterSummary reports the place where Continue writes "continue" itself: right
// after an assistant's entry that no prompt stands before, its summary.
func afterSummary(r *wire.Request, i int) bool {
	if i < 1 || r.Items[i-1].Role != "assistant" {
		return false
	}
	return i == 1 || r.Items[i-2].Role == "assistant" || r.Items[i-2].Role == "system"
}

// slash is the person's own line behind a slash command's tags: name and arguments.
func slash(text string) string {
	if !strings.HasPrefix(text, "<command-") {
		return ""
	}
	n, a := inner(text, "command-name"), inner(text, "command-args")
	if n == "" {
		return ""
	}
	return strings.TrimSpace(n + " " + a)
}

func inner(text, name string) string {
	i := strings.Index(text, "<"+name+">")
	if i < 0 {
		return ""
	}
	rest := text[i+len(name)+2:]
	j := strings.Index(rest, "</"+name+">")
	if j < 0 {
		return ""
	}
	return strings.TrimSpace(rest[:j])
}

// queued are the words of a person that Claude Code reports in a system entry.
func queued(it *wire.Item) string {
	for _, p := range it.Parts {
		if p.Kind != wire.Text || !strings.HasPrefix(p.Text, tellQueued) {
			continue
		}
		_, rest, ok := strings.Cut(p.Text, "\n")
		if !ok {
			return ""
		}
		if i := strings.LastIndex(rest, "\n\n"); i >= 0 {
			rest = rest[:i]
		}
		return strings.TrimSpace(rest)
	}
	return ""
}

// refusal are the words of a person in the error result of a call they refused.
// A server's tool could print the same, so its results never count.
func refusal(r *wire.Request, i int, p *wire.Part, c Client) string {
	if c != ClaudeCode || !p.IsError || !strings.HasPrefix(p.Text, tellRefusal) {
		return ""
	}
	head, rest, ok := strings.Cut(p.Text, "\n")
	if !ok || len(head) > 600 {
		return ""
	}
	call := callOf(r, i, p.CallID)
	if call == nil || strings.HasPrefix(call.Name, "mcp__") {
		return ""
	}
	return strings.TrimSpace(rest)
}

// callOf finds the call that a result before item i answers.
func callOf(r *wire.Request, i int, id string) *wire.Part {
	for i--; i >= 0; i-- {
		if r.Items[i].Role != "assistant" {
			continue
		}
		for k := range r.Items[i].Parts {
			if p := &r.Items[i].Parts[k]; p.Kind == wire.ToolCall && p.CallID == id {
				return p
			}
		}
	}
	return nil
}
