package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

// answerFlags are one answer for every item of a hold.
type answerFlags struct {
	confirm bool
	correct string
	waive   string
	approve bool
	deny    bool
	note    string
	scope   string
	revoke  bool
}

func (a *app) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer ID",
		Short: "answer a hold",
		Long: "Answers every item of a hold: with a flag the same way, without one it asks item by item.\n" +
			"ID may be the end of one, as `gettier holds` shows it. Only a person in a terminal of their own\n" +
			"may answer; the first answer wins.\n\n" +
			"An action is approved or denied: for its task (from what destroys up exactly this action, below that\n" +
			"the same programs with the same options on no other targets), or once. What cannot be read to its\n" +
			"end needs a note.\n\n" +
			"Scope task is this conversation, project is all of the project's for 24 hours (and becomes a told\n" +
			"fact), once is this turn alone.\n\n" +
			"--revoke takes back what was answered, with the fact that it became: the next time is asked anew.\n" +
			"What left by it is not undone.",
		Example: "  gettier answer 7f3 --confirm\n  gettier answer 7f3 --approve --scope once\n  gettier answer 7f3 --deny --note 'that is the only copy'\n  gettier answer 7f3 --correct 'nginx takes 1 MB'\n  gettier answer 7f3 --waive 'only a test machine' --scope once",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.revoke {
				return a.revoke(cmd, args[0])
			}
			return a.answer(cmd, args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.confirm, "confirm", false, "what is assumed is true")
	fl.StringVar(&f.correct, "correct", "", "what is true instead")
	fl.StringVar(&f.waive, "waive", "", "go on without knowing, and why")
	fl.BoolVar(&f.approve, "approve", false, "let the action happen")
	fl.BoolVar(&f.deny, "deny", false, "do not let it happen")
	fl.StringVar(&f.note, "note", "", "why, with --approve or --deny")
	fl.StringVar(&f.scope, "scope", string(lemma.ScopeTask), "task, project or once")
	fl.BoolVar(&f.revoke, "revoke", false, "take back what was answered")
	cmd.MarkFlagsMutuallyExclusive("confirm", "correct", "waive", "approve", "deny", "revoke")
	return cmd
}

// revoke takes back the answers of a hold.
func (a *app) revoke(cmd *cobra.Command, id string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	h, err := findHold(cmd, c, id)
	if err != nil {
		return err
	}
	got, err := c.RevokeAnswer(cmd.Context(), h.ID, ipc.Revocation{})
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(got)
		return nil
	}
	for _, h := range got {
		for _, it := range h.Items {
			if it.Answer != nil && it.Answer.RevokedAt != "" {
				p.line("%s taken back  %s  (hold %s)", string(it.Answer.Answer), it.Claim, words.ShortID(h.ID))
			}
		}
	}
	return nil
}

func (a *app) answer(cmd *cobra.Command, id string, f answerFlags) error {
	scope := lemma.AnswerScope(f.scope)
	switch scope {
	case lemma.ScopeTask, lemma.ScopeProject, lemma.ScopeOnce:
	default:
		return usage("%q is no scope: task, project or once", f.scope)
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	h, err := findHold(cmd, c, id)
	if err != nil {
		return err
	}
	one := ipc.ItemAnswer{Scope: scope}
	switch {
	case f.approve:
		one.Answer, one.Text = lemma.AnswerApprove, f.note
	case f.deny:
		one.Answer, one.Text = lemma.AnswerDeny, f.note
	case f.note != "":
		return usage("--note goes with --approve or --deny")
	case f.confirm:
		one.Answer = lemma.AnswerConfirm
	case cmd.Flags().Changed("correct"):
		one.Answer, one.Text = lemma.AnswerCorrect, f.correct
	case cmd.Flags().Changed("waive"):
		one.Answer, one.Text = lemma.AnswerWaive, f.waive
	}
	var items []ipc.ItemAnswer
	if one.Answer != "" {
		for _, it := range h.Items {
			one.Item = it.ID
			items = append(items, one)
		}
	} else if items, err = a.askItems(h, scope); err != nil {
		return err
	}
	got, err := c.AnswerHold(cmd.Context(), h.ID, ipc.HoldAnswer{Items: items})
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(got)
		return nil
	}
	for _, it := range got.Items {
		if it.Answer == nil {
			continue
		}
		line := string(it.Answer.Answer) + "  " + it.Claim
		if it.Answer.Text != "" {
			line += "  → " + it.Answer.Text
		}
		p.line("%s", line)
	}
	p.line("hold %s answered, scope %s", lemma.Short(got.ID, nil), string(scope))
	return nil
}

