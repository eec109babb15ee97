package action

import (
	"path"
	"slices"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// personCalls are commands of gettier that only a person gives (13.3).
var personCalls = map[string]bool{"answer": true, "tell": true, "off": true, "down": true, "forget": true, "uninstall": true, "model": true, "hook": true}

// personWords are such commands below others.
var personWords = map[string][]string{"knowledge": {"add", "edit", "rm", "remove"}, "facts": {"invalidate"}}

// selfProtection denies what would take gettier out of the way: its files, its
// person's calls, its process, the address that leads through it (13.16). No
// setting weakens it.
func selfProtection(w *weighing) error {
	deny := func(why string) {
		w.signal(Signal{Stage: "self_protection", Tag: "self_protection", Score: 100, State: Deny, Reason: why})
	}
	if w.read.Kind == kindText && !w.operates() {
		return nil
	}
	if w.read.Effect.AtLeast(shell.Mutate) {
		for _, p := range w.read.Paths {
			if ownPath(p) || w.about.Disk != nil && ownPath(w.real(p)) {
				deny("writes " + p + ", which is gettier's own")
				return nil
			}
		}
	}
	sought := false // a command asks for the number of gettier's process
	for _, c := range w.read.Shell.Commands {
		if len(c.Argv) == 0 {
			continue
		}
		if p := c.Program(); p == "pgrep" || p == "pidof" {
			sought = sought || slices.ContainsFunc(c.Argv[1:], ownProcess)
		}
		args := c.Argv[1:]
		switch prog := c.Program(); prog {
		case "gettier":
			for _, a := range args {
				if strings.HasPrefix(a, "-") {
					continue
				}
				if personCalls[a] || slices.Contains(args, "approve") || slices.ContainsFunc(args, func(w string) bool { return slices.Contains(personWords[a], w) }) {
					deny("gives a command of gettier that only a person gives: " + a)
					return nil
				}
				break
			}
		case "kill", "pkill", "killall", "skill", "gdb", "strace", "ptrace", "systemctl", "launchctl", "service":
			if c.Effect == shell.ReadOnly {
				continue
			}
			if sought && c.Dynamic || slices.ContainsFunc(args, ownProcess) {
				deny("reaches for gettier's process by " + prog)
				return nil
			}
		case "unset", "export", "declare":
			for _, a := range args {
				if name, value, set := strings.Cut(a, "="); gatedURL(name) && (prog == "unset" || set && value == "") {
					deny("unsets " + name + ", which leads through gettier")
					return nil
				}
			}
		}
		for _, a := range args {
			if c.Effect.AtLeast(shell.Mutate) && ownPath(a) {
				deny("reaches for " + a + ", which is gettier's own")
				return nil
			}
			if len(a) > 10 && strings.EqualFold(a[:10], "X-Gettier-") {
				deny("sends a header that speaks to gettier")
				return nil
			}
		}
	}
	return nil
}

// ownProcess reports a name of gettier's programs or units, in a pattern, too.
func ownProcess(a string) bool {
	name, _, _ := strings.Cut(strings.Trim(path.Base(a), "^$"), ".")
	return name == "gettierd" || name == "gettier"
}

func gatedURL(name string) bool {
	switch name {
	case "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL":
		return true
	}
	return false
}

// ownPath reports a file of gettier's: its project folder, its configuration and
// state, the list of approved sensors.
func ownPath(p string) bool {
	if !strings.Contains(p, "gettier") && !strings.Contains(p, ".lock") { // as nearly all do
		return false
	}
	for part := range strings.SplitSeq(path.Clean(p), "/") {
		switch part {
		case ".gettier", "sensors.lock", "config.lock":
			return true
		}
	}
	for _, d := range [...]string{".config/gettier", ".local/state/gettier", ".local/share/gettier", "gettier/gettierd.sock"} {
		if strings.Contains(path.Clean(p)+"/", d+"/") {
			return true
		}
	}
	return false
}

// sensitiveWrite asks a person before something is written that runs at the next
// ordinary step or tells an agent how to behave (13.8, 13.16).
func sensitiveWrite(w *weighing) error {
	if !w.read.Effect.AtLeast(shell.Mutate) || w.read.Kind == kindText && !w.operates() {
		return nil
	}
	for _, p := range w.read.Paths {
		why := sensitivePath(p)
		if why == "" && w.about.Disk != nil {
			why = sensitivePath(w.real(p))
		}
		if why != "" {
			w.signal(Signal{Stage: "sensitive_write", Tag: "sensitive_write", Score: 45, Confidence: 65, State: RequireConfirm, Reason: "writes " + p + ": " + why})
			return nil
		}
	}
	for _, c := range w.read.Shell.Commands {
		if c.Rule == "cron" {
			w.signal(Signal{Stage: "sensitive_write", Tag: "sensitive_write", Score: 45, Confidence: 65, State: RequireConfirm, Reason: "changes a crontab: its lines run later"})
			return nil
		}
	}
	return nil
}

// papers reports notes that an agent keeps for itself and that instruct none at
// its start: Claude Code writes a plan in plan mode, and its list of tasks.
func papers(inside string) bool {
	return strings.Contains(inside, "/.claude/plans/") || strings.Contains(inside, "/.claude/todos/")
}

// sensitivePath says why a file is no ordinary one, "" for ordinary files.
func sensitivePath(p string) string {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	name := path.Base(p)
	home := strings.HasPrefix(p, "~/") || strings.HasPrefix(p, "$HOME/") || strings.HasPrefix(p, "${HOME}/") || strings.HasPrefix(p, "/home/") || strings.HasPrefix(p, "/root/") || strings.HasPrefix(p, "/Users/")
	switch name {
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", "config.fish", ".envrc":
		return "every shell runs it"
	case ".gitconfig":
		return "git takes programs to run from it"
	case "authorized_keys":
		return "it lets someone in"
	case ".mcp.json":
		return "it names programs that agents run"
	}
	inside := "/" + p + "/"
	for _, d := range [...]struct{ dir, why string }{
		{"/.git/hooks/", "git runs it"}, {"/.git/config/", "git takes programs to run from it"}, {"/.claude/", "it sets an agent up"}, {"/.codex/", "it sets an agent up"}, {"/.gemini/", "it sets an agent up"}, {"/.cursor/", "it sets an agent up"},
		{"/.config/systemd/user/", "it is a unit that runs later"}, {"/environment.d/", "every session reads it"}, {"/etc/systemd/system/", "it is a unit that runs later"},
		{"/etc/profile.d/", "every shell runs it"}, {"/var/spool/cron/", "its lines run later"}, {"/etc/cron.d/", "its lines run later"}, {"/etc/cron.daily/", "it runs later"}, {"/LaunchAgents/", "it runs later"}, {"/.config/autostart/", "it runs later"},
	} {
		if strings.Contains(inside, d.dir) && !(d.dir == "/.claude/" && papers(inside)) {
			return d.why
		}
	}
	if home && (strings.HasSuffix(p, "/.ssh/config") || strings.HasSuffix(p, "/.ssh/rc")) {
		return "ssh takes programs to run from it"
	}
	return ""
}
