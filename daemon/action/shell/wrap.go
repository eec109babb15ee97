package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a program that runs another one given in its arguments.
type wrapper struct {
	// valued are the options that take their value in the next word.
	valued string
	// words is how many plain words stand before the command (timeout's duration).
	words int
	// assigns: NAME=value words before the command set its environment.
	assigns bool
	// bare is the effect when no command follows.
	bare Effect
}

var wrappers = map[string]wrapper{
	"sudo":             {valued: "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T --command-timeout -U --other-user -R --chroot -D --chdir", assigns: true, bare: ReadOnly},
	"doas":             {valued: "-u -C", bare: ReadOnly},
	"run0":             {valued: "-u -g -D --user --group --chdir --unit --property", bare: Opaque},
	"pkexec":           {valued: "--user", bare: Opaque},
	"env":              {valued: "-u --unset -C --chdir -S --split-string", assigns: true, bare: ReadOnly},
	"nohup":            {bare: ReadOnly},
	"nice":             {valued: "-n --adjustment", bare: ReadOnly},
	"ionice":           {valued: "-c --class -n --classdata -p --pid", bare: ReadOnly},
	"chrt":             {valued: "-T -P -D", words: 1, bare: ReadOnly},
	"taskset":          {words: 1, bare: ReadOnly},
	"timeout":          {valued: "-k --kill-after -s --signal", words: 1, bare: ReadOnly},
	"gtimeout":         {valued: "-k --kill-after -s --signal", words: 1, bare: ReadOnly},
	"time":             {valued: "-f --format -o --output", bare: ReadOnly},
	"stdbuf":           {valued: "-i -o -e --input --output --error", bare: ReadOnly},
	"unbuffer":         {bare: ReadOnly},
	"setsid":           {bare: ReadOnly},
	"command":          {bare: ReadOnly},
	"builtin":          {bare: ReadOnly},
	"exec":             {valued: "-a", bare: ReadOnly},
	"then":             {bare: ReadOnly},
	"busybox":          {bare: ReadOnly},
	"toybox":           {bare: ReadOnly},
	"chroot":           {valued: "--userspec --groups", words: 1, bare: Opaque},
	"unshare":          {valued: "-S -G --map-users --map-groups", bare: Opaque},
	"nsenter":          {valued: "-t --target -S -G", bare: Opaque},
	"setpriv":          {valued: "--reuid --regid --groups", bare: ReadOnly},
	"runuser":          {valued: "-u --user -g --group", bare: Opaque},
	"strace":           {valued: "-e -o -s -p -P", bare: ReadOnly},
	"ltrace":           {valued: "-e -o -s -p", bare: ReadOnly},
	"xvfb-run":         {valued: "-n -s -e -f", bare: ReadOnly},
	"dbus-run-session": {bare: ReadOnly},
	"systemd-run":      {valued: "-u --unit -p --property -E --setenv -t", bare: Opaque},
	"caffeinate":       {valued: "-t -w", bare: ReadOnly},
	"firejail":         {bare: Opaque},
	"proot":            {valued: "-r -b -w", bare: Opaque},
	"fakeroot":         {bare: Opaque},
	"catchsegv":        {bare: ReadOnly},
	"direnv":           {words: 2, bare: Mutate},
	"dotenv":           {valued: "-f -e", bare: Mutate},
	"dotenvx":          {words: 1, bare: Mutate},
	"cross-env":        {assigns: true, bare: ReadOnly},
	"npx":              {valued: "-p --package -w --workspace", bare: Mutate},
	"bunx":             {bare: Mutate},
	"pnpx":             {bare: Mutate},
	"uvx":              {valued: "--from --with --python -p", bare: Mutate},
	"watch":            {valued: "-n --interval", bare: ReadOnly},
	"parallel":         {valued: "-j --jobs -a --arg-file -d --delimiter", bare: Opaque},
	"xargs":            {valued: "-I -i -n -P -L -s -d -a -E --max-args --max-procs --max-lines --arg-file --delimiter --replace", bare: ReadOnly},
	"flock":            {valued: "-w --timeout --wait -E", words: 1, bare: Mutate},
	"noglob":           {bare: ReadOnly},
	"winpty":           {bare: Opaque},
	"wsl":              {valued: "-d -u --distribution --user", bare: Opaque},
}