// findHold takes an id or the end of one among the open holds; an id that is not
// open goes to the daemon as it is, which says what became of it.
func findHold(cmd *cobra.Command, c *ipc.Client, id string) (lemma.Hold, error) {
	if len(id) < lemma.ShortLen-1 {
		return lemma.Hold{}, usage("%q is too short to name a hold: give at least %d characters of its id (gettier holds)", id, lemma.ShortLen-1)
	}
	for _, state := range []string{string(lemma.HoldOpen), ""} {
		l, err := c.Holds(cmd.Context(), ipc.HoldQuery{State: state, Page: ipc.Page{Limit: ipc.MaxLimit}})
		if err != nil {
			return lemma.Hold{}, err
		}
		var found []lemma.Hold
		for _, h := range l.Items {
			if h.ID == id || strings.HasSuffix(h.ID, strings.ToLower(id)) {
				found = append(found, h)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return lemma.Hold{}, usage("%q is the end of %d holds; give more of it", id, len(found))
		}
	}
	return lemma.Hold{}, &exit{code: exitFound, err: fmt.Errorf("no hold is named %q", id), hint: "gettier holds shows what waits"}
}

// askItems asks a person item by item. There is no default: an empty line asks
// again, end of input leaves the hold open.
func (a *app) askItems(h lemma.Hold, scope lemma.AnswerScope) ([]ipc.ItemAnswer, error) {
	if _, ok := terminal(a.in); !ok {
		return nil, usage("say how: --confirm, --correct TEXT or --waive REASON; an action: --approve or --deny")
	}
	in := bufio.NewReader(io.LimitReader(a.in, 64<<10))
	p := newPrinter(a.err)
	line := func(prompt string) (string, error) {
		p.w.WriteString(prompt)
		p.flush()
		s, err := in.ReadString('\n')
		if err != nil {
			return "", &exit{code: exitRefused, err: errors.New("nothing was answered, the hold stays open")}
		}
		return strings.TrimSpace(s), nil
	}
	var out []ipc.ItemAnswer
	for _, it := range h.Items {
		ans := ipc.ItemAnswer{Item: it.ID, Scope: scope}
		if it.Action != nil {
			if err := askAction(p, line, it, &ans); err != nil {
				return nil, err
			}
			out = append(out, ans)
			continue
		}
		p.line("assumed  %s", it.Claim)
		for _, t := range it.Tried {
			p.line("tried    %s", t)
		}
		for ans.Answer == "" {
			s, err := line("c confirm · r correct · w waive: ")
			if err != nil {
				return nil, err
			}
			switch s {
			case "c":
				ans.Answer = lemma.AnswerConfirm
			case "r":
				if ans.Text, err = line("what is true: "); err != nil {
					return nil, err
				}
				if ans.Text != "" {
					ans.Answer = lemma.AnswerCorrect
				}
			case "w":
				if ans.Text, err = line("why it does not matter: "); err != nil {
					return nil, err
				}
				if ans.Text != "" {
					ans.Answer = lemma.AnswerWaive
				}
			}
		}
		out = append(out, ans)
	}
	return out, nil
}

// askAction shows an action and asks for a person's word on it.
func askAction(p *printer, line func(string) (string, error), it lemma.HoldItem, ans *ipc.ItemAnswer) error {
	p.text("wants    "+it.Action.Text, "")
	if it.Action.Cut > 0 {
		p.line("         and %d bytes more, which are not shown", it.Action.Cut)
	}
	for _, c := range it.Action.Runs {
		p.text("runs     "+words.Runs(c), "")
	}
	if it.Action.Cwd != "" {
		p.text("in       "+it.Action.Cwd, "")
	}
	p.text("because  "+it.Action.Effect+": "+it.Reason, "")
	for _, t := range it.Tried {
		p.text("note     "+t, "")
	}
	if ans.Scope == lemma.ScopeProject {
		return usage("an action is approved or denied for its task or once, not for the project")
	}
	p.text("covers   "+words.Covers(*it.Action, ans.Scope), "")
	for ans.Answer == "" {
		s, err := line("a approve · d deny: ")
		if err != nil {
			return err
		}
		switch s {
		case "a":
			ans.Answer = lemma.AnswerApprove
			if it.Action.State == "ESCALATE" {
				if ans.Text, err = line("why it may run, though it cannot be read to its end: "); err != nil {
					return err
				}
				if ans.Text == "" {
					ans.Answer = ""
				}
			}
		case "d":
			ans.Answer = lemma.AnswerDeny
			if ans.Text, err = line("why (may be empty): "); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) tellCommand() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:     "tell FACT",
		Short:   "state a fact",
		Long:    "States a fact about the project you stand in, or about this machine with --scope host. A reading\nthat contradicts it wins.",
		Example: "  gettier tell 'staging runs Postgres 14' --scope project:shop\n  gettier tell 'this laptop has no GPU' --scope host",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if scope == "" {
				name, err := a.project(cmd, c)
				if err != nil {
					return err
				}
				if name == "" {
					return usage("this directory is in no registered project; add --scope host, or gettier project add")
				}
				scope = "project:" + name
			}
			f, err := c.Tell(cmd.Context(), ipc.Tell{Scope: scope, Claim: args[0]})
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(f)
				return nil
			}
			p.line("told  %s  %s", f.Scope, f.Claim)
			return nil
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "host or project:NAME (default: the project you stand in)")
	return cmd
}

