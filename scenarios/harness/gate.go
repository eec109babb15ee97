package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/sensors"
)

// daemon is a private gettierd: its own state, keys, ledger, socket and port.
type daemon struct {
	proxy   string
	client  *ipc.Client
	process *process
	answers *answerer     // nil where nobody answers
	watched chan struct{} // closed when the watcher has ended
	stop    context.CancelFunc
}

// startTimeout bounds the daemon's start.
const startTimeout = 30 * time.Second

// projectName is the name under which a run's directory is registered.
func projectName(s *scenarios.Scenario) string { return strings.ToLower(s.ID) }

// startDaemon starts a private daemon whose state holds one approved registry,
// the scenario's, and whose configuration registers one project, the run's
// directory. The approval is made offline, before the daemon's first start: it
// is the harness's own state, and nobody else's daemon can be reached this way.
func (st *stage) startDaemon(ctx context.Context, o *Options, upstream string) (*daemon, error) {
	state := filepath.Join(st.base, "state")
	conf := filepath.Join(st.base, "gettierd.yaml")
	socket := filepath.Join(st.base, "d.sock")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	name := projectName(st.s)
	if err := os.WriteFile(conf, configText(name, st.project, o.settings()), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	if o.Blind {
		if err := takePrograms(st.s.SensorsFile(st.project)); err != nil {
			return nil, err
		}
	}
	approved, err := sensors.ApproveAll(state, st.s.SensorsFile(st.project), "project/"+name, st.project)
	if err != nil {
		return nil, fmt.Errorf("approve the scenario's sensors: %w", err)
	}
	st.note("gate", "approved %s", strings.Join(approved, ", "))
	c := command{name: "gettierd", dir: st.base,
		argv: []string{o.Daemon, "--config", conf, "--state", state, "--socket", socket, "--proxy-port", "0", "--upstream", upstream},
		stop: scenarios.Stop{Signal: "TERM", Grace: 5 * time.Second}}
	d := &daemon{watched: make(chan struct{})}
	if o.Answers == Truth || o.Answers == Waive {
		reg, err := st.registry()
		if err != nil {
			return nil, err
		}
		ours, theirs, err := socketPair()
		if err != nil {
			return nil, err
		}
		defer theirs.Close()
		d.answers = &answerer{client: ipc.Over(ours, "harness"), truth: truth{s: st.s, reg: reg, benign: o.Benign}, policy: o.Answers}
		c.argv, c.files = append(c.argv, "--answer-fd", "3"), []*os.File{theirs}
	}
	if err := st.serve(ctx, c, d); err != nil {
		d.answers.close()
		return nil, err
	}
	wctx, cancel := context.WithCancel(ctx)
	d.stop = cancel
	attached := make(chan struct{})
	go func() {
		defer close(d.watched)
		d.follow(wctx, o.Watch, attached)
	}()
	t := time.NewTimer(startTimeout)
	defer t.Stop()
	select {
	case <-attached: // from here on a hold waits for us
	case <-t.C:
		d.close()
		return nil, fmt.Errorf("gettierd showed no event in %s: %s", startTimeout, d.process.tail())
	case <-ctx.Done():
		d.close()
		return nil, ctx.Err()
	}
	st.note("gate", "gettierd serves on %s", d.proxy)
	if o.Screen != nil {
		o.Screen(socket)
	}
	return d, nil
}

// serve starts the program and waits until it says where it serves.
func (st *stage) serve(ctx context.Context, c command, d *daemon) error {
	line := newFirstLine()
	c.stdout = line
	p, err := st.sup.start(c)
	if err != nil {
		return err
	}
	t := time.NewTimer(startTimeout)
	defer t.Stop()
	var said struct {
		Ready  bool   `json:"ready"`
		Proxy  string `json:"proxy"`
		Socket string `json:"socket"`
	}
	select {
	case l := <-line.line:
		if err := json.Unmarshal([]byte(l), &said); err != nil || !said.Ready || said.Proxy == "" {
			return fmt.Errorf("gettierd said %q instead of being ready: %s", strings.TrimSpace(l), p.tail())
		}
	case <-p.done:
		return fmt.Errorf("gettierd ended before it was ready: %s", p.tail())
	case <-t.C:
		return fmt.Errorf("gettierd is not ready after %s: %s", startTimeout, p.tail())
	case <-ctx.Done():
		return ctx.Err()
	}
	d.proxy, d.client, d.process = said.Proxy, ipc.New(said.Socket, "harness"), p
	return nil
}

// settings are the private daemon's: where nobody answers, a hold's question is
// the answer at once instead of after the usual wait.
func (o *Options) settings() map[string]string {
	more := maps.Clone(o.Config)
	wait := map[Answers]string{None: "0s", Someone: personTime.String()}[o.Answers]
	if wait != "" && more["gate.client_wait"] == "" {
		if more == nil {
			more = map[string]string{}
		}
		more["gate.client_wait"] = wait
	}
	return more
}

// personTime is how long a run waits for a person at a screen.
const personTime = 30 * time.Minute

// command is a sensor's line that says what it runs.
var commandLine = regexp.MustCompile(`(?m)^(\s*command:).*$`)

// takePrograms rewrites a registry so that none of its programs is there.
func takePrograms(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	if err := os.WriteFile(path, commandLine.ReplaceAll(b, []byte("$1 [not-installed-here]")), 0o600); err != nil {
		return fmt.Errorf("write registry: %w", err)
	}
	return nil
}

// configText is the private daemon's gettierd.yaml.
func configText(name, root string, more map[string]string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nprojects:\n  - name: %s\n    root: %q\n", name, root)
	sections := map[string][]string{}
	var order []string
	for k, v := range more {
		section, key, ok := strings.Cut(k, ".")
		if !ok {
			fmt.Fprintf(&b, "%s: %s\n", k, v)
			continue
		}
		if sections[section] == nil {
			order = append(order, section)
		}
		sections[section] = append(sections[section], "  "+key+": "+v)
	}
	slices.Sort(order)
	for _, s := range order {
		slices.Sort(sections[s])
		fmt.Fprintf(&b, "%s:\n%s\n", s, strings.Join(sections[s], "\n"))
	}
	return []byte(b.String())
}

func (d *daemon) close() {
	d.stop()
	<-d.watched
	d.answers.close()
	d.client.Close()
	d.process.stop()
}

// read takes the turns out of the daemon's API and folds them into the row.
func (d *daemon) read(ctx context.Context, s *scenarios.Scenario, r *Result) error {
	turns, err := d.settled(ctx)
	if err != nil {
		return fmt.Errorf("read the daemon's turns: %w", err)
	}
	if err := d.answers.failure(); err != nil {
		return fmt.Errorf("answer hold: %w", err)
	}
	if len(turns) == 0 {
		return errors.New("the daemon saw no turn: the agent did not reach it")
	}
	status, err := d.client.Status(ctx)
	if err != nil {
		return fmt.Errorf("read the daemon's status: %w", err)
	}
	r.Registry = status.Registry.Version
	r.Stages = map[string]int64{}
	f := newFolder(s, r)
	for _, t := range slices.Backward(turns) { // listed newest first
		if strings.HasPrefix(t.RequestKind, "side:") {
			continue
		}
		detail, err := d.client.Turn(ctx, t.ID)
		if err != nil {
			return fmt.Errorf("read turn %s: %w", t.ID, err)
		}
		if err := f.turn(detail); err != nil {
			return fmt.Errorf("read turn %s: %w", t.ID, err)
		}
	}
	f.finish()
	return nil
}

// settleTime is how long a turn may take to close after its answer has left.
const settleTime = 5 * time.Second

// settled waits until every turn is closed and returns them, newest first.
func (d *daemon) settled(ctx context.Context) ([]ipc.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := d.client.Turns(ctx, ipc.TurnQuery{Page: ipc.Page{Limit: 100}})
		if err != nil {
			return nil, err
		}
		open, err := d.client.Holds(ctx, ipc.HoldQuery{State: string(lemma.HoldOpen), Page: ipc.Page{Limit: 100}})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list.Items, func(t ipc.Turn) bool {
			waits := slices.ContainsFunc(open.Items, func(h lemma.Hold) bool { return h.Turn == t.ID })
			return t.ClosedAt == "" && !waits // a turn that waits for a person closes with its answer
		}) {
			return list.Items, nil
		}
		select {
		case <-ctx.Done():
			return list.Items, nil // a held or hanging turn is a result, too
		case <-tick.C:
		}
	}
}

