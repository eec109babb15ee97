package tui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

var _ Daemon = (*ipc.Client)(nil)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	if sock := os.Getenv(childSocket); sock != "" {
		os.Exit(child(sock))
	}
	os.Exit(m.Run())
}

// began is when the sample's day begins, and where a rig's clock starts.
var began = time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)

func at(d time.Duration) string { return lemma.Time(began.Add(d)) }

// fake is a daemon in this process: ipctest's backend as a client sees it.
type fake struct {
	*ipctest.Backend

	mu      sync.Mutex
	down    error
	cut     chan struct{} // closed when the daemon goes away
	answers []ipc.HoldAnswer
	calls   map[string]int
	refuse  error // of the next person's calls
	slow    time.Duration
	pins    []ipc.SensorPin
}

func newFake() *fake {
	return &fake{Backend: ipctest.New(), cut: make(chan struct{}), calls: map[string]int{}}
}

func (f *fake) called(name string) error {
	f.mu.Lock()
	f.calls[name]++
	err, slow := f.down, f.slow
	f.mu.Unlock()
	time.Sleep(slow)
	return err
}

func (f *fake) stop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
	close(f.cut)
}

func (f *fake) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.cut = nil, make(chan struct{})
}

func (f *fake) Path() string { return "/run/gettierd.sock" }

func (f *fake) Status(ctx context.Context) (ipc.Status, error) {
	if err := f.called("status"); err != nil {
		return ipc.Status{}, err
	}
	return f.Backend.Status(ctx)
}

// Watch ends with an error when the daemon goes away, as the client's does
// before it tries again.
func (f *fake) Watch(ctx context.Context, since *uint64, _ ...string) iter.Seq2[ipc.Entry, error] {
	return func(yield func(ipc.Entry, error) bool) {
		if err := f.called("watch"); err != nil {
			yield(ipc.Entry{}, err)
			return
		}
		f.mu.Lock()
		cut := f.cut
		f.mu.Unlock()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			select {
			case <-cut:
				stop()
			case <-ctx.Done():
			}
		}()
		for e, err := range f.Backend.Watch(ctx, since) {
			if !yield(e, err) {
				return
			}
		}
		select {
		case <-cut:
			yield(ipc.Entry{}, f.down)
		default:
		}
	}
}

func (f *fake) Holds(ctx context.Context, q ipc.HoldQuery) (ipc.List[lemma.Hold], error) {
	if err := f.called("holds"); err != nil {
		return ipc.List[lemma.Hold]{}, err
	}
	return f.Backend.Holds(ctx, q)
}

func (f *fake) Facts(ctx context.Context, q ipc.FactQuery) (ipc.List[lemma.Fact], error) {
	if err := f.called("facts"); err != nil {
		return ipc.List[lemma.Fact]{}, err
	}
	return f.Backend.Facts(ctx, q)
}

func (f *fake) Turns(ctx context.Context, q ipc.TurnQuery) (ipc.List[ipc.Turn], error) {
	if err := f.called("turns"); err != nil {
		return ipc.List[ipc.Turn]{}, err
	}
	return f.Backend.Turns(ctx, q)
}

var person = lemma.Answerer{UID: 1000, User: "ada", Via: "tui", TTY: "pts/1"}

// AnswerHold answers, and puts that on the chain as the daemon does.
func (f *fake) AnswerHold(ctx context.Context, id string, a ipc.HoldAnswer) (lemma.Hold, error) {
	if err := f.called("answer"); err != nil {
		return lemma.Hold{}, err
	}
	f.mu.Lock()
	f.answers = append(f.answers, a)
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil {
		return lemma.Hold{}, refuse
	}
	h, err := f.Backend.AnswerHold(ctx, id, a, person)
	if err == nil {
		f.answered(h)
	}
	return h, err
}

