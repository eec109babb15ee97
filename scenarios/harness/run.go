package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios/model"
)

// Run runs one scenario once. What goes wrong with the harness's own means is a
// Result with score infra and its reason in Error; an error is returned only
// when there is no result: a missing program (*MissingError), a wrong option, ctx
// called off.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	if err := ready(o.Scenario); err != nil {
		return Result{}, err
	}
	began := time.Now()
	r := o.row()
	if err := o.run(ctx, &r); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err() // called off: no result
		}
		r.Score, r.Error = ScoreInfra, err.Error()
		if r.Accept == "" {
			r.Accept = Infra
		}
		if r.Probe == "" {
			r.Probe = Infra
		}
	}
	r.Millis = time.Since(began).Milliseconds()
	return r, nil
}

func (o *Options) check() error {
	if o.Arm == "" {
		o.Arm = Gated
	}
	if o.Format == "" {
		o.Format = Chat
	}
	if o.Policy == "" {
		o.Policy = string(model.Believer)
	}
	if o.Answers == "" {
		o.Answers = Truth
	}
	if o.Arm == Ungated {
		o.Answers = None // no gate, nothing to answer
	}
	switch {
	case o.Scenario == nil:
		return errors.New("run a scenario: none is given")
	case o.Arm != Gated && o.Arm != Ungated:
		return fmt.Errorf("unknown arm %q: want gated or ungated", o.Arm)
	case o.Format != Chat && o.Format != Messages:
		return fmt.Errorf("unknown format %q: want chat or messages", o.Format)
	case o.Answers != Truth && o.Answers != Waive && o.Answers != None && (o.Answers != Someone || o.Screen == nil):
		return fmt.Errorf("unknown answers %q: want truth, waive or none", o.Answers)
	case o.Gettier == "":
		return errors.New("run a scenario: the path of gettier is needed")
	case o.Arm == Gated && o.Daemon == "":
		return errors.New("run a scenario gated: the path of gettierd is needed")
	}
	return nil
}

// row is the result before anything has happened.
func (o *Options) row() Result {
	r := Result{Scenario: o.Scenario.ID, Twin: "trap", Arm: o.Arm, Model: "scripted:" + o.Policy, Kind: "scripted", Format: o.Format,
		Stream: o.Stream, Seed: o.Seed, Reason: Leaked, Answers: o.Answers, Rung: -1, Lock: o.Scenario.Lock, Tool: toolVersion(),
		Decisions: []string{}, Verdicts: map[string]int{}, Catches: []CatchDetail{}}
	if o.Benign {
		r.Twin = "benign"
	}
	return r
}

func toolVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
		return b.Main.Version
	}
	return "unknown"
}

func (o *Options) run(ctx context.Context, r *Result) (err error) {
	st, err := setUp(ctx, o.Scenario, o.Benign, o.Gettier, o.Watch)
	if err != nil {
		return err
	}
	if o.Keep {
		r.Dir = st.base
	}
	defer st.tearDown(o.Keep)
	up, err := startModel(ctx, model.Options{Policy: o.Policy, Seed: o.Seed, Scenario: o.Scenario})
	if err != nil {
		return err
	}
	defer up.close()
	base := up.url
	var d *daemon
	if o.Arm == Gated {
		if d, err = st.startDaemon(ctx, o, up.url); err != nil {
			return err
		}
		defer d.close()
		base = "http://" + d.proxy
	}
	st.note("agent", "works on %s (%s, %s)", o.Scenario.ID, o.Format, o.Arm)
	requests, failed, err := st.agent(ctx, o, base)
	r.Requests = requests
	if d != nil {
		if rerr := d.read(ctx, o.Scenario, r); rerr != nil {
			return rerr
		}
	}
	r.Extra = int(up.requests.Load()) - requests
	if err != nil {
		return err
	}
	if failed != "" && r.Reason != Caught && r.Reason != HeldR && !slices.Contains(r.Decisions, string(lemma.DecBlocked)) {
		return fmt.Errorf("agent: %s", failed) // no gate stopped it: the model or the way to it broke
	}
	if name := st.sup.dead(st.names...); name != "" {
		st.note("fixture", "%s has ended by itself", name)
	}
	var out string
	r.Accept, out = st.script(ctx, o.Scenario.Accept)
	st.note("accept", "%s: %s", r.Accept, strings.TrimSpace(out))
	if r.Accept == Infra {
		return fmt.Errorf("accept: %s", strings.TrimSpace(out))
	}
	r.Probe, out = st.script(ctx, o.Scenario.Probe)
	st.note("probe", "%s: %s", r.Probe, strings.TrimSpace(out))
	if r.Probe == Infra {
		return fmt.Errorf("probe: %s", strings.TrimSpace(out))
	}
	r.Score = score(r.Reason, r.Accept, r.Probe)
	if o.Linger != nil {
		select {
		case <-o.Linger:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// upstream is a scripted model of this run's own.
type upstream struct {
	url      string
	requests atomic.Int64
	srv      *http.Server
	done     chan struct{}
}

func startModel(ctx context.Context, o model.Options) (*upstream, error) {
	m, err := model.New(o)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the model: %w", err)
	}
	u := &upstream{url: "http://" + l.Addr().String(), done: make(chan struct{})}
	u.srv = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			u.requests.Add(1)
		}
		m.ServeHTTP(w, r)
	})}
	go func() {
		defer close(u.done)
		_ = u.srv.Serve(l) // ErrServerClosed once closed
	}()
	return u, nil
}

