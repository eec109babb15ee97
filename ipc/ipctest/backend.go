// Package ipctest is a Backend in memory for tests of the socket and of what
// talks to it. It keeps the contract of ipcserver.Backend, with a chain that
// only links (no tree, no signature). Nothing but tests may import it.
package ipctest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
)

// Backend holds what a test puts into its fields before the server starts;
// afterwards only through its methods.
type Backend struct {
	St        ipc.Status
	FactRows  []lemma.Fact
	HoldRows  []lemma.Hold
	Knowing   []lemma.Knowledge // in order of age
	TurnRows  []ipc.Turn
	BlockRows map[string][]ipc.Block // by turn
	SensorSet []ipc.Sensor
	PackSet   []ipc.Pack
	Diffs     map[string]ipc.SensorDiff // by qualified id
	Tries     map[string]ipc.SensorTried
	Roots     []ipc.Project
	Cfg       ipc.Config
	Blobs     map[string][]byte
	Ruling    json.RawMessage // of every action
	Broken    error           // what every call then returns

	mu      sync.Mutex
	entries []ipc.Entry
	forgot  []string // turns
	grew    chan struct{}
	kept    int              // changes of knowledge
	people  []lemma.Answerer // who made a person's call, in order

	keys   []ipc.APIKey
	sealed []ipc.SealedKey
}

var _ ipcserver.Backend = (*Backend)(nil)

// New is an empty backend whose chain has its first entry.
func New() *Backend {
	b := &Backend{grew: make(chan struct{}), BlockRows: map[string][]ipc.Block{}, Diffs: map[string]ipc.SensorDiff{},
		Tries: map[string]ipc.SensorTried{}, Blobs: map[string][]byte{}}
	b.Append("", lemma.ChainOpened{Contract: lemma.Contract, Origin: "gettier.dev/log/0011223344556677", Version: "test", Format: 1})
	return b
}

// Append adds an entry and returns its sequence number.
func (b *Backend) Append(turn string, body lemma.Body) uint64 {
	raw, err := ipc.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("ipctest: marshal %s: %v", body.Kind(), err)) // a test's own value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	seq := uint64(len(b.entries))
	prev := strings.Repeat("0", 64)
	if seq > 0 {
		last, err := ipc.Marshal(b.entries[seq-1])
		if err != nil {
			panic(fmt.Sprintf("ipctest: marshal entry: %v", err))
		}
		sum := sha256.Sum256(append([]byte{0}, last...))
		prev = hex.EncodeToString(sum[:])
	}
	b.entries = append(b.entries, ipc.Entry{V: 1, Seq: seq, TS: fmt.Sprintf("2026-01-02T03:04:%02d.%09dZ", seq/1000%60, seq%1000*1_000_000),
		Kind: string(body.Kind()), Tenant: "local", Turn: turn, Prev: prev, Body: raw})
	close(b.grew)
	b.grew = make(chan struct{})
	return seq
}

// People is who made a person's call so far.
func (b *Backend) People() []lemma.Answerer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.people)
}

func (b *Backend) Status(context.Context) (ipc.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.St
	st.Chain.Size = uint64(len(b.entries))
	return st, b.Broken
}

// Warmup pretends.
func (b *Backend) Warmup(context.Context) (ipc.Warmup, error) {
	return ipc.Warmup{Model: "scripted", Principles: 4}, b.Broken
}

// Decide implements ipcserver.Backend.
func (b *Backend) Decide(context.Context, ipc.Action) (json.RawMessage, error) {
	return b.Ruling, b.Broken
}

func (b *Backend) Head(context.Context) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(len(b.entries)) - 1, b.Broken
}

func (b *Backend) head() uint64 { return uint64(len(b.entries)) - 1 }

func (b *Backend) Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error] {
	return func(yield func(ipc.Entry, error) bool) {
		b.mu.Lock()
		at := uint64(len(b.entries))
		if since != nil {
			at = *since + 1
		}
		b.mu.Unlock()
		for {
			b.mu.Lock()
			var batch []ipc.Entry
			if at < uint64(len(b.entries)) {
				batch = slices.Clone(b.entries[at:])
			}
			grew := b.grew
			b.mu.Unlock()
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
			}
			at += uint64(len(batch))
			if len(batch) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-grew:
			}
		}
	}
}

