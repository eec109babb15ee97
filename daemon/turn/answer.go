package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"gettier.dev/gettierd/daemon/wire"
)

// maxAnswer bounds an answer that is collected before it is ruled on, in bytes.
const maxAnswer = 32 << 20

// maxRounds is how many answers one request may be made of: the first and those
// made anew after a correction. A model that never stops proposing new
// consequential actions ends there; what it still wanted to do is not done.
const maxRounds = 4

// errCut: the upstream's answer ended before its end mark.
var errCut = errors.New("the upstream's answer was cut short")

// ruling is what the choke point says of the calls of one answer.
type ruling struct {
	again bool        // make the answer anew with a block that now stands in the request
	text  string      // end the answer with this text instead of the calls
	note  string      // add this at the end, before the calls
	drop  []wire.Call // leave these out
}

// relay sends the pieces of one or more upstream answers as one answer to the client.
type relay struct {
	out   Sink
	first wire.Stream // the stream whose pieces may have left
	cur   wire.Stream
	ours  bool // something of ours stands between the pieces
	id    string
	start func(early bool)
	// What the upstream said of the answer that is being sent.
	status int
	head   http.Header
}

// newRelay makes the client's side of one request.
func newRelay(e *Engine, q *Request, t *live, out Sink) *relay {
	r := &relay{out: out, id: t.id, status: http.StatusOK, head: http.Header{"Content-Type": {"text/event-stream"}}}
	r.start = func(early bool) {
		h := Headers{Turn: t.id, Hold: t.look().hold, Rung: -1} // all that is certain, and safe to read, before the decision
		if !early {
			h = t.headers()
			if !t.gated && len(q.Wire.Tools) > 0 {
				h.Decision = "" // its calls are still to come
			}
		}
		out.Start(r.status, r.head, true, h)
	}
	return r
}

// open starts a stream before its answer is known.
func (r *relay) open(a wire.Adapter, model, id string) error {
	st := a.NewStream()
	b := a.Start(model, id)
	pieces, err := st.Feed(b)
	if err != nil {
		return fmt.Errorf("open stream: %w", err)
	}
	for _, p := range pieces {
		st.Sent(p)
	}
	r.first, r.cur, r.ours = st, st, true
	r.start(true)
	return r.out.Write(b)
}

// beat is a sign of life between the blocks of a stream.
func (r *relay) beat(a wire.Adapter) error {
	if err := r.insert(r.first.CloseOpen()); err != nil {
		return err
	}
	if w, ok := r.first.(wire.Waiter); ok {
		return r.insert(w.KeepAlive())
	}
	return r.raw(a.KeepAlive(true))
}

// alive runs f and keeps a streaming client's connection alive meanwhile. A
// panic in f comes out here.
func (e *Engine) alive(q *Request, rl *relay, f func()) {
	if !q.Wire.Stream {
		f()
		return
	}
	done := make(chan any, 1) // f's end; it may come while a keep-alive is being written
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	tick := time.NewTicker(e.Settings().KeepAlive)
	defer tick.Stop()
	for {
		select {
		case p := <-done:
			if p != nil {
				panic(p)
			}
			return
		case <-tick.C:
			// A lost client shows on the next write and by its context.
			if !rl.out.Started() {
				_ = rl.open(q.Adapter, q.Wire.Model, rl.id)
			} else {
				_ = rl.beat(q.Adapter)
			}
		}
	}
}

// send forwards one piece of the current answer: as received while nothing of
// ours stands before it.
func (r *relay) send(p wire.Piece) error {
	if r.cur == r.first && !r.ours {
		r.first.Sent(p)
		return r.raw(p.Raw)
	}
	return r.raw(r.first.Continue(r.cur, p))
}

// insert sends bytes of ours.
func (r *relay) insert(b []byte) error {
	if len(b) > 0 {
		r.ours = true
	}
	return r.raw(b)
}

func (r *relay) raw(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if !r.out.Started() {
		r.start(false)
	}
	return r.out.Write(b)
}

