package gate

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// act classes a clause in which something is to be done, by its verb and by what
// it is done with. name is the rule for when nothing stronger is found.
func (p *prompt) act(i, to int, name string) {
	if i >= to {
		return
	}
	if p.destroysHere(i, to) {
		return
	}
	if p.trivial(i, to) {
		p.add("words.trivial", lemma.Explore)
		return
	}
	before := len(p.found)
	p.touches(i, to)
	for _, h := range p.found[before:] {
		if h.class == lemma.Change {
			return
		}
	}
	p.add(name, lemma.Edit)
}

// clauseText is the prompt's text of a clause.
func (p *prompt) clauseText(i, to int) string {
	end := len(p.text)
	if to < len(p.ts) {
		end = p.ts[to].at
	}
	return p.text[p.ts[i].at:end]
}

// part reports a word that names a part of the code, however operative the word
// before it is: the install button, the purge function, the table view.
func (p *prompt) part(n, to int) bool { return n+1 < to && p.ts[n+1].is(code) && !p.ts[n+1].is(bulk) }

// destroysHere finds what loses something for good.
func (p *prompt) destroysHere(i, to int) bool {
	if p.ts[i].is(risky) || p.names(i, to, risky) {
		text := p.clauseText(i, to)
		for _, f := range forceful {
			if strings.Contains(text, f) {
				p.add("words.force", lemma.Destructive)
				return true
			}
		}
	}
	head := p.ts[i]
	switch {
	case head.is(destroys):
		if head.s == "drop" && (p.at(i+1, to) == "column" || p.at(i+2, to) == "column" || p.at(i+2, to) == "columns") {
			p.add("words.destroy", lemma.Destructive)
			return true
		}
		for n := i + 1; n < to && n <= i+8; n++ {
			k := p.ts[n]
			if k.is(precious) && !p.part(n, to) || k.is(places) || k.s == "commits" || k.is(platform) && head.s != "drop" && head.s != "discard" {
				p.add("words.destroy", lemma.Destructive)
				return true
			}
		}
	case head.is(clears), head.s == "clean" && (p.at(i+1, to) == "up" || p.at(i+1, to) == "out"):
		if p.directory(i, to) && head.s != "clean" {
			p.add("words.delete-files", lemma.Destructive)
			return true
		}
		sweep := false
		for n := i + 1; n < to && n <= i+9; n++ {
			k := p.ts[n]
			if k.s == "from" || k.s == "in" || k.s == "after" || k.s == "on" || k.s == "when" {
				if !sweep {
					// what follows is where it is, not what it is
					if k.s == "on" && (p.at(n+1, to) == "origin" || p.at(n+2, to) == "remote" || p.at(n+1, to) == "github") {
						p.add("words.delete-data", lemma.Destructive)
						return true
					}
					if k.s != "from" && k.s != "in" || !p.swept(n, to) {
						return false
					}
				}
			}
			switch {
			case k.is(sweeping):
				sweep = true
			case p.part(n, to):
			case k.is(precious) && (!weakly(k.s) || p.named(n, i)), k.is(places) && n+1 < to && p.ts[n+1].is(precious|bulk):
				p.add("words.delete-data", lemma.Destructive)
				return true
			case sweep && k.is(bulk), n > i+1 && k.is(services) && p.ts[n-1].is(platform|data):
				p.add("words.delete-data", lemma.Destructive)
				return true
			}
			if k.s == "everything" || k.s == "commits" {
				p.add("words.delete-data", lemma.Destructive)
				return true
			}
		}
	case head.s == "reset", head.s == "recreate", head.s == "re-create", head.s == "reinitialize":
		for n := i + 1; n < to && n <= i+4; n++ {
			switch p.ts[n].s {
			case "database", "databases", "db", "cluster", "volume", "volumes", "schema", "environment", "main", "master", "branch", "history":
				if !p.part(n, to) {
					p.add("words.reset", lemma.Destructive)
					return true
				}
			}
		}
	}
	return false
}

