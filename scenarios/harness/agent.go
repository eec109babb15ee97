package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"gettier.dev/gettierd/scenarios/fixture"
)

// AgentOptions shape the agent loop.
type AgentOptions struct {
	BaseURL  string // without /v1
	Format   Format
	Stream   bool
	NoTools  bool
	Ticket   string
	Model    string
	MaxSteps int
	Out      io.Writer // one Step in JSON a line
}

// Step is what the agent reports as it works. Kind is request, say, call,
// result, error or end.
type Step struct {
	Kind    string `json:"kind"`
	Text    string `json:"text,omitempty"`
	Headers string `json:"headers,omitempty"` // of a request: what a gate said of it
}

// DefaultSteps bounds the loop: a scenario's ticket takes three or four.
const DefaultSteps = 12

// system is the agent's own prompt; it says nothing of gates or premises.
const system = "You are a coding agent. You work in the current directory. Use the shell tool to look and to change files. When the ticket is done, say what you changed."

// shellSchema is the one tool's parameters.
const shellSchema = `{"type":"object","properties":{"command":{"type":"string","description":"a POSIX sh command line"}},"required":["command"]}`

// Agent works on the ticket in the current directory until the model stops
// calling tools. It is a client like any other: it speaks HTTP to BaseURL and
// knows nothing of a gate.
func Agent(ctx context.Context, o AgentOptions) error {
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultSteps
	}
	if o.Model == "" {
		o.Model = "scripted"
	}
	var t talker
	switch o.Format {
	case Chat, "":
		t = newChatTalker(o)
	case Messages:
		t = newMessagesTalker(o)
	default:
		return fmt.Errorf("unknown format %q: want chat or messages", o.Format)
	}
	enc := json.NewEncoder(o.Out)
	enc.SetEscapeHTML(false)
	tell := func(s Step) { _ = enc.Encode(s) } // the harness is gone: it will end us
	for range o.MaxSteps {
		r, err := t.turn(ctx)
		tell(Step{Kind: "request", Headers: r.headers})
		if r.text != "" {
			tell(Step{Kind: "say", Text: r.text})
		}
		if err != nil {
			tell(Step{Kind: "error", Text: err.Error()})
			return err
		}
		if len(r.calls) == 0 {
			tell(Step{Kind: "end"})
			return nil
		}
		for _, c := range r.calls {
			out := carryOut(ctx, c, tell)
			t.result(c, out)
		}
	}
	tell(Step{Kind: "error", Text: "the step limit was reached"})
	return errors.New("agent: the step limit was reached")
}

// talker is one wire format with its history.
type talker interface {
	turn(ctx context.Context) (turnReply, error)
	result(c agentCall, out string)
}

type turnReply struct {
	text    string
	calls   []agentCall
	headers string
}

type agentCall struct{ id, name, args string }

// carryOut runs a shell call as any agent would, in the current directory.
func carryOut(ctx context.Context, c agentCall, tell func(Step)) string {
	var args struct {
		Command string `json:"command"`
	}
	if c.name != "shell" || json.Unmarshal([]byte(c.args), &args) != nil || args.Command == "" {
		tell(Step{Kind: "call", Text: c.name + " " + c.args})
		tell(Step{Kind: "result", Text: "no such tool"})
		return "error: no such tool, or no command"
	}
	tell(Step{Kind: "call", Text: args.Command})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", args.Command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out capped
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := strings.TrimRight(out.String(), "\n")
	if len(text) > 16<<10 {
		text = text[:16<<10] + "…"
	}
	if err != nil {
		text += "\n(" + err.Error() + ")"
	}
	if text == "" {
		text = "(no output, exit 0)"
	}
	tell(Step{Kind: "result", Text: text})
	return text
}

// chatTalker speaks chat completions through the client library that Go
// programs use for it.
type chatTalker struct {
	c      *openai.Client
	seen   *headerTap
	req    openai.ChatCompletionRequest
	stream bool
}

