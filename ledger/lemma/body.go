package lemma

// Kind names an entry of the chain. The set is closed for writers; a reader
// keeps what it does not know.
type Kind string

const (
	KTurnOpened          Kind = "turn.opened"
	KTurnClassified      Kind = "turn.classified"
	KTurnInjected        Kind = "turn.injected"
	KTurnDeclared        Kind = "turn.declared"
	KTurnUndeclared      Kind = "turn.undeclared"
	KProvenanceDowngrade Kind = "provenance.downgraded"
	KLemmaWarned         Kind = "lemma.warned"
	KLemmaMatched        Kind = "lemma.matched"
	KSensorInvoked       Kind = "sensor.invoked"
	KSensorFailed        Kind = "sensor.failed"
	KRedactionApplied    Kind = "redaction.applied"
	KEvidenceSealed      Kind = "evidence.sealed"
	KClaimJudged         Kind = "claim.judged"
	KFactWritten         Kind = "fact.written"
	KFactContradicted    Kind = "fact.contradicted"
	KFactInvalidated     Kind = "fact.invalidated"
	KFactExpired         Kind = "fact.expired"
	KHoldOpened          Kind = "hold.opened"
	KHoldAnswered        Kind = "hold.answered"
	KAnswerRefused       Kind = "answer.refused"
	KAnswerRevoked       Kind = "answer.revoked"
	KHoldExpired         Kind = "hold.expired"
	KHoldCancelled       Kind = "hold.cancelled"
	KGateDecided         Kind = "gate.decided"
	KTurnGrounded        Kind = "turn.grounded"
	KActionDecided       Kind = "action.decided"
	KTurnClosed          Kind = "turn.closed"
	KRegistryLoaded      Kind = "registry.loaded"
	KRegistryRejected    Kind = "registry.rejected"
	KRegistryApproved    Kind = "registry.approved"
	KConfigLoaded        Kind = "config.loaded"
	KConfigPending       Kind = "config.pending"
	KConfigApproved      Kind = "config.approved"
	KStateLost           Kind = "state.lost"
	KScopeConflict       Kind = "scope.conflict"
	KBreakerOpened       Kind = "breaker.opened"
	KSensorBackedOff     Kind = "sensor.backed_off"
	KGateSwitched        Kind = "gate.switched"
	KChainOpened         Kind = "chain.opened"
	KChainRecovered      Kind = "chain.recovered"
	KRunFinished         Kind = "run.finished"
	KBlobForgotten       Kind = "blob.forgotten"
	KKnowledgeChanged    Kind = "knowledge.changed"
	KConnectDecided      Kind = "connect.decided"
	KActionOpined        Kind = "action.opined"
)

// Kinds is every kind of the contract, those of later rooms included.
var Kinds = []Kind{
	KTurnOpened, KTurnClassified, KTurnInjected, KTurnDeclared, KTurnUndeclared, KProvenanceDowngrade, KLemmaWarned,
	KLemmaMatched, KSensorInvoked, KSensorFailed, KRedactionApplied, KEvidenceSealed, KClaimJudged, KFactWritten,
	KFactContradicted, KFactInvalidated, KFactExpired, KHoldOpened, KHoldAnswered, KAnswerRefused, KHoldExpired, KHoldCancelled,
	KGateDecided, KTurnGrounded, KActionDecided, KTurnClosed, "floor.blocked", "judge.reviewed", "policy.published",
	"policy.reverted", "policy.applied", "policy.rejected", "access.requested", "access.answered", KRegistryLoaded,
	KRegistryRejected, KRegistryApproved, KConfigLoaded, KConfigPending, KConfigApproved, KStateLost, KScopeConflict,
	KBreakerOpened, KKeyCreated, KKeyRevoked, KKeyRotated, KKeySealed, KKnowledgeChanged, "entry.committed",
	"contradiction.filed", "cascade.fired", "cascade.reversed", "reputation.moved", "edge.measured", "run.queued",
	KRunFinished, "run.reviewed", "holdout.used", "replay.audited", KAnswerRevoked, "rule.demoted", "rule.disabled",
	KSensorBackedOff, KGateSwitched, KBlobForgotten, KRequestForgotten, "export.dead", KChainOpened, KChainRecovered,
	KConnectDecided, KActionOpined,
}