func (b *Backend) Entries(_ context.Context, from uint64, limit int) (ipc.List[ipc.Entry], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := ipc.List[ipc.Entry]{AsOfSeq: b.head()}
	if from < uint64(len(b.entries)) {
		l.Items = slices.Clone(b.entries[from:min(uint64(len(b.entries)), from+uint64(limit))])
	}
	return l, b.Broken
}

func (b *Backend) Checkpoint(context.Context) ([]byte, error) {
	return []byte("gettier.dev/log/0011223344556677\n1\nAAAA\n\n"), b.Broken
}

func (b *Backend) Verify(ctx context.Context, progress func(done, total uint64)) (ipc.Verification, error) {
	b.mu.Lock()
	n := uint64(len(b.entries))
	b.mu.Unlock()
	progress(n, n)
	return ipc.Verification{OK: true, Entries: n, Root: strings.Repeat("ab", 32), Origin: "gettier.dev/log/0011223344556677", Checkpoints: 1, DurationMS: 1}, b.Broken
}

func (b *Backend) Blob(_ context.Context, sum string) ([]byte, error) {
	v, ok := b.Blobs[sum]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", sum, ipcserver.ErrNotFound)
	}
	return v, nil
}

// cut pages rows by a cursor that is the next index.
func cut[T any](asOf uint64, rows []T, p ipc.Page, keep func(T) bool) ipc.List[T] {
	at := 0
	if p.Cursor != "" {
		if _, err := fmt.Sscanf(p.Cursor, "%d", &at); err != nil || at < 0 {
			at = 0
		}
	}
	l := ipc.List[T]{AsOfSeq: asOf}
	for i := at; i < len(rows); i++ {
		if !keep(rows[i]) {
			continue
		}
		if len(l.Items) == p.Limit {
			l.NextCursor = fmt.Sprint(i)
			break
		}
		l.Items = append(l.Items, rows[i])
	}
	return l
}

func is(want, got string) bool { return want == "" || want == got }

func (b *Backend) Facts(_ context.Context, q ipc.FactQuery) (ipc.List[lemma.Fact], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cut(b.head(), b.FactRows, q.Page, func(f lemma.Fact) bool {
		return is(q.Scope, f.Scope) && is(q.Status, string(f.Status)) && is(q.Provenance, string(f.Provenance)) &&
			strings.Contains(f.Claim+f.Subject+f.Key+f.Value, q.Text)
	}), b.Broken
}

func find[T any](rows []T, what, id string, of func(T) string) (T, error) {
	for _, r := range rows {
		if of(r) == id {
			return r, nil
		}
	}
	var zero T
	return zero, fmt.Errorf("%s %s: %w", what, id, ipcserver.ErrNotFound)
}

func (b *Backend) Fact(_ context.Context, id string) (lemma.Fact, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return find(b.FactRows, "fact", id, func(f lemma.Fact) string { return f.ID })
}

func (b *Backend) Holds(_ context.Context, q ipc.HoldQuery) (ipc.List[lemma.Hold], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cut(b.head(), b.HoldRows, q.Page, func(h lemma.Hold) bool { return is(q.State, string(h.State)) }), b.Broken
}

func (b *Backend) Hold(_ context.Context, id string) (lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return find(b.HoldRows, "hold", id, func(h lemma.Hold) string { return h.ID })
}

func (b *Backend) Turns(_ context.Context, q ipc.TurnQuery) (ipc.List[ipc.Turn], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cut(b.head(), b.TurnRows, q.Page, func(t ipc.Turn) bool {
		return is(q.Scope, t.Scope) && is(q.Conversation, t.Conversation) && is(q.Decision, string(t.Decision)) && is(q.Agent, t.Agent)
	}), b.Broken
}

func (b *Backend) Turn(_ context.Context, id string) (ipc.TurnDetail, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := find(b.TurnRows, "turn", id, func(t ipc.Turn) string { return t.ID })
	if err != nil {
		return ipc.TurnDetail{}, err
	}
	d := ipc.TurnDetail{Turn: t, Blocks: b.BlockRows[id]}
	for _, e := range b.entries {
		if e.Turn == id {
			d.Entries = append(d.Entries, e)
		}
	}
	return d, nil
}

