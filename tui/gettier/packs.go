package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) sensorsPacks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "packs", Short: "tested sensors that come with gettier",
		Long: "A pack is a set of sensors, judge rules and premises that is part of this program and was tested with it.\n" +
			"Nothing of it counts before you enable it, which approves it as one decision.",
		Example: "  gettier sensors packs list\n  gettier sensors packs show everyday\n  gettier sensors packs enable everyday --yes",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.packsList(), a.packsShow(), a.packsEnable(), a.packsDisable())
	return cmd
}

// parsedPack is a pack with its registry files read.
type parsedPack struct {
	packs.Pack
	sensors  []*spec.Sensor
	premises []*spec.Premise
}

func parsePack(p packs.Pack) (parsedPack, error) {
	out := parsedPack{Pack: p}
	for _, f := range p.Files {
		reg, problems := spec.Parse(f.Name, "pack", f.Data, verdict.CheckExamples)
		if reg != nil {
			problems = verdict.CheckPremises(reg)
		}
		if len(problems) > 0 {
			return out, fmt.Errorf("read %s: %w", f.Name, problems[0])
		}
		out.sensors, out.premises = append(out.sensors, reg.Sensors...), append(out.premises, reg.Premises...)
	}
	return out, nil
}

func findPack(name string) (parsedPack, error) {
	all, err := packs.All()
	if err != nil {
		return parsedPack{}, err
	}
	i := slices.IndexFunc(all, func(p packs.Pack) bool { return p.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = p.Name
		}
		return parsedPack{}, usage("no pack is called %s; there are: %s", name, strings.Join(names, ", "))
	}
	return parsePack(all[i])
}

func (a *app) packsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "every pack, and whether it is enabled and fits this machine",
		Example: "  gettier sensors packs list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			l, err := c.Packs(cmd.Context())
			if err != nil {
				return err
			}
			rows := l.Items
			pr := newPrinter(a.out)
			if a.json {
				pr.value(rows)
				return nil
			}
			table := [][]string{{"PACK", "STATE", "SENSORS", "PREMISES", "MEASURES"}}
			for _, r := range rows {
				table = append(table, []string{r.Name, strings.ReplaceAll(r.State, "_", " "), fmt.Sprint(r.Sensors), fmt.Sprint(r.Premises), r.About})
			}
			pr.table(table)
			return nil
		},
	}
}

func (a *app) packsShow() *cobra.Command {
	var source bool
	cmd := &cobra.Command{
		Use: "show PACK", Short: "what a pack measures and what it checks before a command runs",
		Example: "  gettier sensors packs show everyday\n  gettier sensors packs show nginx --source",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := findPack(args[0])
			if err != nil {
				return err
			}
			pr := newPrinter(a.out)
			if a.json {
				pr.value(struct {
					Name     string          `json:"name"`
					Hash     string          `json:"hash"`
					Sensors  []*spec.Sensor  `json:"sensors"`
					Premises []*spec.Premise `json:"premises"`
				}{p.Name, p.Hash, p.sensors, p.premises})
				return nil
			}
			if source {
				for _, f := range p.Files {
					pr.text(string(f.Data), "")
				}
				return nil
			}
			printPack(pr, p)
			return nil
		},
	}
	cmd.Flags().BoolVar(&source, "source", false, "print the registry files themselves")
	return cmd
}

func printPack(pr *printer, p parsedPack) {
	pr.line("%s  %s, %s  sha256:%s", p.Name, words.Count(len(p.sensors), "sensor", "sensors"), words.Count(len(p.premises), "premise", "premises"), p.Hash[:12])
	rows := [][]string{}
	for _, s := range p.sensors {
		rows = append(rows, []string{"  " + s.ID, how(s), s.Description})
	}
	pr.table(rows)
	for _, s := range p.sensors {
		for _, w := range spec.Reach(s)[1:] { // the first says what all of its kind do
			pr.line("! %s %s", s.ID, w)
		}
	}
	if len(p.premises) == 0 {
		return
	}
	pr.line("before a command runs")
	rows = [][]string{}
	for _, m := range p.premises {
		on := m.Program
		if len(m.Args) > 0 {
			on += " " + strings.Join(m.Args, " | ")
		}
		rows = append(rows, []string{"  " + on, m.Claim, m.OnFalse})
	}
	pr.table(rows)
}

// how says what a sensor does to measure.
func how(s *spec.Sensor) string {
	if s.Probe != "" {
		return "reads files, runs nothing"
	}
	words := make([]string, len(s.Argv))
	for i, w := range s.Argv {
		words[i] = w.Text
	}
	text := "runs " + strings.Join(words, " ")
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	if s.Effects != spec.None {
		text += ", changes things"
	}
	return text
}

func (a *app) packsEnable() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "enable PACK…", Aliases: []string{"add"}, Short: "approve packs as they are in this program",
		Long: "Shows what the packs measure and asks. What is approved is exactly what was shown; after an update of\n" +
			"gettier the approved definitions stay in force until you enable the pack again. Only a person at a\n" +
			"terminal can approve.",
		Example: "  gettier sensors packs enable everyday --yes\n  gettier sensors packs enable everyday nginx --yes",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ap ipc.SensorApproval
			pr := newPrinter(a.out)
			for _, name := range args {
				p, err := findPack(name)
				if err != nil {
					return err
				}
				if !a.json {
					printPack(pr, p)
				}
				ap.Sensors = append(ap.Sensors, ipc.SensorPin{Qualified: "pack/" + p.Name, Hash: p.Hash})
			}
			return a.approvePacks(cmd, ap, yes, "Enable "+words.Count(len(args), "pack", "packs")+"?", "enabled")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) packsDisable() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "disable PACK…", Aliases: []string{"remove"}, Short: "take packs out of force",
		Example: "  gettier sensors packs disable nginx --yes",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ap ipc.SensorApproval
			for _, name := range args {
				if _, err := findPack(name); err != nil {
					return err
				}
				ap.Sensors = append(ap.Sensors, ipc.SensorPin{Qualified: "pack/" + name})
			}
			return a.approvePacks(cmd, ap, yes, "Take "+strings.Join(args, ", ")+" out of force?", "disabled")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) approvePacks(cmd *cobra.Command, ap ipc.SensorApproval, yes bool, question, done string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	if !yes {
		if err := a.confirm(question); err != nil {
			return err
		}
	}
	got, err := c.ApproveSensors(cmd.Context(), ap)
	var p *ipc.Problem
	if errors.As(err, &p) && p.Status == 409 {
		return &exit{code: exitRefused, err: err, hint: "the daemon may be of another version: gettier status"}
	}
	if err != nil {
		return err
	}
	pr := newPrinter(a.out)
	if a.json {
		pr.value(got)
		return nil
	}
	pr.line("%s: %s", done, strings.Join(got.Approved, ", "))
	return nil
}