// Body is what an entry carries; each knows its kind.
type Body interface{ Kind() Kind }

// Principal is who sent a request.
type Principal struct {
	Agent string `json:"agent,omitempty"`
	// Command leads the process's group in its terminal, where that is another one.
	Command *Asker `json:"command,omitempty"`
	Host    string `json:"host,omitempty"`
	KeyID   string `json:"key_id,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Start   uint64 `json:"start,omitempty"` // of the process, clock ticks since boot
	UID     int    `json:"uid"`
	User    string `json:"user,omitempty"`
}

// TurnOpened starts a turn. RequestKind is the route's word for the request:
// new, loop, resend, subagent, side:<name>, unknown. A loop request opens no
// turn; a side request opens one that stays outside conversations.
//
// The fields of what every request writes stand in the order of their names on
// the chain: encoding/json then writes the canonical form and nothing is sorted.
type TurnOpened struct {
	Class         Class     `json:"class"`
	Contract      string    `json:"contract"`
	Conversation  string    `json:"conversation"`
	Format        string    `json:"format"`
	Key           string    `json:"key"`
	RequestKind   string    `json:"kind"`
	Model         string    `json:"model"`
	Principal     Principal `json:"principal"`
	Prompt        string    `json:"prompt,omitempty"` // newest person text, redacted, at most 200 bytes
	Reasons       []string  `json:"reasons"`
	RequestBlob   string    `json:"request_blob,omitempty"`
	Scope         string    `json:"scope"`
	ScopeEvidence string    `json:"scope_evidence"`
	Upstream      string    `json:"upstream"`
}

// TurnClassified records that a turn's class rose, e.g. by an action.
type TurnClassified struct {
	Contract string   `json:"contract"`
	Class    Class    `json:"class"`
	Reasons  []string `json:"reasons"`
}

// TurnInjected stores a sticky block: its exact bytes by hash, and where it stands.
type TurnInjected struct {
	Contract     string   `json:"contract"`
	Conversation string   `json:"conversation"`
	BlockBlob    string   `json:"block_blob"` // SHA-256 hex of the block's text
	Anchor       string   `json:"anchor"`     // hash of all items up to the one that carries the block
	Why          string   `json:"why"`        // facts | verification
	Facts        []string `json:"facts"`
	Deltas       []string `json:"deltas,omitempty"`    // facts of which it says what they replaced; no later block does
	Knowledge    []string `json:"knowledge,omitempty"` // pieces of knowledge in it
}

// Usage counts tokens as the upstream reported them.
type Usage struct {
	CacheCreate int64 `json:"cache_create"`
	CacheRead   int64 `json:"cache_read"`
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{CacheCreate: u.CacheCreate + v.CacheCreate, CacheRead: u.CacheRead + v.CacheRead, Input: u.Input + v.Input, Output: u.Output + v.Output}
}

// TurnDeclared is a declaration that passed validation.
type TurnDeclared struct {
	Contract        string  `json:"contract"`
	Rung            int     `json:"rung"`
	At              string  `json:"at"` // prompt | action
	PlanSummary     string  `json:"plan_summary"`
	Lemmas          []Lemma `json:"lemmas"`
	DeclarationBlob string  `json:"declaration_blob,omitempty"`
	Attempts        int     `json:"attempts"`
	Usage           Usage   `json:"usage"`
}

// TurnUndeclared: every rung failed, or the pass was not made; Reason says which.
type TurnUndeclared struct {
	Contract string   `json:"contract"`
	Reason   string   `json:"reason"`
	Tried    []string `json:"tried"`
	Usage    Usage    `json:"usage"`
}

// ProvenanceDowngraded records a tag that nothing backs.
type ProvenanceDowngraded struct {
	Contract string     `json:"contract"`
	Lemma    int        `json:"lemma"`
	Claim    string     `json:"claim"`
	From     Provenance `json:"from"`
	Reason   string     `json:"reason"`
}

// LemmaWarned: an optional field was dropped.
type LemmaWarned struct {
	Contract string `json:"contract"`
	Lemma    int    `json:"lemma"`
	Field    string `json:"field"`
	Reason   string `json:"reason"`
}

// SensorMatch names a sensor and why it was chosen (step, or category:phrase).
type SensorMatch struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// LemmaMatched lists the sensors chosen for a lemma; Note carries pending:<id>.
type LemmaMatched struct {
	Contract string        `json:"contract"`
	Lemma    int           `json:"lemma"`
	Claim    string        `json:"claim"`
	Sensors  []SensorMatch `json:"sensors"`
	Note     string        `json:"note,omitempty"`
}

// Invocation is one run of a sensor. OutputHash and OutputBlob are over the
// redacted bytes. OriginMAC is absent where a redaction hit.
type Invocation struct {
	ID              string            `json:"id"`
	SensorID        string            `json:"sensor_id"`
	File            string            `json:"file"` // qualified id's file part
	RegistryVersion string            `json:"registry_version"`
	Params          map[string]string `json:"params"`
	Argv            []string          `json:"argv"`
	Cwd             string            `json:"cwd"`
	StartedAt       string            `json:"started_at"`
	DurationMS      int64             `json:"duration_ms"`
	ExitCode        int               `json:"exit_code"`
	Sandbox         string            `json:"sandbox"`
	OutputHash      string            `json:"output_hash,omitempty"`
	OutputBlob      string            `json:"output_blob,omitempty"`
	OriginMAC       string            `json:"origin_mac,omitempty"`
	Reused          string            `json:"reused,omitempty"` // fact's invocation that was reused within its ttl
}

// SensorInvoked records a run that yielded evidence.
type SensorInvoked struct {
	Contract   string     `json:"contract"`
	Invocation Invocation `json:"invocation"`
}

// SensorFailed records a run that could not measure. Reason is one of exit,
// signal, timeout, output_cap, not_found, permission, sandbox, runs_as, param.
type SensorFailed struct {
	Contract   string     `json:"contract"`
	Invocation Invocation `json:"invocation"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
}

