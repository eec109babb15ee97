package shell

import "strings"

// Programs that only look, whatever their arguments.
var plainReaders = set(`ls dir vdir cat head tail wc cut tr nl tac rev fold fmt expand unexpand paste join comm cmp diff diff3 stat du df pwd true false : test [ [[
 whoami id groups logname users who w last lastb uptime free vmstat iostat mpstat pstree lsof netstat pgrep pidof nproc arch uname lscpu lsblk lspci lsusb lsmod lsns findmnt getent locale
 printenv which whereis type hash basename dirname realpath readlink md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum md5 strings od hexdump hd jq gron htmlq
 column look sleep seq yes factor numfmt expr bc cal tsort ptx shuf egrep fgrep grep zgrep zcat zless zmore bzcat xzcat zstdcat base32 tree-sitter man info apropos whatis help tldr cloc tokei scc
 dig nslookup host ping ping6 traceroute tracepath mtr whois getconf ulimit umask times jobs fg bg wait echo break continue return exit shift set shopt local export declare typeset readonly unset let read getopts caller
 pushd popd dirs cd compgen complete bind history disown mapfile readarray enable logout suspend lsattr getfacl getfattr getcap namei size objdump readelf otool vercmp sw_vers system_profiler hwinfo inxi neofetch uuidgen mktemp tput clear reset stty tty lsb_release mountpoint ipcs lslocks lsmem blkid locate plocate mdfind sar pmap ldconfig-p ag ack bat batcat exa eza lsd delta difft hyperfine-version git-lfs-ls pbpaste xclip-o printf`)

// withOptions are readers that some option turns into writers.
var withOptions = map[string]struct {
	bad   string // options (or their prefix before =) that write or run something
	valed string
}{
	"rg":         {bad: "--pre --hostname-bin"},
	"ss":         {bad: "-K --kill"},
	"sdiff":      {bad: "-o --output"},
	"nm":         {bad: "--plugin"},
	"sort":       {bad: "-o --output --compress-program"},
	"date":       {bad: "-s --set"},
	"hostname":   {bad: "-F --file -b"},
	"dmesg":      {bad: "-c -C --clear --read-clear -n -D -E"},
	"journalctl": {bad: "--rotate --vacuum-size --vacuum-time --vacuum-files --flush --sync --relinquish-var --setup-keys"},
	"tree":       {bad: "-o"},
	"less":       {bad: "-o -O --log-file --LOG-FILE"},
	"more":       {},
	"ps":         {},
	"top":        {},
	"htop":       {},
	"btop":       {},
	"yq":         {bad: "-i --inplace --in-place -s --split-exp"},
	"file":       {bad: "-C --compile"},
	"ip":         {bad: "-b -batch -force"},
	"xmllint":    {bad: "-o --output"},
	"sysctl":     {bad: "-w --write -p --load --system"},
	"pip-audit":  {bad: "--fix"},
	"shellcheck": {},
	"hadolint":   {},
	"tsc":        {},
	"xxd":        {bad: "-r -revert"},
	"column":     {},
	"nvidia-smi": {bad: "-pm -pl -r -c -e -ac -rac -lgc --gpu-reset"},
}

