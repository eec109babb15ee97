package action

import (
	"path"
	"slices"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// weighEffect turns what the action does into what happens to it (design:
// catastrophe is denied, destroy confirmed, opaque escalated; the rest runs). The
// scores are the seed's (B7): 100 for what ends a machine, 55 for what destroys,
// 70 for code from elsewhere.
func weighEffect(w *weighing) error {
	w.effect = shell.Join(w.effect, w.read.Effect)
	s := Signal{Stage: "effect", Tag: w.read.Rule, Reason: w.read.Why}
	if !w.operates() && w.read.Kind == kindText {
		w.effect = shell.ReadOnly
		s.Tag, s.State, s.Reason = "question", Allow, "the text asks and does nothing"
		w.signal(s)
		return nil
	}
	if w.effect == shell.Destroy {
		w.regenerable(&s)
	}
	switch w.effect {
	case shell.ReadOnly:
		s.State = Allow
	case shell.Mutate:
		s.State, s.Score = Allow, 10
	case shell.Destroy:
		s.State, s.Score, s.Confidence = RequireConfirm, 55, 85
	case shell.Catastrophe:
		s.State, s.Score, s.Tag = Deny, 100, "critical_tag_detected"
	default:
		s.State, s.Score, s.Confidence = Escalate, 50, 90
		if strings.HasPrefix(s.Tag, "pipe.") {
			s.Score = 70
		}
	}
	w.signal(s)
	return nil
}

// here are the wrappers whose command meets the same files as the text around it.
var here = []string{"time", "nice", "ionice", "nohup", "env", "timeout", "command", "bash -c", "sh -c", "zsh -c", "dash -c"}

// regenerable lowers what only removes what a build makes again, where the disk
// vouches for every path of it (13.6). The rest of the action keeps its effect.
func (w *weighing) regenerable(s *Signal) {
	if w.about.Disk == nil || w.read.Kind != "shell" || w.action.Raw != "" && w.action.Command == "" && w.action.Tool == "" && len(w.action.Argv) == 0 {
		return
	}
	rest := w.read.Shell.Rest
	if rest.AtLeast(shell.Destroy) || w.read.Shell.Effect != shell.Destroy {
		return
	}
	cwd := w.action.Cwd
	if w.read.Dir != "" {
		cwd = w.read.Dir
		if !path.IsAbs(cwd) && w.action.Cwd != "" {
			cwd = path.Join(w.action.Cwd, cwd)
		}
	}
	var why string
	for _, c := range w.read.Shell.Commands {
		if len(c.Removes) == 0 {
			if c.Effect.AtLeast(shell.Destroy) {
				return
			}
			continue
		}
		for _, wr := range c.Wrappers {
			if !slices.Contains(here, wr) && !shell.FromScript(wr) {
				return
			}
		}
		dir := cwd
		if c.Cwd != "" {
			if dir = c.Cwd; !path.IsAbs(dir) {
				if cwd == "" || strings.ContainsAny(dir[:1], "~$") {
					return
				}
				dir = path.Join(cwd, dir)
			}
		}
		for _, p := range c.Removes {
			name := path.Base(path.Clean(p))
			if !shell.Regenerable(name) && !w.policy.regenerable[name] {
				return
			}
			e := w.about.Disk.Regenerable(dir, p)
			if !e.OK {
				s.Reason += "; " + shell.OneLine(e.Why, 160)
				return
			}
			why = e.Why
		}
	}
	if why == "" {
		return
	}
	w.effect = shell.Join(shell.Mutate, rest)
	s.Tag, s.Reason = "rm.regenerable", "removes what a build makes again: "+shell.OneLine(why, 160)
}
