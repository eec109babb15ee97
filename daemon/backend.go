package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
)

// backend is the daemon as the socket sees it.
type backend struct{ d *Daemon }

var _ ipcserver.Backend = backend{}

// known turns the ledger's errors into the socket's.
func known(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("%w: %w", ipcserver.ErrNotFound, err)
	}
	return err
}

func entryOf(e chain.Entry) ipc.Entry {
	return ipc.Entry{V: e.V, Seq: e.Seq, TS: e.TS, Kind: e.Kind, Tenant: e.Tenant, Turn: e.Turn, Prev: e.Prev, Body: e.Body}
}

func entriesOf(in []chain.Entry) []ipc.Entry {
	out := make([]ipc.Entry, len(in))
	for i, e := range in {
		out[i] = entryOf(e)
	}
	return out
}

func listOf[A, B any](p ledger.Page[A], f func(A) B) ipc.List[B] {
	out := ipc.List[B]{AsOfSeq: p.AsOf, Items: make([]B, len(p.Items)), NextCursor: p.Next}
	for i, v := range p.Items {
		out.Items[i] = f(v)
	}
	return out
}

func same[T any](v T) T { return v }

func (b backend) Status(context.Context) (ipc.Status, error) {
	d := b.d
	f := d.conf.cur.Load()
	h := d.ledger.Head()
	s := ipc.Status{
		Version: Version, PID: os.Getpid(), StartedAt: lemma.Time(d.started), UptimeSeconds: int64(d.o.Now().Sub(d.started) / time.Second),
		Proxy: d.proxyLn.Addr().String(), Socket: d.o.Layout.Socket, StateDir: d.o.Layout.State, Mode: f.c.Gate.Mode,
		Chain:         ipc.Head{Size: h.Size, Root: fmt.Sprintf("%x", h.Root), Origin: h.Origin},
		PolicyVersion: d.proxy.Policy, Projects: len(f.c.Projects), Config: d.conf.status(),
		Counters: map[string]int64{
			"requests": d.proxy.Requests.Load(), "gated": d.proxy.Gated.Load(), "ungated": d.proxy.Ungated.Load(),
			"refused": d.proxy.Refused.Load(), "in_flight": d.proxy.Active.Load(), "tunnels": int64(d.proxy.Tunnels()),
		},
		Upstreams: []ipc.Upstream{}, Warnings: d.warningLines(),
	}
	s.Ledger.File = d.conf.layout().Ledger
	if t, bad := d.ledger.Trouble(); bad {
		s.Ledger.Error, s.Ledger.Since, s.Ledger.Lost = t.Reason(), lemma.Time(t.Since), t.Lost
		s.Warnings = append([]string{d.troubleLine(t)}, s.Warnings...) // before all else: nothing else counts
	} else if room, err := d.ledger.Room(); err == nil && room < littleRoom {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the ledger's disk has room for %d MB more; when it is full, what changes anything is refused", room/1e6))
	}
	maps.Copy(s.Counters, d.engine.Counters())
	for _, name := range slices.Sorted(maps.Keys(f.proxy.Upstreams)) {
		u := f.proxy.Upstreams[name]
		def := slices.Contains(slices.Collect(maps.Values(f.proxy.Default)), name)
		s.Upstreams = append(s.Upstreams, ipc.Upstream{Name: name, Format: u.Format, BaseURL: u.Base.Redacted(), Default: def})
	}
	for cursor := ""; ; {
		page, err := d.ledger.Holds(lemma.HoldOpen, ledger.MaxLimit, cursor)
		if err != nil {
			return s, fmt.Errorf("count holds: %w", err)
		}
		s.OpenHolds += len(page.Items)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	s.Registry = d.registryStatus()
	s.Outside = d.outside.status()
	return s, nil
}

// littleRoom is when the status speaks of the disk: some days of work.
const littleRoom = 64 << 20

// troubleLine tells a person what a ledger that cannot write means.
func (d *Daemon) troubleLine(t ledger.Trouble) string {
	s := "the ledger cannot write: " + t.Reason() + ". What changes anything is refused"
	if d.conf.live().Ledger.FailOpenExplore {
		s += "; questions and edits are served unrecorded"
	}
	if t.Halted {
		return s + ", until gettierd is started again"
	}
	return s + ", until it can"
}

func (d *Daemon) warningLines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.warnings...)
}

func (b backend) Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error] {
	return func(yield func(ipc.Entry, error) bool) {
		for e, err := range b.d.ledger.Watch(ctx, since) {
			if !yield(entryOf(e), err) {
				return
			}
		}
	}
}