// answer makes the client's answer from body: it calls the upstream, lets text
// through, holds tool calls until they are complete and ruled on, and starts
// over where the ruling says so.
func (e *Engine) answer(ctx context.Context, q *Request, t *live, rl *relay) error {
	for round := 0; ; round++ {
		body, err := e.body(q)
		if err != nil {
			return e.fail(q, t, rl.out, fmt.Errorf("splice blocks: %w", err))
		}
		t.stage = "answer"
		began := e.Now()
		resp, err := q.Upstream.Call(ctx, body)
		if err != nil {
			return e.upstreamFailed(ctx, q, t, rl.out, err)
		}
		var rule ruling
		if isStream(resp) && q.Wire.Stream {
			rl.status, rl.head = resp.StatusCode, resp.Header
			rule, err = e.streamed(ctx, q, t, resp, rl, round)
		} else {
			rule, err = e.whole(ctx, q, t, resp, rl, round)
		}
		t.spent("answer", e.Now().Sub(began))
		if err != nil || !rule.again {
			return err
		}
	}
}

// isStream reports whether resp is an event stream of a successful call.
func isStream(resp *http.Response) bool {
	ct := resp.Header.Get("Content-Type")
	return resp.StatusCode/100 == 2 && len(ct) >= 17 && ct[:17] == "text/event-stream"
}

