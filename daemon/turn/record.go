package turn

import (
	"context"
	"errors"
	"fmt"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// errUnrecorded: an entry was refused, so nothing that rests on it may leave.
var errUnrecorded = errors.New("the ledger cannot record this turn, so it is not served")

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
	err := e.durable(ctx, t)
	if err == nil {
		_, err = e.Store.Append(ctx, drafts...)
	}
	if err != nil && e.mayServe(t) {
		e.Log.Warn("the ledger cannot record", "turn", t.id, "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	return nil
}

// mayServe reports whether a turn may go on although the ledger cannot write:
// exploring and editing, where it is so configured.
func (e *Engine) mayServe(t *live) bool {
	return e.Settings().FailOpenExplore && t.class.Rank() <= lemma.Edit.Rank()
}

// hand gives an entry to the ledger without waiting for its commit.
func (e *Engine) hand(t *live, b lemma.Body, blobs ...[]byte) {
	t.handed = ledger.Draft{Turn: t.id, Body: b, Blobs: blobs}
	t.pending = e.Store.Go(t.handed)
}

// durable waits for the entry that was handed over. One that the ledger refused
// is offered again, so that a turn which began on a full disk goes on when there
// is room.
func (e *Engine) durable(ctx context.Context, t *live) error {
	if t.pending != nil {
		select {
		case t.commit = <-t.pending:
			t.pending = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if t.commit != nil {
		_, t.commit = e.Store.Append(ctx, t.handed)
	}
	if t.commit == nil {
		t.handed.Blobs = nil // a request is large
	}
	return t.commit
}