// directory: a directory goes with all that is in it, and no build makes it again.
func (p *prompt) directory(i, to int) bool {
	found := false
	for n := i + 1; n < to; n++ {
		switch w := p.ts[n].s; {
		case w == "from" || w == "in" || w == "when" || w == "if":
			return found
		case shell.Regenerable(w):
			return false
		case (w == "folder" || w == "directory" || w == "directories" || w == "folders" || w == "dir") && !p.part(n, to):
			found = true
		}
	}
	return found
}

// swept: what is cleared comes out of something precious.
func (p *prompt) swept(n, to int) bool {
	for ; n < to; n++ {
		if p.ts[n].is(data) && p.ts[n].is(precious) || p.ts[n].is(places) {
			return true
		}
	}
	return false
}

// named: the word before says which one: the users table, the preview environment.
func (p *prompt) named(n, i int) bool {
	switch p.ts[n].s {
	case "table", "collection", "queue", "topic", "index", "environment", "stack", "deployment", "server", "servers", "topics", "tables":
	default:
		return false
	}
	switch before := p.ts[n-1]; before.s {
	case "the", "a", "an", "this", "that", "my", "our", "its", "your", "from", "of":
		return false
	default:
		return n-1 > i && !before.is(code)
	}
}

// weakly: precious only where all of it goes.
func weakly(w string) bool {
	switch w {
	case "table", "tables", "index", "indexes", "indices", "queue", "queues", "log", "logs", "history", "data", "package", "server", "servers", "changes", "work", "topic", "topics", "environment", "environments", "stack", "deployment", "collection", "repo", "repository", "redis", "drive", "cache-cluster", "infrastructure", "infra":
		return true
	}
	return false
}

// trivial: wording, comments and docs of files that neither run nor instruct.
func (p *prompt) trivial(i, to int) bool {
	head := p.ts[i]
	prosaic := head.s == "document" || head.s == "reword"
	for n := i + 1; n < to; n++ {
		k := p.ts[n]
		if kind, named := p.file(n); named && kind != docFile && kind != plainFile && kind != testFile || k.s == "makefile" || k.s == "migration" || k.s == "migrations" {
			return false
		} else if named && kind == docFile {
			prosaic = true
		}
		if k.s == "that" || k.s == "which" {
			break // what follows describes
		}
		switch {
		case k.s == "github", k.is(shared), k.is(does) && p.ts[n-1].s == "and":
			return false
		case k.is(prose) && !p.part(n, to) && p.at(n+1, to) != "out":
			prosaic = true
		}
	}
	if !prosaic {
		return false
	}
	switch head.s {
	case "fix", "correct", "add", "update", "reword", "improve", "rewrite", "remove", "delete", "write", "document", "translate", "edit", "change", "make", "extend", "clean", "put", "adjust", "tweak", "polish", "shorten", "append", "resolve", "need", "want", "expand", "create", "generate", "insert", "modify", "rephrase", "tidy", "replace", "complete", "format":
		return true
	}
	return false
}

// file is the kind of file that a word names, and whether it names one.
func (p *prompt) file(n int) (fileKind, bool) {
	w := p.ts[n].s
	switch w {
	case "makefile", "dockerfile", "jenkinsfile", "justfile", "rakefile", "procfile", "caddyfile", "gemfile", "hosts", "tsconfig", "crontab":
		return pathKind(w), true
	}
	dot := strings.LastIndexByte(w, '.')
	if dot < 0 || dot == len(w)-1 || len(w)-dot > 12 || strings.Contains(w, "://") {
		return "", false
	}
	if c := w[dot+1]; c < 'a' || c > 'z' {
		return "", false
	}
	return pathKind(w), true
}

