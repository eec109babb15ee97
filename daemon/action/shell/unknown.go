package shell

import "strings"

// destructiveVerb reports a subcommand word that takes something away for good.
func destructiveVerb(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '-' || r == '_' || r == ':' || r == '.' }) {
		if part = strings.ToLower(part); destructiveWord(part) || compound(part) {
			return true
		}
	}
	return false
}

// compound reports a verb that is written together with what it takes away:
// deluser, removeworkspace, purgequeue. A form of the verb alone is none.
func compound(w string) bool {
	for _, verb := range [...]string{"delete", "remove", "destroy", "purge", "uninstall", "wipe", "erase"} {
		if rest, ok := strings.CutPrefix(w, verb); ok {
			switch rest {
			case "", "d", "s", "r", "rs", "ed", "er", "ing", "all":
				return rest == "all"
			}
			return len(rest) > 2
		}
	}
	if rest, ok := strings.CutPrefix(w, "del"); ok {
		return takenNouns[rest]
	}
	return false
}

// takenNouns are what the short verb del is written together with.
var takenNouns = set("user users group groups role roles key keys node nodes host hosts zone rule rules peer server service domain topic queue db database table index volume snapshot image vm pool route policy account all file files dir acl record entry token cert")

func destructiveWord(w string) bool {
	switch w {
	case "delete", "del", "destroy", "drop", "purge", "wipe", "erase", "terminate", "nuke", "rm", "remove", "prune", "forget", "flush", "flushall", "flushdb", "truncate", "reset", "deregister", "obliterate", "uninstall", "revoke", "rb", "unregister", "undeploy", "unsubscribe", "rollback", "unpublish", "decommission", "kill":
		return true
	}
	return false
}

// destructiveName reports an identifier that begins with such a verb, or ends in
// one after a dot: deleteEntity, delete_by_query, doDelete, customer.delete.
func destructiveName(s string) bool {
	var parts []string
	from := 0
	for i := range len(s) {
		switch c := s[i]; {
		case !isWordByte(c) || c == '_':
			parts, from = append(parts, s[from:i]), i+1
		case c >= 'A' && c <= 'Z' && i > from && s[i-1] >= 'a' && s[i-1] <= 'z':
			parts, from = append(parts, s[from:i]), i
		}
	}
	for _, p := range append(parts, s[from:]) {
		switch p = strings.ToLower(p); p {
		case "", "do", "bulk", "batch", "force":
			continue
		case "del", "rm", "flush", "reset", "rb":
			return len(parts) == 0
		case "cancel":
			return true
		}
		return destructiveWord(p)
	}
	return false
}

