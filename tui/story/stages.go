package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

// tellers is what each kind says of itself; a new kind is one line here.
var tellers = map[lemma.Kind]func(*teller, ipc.Entry) error{
	lemma.KTurnOpened:          told((*teller).opened),
	lemma.KTurnClassified:      told((*teller).classified),
	lemma.KTurnInjected:        told((*teller).injected),
	lemma.KTurnDeclared:        told((*teller).declared),
	lemma.KTurnUndeclared:      told((*teller).undeclared),
	lemma.KProvenanceDowngrade: told((*teller).downgraded),
	lemma.KLemmaWarned:         told((*teller).warned),
	lemma.KLemmaMatched:        told((*teller).matched),
	lemma.KSensorInvoked:       told((*teller).invoked),
	lemma.KSensorFailed:        told((*teller).failed),
	lemma.KRedactionApplied:    told((*teller).redacted),
	lemma.KClaimJudged:         told((*teller).judged),
	lemma.KFactWritten:         told((*teller).fact),
	lemma.KFactContradicted:    told((*teller).factContradicted),
	lemma.KFactInvalidated:     told((*teller).factInvalidated),
	lemma.KFactExpired:         told((*teller).factExpired),
	lemma.KKnowledgeChanged:    told((*teller).knowledge),
	lemma.KHoldOpened:          told((*teller).hold),
	lemma.KHoldAnswered:        told((*teller).answered),
	lemma.KAnswerRefused:       told((*teller).refused),
	lemma.KAnswerRevoked:       told((*teller).revoked),
	lemma.KHoldExpired:         told((*teller).expired),
	lemma.KHoldCancelled:       told((*teller).cancelled),
	lemma.KGateDecided:         told((*teller).decided),
	lemma.KTurnGrounded:        told((*teller).grounded),
	lemma.KActionDecided:       told((*teller).action),
	lemma.KTurnClosed:          told((*teller).closed),
	lemma.KScopeConflict:       told((*teller).conflict),
	lemma.KBreakerOpened:       told((*teller).breaker),
	lemma.KSensorBackedOff:     told((*teller).backedOff),
	lemma.KRegistryLoaded:      told((*teller).registryLoaded),
	lemma.KRegistryRejected:    told((*teller).registryRejected),
	lemma.KRegistryApproved:    told((*teller).registryApproved),
	lemma.KConfigLoaded:        told((*teller).configLoaded),
	lemma.KConfigPending:       told((*teller).configPending),
	lemma.KConfigApproved:      told((*teller).configApproved),
	lemma.KStateLost:           told((*teller).stateLost),
	lemma.KChainOpened:         told((*teller).chainOpened),
	lemma.KChainRecovered:      told((*teller).chainRecovered),
	lemma.KBlobForgotten:       told((*teller).blobForgotten),
	lemma.KRequestForgotten:    told((*teller).requestForgotten),
	lemma.KKeyRotated:          told((*teller).keyRotated),
	lemma.KKeyCreated:          told((*teller).keyCreated),
	lemma.KKeyRevoked:          told((*teller).keyRevoked),
	lemma.KKeySealed:           told((*teller).keySealed),
	lemma.KConnectDecided:      told((*teller).connected),
	lemma.KActionOpined:        told((*teller).opined),
}

func (t *teller) opened(e ipc.Entry, b lemma.TurnOpened) {
	t.say("route", e, "%s, class %s: %s", b.RequestKind, string(b.Class), words.Or(strings.Join(b.Reasons, ", "), "no particular reason"))
	t.say("route", e, "scope %s: %s", b.Scope, words.Or(b.ScopeEvidence, "no evidence"))
	if sum, _ := Request(t.d); sum != "" {
		t.say("route", e, "the request is kept, redacted: gettier turns %s --request", words.ShortID(t.d.ID))
	}
}

func (t *teller) classified(e ipc.Entry, b lemma.TurnClassified) {
	t.say("route", e, "class is now %s: %s", string(b.Class), strings.Join(b.Reasons, ", "))
}

func (t *teller) injected(e ipc.Entry, b lemma.TurnInjected) {
	what := "a verification"
	if b.Why == "facts" {
		what = words.Count(len(b.Facts), "fact", "facts")
	}
	t.say("inject", e, "%s, in a block that stays in the conversation", what)
	for _, bl := range t.d.Blocks {
		if bl.Seq == e.Seq {
			t.block(e, "inject", bl.Text)
		}
	}
}

