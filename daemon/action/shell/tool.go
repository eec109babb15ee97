package shell

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Edit is one file that a tool call changes.
type Edit struct {
	Path       string
	Lines      int  // lines added and removed, as far as the call says
	Whole      bool // the call writes the whole file
	Everywhere bool // the change is made at every place that fits
	Removed    bool
	Old        string
	New        string
}

// Action is a tool call as the gate sees it.
type Action struct {
	Kind    string // shell | filesystem | http | database | browser | mcp | agent | plan | unknown
	Effect  Effect
	Summary string // one line: the command, or the verb and its target; not redacted
	Paths   []string
	Edits   []Edit
	Command string  // of a shell tool
	Shell   Reading // of a shell tool
	Dir     string  // working directory the call asks for
	// External reports that its result says nothing about this system: web, MCP.
	External bool
	Rule     string
	Why      string
}

// toolNames maps the names that agents use, lower case and without punctuation.
var toolNames = func() map[string]string {
	m := map[string]string{}
	for kind, names := range map[string]string{
		"shell":   "bash shell sh zsh cmd execcommand localshell localshellcall runinterminal runterminalcmd runterminalcommand executecommand runcommand runcommands terminal shellcommand execute exec runshellcommand containerexec powershell runscript bashcommand ptyexec commandline executebash executeshell runbash",
		"stdin":   "writestdin sendinput shellinput terminalinput",
		"read":    "read readfile readfiles readmanyfiles view viewfile cat openfile grep glob ls list listdir listfiles listdirectory codebasesearch searchcodebase codesearch filesearch greps grepsearch grepfiles semanticsearch search searchfiles findfiles fileglobsearch viewimage notebookread readnotebook lsp diagnostics getdiagnostics readlints listcodedefinitionnames getchangedfiles viewdiff repomap listcodeusages readcurrentlyopenfile subdirectory viewrepomap viewsubdirectory",
		"edit":    "edit write multiedit strreplace strreplaceeditor strreplacebasededittool texteditor editfile writefile createfile replaceinfile writetofile editor applydiff insertcontent searchandreplace notebookedit editnotebook replace savefile inserteditintofile createnewfile update replacestringinfile multireplacestringinfile editexistingfile singlefindandreplace multiedits filewrite fileedit createdirectory mkdir updatefile",
		"patch":   "applypatch patch",
		"delete":  "deletefile removefile rm filedelete deletefiles delete",
		"move":    "renamefile movefile mv copyfile cp",
		"web":     "webfetch websearch fetch fetchwebcontent websearchpreview fetchurl googlewebsearch urlfetch readurl searchweb weburl viewurl urlcontent fetchurlcontent webread openurl",
		"browser": "browser browseraction computer computeruse click type screenshot navigate browsernavigate playwright",
		"agent":   "task agent spawnagent subagent dispatchagent teamspawnteammate teamruntask runsubagent newtask delegate sendmessage teamsendmessage teambroadcast teamtask explore waitagent closeagent resumeagent",
		"plan": `todowrite todoread updateplan checklist exitplanmode enterplanmode askuserquestion askquestion askfollowupquestion requestuserinput attemptcompletion think sequentialthinking taskcreate taskget tasklist taskupdate taskoutput bashoutput checkbackgroundjob creategoal getgoal updategoal reportfindings skill skills exit
 toolsearch schedulewakeup planmoderespond plan updatetodolist managetodolist todolist switchmode fetchrules listmcpresources listmcpresourcetemplates agentoutput awaitshell suggest teamstatus teamlistruns teamlistoutcomes teamreadmailbox teammissionlog teamawaitruns teamcreateoutcome teamattachoutcomefragment teamreviewoutcomefragment teamfinalizeoutcome
 cronlist slashcommand declarelemmas`,
		"resource": "readmcpresource accessmcpresource",
		"process":  "killshell killbash taskstop kill killprocess teamcancelrun teamshutdownteammate teamcleanup killterminal",
		"schedule": "croncreate crondelete enterworktree workflow usemcptool memory savememory updatememory",
		"worktree": "exitworktree",
		"sql":      "sql executesql runsql sqlquery query dbquery executequery postgresquery mysqlquery database runquery",
		"code":     "python executepython runcode codeexecution codeinterpreter jupyter ipython executecode runpython executejavascript javascript nodejs",
	} {
		for n := range strings.FieldsSeq(names) {
			m[n] = kind
		}
	}
	return m
}()

