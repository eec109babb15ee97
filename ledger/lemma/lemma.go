// Package lemma holds the value types of the contracts: the declaration a model
// makes, the fact a sensor measured, the hold a person answers, and the bodies
// of every entry on the chain. It is a leaf: no I/O, no clock, no randomness,
// and nothing of ours is imported. What rules over these values lives in
// daemon/gate and sensors/verdict, never here.
package lemma

import (
	"encoding/json"
	"math"
	"strconv"
)

// Contract is the version that bodies depending on a contract carry.
const Contract = "0.9"

// Provenance says where a claim comes from.
type Provenance string

const (
	Measured Provenance = "measured"
	Told     Provenance = "told"
	Believed Provenance = "believed"
)

// Operator is the closed set of comparisons of a falsifying observation, an
// expectation or a judge rule.
type Operator string

const (
	Eq          Operator = "="
	Ne          Operator = "!="
	Lt          Operator = "<"
	Le          Operator = "<="
	Gt          Operator = ">"
	Ge          Operator = ">="
	Contains    Operator = "contains"
	NotContains Operator = "not_contains"
)

// Valid reports whether o is one of the closed set.
func (o Operator) Valid() bool {
	switch o {
	case Eq, Ne, Lt, Le, Gt, Ge, Contains, NotContains:
		return true
	}
	return false
}

// Class is how consequential a turn is, weakest first: explore, edit, change,
// destructive.
type Class string

const (
	Explore     Class = "explore"
	Edit        Class = "edit"
	Change      Class = "change"
	Destructive Class = "destructive"
)

// Rank orders classes; an unknown class ranks as destructive, never as harmless.
func (c Class) Rank() int {
	switch c {
	case Explore:
		return 0
	case Edit:
		return 1
	case Change:
		return 2
	}
	return 3
}

