package shell

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"
)

// danger is a piece of a program's text and what it means. The list is literal
// on purpose: code is not understood here, it is only searched for what destroys.
type danger struct {
	text   string
	effect Effect
	rule   string
}

var dangers = []danger{
	{"shutil.rmtree", Destroy, "code.rmtree"}, {"rmtree(", Destroy, "code.rmtree"}, {"fs.rm(", Destroy, "code.rm"}, {"fs.rmSync", Destroy, "code.rm"}, {"rmSync(", Destroy, "code.rm"}, {"fs.rmdir", Destroy, "code.rm"},
	{"rmdirSync", Destroy, "code.rm"}, {"fs.unlink", Destroy, "code.rm"}, {"unlinkSync", Destroy, "code.rm"}, {"rimraf", Destroy, "code.rm"}, {"os.remove(", Destroy, "code.rm"}, {"os.unlink(", Destroy, "code.rm"}, {"os.rmdir(", Destroy, "code.rm"},
	{"os.removedirs", Destroy, "code.rm"}, {".unlink(", Destroy, "code.rm"}, {"FileUtils.rm", Destroy, "code.rm"}, {"File.delete", Destroy, "code.rm"}, {"File.unlink", Destroy, "code.rm"}, {"Dir.rmdir", Destroy, "code.rm"}, {"remove_tree", Destroy, "code.rm"},
	{"unlink(", Destroy, "code.rm"}, {"unlink ", Destroy, "code.rm"}, {"rmdir(", Destroy, "code.rm"}, {"emptyDir", Destroy, "code.rm"}, {"Deno.remove", Destroy, "code.rm"}, {"os.truncate", Destroy, "code.truncate"}, {"ftruncate", Destroy, "code.truncate"}, {"truncateSync", Destroy, "code.truncate"},
	{".rm(", Destroy, "code.rm"}, {"rm(", Destroy, "code.rm"}, {"rm_rf", Destroy, "code.rm"}, {".rmSync", Destroy, "code.rm"}, {".rmdir(", Destroy, "code.rm"}, {".truncate(", Destroy, "code.truncate"}, {"os.RemoveAll", Destroy, "code.rm"}, {"Files.delete", Destroy, "code.rm"}, {"deleteRecursively", Destroy, "code.rm"},

	{".purge(", Destroy, "code.drop"}, {".destroy(", Destroy, "code.drop"}, {"flushdb", Destroy, "code.drop"}, {"flushAll", Destroy, "code.drop"}, {"objects.all().delete", Destroy, "code.drop"},
	{".drop(", Destroy, "code.drop"}, {".delete_all", Destroy, "code.drop"}, {".destroy_all", Destroy, "code.drop"}, {"flushall", Destroy, "code.drop"}, {"Remove-Item", Destroy, "code.rm"}, {"Format-Volume", Catastrophe, "code.format"},
	{"]::Delete(", Destroy, "code.rm"}, {"Clear-Disk", Catastrophe, "code.format"}, {"del /", Destroy, "code.rm"}, {"rd /", Destroy, "code.rm"}, {"rmdir /", Destroy, "code.rm"}, {"format c:", Catastrophe, "code.format"}, {"Remove-", Destroy, "code.rm"}, {"ri -", Destroy, "code.rm"}, {"Stop-Computer", Destroy, "code.stop"}, {"Clear-Content", Destroy, "code.truncate"},
	{"os.system", Opaque, "code.exec"}, {"subprocess", Opaque, "code.exec"}, {"os.popen", Opaque, "code.exec"}, {"os.exec", Opaque, "code.exec"}, {"pty.spawn", Opaque, "code.exec"}, {"child_process", Opaque, "code.exec"}, {"execSync", Opaque, "code.exec"}, {"spawnSync", Opaque, "code.exec"},
	{"system(", Opaque, "code.exec"}, {"system ", Opaque, "code.exec"}, {"exec(", Opaque, "code.exec"}, {"exec ", Opaque, "code.exec"}, {"eval(", Opaque, "code.eval"}, {"`", Opaque, "code.exec"}, {"%x", Opaque, "code.exec"}, {"qx", Opaque, "code.exec"}, {"Open3", Opaque, "code.exec"},
	{"shell_exec", Opaque, "code.exec"}, {"passthru", Opaque, "code.exec"}, {"do shell script", Opaque, "code.exec"}, {"Invoke-Expression", Opaque, "code.eval"}, {"iex ", Opaque, "code.eval"}, {"iex(", Opaque, "code.eval"}, {"Start-Process", Opaque, "code.exec"}, {"-EncodedCommand", Opaque, "code.eval"},
	{"importlib", Opaque, "code.eval"}, {"__import__", Opaque, "code.eval"}, {"compile(", Opaque, "code.eval"}, {"marshal", Opaque, "code.eval"}, {"b64decode", Opaque, "code.eval"}, {"fromCharCode", Opaque, "code.eval"}, {"getattr(", Opaque, "code.eval"}, {"new Function", Opaque, "code.eval"}, {"vm.run", Opaque, "code.eval"}, {"ctypes", Opaque, "code.exec"},
}

