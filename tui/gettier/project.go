package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) projectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "project", Short: "directories that agents work in",
		Long:    "Sensors run, and verdicts count, only for agents that stand in a registered directory.",
		Example: "  gettier project list",
		RunE:    needsSubcommand,
	}
	var label string
	add := &cobra.Command{
		Use:     "add [DIR]",
		Short:   "register a directory (default: the one you stand in)",
		Example: "  gettier project add\n  gettier project add . --name billing",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			root, err := filepath.Abs(dir)
			if err == nil {
				root, err = filepath.EvalSymlinks(root)
			}
			if err != nil {
				return &exit{code: exitUsage, err: fmt.Errorf("find directory: %w", err)}
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			p, err := c.AddProject(cmd.Context(), ipc.Project{Name: label, Root: root})
			if err != nil {
				return err
			}
			out := newPrinter(a.out)
			if a.json {
				out.value(p)
				return nil
			}
			out.line("registered %s as %s", p.Root, p.Name)
			return nil
		},
	}
	add.Flags().StringVar(&label, "name", "", "what to call it (default: the directory's name)")
	list := &cobra.Command{
		Use:     "list",
		Short:   "registered directories",
		Example: "  gettier project list\n  gettier project list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			l, err := c.Projects(cmd.Context())
			if err != nil {
				return err
			}
			out := newPrinter(a.out)
			if a.json {
				out.value(l)
				return nil
			}
			if len(l.Items) == 0 {
				out.line("no projects: gettier project add")
				return nil
			}
			var rows [][]string
			for _, p := range l.Items {
				rows = append(rows, []string{p.Name, p.Root})
			}
			out.table(rows)
			return nil
		},
	}
	remove := &cobra.Command{
		Use:     "remove NAME",
		Short:   "forget a directory; nothing in it is touched",
		Example: "  gettier project remove shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RemoveProject(cmd.Context(), args[0]); err != nil {
				return err
			}
			out := newPrinter(a.out)
			if a.json {
				out.value(struct {
					Removed string `json:"removed"`
				}{args[0]})
				return nil
			}
			out.line("forgot %s", args[0])
			return nil
		},
	}
	cmd.AddCommand(add, list, remove)
	return cmd
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "settings in force",
		Example: "  gettier config show",
		RunE:    needsSubcommand,
	}
	var every bool
	show := &cobra.Command{
		Use:   "show",
		Short: "every setting that differs from its default, and where it comes from",
		Long: "Without a running daemon: what the next start would read. Settings that loosen wait for\n" +
			"approval and are shown with both values.",
		Example: "  gettier config show\n  gettier config show --all",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			v, err := c.Config(cmd.Context())
			live := true
			var gone *ipc.Unreachable
			if errors.As(err, &gone) {
				live = false
				v, err = a.offlineConfig()
			}
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(v)
				return nil
			}
			if !live {
				p.line("gettierd is not running; it would start with:")
			}
			p.line("file %s", v.File)
			if v.Error != "" {
				p.line("! the file is not used: %s", v.Error)
			}
			var rows [][]string
			for _, k := range v.Keys {
				if !every && k.Source == "default" && k.Pending == "" {
					continue
				}
				value := words.Or(k.Value, "(empty)")
				if k.Pending != "" {
					value += "  waits for approval: " + k.Pending
				}
				rows = append(rows, []string{k.Key, value, k.Source, k.Applies})
			}
			if len(rows) == 0 {
				p.line("everything is at its default (--all lists it)")
				return nil
			}
			p.table(rows)
			if v.PendingHash != "" {
				p.line("approve with: gettier config approve")
			}
			return nil
		},
	}
	show.Flags().BoolVar(&every, "all", false, "defaults, too")
	var yes bool
	approve := &cobra.Command{
		Use:   "approve",
		Short: "let settings that loosen take effect",
		Long: "Shows what waits and asks. What is approved is exactly what was shown. Only a person at a\n" +
			"terminal can approve.",
		Example: "  gettier config approve --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			v, err := c.Config(cmd.Context())
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if v.PendingHash == "" {
				if a.json {
					p.value(v)
					return nil
				}
				p.line("no setting waits for approval")
				return nil
			}
			if !a.json {
				var rows [][]string
				for _, k := range v.Keys {
					if k.Pending != "" {
						rows = append(rows, []string{k.Key, words.Or(k.Value, "(empty)"), "→ " + k.Pending, k.Help})
					}
				}
				p.table(rows)
			}
			if !yes {
				if err := a.confirm("Approve " + words.Count(len(v.Pending), "setting", "settings") + "?"); err != nil {
					return err
				}
			}
			done, err := c.ApproveConfig(cmd.Context(), ipc.ConfigApproval{Hash: v.PendingHash})
			if err != nil {
				return err
			}
			if a.json {
				p.value(done)
				return nil
			}
			p.line("approved: %s", strings.Join(v.Pending, ", "))
			return nil
		},
	}
	approve.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.AddCommand(show, approve)
	return cmd
}

// offlineConfig is what a daemon started from here would read.
func (a *app) offlineConfig() (ipc.Config, error) {
	l, err := a.layout()
	if err != nil {
		return ipc.Config{}, err
	}
	cfg, _, err := config.Load(l.Config, a.env, nil)
	if err != nil {
		return ipc.Config{}, &exit{code: exitFound, err: err}
	}
	v := ipc.Config{ConfigStatus: ipc.ConfigStatus{File: l.Config, Hash: config.Hash(cfg), Pending: []string{}}, Keys: []ipc.ConfigKey{}}
	for _, s := range cfg.Settings() {
		applies := "restart"
		if s.Live {
			applies = "live"
		}
		v.Keys = append(v.Keys, ipc.ConfigKey{Key: s.Key, Value: s.Value, Source: s.Origin.Kind, Applies: applies, Help: s.Doc})
	}
	return v, nil
}