func plainReader(w *walker, c call) ruling {
	switch name := base(c.args[0].s); name {
	case "test", "[", "read", "unset", "let":
		for _, a := range c.args[1:] {
			if !a.dyn {
				w.evaluated(a.s)
			}
		}
	case "grep", "egrep", "fgrep", "zgrep":
		return readOnly(name + " searches text")
	case "printf":
		if len(c.args) > 1 && c.args[1].s == "-v" {
			if len(c.args) > 2 && !c.args[2].dyn {
				w.evaluated(c.args[2].s)
			}
			return readOnly("sets a variable")
		}
	case "export", "declare", "typeset", "readonly", "local":
		for _, a := range c.args[1:] {
			if hijack(a.s) {
				return ruling{effect: Opaque, rule: "env.hijack", why: "changes what later commands run: " + a.s}
			}
		}
	case "ack", "ag":
		if hasFlag(c.args, "--pager", "--output") {
			return ruling{effect: Opaque, rule: "read.pager", why: name + " runs a program for its output"}
		}
	case "shuf":
		if hasFlag(c.args, "-o", "--output") {
			return mutate("write", "writes a file")
		}
	case "history":
		if len(c.args) > 1 && strings.HasPrefix(c.args[1].s, "-") {
			return mutate("shell.history", "changes the history of the shell")
		}
	case "reset":
		return readOnly("resets the terminal")
	case "man":
		if hasFlag(c.args, "-P", "--pager", "-H", "--html") || short(c.args, 'H') || short(c.args, 'P') {
			return ruling{effect: Opaque, rule: "read.pager", why: "runs a pager of its own"}
		}
	case "bat", "batcat", "delta":
		if hasFlag(c.args, "--pager", "--diff-so-fancy") {
			return ruling{effect: Opaque, rule: "read.pager", why: "runs a pager of its own"}
		}
	case "mapfile", "readarray":
		if hasFlag(c.args, "-C") {
			return ruling{effect: Opaque, rule: "read.callback", why: "runs a callback"}
		}
	case "enable":
		if hasFlag(c.args, "-f") {
			return ruling{effect: Opaque, rule: "enable.load", why: "loads code into the shell"}
		}
	case "bind", "complete", "compgen":
		if hasFlag(c.args, "-x", "-C", "-F") {
			return ruling{effect: Opaque, rule: "builtin.callback", why: name + " runs a command later"}
		}
	case "mktemp":
		return mutate("write.temp", "makes a temporary file")
	case "hash":
		if hasFlag(c.args, "-p") {
			return ruling{effect: Opaque, rule: "env.hijack", why: "changes what a name runs"}
		}
	}
	return readOnly("only looks")
}

func optionReader(w *walker, c call) ruling {
	name := base(c.args[0].s)
	o := withOptions[name]
	for _, a := range c.args[1:] {
		if (name == "less" || name == "more") && strings.HasPrefix(a.s, "+") && strings.ContainsAny(a.s, "!|") {
			w.text(strings.TrimLeft(a.s, "+!|"), w.depth+1)
			return ruling{effect: Opaque, rule: "read.command", why: name + " runs a command"}
		}
		if a.s == "--" {
			break
		}
		if len(a.s) < 2 || a.s[0] != '-' {
			continue
		}
		f := a.s
		if i := strings.IndexByte(f, '='); i > 0 {
			f = f[:i]
		}
		for bad := range strings.FieldsSeq(o.bad) {
			if f == bad || abbreviates(f, bad) || len(bad) == 2 && f[1] != '-' && bad[1] != '-' && strings.IndexByte(f, bad[1]) > 0 {
				if strings.HasPrefix(bad, "--vacuum") {
					return destroy("log.vacuum", name+" "+f+" removes old logs")
				}
				if name == "ss" {
					return destroy("system.sockets", "ss -K closes connections of others")
				}
				if strings.HasPrefix(bad, "--pre") || bad == "--plugin" || bad == "--compress-program" || bad == "--hostname-bin" {
					return ruling{effect: Opaque, rule: "read.hook", why: name + " runs a program named in " + bad}
				}
				return mutate("write.option", name+" "+bad+" writes")
			}
		}
	}
	pos := positional(c.args, "-w -n -T -t -d -f -r -e -k -S -I --date")
	switch name {
	case "hostname":
		if len(pos) > 0 {
			return mutate("system.hostname", "sets the host name")
		}
	case "date":
		for _, p := range pos {
			if !strings.HasPrefix(p.s, "+") {
				return mutate("system.clock", "sets the clock")
			}
		}
	case "sysctl":
		for _, p := range pos {
			if strings.Contains(p.s, "=") {
				return mutate("system.sysctl", "sets a kernel parameter")
			}
		}
	case "ip":
		return ipVerb(positional(c.args, "-f -family -n -netns -rc -rcvbuf -l -loops"))
	case "xxd":
		if len(pos) > 1 {
			return mutate("write", "writes a file", pos[1])
		}
	case "tsc":
		if !hasFlag(c.args, "--noEmit", "-v", "--showConfig") {
			return mutate("build", "writes compiled files")
		}
	}
	return readOnly("only looks")
}

// ipVerb rules on ip OBJECT VERB. Both may be cut short; where a beginning fits two
// verbs ip takes the first, which is never the one that shows.
func ipVerb(pos []word) ruling {
	if len(pos) < 2 || strings.HasPrefix("monitor", pos[0].s) && len(pos[0].s) > 1 {
		return readOnly("shows the network")
	}
	verb := pos[1].s
	begins := func(full string) bool { return verb != "" && strings.HasPrefix(full, verb) }
	switch {
	case begins("delete") || begins("flush"):
		return destroy("verb.ip", "ip "+pos[0].s+" "+verb)
	case begins("list"), begins("lst"), begins("get"), begins("help"), begins("identify"), begins("pids"), len(verb) > 1 && begins("show"):
		return readOnly("shows the network")
	}
	return mutate("system.network", "changes the network")
}