var interpFlags = map[string]string{
	"python": "-c", "pypy": "-c", "ipython": "-c", "node": "-e --eval -p --print -pe", "bun": "-e --eval -p", "deno": "eval", "perl": "-e -E", "ruby": "-e", "php": "-r", "lua": "-e", "osascript": "-e",
	"powershell": "-c -command -Command -C", "pwsh": "-c -command -Command -C", "cmd": "/c /C /k /K", "Rscript": "-e", "groovy": "-e", "ts-node": "-e --eval -p", "tsx": "-e --eval", "tclsh": "",
}

// interpreter is a language runtime: inline code is searched, a script is some
// unknown program, and what comes by a pipe is unseen.
func interpreter(w *walker, c call) ruling {
	name := base(c.args[0].s)
	flags := interpFlags[name]
	args := c.args[1:]
	if len(args) == 1 && takesValue("-h -v -V -VV -m -i --modules --info", args[0].s) && (name == "php" || len(args[0].s) < 4 && args[0].s != "-m" && args[0].s != "-i") {
		return readOnly("prints version or help")
	}
	for i, a := range args {
		s := a.s
		if s == "" || s[0] != '-' && s[0] != '/' && flags != "eval" || s == "-" {
			break
		}
		if (name == "powershell" || name == "pwsh") && isEncoded(s) && i+1 < len(args) {
			return stronger(codeRuling(decoded(args[i+1].s)), ruling{effect: Opaque, rule: "code.eval", why: "runs encoded code"})
		}
		if name == "python" && s == "-m" {
			return module(args[i+1:])
		}
		hit := false
		for f := range strings.FieldsSeq(flags) {
			hit = hit || s == f
		}
		if !hit && name == "perl" && s[0] == '-' && len(s) > 1 && s[1] != '-' {
			hit = strings.HasSuffix(s, "e") || strings.HasSuffix(s, "E")
		}
		if !hit && (name == "ruby" || name == "php" || name == "python") && len(s) > 2 && s[0] == '-' && s[1] != '-' && flags != "" {
			hit = s[len(s)-1] == flags[1]
		}
		if f, code, ok := strings.Cut(s, "="); ok && strings.HasPrefix(f, "--") && takesValue(flags, f) {
			r := codeRuling(code)
			w.codeStrings(code)
			return r
		}
		if hit && i+1 < len(args) {
			code := joinCode(name, args[i+1:])
			if r, ok := windowsText(w, name, code); ok && !args[i+1].dyn {
				return r
			}
			if name == "powershell" || name == "pwsh" {
				code = unquoted(code)
			}
			if args[i+1].dyn {
				w.codeStrings(code)
				return stronger(codeRuling(code), ruling{effect: Opaque, rule: "dynamic.script", why: "runs code that is known only when it runs"})
			}
			r := codeRuling(code)
			w.codeStrings(code)
			if (name == "perl" || name == "ruby") && r.effect == Mutate && strings.Contains(s, "i") {
				r.rule, r.why = "write.inplace", "edits files in place"
			}
			return r
		}
		if (name == "node" || name == "bun") && (s == "-r" || s == "--require" || s == "--import") {
			return mutate("script", "runs a script")
		}
		if takesValue("-W -X -I -M -r --require --import --loader --conditions -ExecutionPolicy -File", s) {
			continue
		}
	}
	for i, a := range args {
		if a.s != "" && a.s != "-" && a.s[0] != '-' {
			if a.dyn {
				return ruling{effect: Opaque, rule: "dynamic.script", why: "runs a script that is known only when it runs"}
			}
			if name == "powershell" && !strings.HasSuffix(strings.ToLower(a.s), ".ps1") { // without -File its words are a command
				code := joinWords(args[i:])
				if r, ok := windowsText(w, name, code); ok {
					return r
				}
				return codeRuling(code)
			}
			if flags == "eval" && (a.s == "--version" || a.s == "info" || a.s == "lint" || a.s == "check") {
				return readOnly("deno " + a.s)
			}
			return script(w, c, args[i:])
		}
	}
	switch c.in.kind {
	case known:
		w.codeStrings(c.in.text)
		return codeRuling(c.in.text)
	case unknown:
		r := ruling{effect: Opaque, rule: "pipe.code", why: "runs code that it is sent, unseen"}
		if c.in.text != "" {
			return stronger(codeRuling(c.in.text), r)
		}
		return r
	}
	return ruling{effect: Opaque, rule: "interactive", why: "an interactive " + name}
}

