package turn

import (
	"maps"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// conversation is what the engine remembers of one conversation between requests.
type conversation struct {
	mu  sync.Mutex
	cur *live // the newest turn, open or not
	// Under the engine's lock, since a turn that is being served asks for them:
	covered *coverage // the newest declaration, for reuse (13.8)
	touched time.Time
}

// coverage is what a declaration stands for.
type coverage struct {
	at    time.Time
	class lemma.Class
	root  string
	turn  string
	// anchor is where the block stands that told the model what was found, "" when
	// none was needed. A declaration covers nothing once that is gone (compaction).
	anchor string
}

// live is a turn in memory. Its requests are served one at a time (mu).
type live struct {
	mu sync.Mutex

	id           string
	conversation string // scoped
	named        string // as the route calls it
	key          string
	scope        Scope
	pid          int
	cred         string
	class        lemma.Class
	reasons      []string
	prompt       string
	opened       time.Time

	stage    string
	decision lemma.Decision
	counts   lemma.Counts
	rung     int
	hold     string
	gated    bool // the gate decided something in this turn
	passes   int

	notes    string // to stand at the end of the turn's last answer
	external bool   // a result from outside the project came in

	usageClient lemma.Usage
	usageOurs   lemma.Usage
	timings     map[string]int64

	handed  ledger.Draft // what the ledger was given while the upstream works
	pending <-chan error // its commit
	commit  error        // how that went
	status  int
	failed  bool // the last request ended in an error
	lost    bool // its connection was lost

	fresh     bool        // nothing was done for its prompt yet
	side      bool        // a client's own errand
	queued    int         // how many words that a person said in mid-loop have been taken in
	covered   lemma.Class // strongest class that a declaration of this turn covers, "" = none
	revoked   int         // how often answers had been taken back then
	anchor    string      // of the block that its newest check left, see coverage
	openCalls []wire.Call // calls of the last answer that wait for results

	// snap is what other requests may look at while this turn is being served.
	snapMu sync.Mutex
	snap   snapshot
}

// snapshot is a turn as seen from outside its lock.
type snapshot struct {
	serving  bool
	checking bool // in declare, verify or hold: an equal request waits and joins
	hold     string
	closed   bool
	broken   bool // its last request failed or lost its connection
	ended    time.Time
	body     []byte // of its last request, while a resend may still join
	calls    []wire.Call
}

func (t *live) look() snapshot {
	t.snapMu.Lock()
	defer t.snapMu.Unlock()
	return t.snap
}

func (t *live) show(f func(*snapshot)) {
	t.snapMu.Lock()
	defer t.snapMu.Unlock()
	f(&t.snap)
}

func (t *live) spent(stage string, d time.Duration) {
	if t.timings == nil {
		t.timings = map[string]int64{}
	}
	t.timings[stage] += d.Milliseconds()
}

// outcome is the turn's decision, or error while its last request failed: a
// resend that succeeds has its decision again.
func (t *live) outcome() lemma.Decision {
	if t.failed {
		return lemma.DecError
	}
	return t.decision
}

func (t *live) headers() Headers {
	return Headers{Turn: t.id, Decision: t.outcome(), Hold: t.hold, Counts: t.counts, Rung: t.rung, Gated: t.gated}
}

func (t *live) closedBody() lemma.TurnClosed {
	body := lemma.TurnClosed{
		Contract: lemma.Contract, Decision: t.outcome(), Status: t.status, Timings: maps.Clone(t.timings),
		UsageClient: t.usageClient, UsageOurs: t.usageOurs,
	}
	if body.Timings == nil {
		body.Timings = map[string]int64{}
	}
	switch {
	case t.lost:
		body.Error = "connection lost in " + t.stage
	case t.failed:
		body.Error = "failed in " + t.stage
	}
	return body
}

// holdCounter counts opened holds for the budget: times of the last day.
type holdCounter struct {
	mu    sync.Mutex
	times []time.Time
}

// over reports whether the budget is used up at now.
func (h *holdCounter) over(now time.Time, perHour, perDay int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(now)
	hour := 0
	for _, t := range h.times {
		if now.Sub(t) < time.Hour {
			hour++
		}
	}
	return hour >= perHour || len(h.times) >= perDay
}

func (h *holdCounter) add(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(now)
	h.times = append(h.times, now)
}

func (h *holdCounter) drop(now time.Time) {
	for len(h.times) > 0 && now.Sub(h.times[0]) >= 24*time.Hour {
		h.times = h.times[1:]
	}
}

// breaker counts our own failures by stage and conversation. It never speaks
// for the floor or for actions of effect destroy and above (13, the invariant).
type breaker struct {
	mu   sync.Mutex
	seen map[string][]time.Time
}

const (
	breakerLimit  = 3
	breakerWindow = time.Minute
	breakerKeep   = 1024 // conversations remembered
)

// failed records a failure and reports whether it opened the breaker.
func (b *breaker) failed(stage, conversation string, now time.Time) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil || len(b.seen) >= breakerKeep {
		b.seen = map[string][]time.Time{}
	}
	k := stage + "\x00" + conversation
	b.seen[k] = append(recent(b.seen[k], now), now)
	return len(b.seen[k]) == breakerLimit
}

func (b *breaker) open(stage, conversation string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := stage + "\x00" + conversation
	if b.seen[k] == nil {
		return false
	}
	b.seen[k] = recent(b.seen[k], now)
	return len(b.seen[k]) >= breakerLimit
}

func recent(ts []time.Time, now time.Time) []time.Time {
	for len(ts) > 0 && now.Sub(ts[0]) > breakerWindow {
		ts = ts[1:]
	}
	return ts
}

// Revoked tells that a person took an answer back: no declaration that may rest on
// one covers what comes.
func (e *Engine) Revoked() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoked++
	for _, c := range e.convs {
		c.covered = nil
	}
}

// revocations is how often answers were taken back since the start.
func (e *Engine) revocations() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revoked
}