// streamed reads one streamed answer.
func (e *Engine) streamed(ctx context.Context, q *Request, t *live, resp *http.Response, rl *relay, round int) (ruling, error) {
	defer resp.Body.Close()
	if err := e.durable(ctx, t); err != nil && !e.mayServe(t) {
		return ruling{}, e.fail(q, t, rl.out, fmt.Errorf("%w: %w", errUnrecorded, err))
	}
	st := q.Adapter.NewStream()
	rl.cur = st
	if !rl.out.Started() {
		rl.first, rl.ours = st, false
	}
	gated := len(q.Wire.Tools) > 0 || t.notes != ""
	var held, lead []wire.Piece // lead: thinking that goes where the next item goes
	size, sent := 0, e.Now()
	buf := make([]byte, 32<<10)
	for {
		n, rerr := resp.Body.Read(buf)
		if n > 0 {
			pieces, err := st.Feed(buf[:n])
			for _, p := range pieces {
				switch {
				case p.Kind == wire.PiecePing:
					serr := error(nil)
					if _, ok := rl.first.(wire.Waiter); ok && len(held)+len(lead) > 0 {
						serr = rl.beat(q.Adapter) // its number would be ahead of those that wait
					} else {
						serr = rl.send(p)
					}
					if serr != nil {
						return ruling{}, e.clientGone(t, st, serr)
					}
					sent = e.Now()
					continue
				case len(held) > 0, p.Kind == wire.PieceCall, p.Kind == wire.PieceFinish && gated:
					held, lead = append(append(held, lead...), p), nil
				case p.Kind == wire.PieceLead:
					lead = append(lead, p)
				default:
					if p.Kind == wire.PieceError {
						lead = nil
					}
					for _, p := range append(lead, p) {
						if serr := rl.send(p); serr != nil {
							return ruling{}, e.clientGone(t, st, serr)
						}
					}
					lead, size, sent = nil, 0, e.Now()
					continue
				}
				if size += len(p.Raw); size > maxAnswer {
					err = fmt.Errorf("%w: tool calls of more than %d bytes", wire.ErrUnreadable, maxAnswer)
					break
				}
			}
			// Long arguments and long thought are silence to the client.
			if now := e.Now(); err == nil && now.Sub(sent) >= e.Settings().KeepAlive && rl.out.Started() {
				if serr := rl.beat(q.Adapter); serr != nil {
					return ruling{}, e.clientGone(t, st, serr)
				}
				sent = now
			}
			if err != nil {
				t.usageClient = t.usageClient.Add(st.Answer().Usage)
				return ruling{}, e.unreadable(q, t, rl.out, err)
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			if ctx.Err() != nil {
				return ruling{}, e.clientGone(t, st, ctx.Err())
			}
			t.usageClient = t.usageClient.Add(st.Answer().Usage)
			return ruling{}, e.cut(q, t, rl.out, rerr)
		}
	}
	if !st.Done() {
		t.usageClient = t.usageClient.Add(st.Answer().Usage)
		return ruling{}, e.cut(q, t, rl.out, errCut)
	}
	ans := st.Answer()
	var rule ruling
	var err error
	e.alive(q, rl, func() { rule, err = e.rule(ctx, q, t, ans, round) })
	rl.cur = st // an early start may have taken its place
	if err != nil {
		if ctx.Err() != nil {
			return ruling{}, e.clientGone(t, st, ctx.Err())
		}
		return ruling{}, e.fail(q, t, rl.out, err)
	}
	if rule.again {
		t.usageOurs = t.usageOurs.Add(ans.Usage)
		return rule, nil
	}
	t.usageClient = t.usageClient.Add(ans.Usage)
	if rule.text != "" {
		return rule, rl.insert(rl.first.Finish(rule.text + rule.note))
	}
	if len(rule.drop) > 0 {
		st.Drop(rule.drop)
	}
	if rule.note != "" {
		if err := rl.insert(rl.first.Note(rule.note)); err != nil {
			return ruling{}, e.clientGone(t, st, err)
		}
	}
	for _, p := range held {
		if err := rl.send(p); err != nil {
			return ruling{}, e.clientGone(t, st, err)
		}
	}
	return rule, nil
}

// whole reads one answer that is not streamed, or an upstream's refusal.
func (e *Engine) whole(ctx context.Context, q *Request, t *live, resp *http.Response, rl *relay, round int) (ruling, error) {
	out := rl.out
	defer resp.Body.Close()
	if err := e.durable(ctx, t); err != nil && !e.mayServe(t) {
		return ruling{}, e.fail(q, t, out, fmt.Errorf("%w: %w", errUnrecorded, err))
	}
	if resp.StatusCode/100 == 3 { // followed by the client, it would lead around the gate
		return ruling{}, e.cut(q, t, out, fmt.Errorf("the upstream %q answered %d, a redirect, and redirects are not followed: its base_url should name where it leads", q.Upstream.Name(), resp.StatusCode))
	}
	if resp.StatusCode/100 != 2 {
		t.status, t.failed = resp.StatusCode, true
		if out.Started() { // an answer made anew was refused after text of the first had left
			b, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
			return ruling{}, e.cut(q, t, out, fmt.Errorf("the upstream answered %d: %.200s", resp.StatusCode, b))
		}
		out.Start(resp.StatusCode, resp.Header, false, t.headers())
		return ruling{}, copyBody(out, resp.Body)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		if ctx.Err() != nil {
			return ruling{}, e.clientGone(t, nil, ctx.Err())
		}
		return ruling{}, e.cut(q, t, out, err)
	}
	if len(body) > maxAnswer {
		return ruling{}, e.unreadable(q, t, out, fmt.Errorf("%w: more than %d bytes", wire.ErrUnreadable, maxAnswer))
	}
	ans, err := q.Adapter.ReadAnswer(body)
	if err != nil {
		return ruling{}, e.unreadable(q, t, out, err)
	}
	rule, err := e.rule(ctx, q, t, ans, round)
	if err != nil {
		return ruling{}, e.fail(q, t, out, err)
	}
	if rule.again {
		t.usageOurs = t.usageOurs.Add(ans.Usage)
		return rule, nil
	}
	t.usageClient = t.usageClient.Add(ans.Usage)
	if len(rule.drop) > 0 {
		if body, err = q.Adapter.Without(body, rule.drop); err != nil {
			return ruling{}, e.fail(q, t, out, err)
		}
	}
	if rule.text != "" {
		body = q.Adapter.TextAnswer(q.Wire.Model, t.id, rule.text+rule.note, false)
	} else if rule.note != "" {
		if body, err = q.Adapter.Note(body, rule.note); err != nil {
			return ruling{}, e.fail(q, t, out, fmt.Errorf("add note: %w", err))
		}
	}
	if out.Started() {
		// The client asked for a stream and the second answer came whole: its text
		// ends the stream; calls in it cannot be carried over and are not released.
		if len(ans.Calls) > 0 {
			return ruling{}, e.cut(q, t, out, errors.New("the upstream stopped streaming in mid-answer"))
		}
		return rule, rl.raw(rl.first.Finish(ans.Text + rule.text + rule.note))
	}
	out.Start(resp.StatusCode, resp.Header, false, t.headers())
	return rule, out.Write(body)
}

func copyBody(out Sink, r io.Reader) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if werr := out.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			out.Abort()
			return err
		}
	}
}

