package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/clean"
)

// teller tells a turn from its entries. Readings are known to it before a
// verdict names them, so each stage can say its part.
type teller struct {
	a        *app
	p        *printer
	d        ipc.TurnDetail
	values   map[string][]string // invocation → key = value, from the facts written
	evidence func(sum string) string
	stage    string
}

func (a *app) story(ctx context.Context, c *ipc.Client, d ipc.TurnDetail, evidence bool) error {
	p := newPrinter(a.out)
	if a.json {
		p.value(d)
		return nil
	}
	t := teller{a: a, p: p, d: d, values: map[string][]string{}}
	if evidence {
		t.evidence = func(sum string) string {
			b, err := c.Blob(ctx, sum)
			if err != nil {
				return "not kept: " + err.Error()
			}
			return string(b)
		}
	}
	t.collect()
	t.head()
	for _, e := range d.Entries {
		t.entry(e)
	}
	t.foot()
	return nil
}

// collect finds the values that readings gave, which stand in other entries.
func (t *teller) collect() {
	add := func(inv, key, value string) {
		v := key + " = " + quote(value)
		if inv != "" && key != "" && !slices.Contains(t.values[inv], v) {
			t.values[inv] = append(t.values[inv], v)
		}
	}
	for _, e := range t.d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KFactWritten:
			var b lemma.FactWritten
			if json.Unmarshal(e.Body, &b) == nil {
				add(b.Fact.Source.Ref, b.Fact.Key, b.Fact.Value)
			}
		case lemma.KClaimJudged:
			var b lemma.ClaimJudged
			if json.Unmarshal(e.Body, &b) == nil && b.Measured != "" {
				add(b.Invocation, b.Key, b.Measured)
			}
		}
	}
}

func (t *teller) head() {
	d := t.d
	took := ""
	if s, ok := between(d.OpenedAt, d.ClosedAt); ok {
		took = "  " + millis(s.Milliseconds())
	}
	t.p.hang("", fmt.Sprintf("turn %s  %s  %s  %s  %s%s", d.ID, mark(d.Decision), d.Class, d.Scope, t.a.stamp(d.OpenedAt), took))
	t.p.hang("", fmt.Sprintf("%s → %s %s  %s", or(d.Agent, "unknown agent"), d.Upstream, d.Model, d.Format))
	if d.Prompt != "" {
		t.p.hang("", "“"+strings.TrimSpace(clean.Line(d.Prompt))+"”")
	}
}

// say prints one line of a stage; the stage's name and time stand before its first.
func (t *teller) say(stage string, e ipc.Entry, format string, args ...any) {
	text := fmt.Sprintf(format, args...) // hang cleans it
	at, name := "", ""
	if stage != t.stage {
		if d, ok := between(t.d.OpenedAt, e.TS); ok {
			at = "+" + thousands(d.Milliseconds())
		}
		name, t.stage = stage, stage
	}
	t.p.hang(fmt.Sprintf("%-8s %8s  ", name, at), text)
}

// entry tells one entry in the words of its stage.
func (t *teller) entry(e ipc.Entry) {
	tell, ok := tellers()[lemma.Kind(e.Kind)]
	if !ok {
		t.say("other", e, "%s", e.Kind)
		return
	}
	if err := tell(t, e); err != nil {
		t.say("other", e, "%s cannot be read: %s", e.Kind, err.Error())
	}
}

func told[B any](f func(*teller, ipc.Entry, B)) func(*teller, ipc.Entry) error {
	return func(t *teller, e ipc.Entry) error {
		var b B
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return err
		}
		f(t, e, b)
		return nil
	}
}

// tellers is what each kind says of itself; a new kind is one line here.
func tellers() map[lemma.Kind]func(*teller, ipc.Entry) error {
	return map[lemma.Kind]func(*teller, ipc.Entry) error{
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
		lemma.KFactContradicted:    told((*teller).factGone),
		lemma.KHoldOpened:          told((*teller).hold),
		lemma.KHoldAnswered:        told((*teller).answered),
		lemma.KHoldExpired:         told((*teller).expired),
		lemma.KHoldCancelled:       told((*teller).cancelled),
		lemma.KGateDecided:         told((*teller).decided),
		lemma.KTurnGrounded:        told((*teller).grounded),
		lemma.KActionDecided:       told((*teller).action),
		lemma.KTurnClosed:          told((*teller).closed),
		lemma.KScopeConflict:       told((*teller).conflict),
		lemma.KBreakerOpened:       told((*teller).breaker),
		lemma.KSensorBackedOff:     told((*teller).backedOff),
	}
}

