package turn

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// Serve answers one request. The error is for the log: the client has been
// answered as far as it can be.
func (e *Engine) Serve(ctx context.Context, q *Request, out Sink) (err error) {
	q.conversation = e.scoped(q.Route.Conversation, q.CredHash, q.Scope)
	t, err := e.join(ctx, q)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed, t.lost, t.status, t.openCalls = false, false, http.StatusOK, nil
	t.show(func(s *snapshot) { s.serving, s.closed, s.broken, s.body = true, false, false, q.Wire.Body })
	defer func() {
		if p := recover(); p != nil {
			err = e.panicked(q, t, out, p)
		}
		err = errors.Join(err, e.end(t))
	}()
	rl := newRelay(e, q, t, out)
	if t.side {
		return e.answer(ctx, q, t, rl)
	}
	var o outcome
	e.alive(q, rl, func() { o, err = e.prepare(ctx, q, t) })
	if err != nil {
		if ctx.Err() != nil {
			return e.clientGone(t, nil, ctx.Err())
		}
		return e.fail(q, t, out, err)
	}
	t.fresh = false // a check that was cut off is due again at the resend
	if o.ends {
		return e.endText(q, t, rl, o.text)
	}
	t.notes += o.text
	return e.answer(ctx, q, t, rl)
}

// prepare does what comes before an answer: a stored turn is resumed, a chat
// reply is taken, a new prompt is checked.
func (e *Engine) prepare(ctx context.Context, q *Request, t *live) (outcome, error) {
	if t.hold != "" && t.stage == "hold" {
		return e.resume(ctx, q, t, t.hold)
	}
	if !t.fresh || q.Route.Continues {
		return outcome{}, nil
	}
	h, ok, why, err := e.reply(ctx, q, t)
	switch {
	case err != nil:
		return outcome{}, err
	case why != "":
		text := fmt.Sprintf("gettier did not take this as an answer to hold %s: %s.\nAnswer in a terminal: gettier answer %s", short(h.ID), why, short(h.ID))
		return outcome{ends: true, text: text}, e.write(ctx, t, lemma.AnswerRefused{
			Contract: lemma.Contract, Call: "chat", Hold: h.ID, UID: q.Principal.UID, PID: q.Principal.PID, Why: cutText(why, maxValueText),
		})
	case ok:
		return e.resume(ctx, q, t, h.ID)
	}
	return e.prompt(ctx, q, t)
}

// body is the client's request with every stored block whose anchor it still
// holds, spliced in as the bytes that were sent before.
func (e *Engine) body(q *Request) ([]byte, error) {
	blocks, err := e.Store.Blocks(q.conversation)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return q.Wire.Body, nil
	}
	anchors := route.Anchors(q.Wire)
	var in []wire.Block
	for _, b := range blocks {
		if i := slices.Index(anchors, b.Anchor); i >= 0 {
			in = append(in, wire.Block{After: i, Text: b.Text})
		}
	}
	if len(in) == 0 {
		return q.Wire.Body, nil
	}
	slices.SortStableFunc(in, func(a, b wire.Block) int { return a.After - b.After })
	return q.Adapter.Splice(q.Wire, in)
}

// scoped is the name under which a conversation is kept: the same words from
// another place or another credential are another conversation, so that a
// reading of one project never stands in a request of another (13.7).
func (e *Engine) scoped(conversation, cred string, sc Scope) string {
	if conversation == "" {
		return ""
	}
	m := hmac.New(sha256.New, e.Key)
	fmt.Fprintf(m, "conversation\x00%s\x00%s\x00%s", conversation, cred, scopeName(sc))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// conversation finds or makes what is remembered of a conversation.
func (e *Engine) conversation(id string) *conversation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.convs == nil {
		e.convs = map[string]*conversation{}
	}
	c := e.convs[id]
	if c == nil {
		c = &conversation{}
		e.convs[id] = c
	}
	c.touched = e.Now()
	return c
}

