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
	switch {
	case forms == 0:
		return errors.New("the action names no command and no tool")
	case forms > 1:
		return errors.New("the action names more than one of command, argv and tool")
	case a.Tool != "":
		w.read = shell.Tool(a.Tool, a.Args)
	default:
		r := shell.Reading{}
		if a.Command != "" {
			r = shell.Read(a.Command)
		} else {
			r = shell.ReadArgv(a.Argv)
		}
		w.read = shell.Action{Kind: "shell", Effect: r.Effect, Paths: r.Paths, Command: a.Command, Shell: r, Rule: r.Rule, Why: r.Why}
	}
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
