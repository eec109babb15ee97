package shell

import "strings"

// shellCmd is sh, bash and the like: a text, a file or the standard input.
func (w *walker) shellCmd(name string, c call) stream {
	args := c.args[1:]
	for len(args) > 0 {
		a := args[0].s
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if a == "--" {
			args = args[1:]
			break
		}
		if a == "--version" || a == "--help" {
			w.record(c, ReadOnly, "read.version", "prints its version")
			return stream{kind: unknown}
		}
		if a == "--rcfile" || a == "--init-file" || a == "-o" || a == "-O" || a == "+O" {
			args = args[min(2, len(args)):]
			continue
		}
		args = args[1:]
		if a[0] == '-' && a[1] != '-' && strings.IndexByte(a, 'c') > 0 {
			if len(args) == 0 {
				return stream{kind: unknown}
			}
			// bash -c -- text, bash -c -l text
			for len(args) > 1 && len(args[0].s) > 1 && args[0].s[0] == '-' && !args[0].dyn {
				args = args[1:]
			}
			if args[0].dyn {
				w.wraps = append(w.wraps, name+" -c")
				w.record(call{args: c.args}, Opaque, "dynamic.script", "runs a text that is known only when it runs")
				w.nested(args[0].s, c.in)
				return stream{kind: unknown}
			}
			w.wraps = append(w.wraps, name+" -c")
			for i, a := range args[1:] {
				if i < 10 {
					w.set(string(rune('0'+i)), a)
				}
			}
			w.nested(args[0].s, c.in)
			return stream{kind: unknown}
		}
		if a == "-s" {
			args = nil
		}
	}
	if len(args) > 0 && args[0].sub != nil { // bash <(echo …): what it prints is known
		w.wraps = append(w.wraps, name+" <()")
		w.nested(*args[0].sub, c.in)
		return stream{kind: unknown}
	}
	if len(args) > 0 && args[0].s != "-" && args[0].s != "/dev/stdin" {
		if args[0].dyn {
			w.record(c, Opaque, "dynamic.script", "runs a script that is known only when it runs")
		} else {
			w.record(c, Mutate, "script", "runs the script "+args[0].s)
			w.script(name, args[0], args[1:], c.in)
		}
		return stream{kind: unknown}
	}
	w.stdinScript(name, c)
	return stream{kind: unknown}
}

// stdinScript is a shell that reads its commands from standard input.
func (w *walker) stdinScript(name string, c call) {
	switch c.in.kind {
	case known:
		w.wraps = append(w.wraps, name+" <")
		w.nested(c.in.text, stream{})
	case unknown:
		w.record(c, Opaque, "pipe.shell", "runs what it is sent, unseen")
		if c.in.text != "" {
			w.nested(c.in.text, stream{})
		}
	default:
		w.record(c, Opaque, "interactive", "an interactive shell")
	}
}

func (w *walker) eval(c call) stream {
	args := c.args[1:]
	for _, a := range args {
		if a.dyn {
			w.record(c, Opaque, "dynamic.eval", "evaluates a text that is known only when it runs")
			w.nested(joinWords(args), c.in)
			return stream{kind: unknown}
		}
	}
	w.wraps = append(w.wraps, "eval")
	w.nested(joinWords(args), c.in)
	return stream{kind: unknown}
}

func (w *walker) trap(c call) stream {
	args := c.args[1:]
	if len(args) < 2 || args[0].s == "-" || args[0].s == "" || args[0].s == "-p" || args[0].s == "-l" {
		w.record(c, ReadOnly, "builtin", "sets a trap")
		return stream{kind: known}
	}
	w.wraps = append(w.wraps, "trap")
	w.nested(args[0].s, stream{})
	return stream{kind: known}
}

func (w *walker) alias(c call) stream {
	for _, a := range c.args[1:] {
		if i := strings.IndexByte(a.s, '='); i > 0 {
			w.set("alias "+a.s[:i], word{s: a.s[i+1:], dyn: a.dyn})
		}
	}
	w.record(c, ReadOnly, "builtin", "names an alias")
	return stream{kind: known}
}

