package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// Ids of the sample.
const (
	sampleTurn  = "t_01kzzzzzzzzzzzzzzzzzzzk3vq"
	sampleOpen  = "t_01kzzzzzzzzzzzzzzzzzzz7abc"
	sampleHold  = "h_01kzzzzzzzzzzzzzzzzzzzz7f3"
	sampleInv   = "i_01kzzzzzzzzzzzzzzzzzzzzaaa"
	sampleFact  = "f_01kzzzzzzzzzzzzzzzzzzzzbbb"
	sampleBlock = "<gettier-verification id=\"v1\">\n- assumed: \"the edge accepts bodies of 25 MB\"\n  measured: proxy.config limit = \"1m\" → contradicted\n</gettier-verification>"
)

// evil is what a model might put into its words.
const evil = "\x1b]0;owned\x07\x1b[2J\u202e\r"

// sampleRequest is what the ledger kept of the turn's request.
const sampleRequest = `{"messages":[{"role":"user","content":"raise the upload limit to 25 MB"}]}`

// sample is a daemon with one caught turn, one open turn with a hold, and a
// registry with something to approve.
func sample(root string) *ipctest.Backend {
	b := ipctest.New()
	b.Keys("ci", "openai")
	c := lemma.Contract
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:])
	}
	output := "# configuration file /etc/nginx/nginx.conf:\nclient_max_body_size 1m;\n"
	b.Blobs[sum(output)] = []byte(output)
	inv := lemma.Invocation{ID: sampleInv, SensorID: "proxy.config", File: "user", Params: map[string]string{"conf": "/etc/nginx/nginx.conf"},
		Argv: []string{"nginx", "-T", "-c", "/etc/nginx/nginx.conf"}, Cwd: root, StartedAt: "2026-01-02T03:04:01.000000000Z", DurationMS: 12,
		Sandbox: "none", OutputBlob: sum(output), OutputHash: sum(output)}
	ttl := int64(600)
	fact := lemma.Fact{ID: sampleFact, Scope: "project:shop", Subject: "proxy.config@aa", Claim: "limit is 1m", Key: "limit", Value: "1m", Type: "bytes",
		Provenance: lemma.Measured, Source: lemma.Source{Kind: "sensor", Ref: sampleInv, Origin: "proxy.config", OriginClass: "sensor"},
		Status: lemma.StatusActive, Sensitivity: "internal", TTLSeconds: &ttl, CreatedAt: "2026-01-02T03:04:01.000000000Z"}
	told := fact
	told.ID, told.Subject, told.Key, told.Value, told.Provenance = "f_01kzzzzzzzzzzzzzzzzzzzzccc", "person", "db.version", "14"+evil, lemma.Told
	b.FactRows = []lemma.Fact{fact, told}
	b.Knowing = []lemma.Knowledge{
		{ID: "k_01kzzzzzzzzzzzzzzzzzzz0001", Scope: "project:shop", Text: "invoices are numbered by a sequence" + evil, Topics: []string{"invoice" + evil}, Sensitivity: "internal", CreatedAt: "2026-01-02T03:04:01.000000000Z", ChangedAt: "2026-01-02T03:04:01.000000000Z"},
		{ID: "k_01kzzzzzzzzzzzzzzzzzzz0002", Scope: "host", Text: "backups run at three", Topics: []string{}, Sensitivity: "secret", CreatedAt: "2026-01-02T03:04:02.000000000Z", ChangedAt: "2026-01-02T03:04:03.000000000Z"},
	}

	b.Append(sampleTurn, lemma.TurnOpened{Contract: c, Principal: lemma.Principal{UID: 1000, Agent: "claude-code"}, RequestKind: "new", Format: "anthropic-messages",
		Upstream: "anthropic", Model: "m", Conversation: "c1", Scope: "project:shop", ScopeEvidence: "the peer's directory", Class: lemma.Change,
		Reasons: []string{"asks for a change of configuration"}, Prompt: "raise the upload limit to 25 MB", RequestBlob: sum(sampleRequest)})
	b.Blobs[sum(sampleRequest)] = []byte(sampleRequest)
	inject := b.Append(sampleTurn, lemma.TurnInjected{Contract: c, Conversation: "c1", BlockBlob: sum(sampleBlock), Anchor: "ab", Why: "verification"})
	b.Append(sampleTurn, lemma.TurnDeclared{Contract: c, Rung: 1, At: "action", PlanSummary: "raise BODY_LIMIT in server.js" + evil, Attempts: 1,
		Lemmas: []lemma.Lemma{{Claim: "the edge accepts bodies of 25 MB", Provenance: lemma.Measured, LoadBearing: true,
			FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: "proxy.config", Key: "limit", Operator: lemma.Lt, Value: "25m"}}},
		Usage: lemma.Usage{Input: 900, Output: 120}})
	b.Append(sampleTurn, lemma.ProvenanceDowngraded{Contract: c, Lemma: 0, Claim: "the edge accepts bodies of 25 MB", From: lemma.Measured, Reason: "nothing in the conversation shows it"})
	b.Append(sampleTurn, lemma.LemmaMatched{Contract: c, Lemma: 0, Sensors: []lemma.SensorMatch{{ID: "proxy.config", Why: "request_path.size_limits:upload"}}})
	b.Append(sampleTurn, lemma.SensorInvoked{Contract: c, Invocation: inv})
	b.Append(sampleTurn, lemma.SensorFailed{Contract: c, Invocation: lemma.Invocation{SensorID: "db.version", Argv: []string{"psql", "-c", "select version()"}}, Reason: "not_found", Detail: "psql"})
	b.Append(sampleTurn, lemma.RedactionApplied{Contract: c, Where: "output", Rule: "token.bearer", Count: 1})
	b.Append(sampleTurn, lemma.FactWritten{Contract: c, Fact: fact})
	b.Append(sampleTurn, lemma.ClaimJudged{Contract: c, ClaimID: "x", Lemma: 0, Claim: "the edge accepts bodies of 25 MB", Origin: "declared", Verdict: lemma.Contradicted,
		Reason: "rule", Rule: "proxy.config judge 1", Sensor: "proxy.config", Invocation: sampleInv, Key: "limit", Measured: "1m", Claimed: ">= 25 MB"})
	b.Append(sampleTurn, lemma.GateDecided{Contract: c, Decision: lemma.DecCaught, Class: lemma.Change, Mode: lemma.Block, Counts: lemma.Counts{Lemmas: 1, Contradicted: 1}})
	b.Append(sampleTurn, lemma.TurnGrounded{Contract: c, BlockBlob: sum(sampleBlock), Anchor: "ab"})
	b.Append(sampleTurn, lemma.ActionDecided{Contract: c, Tool: "Edit", Summary: "conf.d/shop.conf", State: "ALLOW", Effect: "mutate", Findings: []string{"a configuration file"}})
	b.Append(sampleTurn, lemma.TurnClosed{Contract: c, Decision: lemma.DecCaught, Status: 200, Timings: map[string]int64{"declare": 1203, "verify": 14},
		UsageClient: lemma.Usage{Input: 12000, Output: 300, CacheRead: 10000}, UsageOurs: lemma.Usage{Input: 900, Output: 120}})
	rung := 1
	b.TurnRows = []ipc.Turn{
		{ID: sampleTurn, Conversation: "c1", Scope: "project:shop", Class: lemma.Change, RequestKind: "new", Format: "anthropic-messages", Upstream: "anthropic",
			Model: "m", Agent: "claude-code", Prompt: "raise the upload limit to 25 MB" + evil, OpenedAt: "2026-01-02T03:04:00.001000000Z",
			ClosedAt: "2026-01-02T03:04:02.101000000Z", Stage: "turn.closed", Decision: lemma.DecCaught, Counts: lemma.Counts{Lemmas: 1, Contradicted: 1}, Rung: &rung},
		{ID: sampleOpen, Conversation: "c2", Scope: "host", Class: lemma.Explore, Agent: "codex", Prompt: "explain this regex", OpenedAt: "2026-01-02T03:03:00.000000000Z", Stage: "turn.opened"},
	}
	b.BlockRows[sampleTurn] = []ipc.Block{{Seq: inject, Why: "verification", Text: sampleBlock}}

	b.HoldRows = []lemma.Hold{{ID: sampleHold, Kind: "claims", State: lemma.HoldOpen, Scope: "project:shop", Turn: sampleOpen, Agent: "codex",
		PlanSummary: "migrate the table" + evil, OpenedAt: "2026-01-02T03:04:00.000000000Z", ExpiresAt: "2026-01-03T03:04:00.000000000Z",
		Items: []lemma.HoldItem{{ID: "1", Claim: "the production database is Postgres 14" + evil, Reason: "could_not_run:not_found", Verdict: lemma.Inconclusive, Tried: []string{"db.version could not run (not_found: psql)"}}}}}

	proxy := ipc.Sensor{ID: "proxy.config", Kind: "sensor", Qualified: "user/proxy.config", Level: "user", File: "/etc/sensors.yaml", Line: 4, Description: "the edge",
		Command: "nginx -T", State: ipc.SensorChanged, InForce: true, Hash: strings.Repeat("ab", 32), Effects: "none", Verifies: []string{"request_path.size_limits"}, Keys: []string{"limit"},
		Last: &ipc.Reading{Invocation: inv, Values: []ipc.Value{{Key: "limit", Type: "bytes", Text: "1m"}}}}
	b.SensorSet = []ipc.Sensor{proxy,
		{ID: "db.version", Kind: "sensor", Qualified: "project/shop/db.version", Level: "project/shop", File: root + "/.gettier/sensors.yaml", Line: 9, State: ipc.SensorPending, Hash: strings.Repeat("cd", 32), Reason: "new"},
		{File: "/etc/other.yaml", Line: 3, State: ipc.SensorBroken, Reason: "unknown key comand"},
	}
	b.Diffs["user/proxy.config"] = ipc.SensorDiff{ID: "proxy.config", Qualified: "user/proxy.config", State: ipc.SensorChanged, Hash: proxy.Hash, Text: "user/proxy.config  changed\n-  ttl: 300\n+  ttl: 600" + evil}
	b.Diffs["project/shop/db.version"] = ipc.SensorDiff{ID: "db.version", Qualified: "project/shop/db.version", State: ipc.SensorPending, Hash: strings.Repeat("cd", 32), Text: "+  command: psql"}
	b.Tries["proxy.config"] = ipc.SensorTried{Sensor: proxy, Reading: ipc.Reading{Invocation: inv, Values: []ipc.Value{{Key: "limit", Type: "bytes", Text: "1m", Place: "conf.d/shop.conf:3"}}},
		Output: output + evil, Redacted: []ipc.Redaction{{Rule: "token.bearer", Count: 1}}, Categories: []string{"request_path.size_limits"}, Matches: "request_path.size_limits:upload",
		Judged: &ipc.Judged{Verdict: lemma.Contradicted, Rule: "judge 1", Key: "limit", Operator: ">=", Measured: "1m", Claimed: "25 MB"}}
	b.Roots = []ipc.Project{{Name: "shop", Root: root}}
	b.Cfg = ipc.Config{ConfigStatus: ipc.ConfigStatus{File: "/etc/gettierd.yaml", Hash: "aa", Pending: []string{"gate.mode"}}, PendingHash: "bb",
		Keys: []ipc.ConfigKey{{Key: "gate.mode", Value: "ask", Source: "file", Applies: "live", Pending: "watch", Help: "whether it asks"},
			{Key: "proxy.port", Value: "11435", Source: "default", Applies: "restart"}}}
	b.St = ipc.Status{Version: "0.1.0", PID: os.Getpid(), UptimeSeconds: 192, Proxy: "127.0.0.1:11435", Mode: "ask", Chain: ipc.Head{Root: strings.Repeat("ab", 32)}, OpenHolds: 1,
		Counters: map[string]int64{"requests": 12, "turns": 2, "caught": 1}, Registry: ipc.RegistryStatus{Sensors: 1, Pending: 1, Broken: 1,
			Problems: []ipc.RegistryError{{File: "/etc/other.yaml", Line: 3, Column: 5, Reason: "unknown key comand" + evil}}},
		Config: b.Cfg.ConfigStatus, Projects: 1, Upstreams: []ipc.Upstream{{Name: "anthropic", Format: "anthropic", BaseURL: "https://api.anthropic.com", Default: true}},
		Warnings: []string{"the last stop was not clean"}}
	return b
}
