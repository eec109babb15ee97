package route

import (
	"strings"
	"unicode/utf8"

	"gettier.dev/gettierd/daemon/wire"
)

// Speaker is who a stretch of a history comes from.
type Speaker string

const (
	Person  Speaker = "person"  // typed by a person
	Harness Speaker = "harness" // written by the client: wrappers, attachments, expansions, summaries
	Model   Speaker = "model"
	Tool    Speaker = "tool"
)

// Utterance is one stretch of a history.
type Utterance struct {
	By      Speaker
	Item    int
	Text    string
	CallID  string
	Name    string // tool's name, of a call and of its result
	Args    []byte // of a call, and of the call that a result answers
	IsError bool
}

// maxTyped is the longest text that counts as typed: beyond it a text is taken
// for pasted, and what is pasted tells nothing (13.5).
const maxTyped = 400

// Transcript tells a history by speaker, in order, one entry per part. In a
// sub-agent's conversation what looks like a person is the parent's model.
func Transcript(r *wire.Request, rt Route) []Utterance {
	var out []Utterance
	calls := map[string]*wire.Part{}
	say := func(by Speaker, item int, text string) {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, Utterance{By: by, Item: item, Text: text})
		}
	}
	person := func(item int, text string) {
		switch {
		case rt.SubagentRoot != "":
			say(Model, item, text)
		case utf8.RuneCountInString(text) > maxTyped:
			say(Harness, item, text)
		default:
			say(Person, item, text)
		}
	}
	for i := range r.Items {
		it := &r.Items[i]
		afterResult, interrupted, command, local := false, false, "", false
		for k := range it.Parts {
			p := &it.Parts[k]
			switch p.Kind {
			case wire.ToolCall:
				calls[p.CallID] = p
				out = append(out, Utterance{By: Model, Item: i, CallID: p.CallID, Name: p.Name, Args: p.Args})
				continue
			case wire.ToolResult:
				u := Utterance{By: Tool, Item: i, Text: p.Text, CallID: p.CallID, IsError: p.IsError}
				if c := calls[p.CallID]; c != nil {
					u.Name, u.Args = c.Name, c.Args
				}
				if q := refusal(r, i, p, rt.Client); q != "" {
					person(i, q)
					u.Text = strings.TrimSuffix(strings.TrimSpace(p.Text), q)
				}
				out = append(out, u)
				afterResult = true
				continue
			case wire.Thinking:
				say(Model, i, p.Text)
				continue
			case wire.Text:
			default:
				continue
			}
			switch it.Role {
			case "assistant":
				say(Model, i, p.Text)
			case "system", "developer":
				if rt.Client == ClaudeCode && strings.HasPrefix(p.Text, tellQueued) {
					person(i, queued(it))
				} else {
					say(Harness, i, p.Text)
				}
			case "user":
				if wire.IsBlock(p.Text) {
					continue // ours: measured, but it backs nothing twice
				}
				if rt.Client == ClaudeCode {
					interrupted = interrupted || strings.HasPrefix(p.Text, tellInterrupt)
					if strings.HasPrefix(p.Text, "<local-command-") {
						local, command = true, ""
					} else if cmd := slash(p.Text); cmd != "" && !local {
						command = cmd
						person(i, cmd)
					}
				}
				w := words(p.Text, rt.Client)
				theirs := w != "" && command == "" && !(rt.Client == Codex && summing(r, i, p.Text)) && (!afterResult || interrupted || rt.Client != ClaudeCode)
				if rt.Client == Continue && w == "continue" && afterSummary(r, i) {
					theirs = false
				}
				if theirs {
					person(i, w)
					if rest := strings.TrimSpace(p.Text); rest != w {
						say(Harness, i, strings.Replace(rest, w, "", 1))
					}
				} else {
					say(Harness, i, p.Text)
				}
			case "tool", "function":
				say(Tool, i, p.Text)
			}
		}
	}
	return out
}
