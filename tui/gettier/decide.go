package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/evidence"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

// maxAction bounds one action read from standard input, in bytes.
const maxAction = 1 << 20

func (a *app) decideCommand() *cobra.Command {
	var (
		jsonl, explain, mermaid, page bool
		hook, cwd, policy             string
	)
	cmd := &cobra.Command{
		Use:   "decide [flags] [-- PROGRAM ARG…]",
		Short: "say what the action gate makes of a command, without a daemon",
		Long: "Judges a program with its arguments, or a command line on standard input, by the built-in policy\n" +
			"or the one of --policy. Nothing runs. With --cwd the disk there is looked at: whether what is\n" +
			"removed is made again by a build, where links lead, and what the scripts hold that it runs. Exit 0: it may run; 1: it may not, or not unasked.\n" +
			"With --jsonl each line of input is {\"command\": …}, {\"argv\": […]} or {\"tool\": …, \"args\": {…}} or {\"raw_input\": …},\n" +
			"with \"cwd\", \"actor\" and \"mode\" if you like, and each line of output is a decision: state, effect, reason,\n" +
			"findings, signals, explain. A line that cannot be read is answered by {\"error\", \"line\"}, the rest\n" +
			"goes on, and the exit code is 1; a refusal is an answer like any other there.\n" +
			"With --hook an agent's hook input is read and answered in the agent's own protocol. Whatever goes\n" +
			"wrong there ends with exit code 2, by which these agents stop the tool; a hook's line in an agent's\n" +
			"settings ends in || exit 2, for the day that gettier is not found.",
		Example: "  gettier decide -- git push --tags\n  gettier decide --explain -- npm test\n  gettier decide --mermaid -- npm test\n  gettier decide --jsonl",
		RunE: func(_ *cobra.Command, args []string) error {
			if hook != "" {
				if jsonl || explain || mermaid || page || a.json || len(args) > 0 || cwd != "" {
					return usage("--hook stands alone, or with --policy")
				}
				return a.decideHook(hook, policy)
			}
			rules, err := a.policyFile(policy)
			if err != nil {
				return err
			}
			if cwd != "" {
				if cwd, err = filepath.Abs(cwd); err != nil {
					return fmt.Errorf("read --cwd: %w", err)
				}
			}
			if jsonl {
				if explain || mermaid || page || len(args) > 0 || cwd != "" {
					return usage("--jsonl takes actions from standard input alone")
				}
				bad, err := jsonLines(a.in, a.out, func(line []byte) (any, error) { return decideLine(line, rules) })
				if err != nil {
					return err
				}
				return refusedLines(bad)
			}
			if mermaid && page || (mermaid || page) && (explain || a.json) {
				return usage("say one of --json, --explain, --mermaid and --html")
			}
			act := action.Action{Argv: args, Cwd: cwd}
			if len(args) == 0 {
				text, err := io.ReadAll(io.LimitReader(a.in, maxAction+1))
				if err != nil {
					return fmt.Errorf("read command: %w", err)
				}
				if len(text) > maxAction {
					return usage("a command is longer than %d bytes", maxAction)
				}
				act.Command = strings.TrimRight(string(text), "\r\n")
				if strings.TrimSpace(act.Command) == "" {
					return usage("name a program after --, or give a command line on standard input")
				}
			}
			d := action.Decide(act, rules, known(act))
			if err := a.printDecision(d, explain, mermaid, page); err != nil {
				return err
			}
			if !d.Allowed {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&jsonl, "jsonl", false, "one JSON object a line, in and out")
	fl.BoolVar(&explain, "explain", false, "show each finding and signal")
	fl.BoolVar(&mermaid, "mermaid", false, "draw how the decision came about as a Mermaid flowchart")
	fl.BoolVar(&page, "html", false, "write the decision as a page of HTML")
	fl.StringVar(&hook, "hook", "", "answer an agent's hook: claude-code, codex or gemini")
	fl.StringVar(&cwd, "cwd", "", "the directory that the command starts in")
	fl.StringVar(&policy, "policy", "", "a policy file instead of the built-in policy")
	return cmd
}

// known is what can be found out about the surroundings of an action here: any
// script that it runs is read.
func known(act action.Action) action.Situation { return knownSince(act, time.Time{}) }

// knownSince is known with the scripts of a session alone, where its beginning is
// not zero.
func knownSince(act action.Action, session time.Time) action.Situation {
	if act.Cwd == "" {
		return action.Situation{}
	}
	if session.IsZero() {
		session = time.Unix(0, 0)
	}
	return action.Situation{Disk: evidence.Disk{Changed: session}}
}

func decideLine(line []byte, rules *action.Policy) (any, error) {
	var act action.Action
	if err := strictJSON(line, &act); err != nil {
		return nil, err
	}
	forms := 0
	for _, given := range [...]bool{act.Command != "", len(act.Argv) > 0, act.Tool != ""} {
		if given {
			forms++
		}
	}
	if forms > 1 || forms == 0 && act.Raw == "" {
		return nil, errors.New("give one of command, argv and tool, or raw_input")
	}
	return action.Decide(act, rules, known(act)), nil
}

func (a *app) printDecision(d action.Decision, explain, mermaid, page bool) error {
	drawn := ""
	switch {
	case mermaid:
		drawn = d.Explain().Mermaid()
	case page:
		drawn = d.HTML()
	}
	if drawn != "" {
		if _, err := io.WriteString(a.out, clean.Text(drawn)); err != nil {
			return fmt.Errorf("write decision: %w", err)
		}
		return nil
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(d)
		return nil
	}
	p.text(string(d.State)+"  "+d.Reason, "")
	if !explain {
		return nil
	}
	sum := ""
	if d.RawTotal != d.RiskScore {
		sum = fmt.Sprintf(" (sum %d)", d.RawTotal)
	}
	p.line("effect %s, mode %s, risk %d of 100%s, decision %s by policy %.16s", d.Effect, d.Mode, d.RiskScore, sum, d.DecisionID, d.Policy)
	p.line("findings")
	for _, f := range d.Findings {
		p.text(string(f.Effect)+"  "+f.Rule+"  "+f.Why, "  ")
		if len(f.Argv) > 0 {
			text := "runs " + words.Argv(f.Argv)
			if len(f.Wrappers) > 0 {
				text += "  by " + strings.Join(f.Wrappers, " › ")
			}
			p.text(text, "    ")
		}
	}
	p.line("signals")
	for _, s := range d.Signals {
		p.text(fmt.Sprintf("%-15s %3d  %s  %s", s.State, s.Points, s.Stage, s.Reason), "  ")
	}
	return nil
}

// hookInput is what the three agents tell a hook before a tool runs. They agree
// on these names.
type hookInput struct {
	Event string          `json:"hook_event_name"`
	Cwd   string          `json:"cwd"`
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	// Transcript is a file that begins with the session, "" where none is kept.
	Transcript string `json:"transcript_path"`
}

// hookFailure ends a hook so that the tool does not run: these agents take exit
// code 2 as a refusal, and any other code but 0 as none.
func hookFailure(err error) error {
	return &exit{code: exitUsage, err: fmt.Errorf("the tool is stopped, since it could not be judged: %w", err)}
}

// hookWait is how long a daemon that runs may take: agents wait for a hook.
const hookWait = 10 * time.Second

// askDaemon asks the running daemon about the same call: its log has it then, and
// the rules in force there count beside these. Where none runs nothing is said.
func (a *app) askDaemon(agent string, act action.Action) (ipc.Decision, error) {
	c, err := a.client()
	if err != nil {
		return ipc.Decision{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), hookWait)
	defer cancel()
	d, err := c.Decide(ctx, ipc.Action{Actor: "hook of " + agent, Cwd: act.Cwd, Tool: act.Tool, Args: act.Args})
	var gone *ipc.Unreachable
	if errors.As(err, &gone) {
		return ipc.Decision{State: string(action.Allow)}, nil
	}
	return d, err
}

// decideHook answers one hook call. An action that may run is answered by
// silence, which leaves the agent's own permissions in force.
func (a *app) decideHook(agent, policy string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = hookFailure(errors.New("the judgement broke down"))
		}
	}()
	event := "PreToolUse"
	switch agent {
	case "claude-code", "codex":
	case "gemini":
		event = "BeforeTool"
	default:
		return hookFailure(fmt.Errorf("no agent's protocol is named %q: claude-code, codex, gemini", agent))
	}
	rules, err := a.policyFile(policy)
	if err != nil {
		return hookFailure(err)
	}
	raw, err := io.ReadAll(io.LimitReader(a.in, maxJSONLine+1))
	if err != nil {
		return hookFailure(fmt.Errorf("read hook input: %w", err))
	}
	if len(raw) > maxJSONLine {
		return hookFailure(errLongLine)
	}
	var in hookInput
	if err := strictJSON(raw, &in); err != nil {
		return hookFailure(err)
	}
	if in.Event != event {
		return hookFailure(fmt.Errorf("the event is %q, this hook belongs to %s", in.Event, event))
	}
	if in.Tool == "" || len(in.Input) == 0 {
		return hookFailure(errors.New("the input names no tool_name or no tool_input"))
	}
	act := action.Action{Tool: in.Tool, Args: in.Input, Cwd: in.Cwd}
	d := action.Decide(act, rules, knownSince(act, evidence.Born(in.Transcript)))
	said, err := a.askDaemon(agent, act)
	if err != nil {
		return hookFailure(fmt.Errorf("the daemon did not record it: %w", err))
	}
	if s := action.State(said.State); s.Rank() > d.State.Rank() {
		d.State, d.Reason, d.Allowed = s, said.Reason, said.Allowed
	}
	if rules.Enforced(d) == action.Allow {
		return nil
	}
	reason := clean.Line("gettier: " + string(d.State) + ": " + d.Reason)
	var answer any
	switch {
	case agent == "gemini":
		answer = map[string]string{"decision": "deny", "reason": reason}
	default:
		verdict := "deny"
		// Codex knows no question at this place and would go on.
		if agent == "claude-code" && d.State != action.Deny && !d.Refused() {
			verdict = "ask"
		}
		answer = map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": event, "permissionDecision": verdict, "permissionDecisionReason": reason}}
	}
	b, err := json.Marshal(answer)
	if err == nil {
		_, err = a.out.Write(append(b, '\n'))
	}
	if err != nil {
		return hookFailure(fmt.Errorf("write hook answer: %w", err))
	}
	return nil
}