// RedactionApplied says that a rule hit, never what it hit.
type RedactionApplied struct {
	Contract string `json:"contract"`
	Where    string `json:"where"`
	Rule     string `json:"rule"`
	Count    int    `json:"count"`
}

// ClaimJudged is the verdict on one claim.
type ClaimJudged struct {
	Contract   string     `json:"contract"`
	ClaimID    string     `json:"claim_id"`
	TopicID    string     `json:"topic_id,omitempty"`
	Lemma      int        `json:"lemma"` // index in the declaration, -1 for implied and ambient
	Claim      string     `json:"claim"`
	Origin     string     `json:"origin"`               // declared | implied | ambient
	Provenance Provenance `json:"provenance,omitempty"` // effective
	Verdict    Verdict    `json:"verdict"`
	Reason     string     `json:"reason"`
	Rule       string     `json:"rule,omitempty"`
	Sensor     string     `json:"sensor,omitempty"`
	Invocation string     `json:"invocation,omitempty"`
	Key        string     `json:"key,omitempty"`
	Measured   string     `json:"measured,omitempty"`
	Claimed    string     `json:"claimed,omitempty"`
}

// FactWritten adds or refreshes a fact.
type FactWritten struct {
	Contract string `json:"contract"`
	Fact     Fact   `json:"fact"`
}

// FactContradicted: the fact was replaced inside its ttl by another value.
type FactContradicted struct {
	Contract string `json:"contract"`
	Fact     string `json:"fact"`
	By       string `json:"by"`
	Delta    string `json:"delta"`
}

// FactInvalidated: a person withdrew it.
type FactInvalidated struct {
	Contract string `json:"contract"`
	Fact     string `json:"fact"`
	Reason   string `json:"reason"`
	By       string `json:"by"`
}

// FactExpired: its ttl ran out. ExpiresAt is the end that was reached: a fact
// that has been refreshed since has another one and stays.
type FactExpired struct {
	Contract  string `json:"contract"`
	Fact      string `json:"fact"`
	ExpiresAt string `json:"expires_at,omitempty"`
}

// HoldOpened opens a hold.
type HoldOpened struct {
	Contract string `json:"contract"`
	Hold     Hold   `json:"hold"`
}

