package peer

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gettier.dev/gettierd/ledger/lemma"
)

// What a person's call needs is a positive chain (design 13.3): the same user,
// the same namespaces, a terminal in whose foreground the caller stands, and an
// unbroken line of parents to something that hosts terminals, with no agent in
// it. It stops mistakes and agents that were talked into something; a program
// that types into terminals is beyond it.

const terminalHint = "run the command yourself, in a terminal of your own"

// agents are clients whose commands are never a person's.
var agents = set("claude", "codex", "opencode", "cline", "cn", "aider", "gemini", "crush", "goose", "cursor-agent", "amp", "qwen", "copilot", "droid", "auggie", "openhands", "plandex", "kilocode")

// packages are the same as modules, as they stand in paths.
var packages = []string{
	"@anthropic-ai/claude-code", "@openai/codex", "opencode-ai", "@google/gemini-cli", "@continuedev/cli", "@qwen-code/", "@sourcegraph/amp", "@github/copilot",
	"/aider/", "aider-chat", "/claude/versions/", "/cursor-agent/", "saoudrizwan.claude-dev", "@charmland/crush", "@augmentcode/",
}

// interpreters run an agent that is a script; its name then stands behind.
var interpreters = set("node", "nodejs", "bun", "deno", "python", "python3", "npx", "npm", "pnpm", "yarn", "uv", "uvx", "pipx", "ruby", "tsx")

// markers are variables that agents set for the commands that they run.
var markers = []string{"CLAUDECODE", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "OPENCODE", "GEMINI_CLI", "CLINE_ACTIVE", "CURSOR_AGENT", "QWEN_CODE"}

// hosts start terminals, or sessions that do. Their parent may be the init of
// the machine.
var hosts = set("login", "sshd", "sshd-session", "sshd-auth", "dropbear", "mosh-server", "tmux", "tmux: server", "screen", "zellij", "agetty", "getty",
	"gnome-terminal-", "gnome-terminal-server", "gnome-shell", "ptyxis", "ptyxis-agent", "kgx", "konsole", "plasmashell", "yakuake", "xterm", "urxvt", "rxvt", "st", "alacritty", "kitty",
	"wezterm", "wezterm-gui", "wezterm-mux-server", "foot", "footclient", "ghostty", "terminator", "tilix", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal", "guake", "rio", "contour", "warp", "warp-terminal", "tabby", "hyper",
	"code", "code-insiders", "codium", "code-server", "cursor", "windsurf", "zed", "zed-editor", "emacs", "idea", "goland", "pycharm", "webstorm", "clion", "rider", "jetbrains-toolbox",
	"gdm-session-worker", "gdm-wayland-session", "gdm-x-session", "sddm", "sddm-helper", "lightdm", "xfce4-session", "sway", "hyprland", "i3", "river", "niri", "labwc", "kwin_wayland", "cinnamon-session", "mate-session",
	"containerd-shim", "containerd-shim-runc-v2", "conmon", "lxc-start", "machinectl", "systemd-nspawn", "wsl", "init(debian)", "sessionleader")

// inits adopt orphans.
var inits = set("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runit", "launchd")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Person says who answers, if p is a command that a person gave in a terminal.
// since is when the first daemon of this state began, as a Process's Start: what
// is younger may have been detached from an agent, also before a restart. The
// error is a *Refusal.
func Person(p Process, since uint64) (lemma.Answerer, error) {
	self, err := Find(os.Getpid())
	if err != nil {
		return lemma.Answerer{}, &Refusal{Why: "the daemon cannot see itself in /proc"}
	}
	return person(p, self, min(since, self.Start))
}

