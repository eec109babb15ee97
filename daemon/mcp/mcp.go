// Package mcp is what an agent may ask gettier over the Model Context Protocol,
// over the same services as the socket. Nothing here answers a hold, tells a
// fact, approves or changes a setting: whatever an agent can call, a model calls.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gettier.dev/gettierd/ipc"
)

const (
	// maxLine bounds one message of a client, in bytes.
	maxLine = 8 << 20
	// maxArgs bounds the arguments of a tool call that is asked about, in bytes.
	maxArgs = 1 << 20
)

// Options are what the tools rest on.
type Options struct {
	Version string
	// Decide asks the action gate, of the daemon or, where there is none, here.
	Decide func(ctx context.Context, a ipc.Action) (ipc.Decision, error)
}

// Serve answers one client until it goes away or ctx ends.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, o Options) error {
	err := server(o).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

func server(o Options) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "gettier", Title: "gettier", Version: o.Version}, &sdk.ServerOptions{
		Instructions: "Ask decide before a command that might destroy something. It says whether gettier would let it run, ask a person, or refuse it. It runs nothing and approves nothing: only a person approves, in a terminal of their own.",
	})
	no := false
	sdk.AddTool(s, &sdk.Tool{
		Name: "decide", Title: "What would gettier say to this action?",
		Description: "Says what gettier's action gate makes of a command, a program with its arguments, or a tool call, before it is tried. Give exactly one of command_line, argv and tool. ALLOW: it may run. REQUIRE_CONFIRM or ESCALATE: a person is asked when it is tried. DENY: it is refused. The answer is no approval.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in question) (*sdk.CallToolResult, verdict, error) {
		return decide(ctx, o, in)
	})
	return s
}

// question is what decide is asked.
type question struct {
	Command string         `json:"command_line,omitempty" jsonschema:"a command line as a shell would read it"`
	Argv    []string       `json:"argv,omitempty" jsonschema:"a program and its arguments that no shell reads"`
	Tool    string         `json:"tool,omitempty" jsonschema:"the name of a tool"`
	Args    map[string]any `json:"args,omitempty" jsonschema:"that tool's arguments"`
	Cwd     string         `json:"cwd,omitempty" jsonschema:"the directory that it would start in"`
}

// verdict is what decide answers.
type verdict struct {
	State      string `json:"state"`
	Allowed    bool   `json:"allowed"`
	Effect     string `json:"effect"`
	RiskScore  int    `json:"risk_score"`
	Reason     string `json:"reason"`
	DecisionID string `json:"decision_id"`
}

func decide(ctx context.Context, o Options, in question) (*sdk.CallToolResult, verdict, error) {
	a := ipc.Action{Actor: "mcp", Command: in.Command, Argv: in.Argv, Tool: in.Tool, Cwd: in.Cwd}
	size := len(in.Command) + len(in.Cwd)
	forms := 0
	for _, given := range [...]bool{in.Command != "", len(in.Argv) > 0, in.Tool != ""} {
		if given {
			forms++
		}
	}
	for _, w := range in.Argv {
		size += len(w)
	}
	if in.Args != nil {
		raw, err := json.Marshal(in.Args)
		if err != nil {
			return nil, verdict{}, fmt.Errorf("read args: %w", err)
		}
		a.Args, size = raw, size+len(raw)
	}
	switch {
	case forms != 1:
		return nil, verdict{}, errors.New("give exactly one of command_line, argv and tool")
	case in.Args != nil && in.Tool == "":
		return nil, verdict{}, errors.New("args belong to a tool")
	case size > maxArgs:
		return nil, verdict{}, fmt.Errorf("an action has at most %d bytes", maxArgs)
	}
	d, err := o.Decide(ctx, a)
	if err != nil {
		return nil, verdict{}, fmt.Errorf("it could not be judged, so treat it as refused: %w", err)
	}
	v := verdict{State: d.State, Allowed: d.Allowed, Effect: d.Effect, RiskScore: d.Risk, Reason: d.Reason, DecisionID: d.DecisionID}
	text := fmt.Sprintf("%s (%s): %s", v.State, v.Effect, v.Reason)
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, v, nil
}
