// Package route says what a request is: a person's new turn, one more lap of an
// agent's loop, a resend, a sub-agent's request, a client's side request. It
// reads the neutral view and a few headers, and nothing else: no clock, no
// network, no memory but what the caller hands in. What is done about a request
// is decided in daemon/turn, never here.
package route

import (
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
)

// Kind is the route's word for a request.
type Kind string

const (
	New      Kind = "new"
	Loop     Kind = "loop"
	Resend   Kind = "resend"
	Subagent Kind = "subagent"
	Unknown  Kind = "unknown"

	// Side requests are the client's own errands.
	SideTitle            Kind = "side:title"
	SideCompaction       Kind = "side:compaction"
	SideSuggestion       Kind = "side:suggestion"
	SideBTW              Kind = "side:btw"
	SideStopHook         Kind = "side:stop-hook"
	SideTaskNotification Kind = "side:task-notification"
	SideShell            Kind = "side:shell"
	SideCountTokens      Kind = "side:count_tokens"
	SideChat             Kind = "side:side-chat"
	SideOther            Kind = "side:other"
)

// Side reports whether k is a side request: never declared, never held, its
// tool calls are still ruled on.
func (k Kind) Side() bool { return strings.HasPrefix(string(k), "side:") }

// Client names the program that speaks, by its fingerprint.
type Client string

const (
	ClaudeCode    Client = "claude-code"
	OpenCode      Client = "opencode"
	Continue      Client = "continue"
	Cline         Client = "cline"
	Codex         Client = "codex"
	UnknownClient Client = ""
)

// Headers looks a request header up by name, "" when absent. The method value
// http.Header.Get fits.
type Headers func(name string) string

// Call is a tool call of a parent conversation that has no result yet.
type Call struct {
	Conversation string
	Name         string
	Args         []byte // raw JSON
}

// Prior is what the caller remembers of earlier requests of the same process
// and credential. A nil Prior remembers nothing.
type Prior interface {
	// Pending returns the bodies of requests of a conversation whose turn is
	// still unfinished, or ended in an error or a lost connection within the
	// grace period, newest first.
	Pending(conversation string) [][]byte
	// OpenCalls returns the calls without a result of every conversation,
	// newest first. It finds sub-agents of clients that send no header for them.
	OpenCalls() []Call
}

// Route is what a request is.
type Route struct {
	Kind   Kind
	Why    string // one line: which tell decided
	Client Client

	// Session is the client's own session id, "" when it sends none.
	Session string
	// Conversation groups the requests of one history. A sub-agent has one of
	// its own.
	Conversation string
	// SubagentRoot names the sub-agent, "" for the main conversation; Parent is
	// the conversation it belongs to, or was forked from, where that is known.
	SubagentRoot string
	Parent       string
	// Turn is the client's own name for the turn, "" when it has none; RootTurn
	// is the one of the main conversation that a sub-agent works for.
	Turn     string
	RootTurn string

	// Continues reports that the newest thing is a tool result or the client's
	// own word to go on: Kind is loop, or it is a sub-agent's own loop, or a
	// resend of either.
	Continues bool
	// Interactive reports a client with a person before it.
	Interactive bool

	// PersonText is the newest prompt, wrappers stripped, and PersonItem the item
	// it stands in, -1 when there is none. In a sub-agent it is model-written.
	PersonText string
	PersonItem int
	// Ordinal counts the prompts of this history, 1 for the first.
	Ordinal int
	// Queued are a person's words that came in the middle of the newest turn:
	// text queued while a tool ran, words beside a refusal.
	Queued []string
	// AnchorItem is the item after which a new block would stand, -1 when none.
	AnchorItem int
}

// Classify routes a request. path is the request's path, with or without its
// query; key is the local key that conversations are named under.
func Classify(key []byte, r *wire.Request, h Headers, path string, prior Prior) Route {
	rt := Route{Kind: Unknown, PersonItem: -1, AnchorItem: -1, Client: clientOf(r, h)}
	path, _, _ = strings.Cut(path, "?")
	var s scanned
	var meta codexMeta
	if rt.Client == Codex {
		meta = readCodex(r, h)
		s = scanCodex(r, meta)
	} else {
		s = scan(r, rt.Client)
	}
	rt.PersonText, rt.PersonItem, rt.Ordinal, rt.Queued, rt.AnchorItem = s.text, s.item, s.prompts, s.queued, s.anchor
	if rt.Client == Codex {
		rt.Interactive = meta.trigger == "user" || strings.HasPrefix(h("User-Agent"), "codex-tui/")
		identifyCodex(&rt, key, r, meta, s)
	} else {
		rt.Interactive = interactive(r, h, rt.Client)
		identify(&rt, key, r, h, s, prior)
	}

	switch path = strings.TrimSuffix(path, "/"); {
	case strings.HasSuffix(path, "/count_tokens"):
		rt.Kind, rt.Why = SideCountTokens, "path count_tokens"
		return rt
	case strings.HasSuffix(path, "/responses/compact"):
		rt.Kind, rt.Why = SideCompaction, "path responses/compact"
		return rt
	}
	if k, why := side(r, rt.Client, meta, s); k != "" {
		rt.Kind, rt.Why = k, why
		return rt
	}
	rt.Continues = s.newest == byTool || s.newest == byClient
	switch {
	case rt.SubagentRoot != "":
		rt.Kind = Subagent
		if rt.Why == "" {
			rt.Why = "sub-agent header"
		}
		return rt
	case s.newest == byTool:
		rt.Kind, rt.Why = Loop, "tool result"
	case s.newest == byClient:
		rt.Kind, rt.Why = Loop, "the client's own text"
	case s.newest == byPerson:
		rt.Kind, rt.Why = New, "a person's text"
	default:
		rt.Why = "no prompt and no tool result"
		return rt
	}
	if prior != nil {
		for _, body := range prior.Pending(rt.Conversation) {
			if BodyEqual(body, r.Body) {
				rt.Kind, rt.Why = Resend, "same body as an unfinished request"
				break
			}
		}
	}
	return rt
}