// KnownTool reports a name of a tool that agents have.
func KnownTool(name string) bool { return toolNames[plain(name)] != "" }

// fields are a call's arguments by name; a name that stands twice is the last,
// as JSON.parse has it, and is told.
type fields struct {
	m      map[string]gjson.Result
	twice  bool
	reader Reader
}

func parseArgs(args []byte) (fields, bool) {
	f := fields{m: map[string]gjson.Result{}}
	if len(strings.TrimSpace(string(args[:min(len(args), 64)]))) == 0 {
		return f, true
	}
	if !gjson.ValidBytes(args) { // a free-form tool's own text, or JSON that broke off
		f.m["input"] = gjson.Result{Type: gjson.String, Str: string(args)}
		return f, false
	}
	v := gjson.ParseBytes(args)
	if v.Type == gjson.String { // a free-form tool, or arguments encoded twice
		f.m["input"] = v
		if gjson.Valid(v.Str) && strings.HasPrefix(strings.TrimSpace(v.Str), "{") {
			v = gjson.Parse(v.Str)
		}
	}
	if v.IsObject() {
		v.ForEach(func(k, x gjson.Result) bool {
			if _, ok := f.m[k.Str]; ok {
				f.twice = true
			}
			f.m[k.Str] = x
			return len(f.m) < 256
		})
	} else if v.IsArray() {
		f.m["input"] = v
	}
	return f, true
}

func (f fields) str(names ...string) string {
	for _, n := range names {
		if v, ok := f.m[n]; ok && v.Type == gjson.String {
			return v.Str
		}
	}
	return ""
}

func (f fields) path() string {
	return f.str("file_path", "filePath", "filepath", "path", "target_file", "notebook_path", "filename", "file", "dirpath", "absolute_path", "relative_path", "uri", "TargetFile")
}

// Tool reads a tool call by the name and arguments that agents use. An unknown
// tool is a mutation, arguments that do not parse are opaque.
func Tool(name string, args []byte) Action { return Reader{}.Tool(name, args) }

// Tool is the function of that name with what the reader is told about files.
func (r Reader) Tool(name string, args []byte) Action {
	a := Action{Kind: "unknown", Effect: Mutate, Rule: "tool.unknown", Why: "an unknown tool may change anything"}
	if len(name) > 256 {
		name = name[:256]
	}
	f, ok := parseArgs(args)
	f.reader = r
	kind := toolNames[plain(name)]
	lower := strings.ToLower(name)
	mcp := strings.HasPrefix(lower, "mcp__") || strings.HasPrefix(lower, "mcp_") || strings.HasPrefix(lower, "mcp.")
	switch {
	case mcp:
		a = mcpTool(name, f)
	case kind == "":
		a.Summary = name
		if destructiveVerb(splitCamel(name)) {
			a.Effect, a.Rule, a.Why = Destroy, "tool.verb", "an unknown tool that says it destroys: "+name
		}
		// A tool that carries a command runs it, whatever it is called.
		if c := f.str("command", "cmd"); c != "" {
			b := shellTool(f)
			b.Effect = Join(a.Effect, b.Effect)
			a = b
		}
	default:
		a = knownTool(kind, name, f)
	}
	if !ok && !a.Effect.AtLeast(Opaque) {
		a.Effect, a.Rule, a.Why = Opaque, "args.unreadable", "its arguments are no JSON"
	}
	a.raise(carried(kind, args, ok))
	if f.twice && !a.Effect.AtLeast(Opaque) {
		a.Effect, a.Rule, a.Why = Opaque, "args.twice", "an argument is given twice"
	}
	if a.Summary == "" {
		a.Summary = name
	}
	a.Summary = OneLine(a.Summary, 200)
	return a
}

