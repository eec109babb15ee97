package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/story"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why [TURN]",
		Short: "what the newest turn rested on, and how to see it yourself",
		Long: "On one screen: what was assumed, what was measured and by which rule, the command that shows\n" +
			"it, who answered, which actions were stopped, and what the model was told. Without an argument:\n" +
			"the newest turn in which something was judged, asked or stopped.",
		Example: "  gettier why\n  gettier why last --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id := ""
			if len(args) == 1 {
				id, err = resolveTurn(cmd.Context(), c, args[0])
			} else {
				id, err = notable(cmd.Context(), c)
			}
			if err != nil {
				return err
			}
			d, err := c.Turn(cmd.Context(), id)
			if err != nil {
				return err
			}
			p, why := newPrinter(a.out), story.Why(d)
			if a.json {
				p.value(struct {
					ipc.Turn
					Why []story.Reason `json:"why"`
				}{d.Turn, why})
				return nil
			}
			for _, l := range story.Head(d, story.Options{Stamp: a.stamp}) {
				p.hang("", l)
			}
			for _, r := range why {
				p.hang(fmt.Sprintf("  %-9s ", r.Label), r.Text)
			}
			p.line("all of it: gettier turns %s", words.ShortID(d.ID))
			return nil
		},
	}
}

// notable is the newest turn that a person may wonder about, else the newest.
func notable(ctx context.Context, c *ipc.Client) (string, error) {
	l, err := c.Turns(ctx, ipc.TurnQuery{Page: ipc.Page{Limit: 200}})
	if err != nil {
		return "", err
	}
	if len(l.Items) == 0 {
		return "", usage("there are no turns yet")
	}
	for _, t := range l.Items {
		if decisive(t.Decision) || t.Counts != (lemma.Counts{}) {
			return t.ID, nil
		}
	}
	return l.Items[0].ID, nil
}

// week is what the gate did, and what it cost.
type week struct {
	Since     string `json:"since"`
	Prompts   int    `json:"prompts"`
	Requests  int    `json:"requests"`
	Corrected int    `json:"corrected"`
	Stopped   int    `json:"stopped"`
	Asked     int    `json:"asked"`
	Answered  int    `json:"answered"`
	// Median is the time from a question to its answer, in milliseconds.
	Median int64       `json:"median_answer_ms"`
	Client lemma.Usage `json:"usage_client"`
	Ours   lemma.Usage `json:"usage_ours"`
	// Extra is what our own passes cost, in percent of what the clients' cost.
	Extra float64  `json:"extra_percent"`
	Turns []string `json:"turns"` // those that were corrected, stopped or asked about
}

func (a *app) weekCommand() *cobra.Command {
	days := 7
	cmd := &cobra.Command{
		Use:   "week",
		Short: "what the gate did in the last seven days, and what it cost",
		Long: "Tokens are weighted as providers price them: output 5, cached input 0.1, input written to the\n" +
			"cache 1.25, other input 1.",
		Example: "  gettier week\n  gettier week --days 1 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > 366 {
				return usage("--days %d: between 1 and 366", days)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			since := a.now().Add(-time.Duration(days) * 24 * time.Hour)
			w, rows, err := a.sum(cmd.Context(), c, since)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(w)
				return nil
			}
			p.line("%s", w.String())
			if len(rows) > 0 {
				p.table(append([][]string{{"TURN", "AT", "AGENT", "SCOPE", "DECISION", "PROMPT"}}, rows...))
				p.line("why: gettier why TURN")
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&days, "days", days, "how many days to look back")
	return cmd
}

// sum adds up the turns and questions since then.
func (a *app) sum(ctx context.Context, c *ipc.Client, since time.Time) (week, [][]string, error) {
	w := week{Since: lemma.Time(since), Turns: []string{}}
	var notable []ipc.Turn
	tq := ipc.TurnQuery{Page: ipc.Page{Limit: ipc.MaxLimit}}
	for more := true; more; {
		l, err := c.Turns(ctx, tq)
		if err != nil {
			return w, nil, err
		}
		for _, t := range l.Items {
			if at, ok := words.Time(t.OpenedAt); !ok || at.Before(since) {
				l.NextCursor = ""
				break
			}
			w.take(t)
			if decisive(t.Decision) {
				notable = append(notable, t)
			}
		}
		tq.Cursor, more = l.NextCursor, l.NextCursor != ""
	}
	hq := ipc.HoldQuery{Page: ipc.Page{Limit: ipc.MaxLimit}}
	var took []time.Duration
	for more := true; more; {
		l, err := c.Holds(ctx, hq)
		if err != nil {
			return w, nil, err
		}
		for _, h := range l.Items {
			opened, ok := words.Time(h.OpenedAt)
			if !ok || opened.Before(since) {
				continue
			}
			w.Asked++
			for _, it := range h.Items {
				if it.Answer == nil {
					continue
				}
				if at, ok := words.Time(it.Answer.At); ok {
					took = append(took, at.Sub(opened))
					break
				}
			}
		}
		hq.Cursor, more = l.NextCursor, l.NextCursor != ""
	}
	if w.Answered = len(took); w.Answered > 0 {
		slices.Sort(took)
		w.Median = took[len(took)/2].Milliseconds()
	}
	if all := weigh(w.Client); all > 0 {
		w.Extra = weigh(w.Ours) / all * 100
	}
	ids := make([]string, len(notable))
	for i, t := range notable {
		ids[i] = t.ID
	}
	w.Turns = append(w.Turns, ids...)
	var rows [][]string
	for _, t := range notable {
		rows = append(rows, []string{lemma.Short(t.ID, ids), a.stamp(t.OpenedAt), t.Agent, t.Scope, words.Decision(t.Decision), words.Asked(t.RequestKind, t.Prompt)})
	}
	return w, rows, nil
}

// take counts one turn.
func (w *week) take(t ipc.Turn) {
	w.Requests++
	if t.RequestKind == "new" {
		w.Prompts++
	}
	switch t.Decision {
	case lemma.DecCaught, lemma.DecCorrected:
		w.Corrected++
	case lemma.DecBlocked:
		w.Stopped++
	}
	w.Client, w.Ours = w.Client.Add(t.UsageClient), w.Ours.Add(t.UsageOurs)
}

// decisive reports whether a turn went otherwise than it would have alone.
func decisive(d lemma.Decision) bool {
	switch d {
	case lemma.DecCaught, lemma.DecCorrected, lemma.DecBlocked, lemma.DecHeld, lemma.DecConfirmedByUser:
		return true
	}
	return false
}

// weigh is a use of tokens in units of the price of one input token.
func weigh(u lemma.Usage) float64 {
	return float64(u.Input) + 5*float64(u.Output) + .1*float64(u.CacheRead) + 1.25*float64(u.CacheCreate)
}

func (w week) String() string {
	asked := fmt.Sprintf("%d asked", w.Asked)
	if w.Answered > 0 {
		asked += fmt.Sprintf(" (median %s)", words.Millis(w.Median))
	}
	return fmt.Sprintf("%s · %d corrected · %d stopped · %s · %+.1f %% tokens", words.Count(w.Prompts, "prompt", "prompts"), w.Corrected, w.Stopped, asked, w.Extra)
}