func (t *teller) opened(e ipc.Entry, b lemma.TurnOpened) {
	t.say("route", e, "%s, class %s: %s", b.RequestKind, string(b.Class), or(strings.Join(b.Reasons, ", "), "no particular reason"))
	t.say("route", e, "scope %s: %s", b.Scope, or(b.ScopeEvidence, "no evidence"))
}

func (t *teller) classified(e ipc.Entry, b lemma.TurnClassified) {
	t.say("route", e, "class is now %s: %s", string(b.Class), strings.Join(b.Reasons, ", "))
}

func (t *teller) injected(e ipc.Entry, b lemma.TurnInjected) {
	what := "a verification"
	if b.Why == "facts" {
		what = count(len(b.Facts), "fact", "facts")
	}
	t.say("inject", e, "%s, in a block that stays in the conversation", what)
	for _, bl := range t.d.Blocks {
		if bl.Seq == e.Seq {
			t.block(e, "inject", bl.Text)
		}
	}
}

func (t *teller) block(e ipc.Entry, stage, text string) {
	for l := range strings.SplitSeq(strings.TrimRight(clean.Text(text), "\n"), "\n") {
		t.say(stage, e, "│ %s", l)
	}
}

func (t *teller) declared(e ipc.Entry, b lemma.TurnDeclared) {
	t.say("declare", e, "rung %d (%s), at the %s, %s", b.Rung, rungName(b.Rung), or(b.At, "prompt"), count(b.Attempts, "attempt", "attempts"))
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

func rungName(r int) string {
	switch r {
	case 0:
		return "instruction"
	case 1:
		return "forced tool call"
	case 2:
		return "constrained JSON"
	case 3:
		return "JSON by prompt"
	case 4:
		return "extracted from a plan"
	}
	return "unknown"
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
	what := or(strings.Join(to, ", "), "no sensor")
	if b.Note != "" {
		what += "  " + b.Note
	}
	t.say("match", e, "%s %s", number(b.Lemma, b.Claim), "→ "+what)
}

// number names a lemma: by its place, or by its claim when it was not declared.
func number(i int, claim string) string {
	if i < 0 {
		return quote(claim)
	}
	return fmt.Sprintf("%d.", i+1)
}

func (t *teller) invoked(e ipc.Entry, b lemma.SensorInvoked) {
	inv := b.Invocation
	if inv.Reused != "" {
		t.say("measure", e, "%s  reused, still fresh", inv.SensorID)
	} else {
		t.say("measure", e, "%s  %s  %s, exit %d, sandbox %s", inv.SensorID, argv(inv.Argv), millis(inv.DurationMS), inv.ExitCode, or(inv.Sandbox, "none"))
	}
	values := t.values[inv.ID]
	if inv.Reused != inv.ID { // a reused reading may keep the id that it was taken under
		values = slices.Concat(values, t.values[inv.Reused])
	}
	for _, v := range values {
		t.say("measure", e, "   %s", v)
	}
	if t.evidence != nil && inv.OutputBlob != "" {
		t.block(e, "measure", t.evidence(inv.OutputBlob))
	}
}

func (t *teller) failed(e ipc.Entry, b lemma.SensorFailed) {
	t.say("measure", e, "%s  could not run: %s  %s", b.Invocation.SensorID, b.Reason, b.Detail)
	if len(b.Invocation.Argv) > 0 {
		t.say("measure", e, "   %s", argv(b.Invocation.Argv))
	}
}

func (t *teller) redacted(e ipc.Entry, b lemma.RedactionApplied) {
	t.say("redact", e, "%s in %s, rule %s", count(b.Count, "secret", "secrets"), b.Where, b.Rule)
}

func (t *teller) judged(e ipc.Entry, b lemma.ClaimJudged) {
	glyph := map[lemma.Verdict]string{lemma.Confirmed: "✓", lemma.Contradicted: "✗", lemma.VerdictTold: "≈"}[b.Verdict]
	origin := ""
	if b.Origin != "" && b.Origin != "declared" {
		origin = b.Origin + " "
	}
	t.say("judge", e, "%s %s  %s%s", or(glyph, "?"), string(b.Verdict), origin, number(b.Lemma, b.Claim)+" "+b.Claim)
	switch {
	case b.Measured != "":
		t.say("judge", e, "   measured %s = %s, assumed %s", strings.TrimSpace(b.Sensor+" "+b.Key), quote(b.Measured), or(b.Claimed, "otherwise"))
	case b.Reason != "":
		t.say("judge", e, "   %s", b.Reason)
	}
	if b.Rule != "" {
		t.say("judge", e, "   by %s", b.Rule)
	}
}

func (t *teller) fact(e ipc.Entry, b lemma.FactWritten) {
	t.say("remember", e, "%s %s = %s", badge(b.Fact.Provenance), or(b.Fact.Key, b.Fact.Claim), quote(b.Fact.Value+b.Fact.Unit))
}

func (t *teller) factGone(e ipc.Entry, b lemma.FactContradicted) { t.say("remember", e, "%s", b.Delta) }

func (t *teller) hold(e ipc.Entry, b lemma.HoldOpened) {
	t.say("hold", e, "asks %s", count(len(b.Hold.Items), "question", "questions"))
	for _, it := range b.Hold.Items {
		t.say("hold", e, "   %s  (%s)", it.Claim, it.Reason)
	}
}

func (t *teller) answered(e ipc.Entry, b lemma.HoldAnsweredBody) {
	for _, an := range b.Answers {
		t.say("hold", e, "%s by %s via %s  %s", string(an.Answer), or(an.By.User, "uid "+itoa(an.By.UID)), an.By.Via, an.Text)
	}
}

func (t *teller) expired(e ipc.Entry, _ lemma.HoldExpiredBody) {
	t.say("hold", e, "nobody answered in time")
}

func (t *teller) cancelled(e ipc.Entry, b lemma.HoldCancelledBody) {
	t.say("hold", e, "no longer asked: %s", b.Reason)
}

func (t *teller) decided(e ipc.Entry, b lemma.GateDecided) {
	t.say("decide", e, "%s  class %s, mode %s", mark(b.Decision), string(b.Class), string(b.Mode))
	if s := verdicts(b.Counts); s != "" {
		t.say("decide", e, "   %s", s)
	}
	for _, r := range b.Reasons {
		t.say("decide", e, "   %s", r)
	}
}

// verdicts counts what was judged, without the zeros.
func verdicts(c lemma.Counts) string {
	var out []string
	for _, v := range []struct {
		n    int
		name string
	}{
		{c.Contradicted, "contradicted"}, {c.Confirmed, "confirmed"}, {c.Inconclusive, "inconclusive"}, {c.Unjudged, "unjudged"},
		{c.Unverifiable, "unverifiable"}, {c.OutOfScope, "out of scope"}, {c.Told, "told"}, {c.Waived, "waived"},
	} {
		if v.n > 0 {
			out = append(out, itoa(v.n)+" "+v.name)
		}
	}
	return strings.Join(out, ", ")
}

func (t *teller) grounded(e ipc.Entry, b lemma.TurnGrounded) {
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
			parts = append(parts, k+" "+millis(b.Timings[k]))
		}
		t.say("close", e, "time: %s", strings.Join(parts, ", "))
	}
	t.say("close", e, "tokens: client %s", tokens(b.UsageClient))
	if (b.UsageOurs != lemma.Usage{}) {
		t.say("close", e, "        ours   %s", tokens(b.UsageOurs))
	}
}