// isEncoded reports PowerShell's -EncodedCommand, of which any beginning will do.
func isEncoded(opt string) bool {
	l := strings.ToLower(opt)
	return l == "-ec" || len(l) > 1 && strings.HasPrefix("-encodedcommand", l)
}

// decoded is the text of an encoded command: UTF-16 in base64, "" when it is none.
func decoded(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	return string(utf16.Decode(u))
}

// script is a file that an interpreter runs: what its name and its first words
// say, and a mutation at the least.
func script(w *walker, c call, argv []word) ruling {
	if by := base(c.args[0].s); (by == "deno" || by == "bun") && argv[0].s == "run" {
		for i, a := range argv[1:] {
			if a.s != "" && a.s[0] != '-' {
				argv = argv[i+1:]
				break
			}
		}
	}
	if spec, ok := strings.CutPrefix(argv[0].s, "npm:"); ok { // deno runs a package's program
		if i := strings.LastIndexByte(spec, '@'); i > 0 {
			spec = spec[:i]
		}
		w.exec(call{args: append([]word{{s: base(spec)}}, argv[1:]...), in: c.in})
		return mutate("script", "runs the package "+spec)
	}
	w.script(base(c.args[0].s), argv[0], argv[1:], c.in)
	name := base(argv[0].s)
	r := mutate("script", "runs the script "+argv[0].s)
	said := byWords(name, argv[1:])
	if _, ok := tableOf(name); ok {
		said = verbs(w, call{args: argv, env: c.env, in: c.in})
	}
	return stronger(r, said)
}

// stronger is the stronger of two.
func stronger(a, b ruling) ruling {
	if b.effect != "" && b.effect.Rank() > a.effect.Rank() {
		return b
	}
	return a
}

func joinCode(name string, args []word) string {
	if name == "cmd" || name == "powershell" || name == "pwsh" {
		return joinWords(args)
	}
	return args[0].s
}

// module is python -m NAME.
func module(args []word) ruling {
	if len(args) == 0 {
		return mutate("script", "runs a module")
	}
	switch args[0].s {
	case "pip": // a module of this name in the directory would come first
		return stronger(mutate("script", "runs a module"), verbs(nil, call{args: append([]word{{s: "pip"}}, args[1:]...)}))
	}
	for _, a := range args[1:] {
		if destructiveVerb(a.s) {
			return destroy("verb.destroy", "python -m "+args[0].s+" "+a.s)
		}
	}
	return mutate("script", "runs the module "+args[0].s)
}

// codeRuling searches inline code.
func codeRuling(code string) ruling {
	r := mutate("code", "runs code given on the command line")
	for _, d := range dangers {
		if d.effect.Rank() > r.effect.Rank() && hasWord(code, d.text) {
			r = ruling{effect: d.effect, rule: d.rule, why: "code with " + strings.TrimSpace(d.text)}
		}
	}
	if !r.effect.AtLeast(Destroy) {
		if e, rule, why := executedSQL(code); e.AtLeast(Destroy) {
			r = ruling{effect: e, rule: rule, why: "code that executes " + why}
		}
	}
	if !r.effect.AtLeast(Destroy) {
		if name := destructiveCall(code); name != "" {
			r = ruling{effect: Destroy, rule: "code.call", why: "code that calls " + name}
		}
	}
	return r
}

// executedSQL rules on the statements that code hands to a database: the literals
// that begin an argument of execute, query and the like.
func executedSQL(code string) (Effect, string, string) {
	e, rule, why := ReadOnly, "", ""
	for _, call := range [...]string{"execute(", "executemany(", "executescript(", "query(", "exec(", "raw(", "run(", "executeRaw(", "executeRawUnsafe(", "text("} {
		for rest := code; ; {
			_, after, ok := strings.Cut(rest, call)
			if !ok {
				break
			}
			rest = after
			lit := strings.TrimLeft(after, " frub\n\t")
			if lit == "" || strings.IndexByte("\"'`", lit[0]) < 0 {
				continue
			}
			quote := lit[:1]
			if strings.HasPrefix(lit, strings.Repeat(quote, 3)) {
				quote = strings.Repeat(quote, 3)
			}
			text, _, _ := strings.Cut(lit[len(quote):], quote)
			first, _, _ := strings.Cut(strings.TrimLeft(text, " \n\t"), " ")
			if !startsSQL(first) {
				continue
			}
			if se, sr, sw := SQL(text); se.Rank() > e.Rank() {
				e, rule, why = se, sr, sw
			}
		}
	}
	return e, rule, why
}

