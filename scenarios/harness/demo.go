package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/scenarios"
)

// DemoOptions shape the demo.
type DemoOptions struct {
	Gettier  string
	Daemon   string
	Scenario *scenarios.Scenario // nil = the first embedded one that can run here
	Format   Format
	Out      io.Writer
	// Clean strips control sequences from what models and sensors said; nil = as
	// it is, for output that meets no terminal.
	Clean func(string) string
	// Screen shows a person the private daemon behind socket until they leave it or
	// ctx ends; nil = nobody is there. The demo then goes on with a run in which
	// nothing can be measured, so that the person is asked.
	Screen func(ctx context.Context, socket string) error
}

// Demo runs one scenario without the gate and with it, prints every stage as it
// happens, and ends with both scores and how to point one's own agent at a
// daemon. It needs no key, no network and no configuration.
func Demo(ctx context.Context, o DemoOptions) ([]Result, error) {
	if o.Scenario == nil {
		s, err := runnable(o.Out)
		if err != nil {
			return nil, err
		}
		o.Scenario = s
	}
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	s := o.Scenario
	say := func(format string, a ...any) { fmt.Fprintf(o.Out, format+"\n", a...) }
	say("%s  %s", s.ID, s.Title)
	say("")
	for line := range strings.Lines(s.Ticket) {
		say("  | %s", strings.TrimRight(line, "\n"))
	}
	say("")
	say("The model is a script, not an AI: it believes that %q.", s.Seeded.Claim)
	var rows []Result
	for _, arm := range []Arm{Ungated, Gated} {
		say("")
		switch arm {
		case Ungated:
			say("Without the gate: agent → model")
		default:
			say("With the gate: agent → gettierd → model")
		}
		p := printer{out: o.Out, clean: o.Clean, began: time.Now()}
		r, err := Run(ctx, Options{Scenario: s, Arm: arm, Gettier: o.Gettier, Daemon: o.Daemon, Format: o.Format, Stream: true, Watch: p.print})
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
	}
	say("")
	for _, r := range rows {
		say("  %s", r.Detail())
	}
	say("")
	for _, r := range rows {
		say("%s", o.Clean(r.Line()))
	}
	if o.Screen != nil {
		if err := asked(ctx, o, say); err != nil {
			return rows, err
		}
	}
	say("")
	say("To put your own agent behind the gate: gettier up, gettier project add DIR, and in the agent's environment")
	say("  OPENAI_BASE_URL=http://127.0.0.1:11435/v1   or   ANTHROPIC_BASE_URL=http://127.0.0.1:11435")
	for _, r := range rows {
		if r.Score == ScoreInfra {
			return rows, fmt.Errorf("%w: %s", ErrInfra, r.Error)
		}
	}
	return rows, nil
}

// asked runs the scenario once more without its sensors' programs, and lets the
// person at the screen answer the hold that follows.
func asked(ctx context.Context, o DemoOptions, say func(string, ...any)) error {
	say("")
	say("Now the same ticket on a machine where nothing can measure the premise. You will be asked:")
	for _, r := range o.Scenario.Truth.Readings {
		say("  true here: %s %s = %s", r.Sensor, r.Key, r.Trap)
	}
	say("Answer in the screen that opens (r corrects, c confirms, w waives), then leave it with q.")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		r   Result
		err error
	}
	sockets, done := make(chan string, 1), make(chan result, 1) // one each
	left := make(chan struct{})
	go func() {
		r, err := Run(ctx, Options{
			Scenario: o.Scenario, Arm: Gated, Gettier: o.Gettier, Daemon: o.Daemon, Format: o.Format, Stream: true,
			Answers: Someone, Blind: true, Screen: func(socket string) { sockets <- socket }, Linger: left,
		})
		done <- result{r, err}
	}()
	select {
	case socket := <-sockets:
		// The screen goes when the person leaves it; the daemon goes with the run.
		err := o.Screen(ctx, socket)
		close(left)
		if err != nil && ctx.Err() == nil {
			cancel()
			<-done
			return err
		}
	case r := <-done:
		return r.err
	}
	select {
	case r := <-done:
		if r.err != nil {
			return r.err
		}
		say("")
		say("  %s", r.r.Detail())
		say("%s", o.Clean(r.r.Line()))
	case <-time.After(leaveTime):
		say("")
		say("The hold stayed open; nothing was changed.")
		cancel()
		<-done
	}
	return nil
}

// leaveTime is what a run may still take after its person left the screen.
const leaveTime = 10 * time.Second

// runnable picks the first embedded scenario whose programs are here, and says
// which were passed over and why.
func runnable(out io.Writer) (*scenarios.Scenario, error) {
	all, err := scenarios.All()
	if err != nil {
		return nil, err
	}
	var missing error
	for _, s := range all {
		err := ready(s)
		if err == nil {
			return s, nil
		}
		fmt.Fprintf(out, "passed over: %v\n", err)
		missing = errors.Join(missing, err)
	}
	return nil, missing
}

// printer prints moments with the seconds since it began, one at a time.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	clean func(string) string
	began time.Time
}

const (
	indent  = "                               " // under the text column
	maxText = 400                               // bytes of one moment's text
)

func (p *printer) print(m Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := m.Text
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, p.clean(strings.TrimRight(line, "\r\n")))
	}
	since := max(m.At.Sub(p.began).Seconds(), 0)
	fmt.Fprintf(p.out, "%6.2fs  %-21s %s\n", since, m.Kind, strings.Join(lines, "\n"+indent))
}