func (f *fake) answered(h lemma.Hold) {
	b := lemma.HoldAnsweredBody{Contract: lemma.Contract, Hold: h.ID}
	for _, it := range h.Items {
		an := *it.Answer
		an.At = lemma.Time(time.Now())
		b.Answers = append(b.Answers, an)
	}
	f.Append(h.Turn, b)
}

func (f *fake) Knowledge(ctx context.Context, q ipc.KnowledgeQuery) (ipc.List[lemma.Knowledge], error) {
	if err := f.called("knowledge"); err != nil {
		return ipc.List[lemma.Knowledge]{}, err
	}
	return f.Backend.Knowledge(ctx, q)
}

func (f *fake) Tell(ctx context.Context, t ipc.Tell) (lemma.Fact, error) {
	if err := f.called("tell"); err != nil {
		return lemma.Fact{}, err
	}
	return f.Backend.Tell(ctx, t, person)
}

func (f *fake) InvalidateFact(ctx context.Context, id string, i ipc.Invalidation) (lemma.Fact, error) {
	if err := f.called("invalidate"); err != nil {
		return lemma.Fact{}, err
	}
	return f.Backend.InvalidateFact(ctx, id, i.Reason, person)
}

func (f *fake) TrySensor(ctx context.Context, id string, t ipc.SensorTry) (ipc.SensorTried, error) {
	if err := f.called("try"); err != nil {
		return ipc.SensorTried{}, err
	}
	return f.Backend.TrySensor(ctx, strings.TrimPrefix(id, "user/"), t, nil)
}

func (f *fake) ApproveSensors(ctx context.Context, a ipc.SensorApproval) (ipc.SensorsApproved, error) {
	if err := f.called("approve"); err != nil {
		return ipc.SensorsApproved{}, err
	}
	f.mu.Lock()
	f.pins = append(f.pins, a.Sensors...)
	f.mu.Unlock()
	return f.Backend.ApproveSensors(ctx, a, person)
}

// approved is what was pinned so far.
func (f *fake) approved() []ipc.SensorPin {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pins)
}

func (f *fake) Packs(ctx context.Context) (ipc.List[ipc.Pack], error) {
	if err := f.called("packs"); err != nil {
		return ipc.List[ipc.Pack]{}, err
	}
	return f.Backend.Packs(ctx)
}

func (f *fake) Audit(ctx context.Context, since *uint64, p ipc.Page) (ipc.List[ipc.Entry], error) {
	if err := f.called("audit"); err != nil {
		return ipc.List[ipc.Entry]{}, err
	}
	from := uint64(0)
	if since != nil {
		from = *since + 1
	}
	return f.Entries(ctx, from, p.Limit)
}

func (f *fake) Verify(ctx context.Context, progress func(ipc.Progress)) (ipc.Verification, error) {
	return f.Backend.Verify(ctx, func(done, total uint64) { progress(ipc.Progress{Done: done, Total: total}) })
}

// rig runs a model as bubbletea would, under the clock of a synctest bubble.
type rig struct {
	t     *testing.T
	m     *Model
	d     *fake
	ctx   context.Context
	stop  func()
	msgs  chan tea.Msg
	quits bool
	out   *strings.Builder
	drawn string
}

// onRig runs f with a model of w×h that has read everything it needs.
func onRig(t *testing.T, w, h int, o Options, f func(r *rig)) {
	t.Helper()
	onRigOf(t, w, h, o, func(*fake) {}, f)
}

// onRigOf does with a sample that change has changed.
func onRigOf(t *testing.T, w, h int, o Options, change func(d *fake), f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(began))
		d := sample()
		change(d)
		o.Client = d
		ctx, stop := context.WithCancel(t.Context())
		r := &rig{t: t, d: d, ctx: ctx, msgs: make(chan tea.Msg, 1<<16), out: &strings.Builder{}} // the rig takes them when it likes
		r.m = New(ctx, o)
		r.m.out = r
		fd := newFeed(d, time.Now)
		r.m.feed = fd.out
		var wg sync.WaitGroup
		wg.Go(func() { fd.run(ctx) })
		r.stop = func() { stop(); wg.Wait() }
		r.run(r.m.Init())
		r.send(tea.WindowSizeMsg{Width: w, Height: h})
		f(r)
		r.stop()
		// Timers that nobody waits for any more fire into the void.
		time.Sleep(100 * 24 * time.Hour)
		synctest.Wait()
	})
}

