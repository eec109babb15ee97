package gate

import "strings"

// refuses: nothing is to be changed.
func (p *prompt) refuses(i, to int) bool {
	k, next := p.ts[i].s, p.at(i+1, to)
	switch k {
	case "don't", "dont", "never", "without":
	case "do":
		if next != "not" {
			return false
		}
		i++
		next = p.at(i+1, to)
	case "no":
		return next == "changes" || next == "edits" || next == "code"
	default:
		return false
	}
	switch next {
	case "change", "changing", "edit", "editing", "modify", "modifying", "fix", "fixing", "touch", "touching", "write", "writing", "implement", "implementing", "do", "make", "making", "install", "installing", "commit", "run", "apply", "delete", "push":
	default:
		return false
	}
	switch p.at(i+2, to) {
	case "", "anything", "it", "code", "any", "files", "them", "yet", "changes", "nothing", "the", "this", "that":
		return true
	}
	return false
}

// question: the clause asks.
func (p *prompt) question(i, to int) bool {
	k, next := p.ts[i], p.at(i+1, to)
	switch {
	case questionWord(k.s):
		return k.s != "when" || p.endsWith(to, '?') || next == "was" || next == "is" || next == "did" || next == "does" || next == "do"
	case k.s == "any", k.s == "wonder":
		return true
	case k.s == "have" && i > 0 && p.ts[i-1].s == "we":
		return false
	case k.s == "do" && (next == "it" || next == "that" || next == "this"):
		return false
	case k.s == "do" && next == "the":
		switch p.at(i+2, to) {
		case "same", "rest", "job", "work", "first", "second", "third", "next", "other", "others", "latter", "former":
			return false
		}
	case k.s == "do" && !p.ts[min(i+1, to-1)].is(subject) && !p.endsWith(to, '?'):
		return false
	case k.is(asks):
		return i+1 >= to || !p.ts[i+1].is(does) || p.ts[i+1].is(subject) || p.endsWith(to, '?')
	}
	return p.endsWith(to, '?') && !k.is(does|looks)
}

// endsWith reports the mark that ends a clause.
func (p *prompt) endsWith(to int, mark byte) bool {
	end := len(p.text)
	if to < len(p.ts) {
		end = p.ts[to].at
	}
	last := p.ts[to-1]
	return strings.IndexByte(p.text[last.at+len(last.s):end], mark) >= 0
}

// advice is where the act begins that a question asks advice for, 0 when it asks none.
func (p *prompt) advice(i, to int) int {
	at := func(n int) string { return p.at(i+n, to) }
	self := func(s string) bool { return s == "i" || s == "we" || s == "you" || s == "one" }
	switch at(0) {
	case "how":
		if at(1) == "to" {
			return i + 2
		}
		if self(at(2)) {
			return i + 3
		}
	case "what":
		if self(at(2)) {
			return i + 3
		}
	case "should":
		if self(at(1)) {
			return i + 2
		}
	}
	return 0
}

// check: something is run that only reports.
func (p *prompt) check(i, to int) bool {
	k := p.ts[i]
	switch k.s {
	case "lint", "typecheck", "benchmark":
		return !p.names(i, to, does) || p.trails(i, to, "count")
	case "make", "be":
		if next := p.at(i+1, to); next == "sure" || next == "certain" {
			return p.passes(i, to)
		}
		return p.ts[i].s == "make" && (p.at(i+1, to) == "test" || p.at(i+1, to) == "lint" || p.at(i+1, to) == "check")
	case "test":
		return tried(p.at(i+1, to))
	case "run", "rerun", "execute", "re-run", "npm", "go", "yarn", "pnpm", "cargo", "git", "terraform", "pytest", "npx", "mvn", "bundle":
	case "ensure":
		return p.passes(i, to)
	default:
		return false
	}
	from := i + 1
	if k.is(programs) {
		from = i
	}
	for n := from; n < to && n < from+7; n++ {
		t, next := p.ts[n], p.at(n+1, to)
		switch {
		case t.s == "--fix" || t.s == "--write" || t.s == "fix" || t.s == "migrate" || t.s == "install" || t.is(data) && !t.is(checks):
			return false
		case t.s == "git":
			switch next {
			case "status", "diff", "log", "show", "blame", "branch", "remote", "describe":
				return next != "branch" && next != "remote" || n+2 >= to
			}
			return false
		case t.s == "terraform" || t.s == "tofu" || t.s == "pulumi":
			return next == "plan" || next == "validate" || next == "preview" || next == "show"
		case t.is(checks) && !(n+1 < to && p.ts[n+1].is(services)):
			return true
		case t.s == "type" && (next == "checker" || next == "check"), t.s == "dry" && next == "run", t.s == "--dry-run", t.s == "dry-run":
			return true
		}
	}
	return false
}

