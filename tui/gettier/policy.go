package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/replay"
	"gettier.dev/gettierd/daemon/action/strict"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

// maxRecordFile bounds a file of recorded actions, in bytes.
const maxRecordFile = 256 << 20

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "the rules of the action gate",
		Example: "  gettier policy show",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.policyShow(), a.policyLint(), a.policyReplay())
	return cmd
}

// readBounded reads a whole file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("read %s: %w", path, err)}
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, &exit{code: exitUsage, err: fmt.Errorf("read %s: %w", path, err)}
	}
	if int64(len(b)) > most {
		return nil, usage("%s is larger than %d bytes", path, most)
	}
	return b, nil
}

// policyFile reads a policy; faults are printed, all of them, and end the command.
func (a *app) policyFile(path string) (*action.Policy, error) {
	if path == "" {
		return action.Default(), nil
	}
	data, err := readBounded(path, strict.MaxBytes)
	if err != nil {
		return nil, err
	}
	p, doc := action.ParsePolicy(data)
	if p != nil {
		return p, nil
	}
	if _, err := io.WriteString(a.err, clean.Text(doc.Text(path))); err != nil {
		return nil, fmt.Errorf("write faults: %w", err)
	}
	return nil, &exit{code: exitUsage, err: fmt.Errorf("read policy %s: %s", path, words.Count(len(doc.Problems), "fault", "faults"))}
}

func (a *app) policyShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE]",
		Short: "print a whole policy, what the file leaves out filled in",
		Long: "Without a file the built-in policy is shown, which is in force where no file is. What is printed\n" +
			"is a policy file itself, and has the same fingerprint as FILE.",
		Example: "  gettier policy show\n  gettier policy show --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.policyFile(arg(args))
			if err != nil {
				return err
			}
			if a.json {
				newPrinter(a.out).value(struct {
					Fingerprint string       `json:"fingerprint"`
					Policy      action.Terms `json:"policy"`
				}{p.Fingerprint(), p.Terms})
				return nil
			}
			text, err := p.YAML()
			if err != nil {
				return err
			}
			if _, err := io.WriteString(a.out, "# fingerprint "+p.Fingerprint()+"\n"+clean.Text(string(text))); err != nil {
				return fmt.Errorf("write policy: %w", err)
			}
			return nil
		},
	}
}

func arg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func (a *app) policyLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE",
		Short: "find every fault of a policy file, its rules' examples included",
		Long: "Prints each fault with line and column, and what was probably meant. A rule's match and\n" +
			"not_match examples are tried. Exit 0: no fault; 1: faults.",
		Example: "  gettier policy lint policy.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := readBounded(args[0], strict.MaxBytes)
			if err != nil {
				return err
			}
			p, doc := action.ParsePolicy(data)
			if a.json {
				problems := doc.Problems
				if problems == nil {
					problems = []strict.Problem{}
				}
				newPrinter(a.out).value(struct {
					Problems []strict.Problem `json:"problems"`
				}{problems})
			} else if p == nil {
				if _, err := io.WriteString(a.out, clean.Text(doc.Text(args[0]))); err != nil {
					return fmt.Errorf("write faults: %w", err)
				}
			} else {
				newPrinter(a.out).line("%s: no fault, fingerprint %.16s, %s", args[0], p.Fingerprint(), words.Count(len(p.Rules), "rule", "rules"))
			}
			if p == nil {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
}

func (a *app) policyReplay() *cobra.Command {
	var candidate, base string
	cmd := &cobra.Command{
		Use:   "replay --candidate FILE [RECORDS]",
		Short: "show what another policy would have decided",
		Long: "RECORDS holds an action a line, as for gettier decide --jsonl. What would be let through more\n" +
			"easily and what less easily is counted apart. The candidate also judges a built-in list of\n" +
			"adversarial actions. Nothing runs, and the disk of then is not asked. Exit 0: none of these is\n" +
			"let through more easily than it may be; 1: some are.",
		Example: "  gettier policy replay --candidate policy.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if candidate == "" {
				return usage("--candidate names the policy file to try")
			}
			was, err := a.policyFile(base)
			if err != nil {
				return err
			}
			is, err := a.policyFile(candidate)
			if err != nil {
				return err
			}
			var records []replay.Record
			if len(args) == 1 {
				data, err := readBounded(args[0], maxRecordFile)
				if err != nil {
					return err
				}
				if records, err = replay.Read(data); err != nil {
					return &exit{code: exitUsage, err: err}
				}
			}
			corpus, err := replay.Adversarial()
			if err != nil {
				return err
			}
			r, err := replay.Run(was, is, records, corpus)
			if err != nil && !errors.Is(err, replay.ErrNothingRefused) {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(r)
			} else {
				printReplay(p, r)
			}
			if err != nil {
				return &exit{code: exitFound, err: err}
			}
			if len(r.Regressed) > 0 {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&candidate, "candidate", "", "the policy file to try")
	cmd.Flags().StringVar(&base, "base", "", "the policy file to compare with, the built-in policy without it")
	return cmd
}

func printReplay(p *printer, r replay.Report) {
	p.line("%s by %.16s instead of %.16s", words.Count(r.Records, "action", "actions"), r.Candidate, r.Base)
	p.line("loosened   %d", r.Loosened)
	p.line("tightened  %d", r.Tightened)
	for _, c := range r.Changes {
		p.line("  %s → %s  %s", c.From, c.To, brief(c.Action))
	}
	for _, phase := range []action.Phase{action.PhaseFull, action.PhaseHardDeny, action.PhaseShadow} {
		p.line("in phase %-9s  %d of them would go on although the decision is not ALLOW", phase, r.Phases[phase])
	}
	p.line("adversarial actions: %d, let through more easily than they may be: %d", r.Adversarial, len(r.Regressed))
	for _, c := range r.Regressed {
		p.line("  %s, at least %s  %s", c.To, c.From, brief(c.Action))
	}
}

// brief is an action in one line.
func brief(a action.Action) string {
	switch {
	case a.Command != "":
		return clean.Cut(a.Command, 120)
	case len(a.Argv) > 0:
		return clean.Cut(words.Argv(a.Argv), 120)
	case a.Tool != "":
		return clean.Cut(a.Tool+" "+string(a.Args), 120)
	}
	return clean.Cut(a.Raw, 120)
}