func (t *teller) declared(e ipc.Entry, b lemma.TurnDeclared) {
	t.say("declare", e, "rung %d (%s), at the %s, %s", b.Rung, words.Rung(b.Rung), words.Or(b.At, "prompt"), words.Count(b.Attempts, "attempt", "attempts"))
	t.say("declare", e, "plan: %s", b.PlanSummary)
	for i, l := range b.Lemmas {
		weight := "load-bearing"
		if !l.LoadBearing {
			weight = "not load-bearing"
		}
		t.say("declare", e, "%d. %s  (%s, %s)", i+1, l.Claim, string(l.Provenance), weight)
		if o := l.FalsifyingObservation; o != nil {
			t.say("declare", e, "   false if %s %s %s %s", o.Sensor, o.Key, string(o.Operator), fmt.Sprint(o.Value))
		}
	}
}

func (t *teller) undeclared(e ipc.Entry, b lemma.TurnUndeclared) {
	t.say("declare", e, "nothing: %s", b.Reason)
	for _, tried := range b.Tried {
		t.say("declare", e, "   tried %s", tried)
	}
}

func (t *teller) downgraded(e ipc.Entry, b lemma.ProvenanceDowngraded) {
	t.say("declare", e, "%d. was tagged %s, counts as believed: %s", b.Lemma+1, string(b.From), b.Reason)
}

func (t *teller) warned(e ipc.Entry, b lemma.LemmaWarned) {
	t.say("declare", e, "%d. %s was dropped: %s", b.Lemma+1, b.Field, b.Reason)
}

func (t *teller) matched(e ipc.Entry, b lemma.LemmaMatched) {
	var to []string
	for _, s := range b.Sensors {
		to = append(to, s.ID+" ("+s.Why+")")
	}
	what := words.Or(strings.Join(to, ", "), "no sensor")
	if b.Note != "" {
		what += "  " + b.Note
	}
	t.say("match", e, "%s %s", number(b.Lemma, b.Claim), "→ "+what)
}

// number names a lemma: by its place, or by its claim when it was not declared.
func number(i int, claim string) string {
	if i < 0 {
		return words.Quote(claim)
	}
	return fmt.Sprintf("%d.", i+1)
}

func (t *teller) invoked(e ipc.Entry, b lemma.SensorInvoked) {
	inv := b.Invocation
	if inv.Reused != "" {
		t.say("measure", e, "%s  reused, still fresh", inv.SensorID)
	} else {
		t.say("measure", e, "%s  %s  %s, exit %d, sandbox %s", inv.SensorID, words.Argv(inv.Argv), words.Millis(inv.DurationMS), inv.ExitCode, words.Or(inv.Sandbox, "none"))
	}
	values := t.values[inv.ID]
	if inv.Reused != inv.ID { // a reused reading may keep the id that it was taken under
		values = slices.Concat(values, t.values[inv.Reused])
	}
	for _, v := range values {
		t.say("measure", e, "   %s", v)
	}
	if t.o.Evidence != nil && inv.OutputBlob != "" {
		t.block(e, "measure", string(t.o.Evidence(inv.OutputBlob)))
	}
}

func (t *teller) failed(e ipc.Entry, b lemma.SensorFailed) {
	t.say("measure", e, "%s  could not run: %s  %s", b.Invocation.SensorID, b.Reason, b.Detail)
	if len(b.Invocation.Argv) > 0 {
		t.say("measure", e, "   %s", words.Argv(b.Invocation.Argv))
	}
}

func (t *teller) redacted(e ipc.Entry, b lemma.RedactionApplied) {
	t.say("redact", e, "%s in %s, rule %s", words.Count(b.Count, "secret", "secrets"), b.Where, b.Rule)
}

func (t *teller) judged(e ipc.Entry, b lemma.ClaimJudged) {
	origin := ""
	if b.Origin != "" && b.Origin != "declared" {
		origin = b.Origin + " "
	}
	t.say("judge", e, "%s  %s%s", words.Verdict(b.Verdict), origin, number(b.Lemma, b.Claim)+" "+b.Claim)
	switch {
	case b.Measured != "":
		t.say("judge", e, "   measured %s = %s, assumed %s", strings.TrimSpace(b.Sensor+" "+b.Key), words.Quote(b.Measured), words.Or(b.Claimed, "otherwise"))
	case b.Reason != "":
		t.say("judge", e, "   %s", b.Reason)
	}
	if b.Rule != "" {
		t.say("judge", e, "   by %s", b.Rule)
	}
}

func (t *teller) fact(e ipc.Entry, b lemma.FactWritten) {
	if b.Fact.Value == "" {
		t.say("remember", e, "%s %s", words.Provenance(b.Fact.Provenance), b.Fact.Claim)
		return
	}
	t.say("remember", e, "%s %s = %s", words.Provenance(b.Fact.Provenance), words.Or(b.Fact.Key, b.Fact.Claim), words.Quote(b.Fact.Value+b.Fact.Unit))
}