func knownTool(kind, name string, f fields) Action {
	switch kind {
	case "shell":
		return shellTool(f)
	case "stdin":
		if messagesAgent(name, f) {
			return knownTool("agent", name, f)
		}
		chars := f.str("chars", "input", "text", "data")
		if chars == "" {
			chars = strings.Join(f.rest("chars", "input", "text", "data", "session_id", "id", "shell_id", "process_id"), "\n")
		}
		if strings.Trim(chars, "\n\r \x03\x04") == "" {
			return Action{Kind: "shell", Effect: ReadOnly, Rule: "stdin.poll", Why: "looks at a running program", Summary: name}
		}
		r := Read(chars)
		return Action{Kind: "shell", Effect: Join(Opaque, r.Effect), Rule: "stdin.type", Why: "types into a running program", Summary: name + " " + chars, Command: chars, Shell: r, Paths: r.Paths}
	case "read":
		return Action{Kind: "filesystem", Effect: ReadOnly, Rule: "tool.read", Why: "only looks", Summary: name + " " + f.path()}
	case "edit":
		return editTool(name, f)
	case "patch":
		return patchTool(name, f.str("input", "patch", "diff", "patchText", "patch_text", "content"))
	case "delete":
		return deleteTool(name, f)
	case "move":
		from, to := f.str("source", "old_path", "from", "path", "oldPath", "src"), f.str("destination", "new_path", "to", "newPath", "dest", "target")
		return Action{Kind: "filesystem", Effect: Mutate, Rule: "tool.move", Why: "moves a file", Summary: name + " " + from + " " + to, Paths: nonEmpty(from, to), Edits: []Edit{{Path: from, Whole: true, Removed: true}, {Path: to, Whole: true}}}
	case "web":
		return webTool(name, f)
	case "browser":
		return Action{Kind: "browser", Effect: Mutate, External: true, Rule: "tool.browser", Why: "acts in a browser", Summary: name + " " + f.str("action", "url")}
	case "agent":
		// The sub-agent's own calls come through the gate themselves.
		return Action{Kind: "agent", Effect: ReadOnly, External: true, Rule: "tool.agent", Why: "starts a sub-agent", Summary: name + " " + f.str("description", "task", "prompt", "message", "target", "id")}
	case "plan":
		return Action{Kind: "plan", Effect: ReadOnly, External: true, Rule: "tool.plan", Why: "changes nothing outside the conversation", Summary: name}
	case "resource":
		return Action{Kind: "mcp", Effect: ReadOnly, External: true, Rule: "tool.resource", Why: "reads a resource", Summary: name + " " + f.str("uri")}
	case "process":
		return Action{Kind: "shell", Effect: Mutate, Rule: "tool.process", Why: "stops a program", Summary: name}
	case "worktree":
		if v := f.m["discard_changes"]; v.Bool() || f.str("action") == "remove" {
			return Action{Kind: "shell", Effect: Destroy, Rule: "tool.worktree", Why: "removes a worktree with its changes", Summary: name}
		}
		return Action{Kind: "shell", Effect: Mutate, Rule: "tool.worktree", Why: "leaves a worktree", Summary: name}
	case "sql":
		q := f.str("sql", "query", "statement", "input")
		e, rule, why := SQL(q)
		return Action{Kind: "database", Effect: e, Rule: rule, Why: why, Summary: name + " " + q}
	case "code":
		code := f.str("code", "script", "source", "input")
		w := walker{steps: maxSteps}
		w.exec(call{args: []word{{s: "python"}, {s: "-c"}, {s: clip(code)}}})
		r := w.reading()
		return Action{Kind: "shell", Effect: r.Effect, Rule: r.Rule, Why: r.Why, Summary: name + " " + code, Shell: r, Paths: r.Paths}
	}
	return Action{Kind: "unknown", Effect: Mutate, Rule: "tool." + kind, Why: "changes something", Summary: name}
}