// join finds the turn that a request belongs to, or opens one.
func (e *Engine) join(ctx context.Context, q *Request) (*live, error) {
	rt := q.Route
	key := route.KeyOf(e.Key, q.CredHash, q.Upstream.Name(), rt)
	if rt.Kind.Side() || rt.Kind == route.Unknown {
		return e.open(q, key, nil)
	}
	c := e.conversation(q.conversation)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil {
		c.cur = e.restore(q)
	}
	if cur := c.cur; cur != nil {
		at := cur.look()
		graced := at.broken && e.Now().Sub(at.ended) < ResendGrace
		if rt.Continues && (!at.closed || cur.key == key) || // the next lap
			cur.key == key && at.serving && at.checking || // a resend: it waits for the verification and gets its answer
			cur.key == key && !at.serving && (!at.closed || graced) {
			cur.show(func(s *snapshot) { s.serving = true })
			return cur, nil
		}
		// A person's new words end whatever was open.
		if !at.closed && !at.serving {
			if err := e.finish(ctx, cur); err != nil {
				e.Log.Warn("close turn", "turn", cur.id, "error", err.Error())
			}
		}
	}
	t, err := e.open(q, key, c)
	if err != nil {
		return nil, err
	}
	t.show(func(s *snapshot) { s.serving = true })
	c.cur = t
	return t, nil
}

// finish closes a turn that nobody is being served from.
func (e *Engine) finish(ctx context.Context, t *live) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.close(ctx, t)
}

// Prior implements route.Prior for the requests of one process and credential.
func (e *Engine) Prior(pid int, cred string, sc Scope) route.Prior { return prior{e, pid, cred, sc} }

type prior struct {
	e     *Engine
	pid   int
	cred  string
	scope Scope
}

// Pending implements route.Prior.
func (p prior) Pending(conversation string) [][]byte {
	p.e.mu.Lock()
	c := p.e.convs[p.e.scoped(conversation, p.cred, p.scope)]
	p.e.mu.Unlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	cur := c.cur
	c.mu.Unlock()
	if cur == nil {
		return nil
	}
	at := cur.look()
	if at.body == nil || at.closed && !(at.broken && p.e.Now().Sub(at.ended) < ResendGrace) {
		return nil
	}
	return [][]byte{at.body}
}

// OpenCalls implements route.Prior.
func (p prior) OpenCalls() []route.Call {
	p.e.mu.Lock()
	var convs []*conversation
	for _, c := range p.e.convs {
		convs = append(convs, c)
	}
	p.e.mu.Unlock()
	type call struct {
		route.Call
		at time.Time
	}
	var calls []call
	for _, c := range convs {
		c.mu.Lock()
		cur := c.cur
		c.mu.Unlock()
		if cur == nil || cur.pid != p.pid || cur.cred != p.cred {
			continue
		}
		at := cur.look()
		for _, w := range at.calls {
			calls = append(calls, call{route.Call{Conversation: cur.named, Name: w.Name, Args: w.Args}, at.ended})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int { // newest first; the order of the map must not show
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.Conversation, b.Conversation))
	})
	out := make([]route.Call, len(calls))
	for i, c := range calls {
		out[i] = c.Call
	}
	return out
}

// restore brings the newest turn of a conversation back after a restart.
func (e *Engine) restore(q *Request) *live {
	row, ok := e.Store.LastTurn(q.conversation)
	// A turn that a stop of the daemon cut off goes on where it was.
	stopped := strings.HasPrefix(row.Error, "stopped at")
	if !ok || (row.ClosedAt != "" && !stopped) || row.Scope != scopeName(q.Scope) {
		return nil
	}
	t := &live{
		id: row.ID, conversation: row.Conversation, key: row.Key, scope: q.Scope, class: row.Class, prompt: row.Prompt, pid: q.Principal.PID, cred: q.CredHash, named: q.Route.Conversation,
		decision: row.Decision, counts: row.Counts, rung: -1,
		usageClient: row.UsageClient, usageOurs: row.UsageOurs,
	}
	if t.decision == "" || t.decision == lemma.DecError {
		t.decision = lemma.DecPassThrough
	}
	if row.Hold != "" {
		t.hold, t.stage, t.snap.hold = row.Hold, "hold", row.Hold
	}
	t.rung = row.Rung
	if row.Mode == "" { // the gate never decided: what its prompt was due still is
		t.fresh = true
	} else {
		t.passes, t.gated = 1, true
	}
	return t
}

