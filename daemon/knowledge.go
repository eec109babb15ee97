package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/recall"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

func (b backend) Knowledge(_ context.Context, q ipc.KnowledgeQuery) (ipc.List[lemma.Knowledge], error) {
	var scopes []string
	if q.Scope != "" {
		scopes = []string{q.Scope}
	}
	page, err := b.d.ledger.Knowledge(scopes...)
	if err != nil {
		return ipc.List[lemma.Knowledge]{}, known(err)
	}
	if q.Text == "" {
		return listOf(page, same[lemma.Knowledge]), nil
	}
	out := ipc.List[lemma.Knowledge]{AsOfSeq: page.AsOf, Items: []lemma.Knowledge{}}
	var found []string
	for _, h := range recall.Rank(page.Items, recall.About{Text: q.Text}) {
		found, out.Items = append(found, h.ID), append(out.Items, h.Knowledge)
	}
	text := strings.ToLower(q.Text)
	for _, k := range page.Items {
		if !slices.Contains(found, k.ID) && strings.Contains(strings.ToLower(k.Text+"\n"+strings.Join(k.Topics, "\n")), text) {
			out.Items = append(out.Items, k)
		}
	}
	return out, nil
}

func (b backend) KnowledgePiece(_ context.Context, id string) (lemma.Knowledge, error) {
	k, err := b.d.ledger.KnowledgeBy(id)
	return k, known(err)
}

// ChangeKnowledge looks and writes under one lock, so that no change is made to
// what its person did not see.
func (b backend) ChangeKnowledge(ctx context.Context, e ipc.KnowledgeEdit, by lemma.Answerer) (ipc.KnowledgeChanged, error) {
	b.d.keeping.Lock()
	defer b.d.keeping.Unlock()
	page, err := b.d.ledger.Knowledge()
	if err != nil {
		return ipc.KnowledgeChanged{}, known(err)
	}
	s := shelf{d: b.d, kept: page.Items}
	out := ipc.KnowledgeChanged{Items: []lemma.Knowledge{}}
	var drafts []ledger.Draft
	for i, c := range e.Changes {
		op, k, err := s.change(c)
		if err != nil {
			if len(e.Changes) > 1 {
				err = fmt.Errorf("change %d: %w", i+1, err)
			}
			return ipc.KnowledgeChanged{}, err
		}
		out.Items = append(out.Items, k)
		if op != "" {
			drafts = append(drafts, ledger.Draft{Body: lemma.KnowledgeChanged{Contract: lemma.Contract, Op: op, Knowledge: k, By: by}})
		}
	}
	if len(drafts) > 0 {
		if _, err := b.d.ledger.Append(ctx, drafts...); err != nil {
			return ipc.KnowledgeChanged{}, fmt.Errorf("record knowledge: %w", err)
		}
	}
	return out, nil
}

// shelf is the knowledge as the changes of one edit leave it.
type shelf struct {
	d    *Daemon
	kept []lemma.Knowledge
}

// change applies one change and returns what to record; no operation when nothing
// would be different.
func (s *shelf) change(c ipc.KnowledgeChange) (lemma.KnowledgeOp, lemma.Knowledge, error) {
	now := s.d.o.Now()
	var old lemma.Knowledge
	at := -1
	if c.ID != "" {
		if at = slices.IndexFunc(s.kept, func(k lemma.Knowledge) bool { return k.ID == c.ID }); at < 0 {
			return "", old, fmt.Errorf("%w: %s is not there any more", ipcserver.ErrConflict, c.ID)
		}
		if old = s.kept[at]; old.ChangedAt != c.Was {
			return "", old, fmt.Errorf("%w: %s was changed since you looked (%s)", ipcserver.ErrConflict, c.ID, old.ChangedAt)
		}
	}
	if c.Remove {
		if at < 0 {
			return "", old, fmt.Errorf("%w: a removal names an id", ipcserver.ErrInvalid)
		}
		s.kept = slices.Delete(s.kept, at, at+1)
		return lemma.KnowledgeRemoved, old, nil
	}
	k, err := s.piece(c, old)
	if err != nil {
		return "", k, err
	}
	k.ID, k.CreatedAt, k.ChangedAt = old.ID, old.CreatedAt, old.ChangedAt
	if at >= 0 && old.Scope == k.Scope && old.Text == k.Text && old.Sensitivity == k.Sensitivity && slices.Equal(old.Topics, k.Topics) {
		return "", old, nil
	}
	if i := slices.IndexFunc(s.kept, func(o lemma.Knowledge) bool { return o.ID != k.ID && o.Scope == k.Scope && o.Text == k.Text }); i >= 0 {
		return "", k, fmt.Errorf("%w: %s says so already", ipcserver.ErrConflict, s.kept[i].ID)
	}
	if at >= 0 {
		// Two versions never share their time, or a reader of the first could change the second.
		k.ChangedAt = lemma.Time(later(now, old.ChangedAt))
		s.kept[at] = k
		return lemma.KnowledgeEdited, k, nil
	}
	if len(s.kept) >= ledger.KnowledgeMax {
		return "", k, fmt.Errorf("%w: %d pieces are kept, which is all; remove some first", ipcserver.ErrInvalid, len(s.kept))
	}
	if k.ID, err = lemma.NewID(lemma.IDKnowledge, now, s.d.o.Entropy); err != nil {
		return "", k, err
	}
	k.CreatedAt = lemma.Time(now)
	k.ChangedAt = k.CreatedAt
	s.kept = append(s.kept, k)
	return lemma.KnowledgeAdded, k, nil
}

// piece is the change as a piece of knowledge: in bounds, without secrets, of a
// scope that exists.
func (s *shelf) piece(c ipc.KnowledgeChange, old lemma.Knowledge) (lemma.Knowledge, error) {
	k := lemma.Knowledge{Scope: c.Scope, Text: strings.TrimSpace(c.Text), Topics: []string{}, Sensitivity: c.Sensitivity}
	if k.Sensitivity == "" {
		k.Sensitivity = "internal"
	}
	for _, t := range c.Topics {
		k.Topics = append(k.Topics, strings.TrimSpace(t))
	}
	if err := k.Check(); err != nil {
		return k, invalidKnowledge(err)
	}
	k.Text, _ = s.d.redact.String(k.Text)
	for i, t := range k.Topics {
		k.Topics[i], _ = s.d.redact.String(t)
	}
	if err := k.Check(); err != nil {
		return k, invalidKnowledge(fmt.Errorf("with its secrets taken out: %w", err))
	}
	if name, project := strings.CutPrefix(k.Scope, "project:"); project && k.Scope != old.Scope {
		if _, err := s.d.root(name); err != nil {
			return k, err
		}
	}
	return k, nil
}

// invalidKnowledge is the bound that a piece breaks, as the socket's error.
func invalidKnowledge(err error) error {
	if errors.Is(err, lemma.ErrKnowledge) {
		return fmt.Errorf("%w: %s", ipcserver.ErrInvalid, strings.Replace(err.Error(), lemma.ErrKnowledge.Error()+": ", "", 1))
	}
	return err
}

// later is now, or the moment after a time that is not before it.
func later(now time.Time, than string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, than); err == nil && !now.After(t) {
		return t.Add(1)
	}
	return now
}