// touches adds the rules for what lies beyond the code.
func (p *prompt) touches(i, to int) {
	head, next := p.ts[i], p.at(i+1, to)
	if p.part(i, to) {
		// an operative word that names a part: nothing is operated
		head.means &^= runs
	}
	change := func(name string) { p.add(name, lemma.Change) }
	switch head.s {
	case "deploy", "redeploy", "publish", "rollback", "ship", "promote":
		if !p.part(i, to) {
			change("words.release")
		}
	case "release":
		if !p.freed(i, to) {
			change("words.release")
		}
	case "roll":
		if next == "out" || next == "back" || p.at(to-1, to) == "out" || p.at(to-1, to) == "back" {
			change("words.release")
		}
	case "push":
		if !p.trails(i, to, "onto") && !p.trails(i, to, "into") {
			change("words.remote")
		}
	case "install", "uninstall", "upgrade", "downgrade", "bump", "pin":
		if !p.part(i+1, to) && !p.part(i, to) {
			change("words.deps")
		}
	case "switch", "migrate":
		if head.s == "migrate" && p.trails(i, to, "to") || p.names(i, to, manager) {
			change("words.deps")
		}
	case "add":
		if to-i >= 5 && to-i <= 7 && p.at(to-1, to) == "project" && p.ts[to-3].s == "to" && !p.names(i, to, prose|code|checks) {
			change("words.deps") // "add tailwind to the project"
		}
	case "configure", "dockerize":
		change("words.config")
	case "rotate", "renew", "grant", "revoke", "backfill", "seed":
		change("words.operate")
	case "set", "setup":
		if head.s == "setup" || next == "up" && !p.names(i, to, checks) {
			change("words.setup")
		}
	case "cut", "make", "create", "do", "prepare":
		if n := min(i+2, to-1); p.at(i+1, to) == "release" || p.ts[n].s == "release" && !p.part(n, to) {
			change("words.release")
		}
	case "scale":
		change("words.infra")
	case "git":
		switch next {
		case "push", "pull", "fetch", "submodule", "remote":
			change("words.remote")
		}
	case "send", "upload", "post", "notify", "email", "invite", "reply", "close", "reopen", "approve":
		for n := i + 1; n < to; n++ {
			if p.ts[n].is(shared|platform|places) || p.ts[n].s == "team" || p.ts[n].s == "everyone" {
				change("words.remote")
			}
		}
	case "npm", "pnpm", "yarn", "pip", "pip3", "brew", "apt", "apt-get", "poetry", "uv", "cargo", "go", "gem", "bundle", "composer":
		switch next {
		case "install", "i", "ci", "add", "remove", "uninstall", "update", "upgrade", "get", "mod", "audit", "sync", "publish":
			change("words.deps")
		}
	case "kubectl", "helm", "systemctl", "docker", "docker-compose", "terraform", "ansible-playbook", "aws", "gcloud", "az":
		change("words.infra")
	}
	if (head.s == "kill" || head.s == "stop") && (p.trails(i, to, "listening") || p.trails(i, to, "port")) {
		change("words.service")
	}
	if head.is(runs) {
		for n := i + 1; n < to && n <= i+6; n++ {
			if p.ts[n].is(services) && !p.part(n, to) {
				change("words.service")
				break
			}
		}
	}
	elsewhere := false // after "from", words say where something comes from
	described := false // after "a script that", words say what it will do
	made := p.makes(i, to)
	for n := i; n < to; n++ {
		k, nx := p.ts[n], p.at(n+1, to)
		if kind, named := p.file(n); named && n > i && !elsewhere {
			switch kind {
			case plainFile, testFile, docFile:
			default:
				change("words.file")
			}
			continue
		}
		switch k.s {
		case "from", "like", "unlike", "than":
			elsewhere = n > i
		case "that", "which", "to", "into", "for":
			described = described || made && n > i+1
			elsewhere = described
		}
		if strings.HasPrefix(k.s, "/etc/") || strings.HasPrefix(k.s, "~/.") {
			change("words.config")
		}
		if k.s == "environment" && strings.HasPrefix(nx, "var") || k.s == "env" && strings.HasPrefix(nx, "var") {
			change("words.config")
		}
		if k.s == "github" && (strings.HasPrefix(nx, "action") || nx == "workflow") {
			change("words.infra")
		}
		if k.s == "feature" && (nx == "flag" || nx == "flags") {
			change("words.config")
		}
		if k.s == "pre-commit" || k.s == "precommit" || k.s == "git" && strings.HasPrefix(nx, "hook") {
			change("words.config")
		}
		if n > i && p.part(n, to) {
			continue
		}
		switch {
		case k.is(platform) && !elsewhere, k.s == "load" && nx == "balancer", k.s == "health" && nx == "check", k.s == "port" && n > i && numberLen(nx) > 0, k.s == "apex":
			change("words.infra")
		case k.is(data) && !elsewhere, k.s == "alter" && nx == "table", k.s == "index" && nx == "on", k.s == "unique" && p.trails(i, to, "column"), k.s == "table" && n > i && (head.s == "create" || head.s == "alter") && p.sql(i, to),
			(k.s == "table" || k.s == "tables") && n > i+1 && p.ts[n-1].s != "the" && p.ts[n-1].s != "a" && p.trails(i, to, "with") && head.s == "add":
			change("words.data")
		case k.is(depends) && !elsewhere, k.s == "lock" && nx == "file", (k.s == "node" || k.s == "python" || k.s == "java" || k.s == "go" || k.s == "ruby" || k.s == "php") && (nx == "version" || numberLen(nx) > 0) && n > i,
			(k.s == "package" || k.s == "packages") && n > i && (head.s == "add" || head.s == "remove" || head.s == "update"), k.is(manager) && n == i+1 && head.s == "run" && (p.trails(i, to, "install") || p.trails(i, to, "audit") || p.trails(i, to, "get") || p.trails(i, to, "update")),
			k.s == "go" && n > i && (nx == "get" || nx == "mod"), k.s == "webpack" && nx == "to":
			change("words.deps")
		case k.is(settings) && n > i && !elsewhere, k.s == "rate" && strings.HasPrefix(nx, "limit"), k.s == "api" && strings.HasPrefix(nx, "key"), k.s == "body" && nx == "size", quantity(k.s, nx),
			k.s == "port" && n > i && (head.s == "change" || head.s == "set"), k.s == "pool" && nx == "size", (k.s == "limit" || k.s == "heap" || k.s == "memory" || k.s == "threshold" || k.s == "capacity") && n > i && (head.s == "raise" || head.s == "increase" || head.s == "lower" || head.s == "change" || head.s == "set"), k.s == "strict" && nx == "mode":
			change("words.config")
		case k.is(places) && !elsewhere:
			change("words.environment")
		case k.s == "pr" && n > i, k.s == "prs" && n > i, k.s == "mr" && n > i, (k.s == "pull" || k.s == "merge") && nx == "request", k.is(shared) && n > i && (head.s == "push" || head.s == "tag" || head.s == "assign" || head.s == "label" || head.s == "create" || head.s == "close" || head.s == "comment"):
			change("words.remote")
		}
	}
}