func (t *teller) factContradicted(e ipc.Entry, b lemma.FactContradicted) {
	t.say("remember", e, "%s", b.Delta)
}

func (t *teller) factInvalidated(e ipc.Entry, b lemma.FactInvalidated) {
	t.say("remember", e, "%s was withdrawn by %s: %s", words.ShortID(b.Fact), b.By, b.Reason)
}

func (t *teller) factExpired(e ipc.Entry, b lemma.FactExpired) {
	t.say("remember", e, "%s is no longer fresh", words.ShortID(b.Fact))
}

func (t *teller) knowledge(e ipc.Entry, b lemma.KnowledgeChanged) {
	t.say("remember", e, "%s by %s: %s", string(b.Op), words.Person(b.By), b.Knowledge.Text)
}

func (t *teller) connected(e ipc.Entry, b lemma.ConnectDecided) {
	verb := "refused"
	if b.Allowed {
		verb = "let through"
	}
	t.say("other", e, "tunnel to %s:%d %s: %s", b.Host, b.Port, verb, b.Why)
}

func (t *teller) keyRotated(e ipc.Entry, b lemma.KeyRotated) {
	t.say("other", e, "the log's key is now %s, by %s", words.Hash(b.New), words.Or(b.By, "nobody known"))
}

func (t *teller) keyCreated(e ipc.Entry, b lemma.KeyCreated) {
	t.say("other", e, "%s (%s) may use the proxy: %s, by %s", b.Name, b.ID, strings.Join(b.Scopes, ", "), words.Or(b.By, "nobody known"))
}

func (t *teller) keyRevoked(e ipc.Entry, b lemma.KeyRevoked) {
	t.say("other", e, "%s ended, by %s", b.ID, words.Or(b.By, "nobody known"))
}

func (t *teller) keySealed(e ipc.Entry, b lemma.KeySealed) {
	t.say("other", e, "the upstream key %s is kept, encrypted, by %s", b.Name, words.Or(b.By, "nobody known"))
}

func (t *teller) hold(e ipc.Entry, b lemma.HoldOpened) {
	t.say("hold", e, "asks %s", words.Count(len(b.Hold.Items), "question", "questions"))
	for _, it := range b.Hold.Items {
		t.say("hold", e, "   %s  (%s)", it.Claim, it.Reason)
		if it.Action == nil {
			continue
		}
		for _, c := range it.Action.Runs {
			t.say("hold", e, "   runs %s  (%s)", words.Runs(c), it.Action.Effect)
		}
	}
}

func (t *teller) answered(e ipc.Entry, b lemma.HoldAnsweredBody) {
	for _, an := range b.Answers {
		t.say("hold", e, "%s by %s via %s  %s", string(an.Answer), words.Person(an.By), an.By.Via, an.Text)
	}
}

func (t *teller) revoked(e ipc.Entry, b lemma.AnswerRevoked) {
	t.say("hold", e, "the answer to hold %s was taken back, by %s", words.ShortID(b.Hold), words.Person(b.By))
}

func (t *teller) refused(e ipc.Entry, b lemma.AnswerRefused) {
	t.say("hold", e, "⊘ refused: %s, %s", strings.TrimSpace(fmt.Sprintf("%s of pid %d %s", b.Call, b.PID, b.Exe)), b.Why)
}

func (t *teller) expired(e ipc.Entry, _ lemma.HoldExpiredBody) {
	t.say("hold", e, "nobody answered in time")
}

func (t *teller) cancelled(e ipc.Entry, b lemma.HoldCancelledBody) {
	t.say("hold", e, "no longer asked: %s", b.Reason)
}

func (t *teller) decided(e ipc.Entry, b lemma.GateDecided) {
	t.say("decide", e, "%s  class %s, mode %s", words.Decision(b.Decision), string(b.Class), string(b.Mode))
	if s := words.Verdicts(b.Counts); s != "" {
		t.say("decide", e, "   %s", s)
	}
	for _, r := range b.Reasons {
		t.say("decide", e, "   %s", r)
	}
}

func (t *teller) grounded(e ipc.Entry, _ lemma.TurnGrounded) {
	t.say("ground", e, "the answer was made with the measured truth in its context")
	for _, bl := range t.d.Blocks {
		if bl.Why == "verification" && !t.shown(bl) {
			t.block(e, "ground", bl.Text)
		}
	}
}

// shown reports whether a turn.injected entry has told the block already.
func (t *teller) shown(b ipc.Block) bool {
	return slices.ContainsFunc(t.d.Entries, func(e ipc.Entry) bool { return e.Seq == b.Seq && e.Kind == string(lemma.KTurnInjected) })
}

