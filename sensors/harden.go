package sensors

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gettier.dev/gettierd/sensors/spec"
)

// hardening switches off, by environment, what makes a measuring tool run
// something that a repository brought along (13.1).
func hardening(s *spec.Sensor) map[string]string {
	if len(s.Argv) == 0 {
		return nil
	}
	switch program := filepath.Base(s.Argv[0].Text); program {
	case "git":
		return map[string]string{
			"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "GIT_ASKPASS": "false", "GIT_EDITOR": "false",
			"GIT_PROTOCOL_FROM_USER": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ATTR_NOSYSTEM": "1",
		}
	case "go":
		return map[string]string{"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOENV": "off"}
	case "yarn":
		return map[string]string{"YARN_IGNORE_PATH": "1"}
	case "psql":
		return map[string]string{"PSQLRC": "/dev/null"}
	default:
		if !python(program) {
			return nil
		}
		env := map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
		if !ownFile(s) {
			env["PYTHONSAFEPATH"] = "1" // no module from the working directory, from Python 3.11 on
		}
		return env
	}
}

// python reports whether a program is a Python interpreter.
func python(program string) bool {
	version, ok := strings.CutPrefix(program, "python")
	return ok && strings.Trim(version, "0123456789.") == ""
}

// ownFile reports whether a Python command names a file or a module of its own:
// what lies beside that is importable, and pinned with it.
func ownFile(s *spec.Sensor) bool {
	for _, w := range s.Argv[1:] {
		switch {
		case w.Text == "-c":
			return false
		case w.Text == "-m", !strings.HasPrefix(w.Text, "-"):
			return true
		}
	}
	return false
}

// alwaysGit is put over every configuration of git: no monitor, no hook, no
// repository that does not look like one.
var alwaysGit = [][2]string{
	{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"safe.bareRepository", "explicit"}, {"log.showSignature", "false"},
	{"gpg.program", "false"}, {"gpg.ssh.program", "false"}, {"gpg.x509.program", "false"}, {"submodule.recurse", "false"},
	// Inside of a submodule git would follow that one's own configuration.
	{"diff.ignoreSubmodules", "dirty"},
}

// runsCommand gives, for a key of a repository's own configuration by which git
// runs a command, the value that runs none. Keys come as git prints them: section
// and variable in lower case. An empty filter changes nothing.
func runsCommand(key string) (value string, ok bool) {
	first, last := key, key
	if i := strings.IndexByte(key, '.'); i >= 0 {
		first = key[:i]
	}
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		last = key[i+1:]
	}
	switch first {
	case "filter":
		switch last {
		case "clean", "smudge", "process":
			return "", true
		case "required":
			return "false", true
		}
	case "diff":
		switch last {
		case "textconv":
			return "cat", true
		case "command", "external":
			return "false", true
		}
	case "alias":
		return "", true // git says that it is empty, and runs nothing
	case "merge":
		if last == "driver" {
			return "false", true
		}
	case "trailer":
		if last == "command" || last == "cmd" {
			return "true", true
		}
	case "credential":
		if last == "helper" {
			return "", true
		}
	case "submodule":
		switch last {
		case "update":
			return "none", true
		case "ignore":
			return "dirty", true
		}
	case "remote":
		if last == "uploadpack" || last == "receivepack" || last == "vcs" {
			return "false", true
		}
	case "pager", "core", "interactive", "sequence", "browser", "man", "difftool", "mergetool", "sendemail", "web", "instaweb", "tar":
		if key == "core.sshcommand" {
			return "ssh", true
		}
		if slices.Contains([]string{"core.pager", "core.alternaterefscommand", "core.editor", "core.askpass", "core.gitproxy", "interactive.difffilter", "sequence.editor"}, key) || first == "pager" {
			return "false", true
		}
		if last == "cmd" || last == "path" || last == "command" {
			return "false", true
		}
	}
	return "", false
}

// configTime bounds how long git may take to tell its configuration, maxConfig
// how much that is.
const (
	configTime = 5 * time.Second
	maxConfig  = 1 << 20
)

// overGit is the configuration that a git sensor runs with on top of all files:
// alwaysGit, and each command that the repository's own configuration names, made
// harmless. Printing a configuration runs nothing of it. complete is false when it
// could not be read as a whole: then git must not run.
func overGit(ctx context.Context, git, dir string, env []string) (over []string, complete bool) {
	set := slices.Clone(alwaysGit)
	ctx, stop := context.WithTimeout(ctx, configTime)
	defer stop()
	list := func(more ...string) (fields [][]byte, whole bool) {
		out := &limited{max: maxConfig}
		cmd := exec.CommandContext(ctx, git, append([]string{"config", "--list", "-z"}, more...)...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = dir, append(slices.Clone(env), gitEnv(set)...), out, drain
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			return nil, true // no repository, or one that git does not take: the sensor will say so
		}
		text, full := out.read()
		return bytes.Split(text, []byte{0}), !full && ctx.Err() == nil
	}
	fields, whole := list("--show-scope", "--includes")
	if !whole {
		return nil, false
	}
	for i := 0; i+1 < len(fields); i += 2 {
		scope := string(fields[i])
		key, value, _ := strings.Cut(string(fields[i+1]), "\n")
		if scope != "local" && scope != "worktree" {
			continue
		}
		if harmless, ok := runsCommand(key); ok {
			set = append(set, [2]string{key, harmless})
		}
		if key == "core.worktree" && value != "" {
			// Where it stands is what it measures, not what a file says.
			over = append(over, "GIT_WORK_TREE="+dir)
		}
	}
	// A submodule's own word on how closely git looks into it counts less than ours.
	if info, err := os.Lstat(filepath.Join(dir, ".gitmodules")); err == nil && info.Mode().IsRegular() {
		if fields, whole = list("--file", ".gitmodules", "--name-only"); !whole {
			return nil, false
		}
		for _, f := range fields {
			if name, ok := strings.CutSuffix(string(f), ".ignore"); ok {
				set = append(set, [2]string{name + ".ignore", "dirty"})
			}
		}
	}
	return append(over, gitEnv(set)...), true
}

// gitEnv puts configuration into git's environment.
func gitEnv(set [][2]string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(set))}
	for i, kv := range set {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}