func scopeName(s Scope) string {
	if s.Name == "" {
		return "host"
	}
	return s.Name
}

// open starts a turn. Its first entry commits while the upstream works.
func (e *Engine) open(q *Request, key string, c *conversation) (*live, error) {
	id, err := lemma.NewID(lemma.IDTurn, e.Now(), e.Entropy)
	if err != nil {
		return nil, err
	}
	class, reasons := lemma.Explore, []string{string(q.Route.Kind) + ": " + q.Route.Why}
	if c != nil && q.Route.PersonText != "" {
		var why []string
		class, why = gate.PromptClass(q.Route.PersonText, len(q.Wire.Tools) > 0)
		reasons = append(reasons, why...)
	}
	t := &live{
		id: id, key: key, scope: q.Scope, class: class, reasons: reasons, decision: lemma.DecPassThrough, rung: -1,
		prompt: e.Redact(q.Route.PersonText), opened: e.Now(), stage: "route", fresh: true, side: c == nil, pid: q.Principal.PID, cred: q.CredHash, named: q.Route.Conversation,
	}
	if c != nil {
		t.conversation = q.conversation
	}
	body := lemma.TurnOpened{
		Contract: lemma.Contract, Principal: q.Principal, RequestKind: string(q.Route.Kind), Format: string(q.Adapter.Format()),
		Upstream: q.Upstream.Name(), Model: cutText(q.Wire.Model, maxValueText), Conversation: t.conversation, Key: key,
		Scope: scopeName(q.Scope), ScopeEvidence: q.Scope.Evidence, Class: class, Reasons: reasons, Prompt: cutText(t.prompt, maxValueText),
	}
	e.counts.turns.Add(1)
	t.pending = e.Store.Go(ledger.Draft{Turn: id, Body: body})
	return t, nil
}

// prompt is what a new prompt gets before its answer: known facts, and where
// premises are declared at the prompt, the whole check.
func (e *Engine) prompt(ctx context.Context, q *Request, t *live) (outcome, error) {
	set := e.Settings()
	if q.Route.PersonItem < 0 || q.Observe || modeOf(set, t.class) == lemma.Off {
		return outcome{}, nil
	}
	if err := e.injectFacts(ctx, q, t); err != nil {
		return outcome{}, err
	}
	if len(q.Wire.Tools) > 0 && !set.DeclareAtPrompt {
		return outcome{}, nil
	}
	if why := e.measurable(t, q.Route.PersonText); why != "" && t.class != lemma.Destructive {
		t.reasons = append(t.reasons, "not declared: "+why)
		return outcome{}, nil
	}
	if stage := e.broken(t, t.class); stage != "" {
		t.reasons = append(t.reasons, "not declared: the breaker is open for "+stage)
		return outcome{}, nil
	}
	body, err := e.body(q)
	if err != nil {
		return outcome{}, fmt.Errorf("splice blocks: %w", err)
	}
	return e.check(ctx, q, t, body, occasion{at: "prompt", class: t.class})
}

// modeOf is the mode of a class; watch mode changes outcomes, not the table.
func modeOf(set Settings, c lemma.Class) lemma.Mode {
	if m, ok := set.Modes[c]; ok {
		return m
	}
	return gate.DefaultModes()[c]
}

