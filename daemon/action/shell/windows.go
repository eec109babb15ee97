package shell

import "strings"

// cmdlet reports a name of PowerShell's form: Verb-Noun.
func cmdlet(name string) (verb, noun string, ok bool) {
	verb, noun, ok = strings.Cut(name, "-")
	if !ok || verb == "" || noun == "" || verb[0] < 'A' || verb[0] > 'Z' && (verb[0] < 'a' || verb[0] > 'z') || noun[0] < 'A' || noun[0] > 'Z' {
		return "", "", false
	}
	return strings.ToLower(verb), strings.ToLower(noun), true
}

// powershellVerbs are the approved verbs whose effect does not hang on the noun.
var powershellVerbs = map[string]Effect{
	"get": ReadOnly, "select": ReadOnly, "where": ReadOnly, "measure": ReadOnly, "test": ReadOnly, "show": ReadOnly, "find": ReadOnly, "compare": ReadOnly, "convertto": ReadOnly, "convertfrom": ReadOnly, "sort": ReadOnly, "group": ReadOnly, "resolve": ReadOnly, "split": ReadOnly, "join": ReadOnly, "search": ReadOnly, "read": ReadOnly, "format": ReadOnly, "write": ReadOnly, "wait": ReadOnly, "trace": ReadOnly, "search-ad": ReadOnly,
	"remove": Destroy, "clear": Destroy, "uninstall": Destroy, "reset": Destroy, "stop": Destroy, "disable": Destroy, "revoke": Destroy, "dismount": Destroy, "unregister": Destroy, "suspend": Destroy, "restart": Destroy, "unpublish": Destroy, "deny": Destroy, "optimize": Mutate, "initialize": Catastrophe, "repair": Mutate, "restore": Destroy, "undo": Destroy, "block": Mutate,
	"invoke": Mutate, "start": Mutate, "new": Mutate, "set": Mutate, "add": Mutate, "copy": Mutate, "move": Mutate, "rename": Mutate, "install": Mutate, "update": Mutate, "enable": Mutate, "import": Mutate, "export": Mutate, "out": Mutate, "register": Mutate, "publish": Mutate, "save": Mutate, "send": Mutate, "mount": Mutate, "connect": Mutate, "grant": Mutate, "foreach": Mutate, "tee": Mutate, "expand": Mutate, "compress": Mutate, "enter": Opaque,
}