// endText sends text as the whole answer, or as the end of a stream that had to
// start early.
func (e *Engine) endText(q *Request, t *live, rl *relay, text string) error {
	if rl.out.Started() {
		return rl.insert(rl.first.Finish(text))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	if q.Wire.Stream {
		h = http.Header{"Content-Type": {"text/event-stream"}}
	}
	rl.out.Start(http.StatusOK, h, q.Wire.Stream, t.headers())
	return rl.out.Write(q.Adapter.TextAnswer(q.Wire.Model, t.id, text, q.Wire.Stream))
}

// refuse answers with an error in the client's format, if nothing has left yet.
func (e *Engine) refuse(q *Request, t *live, out Sink, status int, kind, message string) error {
	t.failed, t.status = true, status
	if out.Started() {
		_ = out.Write(q.Adapter.StreamError(kind, message)) // the connection is cut next
		out.Abort()
		return errors.New(message)
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("X-Should-Retry", "false")
	out.Start(status, h, false, t.headers())
	if err := out.Write(q.Adapter.Error(status, kind, message)); err != nil {
		return err
	}
	return errors.New(message)
}

// upstreamFailed: no answer could be had at all.
func (e *Engine) upstreamFailed(ctx context.Context, q *Request, t *live, out Sink, err error) error {
	if ctx.Err() != nil {
		return e.clientGone(t, nil, ctx.Err())
	}
	if out.Started() {
		return e.cut(q, t, out, err)
	}
	return e.refuse(q, t, out, http.StatusBadGateway, "upstream_unreachable", fmt.Sprintf("gettierd cannot reach the upstream %q: %v", q.Upstream.Name(), err))
}

// cut ends a broken answer so that the client sees that it is broken.
func (e *Engine) cut(q *Request, t *live, out Sink, cause error) error {
	t.lost = true
	if !out.Started() {
		return e.refuse(q, t, out, http.StatusBadGateway, "upstream_cut", cause.Error())
	}
	t.failed = true
	_ = out.Write(q.Adapter.StreamError("upstream_cut", cause.Error())) // the connection is cut next
	out.Abort()
	return cause
}

// unreadable refuses an answer that cannot be read as strictly as a request (13.11).
func (e *Engine) unreadable(q *Request, t *live, out Sink, cause error) error {
	return e.cut(q, t, out, fmt.Errorf("unreadable_call: %w", cause))
}

// clientGone: the client's connection is lost; the upstream call ends with ctx.
func (e *Engine) clientGone(t *live, st wire.Stream, cause error) error {
	t.lost = true
	if st != nil {
		t.usageClient = t.usageClient.Add(st.Answer().Usage)
	}
	return fmt.Errorf("client gone: %w", cause)
}

// fail closes a request whose own step failed.
func (e *Engine) fail(q *Request, t *live, out Sink, err error) error {
	if out.Started() {
		return e.cut(q, t, out, err)
	}
	if errors.Is(err, errUnrecorded) {
		return e.refuse(q, t, out, http.StatusServiceUnavailable, "ledger_unavailable", err.Error())
	}
	return e.refuse(q, t, out, http.StatusInternalServerError, "gettier_error", err.Error())
}