// rule is the one choke point of all tool calls in answers: implied premises and
// the action gate sit here. It decides before a call leaves.
func (e *Engine) rule(ctx context.Context, q *Request, t *live, ans *wire.Answer, round int) (ruling, error) {
	if len(ans.Calls) == 0 {
		note := t.notes
		t.notes = ""
		return ruling{note: note}, nil
	}
	acts := make([]shell.Action, len(ans.Calls))
	effect, class := shell.Effect(""), lemma.Explore
	var edits []shell.Edit
	var summary string
	for i, c := range ans.Calls {
		a := shell.Tool(c.Name, c.Args)
		acts[i] = a
		if !effect.AtLeast(a.Effect) {
			summary = a.Summary
		}
		effect = shell.Join(effect, a.Effect)
		class = lemma.MaxClass(class, gate.CallClass(a))
		edits = append(edits, a.Edits...)
		t.external = t.external || a.External
	}
	if class.Rank() > t.class.Rank() {
		t.class = class
		t.reasons = append(t.reasons, "action: "+summary)
		if err := e.write(ctx, t, lemma.TurnClassified{Contract: lemma.Contract, Class: class, Reasons: []string{"action " + cutText(e.Redact(summary), maxValueText)}}); err != nil {
			return ruling{}, err
		}
	}
	if effect == shell.Catastrophe { // no premise makes it right
		t.decision = decide(t.decision, lemma.DecBlocked)
		e.counts.blocked.Add(1)
		return ruling{text: stopped("it would destroy this system: " + unframed(summary) + ". Nothing was run.")}, e.actions(ctx, t, ans.Calls, acts, "DENY", "catastrophe")
	}
	why := e.uncovered(q, t, acts, edits, effect, class)
	if why != "" {
		return ruling{}, e.allow(ctx, t, ans.Calls, acts, why)
	}
	if round+1 >= maxRounds {
		t.decision = decide(t.decision, lemma.DecBlocked)
		if err := e.actions(ctx, t, ans.Calls, acts, "DENY", "rounds: the plan still rests on what was measured to be false"); err != nil {
			return ruling{}, err
		}
		return ruling{text: stopped("the plan was corrected several times and still rests on something that this system contradicts.")}, nil
	}
	body, err := e.body(q)
	if err != nil {
		return ruling{}, err
	}
	o, err := e.check(ctx, q, t, body, occasion{at: "action", class: class, effect: effect, action: summary})
	if err != nil {
		return ruling{}, err
	}
	switch {
	case o.again:
		return ruling{again: true}, e.actions(ctx, t, ans.Calls, acts, "WITHHELD", "premise contradicted")
	case o.ends:
		return ruling{text: o.text}, e.actions(ctx, t, ans.Calls, acts, o.state, o.why)
	}
	t.notes += o.text
	return ruling{}, e.allow(ctx, t, ans.Calls, acts, "")
}

// uncovered says why no declare pass is due before these actions, "" when one is.
// Nothing here may spare an action of effect destroy or above (13).
func (e *Engine) uncovered(q *Request, t *live, acts []shell.Action, edits []shell.Edit, effect shell.Effect, class lemma.Class) string {
	set := e.Settings()
	if effect.AtLeast(shell.Destroy) {
		return ""
	}
	if !effect.AtLeast(shell.Mutate) {
		return "read_only"
	}
	if q.Observe {
		return "this upstream is only observed"
	}
	if t.side {
		return "a side request declares nothing"
	}
	if modeOf(set, class) == lemma.Off {
		return "mode off for " + string(class)
	}
	if !set.DeclareAtAction {
		return "declared at the prompt"
	}
	if onlyEdits(acts) {
		if ok, why := gate.Trivial(edits); ok {
			return "trivial: " + why
		}
	}
	if t.passes >= set.DeclareMaxPerTurn {
		return "declared as often as declare.max_per_turn allows"
	}
	if t.covered != "" && class.Rank() <= t.covered.Rank() {
		return "covered by this turn's declaration"
	}
	if stage := e.broken(t, class); stage != "" {
		return "the breaker is open for " + stage
	}
	if cov := e.reusable(q, t, class); cov != "" {
		return cov
	}
	return e.measurable(t, q.Route.PersonText)
}

