package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/tui/words"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "how the daemon is",
		Example: "  gettier status\n  gettier status --json",
		Args:    cobra.NoArgs,
		RunE:    a.runStatus,
	}
}

// runStatus is also what plain gettier does.
func (a *app) runStatus(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Status(cmd.Context())
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(s)
		return nil
	}
	rows := [][]string{
		{"gettierd", s.Version + "  pid " + itoa(s.PID) + "  up " + words.Span(time.Duration(s.UptimeSeconds)*time.Second) + "  mode " + s.Mode},
		{"proxy", "http://" + s.Proxy},
		{"chain", words.Count(s.Chain.Size, "entry", "entries") + "  root " + words.Hash(s.Chain.Root)},
		{"holds", openHolds(s.OpenHolds)},
	}
	for _, c := range s.Outside {
		rows = append(rows, []string{"outside", a.outside(c, s.Chain.Size)})
	}
	if len(s.Outside) == 0 {
		rows = append(rows, []string{"outside", noOutside})
	}
	reg := itoa(s.Registry.Sensors) + " in force"
	if s.Registry.Pending > 0 {
		reg += "  " + itoa(s.Registry.Pending) + " waiting for approval (gettier sensors approve)"
	}
	if s.Registry.Broken > 0 {
		reg += "  " + itoa(s.Registry.Broken) + " broken (gettier sensors lint)"
	}
	rows = append(rows, []string{"sensors", reg}, []string{"projects", projects(s.Projects)})
	for _, u := range s.Upstreams {
		v := u.Name + "  " + u.Format + "  " + u.BaseURL
		if u.Default {
			v += "  (default)"
		}
		rows = append(rows, []string{"upstream", v})
	}
	if n := s.Counters; n["turns"] > 0 || n["requests"] > 0 {
		v := words.Count(n["requests"], "request", "requests") + "  " + words.Count(n["turns"], "turn", "turns")
		for _, k := range []string{"caught", "held", "blocked"} {
			if n[k] > 0 {
				v += "  " + words.Thousands(n[k]) + " " + k
			}
		}
		rows = append(rows, []string{"traffic", v})
	}
	conf := s.Config.File
	if len(s.Config.Pending) > 0 {
		conf += "  waiting for approval: " + strings.Join(s.Config.Pending, ", ") + " (gettier config approve)"
	}
	rows = append(rows, []string{"config", conf})
	if s.PolicyVersion != "" {
		rows = append(rows, []string{"policy", s.PolicyVersion})
	}
	p.table(rows)
	if s.Config.Error != "" {
		p.line("! the configuration on disk is not used: %s", s.Config.Error)
	}
	for _, e := range s.Registry.Problems {
		p.line("! %s:%d:%d: %s (the last good registry stays in force)", e.File, e.Line, e.Column, e.Reason)
	}
	for _, w := range s.Warnings {
		p.line("! %s", w)
	}
	return nil
}

func openHolds(n int) string {
	if n == 0 {
		return "none open"
	}
	return itoa(n) + " open (gettier holds)"
}

func projects(n int) string {
	if n == 0 {
		return "none: nothing is measured until one is registered (gettier project add)"
	}
	return words.Count(n, "root", "roots")
}