func tokens(u lemma.Usage) string {
	s := thousands(u.Input) + " in, " + thousands(u.Output) + " out"
	if u.CacheRead > 0 {
		s += ", " + thousands(u.CacheRead) + " from cache"
	}
	return s
}

func (t *teller) conflict(e ipc.Entry, b lemma.ScopeConflict) {
	t.say("route", e, "the request names %s, the agent stands in %s: out of scope", b.Named, b.Found)
}

func (t *teller) breaker(e ipc.Entry, b lemma.BreakerOpened) {
	t.say("other", e, "%s failed again and again and is passed over: %s", b.Stage, b.Reason)
}

func (t *teller) backedOff(e ipc.Entry, b lemma.SensorBackedOff) {
	t.say("measure", e, "%s is left alone until %s: %s", b.Sensor, t.a.stamp(b.Until), b.Reason)
}

func (t *teller) foot() {
	es := t.d.Entries
	if len(es) == 0 {
		return
	}
	t.p.line("entries %s to %s of the chain", thousands(es[0].Seq), thousands(es[len(es)-1].Seq))
	if t.d.ClosedAt == "" {
		t.p.line("the turn is open; its last entry is %s", t.d.Stage)
	}
	if t.evidence == nil {
		for _, e := range es {
			if e.Kind == string(lemma.KSensorInvoked) {
				t.p.line("what the sensors printed: gettier turns %s --evidence", t.d.ID[max(0, len(t.d.ID)-6):])
				return
			}
		}
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// quote shows a value's ends.
func quote(s string) string { return `"` + s + `"` }

// argv prints a command so that its words can be told apart.
func argv(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$*?[]{}()<>|&;`~#") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}