func uniq(w *walker, c call) ruling {
	if p := positional(c.args, "-f -s -w"); len(p) > 1 {
		return mutate("write", "uniq writes its second operand", p[1])
	}
	return readOnly("only looks")
}

func sed(w *walker, c call) ruling {
	inPlace := given(c.args, "-i", "--in-place", "-I")
	script, have := "", false
	var files []word
	for i := 1; i < len(c.args); i++ {
		a := c.args[i].s
		switch {
		case strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place"):
			inPlace = true
		case a == "-e" || a == "--expression":
			if i++; i < len(c.args) {
				script, have = script+c.args[i].s+"\n", true
			}
		case a == "-f" || a == "--file":
			i++
			have = true
			script += "\x00"
		case strings.HasPrefix(a, "--expression="):
			script, have = script+a[13:]+"\n", true
		case len(a) > 1 && a[0] == '-':
			if a[1] != '-' && strings.IndexByte(a, 'i') > 0 {
				inPlace = true
			}
			if a[1] != '-' && strings.HasSuffix(a, "e") {
				if i++; i < len(c.args) {
					script, have = script+c.args[i].s+"\n", true
				}
			}
		case !have:
			script, have = a, true
		default:
			files = append(files, c.args[i])
		}
	}
	runs, writes := sedScript(script, false)
	runs2, writes2 := sedScript(script, true) // an address is read both ways: seds differ
	switch runs, writes = runs || runs2, writes || writes2; {
	case runs:
		return ruling{effect: Opaque, rule: "sed.exec", why: "its script runs a command"}
	case inPlace:
		return mutate("write.inplace", "edits files in place", files...)
	case writes:
		return mutate("write.sed", "its script writes files")
	}
	return readOnly("only prints")
}

// sedScript looks for e and w: as commands and as flags of s. A delimiter inside
// of brackets ends nothing where brackets says so.
func sedScript(s string, brackets bool) (runs, writes bool) {
	in := false
	inside := func(c byte) bool {
		if brackets {
			in = c == '[' || in && c != ']'
		}
		return in
	}
	if strings.IndexByte(s, 0) >= 0 {
		return true, true // a script file: unseen
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '/', '\\': // an address
			d := c
			if c == '\\' && i+1 < len(s) {
				i++
				d = s[i]
			}
			in = false
			for i++; i < len(s) && (inside(s[i]) || s[i] != d); i++ {
				if s[i] == '\\' && !in {
					i++
				}
			}
		case 's', 'y':
			if i+1 >= len(s) {
				return
			}
			d := s[i+1]
			in = false
			for n, j := 0, i+2; ; j++ {
				if j >= len(s) {
					return
				}
				if n == 0 && inside(s[j]) {
					continue
				}
				if s[j] == '\\' {
					j++
					continue
				}
				if s[j] == d {
					if n++; n == 2 {
						i = j
						break
					}
				}
			}
			for i++; i < len(s) && strings.IndexByte("gpiIemMw0123456789", s[i]) >= 0; i++ {
				switch s[i] {
				case 'e':
					runs = true
				case 'w':
					return runs, true
				}
			}
			i--
		case 'e':
			return true, writes
		case 'w', 'W':
			writes = true
			i = lineEnd(s, i)
		case 'a', 'i', 'c', 'r', 'R', 'b', 't', 'T', ':', '#':
			i = lineEnd(s, i)
		}
	}
	return
}