// HoldAnsweredBody carries every answer of a hold at once.
type HoldAnsweredBody struct {
	Contract string   `json:"contract"`
	Hold     string   `json:"hold"`
	Answers  []Answer `json:"answers"`
}

// AnswerRefused: somebody tried a person's call and did not count as one. Call
// is the method and path, or "chat"; Hold is set where it named one.
type AnswerRefused struct {
	Contract string `json:"contract"`
	Call     string `json:"call"`
	Hold     string `json:"hold,omitempty"`
	UID      int    `json:"uid"`
	PID      int    `json:"pid"`
	Exe      string `json:"exe,omitempty"`
	Why      string `json:"why"`
}

// AnswerRevoked takes back what a person answered to items of a hold. What left by
// it is not undone; the next one asks anew.
type AnswerRevoked struct {
	Contract string   `json:"contract"`
	Hold     string   `json:"hold"`
	Items    []string `json:"items"`
	By       Answerer `json:"by"`
}

// ConnectDecided is a ruling on a CONNECT, told once an hour for the same program,
// target and outcome. Class is what kind of place the host is: ai_vendor,
// marketplace, local, other or unreadable.
type ConnectDecided struct {
	Contract  string    `json:"contract"`
	Principal Principal `json:"principal"`
	Host      string    `json:"host"`
	Port      int       `json:"port"`
	Class     string    `json:"class"`
	Name      string    `json:"name,omitempty"` // of the vendor or marketplace
	Allowed   bool      `json:"allowed"`
	Why       string    `json:"why"`
}

// HoldExpiredBody and HoldCancelledBody end a hold without an answer.
type HoldExpiredBody struct {
	Contract string `json:"contract"`
	Hold     string `json:"hold"`
}

// HoldCancelledBody ends a hold because its turn ended.
type HoldCancelledBody struct {
	Contract string `json:"contract"`
	Hold     string `json:"hold"`
	Reason   string `json:"reason"`
}

// Counts are the verdicts of a turn by kind, and its actions.
type Counts struct {
	Allowed      int `json:"actions_allowed"`
	Denied       int `json:"actions_denied"`
	Held         int `json:"actions_held"`
	Confirmed    int `json:"confirmed"`
	Contradicted int `json:"contradicted"`
	Inconclusive int `json:"inconclusive"`
	Lemmas       int `json:"lemmas"`
	OutOfScope   int `json:"out_of_scope"`
	Told         int `json:"told"`
	Unjudged     int `json:"unjudged"`
	Unverifiable int `json:"unverifiable"`
	Waived       int `json:"waived"`
}

// GateDecided is the decision, durable before the first byte of a gated answer.
type GateDecided struct {
	Class    Class    `json:"class"`
	Contract string   `json:"contract"`
	Counts   Counts   `json:"counts"`
	Decision Decision `json:"decision"`
	Mode     Mode     `json:"mode"`
	Reasons  []string `json:"reasons"`
}

// TurnGrounded: the answer is made with this block in the request.
type TurnGrounded struct {
	Contract  string `json:"contract"`
	BlockBlob string `json:"block_blob"`
	Anchor    string `json:"anchor"`
}

// ActionDecided is the ruling on one tool call, durable before the call leaves.
// ActionHash is the SHA-256 of tool name, NUL and the arguments' raw bytes.
// State is what happened to the call, Ruled what the action gate said of it,
// which a phase below full does not carry out in whole.
type ActionDecided struct {
	Contract   string   `json:"contract"`
	ActionHash string   `json:"action_hash"`
	Tool       string   `json:"tool"`
	Summary    string   `json:"summary,omitempty"` // redacted, at most 200 bytes
	State      string   `json:"state"`             // ALLOW | DENY | REQUIRE_CONFIRM | ESCALATE | WITHHELD
	Effect     string   `json:"effect"`
	Risk       int      `json:"risk"`
	Findings   []string `json:"findings"`
	Premises   []string `json:"premises"`
	// Since contract 0.9 with the action gate; absent in older entries.
	Ruled       string   `json:"ruled,omitempty"`
	Enforce     string   `json:"enforce,omitempty"` // shadow | hard_deny | full
	DecisionID  string   `json:"decision_id,omitempty"`
	ContextHash string   `json:"context_hash,omitempty"`
	Policy      string   `json:"policy,omitempty"` // the rules' fingerprint or name
	Cwd         string   `json:"cwd,omitempty"`
	Signals     []string `json:"signals,omitempty"` // stage, tag, score and state of each
	// Semantic is what an evaluator of meaning found, PRINCIPLE PERCENT each, or why it
	// found nothing: with it the ruling can be made again.
	Semantic []string `json:"semantic,omitempty"`
	// Approval is the hold and item (h_…/1) of the person's word that let it out.
	Approval string `json:"approval,omitempty"`
}