func person(p, self Process, since uint64) (lemma.Answerer, error) {
	no := func(hint, why string, args ...any) (lemma.Answerer, error) {
		return lemma.Answerer{}, &Refusal{Why: fmt.Sprintf(why, args...), Hint: hint}
	}
	gone := func() (lemma.Answerer, error) {
		return no("keep the command running until it has its answer", "the calling process has ended")
	}
	if p.PID <= 0 {
		return no(terminalHint, "the calling process is not known")
	}
	if euid := os.Geteuid(); p.UID != euid || ownerOf(p.PID) != euid {
		if !p.Alive() {
			return gone()
		}
		return no("call as the user whose daemon it is", "it comes from uid %d, the daemon runs as uid %d", p.UID, euid)
	}
	st, err := readStat(p.PID)
	if err != nil || st.start != p.Start || st.state == 'Z' || st.state == 'X' {
		return gone()
	}
	for _, ns := range []string{"pid", "mnt", "user"} {
		theirs, err := os.Readlink(procPath(p.PID, "ns/"+ns))
		ours, err2 := os.Readlink(procPath(self.PID, "ns/"+ns))
		if err != nil || err2 != nil {
			return no(terminalHint, "its %s namespace cannot be seen", ns)
		}
		if theirs != ours {
			return no("call from outside the container or sandbox", "it runs in another %s namespace", ns)
		}
	}
	if st.tty == 0 {
		return no(terminalHint, "it has no controlling terminal")
	}
	if st.pgrp != st.tpgid {
		return no("bring it to the foreground (fg)", "it runs in the background of its terminal")
	}
	chain := p.Chain()
	if len(chain) == 0 && st.ppid != 0 {
		return no(terminalHint, "its parent has ended")
	}
	line := append([]Process{p}, chain...)
	for _, q := range line {
		if name, ok := agent(q); ok {
			return no(terminalHint, "it was started by %s (process %d)", name, q.PID)
		}
	}
	if err := rooted(line, self, since); err != nil {
		return lemma.Answerer{}, err
	}
	if err := seated(line, self, since); err != nil {
		return lemma.Answerer{}, err
	}
	// Everything above is only worth something if it held for one and the same
	// process all along.
	if again, err := readStat(p.PID); err != nil || again.start != p.Start || again.ppid != st.ppid || again.tty != st.tty {
		return gone()
	}
	return answerer("cli", st.tty, line), nil
}

// systemDirs hold programs that an ordinary user cannot put there.
var systemDirs = []string{"/usr/", "/bin/", "/sbin/", "/opt/", "/lib/", "/snap/", "/nix/", "/gnu/", "/var/lib/flatpak/", "/app/"}

// host reports whether q hosts terminals. A name is easy to take, so a host that
// is younger than we are counts only if its program lies where a system's do and
// nobody but root may change it.
func host(q, self Process, since uint64) bool {
	if !hosts[strings.ToLower(q.Name())] && !hosts[strings.ToLower(filepath.Base(q.Exe))] {
		return false
	}
	if q.Start < since || q.UID == 0 && self.UID != 0 {
		return true // no user's agent has started it
	}
	if !hosts[strings.ToLower(filepath.Base(q.Exe))] || !slices.ContainsFunc(systemDirs, func(d string) bool { return strings.HasPrefix(q.Exe, d) }) {
		return false
	}
	st, err := os.Stat(q.Exe)
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == 0 && st.Mode().Perm()&0o022 == 0
}

// Chat is the person whose words p's chat may carry (design 13.2): it is alive
// and no agent's client started it. The error is a *Refusal.
func Chat(p Process) (lemma.Answerer, error) {
	st, err := readStat(p.PID)
	if err != nil || !p.Alive() {
		return lemma.Answerer{}, &Refusal{Why: "the calling process has ended"}
	}
	chain := p.Chain()
	for _, q := range chain {
		if name, ok := agent(q); ok {
			return lemma.Answerer{}, &Refusal{Why: fmt.Sprintf("it was started by %s (process %d)", name, q.PID), Hint: terminalHint}
		}
	}
	return answerer("chat", st.tty, append([]Process{p}, chain...)), nil
}

// answerer is whoever stands behind the first process of line.
func answerer(via string, tty int, line []Process) lemma.Answerer {
	a := lemma.Answerer{UID: line[0].UID, Via: via}
	if tty != 0 {
		a.TTY = ttyName(tty)
	}
	if u, err := user.LookupId(strconv.Itoa(a.UID)); err == nil {
		a.User = u.Username
	}
	for _, q := range line {
		a.Chain = append(a.Chain, describe(q))
	}
	return a
}

// rooted checks the top of the line: the process below whatever adopts
// orphans. A host of terminals may stand there, and the first process of the
// namespace. Anything else has to be one of our own ancestors or older than we
// are: what appears there later was detached from something (setsid -f, a
// double fork), and nobody can say from what.
func rooted(line []Process, self Process, since uint64) error {
	top := len(line) - 1
	if line[top].PID != 1 {
		// The parent is outside of the namespace (docker exec) or could not be
		// read. Only the former is a root.
		if st, err := readStat(line[top].PID); err != nil || st.ppid != 0 {
			return &Refusal{Why: "its line of parents is broken", Hint: terminalHint}
		}
	} else if top > 0 {
		top--
	}
	// systemd --user stands below systemd and adopts as well.
	for top > 0 && inits[line[top].Name()] {
		top--
	}
	root := line[top]
	if root.PID == 1 || host(root, self, since) {
		return nil
	}
	if st, err := readStat(root.PID); err == nil && st.ppid == 0 {
		return nil
	}
	ours := append([]Process{self}, self.Chain()...)
	if slices.ContainsFunc(ours, root.Same) || root.Start < since {
		return nil
	}
	name := root.Name()
	if name == "" {
		name = "its first parent"
	}
	return &Refusal{Why: fmt.Sprintf("%s (process %d) was detached from whatever started it", clean(name), root.PID), Hint: terminalHint}
}

