package main

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

func itoa(n int) string { return strconv.Itoa(n) }

// pageFlags adds the flags that every list has.
func pageFlags(cmd *cobra.Command, p *ipc.Page) {
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "how many at most")
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", "go on where an earlier page ended")
}

// more says how to see the rest.
func more(p *printer, next string) {
	if next != "" {
		p.line("… more: --cursor %s", next)
	}
}

func (a *app) holdsCommand() *cobra.Command {
	var q ipc.HoldQuery
	cmd := &cobra.Command{
		Use:     "holds",
		Short:   "what waits for an answer",
		Example: "  gettier holds\n  gettier holds --only answered --limit 5",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if q.State == "all" {
				q.State = ""
			}
			l, err := c.Holds(cmd.Context(), q)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(l)
				return nil
			}
			if len(l.Items) == 0 {
				p.line("no holds")
				return nil
			}
			a.printHolds(p, l.Items)
			more(p, l.NextCursor)
			return nil
		},
	}
	cmd.Flags().StringVar(&q.State, "only", "open", "open, answered, expired, cancelled or all")
	pageFlags(cmd, &q.Page)
	return cmd
}

func (a *app) printHolds(p *printer, holds []lemma.Hold) {
	ids := make([]string, len(holds))
	for i, h := range holds {
		ids[i] = h.ID
	}
	for i, h := range holds {
		if i > 0 {
			p.line("")
		}
		left := ""
		if exp, err := time.Parse(time.RFC3339Nano, h.ExpiresAt); err == nil && h.State == lemma.HoldOpen {
			left = "  " + words.Span(max(0, exp.Sub(a.now()))) + " left"
		}
		p.line("%s  %s  %s  %s  %s%s", lemma.Short(h.ID, ids), string(h.State), h.Agent, h.Scope, a.stamp(h.OpenedAt), left)
		if h.PlanSummary != "" {
			p.line("  plan     %s", h.PlanSummary)
		}
		for _, it := range h.Items {
			if act := it.Action; act != nil {
				p.hang("  wants    ", act.Text)
				for _, c := range act.Runs {
					p.hang("           runs ", words.Runs(c))
				}
				p.line("           in %s", words.Or(act.Cwd, "a directory that is not known"))
				p.line("           %s: %s", act.Effect, it.Reason)
			} else {
				p.line("  assumes  %s", it.Claim)
				p.line("           %s: %s", string(it.Verdict), it.Reason)
			}
			for _, t := range it.Tried {
				p.line("           tried %s", t)
			}
			if an := it.Answer; an != nil {
				p.line("           answered %s by %s via %s  %s", string(an.Answer), words.Person(an.By), an.By.Via, an.Text)
			}
		}
	}
}

func (a *app) factsCommand() *cobra.Command {
	var q ipc.FactQuery
	cmd := &cobra.Command{
		Use:     "facts [TEXT]",
		Short:   "what is known about this system, and the knowledge that is kept",
		Example: "  gettier facts\n  gettier facts proxy --status active\n  gettier facts --provenance told --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if len(args) == 1 {
				q.Text = args[0]
			}
			l, err := c.Facts(cmd.Context(), q)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(l)
				return nil
			}
			kept, err := knowledgeBeside(cmd.Context(), c, q, l)
			if err != nil {
				return err
			}
			if len(l.Items)+len(kept) == 0 {
				p.line("no facts")
				return nil
			}
			rows := [][]string{{"", "STATUS", "SCOPE", "SUBJECT", "KEY", "VALUE", "SINCE"}}
			for _, f := range l.Items {
				subject, _, _ := strings.Cut(f.Subject, "@")
				value := f.Value + f.Unit
				if f.Key == "" || value == "" {
					value = f.Claim
				}
				rows = append(rows, []string{words.Provenance(f.Provenance), string(f.Status), f.Scope, subject, f.Key, value, a.stamp(f.CreatedAt)})
			}
			for _, k := range kept {
				rows = append(rows, []string{words.Provenance(lemma.Told), "kept", k.Scope, "knowledge", strings.Join(k.Topics, ", "), k.Text, a.stamp(k.ChangedAt)})
			}
			p.table(rows)
			more(p, l.NextCursor)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&q.Scope, "scope", "", "host or project:NAME")
	fl.StringVar(&q.Status, "status", "", "active, stale, contradicted or invalidated")
	fl.StringVar(&q.Provenance, "provenance", "", "measured, told or believed")
	pageFlags(cmd, &q.Page)
	cmd.AddCommand(a.invalidateCommand())
	return cmd
}
func (a *app) turnsCommand() *cobra.Command {
	var (
		q        ipc.TurnQuery
		evidence bool
		request  bool
	)
	cmd := &cobra.Command{
		Use:   "turns [ID]",
		Short: "what went through, and the whole story of one turn",
		Long: "Without an argument: the newest turns. With the end of an id, or \"last\": what was injected,\n" +
			"declared, measured, judged and decided in it, stage by stage.",
		Example: "  gettier turns\n  gettier turns --decision caught\n  gettier turns last\n  gettier turns last --evidence\n  gettier turns last --request",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if len(args) == 1 {
				id, err := resolveTurn(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				d, err := c.Turn(cmd.Context(), id)
				if err != nil {
					return err
				}
				if request {
					return a.request(cmd.Context(), c, d)
				}
				return a.story(cmd.Context(), c, d, evidence)
			}
			l, err := c.Turns(cmd.Context(), q)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(l)
				return nil
			}
			if len(l.Items) == 0 {
				p.line("no turns yet: point an agent's base URL at the proxy (gettier status)")
				return nil
			}
			ids := make([]string, len(l.Items))
			for i, t := range l.Items {
				ids[i] = t.ID
			}
			rows := [][]string{{"TURN", "AT", "AGENT", "SCOPE", "CLASS", "DECISION", "TOOK", "PROMPT"}}
			for _, t := range l.Items {
				took := ""
				if d, ok := words.Between(t.OpenedAt, t.ClosedAt); ok {
					took = words.Millis(d.Milliseconds())
				}
				rows = append(rows, []string{lemma.Short(t.ID, ids), a.stamp(t.OpenedAt), t.Agent, t.Scope, string(t.Class), words.Decision(t.Decision), took, words.Asked(t.RequestKind, t.Prompt)})
			}
			p.table(rows, 6)
			more(p, l.NextCursor)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&q.Scope, "scope", "", "host or project:NAME")
	fl.StringVar(&q.Conversation, "conversation", "", "only this conversation")
	fl.StringVar(&q.Decision, "decision", "", "caught, held, released, …")
	fl.StringVar(&q.Agent, "agent", "", "only this agent")
	fl.BoolVar(&evidence, "evidence", false, "with ID: print what the sensors printed")
	fl.BoolVar(&request, "request", false, "with ID: print the request as it was kept, redacted, and nothing else")
	pageFlags(cmd, &q.Page)
	return cmd
}