// unknownProgram is a mutation, and destruction when one of its first words
// says so: farm tools and admin clients agree on those verbs.
func unknownProgram(w *walker, c call) ruling {
	name := base(c.args[0].s)
	if startsSQL(name) && len(c.args) > 1 {
		if e, rule, why := SQL(joinWords(c.args)); e.AtLeast(Destroy) {
			return ruling{effect: e, rule: rule, why: why + ", in a text that is no command"}
		}
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && !strings.Contains(c.args[0].s, "/") && name[i+1:] != "rb" && name[i+1:] != "rm" && destructiveName(name[i+1:]) {
		return destroy("verb.destroy", "a call of "+name)
	}
	if asksHelp(c.args) { // what it does with that is not known
		return ruling{effect: Mutate, rule: "program.unknown", why: "an unknown program, asked for help: " + name}
	}
	if what := namedFor(name); what != "" {
		return stronger(ruling{effect: Destroy, rule: "verb.destroy", why: name + " by its name is there to " + what}, statementArg(c.args))
	}
	r := byWords(name, c.args[1:])
	if w.asRoot() {
		for _, a := range c.args[1:] {
			if strings.HasPrefix(a.s, "--remove") || strings.HasPrefix(a.s, "--reset") {
				r = stronger(r, ruling{effect: Destroy, rule: "flag.destroy", why: name + " " + a.s + " as root"})
			}
		}
	}
	return stronger(r, statementArg(c.args))
}

// asRoot reports a command that runs as another user, root as a rule: what it resets
// or removes is the system's.
func (w *walker) asRoot() bool {
	for _, by := range w.wraps {
		switch by {
		case "sudo", "doas", "pkexec", "run0", "su -c":
			return true
		}
	}
	return false
}

// asksHelp reports plain words and a request for help behind them, with no option
// that would count before it.
func asksHelp(args []word) bool {
	n := len(args) - 1
	if n < 1 || n > 4 || strings.IndexByte(args[0].s, '/') >= 0 {
		return false
	}
	for _, a := range args[1:n] {
		if a.dyn || a.s == "" || strings.IndexByte("-/", a.s[0]) >= 0 {
			return false
		}
	}
	switch args[n].s {
	case "--help", "-h", "-?", "-help":
		return true
	}
	return (n == 1 || base(args[0].s) == "aws") && args[n].s == "help"
}

// namedFor is the verb that a program of several words is called by, in front or
// behind: del-cli, user-delete. "" for none.
func namedFor(name string) string {
	first, rest, ok := strings.Cut(name, "-")
	last := rest[strings.LastIndexByte(rest, '-')+1:]
	switch {
	case ok && destructiveWord(first) && first != "reset" && first != "flush":
		return first
	case ok && destructiveWord(last):
		return last
	}
	return ""
}

// statementArg finds a statement that destroys among the arguments of a program
// that is given one: tool --query 'DROP TABLE …', tool 'TRUNCATE …'.
func statementArg(args []word) ruling {
	for i, a := range args {
		if i == 0 || strings.IndexByte(a.s, ' ') < 0 {
			continue
		}
		text := a.s
		if f, v, ok := strings.Cut(a.s, "="); ok && strings.HasPrefix(f, "--") && strings.IndexByte(f, ' ') < 0 {
			if text = v; !statementOption(f) {
				continue
			}
		} else if prev := args[i-1].s; strings.HasPrefix(prev, "-") && !statementOption(prev) {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimLeft(text, " \n\t("), " ")
		if !startsSQL(first) || first != strings.ToUpper(first) && !statementOption(args[i-1].s) {
			continue
		}
		if e, rule, why := SQL(text); e.AtLeast(Destroy) {
			return ruling{effect: e, rule: rule, why: why}
		}
	}
	return ruling{}
}

func statementOption(f string) bool {
	switch strings.ToLower(strings.TrimLeft(f, "-")) {
	case "c", "e", "q", "command", "cmd", "execute", "query", "sql", "statement", "sql-statement", "statements", "query-string", "query-statement", "stmt", "run", "eval", "cypher":
		return true
	}
	return false
}

// byWords rules on the words of a program that has no table.
func byWords(name string, args []word) ruling {
	n := 0
	for _, a := range args {
		if a.s == "--help" {
			break
		}
		if a.s == "" || a.s[0] == '-' {
			if destructiveFlag(a.s) {
				return ruling{effect: Destroy, rule: "flag.destroy", why: name + " " + a.s}
			}
			continue
		}
		if strings.Contains(a.s, "://") || n == 0 && strings.IndexByte(a.s, '=') > 0 {
			continue
		}
		if strings.ContainsAny(a.s, " /=") {
			break
		}
		if n++; n > 4 {
			break
		}
		if destructiveVerb(a.s) {
			return ruling{effect: Destroy, rule: "verb.destroy", why: name + " … " + a.s}
		}
	}
	return ruling{effect: Mutate, rule: "program.unknown", why: "an unknown program may change anything: " + name}
}

// destructiveFlag reports an option that stands for such a verb.
func destructiveFlag(f string) bool {
	f, _, _ = strings.Cut(f, "=")
	if len(f) > 3 && f[0] == '-' && f[1] != '-' { // Go's flag package takes one dash as well
		f = "-" + f
	}
	switch {
	case strings.HasPrefix(f, "--delete-"), strings.HasPrefix(f, "--purge-"), strings.HasPrefix(f, "--wipe-"), strings.HasPrefix(f, "--erase-"):
		noun := f[strings.LastIndexByte(f, '-')+1:]
		return !harmlessNouns[noun]
	}
	switch f {
	case "--remove", "--remove-all", "--uninstall", "--unregister", "--unpublish", "--zap", "--delete", "--purge", "--destroy", "--drop", "--wipe", "--erase", "--truncate", "--force-reset", "--reset-offsets", "--factory-reset", "--drop-database", "--drop-tables":
		return true
	}
	return false
}

func startsSQL(name string) bool {
	switch strings.ToUpper(name) {
	case "DROP", "TRUNCATE", "DELETE", "ALTER", "GRANT", "UPDATE":
		return true
	}
	switch name { // these are words of shells as well, in lower case
	case "REVOKE", "RESET", "PURGE", "RENAME", "MERGE", "MATCH", "EXEC":
		return true
	}
	return false
}

// java runs an archive: its words are all that is known of it.
func java(w *walker, c call) ruling {
	if len(c.args) == 2 && (c.args[1].s == "-version" || c.args[1].s == "--version") {
		return readOnly("prints its version")
	}
	for i, a := range c.args[1:] {
		if a.s == "-jar" && i+2 < len(c.args) {
			rest := c.args[i+3:]
			kept := make([]word, 0, len(rest))
			for j := 0; j < len(rest); j++ {
				if takesValue("-s -auth -i -p -u", rest[j].s) {
					j++
					continue
				}
				kept = append(kept, rest[j])
			}
			name := base(c.args[i+2].s)
			if _, ok := tableOf(name); ok {
				return stronger(byWords(name, kept), verbs(w, call{args: append([]word{{s: name}}, kept...)}))
			}
			return byWords(name, kept)
		}
	}
	return mutate("script", "runs a Java program")
}

// wire are programs that hand their input to whatever listens.
func wire(_ *walker, c call) ruling {
	name := base(c.args[0].s)
	for _, a := range c.args[1:] {
		if l := strings.ToUpper(a.s); strings.HasPrefix(l, "EXEC:") || strings.HasPrefix(l, "SYSTEM:") || name != "socat" && name != "nsupdate" && name != "telnet" && (a.s == "-e" || a.s == "-c" || a.s == "--exec" || a.s == "--sh-exec") {
			return ruling{effect: Opaque, rule: "wire.exec", why: name + " gives a program to whoever connects"}
		}
	}
	for line := range strings.SplitSeq(c.in.text, "\n") {
		f := strings.Fields(line)
		for i, s := range f {
			if i > 2 {
				break
			}
			switch s = strings.ToLower(s); {
			case destructiveVerb(s), i == 0 && (s == "shutdown" || s == "disable" || s == "flush_all" || s == "stop" || s == "quit!"):
				return destroy("wire.destroy", "sends "+s+" to a service")
			}
		}
	}
	if name == "nsupdate" && c.in.kind != known {
		return destroy("wire.destroy", "changes names of a zone, unseen")
	}
	return mutate("wire", name+" talks to a service")
}