func shellTool(f fields) Action {
	a := Action{Kind: "shell", Dir: f.str("workdir", "cwd", "working_directory", "directory", "dir", "workingDirectory")}
	var r Reading
	var read func(v gjson.Result)
	read = func(v gjson.Result) {
		switch {
		case v.Type == gjson.String:
			a.Command += v.Str + "\n"
			r = merge(r, f.reader.Read(v.Str))
		case v.IsArray():
			var argv []string
			v.ForEach(func(_, x gjson.Result) bool {
				s := x.Str
				if x.IsObject() {
					s = x.Get("command").Str
				}
				argv = append(argv, s)
				return len(argv) < maxCommands
			})
			a.Command += strings.Join(argv, " ") + "\n"
			r = merge(r, f.reader.ReadArgv(argv))
			if len(argv) == 1 { // some runners give a lone word to a shell
				r = merge(r, f.reader.Read(argv[0]))
			}
		case v.IsObject():
			switch c := v.Get("command"); {
			case c.IsArray(), c.Type == gjson.String:
				read(c)
			default:
				r = merge(r, unreadable)
			}
			if d := v.Get("working_directory"); a.Dir == "" && d.Type == gjson.String {
				a.Dir = d.Str
			}
			r = merge(r, environment(v.Get("env")))
		default: // a number, true, null: whatever runs is not in the text
			r = merge(r, unreadable)
		}
	}
	found := false
	for _, n := range [...]string{"command", "cmd", "script", "input", "action", "code", "args"} {
		if v, ok := f.m[n]; ok {
			if n == "args" && found {
				continue
			}
			found = true
			read(v)
		}
	}
	if v, ok := f.m["commands"]; ok { // several command lines
		found = true
		v.ForEach(func(_, x gjson.Result) bool { read(x); return true })
		if v.Type == gjson.String {
			read(v)
		}
	}
	if !found {
		for _, s := range f.rest("description", "explanation", "workdir", "cwd", "working_directory", "directory", "dir", "workingDirectory") {
			a.Command += s + "\n"
			r = merge(r, f.reader.Read(s))
		}
	}
	a.Command = strings.TrimSuffix(a.Command, "\n")
	r = merge(r, environment(f.m["env"]))
	if sh := f.str("shell"); sh != "" && !knownShell(sh) {
		r = merge(r, Reading{Effect: Opaque, Rest: Opaque, Rule: "shell.other", Why: "is read by " + sh})
	}
	if !found && !r.Effect.AtLeast(Destroy) {
		a.Effect, a.Rule, a.Why, a.Summary = Opaque, "shell.empty", "a shell call without a command that can be read", "shell"
		return a
	}
	a.Shell, a.Effect, a.Rule, a.Why, a.Paths, a.Summary = r, r.Effect, r.Rule, r.Why, r.Paths, a.Command
	if a.Effect == "" {
		a.Effect = ReadOnly
	}
	return a
}

// messagesAgent: words for a sub-agent go by the name of what types into a
// terminal elsewhere. Only its exact shape counts.
func messagesAgent(name string, f fields) bool {
	if plain(name) != "sendinput" || f.str("target") == "" {
		return false
	}
	for k := range f.m {
		switch k {
		case "target", "message", "items", "interrupt":
		default:
			return false
		}
	}
	return true
}

// unreadable is an argument that must hold a command and does not.
var unreadable = Reading{Effect: Opaque, Rest: Opaque, Rule: "shell.empty", Why: "a shell call without a command that can be read"}