// seated checks who opened the terminal that the call stands in: anybody can open
// one that nobody looks at (script, a pty of one's own). What opened it has a
// terminal itself, or is above us or older than we are, or hosts terminals, or was started by
// a host with no other terminal between.
func seated(line []Process, self Process, since uint64) error {
	for i := 1; i < len(line); i++ {
		st, err := readStat(line[i].PID)
		if err != nil || st.start != line[i].Start {
			return &Refusal{Why: "its line of parents is broken", Hint: terminalHint}
		}
		if st.tty != 0 {
			continue
		}
		opener := line[i]
		if opener.Start < since || slices.ContainsFunc(append([]Process{self}, self.Chain()...), opener.Same) {
			return nil
		}
		for _, q := range line[i:] {
			if host(q, self, since) {
				return nil
			}
			if st, err := readStat(q.PID); err != nil || st.tty != 0 {
				break // it left one terminal and opened another
			}
		}
		return &Refusal{Why: fmt.Sprintf("its terminal was opened by %s (process %d), which has none itself", clean(opener.Name()), opener.PID), Hint: terminalHint}
	}
	return nil
}

// agent reports whether q is an agent's client, or was started by one.
func agent(q Process) (string, bool) {
	comm := strings.ToLower(q.Name())
	base := strings.ToLower(filepath.Base(q.Exe))
	if agents[comm] {
		return comm, true
	}
	if agents[base] {
		return base, true
	}
	exe := strings.ToLower(q.Exe)
	for _, pkg := range packages {
		if strings.Contains(exe, pkg) {
			return strings.Trim(pkg, "/"), true
		}
	}
	args := q.Args()
	if len(args) > 0 {
		if first := strings.ToLower(filepath.Base(args[0])); agents[first] {
			return first, true
		}
		if interpreters[base] || interpreters[comm] || strings.HasPrefix(base, "python3.") {
			if name, ok := scriptAgent(args[1:]); ok {
				return name, true
			}
		}
		if base == "gettier" || comm == "gettier" {
			// Our own helpers that stand for an agent.
			if len(args) > 2 && args[1] == "scenarios" && args[2] == "agent" || len(args) > 1 && args[1] == "mcp" {
				return "gettier " + args[1], true
			}
		}
	}
	for _, m := range markers {
		if v, ok := q.Env(m); ok && v != "" && v != "0" {
			return "an agent (" + m + " is set)", true
		}
	}
	return "", false
}

// scriptAgent looks at the arguments of an interpreter up to the script.
func scriptAgent(args []string) (string, bool) {
	for i, a := range args {
		if i > 5 {
			break
		}
		low := strings.ToLower(a)
		for _, pkg := range packages {
			if strings.Contains(low, pkg) {
				return strings.Trim(pkg, "/"), true
			}
		}
		base := filepath.Base(low)
		base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, ".mjs"), ".js"), ".py")
		if agents[base] {
			return base, true
		}
		if !strings.HasPrefix(a, "-") && strings.ContainsAny(a, "/.") {
			break // the script; what follows is its own
		}
	}
	return "", false
}

// ttyName decodes a device number (proc_pid_stat(5), devices.txt).
func ttyName(n int) string {
	major := n >> 8 & 0xfff
	minor := n&0xff | n>>12&0xfff00
	switch {
	case major >= 136 && major <= 143:
		return fmt.Sprintf("pts/%d", (major-136)<<8+minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("tty%d", minor)
	case major == 4:
		return fmt.Sprintf("ttyS%d", minor-64)
	}
	return fmt.Sprintf("tty %d:%d", major, minor)
}

func describe(q Process) string {
	name := q.Name()
	if q.Exe != "" {
		name = q.Exe
	}
	return fmt.Sprintf("%s[%d]", clean(name), q.PID)
}

// clean makes a name of a process fit for logs and screens: it may be chosen by
// anyone.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}
