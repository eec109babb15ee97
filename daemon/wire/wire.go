// Package wire is the neutral view of a request and an answer that every wire
// format reads into, and the Adapter that a format implements. Views point into
// the raw bytes: what is forwarded is spliced, never encoded again. No I/O, no
// HTTP, no rules about what to do with a view.
package wire

import (
	"errors"
	"fmt"
	"slices"

	"gettier.dev/gettierd/ledger/lemma"
)

// Format names a wire format.
type Format string

const (
	Chat      Format = "openai-chat"
	Messages  Format = "anthropic-messages"
	Responses Format = "openai-responses"
)

// Span is a byte range [Start, End) of a body.
type Span struct{ Start, End int }

// Request is a parsed body. Body is the raw JSON; spans point into it.
type Request struct {
	Format Format
	Body   []byte
	Model  string
	Stream bool
	// MaxTokens as the client asked, 0 when absent.
	MaxTokens int
	// System holds the decoded texts of a top-level system prompt (Anthropic's
	// system, instructions of Responses); otherwise system and developer entries
	// are Items.
	System []string
	// Items are the elements of messages or input, in order.
	Items []Item
	Tools []Tool
	// Thinking reports whether extended thinking (or reasoning) is switched on.
	Thinking bool
	// OutputFormat reports a client-set structured output format.
	OutputFormat bool
	// Members are the top-level members, in order.
	Members []Member
}

// Member is one name and value of an object, by place.
type Member struct {
	Name       string // decoded
	Key, Value Span
}

// Item is one element of messages or input.
type Item struct {
	// Role is system | developer | user | assistant | tool. In Responses format
	// what the model made (calls, reasoning) is assistant, outputs are tool, and
	// an item that nobody says is "other".
	Role  string
	Type  string // of an element of input: message, function_call, reasoning, …
	Parts []Part
	Span  Span // of the whole element
	// Content is the place of the content value; zero when there is none.
	Content Span
	// Plain reports that content was a plain string, not an array.
	Plain bool
}

// PartKind is what a part of an item is.
type PartKind string

const (
	Text       PartKind = "text"
	ToolCall   PartKind = "tool_call"
	ToolResult PartKind = "tool_result"
	Thinking   PartKind = "thinking"
	Media      PartKind = "media"
	Other      PartKind = "other"
)

// Part is one content block, one tool call or one tool result.
type Part struct {
	Kind PartKind
	// Text is decoded: of a text part, of a thinking part, or of a tool result
	// (its text parts joined by newlines).
	Text    string
	CallID  string // of a call or a result
	Name    string // of a call
	Args    []byte // of a call: raw JSON bytes; in chat format the decoded arguments string
	IsError bool   // of a result
	Span    Span   // of the part's JSON value; zero for a plain string content
}

// Tool is one offered tool.
type Tool struct {
	Name string
	Span Span
}

// Call is one complete tool call of an answer.
type Call struct {
	Index int // its place among the answer's blocks or tool_calls
	ID    string
	Name  string
	Args  []byte // raw argument bytes as the client will see them
	// Broken reports arguments that are no complete JSON object, e.g. cut at the
	// token limit. What a client makes of them is not known.
	Broken bool
}

// HasIndex reports whether one of the calls stands at a place.
func HasIndex(calls []Call, index int) bool {
	return slices.ContainsFunc(calls, func(c Call) bool { return c.Index == index })
}

// Answer is a complete answer of an upstream, streamed or not.
type Answer struct {
	Text  string // joined text
	Calls []Call
	Stop  string // the format's own stop reason
	Usage lemma.Usage
	// Joined reports calls that cannot be told apart on the wire: they leave
	// together or not at all.
	Joined bool
}

// Block is text to stand in a request: after Items[After] (its last part).
type Block struct {
	After int
	Text  string
}

// Malformed is a body that the format refuses: what, and where.
type Malformed struct {
	What   string
	Offset int // byte offset in the body, -1 when unknown
	Line   int // 1-based
	Column int // 1-based, in bytes
}

func (m *Malformed) Error() string {
	if m.Line == 0 {
		return m.What
	}
	return fmt.Sprintf("%s (line %d, column %d)", m.What, m.Line, m.Column)
}

// ErrUnreadable is an upstream answer that cannot be read as strictly as a
// request: it is refused, never forwarded in part.
var ErrUnreadable = errors.New("unreadable upstream answer")

// Rung is a step of the compliance ladder (I-65): 0 cache-neutral instruction,
// 1 forced tool call, 2 constrained JSON, 3 JSON by prompt with the validator's
// message.
type Rung int

// DeclareOptions shape a declare pass.
type DeclareOptions struct {
	Rung Rung
	// Instruction asks for the declaration; the adapter appends it last on rungs
	// 0, 2 and 3, and on rung 1 as the tool's companion text.
	Instruction string
	// Complaint is the validator's message of the attempt before, if any.
	Complaint string
	// MaxTokens caps the output (600; 8192 for reasoning models).
	MaxTokens int
	// OmitStore leaves store:false out where the client did not name store
	// itself: some compatible upstreams refuse names they do not know.
	OmitStore bool
}