func (b backend) Head(context.Context) (uint64, error) {
	return max(b.d.ledger.Head().Size, 1) - 1, nil
}

func (b backend) Entries(_ context.Context, from uint64, limit int) (ipc.List[ipc.Entry], error) {
	size := b.d.ledger.Head().Size
	es, err := b.d.ledger.Entries(from, limit)
	if err != nil {
		return ipc.List[ipc.Entry]{}, known(err)
	}
	out := ipc.List[ipc.Entry]{AsOfSeq: max(size, 1) - 1, Items: entriesOf(es)}
	if n := len(es); n > 0 && es[n-1].Seq+1 < size {
		out.NextCursor = fmt.Sprint(es[n-1].Seq)
	}
	return out, nil
}

func (b backend) Checkpoint(context.Context) ([]byte, error) { return b.d.ledger.Checkpoint(), nil }

func (b backend) Verify(ctx context.Context, progress func(done, total uint64)) (ipc.Verification, error) {
	began := b.d.o.Now()
	r, err := b.d.ledger.Verify(ctx, progress)
	if err != nil {
		return ipc.Verification{}, err
	}
	v := ipc.Verification{
		OK: r.OK(), Entries: r.Size, Root: r.Root, Origin: r.Origin, Checkpoints: int(r.Checkpoints), Blobs: int(r.Blobs),
		DurationMS: b.d.o.Now().Sub(began).Milliseconds(),
	}
	if p, bad := r.First(); bad {
		v.BadSeq, v.What = p.Seq, p.What
	}
	return v, nil
}

func (b backend) Blob(_ context.Context, sum string) ([]byte, error) {
	out, err := b.d.ledger.Blob(sum)
	return out, known(err)
}

func (b backend) Facts(_ context.Context, q ipc.FactQuery) (ipc.List[lemma.Fact], error) {
	f := ledger.FactFilter{Status: lemma.FactStatus(q.Status), Provenance: lemma.Provenance(q.Provenance), Text: q.Text, At: b.d.o.Now(), Limit: q.Limit, Cursor: q.Cursor}
	if q.Scope != "" {
		f.Scope = []string{q.Scope}
	}
	page, err := b.d.ledger.Facts(f)
	return listOf(page, same[lemma.Fact]), known(err)
}

func (b backend) Fact(_ context.Context, id string) (lemma.Fact, error) {
	f, err := b.d.ledger.Fact(id)
	return f, known(err)
}

func (b backend) Holds(_ context.Context, q ipc.HoldQuery) (ipc.List[lemma.Hold], error) {
	page, err := b.d.ledger.Holds(lemma.HoldState(q.State), q.Limit, q.Cursor)
	return listOf(page, same[lemma.Hold]), known(err)
}

func (b backend) Hold(_ context.Context, id string) (lemma.Hold, error) {
	h, err := b.d.ledger.Hold(id)
	return h, known(err)
}

func (b backend) AnswerHold(ctx context.Context, id string, a ipc.HoldAnswer, by lemma.Answerer) (lemma.Hold, error) {
	h, err := b.d.holds.Find(id)
	if err != nil {
		return h, answerError(err)
	}
	items := make([]hold.ItemAnswer, len(a.Items))
	for i, it := range a.Items {
		items[i] = hold.ItemAnswer{Item: it.Item, Answer: it.Answer, Text: it.Text, Scope: it.Scope}
	}
	h, err = b.d.holds.Answer(ctx, h.ID, items, by)
	return h, answerError(err)
}

func (b backend) RevokeAnswer(ctx context.Context, id string, r ipc.Revocation, by lemma.Answerer) ([]lemma.Hold, error) {
	h, err := b.d.holds.Find(id)
	if err != nil {
		return nil, answerError(err)
	}
	holds, err := b.d.holds.Revoke(ctx, h.ID, r.Items, by)
	if err != nil {
		return nil, answerError(err)
	}
	b.d.engine.Revoked()
	return holds, nil
}

// answerError turns the book's faults into the socket's.
func answerError(err error) error {
	var closed *hold.Closed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &closed):
		return fmt.Errorf("%w: %w", ipcserver.ErrConflict, err)
	case errors.Is(err, hold.ErrNotFound):
		return fmt.Errorf("%w: %w", ipcserver.ErrNotFound, err)
	case errors.Is(err, hold.ErrIncomplete), errors.Is(err, hold.ErrNoAnswer):
		return fmt.Errorf("%w: %w", ipcserver.ErrInvalid, err)
	}
	return err
}