// powershell rules on a cmdlet that stands in a command line, as it does where an
// agent's shell is PowerShell.
func powershell(w *walker, c call) ruling {
	name := base(c.args[0].s)
	verb, noun, _ := cmdlet(name)
	for _, a := range c.args[1:] {
		if strings.EqualFold(a.s, "-WhatIf") {
			return readOnly(name + " -WhatIf only tells")
		}
	}
	switch verb + "-" + noun {
	case "invoke-expression", "invoke-command", "start-process", "invoke-item", "start-job", "add-type", "invoke-wmimethod", "invoke-cimmethod":
		r := ruling{effect: Opaque, rule: "powershell.run", why: name + " runs what it is given"}
		if e := codeRuling(joinWords(c.args[1:])); e.effect.AtLeast(Destroy) {
			return e
		}
		return r
	case "clear-disk", "format-volume", "initialize-disk", "remove-partition", "clear-storagediagnosticinfo":
		return ruling{effect: Catastrophe, rule: "disk.format", why: name + " destroys what is on a disk"}
	case "clear-host", "clear-variable", "remove-variable", "remove-module", "remove-alias", "stop-transcript", "format-table", "format-list", "format-wide", "format-custom", "format-hex", "out-string", "out-null", "out-host", "out-default", "write-output", "write-host":
		return readOnly(name + " changes nothing outside")
	case "remove-item", "remove-itemproperty", "clear-content", "clear-item", "clear-recyclebin":
		r := destroy("powershell.remove", name+" takes away what it names")
		for _, p := range positional(c.args, "-Include -Exclude -Filter -ErrorAction -Path -LiteralPath") {
			r.paths = append(r.paths, p)
			if vitalDir(joinPath(w.cwd, strings.ReplaceAll(p.s, `\`, "/"))) || vitalDir(p.s) || windowsVital(p.s) {
				r.effect, r.rule = Catastrophe, "rm.vital"
			}
		}
		return r
	case "stop-computer", "restart-computer":
		return destroy("system.stop", name+" stops the machine")
	case "set-executionpolicy":
		return ruling{effect: Opaque, rule: "powershell.policy", why: "changes which scripts may run"}
	case "set-content", "out-file", "add-content":
		return mutate("write", name+" writes a file", positional(c.args, "-Value -Encoding")...)
	}
	e, ok := powershellVerbs[verb]
	if !ok {
		return mutate("program.unknown", "an unknown program may change anything: "+name)
	}
	switch {
	case e == Catastrophe:
		return ruling{effect: Destroy, rule: "powershell.verb", why: name}
	case e == Destroy:
		return destroy("powershell.verb", name)
	case e == ReadOnly:
		return readOnly(name + " looks")
	case e == Opaque:
		return ruling{effect: Opaque, rule: "interactive", why: name}
	}
	return mutate("powershell.verb", name)
}

// windowsAliases are short names of PowerShell and commands of cmd that are cmdlets
// by another name.
var windowsAliases = map[string]string{
	"ri": "Remove-Item", "rm": "Remove-Item", "del": "Remove-Item", "erase": "Remove-Item", "rd": "Remove-Item", "rmdir": "Remove-Item", "clc": "Clear-Content",
	"gci": "Get-ChildItem", "ls": "Get-ChildItem", "dir": "Get-ChildItem", "gc": "Get-Content", "cat": "Get-Content", "type": "Get-Content", "echo": "Write-Output", "write": "Write-Output", "pwd": "Get-Location", "gl": "Get-Location",
	"sls": "Select-String", "select": "Select-Object", "sort": "Sort-Object", "measure": "Measure-Object", "group": "Group-Object", "ft": "Format-Table", "fl": "Format-List", "ps": "Get-Process", "gps": "Get-Process", "gsv": "Get-Service",
	"cp": "Copy-Item", "copy": "Copy-Item", "cpi": "Copy-Item", "mv": "Move-Item", "move": "Move-Item", "mi": "Move-Item", "ren": "Rename-Item", "rni": "Rename-Item", "md": "New-Item", "mkdir": "New-Item", "ni": "New-Item", "sc": "Set-Content", "ac": "Add-Content", "kill": "Stop-Process", "spps": "Stop-Process",
}

// unquoted takes the texts in quotes out of PowerShell's code where nothing in it runs
// a text.
func unquoted(code string) string {
	for _, d := range dangers {
		if (d.rule == "code.exec" || d.rule == "code.eval") && strings.Contains(code, d.text) {
			return code
		}
	}
	if strings.ContainsAny(code, "&`") || strings.Contains(strings.ToLower(code), "invoke") {
		return code
	}
	var b strings.Builder
	quoted := byte(0)
	for i := range len(code) {
		switch c := code[i]; {
		case quoted == 0 && (c == '"' || c == '\''):
			quoted = c
			b.WriteByte(c)
		case c == quoted:
			quoted = 0
			b.WriteByte(c)
		case quoted == '"' && c == '$': // it may hold a command
			return code
		case quoted == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// windowsText reads a text for PowerShell or cmd as plain commands: words, quotes,
// and ; | & between commands. Anything else in it (a block, a call of .NET, a
// variable as a command) and it is left to the search for what destroys.
func windowsText(w *walker, name, text string) (ruling, bool) {
	if name != "powershell" && name != "pwsh" && name != "cmd" {
		return ruling{}, false
	}
	var r ruling
	var args []word
	var cur strings.Builder
	in, quoted := false, byte(0)
	flush := func() {
		if in {
			args = append(args, word{s: cur.String()})
			cur.Reset()
			in = false
		}
	}
	plain := true
	end := func() {
		flush()
		if len(args) == 0 {
			return
		}
		head := args[0].s
		if full, ok := windowsAliases[strings.ToLower(head)]; ok {
			args[0].s = full
		}
		if _, _, ok := cmdlet(args[0].s); !ok {
			if name := strings.ToLower(head); KnownProgram(name) && name != "cmd" && name != "powershell" && name != "pwsh" {
				args[0].s = name
				w.exec(call{args: args})
				if r.effect == "" || r.effect == ReadOnly {
					r = mutate("script", "runs "+name)
				}
			} else {
				plain = false
			}
		} else {
			if one := powershell(w, call{args: args}); r.effect == "" || one.effect.Rank() > r.effect.Rank() {
				r = one
			}
		}
		args = nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted != 0:
			switch {
			case c == quoted:
				quoted = 0
			case c == '`' || c == '$' && quoted == '"' && name != "cmd":
				return ruling{}, false
			default:
				cur.WriteByte(c)
			}
		case c == '"' || c == '\'' && name != "cmd":
			quoted, in = c, true
		case strings.IndexByte(" \t\r", c) >= 0:
			flush()
		case c == ';' && name != "cmd" || c == '\n' || c == '|' || c == '&' && (name == "cmd" || i+1 < len(text) && text[i+1] == '&' || i > 0 && text[i-1] == '&'):
			end()
		case strings.IndexByte("(){}[]`&$%^@<>#", c) >= 0:
			return ruling{}, false
		default:
			cur.WriteByte(c)
			in = true
		}
	}
	end()
	return r, plain && quoted == 0 && r.effect != ""
}

func windowsVital(p string) bool {
	p = strings.ToLower(strings.TrimRight(strings.ReplaceAll(p, "/", `\`), `\*`))
	switch p {
	case "c:", `c:\windows`, `c:\users`, `c:\program files`, `c:\program files (x86)`, `c:\windows\system32`, "%systemroot%", "%userprofile%", "$env:userprofile", "$env:systemroot", "$home":
		return true
	}
	return len(p) == 2 && p[1] == ':'
}

// windowsTables rule on the tools of Windows' own command line.
func windowsTool(_ *walker, c call) ruling {
	name := strings.ToLower(base(c.args[0].s))
	first := ""
	if len(c.args) > 1 {
		first = strings.ToLower(c.args[1].s)
	}
	all := " " + strings.ToLower(joinWords(c.args[1:])) + " "
	has := func(words ...string) bool {
		for _, x := range words {
			if strings.Contains(all, " "+x+" ") || strings.Contains(all, " "+x+":") {
				return true
			}
		}
		return false
	}
	kill := func(why string) ruling { return destroy("windows.destroy", name+" "+why) }
	switch name {
	case "vssadmin":
		if first == "delete" || first == "resize" {
			return kill("removes shadow copies")
		}
		return readOnly("lists shadow copies")
	case "wbadmin":
		if first == "delete" || first == "stop" || first == "disable" {
			return kill("removes backups")
		}
	case "bcdedit":
		if has("/delete", "/deletevalue", "/import") || has("/set") && (strings.Contains(all, "recoveryenabled") || strings.Contains(all, "bootstatuspolicy")) {
			return kill("changes how the machine starts")
		}
		if len(c.args) == 1 || first == "/enum" {
			return readOnly("lists boot entries")
		}
	case "wmic":
		if has("delete", "terminate", "uninstall") {
			return kill("removes")
		}
		if strings.Contains(all, " get ") || strings.Contains(all, " list ") {
			return readOnly("asks the system")
		}
	case "reg":
		switch first {
		case "delete", "restore", "unload", "import":
			return kill(first)
		case "query", "compare":
			return readOnly("reads the registry")
		}
	case "sc":
		switch first {
		case "delete", "stop":
			return kill(first)
		case "query", "queryex", "qc":
			return readOnly("lists services")
		}
	case "net", "net1":
		switch {
		case has("/delete"), first == "stop":
			return kill("removes or stops")
		case len(c.args) == 2 || first == "view" || first == "statistics" || first == "config":
			return readOnly("lists")
		}
	case "taskkill", "logoff":
		return mutate("process.signal", "ends programs")
	case "schtasks":
		if has("/delete", "/end") {
			return kill("removes a task")
		}
		if has("/query") {
			return readOnly("lists tasks")
		}
		return mutate("cron", "changes what runs later")
	case "cipher":
		if strings.Contains(all, " /w") {
			return kill("wipes free space")
		}
	case "fsutil":
		if has("deletejournal", "setzerodata", "dismount", "delete", "setvaliddata") {
			return kill("changes a volume")
		}
		if has("query", "info", "drives", "list", "fsinfo") {
			return readOnly("looks at a volume")
		}
	case "robocopy":
		if has("/mir", "/purge", "/move", "/mov") && !has("/l") {
			return kill("removes what the source does not have")
		}
	case "wevtutil":
		if first == "cl" || first == "clear-log" || first == "um" {
			return kill("empties a log")
		}
		return readOnly("reads logs")
	case "icacls", "takeown", "cacls":
		if strings.Contains(all, " /t ") || strings.Contains(all, " /r ") || has("/reset") {
			return kill("changes rights of all below")
		}
	case "dism":
		if strings.Contains(all, "/remove-") || strings.Contains(all, "/disable-feature") || strings.Contains(all, "/resetbase") || strings.Contains(all, "/apply-image") {
			return kill("removes parts of the system")
		}
	case "netsh":
		if has("delete", "reset") {
			return kill("takes network settings away")
		}
		if has("show") {
			return readOnly("shows network settings")
		}
		if has("off") {
			return kill("turns the firewall off")
		}
	case "powercfg":
		if has("/delete", "-delete", "/restoredefaultschemes") {
			return kill("removes")
		}
	case "deltree":
		return kill("removes a directory and all below it")
	case "mklink", "xcopy", "attrib", "msiexec":
		if name == "msiexec" && (strings.Contains(all, " /x") || has("/uninstall")) {
			return kill("uninstalls")
		}
	case "systeminfo", "tasklist", "ipconfig", "getmac", "where", "ver", "vol", "findstr", "nbtstat", "qwinsta", "quser", "driverquery":
		if strings.Contains(all, " /release") || strings.Contains(all, " /flushdns") {
			return mutate("system.network", name+" changes the network")
		}
		return readOnly(name + " looks")
	}
	return mutate("windows", name+" changes the system")
}

func isWindowsTool(name string) bool {
	switch strings.ToLower(name) {
	case "vssadmin", "wbadmin", "bcdedit", "wmic", "reg", "sc", "net", "net1", "taskkill", "logoff", "schtasks", "cipher", "fsutil", "robocopy", "wevtutil", "icacls", "takeown", "cacls", "dism", "netsh", "powercfg", "deltree", "mklink", "xcopy", "attrib", "msiexec", "systeminfo", "tasklist", "ipconfig", "getmac", "findstr", "nbtstat", "driverquery":
		return true
	}
	return false
}