// makes: a piece of code is to be made, and what follows says what it does.
func (p *prompt) makes(i, to int) bool {
	switch p.ts[i].s {
	case "write", "create", "add", "implement", "build", "make", "generate", "new", "need", "want", "give":
	default:
		return false
	}
	for n := i + 1; n < to && n <= i+4; n++ {
		switch k := p.ts[n]; {
		case k.is(code), k.s == "script", k.s == "program", k.s == "cli", k.s == "tool", k.s == "job", k.s == "library", k.s == "query", k.s == "app":
			return true
		case k.is(platform | data | settings):
			return false
		}
	}
	return false
}

// freed: the lock is released, not the version.
func (p *prompt) freed(i, to int) bool {
	for n := i + 1; n < to && n <= i+4; n++ {
		switch p.ts[n].s {
		case "lock", "locks", "mutex", "memory", "resource", "resources", "buffer", "handle", "connection", "semaphore", "focus", "pointer", "listener":
			return true
		}
	}
	return false
}

// sql: the table is one of a database, as far as the clause says.
func (p *prompt) sql(i, to int) bool {
	for n := i; n < to; n++ {
		if p.ts[n].is(data) || p.ts[n].s == "rows" || p.ts[n].s == "fk" {
			return true
		}
	}
	return false
}

func (p *prompt) names(i, to int, s sense) bool {
	for n := i + 1; n < to; n++ {
		if p.ts[n].is(s) {
			return true
		}
	}
	return false
}
