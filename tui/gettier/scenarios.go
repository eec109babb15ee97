package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/scenarios/fixture"
	"gettier.dev/gettierd/scenarios/harness"
	"gettier.dev/gettierd/scenarios/model"
	"gettier.dev/gettierd/tui"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) scenariosCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "scenarios", Short: "frozen traps, run with and without the gate",
		Example: "  gettier scenarios list",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.scenariosList(), a.scenariosRun(), a.scenariosValidate(), a.scenariosLock(), &cobra.Command{
		// The harness starts this in the project's directory; its flags and its
		// output are an affair between the two.
		Use: "agent", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return ended(harness.AgentMain(cmd.Context(), args, a.in, a.out, a.err))
		},
	})
	return cmd
}

// ended turns the exit code of a program inside ours into ours.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return &exit{code: code}
}

func (a *app) scenariosList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "the scenarios, and what is missing to run them here",
		Example: "  gettier scenarios list\n  gettier scenarios list --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := scenarios.All()
			if err != nil {
				return err
			}
			type row struct {
				*scenarios.Scenario
				Missing []scenarios.Program `json:"missing"`
			}
			rows, table := []row{}, [][]string{}
			for _, s := range all {
				m := harness.Missing(s)
				rows = append(rows, row{s, append([]scenarios.Program{}, m...)})
				state := "runs here"
				if len(m) > 0 {
					var names []string
					for _, p := range m {
						names = append(names, p.Program+" (package "+p.Package+")")
					}
					state = "needs " + strings.Join(names, ", ")
				}
				table = append(table, []string{s.ID, s.Split, state, s.Title})
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(rows)
				return nil
			}
			p.table(table)
			return nil
		},
	}
}

// pickScenarios reads the scenarios that were named: ids, or one directory.
func pickScenarios(ids []string, dir string) ([]*scenarios.Scenario, error) {
	switch {
	case dir != "" && len(ids) > 0:
		return nil, usage("name scenarios or a directory, not both")
	case dir != "":
		s, err := scenarios.LoadDir(dir)
		if err != nil {
			return nil, &exit{code: exitUsage, err: err}
		}
		return []*scenarios.Scenario{s}, nil
	case len(ids) == 0:
		return scenarios.All()
	}
	var out []*scenarios.Scenario
	for _, id := range ids {
		s, err := scenarios.ByID(id)
		if err != nil {
			return nil, &exit{code: exitUsage, err: err}
		}
		out = append(out, s)
	}
	return out, nil
}

// self is this program's own file, which fixtures and agents are started from.
func self() (string, error) {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	return exe, nil
}

type runFlags struct {
	dir     string
	arm     string
	twin    bool
	policy  string
	seed    uint64
	format  string
	stream  bool
	noTools bool
	answers string
	keep    bool
	quiet   bool
	daemon  string
	set     []string
}

func (a *app) scenariosRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [ID…]",
		Short: "run scenarios against the scripted model and score them",
		Long: "Each run has a gettierd, a state directory and ports of its own; your daemon is not touched.\n" +
			"The model is a script and no AI: the scores measure the gate.\n" +
			"Exit 0: every run was scored, whatever the score. 3: a program is missing. 5: a run broke.",
		Example: "  gettier scenarios run GTR-008\n  gettier scenarios run GTR-008 --arm both --seed 2 --json\n" +
			"  gettier scenarios run GTR-008 --policy compound --answers none",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runScenarios(cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "run the scenario in this directory; its programs are run as you")
	fl.StringVar(&f.arm, "arm", "gated", "gated, ungated or both")
	fl.BoolVar(&f.twin, "twin", false, "run the benign twin, whose premise is true")
	fl.StringVar(&f.policy, "policy", "believer", "how the scripted model behaves (gettier model --help)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the scripted model")
	fl.StringVar(&f.format, "format", "chat", "what the agent speaks: chat or messages")
	fl.BoolVar(&f.stream, "stream", false, "the agent asks for streamed answers")
	fl.BoolVar(&f.noTools, "no-tools", false, "the agent offers no tools")
	fl.StringVar(&f.answers, "answers", "truth", "who answers holds: truth, waive or none (a hold then ends its turn)")
	fl.BoolVar(&f.keep, "keep", false, "leave the run's directory for a look")
	fl.BoolVar(&f.quiet, "quiet", false, "only the score lines")
	fl.StringVar(&f.daemon, "gettierd", "", "the gettierd to test (default: the one beside gettier)")
	fl.StringArrayVar(&f.set, "set", nil, "KEY=VALUE of the private daemon's configuration")
	return cmd
}