// broken names a stage whose breaker is open for what class asks, "" when none
// is: classes that may block are never spared (03, Failure).
func (e *Engine) broken(t *live, class lemma.Class) string {
	for _, stage := range []string{"declare", "verify", "decide"} {
		if class.Rank() <= lemma.Edit.Rank() && e.breaker.open(stage, t.conversation, e.Now()) {
			return stage
		}
	}
	return ""
}

func onlyEdits(acts []shell.Action) bool {
	for _, a := range acts {
		if a.Effect.AtLeast(shell.Mutate) && len(a.Edits) == 0 {
			return false
		}
	}
	return true
}

// reusable reports an earlier declaration of the conversation that still covers
// an action of class: same root, young enough, nothing foreign came in, and for
// class change no new person's words but a bare continuation (13.8).
func (e *Engine) reusable(q *Request, t *live, class lemma.Class) string {
	e.mu.Lock()
	var cov *coverage
	if c := e.convs[t.conversation]; c != nil {
		cov = c.covered
	}
	e.mu.Unlock()
	if cov == nil || cov.turn == t.id || cov.root != t.scope.Root || t.external {
		return ""
	}
	if e.Now().Sub(cov.at) > e.Settings().DeclareReuse || class.Rank() > cov.class.Rank() {
		return ""
	}
	if class.Rank() >= lemma.Change.Rank() && !gate.BareContinuation(q.Route.PersonText) {
		return ""
	}
	return "covered by the declaration of turn " + cov.turn
}

// measurable says why nothing could be measured for this turn, "" when something can.
func (e *Engine) measurable(t *live, text string) string {
	if t.scope.Root == "" {
		return "no certain scope: " + t.scope.Evidence
	}
	v := e.Sensors.View(t.scope.Root)
	if v == nil || len(v.Sensors) == 0 {
		return "no approved sensor applies here"
	}
	return ""
}

// allow records the calls as allowed.
func (e *Engine) allow(ctx context.Context, t *live, calls []wire.Call, acts []shell.Action, why string) error {
	for _, a := range acts {
		if a.Effect.AtLeast(shell.Mutate) && t.scope.Name != "" {
			e.reuse.changed(t.scope.Name, e.Now())
		}
	}
	t.openCalls = calls
	return e.actions(ctx, t, calls, acts, "ALLOW", why)
}

// actions records one ruling for all calls of an answer, before any of them leaves.
func (e *Engine) actions(ctx context.Context, t *live, calls []wire.Call, acts []shell.Action, state, why string) error {
	bodies := make([]lemma.Body, 0, len(calls))
	for i, c := range calls {
		h := sha256.New()
		h.Write([]byte(c.Name + "\x00"))
		h.Write(c.Args)
		b := lemma.ActionDecided{
			Contract: lemma.Contract, ActionHash: hex.EncodeToString(h.Sum(nil)), Tool: cutText(c.Name, maxValueText),
			Summary: cutText(e.Redact(acts[i].Summary), maxValueText), State: state, Effect: string(acts[i].Effect),
			Findings: []string{}, Premises: []string{},
		}
		if acts[i].Rule != "" {
			b.Findings = append(b.Findings, acts[i].Rule)
		}
		if why != "" {
			b.Findings = append(b.Findings, cutText(why, maxValueText))
		}
		bodies = append(bodies, b)
	}
	switch state {
	case "ALLOW":
		t.counts.Allowed += len(calls)
	case "DENY":
		t.counts.Denied += len(calls)
	case "REQUIRE_CONFIRM":
		t.counts.Held += len(calls)
	}
	return e.write(ctx, t, bodies...)
}