func (b backend) Tell(ctx context.Context, t ipc.Tell, by lemma.Answerer) (lemma.Fact, error) {
	if name, project := strings.CutPrefix(t.Scope, "project:"); project {
		if _, err := b.d.root(name); err != nil {
			return lemma.Fact{}, err
		}
	} else if t.Scope != "host" {
		return lemma.Fact{}, fmt.Errorf("%w: the scope %q is neither host nor project:NAME", ipcserver.ErrInvalid, t.Scope)
	}
	f, err := b.d.holds.Tell(ctx, t.Scope, t.Claim, by)
	return f, answerError(err)
}

func (b backend) InvalidateFact(ctx context.Context, id, reason string, by lemma.Answerer) (lemma.Fact, error) {
	f, err := b.d.ledger.Fact(id)
	if err != nil {
		return f, known(err)
	}
	if f.Status != lemma.StatusActive {
		return f, fmt.Errorf("%w: fact %s is %s", ipcserver.ErrConflict, id, f.Status)
	}
	reason, _ = b.d.redact.String(clean(reason))
	_, err = b.d.ledger.Append(ctx, ledger.Draft{Body: lemma.FactInvalidated{Contract: lemma.Contract, Fact: id, Reason: reason, By: hold.Who(by)}})
	if err != nil {
		return f, err
	}
	f, err = b.d.ledger.Fact(id)
	return f, known(err)
}

func turnOf(r ledger.TurnRow) ipc.Turn {
	t := ipc.Turn{
		ID: r.ID, Conversation: r.Conversation, Key: r.Key, Scope: r.Scope, Class: r.Class, RequestKind: r.RequestKind, Format: r.Format,
		Upstream: r.Upstream, Model: r.Model, Agent: r.Agent, Prompt: r.Prompt, OpenedAt: r.OpenedAt, ClosedAt: r.ClosedAt,
		Stage: string(r.Stage), Decision: r.Decision, Counts: r.Counts, UsageClient: r.UsageClient, UsageOurs: r.UsageOurs, Error: r.Error,
	}
	if r.Rung >= 0 {
		t.Rung = &r.Rung
	}
	return t
}

func (b backend) Turns(_ context.Context, q ipc.TurnQuery) (ipc.List[ipc.Turn], error) {
	page, err := b.d.ledger.Turns(q.Limit, q.Cursor, ledger.TurnFilter{Conversation: q.Conversation, Scope: q.Scope, Decision: lemma.Decision(q.Decision), Agent: q.Agent})
	return listOf(page, turnOf), known(err)
}

func (b backend) Turn(_ context.Context, id string) (ipc.TurnDetail, error) {
	row, err := b.d.ledger.Turn(id)
	if err != nil {
		return ipc.TurnDetail{}, known(err)
	}
	es, err := b.d.ledger.TurnEntries(id)
	if err != nil {
		return ipc.TurnDetail{}, known(err)
	}
	out := ipc.TurnDetail{Turn: turnOf(row), Entries: entriesOf(es), Blocks: []ipc.Block{}}
	if row.Conversation == "" {
		return out, nil
	}
	blocks, err := b.d.ledger.Blocks(row.Conversation)
	if err != nil {
		return out, known(err)
	}
	for _, bl := range blocks {
		if bl.Turn == id {
			out.Blocks = append(out.Blocks, ipc.Block{Seq: bl.Seq, Why: bl.Why, Text: bl.Text})
		}
	}
	return out, nil
}

func (b backend) ForgetTurn(ctx context.Context, id string, by lemma.Answerer) (ipc.Forgotten, error) {
	blobs, bytes, err := b.d.ledger.ForgetRequest(ctx, id, by)
	if errors.Is(err, ledger.ErrNotKept) {
		err = fmt.Errorf("%w: %w", ipcserver.ErrConflict, err)
	}
	return ipc.Forgotten{Turn: id, Blobs: blobs, Bytes: bytes}, known(err)
}

func (b backend) Projects(context.Context) (ipc.List[ipc.Project], error) {
	c := b.d.conf.live()
	out := ipc.List[ipc.Project]{Items: []ipc.Project{}}
	out.AsOfSeq, _ = b.Head(context.Background()) // it has no error
	for _, p := range c.Projects {
		out.Items = append(out.Items, ipc.Project{Name: p.Name, Root: p.Root})
	}
	return out, nil
}