// MaxClass returns the more consequential of the two.
func MaxClass(a, b Class) Class {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// Mode is what the gate does with an unsettled or contradicted claim of a class.
type Mode string

const (
	Block    Mode = "block"
	Correct  Mode = "correct"
	Annotate Mode = "annotate"
	Log      Mode = "log"
	Off      Mode = "off"
)

// Verdict is the outcome of judging one claim.
type Verdict string

const (
	Confirmed    Verdict = "confirmed"
	Contradicted Verdict = "contradicted"
	Inconclusive Verdict = "inconclusive"
	Unjudged     Verdict = "unjudged"
	Unverifiable Verdict = "unverifiable"
	OutOfScope   Verdict = "out_of_scope"
	VerdictTold  Verdict = "told"
	Waived       Verdict = "waived"
)

// Decision is what became of a turn, strongest first in Strength.
type Decision string

const (
	DecError              Decision = "error"
	DecBlocked            Decision = "blocked"
	DecHeld               Decision = "held"
	DecCaught             Decision = "caught"
	DecCorrected          Decision = "corrected"
	DecWaived             Decision = "waived"
	DecConfirmedByUser    Decision = "confirmed_by_user"
	DecReleasedUnverified Decision = "released_unverified"
	DecReleased           Decision = "released"
	DecAnnotated          Decision = "annotated"
	DecLogged             Decision = "logged"
	DecPassThrough        Decision = "pass_through"
)

// Decisions lists every decision, strongest first.
var Decisions = []Decision{
	DecError, DecBlocked, DecHeld, DecCaught, DecCorrected, DecWaived, DecConfirmedByUser,
	DecReleasedUnverified, DecReleased, DecAnnotated, DecLogged, DecPassThrough,
}

// Stronger returns the stronger of two decisions.
func Stronger(a, b Decision) Decision {
	for _, d := range Decisions {
		if d == a || d == b {
			return d
		}
	}
	return a
}

// FalsifyingObservation is a falsifier as a condition: it is met when
// key OPERATOR value holds for the measured value. Value is
// a string, a bool or a json.Number, so that 20.10 stays 20.10.
type FalsifyingObservation struct {
	Sensor   string   `json:"sensor"`
	Key      string   `json:"key"`
	Operator Operator `json:"operator"`
	Value    any      `json:"value"`
}

// MarshalJSON keeps the spelling of a number. RFC 8785, under which entries are
// written, would turn 20.10 into 20.1 and refuse a long integer; such a number
// stands as a string of its digits, and typed comparison reads both alike.
func (o FalsifyingObservation) MarshalJSON() ([]byte, error) {
	if n, ok := o.Value.(json.Number); ok && !exact(n.String()) {
		o.Value = n.String()
	}
	type plain FalsifyingObservation
	return json.Marshal(plain(o))
}

// exact reports whether s is spelled as RFC 8785 would spell it.
func exact(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > 1<<53 || f != 0 && math.Abs(f) < 1e-6 {
		return false
	}
	return strconv.FormatFloat(f, 'f', -1, 64) == s && s != "-0"
}

// Lemma is one declared premise (contract 1).
type Lemma struct {
	Claim                 string                 `json:"claim"`
	Provenance            Provenance             `json:"provenance"`
	LoadBearing           bool                   `json:"load_bearing"`
	Falsifier             string                 `json:"falsifier,omitempty"`
	FalsifyingObservation *FalsifyingObservation `json:"falsifying_observation,omitempty"`
	SuggestedSensor       string                 `json:"suggested_sensor,omitempty"`
	Symbols               []string               `json:"symbols,omitempty"`
}

// Declaration is what the declare pass yields.
type Declaration struct {
	PlanSummary string  `json:"plan_summary"`
	Lemmas      []Lemma `json:"lemmas"`
}

// Source is where a fact comes from.
type Source struct {
	Kind        string `json:"kind"` // sensor | user | model | tool
	Ref         string `json:"ref"`  // invocation id, answer's hold id, …
	Origin      string `json:"origin"`
	OriginClass string `json:"origin_class"` // sensor | person | external | model
}

// FactStatus is the life of a fact.
type FactStatus string

const (
	StatusActive       FactStatus = "active"
	StatusStale        FactStatus = "stale"
	StatusContradicted FactStatus = "contradicted"
	StatusInvalidated  FactStatus = "invalidated"
)

// Fact is one row of the ledger's facts. Identity is (Scope, Subject, Key).
// Times are RFC 3339 with nine fractional digits, UTC.
type Fact struct {
	ID           string     `json:"id"`
	Scope        string     `json:"scope"`   // host | project:<id>
	Subject      string     `json:"subject"` // sensor id + "@" + params hash, or "person"
	Claim        string     `json:"claim"`
	Key          string     `json:"key,omitempty"`
	Value        string     `json:"value,omitempty"`
	Unit         string     `json:"unit,omitempty"`
	Type         string     `json:"type,omitempty"` // compare type of Value: string|number|bool|bytes|duration|version
	Provenance   Provenance `json:"provenance"`
	Source       Source     `json:"source"`
	Status       FactStatus `json:"status"`
	Sensitivity  string     `json:"sensitivity"` // public | internal | secret
	TTLSeconds   *int64     `json:"ttl_seconds"`
	CreatedAt    string     `json:"created_at"`
	ExpiresAt    *string    `json:"expires_at"`
	SupersededBy *string    `json:"superseded_by"`
}

// HoldState is open, answered, expired or cancelled.
type HoldState string

const (
	HoldOpen      HoldState = "open"
	HoldAnswered  HoldState = "answered"
	HoldExpired   HoldState = "expired"
	HoldCancelled HoldState = "cancelled"
)

// AnswerKind is what a person may answer to an item.
type AnswerKind string

const (
	AnswerConfirm AnswerKind = "confirm"
	AnswerCorrect AnswerKind = "correct"
	AnswerWaive   AnswerKind = "waive"
	AnswerApprove AnswerKind = "approve"
	AnswerDeny    AnswerKind = "deny"
)

// AnswerScope is how far an answer reaches: this turn, this conversation and
// root, or the project for 24 hours.
type AnswerScope string

const (
	ScopeOnce    AnswerScope = "once"
	ScopeTask    AnswerScope = "task"
	ScopeProject AnswerScope = "project"
)

// Answer binds one claim id in its scope.
type Answer struct {
	Hold         string      `json:"hold"`
	Item         string      `json:"item"`
	ClaimID      string      `json:"claim_id"`
	Answer       AnswerKind  `json:"answer"`
	Text         string      `json:"text,omitempty"`
	Scope        AnswerScope `json:"scope"`
	Conversation string      `json:"conversation,omitempty"`
	ExpiresAt    string      `json:"expires_at"`
	By           Answerer    `json:"by"`
	At           string      `json:"at"`
	// RevokedAt is when it was taken back; only a hold's own items have it.
	RevokedAt string `json:"revoked_at,omitempty"`
}

// Answerer is who answered: the peer's uid, its process chain and terminal.
type Answerer struct {
	UID   int      `json:"uid"`
	User  string   `json:"user,omitempty"`
	Via   string   `json:"via"` // tui | cli | chat | editor | harness
	TTY   string   `json:"tty,omitempty"`
	Chain []string `json:"chain,omitempty"`
}

// HoldItem is one undecided claim of a hold, or one call that waits.
type HoldItem struct {
	ID              string   `json:"id"`
	ClaimID         string   `json:"claim_id"`
	TopicID         string   `json:"topic_id,omitempty"`
	Claim           string   `json:"claim"`
	Reason          string   `json:"reason"`
	Verdict         Verdict  `json:"verdict"`
	Sensor          string   `json:"sensor,omitempty"`
	Invocation      string   `json:"invocation,omitempty"`
	Tried           []string `json:"tried"`
	EvidenceExcerpt string   `json:"evidence_excerpt,omitempty"`
	// Action is the call that waits for approve or deny; the item is no claim then.
	Action *HeldAction `json:"action,omitempty"`
	Answer *Answer     `json:"answer,omitempty"`
}

// HeldAction is a tool call as the action gate resolved it. Its texts are
// redacted and bounded, its hashes are of what came.
type HeldAction struct {
	// Hash is the SHA-256 of the canonical action, hex: what an approval binds
	// from effect destroy up, or when it is given once.
	Hash string `json:"hash"`
	Tool string `json:"tool"`
	Text string `json:"text"`          // the command, or the arguments
	Cut  int    `json:"cut,omitempty"` // bytes of them that are not shown
	// Runs are the programs that it runs, wrappers and quotes resolved.
	Runs       []HeldCommand `json:"runs,omitempty"`
	Cwd        string        `json:"cwd,omitempty"`
	Effect     string        `json:"effect"`
	State      string        `json:"state"` // REQUIRE_CONFIRM | ESCALATE: to approve that needs a note
	Findings   []string      `json:"findings"`
	DecisionID string        `json:"decision_id"`
	Policy     string        `json:"policy"`
	// Prefix and Targets say in words what an approval for the task covers beside
	// this very call: the same programs with the same options, in the same
	// directory, on no other targets. Empty where it covers nothing else.
	Prefix  []string `json:"prefix,omitempty"`
	Targets []string `json:"targets,omitempty"`
}

// HeldCommand is one program with its words, and what runs it, outermost first.
type HeldCommand struct {
	Argv     []string `json:"argv"`
	Wrappers []string `json:"wrappers,omitempty"`
}

// Asker is the process that was asked in its chat: only its own next message
// may carry the answer (13.2). PID and Start together name it.
type Asker struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Hold waits for a person.
type Hold struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind"` // claims | action | access
	State          HoldState  `json:"state"`
	Scope          string     `json:"scope"`
	Turn           string     `json:"turn"`
	Conversation   string     `json:"conversation"`
	Model          string     `json:"model"`
	Agent          string     `json:"agent"`
	Class          Class      `json:"class,omitempty"` // of what waits
	Asker          *Asker     `json:"asker,omitempty"`
	PlanSummary    string     `json:"plan_summary"`
	OpenedAt       string     `json:"opened_at"`
	ClientDeadline string     `json:"client_deadline,omitempty"`
	ExpiresAt      string     `json:"expires_at"`
	Items          []HoldItem `json:"items"`
}
