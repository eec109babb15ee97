// Package route says what a request is: a person's new turn, one more lap of an
// agent's loop, a resend, a sub-agent's request, a client's side request. It
// reads the neutral view and a few headers, and nothing else: no clock, no
// network, no memory but what the caller hands in. What is done about a request
// is decided in daemon/turn, never here.
package route

import (
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
)

// Side reports whether k is a side request: never declared, never held, its
// tool calls are still ruled on.
func (k Kind) Side() bool { return len(k) > 5 && k[:5] == "side:" }

// Client names the program that speaks, by its fingerprint.
type Client string

const (
	ClaudeCode    Client = "claude-code"
	OpenCode      Client = "opencode"
	Continue      Client = "continue"
	Cline         Client = "cline"
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

// Prior is what the caller remembers of earlier requests. A nil Prior
// remembers nothing.
type Prior interface {
	// Pending returns the bodies of requests of a conversation whose turn is
	// still unfinished, or ended in an error or a lost connection within the
	// grace period, newest first.
	Pending(conversation string) [][]byte
	// OpenCalls returns the calls without a result of every conversation of the
	// same process and credential, newest first. It finds sub-agents of clients
	// that send no header for them.
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
	// the conversation it belongs to where that is known.
	SubagentRoot string
	Parent       string

	// Continues reports that the newest thing is a tool result: Kind is loop, or
	// it is a sub-agent's own loop.
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

// Classify routes a request. path is the request's path without its query;
// key is the local key that header-less conversations are named under.
func Classify(key []byte, r *wire.Request, h Headers, path string, prior Prior) Route {
	return Route{Kind: Unknown, PersonItem: -1, AnchorItem: -1}
}