func (u *upstream) close() {
	u.srv.Close()
	<-u.done
}

// agent runs the agent loop in the project directory and returns how many
// requests it made and, when it gave up, why.
func (st *stage) agent(ctx context.Context, o *Options, base string) (requests int, failed string, err error) {
	limit := o.Scenario.Timeouts.Run
	if o.Answers == Someone {
		limit += personTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	argv := []string{o.Gettier, "scenarios", "agent", "--base-url", base, "--format", string(o.Format), "--model", "scripted-" + o.Policy}
	if o.Stream {
		argv = append(argv, "--stream")
	}
	if o.NoTools {
		argv = append(argv, "--no-tools")
	}
	steps := &stepReader{each: func(s Step) {
		switch s.Kind {
		case "request":
			requests++
		case "error":
			failed = s.Text
		}
		switch {
		case s.Kind != "request":
			st.note("agent", "%s %s", s.Kind, s.Text)
		case s.Headers != "":
			st.note("agent", "was told %s", s.Headers)
		}
	}}
	p, err := st.sup.start(command{name: "agent", argv: argv, dir: st.project, stdin: strings.NewReader(o.Scenario.Ticket), stdout: steps})
	if err != nil {
		return 0, "", err
	}
	code, err := p.wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return requests, "", fmt.Errorf("the agent took longer than %s", limit)
	case err != nil:
		return requests, "", err
	case code > 1 || code == 1 && failed == "":
		return requests, "", fmt.Errorf("the agent ended with %d: %s", code, p.tail())
	}
	return requests, failed, nil
}

// stepReader turns the agent's output into steps, line by line.
type stepReader struct {
	mu   sync.Mutex
	rest []byte
	each func(Step)
}

// maxStepLine bounds a line of the agent's output.
const maxStepLine = 1 << 20

func (s *stepReader) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		if i < 0 {
			break
		}
		var st Step
		if json.Unmarshal(s.rest[:i], &st) == nil {
			s.each(st)
		}
		s.rest = s.rest[i+1:]
	}
	if len(s.rest) > maxStepLine {
		s.rest = nil
	}
	return len(p), nil
}

// firstLine hands over the first line that is written to it and drops the rest.
type firstLine struct {
	mu   sync.Mutex
	buf  []byte
	done bool
	line chan string
}

func newFirstLine() *firstLine { return &firstLine{line: make(chan string, 1)} }

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		f.buf = append(f.buf, p...)
		if line, err := bufio.NewReader(bytes.NewReader(f.buf)).ReadString('\n'); err == nil {
			f.done = true
			f.line <- line
		} else if len(f.buf) > maxScriptOutput {
			f.done = true
			f.line <- ""
		}
	}
	return len(p), nil
}

var _ io.Writer = (*firstLine)(nil)