// ForgetTurn pretends that each turn had a request, which goes once.
func (b *Backend) ForgetTurn(_ context.Context, id string, by lemma.Answerer) (ipc.Forgotten, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := find(b.TurnRows, "turn", id, func(t ipc.Turn) string { return t.ID }); err != nil {
		return ipc.Forgotten{}, err
	}
	if slices.Contains(b.forgot, id) {
		return ipc.Forgotten{}, fmt.Errorf("%w: turn %s was forgotten already", ipcserver.ErrConflict, id)
	}
	b.forgot, b.people = append(b.forgot, id), append(b.people, by)
	return ipc.Forgotten{Turn: id, Blobs: 1, Bytes: 1234}, b.Broken
}

func (b *Backend) Sensors(_ context.Context, q ipc.SensorQuery) (ipc.List[ipc.Sensor], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cut(b.head(), b.SensorSet, q.Page, func(s ipc.Sensor) bool {
		return is(q.State, s.State) && (q.Project == "" || !strings.HasPrefix(s.Level, "project/") || s.Level == "project/"+q.Project)
	}), b.Broken
}

func (b *Backend) SensorDiff(_ context.Context, id, _ string) (ipc.SensorDiff, error) {
	for q, d := range b.Diffs {
		if q == id || d.ID == id {
			return d, nil
		}
	}
	return ipc.SensorDiff{}, fmt.Errorf("sensor %s: %w", id, ipcserver.ErrNotFound)
}

func (b *Backend) Packs(context.Context) (ipc.List[ipc.Pack], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ipc.List[ipc.Pack]{AsOfSeq: b.head(), Items: append([]ipc.Pack{}, b.PackSet...)}, b.Broken
}

func (b *Backend) TrySensor(_ context.Context, id string, t ipc.SensorTry, by *lemma.Answerer) (ipc.SensorTried, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by != nil {
		b.people = append(b.people, *by)
	}
	v, ok := b.Tries[id]
	if !ok {
		return v, fmt.Errorf("sensor %s: %w", id, ipcserver.ErrNotFound)
	}
	if v.Sensor.State == ipc.SensorPending && by == nil {
		return v, fmt.Errorf("sensor %s is not approved: %w", id, ipcserver.ErrRefused)
	}
	if t.Claim == "" {
		v.Judged, v.Matches = nil, ""
	}
	return v, b.Broken
}

func (b *Backend) ApproveSensors(_ context.Context, a ipc.SensorApproval, by lemma.Answerer) (ipc.SensorsApproved, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := ipc.SensorsApproved{Version: "feed"}
	for _, p := range a.Sensors {
		if name, ok := strings.CutPrefix(p.Qualified, "pack/"); ok && !strings.Contains(name, ".") { // a pack of the program
			out.Approved = append(out.Approved, p.Qualified)
			continue
		}
		i := slices.IndexFunc(b.SensorSet, func(s ipc.Sensor) bool { return s.Qualified == p.Qualified })
		if i < 0 {
			return out, fmt.Errorf("sensor %s: %w", p.Qualified, ipcserver.ErrNotFound)
		}
		if b.SensorSet[i].Hash != p.Hash {
			return out, fmt.Errorf("sensor %s changed since it was shown: %w", p.Qualified, ipcserver.ErrConflict)
		}
		out.Approved = append(out.Approved, p.Qualified)
	}
	for _, p := range a.Sensors {
		if i := slices.IndexFunc(b.SensorSet, func(s ipc.Sensor) bool { return s.Qualified == p.Qualified }); i >= 0 {
			b.SensorSet[i].State = ipc.SensorApproved
		}
	}
	b.people = append(b.people, by)
	return out, nil
}

func (b *Backend) Projects(context.Context) (ipc.List[ipc.Project], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ipc.List[ipc.Project]{AsOfSeq: b.head(), Items: slices.Clone(b.Roots)}, b.Broken
}

func (b *Backend) AddProject(_ context.Context, p ipc.Project, by lemma.Answerer) (ipc.Project, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Name == "" {
		p.Name = p.Root[strings.LastIndexByte(p.Root, '/')+1:]
	}
	for _, o := range b.Roots {
		if o.Name == p.Name && o.Root != p.Root {
			return p, fmt.Errorf("project %s is %s: %w", p.Name, o.Root, ipcserver.ErrConflict)
		}
	}
	b.people = append(b.people, by)
	b.Roots = append(b.Roots, p)
	return p, nil
}

