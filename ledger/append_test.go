package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"github.com/google/go-cmp/cmp"
)

type strange struct{}

func (strange) Kind() lemma.Kind { return "turn.invented" }

func TestAppendRefuses(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	head := l.Head()
	for _, c := range []struct {
		name   string
		drafts []ledger.Draft
		want   error
		says   string
	}{
		{"nothing", nil, ledger.ErrDraft, ""},
		{"no body", []ledger.Draft{{}}, ledger.ErrDraft, ""},
		{"too many", make([]ledger.Draft, 257), ledger.ErrDraft, ""},
		{"unknown kind", []ledger.Draft{{Body: strange{}}}, ledger.ErrDraft, "turn.invented"},
		{"too large", []ledger.Draft{note("fits"), note(strings.Repeat("x", chain.MaxEntry))}, ledger.ErrTooLarge, "state.lost"},
		{"bad turn id", []ledger.Draft{{Turn: "t \"x", Body: lemma.TurnClosed{}}}, ledger.ErrDraft, "turn.closed"},
		{"bad fact id", []ledger.Draft{{Body: lemma.FactWritten{}}}, ledger.ErrDraft, "fact.written"},
		{"number that rounds", []ledger.Draft{{Body: lemma.TurnClosed{UsageOurs: lemma.Usage{Input: 1<<53 + 1}}}}, chain.ErrFormat, "turn.closed"},
		{"blob that is nowhere", []ledger.Draft{{Body: lemma.TurnGrounded{BlockBlob: sum("x")}}}, ledger.ErrDraft, "turn.grounded"},
	} {
		_, err := l.Append(context.Background(), c.drafts...)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := <-l.Go(c.drafts...); !errors.Is(err, c.want) {
			t.Errorf("%s, not waited for: %v", c.name, err)
		}
	}
	if l.Head() != head {
		t.Error("a refused draft moved the head")
	}
	// The largest that fits does.
	for n := chain.MaxEntry - 400; ; n++ {
		if _, err := l.Append(context.Background(), note(strings.Repeat("x", n))); err != nil {
			if n < chain.MaxEntry-300 {
				t.Errorf("%d bytes refused: %v", n, err)
			}
			break
		}
	}
	verified(t, l)
}

// TestGroupsStayTogether: a group is adjacent and whole whatever others append.
func TestGroupsStayTogether(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range 30 {
				turn := fmt.Sprintf("t_%d_%d", p, i)
				r, err := l.Append(context.Background(), ledger.Draft{Turn: turn, Body: opened(turn)}, ledger.Draft{Turn: turn, Body: lemma.GateDecided{Decision: lemma.DecReleased}}, ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased}})
				if err != nil || r.Last != r.First+2 || r.Size <= r.Last {
					t.Errorf("%+v, %v", r, err)
					return
				}
				for seq := r.First; seq <= r.Last; seq++ {
					if e, _, err := l.At(seq); err != nil || e.Turn != turn {
						t.Errorf("entry %d: %+v, %v", seq, e, err)
					}
				}
			}
		})
	}
	wg.Wait()
	verified(t, l)
}