// dashC is su and script: -c TEXT, else an interactive shell.
func (w *walker) dashC(name string, c call) stream {
	if len(c.args) == 2 && takesValue("-h --help -V --version", c.args[1].s) {
		w.record(c, ReadOnly, "read.version", "prints version or help")
		return stream{kind: unknown}
	}
	for i, a := range c.args[1:] {
		text, ok := strings.CutPrefix(a.s, "--command=")
		if !ok && (a.s == "-c" || a.s == "--command" || name == "script" && strings.HasPrefix(a.s, "-") && strings.HasSuffix(a.s, "c") && a.s[1] != '-') && i+2 < len(c.args) {
			text, ok = c.args[i+2].s, true
			if c.args[i+2].dyn {
				w.note(Opaque, "dynamic.script", "runs a text that is known only when it runs")
			}
		}
		if ok {
			w.wraps = append(w.wraps, name+" -c")
			w.nested(text, c.in)
			return stream{kind: unknown}
		}
	}
	w.record(c, Opaque, "interactive", "an interactive shell")
	if c.in.kind == known {
		w.nested(c.in.text, stream{})
	}
	return stream{kind: unknown}
}

const sshValued = "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"

func (w *walker) ssh(c call) stream {
	args := c.args[1:]
	host := false
	for len(args) > 0 {
		a := args[0].s
		switch {
		case a == "-V" || a == "--help" || a == "--version" || a == "-Q" || a == "-G":
			w.record(c, ReadOnly, "read.version", "prints its version")
			return stream{kind: unknown}
		case len(a) > 1 && a[0] == '-' && !host:
			if l := strings.ToLower(a + " " + peek(args)); strings.Contains(l, "proxycommand") || strings.Contains(l, "localcommand") || strings.Contains(l, "knownhostscommand") {
				w.record(c, Opaque, "ssh.command", "runs a local program to connect")
			}
			args = args[1:]
			if takesValue(sshValued, a) && len(args) > 0 {
				args = args[1:]
			}
			continue
		case !host:
			host = true
			args = args[1:]
			continue
		}
		break
	}
	if len(args) == 0 {
		w.record(c, Opaque, "interactive", "a shell on another machine")
		if c.in.kind == known {
			w.nested(c.in.text, stream{})
		}
		return stream{kind: unknown}
	}
	if args[0].s == "--" {
		args = args[1:]
	}
	if c.in.secret != "" {
		w.note(Opaque, "send.secret", "ssh sends "+c.in.secret+" to another machine")
	}
	w.wraps = append(w.wraps, "ssh")
	for _, a := range args {
		if a.dyn {
			w.note(Opaque, "dynamic.script", "runs a text on another machine that is known only when it runs")
			break
		}
	}
	w.joined(joinWords(args), args, c.in)
	return stream{kind: unknown}
}

func peek(args []word) string {
	if len(args) > 1 {
		return args[1].s
	}
	return ""
}

func (w *walker) terminal(name string, c call) stream {
	sub := ""
	for i, a := range c.args[1:] {
		if a.s != "" && a.s[0] != '-' {
			sub = a.s
			rest := c.args[i+2:]
			switch {
			case name == "tmux" && (sub == "send-keys" || sub == "send"):
				w.record(c, Opaque, "terminal.type", "types into another terminal")
				w.nested(keys(rest), stream{})
				return stream{kind: unknown}
			case name == "tmux" && (strings.HasPrefix(sub, "new") || strings.HasPrefix(sub, "split") || sub == "respawn-pane" || sub == "run-shell" || sub == "run"):
				w.note(Mutate, "terminal.new", "starts a command in another terminal")
				w.wraps = append(w.wraps, "tmux")
				if len(rest) > 0 && strings.ContainsAny(rest[len(rest)-1].s, " /{$`;|&\"'\\") {
					w.nested(rest[len(rest)-1].s, stream{})
					return stream{kind: unknown}
				}
			case name == "tmux" && (strings.HasPrefix(sub, "list") || sub == "ls" || strings.HasPrefix(sub, "display") || strings.HasPrefix(sub, "capture") || strings.HasPrefix(sub, "show") || sub == "has-session" || sub == "info"):
				w.record(c, ReadOnly, "read.terminal", "looks at terminals")
				return stream{kind: unknown}
			case name == "screen" && hasFlag(c.args, "-dm", "-d", "-dmS", "-X"):
				w.wraps = append(w.wraps, "screen")
				for j, x := range rest {
					if x.s == "stuff" {
						w.record(c, Opaque, "terminal.type", "types into another terminal")
						for _, t := range rest[j+1:] {
							w.nested(ansiC(t.s), stream{})
						}
						return stream{kind: unknown}
					}
				}
				w.note(Mutate, "terminal.new", "starts a command in another terminal")
				if !hasFlag(c.args, "-dmS", "-S", "-X") { // no name of a session stands before it
					rest = c.args[i+1:]
				}
				if len(rest) > 0 {
					return w.exec(call{args: rest, in: stream{kind: unknown}})
				}
			}
			break
		}
	}
	w.record(c, Mutate, "terminal", name+" "+sub)
	return stream{kind: unknown}
}