// runners are programs with a subcommand that runs what follows it.
var runners = map[string][]string{
	"npm":     {"exec"},
	"pnpm":    {"dlx", "exec"},
	"yarn":    {"dlx", "exec"},
	"bun":     {"x"},
	"poetry":  {"run"},
	"pipenv":  {"run"},
	"pipx":    {"run"},
	"uv":      {"run"},
	"hatch":   {"run"},
	"rye":     {"run"},
	"bundle":  {"exec"},
	"mise":    {"exec", "x"},
	"asdf":    {"exec"},
	"rbenv":   {"exec"},
	"op":      {"run"},
	"doppler": {"run"},
	"dotnet":  {"exec"},
	"conda":   {"run"},
	"mamba":   {"run"},
	"heroku":  {"run"},
	"fly":     {"ssh console"},
}

var shells = set("sh bash zsh dash ksh ash mksh fish rbash busybox-sh")

// exec unwraps a command until the program is found, and classifies it.
func (w *walker) exec(c call) stream {
	if !w.step() {
		return stream{kind: unknown}
	}
	if len(c.args) == 0 {
		return stream{kind: known}
	}
	outer := len(w.wraps)
	out := w.unwrap(c)
	w.wraps = w.wraps[:outer]
	return out
}

func (w *walker) unwrap(c call) stream {
	for range maxDepth {
		if len(c.args) == 0 {
			return stream{kind: known}
		}
		head := c.args[0]
		if head.s == "!" { // where a parser takes it for a word
			c.args = c.args[1:]
			continue
		}
		if head.dyn {
			w.record(c, Opaque, "dynamic.command", "the program's name is known only when it runs: "+head.s)
			return stream{kind: unknown}
		}
		name := base(head.s)
		if f := w.funcs[head.s]; f != nil {
			return w.callFunc(head.s, f, c)
		}
		if a, ok := w.aliased(head.s); ok {
			w.enter("alias " + head.s)
			text := a.s
			if len(c.args) > 1 {
				text += " " + quoteAll(c.args[1:])
			}
			w.nested(text, c.in)
			w.active["alias "+head.s]--
			return stream{kind: unknown}
		}
		switch {
		case shells[name]:
			for _, e := range c.env {
				if hijack(e) {
					w.note(Opaque, "env.hijack", "changes what runs by "+e[:strings.IndexByte(e, '=')])
				}
			}
			return w.shellCmd(name, c)
		case name == "eval":
			return w.eval(c)
		case name == "find" || name == "gfind" || name == "fd" || name == "fdfind":
			return w.find(c)
		case name == "ssh":
			return w.ssh(c)
		case name == "su" || name == "script" || name == "runuser" && hasFlag(ownOptions(c.args, "-u --user -g --group -G -s --shell -w"), "-c", "--command"):
			return w.dashC(name, c)
		case name == "trap":
			return w.trap(c)
		case name == "alias":
			return w.alias(c)
		case name == "docker" || name == "podman" || name == "nerdctl" || name == "kubectl" || name == "oc" || name == "docker-compose":
			if inner, ok := containerExec(name, c.args); ok {
				w.wraps = append(w.wraps, name+" exec")
				w.note(Mutate, "container.exec", "runs a program in a container")
				c.args = inner
				continue
			}
		case name == "tmux" || name == "screen":
			return w.terminal(name, c)
		}
		if rest, text, l, ok := launch(name, c.args); ok {
			w.launched(name, l)
			if rest == nil || l.text {
				if text.dyn {
					w.note(Opaque, "dynamic.script", name+" runs a text that is known only when it runs")
				}
				w.joined(text.s, rest, c.in)
				return stream{kind: unknown}
			}
			c.args = rest
			continue
		}
		if subs, ok := runners[name]; ok {
			if inner, sub := runnerArgs(subs, c.args); inner != nil {
				w.wraps = append(w.wraps, name+" "+sub)
				c.args = inner
				continue
			}
		}
		wr, ok := wrappers[name]
		if !ok {
			return w.program(name, c)
		}
		inner, done := w.strip(name, wr, &c)
		if done {
			return stream{kind: unknown}
		}
		if len(inner) == 0 {
			e := wr.bare
			if len(c.args) == 2 {
				switch c.args[1].s {
				case "-h", "--help", "-V", "--version", "--list", "-v", "--top", "--tree", "--netstats":
					e = ReadOnly
				}
			}
			w.record(c, e, "wrapper.bare", name+" without a command")
			return stream{kind: unknown}
		}
		w.wraps = append(w.wraps, name)
		c.args = inner
	}
	w.record(c, Opaque, "depth", "wrapped too deep")
	return stream{kind: unknown}
}

