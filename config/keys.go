package config

import (
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Type is how a value is written.
type Type string

const (
	String   Type = "string"
	Bool     Type = "bool"
	Int      Type = "int"
	Bytes    Type = "bytes"    // 33554432, 32MiB, 64k
	Duration Type = "duration" // 90s, 24h, 7d
	Enum     Type = "enum"
	List     Type = "list"  // of absolute paths
	Hosts    Type = "hosts" // a list of host patterns
	Headers  Type = "headers"
	Roots    Type = "projects"
)

// Order says which direction of a change loosens.
type Order int

const (
	// Free: neither direction weakens the guard.
	Free Order = iota
	// Rising: a larger value is looser, true looser than false.
	Rising
	// Falling: a smaller value is looser, false looser than true.
	Falling
	// Listed: Values stand strict to loose.
	Listed
	// Pinned: any change may send data or rights elsewhere.
	Pinned
	// FallingNever is Falling where 0 means never, thus the strictest.
	FallingNever
)

// Key is one row of the table.
type Key struct {
	Name    string // "*" stands for an upstream's name
	Type    Type
	Default any
	Live    bool // takes effect by reload; else at the next start
	Order   Order
	Values  []string // of an enum
	Min     int64    // of numbers, sizes (bytes) and durations (nanoseconds)
	Max     int64
	Env     []string // further names besides GETTIER_SECTION_KEY
	Doc     string
}

// Defaults that other rooms quote. Each says why it is what it is.
const (
	DefaultPort = 11435 // beside Ollama's 11434, easy to remember
	DefaultHost = "127.0.0.1"
	// DefaultMaxBody is a full context with pictures, inflated.
	DefaultMaxBody = 64 << 20
	// DefaultMaxInflightBytes lets four of the largest bodies be in memory at once.
	DefaultMaxInflightBytes = 256 << 20
	// MaxPerMinute bounds what a limit of requests counts.
	MaxPerMinute = 100_000
	// DefaultClientWait stays under the read timeouts of the clients we know.
	DefaultClientWait = 120 * time.Second
	DefaultHoldTTL    = 24 * time.Hour
	// DefaultHoldsPerHour and PerDay keep holds so rare that people read them.
	DefaultHoldsPerHour = 2
	DefaultHoldsPerDay  = 6
	// DefaultDeclareTokens is room for a dozen lemmas.
	DefaultDeclareTokens   = 600
	DefaultDeclaresPerTurn = 2
	DefaultReuse           = 30 * time.Minute
	DefaultSemanticTimeout = 300 * time.Millisecond
	DefaultInjectBytes     = 8 << 10
	// DefaultWidth is how many read-only sensors run beside each other.
	DefaultWidth         = 4
	DefaultToldHost      = 30 * 24 * time.Hour
	DefaultToldProject   = 7 * 24 * time.Hour
	DefaultRetain        = 90 * 24 * time.Hour // 140 MB of modelled days
	DefaultTimeout       = 10 * time.Minute    // the longest thinking answers seen take minutes
	DefaultOpenAIURL     = "https://api.openai.com"
	DefaultAnthropicURL  = "https://api.anthropic.com"
	DefaultOpenAIName    = "openai"
	DefaultAnthropicName = "anthropic"
	// ChatGPTName is the upstream of requests with a ChatGPT login, whose
	// credential is good there and nowhere else.
	ChatGPTName           = "chatgpt"
	ChatGPTURL            = "https://chatgpt.com/backend-api/codex"
	defaultUpstreamFormat = "openai"
)

var modes = []string{string(lemma.Block), string(lemma.Correct), string(lemma.Annotate), string(lemma.Log), string(lemma.Off)}

const (
	day = int64(24 * time.Hour)
	mib = int64(1 << 20)
)

// Keys is the whole configuration. A key that is not here is refused, and none
// is here that nothing reads.
var Keys = []Key{
	{Name: "version", Type: Int, Default: 1, Min: 1, Max: 1, Order: Pinned, Doc: "Format of this file."},
	{Name: "upstreams.*.base_url", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Where the provider listens, with or without /v1."},
	{Name: "upstreams.*.format", Type: Enum, Default: defaultUpstreamFormat, Values: []string{"openai", "anthropic"}, Live: true, Order: Pinned, Doc: "The wire format it speaks."},
	{Name: "upstreams.*.key_env", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Environment variable of the daemon that holds its key; without one the client's own credential is passed on."},
	{Name: "upstreams.*.key_file", Type: String, Default: "", Live: true, Order: Pinned, Doc: "File that holds its key."},
	{Name: "upstreams.*.key_keyring", Type: String, Default: "", Live: true, Order: Pinned, Doc: "SERVICE/USER of its key in the desktop's keyring (secret-tool store service SERVICE username USER)."},
	{Name: "upstreams.*.key_age", Type: String, Default: "", Live: true, Order: Pinned, Doc: "File with its key, encrypted with age."},
	{Name: "upstreams.*.key_age_identity", Type: String, Default: "", Live: true, Order: Pinned, Doc: "age identity that opens key_age; nobody else may read it."},
	{Name: "upstreams.*.key_ledger", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Name of its key in the ledger, encrypted (gettier key store-upstream NAME)."},
	{Name: "upstreams.*.headers", Type: Headers, Default: map[string]string{}, Live: true, Order: Pinned, Doc: "Headers added to each request."},
	{Name: "upstreams.*.ca_file", Type: String, Default: "", Live: true, Order: Pinned, Doc: "PEM file of further roots to trust for it."},
	{Name: "upstreams.*.timeout", Type: Duration, Default: DefaultTimeout, Min: int64(time.Second), Max: day, Live: true, Order: Free, Doc: "How long it may stay silent."},
	{Name: "upstreams.*.mode", Type: Enum, Default: "gate", Values: []string{"gate", "observe"}, Live: true, Order: Listed, Doc: "gate checks premises; observe only records."},
	{Name: "upstreams.*.trusted", Type: Bool, Default: false, Live: true, Order: Rising, Doc: "May see measured facts. Default: true for https and for this machine."},
	{Name: "default_upstream.openai", Type: String, Default: DefaultOpenAIName, Live: true, Order: Pinned, Doc: "Upstream of OpenAI requests whose path names none."},
	{Name: "default_upstream.anthropic", Type: String, Default: DefaultAnthropicName, Live: true, Order: Pinned, Doc: "Upstream of Anthropic requests whose path names none."},
	{Name: "proxy.port", Type: Int, Default: DefaultPort, Min: 0, Max: 65535, Order: Free, Doc: "Port of the proxy; 0 takes a free one."},
	{Name: "proxy.bind_host", Type: String, Default: DefaultHost, Order: Pinned, Doc: "Address the proxy listens on; anything but this machine requires keys."},
	{Name: "proxy.max_body", Type: Bytes, Default: int64(DefaultMaxBody), Min: 64 << 10, Max: 1024 * mib, Live: true, Order: Free, Doc: "Largest request body, after decompression."},
	{Name: "proxy.max_inflight_bytes", Type: Bytes, Default: int64(DefaultMaxInflightBytes), Min: mib, Max: 64 * 1024 * mib, Live: true, Order: Free, Doc: "Bodies held in memory at once; more wait."},
	{Name: "proxy.limit", Type: Int, Default: 0, Min: 0, Max: MaxPerMinute, Live: true, Order: Free, Doc: "Requests a minute of one program, 0 takes any number; keys have their own (gettier key create --per-minute)."},
	{Name: "connect.enabled", Type: Bool, Default: false, Live: true, Order: Rising, Doc: "Serve CONNECT, so that programs which use the proxy for HTTPS (gettier env --connect) show which hosts they reach. Nothing of what flows is read; this machine and private networks are never reached so."},
	{Name: "connect.ai_vendors", Type: Hosts, Default: []string(nil), Live: true, Order: Pinned, Doc: "AI vendors that may be reached directly, past the gate: names as a refusal gives them, or hosts. Others are refused."},
	{Name: "connect.allow", Type: Hosts, Default: []string(nil), Live: true, Order: Pinned, Doc: "Hosts that are let through whatever they are: HOST, *.HOST, or with :PORT where that is not 443."},
	{Name: "connect.deny", Type: Hosts, Default: []string(nil), Live: true, Order: Pinned, Doc: "Hosts that are refused before all else."},
	{Name: "connect.marketplace_allow", Type: Hosts, Default: []string(nil), Live: true, Order: Pinned, Doc: "Marketplaces of extensions and MCP servers that may be reached; others are refused."},
	{Name: "gate.mode", Type: Enum, Default: "ask", Values: []string{"ask", "watch"}, Live: true, Order: Listed, Doc: "ask holds what cannot be settled; watch notes it. Destructive actions are held in both."},
	{Name: "gate.classes.explore", Type: Enum, Default: string(lemma.Off), Values: modes, Live: true, Order: Listed, Doc: "Mode of questions and reading."},
	{Name: "gate.classes.edit", Type: Enum, Default: string(lemma.Correct), Values: modes, Live: true, Order: Listed, Doc: "Mode of edits to sources."},
	{Name: "gate.classes.change", Type: Enum, Default: string(lemma.Block), Values: modes, Live: true, Order: Listed, Doc: "Mode of changes to manifests, configuration, infrastructure and data."},
	{Name: "gate.classes.destructive", Type: Enum, Default: string(lemma.Block), Values: modes, Live: true, Order: Listed, Doc: "Mode of requests that destroy; their actions are blocked whatever stands here."},
	{Name: "gate.hold_on_unverifiable", Type: Bool, Default: false, Live: true, Order: Falling, Env: []string{"GETTIER_HOLD_ON_UNVERIFIABLE"}, Doc: "Hold also what no sensor can check."},
	{Name: "gate.annotate_gaps", Type: Bool, Default: false, Live: true, Order: Falling, Doc: "Add a line for each premise that nothing could check."},
	{Name: "gate.client_wait", Type: Duration, Default: DefaultClientWait, Min: 0, Max: int64(time.Hour), Live: true, Order: Free, Doc: "How long a client is kept waiting for a person. Left alone it counts while a screen, an editor or gettier events in a terminal is attached; set by hand, always."},
	{Name: "gate.hold_ttl", Type: Duration, Default: DefaultHoldTTL, Min: int64(time.Minute), Max: 30 * day, Live: true, Order: Free, Doc: "How long a hold can be answered."},
	{Name: "gate.budget.per_hour", Type: Int, Default: DefaultHoldsPerHour, Min: 0, Max: 1000, Live: true, Order: Falling, Doc: "Premise holds an hour; beyond it they become notes. Never applies to what destroys."},
	{Name: "gate.budget.per_day", Type: Int, Default: DefaultHoldsPerDay, Min: 0, Max: 10000, Live: true, Order: Falling, Doc: "Premise holds a day."},
	{Name: "declare.at", Type: Enum, Default: "action", Values: []string{"both", "action", "prompt"}, Live: true, Order: Listed, Doc: "When the model declares its premises: before its first consequential action, at the prompt, or both."},
	{Name: "declare.max_tokens", Type: Int, Default: DefaultDeclareTokens, Min: 64, Max: 32768, Live: true, Order: Falling, Doc: "Output tokens of a declaration."},
	{Name: "declare.max_per_turn", Type: Int, Default: DefaultDeclaresPerTurn, Min: 0, Max: 16, Live: true, Order: Falling, Doc: "Declare passes in one turn."},
	{Name: "declare.reuse", Type: Duration, Default: DefaultReuse, Min: 0, Max: day, Live: true, Order: Rising, Doc: "How long a declaration covers later steps of the same task; 0 never."},
	{Name: "inject.max_bytes", Type: Int, Default: DefaultInjectBytes, Min: 0, Max: 64 << 10, Live: true, Order: Falling, Doc: "Largest block of facts put into a request; 0 puts none."},
	{Name: "projects", Type: Roots, Default: []Project(nil), Live: true, Order: Pinned, Doc: "Directories that sensors may run in: a list of {name, root}."},
	{Name: "sensors.files", Type: List, Default: []string(nil), Live: true, Order: Pinned, Doc: "Registries of one's own; empty means sensors.yaml beside this file."},
	{Name: "sensors.auto_approve", Type: Bool, Default: false, Live: true, Order: Rising, Doc: "Take edits of one's own registry without approval. Never applies to a project's."},
	{Name: "sensors.runs_as_unavailable", Type: Enum, Default: "self", Values: []string{"hold", "self"}, Live: false, Order: Listed, Doc: "What becomes of a sensor for another user (runs_as) when only root could run it so: hold does not run it, self runs it as this user and marks the run."},
	{Name: "sensors.width", Type: Int, Default: DefaultWidth, Min: 1, Max: 16, Order: Free, Doc: "Read-only sensors that run beside each other."},
	{Name: "ledger.path", Type: String, Default: "", Order: Pinned, Doc: "File of the ledger; empty means ledger.db in the state directory."},
	{Name: "ledger.retain", Type: Duration, Default: DefaultRetain, Min: 0, Max: 36500 * day, Live: true, Order: FallingNever, Doc: "Age at which stored texts (requests, what sensors printed) are pruned, never entries; 0 keeps them. A modelled day takes 1.6 MB with its entries (go test ./ledger -run TestDay -v)."},
	{Name: "ledger.seal_keyring", Type: String, Default: "", Order: Pinned, Doc: "SERVICE/USER in the desktop's keyring of the age identity that opens the keys kept in the ledger; empty means a file beside the other keys."},
	{Name: "ledger.fail_open_explore", Type: Bool, Default: true, Live: true, Order: Rising, Doc: "Serve questions and edits while the ledger cannot write, loudly."},
	{Name: "ledger.told_ttl.host", Type: Duration, Default: DefaultToldHost, Min: int64(time.Minute), Max: 3650 * day, Live: true, Order: Rising, Doc: "How long a told fact about this machine lasts."},
	{Name: "ledger.told_ttl.project", Type: Duration, Default: DefaultToldProject, Min: int64(time.Minute), Max: 3650 * day, Live: true, Order: Rising, Doc: "How long a told fact about a project lasts."},
	{Name: "action.enforce", Type: Enum, Default: "full", Values: []string{"full", "hard_deny", "shadow"}, Live: true, Order: Listed, Doc: "How much of the action gate's rulings is carried out: full refuses and asks, hard_deny only refuses what it denies, shadow only records. What would end the system, reaches for gettier or destroys is never let out by this alone."},
	{Name: "action.policy.file", Type: String, Default: "", Live: true, Order: Pinned, Doc: "File with rules of one's own for the action gate; empty means the built-in ones (gettier policy show)."},
	{Name: "action.policy.fingerprint", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Fingerprint of those rules as gettier policy show FILE prints it: a file that was changed behind it is not taken."},
	{Name: "action.shadow.url", Type: String, Default: "", Live: true, Order: Pinned, Doc: "OpenAI-compatible endpoint, with /v1, of a model that is asked what it thinks of each action once that is ruled on; its opinion is recorded and changes nothing. Empty asks none."},
	{Name: "action.shadow.model", Type: String, Default: "", Live: true, Order: Pinned, Doc: "The model that is asked there."},
	{Name: "action.shadow.key_env", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Environment variable of the daemon that holds its key."},
	{Name: "action.shadow.policy", Type: String, Default: "", Live: true, Order: Pinned, Doc: "File of another policy whose ruling on each action is recorded beside, to try it out."},
	{Name: "constitution.url", Type: String, Default: "", Live: true, Order: Pinned, Doc: "OpenAI-compatible endpoint, with /v1, whose embeddings measure how near an action's text lies to what the policy's constitution forbids. It can add a question and nothing else; gettier warmup loads its model. Empty measures nothing."},
	{Name: "constitution.model", Type: String, Default: "", Live: true, Order: Pinned, Doc: "The model of embeddings there."},
	{Name: "constitution.key_env", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Environment variable of the daemon that holds its key."},
	{Name: "constitution.timeout", Type: Duration, Default: DefaultSemanticTimeout, Min: int64(10 * time.Millisecond), Max: int64(10 * time.Second), Live: true, Order: Free, Doc: "How long an action waits for it; then it goes without."},
	{Name: "answer.require", Type: Enum, Default: "tty", Values: []string{"tty"}, Live: true, Order: Listed, Doc: "What a person's answer has to prove: a terminal of their own."},
	{Name: "log.level", Type: Enum, Default: "info", Values: []string{"error", "warn", "info", "debug"}, Live: true, Order: Free, Doc: "Least severity that is logged."},
	{Name: "audit.snapshots.dir", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Directory, best on another machine's disk, where signed checkpoints of the log are kept; empty keeps none. Only an outside copy shows a log that was rewritten with its own key."},
	{Name: "audit.snapshots.every", Type: Duration, Default: time.Hour, Min: int64(time.Minute), Max: 30 * day, Live: true, Order: Rising, Doc: "How often a checkpoint is kept, there and in the places of audit.witness."},
	{Name: "audit.witness", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Further places for checkpoints, with commas between: dir:/abs/path, git:/abs/repo#REMOTE (commits on refs/gettier/checkpoints, pushed to REMOTE), https://host/path, s3:https://host/bucket/prefix."},
	{Name: "audit.s3.region", Type: String, Default: "us-east-1", Live: true, Order: Pinned, Doc: "Region of the s3: places of audit.witness."},
	{Name: "audit.s3.access_key_id", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Access key id for them; the secret access key is where one of the next four says."},
	{Name: "audit.s3.key_env", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Environment variable of the daemon."},
	{Name: "audit.s3.key_file", Type: String, Default: "", Live: true, Order: Pinned, Doc: "File."},
	{Name: "audit.s3.key_keyring", Type: String, Default: "", Live: true, Order: Pinned, Doc: "SERVICE/USER in the desktop's keyring."},
	{Name: "audit.s3.key_ledger", Type: String, Default: "", Live: true, Order: Pinned, Doc: "Name of a key that the ledger keeps encrypted (gettier key store-upstream NAME)."},
}

// renames maps names of earlier drafts to those of today. They are read with a
// warning, never written.
var renames = map[string]string{
	"hold_on_unverifiable": "gate.hold_on_unverifiable",
	"proxy.host":           "proxy.bind_host",
}

const upstreamPrefix = "upstreams."

// upstreamOf returns the name in an upstream's key, or nothing.
func upstreamOf(key string) string {
	rest, ok := strings.CutPrefix(key, upstreamPrefix)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// keyOf returns the table's row for a concrete key; an unknown key has no name.
func keyOf(key string) Key {
	if name := upstreamOf(key); name != "" {
		key = upstreamPrefix + "*" + key[len(upstreamPrefix)+len(name):]
	}
	for _, k := range Keys {
		if k.Name == key {
			return k
		}
	}
	return Key{}
}

// envNames returns the variables that set a concrete key.
func envNames(key string, k Key) []string {
	name := "GETTIER_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
	return append([]string{name}, k.Env...)
}
