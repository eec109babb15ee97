package action

import (
	"errors"

	"gettier.dev/gettierd/daemon/action/shell"
)

// contract reads what is asked for.
func contract(w *weighing) error {
	a := w.action
	forms := 0
	for _, given := range [...]bool{a.Command != "", len(a.Argv) > 0, a.Tool != ""} {
		if given {
			forms++
		}
	}
	switch a.Mode {
	case "", "ask", "operate":
	default:
		return errors.New("the mode is neither ask nor operate")
	}
	switch {
	case forms > 1:
		return errors.New("the action names more than one of command, argv and tool")
	case forms == 0 && a.Raw != "":
		w.read = shellAction(a.Raw, w.reader().Read(a.Raw))
		w.read.Kind = kindText
	case forms == 0:
		return errors.New("the action names no command and no tool")
	case a.Tool != "":
		name := a.Tool
		if target, ok := w.policy.Tools.Aliases[name]; ok {
			name = target
		}
		w.read = w.reader().Tool(name, a.Args)
	case a.Command != "":
		w.read = shellAction(a.Command, w.reader().Read(a.Command))
	default:
		w.read = shellAction("", w.reader().ReadArgv(a.Argv))
	}
	w.effect = w.read.Effect
	w.findings = make([]Finding, 0, len(w.read.Shell.Commands)+1)
	for _, c := range w.read.Shell.Commands {
		f := Finding{Rule: c.Rule, Effect: c.Effect, Why: c.Why, Argv: c.Argv, Wrappers: c.Wrappers}
		if len(a.Argv) == 0 {
			f.Start, f.End = c.Start, c.End
		}
		w.findings = append(w.findings, f)
	}
	// What no single command is to blame for: a redirection, a call of a tool.
	for _, f := range w.findings {
		if f.Rule == w.read.Rule {
			return nil
		}
	}
	w.findings = append(w.findings, Finding{Rule: w.read.Rule, Effect: w.read.Effect, Why: w.read.Why})
	return nil
}

// kindText is a text that may be a question or a command.
const kindText = "text"

func shellAction(text string, r shell.Reading) shell.Action {
	return shell.Action{Kind: "shell", Effect: r.Effect, Paths: r.Paths, Command: text, Shell: r, Rule: r.Rule, Why: r.Why}
}