func (a *app) invalidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "invalidate FACT REASON",
		Short:   "withdraw a fact",
		Example: "  gettier facts invalidate zbbb 'the server was replaced'",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := findFact(cmd, c, args[0])
			if err != nil {
				return err
			}
			f, err := c.InvalidateFact(cmd.Context(), id, ipc.Invalidation{Reason: args[1]})
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(f)
				return nil
			}
			p.line("%s  %s", string(f.Status), f.Claim)
			return nil
		},
	}
}

// findFact takes an id or the end of one among the facts that hold.
func findFact(cmd *cobra.Command, c *ipc.Client, id string) (string, error) {
	if strings.HasPrefix(id, "f_") {
		return id, nil
	}
	if len(id) < lemma.ShortLen-1 {
		return "", usage("%q is too short to name a fact: give at least %d characters of its id (gettier facts --json)", id, lemma.ShortLen-1)
	}
	l, err := c.Facts(cmd.Context(), ipc.FactQuery{Status: string(lemma.StatusActive), Page: ipc.Page{Limit: ipc.MaxLimit}})
	if err != nil {
		return "", err
	}
	found := ""
	for _, f := range l.Items {
		if !strings.HasSuffix(f.ID, strings.ToLower(id)) {
			continue
		}
		if found != "" {
			return "", usage("%q is the end of several facts; give more of it", id)
		}
		found = f.ID
	}
	if found == "" {
		return "", &exit{code: exitFound, err: fmt.Errorf("no active fact is named %q", id), hint: "gettier facts --json shows the ids"}
	}
	return found, nil
}
