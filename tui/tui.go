// Package tui is the screen that stays open beside the editor: one model, a
// file per screen, one table of keys. It sees the world through the socket's
// client alone (Daemon) and draws what that says; it rules on nothing and stores
// nothing. Text of models, sensors and files reaches the terminal only as type
// safe, which tui/clean makes. Colours live in tui/theme, long lists in
// tui/rows, the words of a turn in tui/story.
package tui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/term"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	_ "gettier.dev/gettierd/tui/termbg" // before bubbletea: see there
	"gettier.dev/gettierd/tui/theme"
)

// Daemon is what the screens ask of gettierd. *ipc.Client is one.
type Daemon interface {
	Path() string
	Status(ctx context.Context) (ipc.Status, error)
	Watch(ctx context.Context, since *uint64, kinds ...string) iter.Seq2[ipc.Entry, error]
	Holds(ctx context.Context, q ipc.HoldQuery) (ipc.List[lemma.Hold], error)
	AnswerHold(ctx context.Context, id string, a ipc.HoldAnswer) (lemma.Hold, error)
	Facts(ctx context.Context, q ipc.FactQuery) (ipc.List[lemma.Fact], error)
	Tell(ctx context.Context, t ipc.Tell) (lemma.Fact, error)
	InvalidateFact(ctx context.Context, id string, i ipc.Invalidation) (lemma.Fact, error)
	Knowledge(ctx context.Context, q ipc.KnowledgeQuery) (ipc.List[lemma.Knowledge], error)
	Turns(ctx context.Context, q ipc.TurnQuery) (ipc.List[ipc.Turn], error)
	Turn(ctx context.Context, id string) (ipc.TurnDetail, error)
	Blob(ctx context.Context, sum string) ([]byte, error)
	Sensors(ctx context.Context, q ipc.SensorQuery) (ipc.List[ipc.Sensor], error)
	SensorDiff(ctx context.Context, id, project string) (ipc.SensorDiff, error)
	Packs(ctx context.Context) (ipc.List[ipc.Pack], error)
	TrySensor(ctx context.Context, id string, t ipc.SensorTry) (ipc.SensorTried, error)
	ApproveSensors(ctx context.Context, a ipc.SensorApproval) (ipc.SensorsApproved, error)
	Audit(ctx context.Context, since *uint64, p ipc.Page) (ipc.List[ipc.Entry], error)
	Verify(ctx context.Context, progress func(ipc.Progress)) (ipc.Verification, error)
}

// Next stands in Focus for the first one that appears.
const Next = "next"

// Focus is what the program opens with. With both set, the turn is shown until
// the hold appears.
type Focus struct {
	Hold string // its id, or Next
	Turn string // its id, or Next
}

// Options are what a run needs.
type Options struct {
	Client Daemon
	Input  *os.File // both must be a terminal
	Output *os.File
	Env    []string
	Theme  theme.Kind       // "" finds out
	Now    func() time.Time // nil is the clock
	Focus  Focus
	Footer string // a line above the status line
}

// ErrNoTerminal: there is nobody to draw for, or a terminal that cannot be drawn on.
var ErrNoTerminal = errors.New("no terminal to draw on")

// Usable reports, as an error, why the TUI cannot run on these two ends.
func Usable(in, out *os.File, env []string) error {
	switch name := theme.Getenv(env, "TERM"); {
	case in == nil || !term.IsTerminal(in.Fd()):
		return fmt.Errorf("%w: the input is none", ErrNoTerminal)
	case out == nil || !term.IsTerminal(out.Fd()):
		return fmt.Errorf("%w: the output is none", ErrNoTerminal)
	case name == "dumb" || name == "":
		return fmt.Errorf("%w: TERM is %q", ErrNoTerminal, name)
	}
	return nil
}

// fps bounds how often the terminal is written to. Nobody reads faster, and an
// idle program wakes no more often than this.
const fps = 20

// Run shows the TUI until the person leaves it or ctx ends. It needs no daemon
// to begin with: one that is away, now or later, is shown and waited for.
func Run(ctx context.Context, o Options) error {
	if err := Usable(o.Input, o.Output, o.Env); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	look := theme.Detect(o.Theme, o.Env, func() (bool, bool) { return theme.Ask(o.Input, o.Output, theme.AskLimit) })
	out := &writer{File: o.Output}
	m := New(ctx, o)
	m.look = theme.New(look, theme.Depths(o.Env))
	m.out = out
	if w, h, err := term.GetSize(o.Output.Fd()); err == nil {
		m.w, m.h = w, h
		if err := out.paint(m.View()); err != nil {
			return err
		}
	}
	f := newFeed(o.Client, m.now)
	m.feed = f.out
	var wg sync.WaitGroup
	wg.Go(func() { f.run(ctx) })
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(&reader{File: o.Input}), tea.WithOutput(out),
		tea.WithAltScreen(), tea.WithFPS(fps), tea.WithReportFocus()).Run()
	stop()
	wg.Wait()
	out.leave()
	if errors.Is(err, context.Canceled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}