func TestAppendAfterClose(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	pending := l.Go(note("accepted before"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-pending; err != nil {
		t.Errorf("an accepted append: %v", err)
	}
	if _, err := l.Append(context.Background(), note("x")); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, _, err := l.At(0); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if got := b.open(t).Head().Size; got != 3 {
		t.Errorf("size %d", got)
	}
}

func TestAppendWithEndedContext(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	recorded, withdrawn := 0, 0
	for range 200 {
		switch _, err := l.Append(ctx, note("x")); {
		case err == nil:
			recorded++
		case errors.Is(err, context.Canceled):
			withdrawn++
		default:
			t.Fatal(err)
		}
	}
	if got := l.Head().Size; got != uint64(1+recorded) {
		t.Errorf("%d recorded, %d withdrawn, but size %d", recorded, withdrawn, got)
	}
}

func TestRedactionAtTheDoor(t *testing.T) {
	b := newBench(t)
	secret := "sk-" + "live-0123456789"
	b.opt.Redact = func(text []byte) ([]byte, []ledger.Hit) {
		n := bytes.Count(text, []byte(secret))
		if n == 0 {
			return text, nil
		}
		return bytes.ReplaceAll(text, []byte(secret), []byte("[redacted:token]")), []ledger.Hit{{Rule: "token", Count: n}}
	}
	l := b.open(t)
	o := opened("c1")
	o.Prompt = "deploy \"with\" " + secret + "\nand " + secret
	o.Model = secret
	r := add(t, l, ledger.Draft{Turn: "t_1", Body: o}, note("clean"))
	if r.Last != r.First+2 {
		t.Fatalf("receipt %+v", r)
	}
	raw, err := os.ReadFile(b.path())
	if err != nil || bytes.Contains(raw, []byte(secret)) {
		t.Errorf("the secret is in the file, or %v", err)
	}
	row, err := l.Turn("t_1")
	if want := "deploy \"with\" [redacted:token]\nand [redacted:token]"; err != nil || row.Prompt != want || row.Model != "[redacted:token]" {
		t.Errorf("row: %+v, %v", row, err)
	}
	e, _, err := l.At(r.First + 1)
	if err != nil || string(e.Body) != `{"contract":"0.9","count":3,"rule":"token","where":"turn.opened"}` || e.Turn != "t_1" {
		t.Errorf("entry: %s, %v", e.Body, err)
	}
	verified(t, l)
}

func TestDiskFull(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, note("before"))
	ledger.LimitSize(l, 1<<20)
	var failed error
	for range 200 {
		if _, failed = l.Append(context.Background(), note(strings.Repeat("x", 50000))); failed != nil {
			break
		}
	}
	if failed == nil {
		t.Fatal("no append failed")
	}
	size := l.Head().Size
	// Several at once: which free pages bbolt finds for one depends on chance.
	if _, err := l.Append(context.Background(), slices.Repeat([]ledger.Draft{note(strings.Repeat("x", 50000))}, 8)...); err == nil {
		t.Error("still full, but an append worked")
	}
	if _, _, err := l.At(size - 1); err != nil {
		t.Errorf("reading on a full disk: %v", err)
	}
	ledger.LimitSize(l, 0)
	if r := add(t, l, note(strings.Repeat("x", 50000))); r.First != size {
		t.Errorf("gap: %+v after size %d", r, size)
	}
	verified(t, l)
	verified(t, reopen(t, b, l))
}

func TestWatchHasNoGaps(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	for i := range 300 {
		add(t, l, note(fmt.Sprint(i)))
	}
	const producers, each = 4, 150
	total := l.Head().Size + producers*each
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var started atomic.Int32
	for w := range 6 {
		wg.Go(func() {
			var since *uint64
			next := uint64(0)
			if w < 4 { // from somewhere in the past
				s := uint64(w * 70)
				since, next = &s, s+1
			} else {
				next = l.Head().Size
				s := next - 1
				since = &s
			}
			started.Add(1)
			for e, err := range l.Watch(ctx, since) {
				if err != nil || e.Seq != next {
					t.Errorf("watcher %d: got %d, %v; want %d", w, e.Seq, err, next)
					return
				}
				if next++; next == total {
					return
				}
			}
			t.Errorf("watcher %d ended at %d of %d", w, next, total)
		})
	}
	for range producers {
		wg.Go(func() {
			for i := range each {
				add(t, l, note(fmt.Sprint(i)))
			}
		})
	}
	wg.Wait()
}

// TestSlowWatcherBlocksNobody: appends go on while a reader sits on an entry.
func TestSlowWatcherBlocksNobody(t *testing.T) {
	b := newBench(t)
	b.opt.MmapSize = 1 // every growth remaps, which waits for open reads
	l := b.open(t)
	next, stop := iterPull(l.Watch(context.Background(), new(uint64)))
	defer stop()
	add(t, l, note("one"))
	if e, err, ok := next(); !ok || err != nil || e.Seq != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	for range 100 {
		add(t, l, note(strings.Repeat("x", 30000)))
	}
	if e, err, ok := next(); !ok || err != nil || e.Seq != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestWatchEnds(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	far := uint64(1000)
	for _, err := range l.Watch(context.Background(), &far) {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("since the future: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	watch := func(ctx context.Context) {
		var last error
		for _, err := range l.Watch(ctx, nil) {
			last = err
		}
		ended <- last
	}
	go watch(ctx)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("context ended: %v", err)
	}
	go watch(context.Background())
	l.Close()
	if err := <-ended; !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("ledger closed: %v", err)
	}
}

func TestSince(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	for i := range 600 {
		l.Go(note(fmt.Sprint(i)))
	}
	add(t, l, note("last"))
	es, err := l.Entries(0, 1000)
	if err != nil || len(es) != 602 {
		t.Fatalf("%d entries, %v", len(es), err)
	}
	for i, e := range es {
		if e.Seq != uint64(i) {
			t.Fatalf("entry %d stands at %d", e.Seq, i)
		}
	}
	part, err := l.Since(10, 5)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(es[11:16], part); d != "" {
		t.Error(d)
	}
	if part, err := l.Since(601, 5); err != nil || len(part) != 0 {
		t.Errorf("after the end: %v, %v", part, err)
	}
}

// TestOutsideCheckpoint: the copy is there while the ledger runs, soon after an
// append, and exact after Close.
func TestOutsideCheckpoint(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	add(t, l, note("x"))
	deadline := time.Now().Add(20 * time.Second)
	for {
		signed, err := os.ReadFile(b.opt.CheckpointFile)
		if cp, cerr := chain.OpenCheckpoint(signed, l.PublicKey()); err == nil && cerr == nil && cp.Size == l.Head().Size {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no copy of the newest checkpoint")
		}
	}
	for range 3 {
		add(t, l, note("x"))
	}
	want := l.Checkpoint()
	l.Close()
	if got, err := os.ReadFile(b.opt.CheckpointFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after close: %q, %v", got, err)
	}
	if st, err := os.Stat(b.path()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: %v, %v", st.Mode(), err)
	}
	if left, _ := filepath.Glob(b.opt.CheckpointFile + ".new"); len(left) != 0 {
		t.Error("a temporary file is left")
	}
}

// TestEveryBodyIsRecorded appends one of each kind that has a body.
func TestEveryBodyIsRecorded(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	files, err := filepath.Glob("lemma/testdata/bodies/*.json")
	if err != nil || len(files) < 37 {
		t.Fatalf("%d golden bodies, %v", len(files), err)
	}
	for _, body := range []lemma.Body{
		lemma.TurnOpened{}, lemma.TurnClassified{}, lemma.TurnInjected{}, lemma.TurnDeclared{}, lemma.TurnUndeclared{}, lemma.ProvenanceDowngraded{},
		lemma.LemmaWarned{}, lemma.LemmaMatched{}, lemma.SensorInvoked{}, lemma.SensorFailed{}, lemma.RedactionApplied{}, lemma.ClaimJudged{},
		lemma.FactWritten{Fact: factOf("f_1", "host", "1", 1, begin)}, lemma.FactContradicted{}, lemma.FactInvalidated{}, lemma.FactExpired{},
		lemma.HoldOpened{Hold: holdOf("h_1", "c")}, lemma.HoldAnsweredBody{}, lemma.HoldExpiredBody{}, lemma.HoldCancelledBody{}, lemma.GateDecided{},
		lemma.TurnGrounded{}, lemma.ActionDecided{}, lemma.TurnClosed{}, lemma.RegistryLoaded{}, lemma.RegistryRejected{}, lemma.RegistryApproved{},
		lemma.ConfigLoaded{}, lemma.ConfigPending{}, lemma.ConfigApproved{}, lemma.StateLost{}, lemma.ScopeConflict{}, lemma.BreakerOpened{},
		lemma.SensorBackedOff{}, lemma.ChainOpened{}, lemma.ChainRecovered{}, lemma.BlobForgotten{}, lemma.RequestForgotten{}, lemma.ActionOpined{},
	} {
		if _, err := l.Append(context.Background(), ledger.Draft{Turn: "t_1", Body: body}); err != nil {
			t.Errorf("%s: %v", body.Kind(), err)
		}
	}
	for _, k := range lemma.Kinds {
		e := chain.Entry{V: 1, TS: lemma.Time(begin), Kind: string(k), Tenant: "local", Prev: chain.ZeroPrev, Body: []byte("{}")}
		if _, err := chain.Encode(e); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	verified(t, l)
}
