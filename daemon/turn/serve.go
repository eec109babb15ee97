package turn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
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
	if err := e.interject(ctx, q, t); err != nil {
		return e.fail(q, t, out, err)
	}
	if t.side {
		return e.answer(ctx, q, t, rl)
	}
	var o outcome
	e.alive(q, rl, func() { o, err = e.prepare(ctx, q, t) })
	t.show(func(s *snapshot) { s.checking = false })
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
		text := fmt.Sprintf("gettier did not take this as an answer to hold %s: %s.", short(h.ID), why)
		if h.State == lemma.HoldOpen {
			text += "\nAnswer in a terminal: gettier answer " + short(h.ID)
		} else {
			text += "\nNothing of it went to the model. Say it in other words, and it goes on as an ordinary message."
		}
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
	in, err := e.standing(q)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return q.Wire.Body, nil
	}
	return q.Adapter.Splice(q.Wire, in)
}

// standing are the conversation's blocks whose anchors this request still holds,
// in the order of their places.
func (e *Engine) standing(q *Request) ([]wire.Block, error) {
	blocks, err := e.Store.Blocks(q.conversation)
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	anchors := route.Anchors(q.Wire)
	var in []wire.Block
	for _, b := range blocks {
		if i := slices.Index(anchors, b.Anchor); i >= 0 {
			in = append(in, wire.Block{After: i, Text: b.Text})
		}
	}
	slices.SortStableFunc(in, func(a, b wire.Block) int { return a.After - b.After })
	return in, nil
}

// prompt is what a new prompt gets before its answer: known facts, and where
// premises are declared at the prompt, the whole check.
func (e *Engine) prompt(ctx context.Context, q *Request, t *live) (outcome, error) {
	set := e.Settings()
	if q.Route.PersonItem < 0 || q.Observe || modeOf(set, t.class) == lemma.Off {
		return outcome{}, nil
	}
	if err := e.injectFacts(ctx, q, t); errors.Is(err, errUnrecorded) && e.mayServe(t) {
		e.Log.Warn("the ledger cannot record", "turn", t.id, "error", err.Error())
	} else if err != nil {
		return outcome{}, err
	}
	if !e.checksPrompt(q, t) {
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

// checksPrompt reports whether premises are declared before this prompt's answer.
func (e *Engine) checksPrompt(q *Request, t *live) bool {
	set := e.Settings()
	return q.Route.PersonItem >= 0 && !q.Observe && modeOf(set, t.class) != lemma.Off && (len(q.Wire.Tools) == 0 || set.DeclareAtPrompt)
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

// close writes the end of a turn. Nobody waits for its commit: what ruled over
// the answer was durable before, and a turn whose end is lost in a crash is named
// at the next start.
func (e *Engine) close(ctx context.Context, t *live) error {
	if t.look().closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := e.durable(ctx, t); err != nil {
		return fmt.Errorf("open turn: %w", err)
	}
	t.show(func(s *snapshot) {
		s.closed = true
		if !s.broken {
			s.body = nil
		}
	})
	e.hand(t, t.closedBody())
	return nil
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