// Adapter is one wire format. All methods are pure.
type Adapter interface {
	Format() Format

	// Read parses strictly: invalid UTF-8, duplicate keys at top level, in
	// messages or in tools, a wrong shape → *Malformed.
	Read(body []byte) (*Request, error)

	// Strip removes every block of ours that came back from the client (text
	// parts or whole items that start with BlockOpen and end with BlockClose)
	// and returns the body without them; the very same slice when there were none.
	Strip(body []byte) ([]byte, error)

	// Splice inserts blocks as bytes and leaves everything else untouched. The
	// bytes inserted for a block depend only on its text and the shape of its item.
	Splice(r *Request, blocks []Block) ([]byte, error)

	// Declare derives the body of a declare pass from r (already spliced):
	// never streamed, store:false where the format has it.
	Declare(r *Request, o DeclareOptions) ([]byte, error)

	// ReadDeclaration takes the declaration's JSON out of a declare answer.
	// ErrNotCompliant (wrapped, with what came instead) when there is none.
	ReadDeclaration(rung Rung, answer []byte) ([]byte, lemma.Usage, error)

	// Again derives from r (already spliced) the body of an answer made anew:
	// same tools and tool_choice, with stream as given.
	Again(r *Request, stream bool) ([]byte, error)

	// ReadAnswer reads a complete, non-streamed answer strictly.
	ReadAnswer(body []byte) (*Answer, error)

	// Start is the format's start event, to open a stream before the upstream
	// answers. Mark it as Sent on a fresh Stream and carry the upstream's own
	// answer on with Continue.
	Start(model, id string) []byte

	// TextAnswer is a complete answer in this format that says text and ends.
	TextAnswer(model, id, text string, stream bool) []byte

	// Note adds text at the end of a complete, non-streamed answer by splicing;
	// where the answer has calls, it stands before them.
	Note(answer []byte, text string) ([]byte, error)

	// Without takes calls out of a complete, non-streamed answer by splicing; at
	// least one is left. What belongs to a call alone goes with it.
	Without(answer []byte, calls []Call) ([]byte, error)

	// Remembers reports a request whose answer the upstream keeps: it would miss
	// the result of a call that the client never saw.
	Remembers(r *Request) bool

	// NewStream starts reading one streamed answer.
	NewStream() Stream

	// Error is an error body in this format.
	Error(status int, kind, message string) []byte

	// StreamError is an in-band error after headers have left.
	StreamError(kind, message string) []byte

	// KeepAlive is what may be sent between blocks of a stream while it waits.
	// started says whether the format's start event has left.
	KeepAlive(started bool) []byte
}

// ErrNotCompliant: the model did not declare on this rung.
var ErrNotCompliant = errors.New("no declaration")

// Piece is a stretch of a stream: exact bytes and what they are.
type Piece struct {
	Raw  []byte // whole SSE events, ending in their blank line
	Kind PieceKind
}

// PieceKind says how a piece may be handled.
type PieceKind string

const (
	PieceStart    PieceKind = "start"    // message_start; chat: the role-only first chunk
	PieceText     PieceKind = "text"     // visible text
	PieceThinking PieceKind = "thinking" // thinking blocks, reasoning deltas
	PieceLead     PieceKind = "lead"     // thinking that is worth nothing without the item after it: it goes where that goes
	PieceCall     PieceKind = "call"     // part of a tool call: held until the answer is complete
	PieceFinish   PieceKind = "finish"   // stop reason, usage: held with the calls
	PieceEnd      PieceKind = "end"      // message_stop, [DONE]
	PiecePing     PieceKind = "ping"     // keep-alives and comments
	PieceError    PieceKind = "error"    // the upstream's in-band error
	PieceOther    PieceKind = "other"    // anything else inside an answer
)

// Stream reads one streamed answer piece by piece.
type Stream interface {
	// Feed takes bytes as they arrive and returns the complete pieces in them.
	// ErrUnreadable: duplicate keys, invalid UTF-8, a repeated id or index, an
	// event after the end.
	Feed(b []byte) ([]Piece, error)
	// Done reports whether the answer ended properly (message_stop, [DONE]).
	Done() bool
	// Answer is what has been read so far; complete once Done.
	Answer() *Answer
	// Sent records that p left for the client. What Continue, CloseOpen and
	// Finish emit depends on what left: indices, an open text block, the start.
	Sent(p Piece)
	// Continue turns a piece of a second answer (read by another Stream of this
	// format) into the bytes that carry on this one: its start is dropped once
	// ours has left, its thinking once any text or thinking has (not where what
	// follows needs it), blocks are re-indexed after those that left. The last delta says the output of both
	// and the input of the second: clients read the size of their context from
	// it, which a sum would double. nil = nothing to send.
	//
	// What Continue, Note, CloseOpen and Finish return counts as sent. A stream
	// may continue itself, e.g. its calls after a Note.
	Continue(second Stream, p Piece) []byte
	// Drop leaves calls of this stream's answer out of what Continue sends from now
	// on, whichever stream it continues; at least one is left.
	Drop(calls []Call)
	// Note adds a text of ours between pieces; what this stream still holds back
	// must leave through Continue(itself, p) then.
	Note(text string) []byte
	// CloseOpen ends a block of this stream that is still open at the client.
	CloseOpen() []byte
	// Finish ends the answer at the client with the given text as its last block
	// and a clean stop without calls, e.g. for a refusal or a hold's question.
	Finish(text string) []byte
	// Started reports whether the start piece has been read.
	Started() bool
}

// Waiter is a Stream whose keep-alives must fit what has left: they bear its id
// and its next number. What it returns counts as sent.
type Waiter interface{ KeepAlive() []byte }

// BlockOpen and BlockClose frame every block of ours in a request, so that one
// that comes back can be recognised (03).
const (
	BlockOpen  = "<gettier-verification"
	BlockClose = "</gettier-verification>"
)