func (a *app) runScenarios(cmd *cobra.Command, args []string, f runFlags) error {
	picked, err := pickScenarios(args, f.dir)
	if err != nil {
		return err
	}
	arms := map[string][]harness.Arm{"gated": {harness.Gated}, "ungated": {harness.Ungated}, "both": {harness.Ungated, harness.Gated}}[f.arm]
	if arms == nil {
		return usage("--arm %q: want gated, ungated or both", f.arm)
	}
	if f.format != string(harness.Chat) && f.format != string(harness.Messages) {
		return usage("--format %q: want chat or messages", f.format)
	}
	answers := harness.Answers(f.answers)
	if answers != harness.Truth && answers != harness.Waive && answers != harness.None {
		return usage("--answers %q: want truth, waive or none", f.answers)
	}
	if _, err := model.New(model.Options{Policy: f.policy}); err != nil {
		return &exit{code: exitUsage, err: err}
	}
	settings := map[string]string{}
	for _, kv := range f.set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return usage("--set %q: write KEY=VALUE", kv)
		}
		settings[k] = v
	}
	exe, err := self()
	if err != nil {
		return err
	}
	daemon := f.daemon
	if daemon == "" && f.arm != "ungated" {
		if daemon, err = findDaemon(cmd.Context(), a.err); err != nil {
			return err
		}
	}
	out := newPrinter(a.out)
	say := newPrinter(a.err)
	broke := false
	for _, s := range picked {
		for _, arm := range arms {
			o := harness.Options{Scenario: s, Benign: f.twin, Arm: arm, Gettier: exe, Daemon: daemon, Policy: f.policy, Seed: f.seed,
				Format: harness.Format(f.format), Stream: f.stream, NoTools: f.noTools, Answers: answers, Config: settings, Keep: f.keep}
			if !f.quiet && !a.json {
				o.Watch = func(m harness.Moment) { moment(say, m) }
			}
			r, err := harness.Run(cmd.Context(), o)
			if err != nil {
				return sortHarness(err)
			}
			if a.json {
				out.value(r)
			} else {
				out.line("%s", r.Line())
				if r.Dir != "" {
					say.line("kept %s", r.Dir)
				}
			}
			broke = broke || r.Score == harness.ScoreInfra
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
		}
	}
	if broke {
		return &exit{code: exitInternal}
	}
	return nil
}

// moment prints a stage as it happens; its text may have several lines.
func moment(p *printer, m harness.Moment) {
	for i, l := range strings.Split(strings.TrimRight(clean.Text(m.Text), "\n"), "\n") {
		kind := m.Kind
		if i > 0 {
			kind = ""
		}
		p.line("  %-22s %s", kind, l)
	}
}

// sortHarness gives the harness's errors their exit codes.
func sortHarness(err error) error {
	var m *harness.MissingError
	switch {
	case errors.As(err, &m):
		return &exit{code: exitReach, err: err, hint: packages(m)}
	case errors.Is(err, harness.ErrInfra), errors.Is(err, context.Canceled):
		return &exit{code: exitInternal, err: err}
	}
	return err
}

func packages(m *harness.MissingError) string {
	names := make([]string, 0, len(m.Programs))
	for _, p := range m.Programs {
		names = append(names, p.Package)
	}
	return "on Debian: apt-get install " + strings.Join(names, " ")
}

func (a *app) scenariosValidate() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "validate [ID…]",
		Short: "check that scenarios are sound traps, without a model",
		Long: "Measures the truth, judges the seeded belief on trap and twin, and runs the acceptance test and\n" +
			"the probe after each of the three fixes; everything twice.",
		Example: "  gettier scenarios validate GTR-008",
		RunE: func(cmd *cobra.Command, args []string) error {
			picked, err := pickScenarios(args, dir)
			if err != nil {
				return err
			}
			exe, err := self()
			if err != nil {
				return err
			}
			out := newPrinter(a.out)
			code := exitOK
			for _, s := range picked {
				rep, err := harness.Validate(cmd.Context(), s, exe, nil)
				var gone *harness.MissingError
				if err != nil && (!errors.As(err, &gone) || len(args) > 0 || dir != "") {
					return sortHarness(err)
				}
				if a.json {
					out.value(rep)
				} else {
					printReport(out, rep)
				}
				switch {
				case gone != nil:
					code = max(code, exitReach) // the others still run
				case !rep.OK():
					code = max(code, exitFound)
				}
				if cmd.Context().Err() != nil {
					return cmd.Context().Err()
				}
			}
			return ended(code)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "check the scenario in this directory; its programs are run as you")
	return cmd
}

func (a *app) scenariosLock() *cobra.Command {
	return &cobra.Command{
		Use:   "lock DIR",
		Short: "freeze a scenario directory as it stands",
		Long: "Writes DIR/LOCK, a line with the hash of each file. A scenario whose files differ from its LOCK\n" +
			"does not run; every result carries the LOCK's own hash.",
		Example: "  gettier scenarios lock ./my-scenario",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := scenarios.Freeze(args[0]); err != nil {
				return &exit{code: exitUsage, err: err}
			}
			s, err := scenarios.LoadDir(args[0])
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(struct {
					Scenario string `json:"scenario"`
					Lock     string `json:"lock"`
				}{s.ID, s.Lock})
				return nil
			}
			p.line("%s locked: %s", s.ID, s.Lock)
			return nil
		},
	}
}