// ActionOpined is what a model or another policy thinks of an action that the gate
// has ruled on. It is recorded beside the ruling and has no part in it.
type ActionOpined struct {
	Contract   string   `json:"contract"`
	DecisionID string   `json:"decision_id"`
	From       string   `json:"from"`            // model:NAME | policy:FINGERPRINT
	Risk       int      `json:"risk"`            // 0–100
	State      string   `json:"state,omitempty"` // what another policy says
	Delta      int      `json:"delta"`           // its risk less the ruling's
	Disagrees  bool     `json:"disagrees"`
	Flags      []string `json:"flags,omitempty"`
	Reasoning  string   `json:"reasoning,omitempty"` // redacted, at most 200 bytes
}

// TurnClosed ends a turn. Status is the HTTP status sent, 0 when none was.
// Timings are milliseconds by stage.
type TurnClosed struct {
	Contract    string           `json:"contract"`
	Decision    Decision         `json:"decision"`
	Error       string           `json:"error,omitempty"`
	Status      int              `json:"status"`
	Timings     map[string]int64 `json:"timings"`
	UsageClient Usage            `json:"usage_client"`
	UsageOurs   Usage            `json:"usage_ours"`
}

// RegistryLoaded, RegistryRejected and RegistryApproved follow one registry file.
type RegistryLoaded struct {
	Contract string   `json:"contract"`
	File     string   `json:"file"`
	Version  string   `json:"version"`
	Sensors  int      `json:"sensors"`
	Pending  []string `json:"pending"`
	Changed  []string `json:"changed"`
	Warnings []string `json:"warnings"`
}

