package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// maxExamples is how many actions of a kind a report names.
const maxExamples = 10

// wouldHave is what stricter settings would have changed of what the chain holds.
type wouldHave struct {
	Since   string     `json:"since"`
	Actions int        `json:"actions"`  // calls that left, under any phase
	Refused []wouldAct `json:"refused"`  // left, and hard_deny would have refused them
	Asked   []wouldAct `json:"asked"`    // left unasked, and full would have asked about them
	NRefuse int        `json:"refuse_n"` // all of each, of which the lists name the newest
	NAsk    int        `json:"ask_n"`
	Held    int        `json:"held_n"` // answers that gate.mode ask would have held, and watch only noted
}

// wouldAct is one action of the report.
type wouldAct struct {
	At      string `json:"at"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	Effect  string `json:"effect"`
	Ruled   string `json:"ruled"`
	Enforce string `json:"enforce"`
}

func (a *app) reportCommand() *cobra.Command {
	var would bool
	var since time.Duration
	cmd := &cobra.Command{
		Use: "report", Short: "what stricter settings would have changed",
		Long: "Reads the log for what left although a stricter action.enforce (hard_deny, full) would have refused\n" +
			"it or asked about it, and for answers that gate.mode: watch noted where ask would have held them.\n" +
			"Exit 1 when there is any of it.",
		Example: "  gettier report --would-have\n  gettier report --would-have --since 336h --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !would {
				return usage("say --would-have")
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			from := a.now().Add(-since)
			w := wouldHave{Since: lemma.Time(from), Refused: []wouldAct{}, Asked: []wouldAct{}}
			var at *uint64
			for {
				l, err := c.Audit(cmd.Context(), at, ipc.Page{Limit: ipc.MaxLimit})
				if err != nil {
					return err
				}
				for _, e := range l.Items {
					if e.TS >= w.Since {
						w.take(e)
					}
					at = &e.Seq
				}
				if l.NextCursor == "" || len(l.Items) == 0 {
					break
				}
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(w)
			} else {
				a.printWouldHave(p, w)
			}
			if w.NRefuse+w.NAsk+w.Held > 0 {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&would, "would-have", false, "what left, and would not have")
	cmd.Flags().DurationVar(&since, "since", 14*24*time.Hour, "how far back")
	return cmd
}

// take counts one entry; one that cannot be read says nothing.
func (w *wouldHave) take(e ipc.Entry) {
	switch lemma.Kind(e.Kind) {
	case lemma.KGateDecided:
		var b lemma.GateDecided
		if json.Unmarshal(e.Body, &b) == nil && b.Decision == lemma.DecAnnotated && strings.Contains(strings.Join(b.Reasons, "\n"), "; watching") {
			w.Held++
		}
	case lemma.KActionDecided:
		var b lemma.ActionDecided
		if e.Turn == "" || json.Unmarshal(e.Body, &b) != nil || b.State != "ALLOW" {
			return
		}
		w.Actions++
		act := wouldAct{At: e.TS, Tool: b.Tool, Summary: b.Summary, Effect: b.Effect, Ruled: b.Ruled, Enforce: b.Enforce}
		switch {
		case b.Ruled == "DENY":
			w.NRefuse, w.Refused = w.NRefuse+1, newest(w.Refused, act)
		case (b.Ruled == "REQUIRE_CONFIRM" || b.Ruled == "ESCALATE") && b.Approval == "":
			w.NAsk, w.Asked = w.NAsk+1, newest(w.Asked, act)
		}
	}
}

// newest keeps the last maxExamples.
func newest(list []wouldAct, a wouldAct) []wouldAct {
	if list = append(list, a); len(list) > maxExamples {
		list = list[1:]
	}
	return list
}

func (a *app) printWouldHave(p *printer, w wouldHave) {
	p.line("%d calls left since %s", w.Actions, a.stamp(w.Since))
	say := func(n int, what string, list []wouldAct) {
		p.line("%d %s", n, what)
		for _, x := range list {
			p.line("  %s  %s  %s  %s  %s", a.stamp(x.At), strings.ToLower(x.Ruled), x.Effect, x.Tool, x.Summary)
		}
		if n > len(list) {
			p.line("  %s", fmt.Sprintf("… and %d before them", n-len(list)))
		}
	}
	say(w.NRefuse, "would have been refused by action.enforce hard_deny", w.Refused)
	say(w.NAsk, "would have been asked about by action.enforce full", w.Asked)
	p.line("%d answers would have been held by gate.mode ask", w.Held)
}