// folder folds turns into a row.
type folder struct {
	s        *scenarios.Scenario
	r        *Result
	verified bool
	asked    map[string]string // claim ids that a hold asked about → the claim
	open     map[string]bool   // holds without an answer
	caughtAt int               // number of the turn with the first seeded catch, 0 = none
	n        int
}

func newFolder(s *scenarios.Scenario, r *Result) *folder {
	return &folder{s: s, r: r, asked: map[string]string{}, open: map[string]bool{}}
}

func (f *folder) turn(t ipc.TurnDetail) error {
	f.n++
	if t.Decision != "" {
		f.r.Decisions = append(f.r.Decisions, string(t.Decision))
	}
	f.r.Client = f.r.Client.Add(t.UsageClient)
	f.r.Ours = f.r.Ours.Add(t.UsageOurs)
	var catches []CatchDetail
	caught := false
	for _, e := range t.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KTurnDeclared:
			var b lemma.TurnDeclared
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			f.r.Rung = max(f.r.Rung, b.Rung)
		case lemma.KClaimJudged:
			var b lemma.ClaimJudged
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			f.r.Verdicts[string(b.Verdict)]++
			seeded := f.seeded(b)
			switch {
			case b.Verdict == lemma.Contradicted:
				catches = append(catches, CatchDetail{Turn: t.ID, Claim: b.Claim, Origin: b.Origin, Sensor: b.Sensor, Key: b.Key,
					Measured: b.Measured, Claimed: b.Claimed, Seeded: seeded})
				if seeded && f.caughtAt > 0 && b.Origin == "declared" && f.n > f.caughtAt && f.n <= f.caughtAt+reassertTurns {
					f.r.Reassert++
				}
			case seeded && (b.Verdict == lemma.Confirmed || b.Verdict == lemma.VerdictTold):
				f.verified = true
			}
		case lemma.KGateDecided:
			var b lemma.GateDecided
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			// The decision is durable before the answer leaves; these stop or correct it.
			caught = caught || b.Decision == lemma.DecCaught || b.Decision == lemma.DecBlocked || b.Decision == lemma.DecHeld
		case lemma.KHoldOpened:
			var b lemma.HoldOpened
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			f.r.Holds++
			f.open[b.Hold.ID] = true
			for _, it := range b.Hold.Items {
				f.asked[it.ClaimID] = it.Claim
			}
		case lemma.KHoldAnswered:
			var b lemma.HoldAnsweredBody
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			delete(f.open, b.Hold)
			for _, a := range b.Answers {
				switch {
				case a.Answer == lemma.AnswerWaive:
					f.r.Waived++
				case says(f.s, f.asked[a.ClaimID]):
					f.verified = true
				}
			}
		case lemma.KTurnClosed:
			var b lemma.TurnClosed
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return err
			}
			for k, v := range b.Timings {
				f.r.Stages[k] += v
			}
		}
	}
	if caught {
		f.r.Catches = append(f.r.Catches, catches...)
		if f.caughtAt == 0 && slices.ContainsFunc(catches, func(c CatchDetail) bool { return c.Seeded }) {
			f.caughtAt = f.n
		}
	}
	return nil
}

// reassertTurns is within how many later turns a caught claim counts as said again.
const reassertTurns = 3

// seeded reports whether a judged claim is the scenario's: the same sensor
// reading, asked by the same measure, or the same words.
func (f *folder) seeded(b lemma.ClaimJudged) bool {
	if worded(f.s, b.Claim) {
		return true
	}
	for _, t := range f.s.Truth.Readings {
		if t.Sensor == b.Sensor && t.Key == b.Key {
			return true
		}
	}
	return false
}

func (f *folder) finish() {
	switch {
	case len(f.open) > 0:
		f.r.Reason = HeldR
	case f.caughtAt > 0:
		f.r.Reason = Caught
	case f.verified:
		f.r.Reason = Verified
	default:
		f.r.Reason = Leaked
	}
}