// passes: somebody is to see that what is there still works.
func (p *prompt) passes(i, to int) bool {
	for n := i + 1; n < to; n++ {
		switch p.ts[n].s {
		case "pass", "passes", "passing", "green", "compiles", "compile", "builds", "works":
			return true
		}
	}
	return false
}

// tried: "test the login" tries it, "test coverage" is a thing.
func tried(w string) bool {
	switch w {
	case "this", "that", "it", "the", "if", "whether", "my", "our", "again", "":
		return true
	}
	return false
}

// look: something is to be read, told or thought about.
func (p *prompt) look(i, to int) bool {
	k, next, after := p.ts[i], p.at(i+1, to), p.at(i+2, to)
	switch k.s {
	case "write", "make", "create", "prepare", "give": // "write me a short plan"
		for n := i + 1; n < to && n <= i+5; n++ {
			switch p.ts[n].s {
			case "plan", "proposal", "suggestion", "summary", "overview", "comparison", "recommendation", "estimate":
				return !p.trails(n, to, "in") && !p.trails(n, to, "page")
			case "me", "a", "an", "the", "short", "detailed", "brief", "quick", "list":
			default:
				n = to
			}
		}
	}
	if k.s == "let" && next == "me" && after == "know" || k.s == "need" && (next == "help" || next == "advice") || k.s == "have" && next == "a" && (after == "look" || after == "question") {
		return true
	}
	if k.s == "double" && next == "check" {
		return true
	}
	if k.s == "document" && next == "for" && after == "me" {
		return true
	}
	if k.s == "run" && (next == "a" || next == "an") {
		for n := i + 2; n < to && n <= i+4; n++ {
			switch p.ts[n].s {
			case "audit", "analysis", "scan", "search", "check", "review", "comparison", "profile", "diagnosis":
				return true
			}
		}
	}
	if !k.is(looks) {
		return false
	}
	switch k.s {
	case "show", "print", "display": // a part of the program may do that
		if next == "a" || next == "an" {
			return false
		}
		if next != "me" && next != "us" {
			for n := i + 2; n+1 < to; n++ {
				if w := p.ts[n]; w.s == "when" || w.s == "while" || w.s == "if" || (w.s == "in" || w.s == "on") && p.ts[to-1].is(code) {
					return false
				}
			}
		}
	case "get":
		for n := i + 1; n < to; n++ {
			switch p.ts[n].s {
			case "rid", "green", "working", "running", "going", "fixed", "done", "passing", "work", "ready":
				return false
			}
		}
	case "open":
		for n := i + 1; n < to; n++ {
			if t := p.ts[n]; t.is(shared|platform) || t.s == "port" || t.s == "pull" || t.s == "merge" || t.s == "request" {
				return false
			}
		}
	case "validate", "verify", "check", "confirm":
		if p.trails(i, to, "before") && next != "that" && next != "whether" && next != "if" {
			return true
		}
	case "give":
		if next == "me" || next == "us" {
			for n := i + 2; n < to && n < i+5; n++ {
				if s := p.ts[n].s; s == "script" || s == "function" || s == "query" || s == "regex" || s == "command" || s == "snippet" {
					return false
				}
			}
			return true
		}
		return false // "give the button a border"
	case "help":
		return !(i+2 < to && p.ts[i+2].is(does))
	case "come":
		return next == "up"
	case "know", "report", "head", "less", "top", "guess":
		return true
	case "draft":
		return true
	case "profile", "monitor", "watch", "trace":
		return next != "" && !strings.HasPrefix(next, "should")
	}
	return true
}

func (p *prompt) trails(i, to int, word string) bool {
	for n := i + 1; n < to; n++ {
		if p.ts[n].s == word {
			return true
		}
	}
	return false
}
