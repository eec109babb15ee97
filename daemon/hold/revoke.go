package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// Revoke takes back the answers to items of a hold, all of them when none is
// named, and those that other holds were given along with them. Facts that an
// answer became are withdrawn. What left by an answer is not undone. The holds
// whose answers ended come back, the one that was meant first.
func (b *Book) Revoke(ctx context.Context, id string, items []string, by lemma.Answerer) ([]lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, err := b.Store.Hold(id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read hold: %w", err)
	}
	for _, name := range items {
		if !slices.ContainsFunc(h.Items, func(it lemma.HoldItem) bool { return it.ID == name }) {
			return nil, fmt.Errorf("%w: hold %s has no item %q", ErrIncomplete, short(h.ID), name)
		}
	}
	var meant []lemma.Answer
	for _, it := range h.Items {
		if it.Answer != nil && it.Answer.RevokedAt == "" && (len(items) == 0 || slices.Contains(items, it.ID)) {
			meant = append(meant, *it.Answer)
		}
	}
	if len(meant) == 0 {
		return nil, fmt.Errorf("%w: hold %s has no answer, or it was taken back already", ErrNoAnswer, short(h.ID))
	}
	others, err := b.given(h, meant)
	if err != nil {
		return nil, err
	}
	holds := append([]lemma.Hold{h}, others...)
	var drafts []ledger.Draft
	for _, o := range holds {
		var names []string
		for _, it := range o.Items {
			if it.Answer != nil && sameWord(meant, *it.Answer) {
				names = append(names, it.ID)
			}
		}
		drafts = append(drafts, ledger.Draft{Turn: o.Turn, Body: lemma.AnswerRevoked{Contract: lemma.Contract, Hold: o.ID, Items: names, By: by}})
	}
	for _, a := range meant {
		if f, ok := b.Store.FactBy(h.Scope, "person", a.ClaimID); ok && f.Source.Ref == h.ID {
			drafts = append(drafts, ledger.Draft{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: f.ID, Reason: "the answer was taken back", By: Who(by)}})
		}
	}
	if _, err := b.Store.Append(ctx, drafts...); err != nil {
		return nil, fmt.Errorf("record that an answer was taken back: %w", err)
	}
	for i := range holds {
		if holds[i], err = b.Store.Hold(holds[i].ID); err != nil {
			return nil, fmt.Errorf("read hold: %w", err)
		}
	}
	return holds, nil
}

// given finds the holds that were answered along with h, by the very same words.
func (b *Book) given(h lemma.Hold, meant []lemma.Answer) (out []lemma.Hold, err error) {
	page, err := b.Store.Holds(lemma.HoldAnswered, ledger.MaxLimit, "")
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	for _, o := range page.Items {
		if o.ID != h.ID && o.Scope == h.Scope && slices.ContainsFunc(o.Items, func(it lemma.HoldItem) bool { return it.Answer != nil && sameWord(meant, *it.Answer) }) {
			out = append(out, o)
		}
	}
	return out, nil
}

// sameWord reports whether a is one of these, to whichever hold it was given.
func sameWord(words []lemma.Answer, a lemma.Answer) bool {
	return slices.ContainsFunc(words, func(w lemma.Answer) bool {
		return a.RevokedAt == "" && a.ClaimID == w.ClaimID && a.At == w.At && a.Answer == w.Answer && a.Scope == w.Scope && a.By.UID == w.By.UID && a.By.Via == w.By.Via && a.By.TTY == w.By.TTY
	})
}