// environment reads the variables that a call sets for its command, as if the
// command were preceded by them.
func environment(v gjson.Result) Reading {
	if !v.IsObject() {
		return Reading{}
	}
	argv := []string{"env"}
	v.ForEach(func(k, x gjson.Result) bool {
		argv = append(argv, k.Str+"="+x.String())
		return len(argv) < maxCommands
	})
	if len(argv) == 1 {
		return Reading{}
	}
	return ReadArgv(append(argv, "true"))
}

// knownShell reports a shell by its plain name or in a place of the system.
func knownShell(s string) bool {
	for _, dir := range [...]string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"} {
		if rest, ok := strings.CutPrefix(s, dir); ok {
			s = rest
			break
		}
	}
	switch strings.TrimSuffix(strings.ToLower(s), ".exe") {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "pwsh", "powershell", "cmd":
		return true
	}
	return false
}

func merge(a, b Reading) Reading {
	if b.Effect != "" && (a.Effect == "" || b.Effect.Rank() > a.Effect.Rank()) {
		a.Effect, a.Rule, a.Why = b.Effect, b.Rule, b.Why
	}
	a.Rest = Join(a.Rest, b.Rest)
	a.Opaque = a.Opaque || b.Opaque
	a.Commands = append(a.Commands, b.Commands...)
	a.Paths = append(a.Paths, b.Paths...)
	a.Wrote = append(a.Wrote, b.Wrote...)
	return a
}

func editTool(name string, f fields) Action {
	p := f.path()
	a := Action{Kind: "filesystem", Effect: Mutate, Rule: "tool.edit", Why: "changes a file", Summary: name + " " + p}
	if c := f.str("command"); c == "view" { // the text editor tools of Anthropic
		a.Effect, a.Rule, a.Why = ReadOnly, "tool.read", "only looks"
		return a
	}
	old := f.str("old_string", "oldString", "old_str", "old_text", "oldText", "search")
	neu := f.str("new_string", "newString", "new_str", "new_text", "newText", "replace", "insert_text", "new_source", "code_edit")
	content, whole := f.m["content"], false
	for _, n := range [...]string{"content", "file_text", "contents", "text"} {
		if v, ok := f.m[n]; ok && v.Type == gjson.String {
			content, whole = v, true
		}
	}
	all := f.m["replace_all"].Bool() || f.m["replaceAll"].Bool() || f.m["allow_multiple"].Bool()
	switch edits := f.m["edits"]; {
	case edits.IsArray():
		edits.ForEach(func(_, e gjson.Result) bool {
			g := fields{m: map[string]gjson.Result{}}
			e.ForEach(func(k, v gjson.Result) bool { g.m[k.Str] = v; return true })
			q := g.path()
			if q == "" {
				q = p
			}
			o, n := g.str("old_string", "oldString", "old_str", "old_text", "oldText", "search"), g.str("new_string", "newString", "new_str", "new_text", "newText", "replace")
			a.Edits = append(a.Edits, Edit{Path: q, Lines: changed(o, n), Old: o, New: n, Everywhere: g.m["replace_all"].Bool() || g.m["replaceAll"].Bool()})
			return len(a.Edits) < 256
		})
	case whole && old == "":
		a.Edits = []Edit{{Path: p, Whole: true, New: content.Str, Lines: countLines(content.Str)}}
	default:
		d := f.str("diff", "patch")
		if d != "" && old == "" {
			neu = d
		}
		a.Edits = []Edit{{Path: p, Lines: changed(old, neu), Old: old, New: neu, Everywhere: all, Whole: old == "" && neu == ""}}
	}
	seen := map[string]bool{}
	for _, e := range a.Edits {
		if e.Path != "" && !seen[e.Path] {
			seen[e.Path] = true
			a.Paths = append(a.Paths, e.Path)
		}
		if vitalFile(e.Path) {
			a.Effect, a.Rule, a.Why = Destroy, "write.vital", "overwrites "+e.Path
		}
	}
	return a
}