// aliased is what a name stands for, unless it is being read already.
func (w *walker) aliased(name string) (word, bool) {
	if w.vars == nil {
		return word{}, false
	}
	a, ok := w.vars["alias "+name]
	return a, ok && w.active["alias "+name] == 0
}

// joined reads a text that another program made from words, as it will be read
// there. Quotes around a word are gone by then, which people forget: a word that
// holds a command line is read as it was meant, too.
func (w *walker) joined(text string, words []word, in stream) {
	w.nested(text, in)
	for _, v := range words[min(1, len(words)):] {
		if strings.ContainsAny(v.s, " \t\n;|&{$`'\"\\") {
			outer := w.steps
			w.steps /= 2
			w.exec(call{args: words, in: in})
			w.steps += outer - outer/2
			return
		}
	}
}

// launched notes what runs a command elsewhere or by another program.
func (w *walker) launched(name string, l launcher) {
	wrap := name
	if l.sub != "" {
		wrap += " " + l.sub
	}
	if l.remote {
		w.note(Mutate, "remote.exec", wrap+" runs a program on another system")
	} else {
		w.note(Mutate, "launch", wrap+" runs a program")
	}
	w.wraps = append(w.wraps, wrap)
}

// strip takes a wrapper's own options and words away. done means that the
// wrapper has been dealt with here.
func (w *walker) strip(name string, wr wrapper, c *call) (inner []word, done bool) {
	args, left := c.args[1:], wr.words
	for len(args) > 0 {
		a := args[0].s
		switch {
		case a == "--":
			args = args[1:]
			if left == 0 {
				return args, false
			}
		case len(a) > 1 && a[0] == '-':
			switch {
			case name == "env" && (strings.HasPrefix(a, "-S") || strings.HasPrefix(a, "--split-string")):
				text := strings.TrimPrefix(strings.TrimPrefix(a, "--split-string="), "-S")
				rest := args[1:]
				if text == "" || a == "--split-string" {
					if len(rest) == 0 {
						return nil, false
					}
					text, rest = rest[0].s, rest[1:]
				}
				w.wraps = append(w.wraps, "env -S")
				w.nested(text+" "+quoteAll(rest), c.in)
				return nil, true
			case name == "command" && (a == "-v" || a == "-V"):
				w.record(*c, ReadOnly, "read.lookup", "looks a program up")
				return nil, true
			case name == "sudo" && strings.ContainsAny(a, "ev") && (a == "-e" || a == "--edit"):
				for _, p := range args[1:] {
					w.path(p.s)
				}
				w.record(*c, Mutate, "sudo.edit", "edits files as root")
				return nil, true
			case name == "sudo" && (a == "-l" || a == "-v" || a == "-k" || a == "-K" || a == "--list"):
				w.record(*c, ReadOnly, "sudo.list", "asks what sudo allows")
				return nil, true
			case (name == "npx" || name == "parallel" || name == "flock") && (a == "-c" || a == "--call" || a == "--command") && len(args) > 1:
				w.wraps = append(w.wraps, name+" -c")
				w.nested(args[1].s, c.in)
				return nil, true
			case (name == "strace" || name == "ltrace") && strings.HasPrefix(a, "-p"):
				w.record(*c, Mutate, "trace.attach", "attaches to a running program")
				return nil, true
			}
			args = args[1:]
			if takesValue(wr.valued, a) && len(args) > 0 {
				if name == "strace" && a == "-o" || name == "time" && (a == "-o" || a == "--output") {
					w.writes(args[0])
				}
				args = args[1:]
			}
		case wr.assigns && strings.IndexByte(a, '=') > 0 && isName(a[:strings.IndexByte(a, '=')]):
			c.env = append(c.env, a)
			args = args[1:]
		case left > 0:
			left--
			args = args[1:]
			if name == "flock" && len(args) > 1 && (args[0].s == "-c" || args[0].s == "--command") {
				w.wraps = append(w.wraps, "flock -c")
				w.nested(args[1].s, c.in)
				return nil, true
			}
		default:
			switch name {
			case "xargs":
				// What it appends comes from its input: unknown operands.
				return append(args[:len(args):len(args)], word{s: "…", dyn: true}), false
			case "parallel":
				w.wraps = append(w.wraps, name)
				if i := slices.IndexFunc(args, func(a word) bool { return strings.HasPrefix(a.s, ":::") }); i >= 0 && !strings.HasPrefix(args[i].s, "::::") {
					for _, a := range args[i+1 : min(i+9, len(args))] { // what it appends is known
						w.joined(joinWords(args[:i])+" "+a.s, args[:i], c.in)
					}
					return nil, true
				}
				w.joined(joinWords(args)+" …", args, c.in)
				w.note(Opaque, "parallel", "runs a command per line of input")
				return nil, true
			case "watch":
				w.wraps = append(w.wraps, name)
				w.joined(joinWords(args), args, stream{})
				return nil, true
			}
			return args, false
		}
	}
	return nil, false
}