// ClientOf names the client of a request without a body, by its headers alone.
func ClientOf(h Headers) Client { return clientOf(&wire.Request{Format: wire.Responses}, h) }

// clientOf tells the client by headers first, by its system text else.
func clientOf(r *wire.Request, h Headers) Client {
	ua := h("User-Agent")
	switch {
	case isCodex(r, h):
		return Codex
	case strings.HasPrefix(ua, "claude-cli/"), h("X-Claude-Code-Session-Id") != "":
		return ClaudeCode
	case strings.HasPrefix(ua, "opencode/"):
		return OpenCode
	}
	sys := firstSystem(r)
	switch {
	case strings.HasPrefix(sys, "x-anthropic-billing-header: cc_version="):
		return ClaudeCode
	case strings.HasPrefix(sys, "You are Cline, an AI cod"):
		return Cline
	case strings.HasPrefix(sys, "You are an agent in the "), strings.HasPrefix(ua, "ls/JS "):
		return Continue
	}
	return UnknownClient
}

func firstSystem(r *wire.Request) string {
	if len(r.System) > 0 {
		return r.System[0]
	}
	for i := range r.Items {
		it := &r.Items[i]
		if it.Role != "system" && it.Role != "developer" {
			break
		}
		if t := firstText(it); t != "" {
			return t
		}
	}
	return ""
}

// interactive: a terminal program in its terminal mode, or a chat without tools
// that has gone on for more than one exchange. Print modes and scripts are not.
func interactive(r *wire.Request, h Headers, c Client) bool {
	ua := h("User-Agent")
	switch c {
	case ClaudeCode:
		return strings.HasSuffix(ua, "(external, cli)")
	case Cline:
		return strings.Contains(ua, "runtime/browser")
	case UnknownClient:
		if len(r.Tools) > 0 {
			return false
		}
		for i := range r.Items {
			if r.Items[i].Role == "assistant" {
				return true
			}
		}
	}
	return false
}

// identify names session, conversation and sub-agent.
func identify(rt *Route, key []byte, r *wire.Request, h Headers, s scanned, prior Prior) {
	switch rt.Client {
	case ClaudeCode:
		rt.Session = h("X-Claude-Code-Session-Id")
	default:
		rt.Session = h("X-Session-Id")
	}
	if rt.Session == "" {
		rt.Session = h("X-Gettier-Session")
	}
	if rt.Session == "" {
		rt.Session = kept(r)
	}
	agent, why := "", ""
	switch rt.Client {
	case ClaudeCode:
		if agent = h("X-Claude-Code-Agent-Id"); agent != "" {
			why = "header x-claude-code-agent-id"
		} else if len(r.System) > 0 && strings.HasPrefix(r.System[0], "x-anthropic-billing-header: ") && strings.Contains(r.System[0], "; cc_is_subagent=true;") {
			agent, why = name(key, "agent", s.first), "cc_is_subagent in the system text"
		}
	default:
		if p := h("X-Parent-Session-Id"); p != "" && rt.Session != "" && p != rt.Session {
			rt.SubagentRoot, rt.Why = rt.Session, "header x-parent-session-id"
			rt.Parent = name(key, "session", string(rt.Client), p)
			rt.Conversation = name(key, "session", string(rt.Client), rt.Session)
			return
		}
	}
	switch {
	case rt.Session != "" && agent != "":
		rt.SubagentRoot, rt.Why = agent, why
		rt.Parent = name(key, "session", string(rt.Client), rt.Session)
		rt.Conversation = name(key, "session", string(rt.Client), rt.Session, agent)
	case rt.Session != "":
		rt.Conversation = name(key, "session", string(rt.Client), rt.Session)
	default:
		rt.Conversation = name(key, "text", firstSystem(r), s.first)
		if agent != "" {
			rt.SubagentRoot, rt.Why = agent, why
			return
		}
		if prior == nil || s.first == "" || len(r.Tools) == 0 {
			return
		}
		for _, c := range prior.OpenCalls() {
			if c.Conversation != rt.Conversation && argumentIs(c.Args, s.first) {
				rt.SubagentRoot, rt.Parent = name(key, "call", c.Conversation, s.first), c.Conversation
				rt.Why = "its first prompt is the argument of an open call " + clip(c.Name, 64)
				return
			}
		}
	}
}

// kept names a history that the upstream keeps, so that the request holds only
// what is new: a conversation object, or the answer that it goes on from.
func kept(r *wire.Request) string {
	if r.Format != wire.Responses {
		return ""
	}
	if c := gjson.ParseBytes(r.Raw("conversation")); c.Type == gjson.String && c.Str != "" {
		return "conversation " + c.Str
	} else if id := c.Get("id").Str; id != "" {
		return "conversation " + id
	}
	if id := gjson.ParseBytes(r.Raw("previous_response_id")).Str; id != "" {
		return "response " + id
	}
	return ""
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
