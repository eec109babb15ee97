package ipctest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
)

// Knowledge lists the rows; Text filters by substring only.
func (b *Backend) Knowledge(_ context.Context, q ipc.KnowledgeQuery) (ipc.List[lemma.Knowledge], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := ipc.List[lemma.Knowledge]{AsOfSeq: b.head()}
	for _, k := range b.Knowing {
		if (q.Scope == "" || k.Scope == q.Scope) && strings.Contains(k.Text, q.Text) {
			out.Items = append(out.Items, k)
		}
	}
	return out, b.Broken
}

func (b *Backend) KnowledgePiece(_ context.Context, id string) (lemma.Knowledge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.Knowing, func(k lemma.Knowledge) bool { return k.ID == id })
	if i < 0 {
		return lemma.Knowledge{}, fmt.Errorf("knowledge %s: %w", id, ipcserver.ErrNotFound)
	}
	return b.Knowing[i], b.Broken
}

// ChangeKnowledge keeps the contract's order of things: all or none, and none of
// what changed since it was seen.
func (b *Backend) ChangeKnowledge(_ context.Context, e ipc.KnowledgeEdit, by lemma.Answerer) (ipc.KnowledgeChanged, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows, out := slices.Clone(b.Knowing), ipc.KnowledgeChanged{Items: []lemma.Knowledge{}}
	for _, c := range e.Changes {
		k := lemma.Knowledge{ID: c.ID, Scope: c.Scope, Text: c.Text, Topics: append([]string{}, c.Topics...), Sensitivity: c.Sensitivity}
		i := slices.IndexFunc(rows, func(k lemma.Knowledge) bool { return k.ID == c.ID })
		switch {
		case c.ID == "":
			b.kept++
			k.ID, k.CreatedAt = fmt.Sprintf("k_%026d", b.kept), "2026-01-02T03:04:05.000000000Z"
			k.ChangedAt = k.CreatedAt
			rows = append(rows, k)
		case i < 0 || rows[i].ChangedAt != c.Was:
			return ipc.KnowledgeChanged{}, fmt.Errorf("%w: %s was changed since you looked", ipcserver.ErrConflict, c.ID)
		case c.Remove:
			k = rows[i]
			rows = slices.Delete(rows, i, i+1)
		default:
			b.kept++
			k.CreatedAt, k.ChangedAt = rows[i].CreatedAt, fmt.Sprintf("2026-01-02T03:04:05.%09dZ", b.kept)
			rows[i] = k
		}
		out.Items = append(out.Items, k)
	}
	b.Knowing, b.people = rows, append(b.people, by)
	return out, b.Broken
}