// RegistryRejected: the edit is bad, the last good registry stays in force.
type RegistryRejected struct {
	Contract string `json:"contract"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Reason   string `json:"reason"`
	Live     string `json:"live"` // version that stays in force
}

// RegistryApproved pins definitions.
type RegistryApproved struct {
	Contract string   `json:"contract"`
	File     string   `json:"file"`
	Sensors  []string `json:"sensors"`
	Version  string   `json:"version"`
	By       Answerer `json:"by"`
}

// ConfigLoaded, ConfigPending and ConfigApproved follow gettierd.yaml.
type ConfigLoaded struct {
	Contract string   `json:"contract"`
	File     string   `json:"file"`
	Hash     string   `json:"hash"`
	Changed  []string `json:"changed"`
	Error    string   `json:"error,omitempty"` // set: the last good one stays in force
}

// ConfigPending: these keys loosen and wait for a person.
type ConfigPending struct {
	Contract string   `json:"contract"`
	Hash     string   `json:"hash"`
	Keys     []string `json:"keys"`
}

// ConfigApproved: a person approved the hash.
type ConfigApproved struct {
	Contract string   `json:"contract"`
	Hash     string   `json:"hash"`
	Keys     []string `json:"keys"`
	By       Answerer `json:"by"`
}

// StateLost: state is missing on a machine that had it.
type StateLost struct {
	Contract string `json:"contract"`
	Reason   string `json:"reason"`
}

// ScopeConflict: header or path names a root that does not contain the peer's cwd.
type ScopeConflict struct {
	Contract string `json:"contract"`
	Named    string `json:"named"`
	Found    string `json:"found"`
}

// BreakerOpened: a stage failed three times within a minute in one conversation.
type BreakerOpened struct {
	Contract     string `json:"contract"`
	Stage        string `json:"stage"`
	Conversation string `json:"conversation"`
	Reason       string `json:"reason"`
}

// SensorBackedOff: three could-not-run in a row.
type SensorBackedOff struct {
	Contract string `json:"contract"`
	Sensor   string `json:"sensor"`
	Reason   string `json:"reason"`
	Until    string `json:"until"`
}

// ChainOpened is the first entry of a log and of each start of the daemon.
type ChainOpened struct {
	Contract string `json:"contract"`
	LogKey   string `json:"log_key"` // hex of the Ed25519 public key
	Origin   string `json:"origin"`
	Version  string `json:"version"`
	Format   int    `json:"format"`
}

// ChainRecovered: the last stop was not clean; these turns stopped where said.
type ChainRecovered struct {
	Contract string        `json:"contract"`
	Checked  uint64        `json:"checked"`
	Turns    []StoppedTurn `json:"turns"`
}

// StoppedTurn is a turn that never closed, with the last kind it reached.
type StoppedTurn struct {
	Turn string `json:"turn"`
	At   Kind   `json:"at"`
}

// BlobForgotten: blobs that no entry after Through names were dropped, by
// retention. The entries that name them stay, and so do their hashes.
type BlobForgotten struct {
	Contract string `json:"contract"`
	Through  uint64 `json:"through"`
	Blobs    int    `json:"blobs"`
	Bytes    int64  `json:"bytes"` // as stored
	Reason   string `json:"reason"`
}

func (TurnOpened) Kind() Kind           { return KTurnOpened }
func (TurnClassified) Kind() Kind       { return KTurnClassified }
func (TurnInjected) Kind() Kind         { return KTurnInjected }
func (TurnDeclared) Kind() Kind         { return KTurnDeclared }
func (TurnUndeclared) Kind() Kind       { return KTurnUndeclared }
func (ProvenanceDowngraded) Kind() Kind { return KProvenanceDowngrade }
func (LemmaWarned) Kind() Kind          { return KLemmaWarned }
func (LemmaMatched) Kind() Kind         { return KLemmaMatched }
func (SensorInvoked) Kind() Kind        { return KSensorInvoked }
func (SensorFailed) Kind() Kind         { return KSensorFailed }
func (RedactionApplied) Kind() Kind     { return KRedactionApplied }
func (ClaimJudged) Kind() Kind          { return KClaimJudged }
func (FactWritten) Kind() Kind          { return KFactWritten }
func (FactContradicted) Kind() Kind     { return KFactContradicted }
func (FactInvalidated) Kind() Kind      { return KFactInvalidated }
func (FactExpired) Kind() Kind          { return KFactExpired }
func (HoldOpened) Kind() Kind           { return KHoldOpened }
func (HoldAnsweredBody) Kind() Kind     { return KHoldAnswered }
func (AnswerRefused) Kind() Kind        { return KAnswerRefused }
func (AnswerRevoked) Kind() Kind        { return KAnswerRevoked }
func (ConnectDecided) Kind() Kind       { return KConnectDecided }
func (HoldExpiredBody) Kind() Kind      { return KHoldExpired }
func (HoldCancelledBody) Kind() Kind    { return KHoldCancelled }
func (GateDecided) Kind() Kind          { return KGateDecided }
func (TurnGrounded) Kind() Kind         { return KTurnGrounded }
func (ActionDecided) Kind() Kind        { return KActionDecided }
func (TurnClosed) Kind() Kind           { return KTurnClosed }
func (RegistryLoaded) Kind() Kind       { return KRegistryLoaded }
func (RegistryRejected) Kind() Kind     { return KRegistryRejected }
func (RegistryApproved) Kind() Kind     { return KRegistryApproved }
func (ConfigLoaded) Kind() Kind         { return KConfigLoaded }
func (ConfigPending) Kind() Kind        { return KConfigPending }
func (ConfigApproved) Kind() Kind       { return KConfigApproved }
func (StateLost) Kind() Kind            { return KStateLost }
func (ScopeConflict) Kind() Kind        { return KScopeConflict }
func (ActionOpined) Kind() Kind         { return KActionOpined }
func (BreakerOpened) Kind() Kind        { return KBreakerOpened }
func (SensorBackedOff) Kind() Kind      { return KSensorBackedOff }
func (ChainOpened) Kind() Kind          { return KChainOpened }
func (ChainRecovered) Kind() Kind       { return KChainRecovered }
func (BlobForgotten) Kind() Kind        { return KBlobForgotten }