// write appends entries of a turn and waits until they are durable.
func (e *Engine) write(ctx context.Context, t *live, bodies ...lemma.Body) error {
	drafts := make([]ledger.Draft, len(bodies))
	for i, b := range bodies {
		drafts[i] = ledger.Draft{Turn: t.id, Body: b}
	}
	return e.append(ctx, t, drafts...)
}

func (e *Engine) append(ctx context.Context, t *live, drafts ...ledger.Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	err := t.durable(ctx)
	if err == nil {
		_, err = e.Store.Append(ctx, drafts...)
	}
	if err != nil && e.mayServe(t) {
		e.Log.Warn("the ledger cannot record", "turn", t.id, "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("record turn: %w", err)
	}
	return nil
}

// mayServe reports whether a turn may go on although the ledger cannot write:
// exploring and editing, where it is so configured.
func (e *Engine) mayServe(t *live) bool {
	return e.Settings().FailOpenExplore && t.class.Rank() <= lemma.Edit.Rank()
}

// end is the close of one request: the turn ends with an answer that asks for
// nothing more, or stays open for its next lap.
func (e *Engine) end(t *live) error {
	broken := t.failed || t.lost
	now := e.Now()
	t.show(func(s *snapshot) {
		s.serving, s.checking, s.broken, s.ended, s.calls = false, false, broken, now, t.openCalls
	})
	if t.stage == "hold" || !broken && len(t.openCalls) > 0 {
		return nil // the hold's answer, or the next lap, goes on from here
	}
	return e.close(context.Background(), t)
}

// close writes the end of a turn. The commit of its opening is awaited first.
func (e *Engine) close(ctx context.Context, t *live) error {
	if t.look().closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := t.durable(ctx); err != nil {
		return fmt.Errorf("open turn: %w", err)
	}
	t.show(func(s *snapshot) {
		s.closed = true
		if !s.broken {
			s.body = nil
		}
	})
	_, err := e.Store.Append(ctx, ledger.Draft{Turn: t.id, Body: t.closedBody()})
	return err
}

// panicked closes a request whose stage had a bug: what could act does not leave.
func (e *Engine) panicked(q *Request, t *live, out Sink, p any) error {
	if perr, ok := p.(error); ok && errors.Is(perr, http.ErrAbortHandler) {
		panic(p)
	}
	err := fmt.Errorf("fail_closed:%s: %v", t.stage, p)
	e.Log.Error("stage failed", "turn", t.id, "stage", t.stage, "panic", fmt.Sprint(p))
	if e.breaker.failed(t.stage, t.conversation, e.Now()) {
		_ = e.write(context.Background(), t, lemma.BreakerOpened{Contract: lemma.Contract, Stage: t.stage, Conversation: t.conversation, Reason: cutText(fmt.Sprint(p), maxValueText)}) // the error below says it too
	}
	return e.fail(q, t, out, err)
}

// stopped frames a text of ours that stands in place of an answer.
func stopped(why string) string { return "gettier stopped this: " + why }

// Sweep ends turns that have been silent for Idle, forgets conversations that
// nothing was heard of for as long, and expires holds.
func (e *Engine) Sweep(ctx context.Context, now time.Time) error {
	e.mu.Lock()
	type entry struct {
		id    string
		c     *conversation
		quiet bool
	}
	var all []entry
	for id, c := range e.convs {
		all = append(all, entry{id, c, now.Sub(c.touched) > Idle})
	}
	e.mu.Unlock()
	var errs []error
	for _, x := range all {
		x.c.mu.Lock()
		cur, quiet := x.c.cur, x.quiet
		if cur != nil && quiet {
			if at := cur.look(); !at.serving {
				errs = append(errs, e.finish(ctx, cur))
			} else {
				quiet = false
			}
		}
		x.c.mu.Unlock()
		if quiet {
			e.mu.Lock()
			delete(e.convs, x.id)
			e.mu.Unlock()
		}
	}
	return errors.Join(append(errs, e.Holds.Expire(ctx, now))...)
}