// keys is what send-keys types.
func keys(args []word) string {
	var b strings.Builder
	for i := 0; i < len(args); i++ {
		switch a := args[i].s; {
		case a == "-t" || a == "-N":
			i++
		case a == "Enter" || a == "C-m" || a == "KPEnter":
			b.WriteByte('\n')
		case a == "Space":
			b.WriteByte(' ')
		case strings.HasPrefix(a, "-"):
		default:
			b.WriteString(a)
		}
	}
	return b.String()
}

// containerExec finds the command in docker exec, docker run, compose exec,
// kubectl exec.
func containerExec(name string, args []word) ([]word, bool) {
	rest := args[1:]
	sub := ""
	for len(rest) > 0 {
		a := rest[0].s
		if len(a) > 1 && a[0] == '-' {
			n := 1
			if takesValue("-f --file -p --project-name -H --host -n --namespace --context --kubeconfig -c --config -l --log-level --profile --env-file", a) {
				n = 2
			}
			rest = rest[min(n, len(rest)):]
			continue
		}
		rest = rest[1:]
		if a == "compose" || a == "container" {
			continue
		}
		sub = a
		break
	}
	if sub != "exec" && sub != "run" && sub != "debug" {
		return nil, false
	}
	kube := name == "kubectl" || name == "oc"
	if kube { // everything after --
		for i, a := range rest {
			if a.s == "--" {
				return rest[i+1:], i+1 < len(rest)
			}
		}
		if sub != "exec" {
			return nil, false
		}
	}
	const valued = "-u --user -w --workdir -e --env --env-file --index --name -v --volume -p --publish --network --net --mount -l --label -h --hostname --entrypoint -m --memory --cpus --platform --pull --restart --add-host --dns --gpus --ip --user -c --container -n --namespace --cap-add --cap-drop --device --security-opt --tmpfs --ulimit --shm-size --pid --ipc --userns --detach-keys"
	named := false
	for len(rest) > 0 {
		a := rest[0].s
		switch {
		case len(a) > 1 && a[0] == '-':
			n := 1
			if takesValue(valued, a) {
				n = 2
			}
			rest = rest[min(n, len(rest)):]
			continue
		case !named:
			named = true
			rest = rest[1:]
			continue
		}
		return rest, true
	}
	return nil, false
}

// runnerArgs is what follows a runner's subcommand.
func runnerArgs(subs []string, args []word) ([]word, string) {
	rest := args[1:]
	for len(rest) > 0 && len(rest[0].s) > 1 && rest[0].s[0] == '-' {
		rest = rest[1:]
	}
	for _, s := range subs {
		f := strings.Fields(s)
		if len(rest) < len(f) {
			continue
		}
		ok := true
		for i := range f {
			ok = ok && rest[i].s == f[i]
		}
		if !ok {
			continue
		}
		rest = rest[len(f):]
		for len(rest) > 0 {
			a := rest[0].s
			if a == "--" {
				return rest[1:], s
			}
			if len(a) > 1 && a[0] == '-' {
				n := 1
				if takesValue("-p --package -n --name -a --app --project --config -c --env-file --with --python --group --extra", a) {
					n = 2
				}
				rest = rest[min(n, len(rest)):]
				continue
			}
			return rest, s
		}
	}
	return nil, ""
}
