package shell

import "strings"

const gitValued = "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix"

// git rules on a git command line.
func git(w *walker, c call) ruling {
	args := c.args[1:]
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' {
		a := args[0].s
		if a == "-c" && len(args) > 1 || strings.HasPrefix(a, "--config-env") {
			if k := strings.ToLower(peek(args)); strings.HasPrefix(k, "alias.") {
				if i := strings.Index(k, "=!"); i > 0 {
					w.wraps = append(w.wraps, "git alias")
					w.nested(args[1].s[i+2:], stream{})
					return ruling{effect: Opaque, rule: "git.alias", why: "runs a command by an alias"}
				}
				return ruling{effect: Opaque, rule: "git.alias", why: "renames a git command"}
			} else if gitRuns(k) {
				if i := strings.IndexByte(k, '='); i > 0 {
					w.wraps = append(w.wraps, "git -c")
					w.nested(args[1].s[i+1:], stream{})
				}
				return ruling{effect: Opaque, rule: "git.config", why: "runs a program named in its options"}
			}
		}
		if strings.HasPrefix(a, "--exec-path=") {
			return ruling{effect: Opaque, rule: "git.exec-path", why: "takes its programs from elsewhere"}
		}
		args = args[1:]
		if takesValue(gitValued, a) && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return readOnly("prints help or version")
	}
	sub := args[0]
	if sub.dyn {
		return ruling{effect: Opaque, rule: "dynamic.command", why: "a git command that is known only when it runs"}
	}
	pos := positional(args, "-m --message -F --file -n --author --date -b -B --format --pretty --since --until --after --before -S -G -L -U -u --set-upstream-to -o --onto -s --source --strategy -X -C -c --reuse-message --fixup --reason")
	has := func(f ...string) bool { return hasFlag(args, f...) }
	takes := func(f ...string) bool { return given(args, f...) } // what git takes any beginning of
	sh := func(b byte) bool { return short(args, b) }
	first := ""
	if len(pos) > 0 {
		first = pos[0].s
	}
	for _, a := range args[1:] {
		if strings.HasPrefix(a.s, "--upload-pack") || strings.HasPrefix(a.s, "--receive-pack") || strings.HasPrefix(a.s, "ext::") || strings.HasPrefix(a.s, "--ext-diff") || strings.HasPrefix(a.s, "--open-files-in-pager") || sub.s == "grep" && strings.HasPrefix(a.s, "-O") {
			return ruling{effect: Opaque, rule: "git.program", why: "runs a program of its own: " + a.s}
		}
		if a.s == "--help" || a.s == "-h" {
			return readOnly("prints help")
		}
	}
	writesOut := false
	for _, a := range args[1:] {
		writesOut = writesOut || strings.HasPrefix(a.s, "--output")
	}
	switch sub.s {
	case "status", "log", "diff", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "ls-remote", "blame", "annotate", "grep", "describe", "shortlog", "cat-file", "merge-base", "name-rev", "for-each-ref", "show-ref", "show-branch", "diff-tree", "diff-index", "diff-files",
		"count-objects", "var", "version", "help", "whatchanged", "cherry", "check-ignore", "check-attr", "verify-commit", "verify-tag", "range-diff", "fsck", "get-tar-commit-id", "patch-id", "stripspace", "request-pull", "merge-tree", "column":
		if writesOut {
			return mutate("write", "git writes its output to a file")
		}
		return readOnly("git " + sub.s + " looks")
	case "branch":
		if takes("-D", "--delete", "-d") && (takes("-D", "--force", "-f") || sh('D')) || sh('D') {
			return destroy("git.branch-delete", "deletes a branch that may hold unmerged work")
		}
		if takes("-d", "--delete") {
			return mutate("git.branch", "deletes a merged branch")
		}
		if takes("-f", "--force") || sh('f') || sh('M') || sh('C') {
			return destroy("git.branch-force", "moves a branch by force")
		}
		if len(pos) == 0 || has("--list", "-l", "-a", "-r", "--show-current", "--contains", "--merged", "--no-merged", "-v", "-vv", "--points-at") {
			return readOnly("lists branches")
		}
		return mutate("git.branch", "makes or renames a branch")
	case "tag":
		if takes("-d", "--delete") || sh('d') {
			return destroy("git.tag-delete", "deletes a tag")
		}
		if takes("-f", "--force") || sh('f') {
			return destroy("git.tag-force", "moves a tag by force")
		}
		if len(pos) == 0 || has("-l", "--list", "--contains", "--points-at", "-n", "-v", "--verify") {
			return readOnly("lists tags")
		}
		return mutate("git.tag", "makes a tag")
	case "remote":
		switch first {
		case "", "show", "get-url":
			return readOnly("lists remotes")
		case "remove", "rm", "prune":
			return mutate("git.remote", "removes a remote")
		}
		return mutate("git.remote", "changes a remote")
	case "config":
		if has("--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch", "--show-origin") || first == "get" || first == "list" || len(pos) == 1 && !has("--unset", "--unset-all", "--add", "--edit", "-e", "--remove-section") {
			return readOnly("reads git's settings")
		}
		if k := strings.ToLower(first); gitRuns(k+"=") || strings.HasPrefix(k, "alias.") && len(pos) > 1 && harmfulAlias(w, pos[1]) {
			return ruling{effect: Opaque, rule: "git.config", why: "sets a program that git runs later"}
		}
		return mutate("git.config", "changes git's settings")
	case "stash":
		switch first {
		case "list", "show":
			return readOnly("lists stashes")
		case "drop", "clear":
			return destroy("git.stash-drop", "throws stashed work away")
		}
		return mutate("git.stash", "stashes or restores work")
	case "reflog":
		if first == "expire" || first == "delete" {
			return destroy("git.reflog", "removes the way back to old commits")
		}
		return readOnly("reads the reflog")
	case "worktree":
		if first == "list" {
			return readOnly("lists worktrees")
		}
		if first == "remove" && (takes("--force", "-f") || sh('f')) {
			return destroy("git.worktree-remove", "removes a worktree with its changes")
		}
		return mutate("git.worktree", "changes worktrees")
	case "submodule":
		switch first {
		case "", "status", "summary":
			return readOnly("lists submodules")
		case "foreach":
			w.wraps = append(w.wraps, "git submodule foreach")
			w.nested(joinWords(pos[1:]), stream{})
			return mutate("git.submodule", "runs a command in each submodule")
		case "deinit":
			if takes("-f", "--force") {
				return destroy("git.submodule-deinit", "removes submodules with their changes")
			}
		}
		return mutate("git.submodule", "changes submodules")
	case "notes", "bisect", "rerere", "lfs", "bundle", "archive", "sparse-checkout", "replace":
		if first == "list" || first == "show" || first == "ls-files" || first == "status" || first == "env" || first == "view" || first == "log" || first == "verify" {
			return readOnly("git " + sub.s + " " + first)
		}
		if sub.s == "lfs" && (first == "prune" || first == "migrate") || sub.s == "notes" && (first == "remove" || first == "prune") || sub.s == "replace" && takes("-d", "--delete") {
			return destroy("git."+sub.s, "git "+sub.s+" "+first)
		}
		if sub.s == "bisect" && first == "run" {
			w.wraps = append(w.wraps, "git bisect run")
			for i, a := range args {
				if a.s == "run" {
					w.exec(call{args: args[i+1:]})
					break
				}
			}
		}
		return mutate("git."+sub.s, "git "+sub.s)
	case "read-tree":
		if takes("--reset", "-u") {
			return destroy("git.reset-hard", "throws uncommitted work away")
		}
		return mutate("git.read-tree", "changes the index")
	case "reset":
		if takes("--hard", "--merge") {
			return destroy("git.reset-hard", "throws uncommitted work away")
		}
		return mutate("git.reset", "moves the branch or the index")
	case "clean":
		if has("-n", "--dry-run") || sh('n') {
			return readOnly("a dry run")
		}
		if sh('f') || takes("--force") || sh('X') || sh('x') {
			return destroy("git.clean", "removes files that git does not track")
		}
		return mutate("git.clean", "git clean without force does nothing by default")
	case "checkout", "switch":
		if takes("-f", "--force", "--discard-changes") || sh('f') {
			return destroy("git.checkout-force", "throws uncommitted work away")
		}
		if sh('B') || sh('C') {
			return destroy("git.branch-force", "moves a branch by force")
		}
		if has("-b", "-c", "--orphan", "--create", "--track", "-t", "--detach", "-") {
			return mutate("git.switch", "changes the branch")
		}
		dash := false
		for _, a := range args[1:] {
			dash = dash || a.s == "--" || strings.HasPrefix(a.s, "--pathspec") || a.s == "--ours" || a.s == "--theirs"
		}
		if sub.s == "checkout" && (dash || first == "." || len(pos) > 1 || sh('p')) {
			return destroy("git.checkout-files", "throws uncommitted changes of files away", pos...)
		}
		return mutate("git.switch", "changes the branch")
	case "restore":
		if has("--staged", "-S") && !has("--worktree", "-W") {
			return mutate("git.unstage", "takes files out of the index")
		}
		return destroy("git.restore", "throws uncommitted changes of files away", pos...)
	case "rm":
		if has("--cached") {
			return mutate("git.rm", "takes files out of the index")
		}
		if sh('r') || sh('f') || takes("--force") {
			return destroy("git.rm", "removes files", pos...)
		}
		return mutate("git.rm", "removes tracked files", pos...)
	case "push":
		for _, a := range args[1:] {
			if strings.HasPrefix(a.s, "--force-w") || strings.HasPrefix(a.s, "--force-i") {
				return destroy("git.push-force", "overwrites a branch on the server")
			}
		}
		if has("-n", "--dry-run") {
			return readOnly("a dry run")
		}
		if takes("--force", "-f", "--mirror", "--prune") || sh('f') {
			return destroy("git.push-force", "overwrites a branch on the server")
		}
		if takes("--delete", "-d") {
			return destroy("git.push-delete", "deletes a branch on the server")
		}
		for _, p := range pos[min(1, len(pos)):] {
			if strings.HasPrefix(p.s, "+") || strings.HasPrefix(p.s, ":") && len(p.s) > 1 {
				return destroy("git.push-force", "overwrites or deletes a branch on the server")
			}
		}
		return ruling{effect: Mutate, rule: "git.push", why: "sends commits to a server"}
	case "filter-branch", "filter-repo":
		return destroy("git.rewrite", "rewrites the history")
	case "gc":
		for _, a := range args[1:] {
			if strings.HasPrefix(a.s, "--prune=now") || strings.HasPrefix(a.s, "--prune=all") || a.s == "--aggressive" && has("--prune") {
				return destroy("git.gc-prune", "removes unreachable commits at once")
			}
		}
		return mutate("git.gc", "packs the repository")
	case "prune":
		return destroy("git.prune", "removes unreachable objects")
	case "update-ref":
		if takes("-d", "--delete", "--stdin") {
			return destroy("git.update-ref", "deletes a reference")
		}
		return mutate("git.update-ref", "moves a reference")
	case "rebase":
		if i := execOf(args); i != "" {
			w.wraps = append(w.wraps, "git rebase --exec")
			w.nested(i, stream{})
		}
		return mutate("git.rebase", "rewrites commits that are not pushed")
	case "commit":
		return mutate("git.commit", "records a commit")
	}
	if destructiveVerb(sub.s) || sub.s == "undo" || sub.s == "unpublish" || sub.s == "delete-branch" {
		return destroy("git.verb", "git "+sub.s)
	}
	if (sub.s == "symbolic-ref" || sub.s == "multi-pack-index") && takes("-d", "--delete") || sub.s == "annex" && (first == "drop" || first == "dropunused" || first == "uninit") {
		return destroy("git.verb", "git "+sub.s+" takes away")
	}
	return mutate("git.write", "git "+sub.s)
}