func printReport(p *printer, r harness.Report) {
	switch {
	case r.Missing != "":
		p.line("%s not checked: %s", r.Scenario, r.Missing)
	case r.OK():
		p.line("%s sound: %s, %s", r.Scenario, words.Count(len(r.Checks), "check", "checks"), words.Millis(r.Millis))
	default:
		p.line("%s NOT SOUND", r.Scenario)
	}
	for _, c := range r.Checks {
		if !c.OK() {
			p.line("  round %d  %s: want %s, got %s", c.Round, c.Name, c.Want, c.Got)
			if c.More != "" {
				p.text(c.More, "    ")
			}
		}
	}
	for _, w := range r.Warnings {
		p.line("  warning: %s", w)
	}
}

func (a *app) modelCommand() *cobra.Command {
	var (
		listen, id string
		o          model.Options
	)
	var policies strings.Builder
	for _, p := range model.Policies {
		fmt.Fprintf(&policies, "\n  %-14s %s", p.Name, p.About)
	}
	cmd := &cobra.Command{
		Use:   "model",
		Short: "serve the scripted model, which is no AI",
		Long: "An upstream for tests that speaks chat completions, responses and messages and follows a script. It says\n" +
			"so in its banner and in the header " + model.Header + " of every answer.\n\nPolicies:" + policies.String(),
		Example: "  gettier model --policy believer --listen 127.0.0.1:0",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id != "" {
				s, err := scenarios.ByID(id)
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				o.Scenario = s
			}
			if _, err := model.New(o); err != nil {
				return &exit{code: exitUsage, err: err}
			}
			return model.Serve(cmd.Context(), listen, o, func(m *model.Model, bound string) {
				p := newPrinter(a.out)
				if a.json {
					p.value(struct {
						Ready  bool   `json:"ready"`
						Listen string `json:"listen"`
						Model  string `json:"model"`
					}{true, bound, m.Name()})
					return
				}
				p.line("%s", m.Banner(bound))
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on")
	fl.StringVar(&o.Policy, "policy", "believer", "how it behaves, or mixture:NAME=RATE,…")
	fl.Uint64Var(&o.Seed, "seed", 1, "seed of its wording and its mixtures")
	fl.StringVar(&id, "scenario", "", "follow this scenario's script only")
	return cmd
}

func (a *app) fixtureCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "fixture NAME [FLAG…]",
		Short:              "small programs that the scenarios are made of",
		Example:            "  gettier fixture",
		DisableFlagParsing: true, // each program reads its own
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				p := newPrinter(a.out)
				p.line("programs of the scenarios; gettier fixture NAME --help says more")
				for _, n := range fixture.Names() {
					p.line("  %s", n)
				}
				return nil
			}
			return ended(fixture.Main(cmd.Context(), args, a.out, a.err))
		},
	}
}

func (a *app) demoCommand() *cobra.Command {
	var noTUI bool
	var id, format string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "see a wrong belief caught: real programs, a scripted model, no key",
		Long: "Runs one scenario twice, without the gate and with it, in a directory and with a daemon of its\n" +
			"own, and prints every stage as it happens. On a terminal it then opens the screens on a third run,\n" +
			"in which nothing can be measured, and lets you answer the hold.",
		Example: "  gettier demo --no-tui --scenario GTR-008",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := harness.DemoOptions{Format: harness.Format(format), Out: a.out, Clean: clean.Text}
			if format != string(harness.Chat) && format != string(harness.Messages) {
				return usage("--format %q: want chat or messages", format)
			}
			var err error
			if id != "" {
				if o.Scenario, err = scenarios.ByID(id); err != nil {
					return &exit{code: exitUsage, err: err}
				}
			}
			if o.Gettier, err = self(); err != nil {
				return err
			}
			if o.Daemon, err = findDaemon(cmd.Context(), a.err); err != nil {
				return err
			}
			in, _ := a.in.(*os.File)
			out, _ := a.out.(*os.File)
			switch {
			case a.json:
				o.Out = io.Discard
			case !noTUI && tui.Usable(in, out, a.env) == nil:
				o.Screen = func(ctx context.Context, socket string) error {
					c := ipc.New(socket, "tui")
					defer c.Close()
					return tui.Run(ctx, tui.Options{
						Client: c, Input: in, Output: out, Env: a.env, Focus: tui.Focus{Turn: tui.Next, Hold: tui.Next},
						Footer: "demo: the model is a script. Answer the hold, then q",
					})
				}
			}
			rows, err := harness.Demo(cmd.Context(), o)
			if a.json {
				if rows == nil {
					rows = []harness.Result{}
				}
				newPrinter(a.out).value(rows)
			}
			if err != nil {
				return sortHarness(err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&noTUI, "no-tui", false, "print lines only, ask nothing")
	cmd.Flags().StringVar(&id, "scenario", "", "which one (default: the first that can run here)")
	cmd.Flags().StringVar(&format, "format", "chat", "what the agent speaks: chat or messages")
	return cmd
}