func (b backend) AddProject(_ context.Context, p ipc.Project, by lemma.Answerer) (ipc.Project, error) {
	if !filepath.IsAbs(p.Root) {
		return p, fmt.Errorf("%w: the root %q is not an absolute path", ipcserver.ErrInvalid, p.Root)
	}
	root, err := filepath.EvalSymlinks(p.Root)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ipcserver.ErrInvalid, err)
	}
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return p, fmt.Errorf("%w: %s is not a directory", ipcserver.ErrInvalid, root)
	}
	if root == "/" || root == filepath.Dir(b.d.o.Layout.State) {
		return p, fmt.Errorf("%w: %s is no project: everything would be in it", ipcserver.ErrInvalid, root)
	}
	if p.Name == "" {
		p.Name = filepath.Base(root)
	}
	p.Root = root
	err = b.d.conf.projects(by, func(old []config.Project) ([]config.Project, error) {
		for _, o := range old {
			if o.Name == p.Name && o.Root == root {
				return nil, errSame
			}
			if o.Name == p.Name {
				return nil, fmt.Errorf("%w: the name %s stands for %s already; give another with --name", ipcserver.ErrConflict, p.Name, o.Root)
			}
			if o.Root == root {
				return nil, fmt.Errorf("%w: %s is registered as %s", ipcserver.ErrConflict, root, o.Name)
			}
		}
		return append(slices.Clone(old), config.Project{Name: p.Name, Root: root}), nil
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return p, err
}

// errSame: there is nothing to change.
var errSame = errors.New("nothing to change")

func (b backend) RemoveProject(_ context.Context, name string, by lemma.Answerer) error {
	return b.d.conf.projects(by, func(old []config.Project) ([]config.Project, error) {
		left := slices.DeleteFunc(slices.Clone(old), func(o config.Project) bool { return o.Name == name })
		if len(left) == len(old) {
			return nil, fmt.Errorf("%w: no project is named %q", ipcserver.ErrNotFound, name)
		}
		return left, nil
	})
}

func (s *settings) status() ipc.ConfigStatus {
	f := s.cur.Load()
	out := ipc.ConfigStatus{File: s.d.o.Layout.Config, Hash: f.hash, Pending: append([]string{}, f.res.Pending...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		out.Error = s.err.Error()
	}
	return out
}

func (b backend) Config(context.Context) (ipc.Config, error) {
	s := b.d.conf
	f := s.cur.Load()
	out := ipc.Config{ConfigStatus: s.status(), Keys: []ipc.ConfigKey{}}
	if len(f.res.Pending) > 0 {
		out.PendingHash = f.hash
	}
	s.mu.Lock()
	wanted := map[string]string{}
	for _, k := range s.loaded.Settings() {
		wanted[k.Key] = k.Value
	}
	s.mu.Unlock()
	for _, k := range f.c.Settings() {
		key := ipc.ConfigKey{Key: k.Key, Value: k.Value, Source: k.Origin.Kind, Applies: "restart", Help: k.Doc}
		if k.Live {
			key.Applies = "live"
		}
		if w := wanted[k.Key]; w != k.Value && waits(f.res.Pending, k.Key) {
			key.Pending = w
		}
		out.Keys = append(out.Keys, key)
	}
	return out, nil
}

// waits reports whether key is among the pending ones; upstreams wait as a whole.
func waits(pending []string, key string) bool {
	return slices.ContainsFunc(pending, func(p string) bool { return p == key || strings.HasPrefix(key, p+".") })
}

func (b backend) ApproveConfig(ctx context.Context, a ipc.ConfigApproval, by lemma.Answerer) (ipc.Config, error) {
	if err := b.d.conf.approve(a.Hash, by); errors.Is(err, errChanged) {
		return ipc.Config{}, fmt.Errorf("%w: %w; look again with gettier config show", ipcserver.ErrConflict, err)
	} else if err != nil {
		return ipc.Config{}, err
	}
	return b.Config(ctx)
}

// Warmup loads the model that measures meaning.
func (b backend) Warmup(ctx context.Context) (ipc.Warmup, error) {
	model, n, err := b.d.warmup(ctx)
	if errors.Is(err, errNothingToWarm) {
		return ipc.Warmup{}, fmt.Errorf("%w: %w", ipcserver.ErrConflict, err)
	}
	return ipc.Warmup{Model: model, Principles: n}, err
}

// Decide asks the action gate about an action that stands in no answer.
func (b backend) Decide(ctx context.Context, a ipc.Action) (json.RawMessage, error) {
	d := b.d.engine.Rule(ctx, action.Action{Actor: a.Actor, Cwd: a.Cwd, Command: a.Command, Argv: a.Argv, Tool: a.Tool, Args: a.Args, Raw: a.Raw, Mode: a.Mode})
	return json.Marshal(d)
}