func deleteTool(name string, f fields) Action {
	a := Action{Kind: "filesystem", Effect: Mutate, Rule: "rm.file", Why: "removes a file"}
	ps := nonEmpty(f.path())
	for _, n := range [...]string{"paths", "files"} {
		f.m[n].ForEach(func(_, v gjson.Result) bool {
			if v.Type == gjson.String {
				ps = append(ps, v.Str)
			} else if q := v.Get("path").Str; q != "" {
				ps = append(ps, q)
			}
			return len(ps) < maxPaths
		})
	}
	if f.m["recursive"].Bool() {
		a.Effect, a.Rule, a.Why = Destroy, "rm.recursive", "removes a directory and all below it"
	}
	for _, p := range ps {
		if full := joinPath("", p); vitalDir(full) {
			a.Effect, a.Rule, a.Why = Catastrophe, "rm.vital", "removes "+p
		} else if preciousName(full) || systemFile(full) || strings.ContainsAny(p, "*?") {
			a.Effect, a.Rule, a.Why = Join(a.Effect, Destroy), "rm.precious", "removes "+p
		}
		a.Edits = append(a.Edits, Edit{Path: p, Whole: true, Removed: true})
	}
	if len(ps) == 0 {
		a.Effect, a.Rule, a.Why = Destroy, "rm.dynamic", "removes something it does not name in a known way"
	}
	a.Paths, a.Summary = ps, name+" "+strings.Join(ps, " ")
	return a
}

// mcpTool is a tool of some server: what it does is anyone's guess, what it
// answers is not about this system.
func mcpTool(name string, f fields) Action {
	a := Action{Kind: "mcp", Effect: Mutate, External: true, Rule: "tool.mcp", Why: "a tool of an MCP server", Summary: name}
	short := name
	if i := strings.LastIndex(name, "__"); i >= 0 {
		short = name[i+2:]
	}
	if destructiveVerb(splitCamel(short)) {
		a.Effect, a.Rule, a.Why = Destroy, "tool.verb", "an MCP tool that says it destroys: "+short
	}
	if q := f.str("sql", "query", "statement"); q != "" && strings.ContainsRune(q, ' ') {
		if e, rule, why := SQL(q); e.AtLeast(Destroy) {
			a.Effect, a.Rule, a.Why = e, rule, why
		}
	}
	if c := f.str("command", "cmd"); c != "" {
		if r := Read(c); r.Effect.Rank() > a.Effect.Rank() {
			a.Effect, a.Rule, a.Why, a.Shell, a.Command, a.Paths = r.Effect, r.Rule, r.Why, r, c, r.Paths
		}
	}
	return a
}

// changed counts the lines that differ: common lines at both ends do not.
func changed(old, neu string) int {
	a, b := strings.Split(old, "\n"), strings.Split(neu, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	n := len(a) + len(b)
	if old == "" && n > 0 {
		n--
	}
	return n
}

func countLines(s string) int {
	if s == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
}

// plain is a tool's name in lower case without punctuation.
func plain(name string) string {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+32)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= 0x80:
			b = append(b, c)
		}
	}
	return string(b)
}

func splitCamel(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i > 0 && s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func nonEmpty(ss ...string) []string {
	var out []string
	for _, s := range ss {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// OneLine makes s a single line of at most n bytes: control characters become
// spaces, a cut shows.
func OneLine(s string, n int) string {
	cut := false
	if len(s) > 4*n {
		s, cut = s[:4*n], true
	}
	var b strings.Builder
	space := false
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == ' ' || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == utf8.RuneError {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	s = b.String()
	if len(s) > n {
		s, cut = s[:n], true
	}
	if cut && n > 3 {
		s = s[:min(len(s), n-3)]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return s
}