func lineEnd(s string, i int) int {
	if j := strings.IndexByte(s[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(s)
}

func awk(w *walker, c call) ruling {
	if hasFlag(c.args, "-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec") || short(c.args, 'f') {
		return mutate("awk.file", "runs an awk program from a file")
	}
	pos := positional(c.args, "-F -v --field-separator --assign")
	if len(pos) == 0 {
		return readOnly("nothing to run")
	}
	prog := pos[0]
	switch {
	case prog.dyn:
		return ruling{effect: Opaque, rule: "dynamic.script", why: "an awk program that is known only when it runs"}
	case strings.Contains(prog.s, "system(") || strings.Contains(prog.s, "system ("):
		w.codeStrings(prog.s)
		return ruling{effect: Opaque, rule: "awk.system", why: "its program runs commands"}
	}
	code := stripStrings(prog.s)
	if i := strings.IndexByte(code, '@'); i >= 0 {
		return ruling{effect: Opaque, rule: "awk.indirect", why: "its program loads code or calls what it computes"}
	}
	if strings.Contains(code, "|") && (strings.Contains(strings.ReplaceAll(code, "||", ""), "|")) {
		return ruling{effect: Opaque, rule: "awk.pipe", why: "its program runs commands"}
	}
	if strings.Contains(code, "print") && strings.Contains(code[strings.Index(code, "print"):], ">") && writesAwk(code) {
		return mutate("write.awk", "its program writes files")
	}
	return readOnly("only prints")
}

// writesAwk reports print … > "file": a > straight before a string.
func writesAwk(code string) bool {
	for i := range len(code) {
		if code[i] == '>' && strings.HasPrefix(strings.TrimLeft(strings.TrimLeft(code[i:], ">"), " "), `"`) {
			return true
		}
		if code[i] == '>' && i > 0 && code[i-1] != '(' && strings.Contains(code[max(0, i-40):i], "print") && strings.IndexByte(code[max(0, i-40):i], '(') < 0 {
			return true
		}
	}
	return false
}

// stripStrings empties string literals of a piece of code.
func stripStrings(s string) string {
	var b strings.Builder
	var q byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case q != 0:
			if c == '\\' {
				i++
			} else if c == q {
				q = 0
				b.WriteByte(c)
			}
		case c == '"':
			q = c
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// find runs its -exec as a command of its own.
func (w *walker) find(c call) stream {
	r := readOnly("looks for files")
	for i := 1; i < len(c.args); i++ {
		a := c.args[i].s
		switch a {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			if a[1] != 'e' && a[1] != 'o' && base(c.args[0].s)[0] != 'f' {
				continue
			}
			var inner []word
			placed := false
			for i++; i < len(c.args) && c.args[i].s != ";" && c.args[i].s != "+"; i++ {
				v := c.args[i]
				if strings.Contains(v.s, "{}") {
					v.dyn, placed = true, true
				}
				inner = append(inner, v)
			}
			if name := base(c.args[0].s); !placed && name[0] == 'f' && name[1] == 'd' { // fd puts what it finds at the end
				inner = append(inner, word{s: "{}", dyn: true})
			}
			w.wraps = append(w.wraps, "find "+a)
			w.exec(call{args: inner, env: c.env})
			w.wraps = w.wraps[:len(w.wraps)-1]
		case "-delete":
			r = destroy("find.delete", "removes every file it finds", findRoots(c.args)...)
			for _, p := range findRoots(c.args) {
				if vitalDir(joinPath(w.cwd, p.s)) && !hasFlag(c.args, "-name", "-iname", "-path", "-regex") {
					r.effect, r.rule = Catastrophe, "find.delete.vital"
				}
			}
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if r.effect == ReadOnly {
				r = mutate("write.find", "writes what it finds to a file")
			}
			if i+1 < len(c.args) {
				r.paths = append(r.paths, c.args[i+1])
			}
		}
	}
	w.add(c, r)
	return stream{kind: unknown}
}

func findRoots(args []word) []word {
	var out []word
	for _, a := range args[1:] {
		if strings.HasPrefix(a.s, "-") || a.s == "(" || a.s == "!" {
			if a.s == "-H" || a.s == "-L" || a.s == "-P" {
				continue
			}
			break
		}
		out = append(out, a)
	}
	return out
}

// destructiveRequest finds a segment of an address, or a GraphQL mutation in what
// is sent, that takes something away; "" when there is none.
func destructiveRequest(args []word) string {
	for _, a := range args[1:] {
		s := a.s
		if strings.HasPrefix(s, "-") {
			continue
		}
		if strings.Contains(s, "mutation") {
			for f := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > 0x7f || !isWordByte(byte(r)) }) {
				if destructiveName(f) {
					return f
				}
			}
			continue
		}
		if strings.ContainsAny(s, " {}\"") {
			continue
		}
		s, _, _ = strings.Cut(s, "?")
		if i := strings.Index(s, "://"); i >= 0 {
			s = s[i+3:]
		}
		_, path, ok := strings.Cut(s, "/")
		if !ok {
			continue
		}
		for seg := range strings.SplitSeq(path, "/") {
			switch {
			case destructiveName(seg), requestVerbs[strings.ToLower(seg)]:
				return seg
			}
		}
		if strings.Contains(path, "_cluster/settings") || strings.Contains(path, "_cluster/reroute") {
			return "change a whole cluster"
		}
	}
	return ""
}

// requestVerbs are last words of addresses by which interfaces take things away
// or out of service, as whole segments.
var requestVerbs = set("_close _shutdown shutdown _rollover _delete_by_query _forcemerge _freeze void voided archive deactivate disable suspend detach expire kill stop abort exit safeexit restart saferestart quietdown invalidate unpublish evict drain clear rotate roll regenerate rotate_token ban purge_cache flush empty close refund refunds terminate deprovision reset_password offline")

func http(w *walker, c call) ruling {
	name := base(c.args[0].s)
	method, writes, sends, upload := "", false, false, false
	var target word
	for i := 1; i < len(c.args); i++ {
		a := c.args[i].s
		next := word{}
		if i+1 < len(c.args) {
			next = c.args[i+1]
		}
		switch {
		case a == "-X" || a == "--request" || a == "--method":
			method = strings.ToUpper(next.s)
			i++
		case strings.HasPrefix(a, "-X") && len(a) > 2:
			method = strings.ToUpper(a[2:])
		case strings.HasPrefix(a, "--request=") || strings.HasPrefix(a, "--method="):
			method = strings.ToUpper(a[strings.IndexByte(a, '=')+1:])
		case name == "curl" && (a == "-o" || a == "--output" || a == "-D" || a == "--dump-header" || a == "-c" || a == "--cookie-jar" || a == "--trace" || a == "--trace-ascii"):
			if next.s != "/dev/null" && next.s != "-" {
				writes, target = true, next
			}
			i++
		case name == "curl" && (a == "-O" || a == "--remote-name" || a == "-J" || a == "--remote-name-all"):
			writes = true
		case name == "curl" && (a == "-K" || a == "--config"):
			return ruling{effect: Opaque, rule: "http.config", why: "takes its options from a file"}
		case name == "curl" && (strings.HasPrefix(a, "--data") || a == "-d" || a == "--json" || a == "-F" || a == "--form" || a == "--form-string" || strings.HasPrefix(a, "-d") && a[1] != '-'):
			sends = true
			i++
		case name == "curl" && (a == "-G" || a == "--get"):
			method = "GET"
		case a == "-T" || a == "--upload-file":
			upload = true
		case name == "wget" && (strings.HasPrefix(a, "--post") || strings.HasPrefix(a, "--body")):
			sends = true
		case name == "curl" && len(a) > 2 && a[0] == '-' && a[1] != '-':
			if strings.IndexByte(a, 'O') > 0 {
				writes = true
			}
			if a[len(a)-1] == 'o' && next.s != "/dev/null" && next.s != "-" {
				writes, target = true, next
			}
			if strings.IndexByte(a, 'd') > 0 || strings.IndexByte(a, 'F') > 0 {
				sends = true
			}
			if strings.IndexByte(a, 'T') > 0 {
				upload = true
			}
			if a[len(a)-1] == 'X' {
				method = strings.ToUpper(next.s)
				i++
			}
		case name != "curl" && name != "wget" && method == "" && takesValue("DELETE POST PUT PATCH GET HEAD", strings.ToUpper(a)):
			method = strings.ToUpper(a)
		}
	}
	if name == "wget" && !hasFlag(c.args, "--spider") {
		writes = true
		for i, a := range c.args {
			if (a.s == "-O" || a.s == "--output-document" || strings.HasSuffix(a.s, "O") && strings.HasPrefix(a.s, "-")) && i+1 < len(c.args) && (c.args[i+1].s == "-" || c.args[i+1].s == "/dev/null") || a.s == "-O-" || a.s == "-qO-" {
				writes = false
			}
		}
	}
	changes := sends || upload || method != "" && method != "GET" && method != "HEAD" && method != "OPTIONS"
	if what := destructiveRequest(c.args); changes && what != "" {
		return destroy("http.destroy", "asks a server to "+what)
	}
	switch {
	case method == "DELETE":
		return destroy("http.delete", "asks a server to delete")
	case method != "" && method != "GET" && method != "HEAD" && method != "OPTIONS" || upload:
		return mutate("http.write", "sends "+orUnknown(method)+" to a server")
	case sends && method == "":
		return mutate("http.write", "sends data to a server")
	case writes:
		r := mutate("http.save", "saves what it fetches")
		if target.s != "" {
			r.paths = append(r.paths, target)
		}
		return r
	}
	return readOnly("fetches from a server")
}
