package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger"
)

// Exit codes, the same for every command.
const (
	exitOK       = 0
	exitFound    = 1 // the command worked and found something wrong
	exitUsage    = 2
	exitReach    = 3 // the daemon cannot be reached, or a program is missing
	exitRefused  = 4
	exitInternal = 5
)

// app is what every command shares: its streams, its environment and where the
// daemon is.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      []string
	now      func() time.Time
	signal   func(pid int, s syscall.Signal) error
	exec     func(path string, argv, env []string) error // becomes another program
	hide     func() (show func() error, err error)       // closes our memory to other processes; nil does not
	// lookAt looks at a ledger file in another process; nil looks in this one.
	lookAt func(ctx context.Context, file string, o ledger.InspectOptions) (ledger.Health, error)
	// person says why this is no person's call; nil takes everybody for one.
	person func() error

	json   bool
	socket string // --socket
	state  string // --state
	began  bool   // a command ran: from here on errors are not about usage
}

// exit ends a command with a code; err may be nil when everything was said.
type exit struct {
	code int
	err  error
	hint string
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usage(format string, a ...any) error {
	return &exit{code: exitUsage, err: fmt.Errorf(format, a...)}
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, env []string) *app {
	return &app{in: stdin, out: stdout, err: stderr, env: env, now: time.Now, signal: syscall.Kill, exec: syscall.Exec, lookAt: lookInChild, person: ownPerson}
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.report(ctx, root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "gettier",
		Short: "keeps AI agents from acting on false premises",
		Long: "gettier talks to gettierd, which stands between your agent and its model, measures what the\n" +
			"agent takes for granted on this machine, and corrects it before it acts.",
		Example:       "  gettier\n  gettier status --json",
		Args:          cobra.NoArgs,
		Version:       facts().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.RunE = a.runScreen(c.Flags().String("theme", "auto", "the screen's colours: auto, dark, light or none"))
	f := c.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.socket, "socket", "", "the daemon's socket (default: where gettierd puts it)")
	f.StringVar(&a.state, "state", "", "the daemon's state directory, when it is not the usual one")
	c.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra looks at these after this call, when a fault would count as the command's.
		err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		a.began = err == nil
		return err
	}
	c.AddCommand(
		a.hookCommand(), a.mcpCommand(), a.reportCommand(),
		a.statusCommand(), a.upCommand(), a.downCommand(), a.runCommand(), a.envCommand(), a.holdsCommand(), a.answerCommand(), a.tellCommand(), a.factsCommand(), a.turnsCommand(), a.whyCommand(), a.weekCommand(),
		a.eventsCommand(), a.sensorsCommand(), a.redactCommand(), a.decideCommand(), a.classifyCommand(), a.policyCommand(), a.warmupCommand(), a.auditCommand(), a.ledgerCommand(), a.keyCommand(), a.projectCommand(), a.configCommand(),
		a.scenariosCommand(), a.modelCommand(), a.demoCommand(), a.fixtureCommand(), a.versionCommand(),
	)
	c.AddCommand(a.knowledgeCommand(), a.forgetCommand())
	return c
}

// report says what went wrong, once, and picks the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	code, hint := a.sort(ctx, err)
	var e *exit
	if errors.As(err, &e) && e.err == nil {
		return code
	}
	if a.json {
		newPrinter(a.err).value(struct {
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
			Exit  int    `json:"exit"`
		}{err.Error(), hint, code})
		return code
	}
	p := newPrinter(a.err)
	p.text("gettier: "+err.Error(), "")
	if hint != "" {
		p.text(hint, "  ")
	}
	return code
}

// sort finds the exit code and what to do next.
func (a *app) sort(ctx context.Context, err error) (code int, hint string) {
	var (
		e *exit
		u *ipc.Unreachable
		f *ipc.Foreign
		p *ipc.Problem
	)
	switch {
	case errors.As(err, &e):
		return e.code, e.hint
	case errors.As(err, &u):
		return exitReach, "start it: gettier up"
	case errors.As(err, &f):
		return exitRefused, "name your own daemon's socket with --socket, or start one: gettier up"
	case errors.As(err, &p):
		return problemCode(p.Status), p.Hint
	case ctx.Err() != nil:
		return exitInternal, ""
	case missing(err):
		return exitReach, ""
	case !a.began:
		return exitUsage, "see gettier --help"
	}
	return exitInternal, ""
}

func problemCode(status int) int {
	switch status {
	case 400, 404, 405, 413, 415, 422:
		return exitUsage
	case 403, 409:
		return exitRefused
	case 503:
		return exitReach
	}
	return exitInternal
}

// layout is where this installation's files are, flags counted in.
func (a *app) layout() (config.Layout, error) {
	l := config.Paths(a.env)
	if a.state != "" {
		dir, err := filepath.Abs(a.state)
		if err != nil {
			return l, fmt.Errorf("find state directory: %w", err)
		}
		l = l.InState(dir)
	}
	if a.socket != "" {
		s, err := filepath.Abs(a.socket)
		if err != nil {
			return l, fmt.Errorf("find socket: %w", err)
		}
		l.Socket = s
	}
	return l, nil
}

// client connects nothing yet; the first call does.
func (a *app) client() (*ipc.Client, error) {
	l, err := a.layout()
	if err != nil {
		return nil, err
	}
	return ipc.New(l.Socket, "cli"), nil
}

// here is the working directory with links resolved.
func here() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find working directory: %w", err)
	}
	real, err := filepath.EvalSymlinks(wd)
	if err != nil {
		return "", fmt.Errorf("find working directory: %w", err)
	}
	return real, nil
}