func newChatTalker(o AgentOptions) *chatTalker {
	conf := openai.DefaultConfig("scripted-needs-no-key")
	conf.BaseURL = o.BaseURL + "/v1"
	tap := &headerTap{}
	conf.HTTPClient = tap.client()
	t := &chatTalker{c: openai.NewClientWithConfig(conf), seen: tap, stream: o.Stream}
	t.req = openai.ChatCompletionRequest{Model: o.Model, Messages: []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: system},
		{Role: openai.ChatMessageRoleUser, Content: o.Ticket},
	}}
	if !o.NoTools {
		t.req.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: "shell", Description: "Run a command line in the current directory.", Parameters: json.RawMessage(shellSchema)}}}
	}
	if o.Stream {
		t.req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return t
}

func (t *chatTalker) turn(ctx context.Context) (turnReply, error) {
	var msg openai.ChatCompletionMessage
	var err error
	if t.stream {
		msg, err = t.streamed(ctx)
	} else {
		var resp openai.ChatCompletionResponse
		if resp, err = t.c.CreateChatCompletion(ctx, t.req); err == nil && len(resp.Choices) > 0 {
			msg = resp.Choices[0].Message
		}
	}
	r := turnReply{text: msg.Content, headers: t.seen.take()}
	if err != nil {
		return r, fmt.Errorf("ask for a completion: %w", err)
	}
	for _, c := range msg.ToolCalls {
		r.calls = append(r.calls, agentCall{c.ID, c.Function.Name, c.Function.Arguments})
	}
	t.req.Messages = append(t.req.Messages, msg)
	return r, nil
}

func (t *chatTalker) streamed(ctx context.Context) (openai.ChatCompletionMessage, error) {
	msg := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	s, err := t.c.CreateChatCompletionStream(ctx, t.req)
	if err != nil {
		return msg, err
	}
	defer s.Close()
	finished := false
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			if !finished {
				return msg, errors.New("the stream ended without a finish reason")
			}
			return msg, nil
		}
		if err != nil {
			return msg, err
		}
		for _, ch := range chunk.Choices {
			msg.Content += ch.Delta.Content
			finished = finished || ch.FinishReason != ""
			for _, d := range ch.Delta.ToolCalls {
				i := len(msg.ToolCalls)
				if d.Index != nil {
					i = *d.Index
				}
				if i > len(msg.ToolCalls) || i < 0 {
					return msg, fmt.Errorf("tool call index %d skips one", i)
				}
				if i == len(msg.ToolCalls) {
					msg.ToolCalls = append(msg.ToolCalls, openai.ToolCall{Type: openai.ToolTypeFunction})
				}
				c := &msg.ToolCalls[i]
				if d.ID != "" {
					c.ID = d.ID
				}
				c.Function.Name += d.Function.Name
				c.Function.Arguments += d.Function.Arguments
			}
		}
	}
}

func (t *chatTalker) result(c agentCall, out string) {
	t.req.Messages = append(t.req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: c.id, Content: out})
}

// AgentMain is the command `gettier scenarios agent`, which a run starts in the
// project's directory. The ticket comes on stdin. Exit 0 done, 1 failed, 2 usage.
func AgentMain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fixture.Visible() // the daemon finds this process's directory by its connection
	fs := flag.NewFlagSet("gettier scenarios agent", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o := AgentOptions{Out: stdout}
	var format string
	fs.StringVar(&o.BaseURL, "base-url", "", "the model's address, without /v1")
	fs.StringVar(&format, "format", string(Chat), "chat or messages")
	fs.BoolVar(&o.Stream, "stream", false, "ask for streamed answers")
	fs.BoolVar(&o.NoTools, "no-tools", false, "offer no tool")
	fs.StringVar(&o.Model, "model", "", "name of the model to ask for")
	fs.IntVar(&o.MaxSteps, "max-steps", DefaultSteps, "requests at most")
	if fs.Parse(args) != nil || o.BaseURL == "" || fs.NArg() > 0 {
		fmt.Fprintln(stderr, "usage: gettier scenarios agent --base-url URL [FLAG…] <ticket.md")
		return 2
	}
	o.Format = Format(format)
	ticket, err := io.ReadAll(io.LimitReader(stdin, 64<<10))
	if err != nil || len(bytes.TrimSpace(ticket)) == 0 {
		fmt.Fprintln(stderr, "the ticket on stdin is empty")
		return 2
	}
	o.Ticket = strings.TrimSpace(string(ticket))
	if err := Agent(ctx, o); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
