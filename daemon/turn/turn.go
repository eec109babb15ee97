// Package turn owns a request from the moment its bytes are understood to the
// last byte of its answer: route, inject, declare, verify, ground, gate the
// actions, log (design of the turn, I-53 … I-71). The steps are plain functions
// over values; everything that touches the world (ledger, sensors, upstream,
// client) comes in through the small interfaces of this file. HTTP, sockets and
// wire formats live elsewhere; rules about premises live in daemon/gate.
package turn

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// Store is what a turn needs of the ledger.
type Store interface {
	Append(ctx context.Context, drafts ...ledger.Draft) (ledger.Receipt, error)
	// Go appends without waiting; the channel yields its one result.
	Go(drafts ...ledger.Draft) <-chan error
	Blocks(conversation string) ([]ledger.Block, error)
	Facts(q ledger.FactFilter) (ledger.Page[lemma.Fact], error)
	FactBy(scope, subject, key string) (lemma.Fact, bool)
	Deltas(scopes []string, at time.Time) ([]ledger.Delta, error)
	Knowledge(scopes ...string) (ledger.Page[lemma.Knowledge], error)
	Answers(scope, conversation, claimID string, now time.Time) (lemma.Answer, bool)
	LastTurn(conversation string) (ledger.TurnRow, bool)
	ModelRung(upstream, model string) ledger.Rung
	// Approvals are what persons said to actions filed under an id, newest first.
	Approvals(scope, conversation, claimID string, now time.Time) []lemma.Answer
	Hold(id string) (lemma.Hold, error)
	Holds(state lemma.HoldState, limit int, cursor string) (ledger.Page[lemma.Hold], error)
	TurnEntries(id string) ([]chain.Entry, error)
}

// Measurer is what a turn needs of the sensors.
type Measurer interface {
	// View is the registry in force for a project root; "" = user level only.
	View(root string) *sensors.View
	Run(ctx context.Context, reqs []sensors.Request) []sensors.Reading
}

// Upstream is one model endpoint.
type Upstream interface {
	Name() string
	// Trusted reports whether facts of sensitivity internal may go there.
	Trusted() bool
	// Call sends body with the client's headers. The response's body must be
	// closed; cancelling ctx cancels the call.
	Call(ctx context.Context, body []byte) (*http.Response, error)
}

// Sink is the client's side of one request. Nothing is written after Abort.
type Sink interface {
	// Start sends status and headers, once. stream says whether an event stream follows.
	Start(status int, upstream http.Header, stream bool, h Headers)
	Started() bool
	// Write sends bytes at once.
	Write(b []byte) error
	// Abort cuts the connection so that the client sees a broken answer, never a clean end.
	Abort()
}

// Headers are the response headers of the contract that a turn knows.
type Headers struct {
	Turn     string
	Decision lemma.Decision
	Hold     string
	Counts   lemma.Counts
	Rung     int // -1 = no declaration
	Gated    bool
}

// Scope is where a request comes from. Root is "" when no registered root
// certainly contains the peer: then nothing is measured and nothing judged.
type Scope struct {
	Name     string // project:<name>, "" when uncertain
	Root     string
	Cwd      string
	Evidence string // how it was found, or why not
	Named    string // a project named by path or header that does not contain the peer
	Env      func(string) (string, bool)
}

// Request is one recognised request of a gated format.
type Request struct {
	Wire      *wire.Request // parsed from the body with our own blocks already removed
	Adapter   wire.Adapter
	Route     route.Route
	Upstream  Upstream
	Scope     Scope
	Principal lemma.Principal
	CredHash  string
	Timeout   time.Duration // how long the client waits for a first byte, 0 = unknown
	// Person is whose words the process behind the request carries, or why it
	// cannot carry a person's; asked only for chat replies.
	Person  func() (lemma.Answerer, error)
	Observe bool // the upstream is only observed: nothing below effect destroy is checked
	// NoFacts keeps what this machine knows out of the request: its sender is
	// somebody else (13.9).
	NoFacts bool

	conversation string // scoped name, set by Serve
}

// Settings are the values of the configuration that a turn reads.
type Settings struct {
	Modes              map[lemma.Class]lemma.Mode
	Watch              bool // gate.mode: watch
	HoldOnUnverifiable bool
	AnnotateGaps       bool
	HoldsPerHour       int
	HoldsPerDay        int
	HoldTTL            time.Duration
	ClientWait         time.Duration
	WaitAlways         bool   // wait although no surface is attached: somebody set the time by hand
	Enforce            string // action.enforce: full | hard_deny | shadow, "" = full
	DeclareAtPrompt    bool   // declare.at: prompt or both
	DeclareAtAction    bool   // declare.at: action or both
	DeclareMaxTokens   int
	DeclareMaxPerTurn  int
	DeclareReuse       time.Duration
	InjectMaxBytes     int
	FailOpenExplore    bool
	KeepAlive          time.Duration
}

// Engine serves requests. Its fields are set once, before the first Serve.
type Engine struct {
	Store    Store
	Holds    Holds
	Sensors  Measurer
	Settings func() Settings
	Now      func() time.Time
	Entropy  io.Reader
	Key      []byte // local HMAC key for conversation and turn keys
	Redact   func(string) string
	// RedactBody is Redact for a request's JSON, which stays JSON; nil = requests
	// are not kept.
	RedactBody func([]byte) []byte
	// Decide is the action gate with the policy in force, for a task that began at
	// a time, zero where unknown; nil = built-in rules.
	Decide   func(a action.Action, since time.Time) action.Decision
	Attended func() bool // a person's surface is attached
	Log      *slog.Logger

	facts   sync.Mutex // from looking at what a fact replaces to writing it: two turns would tell one change twice
	telling sync.Mutex // from looking at what no block has told to storing the block
	mu      sync.Mutex
	convs   map[string]*conversation
	revoked int             // how often a person took an answer back
	spent   map[string]bool // approvals for once that were used, by hold and item
	breaker breaker
	budget  holdCounter
	reuse   reuse
	counts  counters
}

// Idle is how long a turn without an end may be silent before it is closed.
const Idle = 30 * time.Minute

// ResendGrace is how long after an error or a lost connection an equal body
// still belongs to the same turn.
const ResendGrace = 30 * time.Second

// counters count since the start, for the status.
type counters struct {
	turns, declared, caught, held, blocked, downgraded atomic.Int64
}

// Counters returns what happened since the start, by name.
func (e *Engine) Counters() map[string]int64 {
	return map[string]int64{
		"turns": e.counts.turns.Load(), "declared": e.counts.declared.Load(), "caught": e.counts.caught.Load(),
		"held": e.counts.held.Load(), "blocked": e.counts.blocked.Load(), "downgraded": e.counts.downgraded.Load(),
	}
}
