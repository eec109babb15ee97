package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/mcp"
	"gettier.dev/gettierd/ipc"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "serve an agent over the Model Context Protocol on standard input and output",
		Long: "An agent that knows the protocol starts it (claude mcp add gettier -- gettier mcp). It offers decide: what the action gate would say to an\n" +
			"action, of the daemon where one runs (which records it), else by the built-in rules. It offers nothing\n" +
			"that answers, tells, approves or changes anything.",
		Example: "  gettier mcp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mcp.Serve(cmd.Context(), io.NopCloser(a.in), nopCloser{a.out}, mcp.Options{Version: facts().Version, Decide: a.decideFor})
		},
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// decideFor asks the daemon's gate, or the built-in one where there is no daemon.
func (a *app) decideFor(ctx context.Context, in ipc.Action) (ipc.Decision, error) {
	c, err := a.client()
	if err == nil {
		defer c.Close()
		d, err := c.Decide(ctx, in)
		var away *ipc.Unreachable
		if !errors.As(err, &away) {
			return d, err
		}
	}
	act := action.Action{Actor: in.Actor, Cwd: in.Cwd, Command: in.Command, Argv: in.Argv, Tool: in.Tool, Args: in.Args}
	raw, err := json.Marshal(action.Decide(act, nil, known(act)))
	if err != nil {
		return ipc.Decision{}, err
	}
	d := ipc.Decision{Raw: raw}
	return d, json.Unmarshal(raw, &d)
}