func (t *teller) action(e ipc.Entry, b lemma.ActionDecided) {
	t.say("act", e, "%s  %s  %s %s", strings.ToLower(b.State), b.Effect, b.Tool, b.Summary)
	if b.Approval != "" {
		hold, _, _ := strings.Cut(b.Approval, "/")
		t.say("act", e, "   approved in hold %s", words.ShortID(hold))
	}
	if b.Ruled != "" && b.Ruled != b.State && b.Approval == "" {
		t.say("act", e, "   the action gate said %s, enforced is %s", strings.ToLower(b.Ruled), words.Or(b.Enforce, "full"))
	}
	for _, f := range append(slices.Clone(b.Findings), b.Premises...) {
		t.say("act", e, "   %s", f)
	}
}

func (t *teller) closed(e ipc.Entry, b lemma.TurnClosed) {
	t.say("close", e, "status %d, %s", b.Status, string(b.Decision))
	if b.Error != "" {
		t.say("close", e, "error: %s", b.Error)
	}
	if len(b.Timings) > 0 {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(b.Timings)) {
			parts = append(parts, k+" "+words.Millis(b.Timings[k]))
		}
		t.say("close", e, "time: %s", strings.Join(parts, ", "))
	}
	t.say("close", e, "tokens: client %s", words.Tokens(b.UsageClient))
	if (b.UsageOurs != lemma.Usage{}) {
		t.say("close", e, "        ours   %s", words.Tokens(b.UsageOurs))
	}
}

func (t *teller) conflict(e ipc.Entry, b lemma.ScopeConflict) {
	t.say("route", e, "the request names %s, the agent stands in %s: out of scope", b.Named, b.Found)
}

func (t *teller) opined(e ipc.Entry, b lemma.ActionOpined) {
	verdict := "agrees"
	if b.Disagrees {
		verdict = "would have ruled otherwise"
	}
	t.say("other", e, "%s %s about %s: risk %d, %+d to the ruling's; it changed nothing", b.From, verdict, b.DecisionID, b.Risk, b.Delta)
}

func (t *teller) breaker(e ipc.Entry, b lemma.BreakerOpened) {
	t.say("other", e, "%s failed again and again and is passed over: %s", b.Stage, b.Reason)
}

func (t *teller) backedOff(e ipc.Entry, b lemma.SensorBackedOff) {
	t.say("measure", e, "%s is left alone until %s: %s", b.Sensor, t.o.Stamp(b.Until), b.Reason)
}

func (t *teller) registryLoaded(e ipc.Entry, b lemma.RegistryLoaded) {
	t.say("other", e, "%s in force, %d pending, from %s", words.Count(b.Sensors, "sensor", "sensors"), len(b.Pending), b.File)
}

func (t *teller) registryRejected(e ipc.Entry, b lemma.RegistryRejected) {
	t.say("other", e, "%s:%d:%d: %s", b.File, b.Line, b.Column, b.Reason)
}

func (t *teller) registryApproved(e ipc.Entry, b lemma.RegistryApproved) {
	t.say("other", e, "%s, by %s", strings.Join(b.Sensors, ", "), words.Person(b.By))
}

func (t *teller) configLoaded(e ipc.Entry, b lemma.ConfigLoaded) {
	t.say("other", e, "%s", words.Or(b.Error, words.Or(strings.Join(b.Changed, ", "), b.File)))
}

func (t *teller) configPending(e ipc.Entry, b lemma.ConfigPending) {
	t.say("other", e, "waits for approval: %s", strings.Join(b.Keys, ", "))
}

func (t *teller) configApproved(e ipc.Entry, b lemma.ConfigApproved) {
	t.say("other", e, "%s, by %s", strings.Join(b.Keys, ", "), words.Person(b.By))
}

func (t *teller) stateLost(e ipc.Entry, b lemma.StateLost) { t.say("other", e, "%s", b.Reason) }

func (t *teller) chainOpened(e ipc.Entry, b lemma.ChainOpened) {
	t.say("other", e, "gettierd %s started, log %s", b.Version, b.Origin)
}

func (t *teller) chainRecovered(e ipc.Entry, b lemma.ChainRecovered) {
	t.say("other", e, "the last stop was not clean: %s checked, %s cut off", words.Count(b.Checked, "entry", "entries"), words.Count(len(b.Turns), "turn", "turns"))
}

func (t *teller) blobForgotten(e ipc.Entry, b lemma.BlobForgotten) {
	t.say("other", e, "%s dropped: %s", words.Count(b.Blobs, "blob", "blobs"), b.Reason)
}

func (t *teller) requestForgotten(e ipc.Entry, b lemma.RequestForgotten) {
	t.say("other", e, "the request of turn %s was dropped, by %s", b.Turn, words.Person(b.By))
}