// resolveTurn turns what people type into a full id: "last", the end of an id,
// or the id itself.
func resolveTurn(ctx context.Context, c *ipc.Client, arg string) (string, error) {
	if len(arg) == 28 && strings.HasPrefix(arg, "t_") {
		return arg, nil
	}
	q := ipc.TurnQuery{Page: ipc.Page{Limit: ipc.MaxLimit}}
	if arg == "last" {
		q.Limit = 1
	} else if len(arg) < 3 {
		return "", usage("turn %q: name at least the last three characters of its id", arg)
	}
	// The newest ten thousand are enough for what was on a screen.
	for range 10 {
		l, err := c.Turns(ctx, q)
		if err != nil {
			return "", err
		}
		var hits []string
		for _, t := range l.Items {
			if arg == "last" || strings.HasSuffix(t.ID, strings.ToLower(arg)) {
				hits = append(hits, t.ID)
			}
		}
		switch {
		case len(hits) == 1:
			return hits[0], nil
		case len(hits) > 1:
			sort.Strings(hits)
			return "", usage("turn %q: several end so: %s", arg, strings.Join(hits, " "))
		case arg == "last":
			return "", usage("there are no turns yet")
		case l.NextCursor == "":
			return "", usage("turn %q: none ends so", arg)
		}
		q.Cursor = l.NextCursor
	}
	return "", usage("turn %q: not among the newest %d; give the whole id", arg, 10*ipc.MaxLimit)
}

func (a *app) eventsCommand() *cobra.Command {
	var (
		since int64
		kinds []string
		n     int
	)
	cmd := &cobra.Command{
		Use:   "events",
		Short: "follow the chain, one JSON line each",
		Long: "Prints every entry of the chain as it lands. Goes on by itself when the daemon comes back.\n" +
			"Ends with ctrl-c, or after --count entries.",
		Example: "  gettier events --since 0 --count 3\n  gettier events --since 0 --kinds 'turn.*,gate.decided' --count 1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			var from *uint64
			if cmd.Flags().Changed("since") {
				if since < 0 {
					return usage("--since must be a sequence number")
				}
				s := uint64(since)
				from = &s
			}
			// Without a daemon there is nothing to follow yet: that is an error
			// here, while one that goes away later is waited for.
			if _, err := c.Status(cmd.Context()); err != nil {
				return err
			}
			p, seen := newPrinter(a.out), 0
			for e, err := range c.Watch(cmd.Context(), from, kinds...) {
				if err != nil {
					if code, _ := a.sort(cmd.Context(), err); code == exitUsage || code == exitRefused {
						return err
					}
					newPrinter(a.err).line("gettier: %s; trying again", err)
					continue
				}
				p.value(e)
				if seen++; n > 0 && seen >= n {
					return nil
				}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&since, "since", 0, "first replay what came after this entry")
	fl.StringSliceVar(&kinds, "kinds", nil, "only these kinds, or families like turn.*")
	fl.IntVar(&n, "count", 0, "stop after so many")
	return cmd
}

// needsSubcommand is for commands that only group others.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if len(args) > 0 {
		return usage("%s has no %q, only %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
	}
	return usage("%s what? One of %s", cmd.CommandPath(), strings.Join(names, ", "))
}