func (r *rig) WriteString(s string) (int, error) { return r.out.WriteString(s) }

func (r *rig) run(c tea.Cmd) {
	if c != nil {
		go func() { r.msgs <- c() }()
	}
}

func (r *rig) send(msg tea.Msg) {
	r.take(msg)
	r.settle()
}

func (r *rig) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case tea.QuitMsg:
		r.quits = true
	case tea.BatchMsg:
		for _, c := range msg {
			r.run(c)
		}
	default:
		_, c := r.m.Update(msg)
		r.run(c)
		r.drawn = r.m.View() // as the program does after every message, and only then
	}
}

// settle takes messages until nothing happens any more at this moment.
func (r *rig) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-r.msgs:
			r.take(msg)
		default:
			return
		}
	}
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) {
	for end := time.Now().Add(d); ; {
		r.settle()
		left := time.Until(end)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 10*time.Millisecond))
	}
}

// calm waits until keys answer.
func (r *rig) calm() { r.wait(quiet) }

var named = map[string]tea.KeyType{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "backspace": tea.KeyBackspace,
	"ctrl+c": tea.KeyCtrlC, "ctrl+u": tea.KeyCtrlU, "ctrl+w": tea.KeyCtrlW, "ctrl+k": tea.KeyCtrlK, "ctrl+a": tea.KeyCtrlA, "ctrl+e": tea.KeyCtrlE, "delete": tea.KeyDelete}

// key presses keys one after the other.
func (r *rig) key(keys ...string) {
	for _, k := range keys {
		switch typ, ok := named[k]; {
		case ok:
			r.send(tea.KeyMsg{Type: typ})
		case k == " ":
			r.send(tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}})
		default:
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)})
		}
	}
}

// typed types text into an editor.
func (r *rig) typed(s string) {
	for _, c := range s {
		r.key(string(c))
	}
}

// screen is what is drawn, without styles.
func (r *rig) screen() string { return unstyle(r.drawn) }

func (r *rig) shows(want ...string) {
	r.t.Helper()
	s := r.screen()
	for _, w := range want {
		if !strings.Contains(s, w) {
			r.t.Errorf("the screen lacks %q:\n%s", w, s)
		}
	}
}

func (r *rig) hides(not ...string) {
	r.t.Helper()
	s := r.screen()
	for _, w := range not {
		if strings.Contains(s, w) {
			r.t.Errorf("the screen has %q:\n%s", w, s)
		}
	}
}

// unstyle takes our own styles out; whatever else a terminal would act on stays.
func unstyle(s string) string { return ours.ReplaceAllString(s, "") }

// Ids of the sample.
const (
	turnCaught = "t_01kzzzzzzzzzzzzzzzzzzzk3vq"
	turnOpen   = "t_01kzzzzzzzzzzzzzzzzzzz7abc"
	holdFirst  = "h_01kzzzzzzzzzzzzzzzzzzzz7f3"
	holdLater  = "h_01kzzzzzzzzzzzzzzzzzzzz81a"
	reading    = "i_01kzzzzzzzzzzzzzzzzzzzzaaa"
)

// evil is what a model or a sensor might put into its words.
const evil = "\x1b]52;c;b3duZWQ=\x07\x1b[2J\u202e\r\x9b5n\x1b[?1049l"

func blob(b *ipctest.Backend, s string) string {
	h := sha256.Sum256([]byte(s))
	sum := hex.EncodeToString(h[:])
	b.Blobs[sum] = []byte(s)
	return sum
}