func (b *Backend) RemoveProject(_ context.Context, name string, by lemma.Answerer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.Roots, func(p ipc.Project) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("project %s: %w", name, ipcserver.ErrNotFound)
	}
	b.people = append(b.people, by)
	b.Roots = slices.Delete(b.Roots, i, i+1)
	return nil
}

func (b *Backend) Config(context.Context) (ipc.Config, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Cfg, b.Broken
}

func (b *Backend) ApproveConfig(_ context.Context, a ipc.ConfigApproval, by lemma.Answerer) (ipc.Config, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Hash != b.Cfg.PendingHash {
		return b.Cfg, fmt.Errorf("the configuration changed since it was shown: %w", ipcserver.ErrConflict)
	}
	b.people = append(b.people, by)
	b.Cfg.PendingHash, b.Cfg.Pending = "", []string{}
	return b.Cfg, nil
}

func (b *Backend) AnswerHold(_ context.Context, id string, a ipc.HoldAnswer, by lemma.Answerer) (lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.HoldRows, func(h lemma.Hold) bool { return strings.HasSuffix(h.ID, id) })
	if i < 0 {
		return lemma.Hold{}, fmt.Errorf("hold %s: %w", id, ipcserver.ErrNotFound)
	}
	h := &b.HoldRows[i]
	if h.State != lemma.HoldOpen {
		return *h, fmt.Errorf("hold %s was answered: %w", id, ipcserver.ErrConflict)
	}
	if len(a.Items) != len(h.Items) {
		return *h, fmt.Errorf("hold %s has %d items: %w", id, len(h.Items), ipcserver.ErrInvalid)
	}
	h.Items = slices.Clone(h.Items)
	for _, it := range a.Items {
		j := slices.IndexFunc(h.Items, func(x lemma.HoldItem) bool { return x.ID == it.Item })
		if j < 0 {
			return *h, fmt.Errorf("hold %s has no item %s: %w", id, it.Item, ipcserver.ErrInvalid)
		}
		h.Items[j].Answer = &lemma.Answer{Hold: h.ID, Item: it.Item, ClaimID: h.Items[j].ClaimID, Answer: it.Answer, Text: it.Text, Scope: it.Scope, By: by}
	}
	h.State = lemma.HoldAnswered
	b.people = append(b.people, by)
	return *h, b.Broken
}

func (b *Backend) RevokeAnswer(_ context.Context, id string, r ipc.Revocation, by lemma.Answerer) ([]lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.HoldRows, func(h lemma.Hold) bool { return strings.HasSuffix(h.ID, id) })
	if i < 0 {
		return nil, fmt.Errorf("hold %s: %w", id, ipcserver.ErrNotFound)
	}
	h := &b.HoldRows[i]
	h.Items = slices.Clone(h.Items)
	n := 0
	for j, it := range h.Items {
		if it.Answer != nil && it.Answer.RevokedAt == "" && (len(r.Items) == 0 || slices.Contains(r.Items, it.ID)) {
			a := *it.Answer
			a.RevokedAt = "2026-01-02T03:04:09.000000000Z"
			h.Items[j].Answer = &a
			n++
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("hold %s has no answer that could be taken back: %w", id, ipcserver.ErrInvalid)
	}
	b.people = append(b.people, by)
	return []lemma.Hold{*h}, b.Broken
}

func (b *Backend) Tell(_ context.Context, t ipc.Tell, by lemma.Answerer) (lemma.Fact, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := lemma.Fact{ID: fmt.Sprintf("f_%d", len(b.FactRows)), Scope: t.Scope, Claim: t.Claim, Subject: "person", Provenance: lemma.Told, Status: lemma.StatusActive}
	b.FactRows, b.people = append(b.FactRows, f), append(b.people, by)
	return f, b.Broken
}

func (b *Backend) InvalidateFact(_ context.Context, id, _ string, by lemma.Answerer) (lemma.Fact, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.FactRows, func(f lemma.Fact) bool { return f.ID == id })
	if i < 0 {
		return lemma.Fact{}, fmt.Errorf("fact %s: %w", id, ipcserver.ErrNotFound)
	}
	b.FactRows[i].Status = lemma.StatusInvalidated
	b.people = append(b.people, by)
	return b.FactRows[i], b.Broken
}