func execOf(args []word) string {
	for i, a := range args {
		if (a.s == "--exec" || a.s == "-x") && i+1 < len(args) {
			return args[i+1].s
		}
		if s, ok := strings.CutPrefix(a.s, "--exec="); ok {
			return s
		}
	}
	return ""
}

// gitRuns reports settings whose value git runs as a program.
func gitRuns(k string) bool {
	for _, p := range [...]string{"core.pager=", "core.editor=", "core.sshcommand=", "core.fsmonitor=", "core.hookspath=", "core.gitproxy=", "core.askpass=", "diff.external=", "sequence.editor=", "credential.helper=", "gpg.program=", "pager.", "core.alternaterefscommand=", "init.templatedir="} {
		if strings.HasPrefix(k, p) {
			v := k[strings.IndexByte(k, '=')+1:]
			return v != "cat" && v != "true" && v != "less" && v != "false" && v != "/dev/null" && v != "" || strings.HasSuffix(k, "=") && p != "pager."
		}
	}
	return strings.Contains(k, ".textconv=") || strings.Contains(k, ".command=") || strings.Contains(k, ".cmd=") || strings.Contains(k, ".clean=") || strings.Contains(k, ".smudge=") || strings.Contains(k, ".driver=")
}

// harmfulAlias reports a git alias whose command, under whatever name it runs
// later, is a shell's or more than a mutation.
func harmfulAlias(w *walker, v word) bool {
	words := strings.Fields(v.s)
	if v.dyn || len(words) == 0 || words[0][0] == '!' {
		return true
	}
	args := []word{{s: "git"}}
	for _, f := range words {
		args = append(args, word{s: f})
	}
	return git(w, call{args: args}).effect.AtLeast(Opaque)
}