// sample is a day: one turn that was caught, one that waits in a hold of two
// claims, another hold, facts of every kind, and a registry with something to
// approve. Everything foreign in it is hostile.
func sample() *fake {
	f := newFake()
	b, c := f.Backend, lemma.Contract
	inv := lemma.Invocation{ID: reading, SensorID: "proxy.config", File: "user", Params: map[string]string{}, Argv: []string{"nginx", "-T", "-c", "/etc/nginx/nginx.conf"},
		StartedAt: at(-50 * time.Second), DurationMS: 12, Sandbox: "none", OutputBlob: blob(b, "client_max_body_size 1m;\n\tlocation / {}\n"+evil)}
	ttl, life := int64(600), at(4*time.Minute)
	fact := lemma.Fact{ID: "f_01kzzzzzzzzzzzzzzzzzzzzbbb", Scope: "project:shop", Subject: "proxy.config@aa", Claim: "limit is 1m", Key: "limit", Value: "1m", Type: "bytes",
		Provenance: lemma.Measured, Source: lemma.Source{Kind: "sensor", Ref: reading, Origin: "proxy.config", OriginClass: "sensor"},
		Status: lemma.StatusActive, Sensitivity: "internal", TTLSeconds: &ttl, CreatedAt: at(-50 * time.Second), ExpiresAt: &life}
	told := lemma.Fact{ID: "f_01kzzzzzzzzzzzzzzzzzzzzccc", Scope: "project:shop", Subject: "person", Claim: "the production database is Postgres 14" + evil, Key: "ab12",
		Provenance: lemma.Told, Source: lemma.Source{Kind: "user", Ref: holdFirst, Origin: "ada via tui", OriginClass: "person"}, Status: lemma.StatusActive, CreatedAt: at(-time.Hour)}
	wrong, wide := fact, fact
	wrong.ID, wrong.Value, wrong.Status, wrong.CreatedAt = "f_01kzzzzzzzzzzzzzzzzzzzzddd", "20m"+evil, lemma.StatusContradicted, at(-time.Hour)
	wide.ID, wide.Subject, wide.Key, wide.Value, wide.Status = "f_01kzzzzzzzzzzzzzzzzzzzzeee", "os.locale@bb", "名前", "日本語の値 👩‍💻 e\u0301", lemma.StatusStale
	b.FactRows = []lemma.Fact{told, fact, wrong, wide}

	b.Append(turnCaught, lemma.TurnOpened{Contract: c, Principal: lemma.Principal{UID: 1000, Agent: "claude-code"}, RequestKind: "new", Format: "anthropic-messages", Upstream: "anthropic",
		Model: "m", Conversation: "c1", Scope: "project:shop", ScopeEvidence: "the peer's directory", Class: lemma.Change, Reasons: []string{"words.config"}, Prompt: "raise the upload limit to 25 MB"})
	b.Append(turnCaught, lemma.TurnDeclared{Contract: c, Rung: 1, At: "action", PlanSummary: "raise BODY_LIMIT in server.js" + evil, Attempts: 1,
		Lemmas: []lemma.Lemma{{Claim: "the edge accepts bodies of 25 MB", Provenance: lemma.Believed, LoadBearing: true}}, Usage: lemma.Usage{Input: 900, Output: 120}})
	b.Append(turnCaught, lemma.LemmaMatched{Contract: c, Sensors: []lemma.SensorMatch{{ID: "proxy.config", Why: "request_path.size_limits:upload"}}})
	b.Append(turnCaught, lemma.SensorInvoked{Contract: c, Invocation: inv})
	b.Append(turnCaught, lemma.FactWritten{Contract: c, Fact: fact})
	b.Append(turnCaught, lemma.ClaimJudged{Contract: c, Claim: "the edge accepts bodies of 25 MB", Origin: "declared", Verdict: lemma.Contradicted, Reason: "rule",
		Rule: "proxy.config judge 1", Sensor: "proxy.config", Invocation: reading, Key: "limit", Measured: "1m" + evil, Claimed: ">= 25 MB"})
	b.Append(turnCaught, lemma.GateDecided{Contract: c, Decision: lemma.DecCaught, Class: lemma.Change, Mode: lemma.Block, Counts: lemma.Counts{Lemmas: 1, Contradicted: 1}})
	inject := b.Append(turnCaught, lemma.TurnInjected{Contract: c, Conversation: "c1", Anchor: "ab", Why: "verification"})
	b.Append(turnCaught, lemma.TurnGrounded{Contract: c, Anchor: "ab"})
	b.Append(turnCaught, lemma.ActionDecided{Contract: c, Tool: "Edit", Summary: "conf.d/shop.conf", State: "ALLOW", Effect: "mutate", Findings: []string{"a configuration file"}})
	b.Append(turnCaught, lemma.TurnClosed{Contract: c, Decision: lemma.DecCaught, Status: 200, Timings: map[string]int64{"declare": 1203, "verify": 14},
		UsageClient: lemma.Usage{Input: 12000, Output: 300, CacheRead: 10000}, UsageOurs: lemma.Usage{Input: 900, Output: 120}})
	b.BlockRows[turnCaught] = []ipc.Block{{Seq: inject, Why: "verification", Text: "<gettier-verification id=\"v1\">\nmeasured: 1m" + evil + "\n</gettier-verification>"}}
	b.Append(turnOpen, lemma.TurnOpened{Contract: c, Principal: lemma.Principal{UID: 1000, Agent: "codex"}, RequestKind: "new", Scope: "project:billing", Class: lemma.Change, Prompt: "migrate the table"})
	rung := 1
	b.TurnRows = []ipc.Turn{
		{ID: turnOpen, Conversation: "c2", Scope: "project:billing", Class: lemma.Change, Agent: "codex", Prompt: "migrate the table" + evil, OpenedAt: at(-72 * time.Second), Stage: "turn.opened"},
		{ID: turnCaught, Conversation: "c1", Scope: "project:shop", Class: lemma.Change, RequestKind: "new", Format: "anthropic-messages", Upstream: "anthropic", Model: "m", Agent: "claude-code",
			Prompt: "raise the upload limit to 25 MB" + evil, OpenedAt: at(-2 * time.Minute), ClosedAt: at(-2*time.Minute + 2100*time.Millisecond), Stage: "turn.closed", Decision: lemma.DecCaught,
			Counts: lemma.Counts{Lemmas: 1, Contradicted: 1}, Rung: &rung, UsageOurs: lemma.Usage{Input: 900, Output: 120}},
	}
	b.HoldRows = []lemma.Hold{
		{ID: holdLater, Kind: "claims", State: lemma.HoldOpen, Scope: "project:billing", Turn: turnOpen, Agent: "codex" + evil, Model: "gpt", PlanSummary: "migrate the table" + evil,
			OpenedAt: at(-72 * time.Second), ExpiresAt: at(time.Hour), Items: []lemma.HoldItem{
				{ID: "1", ClaimID: "x1", Claim: "the production database is Postgres 14" + evil, Reason: "could_not_run:not_found", Verdict: lemma.Inconclusive, Tried: []string{"db.version could not run (not_found: psql)" + evil}},
			}},
		{ID: holdFirst, Kind: "claims", State: lemma.HoldOpen, Scope: "project:shop", Turn: turnOpen, Agent: "claude-code", Model: "m", PlanSummary: "raise BODY_LIMIT in server.js and add a test",
			OpenedAt: at(-48 * time.Second), ClientDeadline: at(72 * time.Second), ExpiresAt: at(2 * time.Hour), Items: []lemma.HoldItem{
				{ID: "1", ClaimID: "x2", Claim: "the edge proxy accepts request bodies of 25 MB", Reason: "no rule could read it", Verdict: lemma.Unjudged, Sensor: "proxy.config", Invocation: reading,
					Tried: []string{"proxy.config could not run · permission"}, EvidenceExcerpt: "client_max_body_size is set per location"},
				{ID: "2", ClaimID: "x3", Claim: "uploads go through one proxy", Reason: "no_sensor", Verdict: lemma.Unverifiable, Tried: []string{}},
			}},
	}
	proxy := ipc.Sensor{ID: "proxy.config", Kind: "sensor", Qualified: "user/proxy.config", Level: "user", File: "/etc/sensors.yaml", Line: 4, Description: "the edge" + evil, Command: "nginx -T",
		State: ipc.SensorChanged, InForce: true, Hash: strings.Repeat("ab", 32), Effects: "none", Verifies: []string{"request_path.size_limits"}, Keys: []string{"limit"},
		Last: &ipc.Reading{Invocation: inv, Values: []ipc.Value{{Key: "limit", Type: "bytes", Text: "1m" + evil}}}}
	b.SensorSet = []ipc.Sensor{proxy,
		{ID: "db.version", Kind: "sensor", Qualified: "project/shop/db.version", Level: "project/shop", File: "/shop/.gettier/sensors.yaml", Line: 9, State: ipc.SensorPending, Hash: strings.Repeat("cd", 32), Reason: "new",
			Params: []ipc.SensorParam{{Name: "host", Type: "string", Required: true}}},
		{ID: "git.head", Kind: "sensor", Qualified: "pack/git.head", Level: "pack", File: "pack", State: ipc.SensorApproved, InForce: true, Hash: "ff", Effects: "none"},
		{File: "/etc/other.yaml", Line: 3, State: ipc.SensorBroken, Reason: "unknown key comand" + evil},
	}
	b.Diffs["user/proxy.config"] = ipc.SensorDiff{ID: "proxy.config", Qualified: "user/proxy.config", State: ipc.SensorChanged, Hash: proxy.Hash, File: "/etc/sensors.yaml", Text: "  id: proxy.config\n-  ttl: 300\n+  ttl: 600" + evil}
	b.Tries["proxy.config"] = ipc.SensorTried{Sensor: proxy, Reading: ipc.Reading{Invocation: inv, Values: []ipc.Value{{Key: "limit", Type: "bytes", Text: "1m", Place: "conf.d/shop.conf:3"}}},
		Output: "client_max_body_size 1m;\n" + evil, Redacted: []ipc.Redaction{{Rule: "token.bearer", Count: 1}}, Matches: "request_path.size_limits:upload",
		Judged: &ipc.Judged{Verdict: lemma.Contradicted, Rule: "judge 1", Key: "limit", Operator: ">=", Measured: "1m", Claimed: "25 MB"}}
	b.St = ipc.Status{Version: "0.1.0", Proxy: "127.0.0.1:11435", Mode: "ask", Chain: ipc.Head{Root: strings.Repeat("a9", 32), Origin: "gettier.dev/log/0011223344556677"}, OpenHolds: 2, PolicyVersion: "3",
		Counters: map[string]int64{"turns": 2, "caught": 1}, Registry: ipc.RegistryStatus{Sensors: 2, Pending: 2, Problems: []ipc.RegistryError{}}, Projects: 1}
	return f
}

// opens puts a new hold on the chain.
func (f *fake) opens(h lemma.Hold) {
	f.HoldRows = append(slices.Clone(f.HoldRows), h)
	f.Append(h.Turn, lemma.HoldOpened{Contract: lemma.Contract, Hold: h})
}

func question(n int) lemma.Hold {
	return lemma.Hold{ID: fmt.Sprintf("h_01kzzzzzzzzzzzzzzzzzzzz%03d", n), Kind: "claims", State: lemma.HoldOpen, Scope: "project:shop", Turn: turnOpen, Agent: "claude-code",
		PlanSummary: "plan", OpenedAt: lemma.Time(time.Now()), ExpiresAt: lemma.Time(time.Now().Add(time.Hour)),
		Items: []lemma.HoldItem{{ID: "1", ClaimID: "c", Claim: fmt.Sprintf("claim %d", n), Reason: "no_sensor", Verdict: lemma.Unverifiable, Tried: []string{}}}}
}
