package main

import (
	"os"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui"
	"gettier.dev/gettierd/tui/theme"
)

// runScreen is gettier without a command: the TUI where it can be drawn, else
// the status in lines.
func (a *app) runScreen(look *string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		kind, ok := theme.Parse(*look)
		if !ok {
			return usage("--theme %q: want auto, dark, light or none", *look)
		}
		in, _ := a.in.(*os.File)
		out, _ := a.out.(*os.File)
		if a.json || tui.Usable(in, out, a.env) != nil {
			return a.runStatus(cmd, args)
		}
		l, err := a.layout()
		if err != nil {
			return err
		}
		c := ipc.New(l.Socket, "tui")
		defer c.Close()
		return tui.Run(cmd.Context(), tui.Options{Client: c, Input: in, Output: out, Env: a.env, Theme: kind})
	}
}