// takesValue reports an option that has its value in the next word.
func takesValue(list, opt string) bool {
	if strings.IndexByte(opt, '=') >= 0 || list == "" {
		return false
	}
	for i := 0; i < len(list); {
		j := strings.IndexByte(list[i:], ' ')
		if j < 0 {
			return list[i:] == opt
		}
		if list[i:i+j] == opt {
			return true
		}
		i += j + 1
	}
	return false
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// quoteAll writes words as one shell text.
func quoteAll(ws []word) string {
	var b strings.Builder
	for i, v := range ws {
		if i > 0 {
			b.WriteByte(' ')
		}
		if v.dyn {
			b.WriteString(`"$__dynamic"`)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(v.s, `'`, `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}

func (w *walker) enter(name string) {
	if w.active == nil {
		w.active = map[string]int{}
	}
	w.active[name]++
}

func (w *walker) callFunc(name string, body *syntax.Stmt, c call) stream {
	if w.active[name] > 0 {
		if c.piped || c.bg || c.in.kind == unknown {
			w.note(Catastrophe, "fork.bomb", name+" starts itself again without end")
		}
		return stream{kind: unknown}
	}
	saved := map[string]word{}
	for i := range 10 {
		k := string(rune('0' + i))
		saved[k] = w.vars[k]
		if i > 0 && i < len(c.args) {
			w.set(k, c.args[i])
		}
	}
	all := word{s: joinWords(c.args[1:])}
	for _, a := range c.args[1:] {
		all.dyn = all.dyn || a.dyn
	}
	w.set("@", all)
	w.set("*", all)
	outer := w.args
	w.args = append([]word{}, c.args[1:]...)
	w.enter(name)
	out := w.stmt(body, c.in, c.piped)
	w.active[name]--
	w.args = outer
	for k, v := range saved {
		if v.s == "" {
			delete(w.vars, k)
		} else {
			w.vars[k] = v
		}
	}
	delete(w.vars, "@")
	delete(w.vars, "*")
	return out
}

func hasFlag(args []word, flags ...string) bool {
	for _, a := range args[1:] {
		if a.s == "--" {
			return false
		}
		for _, f := range flags {
			if a.s == f || len(f) > 2 && f[0] == '-' && f[1] == '-' && strings.HasPrefix(a.s, f) && len(a.s) > len(f) && a.s[len(f)] == '=' {
				return true
			}
		}
	}
	return false
}

// given is hasFlag for options of which programs take any beginning that is long
// enough: --recur, --forc.
func given(args []word, flags ...string) bool {
	for _, a := range args[1:] {
		if a.s == "--" {
			return false
		}
		opt, _, _ := strings.Cut(a.s, "=")
		for _, f := range flags {
			if opt == f || abbreviates(opt, f) {
				return true
			}
		}
	}
	return false
}

// abbreviates reports a long option that is a beginning of another.
func abbreviates(opt, full string) bool {
	return len(opt) > 3 && strings.HasPrefix(opt, "--") && strings.HasPrefix(full, opt)
}

// short reports a single-letter option, alone or in a cluster like -rf.
func short(args []word, letter byte) bool {
	for _, a := range args[1:] {
		if a.s == "--" {
			return false
		}
		if len(a.s) > 1 && a.s[0] == '-' && a.s[1] != '-' && strings.IndexByte(a.s, letter) > 0 {
			return true
		}
	}
	return false
}

// ownOptions are a program's name and its options up to its first plain word.
func ownOptions(args []word, valued string) []word {
	i := 1
	for i < len(args) && len(args[i].s) > 1 && args[i].s[0] == '-' && args[i].s != "--" {
		if takesValue(valued, args[i].s) {
			i++
		}
		i++
	}
	return args[:min(i, len(args))]
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, f := range strings.Fields(words) {
		m[f] = true
	}
	return m
}