// destructiveCall finds a call in code whose name says that it takes away more
// than a value of the program itself: deleteBucket(, drop_table(, clearQueue(. A
// name of one word says too little.
func destructiveCall(code string) string {
	for i := 0; i < len(code); i++ {
		if code[i] != '(' || i == 0 || !isWordByte(code[i-1]) {
			continue
		}
		from := i
		for from > 0 && isWordByte(code[from-1]) {
			from--
		}
		if name := code[from:i]; len(name) < 64 && takesAway(name) {
			return name
		}
	}
	return ""
}

// harmlessNouns are what programs delete of their own: no data is lost with them.
var harmlessNouns = set("duplicates duplicate prefix suffix whitespace spaces listener listeners child children class attribute attr attributes punctuation tags tag comments accents empty na columns column rows items item node element elements cookie event handler timeout interval nulls nan stopwords newline newlines trailing leading noise diacritics at if where range first last level axis handlers")

func takesAway(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(splitCamel(name)), func(r rune) bool { return r == '_' })
	if len(parts) < 2 {
		return false
	}
	switch parts[0] {
	case "do", "bulk", "batch", "force", "async":
		parts = parts[1:]
	}
	if len(parts) < 2 {
		return false
	}
	switch parts[0] {
	case "delete", "drop", "destroy", "purge", "wipe", "erase", "terminate", "truncate", "obliterate", "nuke", "flush", "deregister":
		return !harmlessNouns[parts[1]]
	case "clear", "empty", "reset", "remove":
		switch parts[len(parts)-1] {
		case "objects", "index", "indexes", "indices", "table", "tables", "collection", "collections", "all", "database", "databases", "data", "db", "records", "queue", "queues", "bucket", "buckets", "topic", "topics", "users", "user", "bucketobjects", "volume", "volumes", "tree", "dir", "directory", "file", "files", "folder":
			return true
		}
	}
	return false
}

// hasWord reports text in code, not in the middle of a longer name.
func hasWord(code, text string) bool {
	for from := 0; ; {
		i := strings.Index(code[from:], text)
		if i < 0 {
			return false
		}
		i += from
		if i == 0 || !isWordByte(code[i-1]) || !isWordByte(text[0]) {
			return true
		}
		from = i + 1
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// codeStrings reads string literals of code that runs commands as commands: an
// over-reading, since only what destroys counts.
func (w *walker) codeStrings(code string) {
	runs := false
	for _, d := range dangers {
		if (d.rule == "code.exec" || d.rule == "code.eval") && strings.Contains(code, d.text) {
			runs = true
			break
		}
	}
	if !runs || w.depth > 3 {
		return
	}
	inner := walker{steps: w.steps / 4, depth: w.depth + 1, cwd: w.cwd, quiet: 1}
	var list []string
	for i := 0; i < len(code); i++ {
		q := code[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		j := i + 1
		for j < len(code) && code[j] != q {
			if code[j] == '\\' {
				j++
			}
			j++
		}
		if j > len(code) {
			j = len(code)
		}
		s := code[min(i+1, j):j]
		if len(list) < 64 && s != "" {
			list = append(list, s)
		}
		if len(s) > 2 && strings.IndexByte(s, ' ') > 0 {
			inner.text(s, inner.depth)
		}
		i = j
	}
	if len(list) > 1 { // ["rm", "-rf", "/"]
		inner.text(strings.Join(list, " "), inner.depth)
		inner.text(strings.Join(list[1:], " "), inner.depth)
	}
	w.steps -= w.steps/4 - max(inner.steps, 0)
	if inner.effect.AtLeast(Destroy) {
		w.note(inner.effect, inner.rule, inner.why)
		for _, c := range inner.cmds {
			if c.Effect.AtLeast(Destroy) && len(w.cmds) < maxCommands {
				c.Wrappers = append(append([]string(nil), w.wraps...), append([]string{"code"}, c.Wrappers...)...)
				c.Start, c.End = w.start, w.end
				w.cmds = append(w.cmds, c)
			}
		}
		for _, p := range inner.paths {
			w.path(p)
		}
	}
}

func sourced(w *walker, c call) ruling {
	if len(c.args) < 2 {
		return readOnly("reads nothing")
	}
	if c.args[1].sub != nil {
		w.nested(*c.args[1].sub, c.in)
		return mutate("script", "runs a text in this shell")
	}
	if c.args[1].dyn {
		return ruling{effect: Opaque, rule: "dynamic.script", why: "runs a script that is known only when it runs"}
	}
	w.script("sh", c.args[1], c.args[2:], c.in)
	return mutate("script", "runs the script "+c.args[1].s+" in this shell")
}
