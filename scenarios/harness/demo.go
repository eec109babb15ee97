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
