package shell

import (
	"slices"
	"strings"
)

// ruling is what a classifier says of one program call.
type ruling struct {
	effect Effect
	rule   string
	why    string
	paths  []word // written or removed
	regen  bool
	// removes are known relative paths that a recursive removal takes away.
	removes []string
}

// classifier rules on one program. A family of programs is one file with its
// own table; classifierOf knows it.
type classifier func(w *walker, c call) ruling

// classifierOf finds the family that rules on a program. A new family is a new
// file and one case here. It is a function, not a table, because families lead
// back here through what they run.
func classifierOf(name string) (f classifier, known bool) {
	if plainReaders[name] {
		return plainReader, true
	}
	if _, ok := withOptions[name]; ok {
		return optionReader, true
	}
	switch name {
	case "uniq":
		return uniq, true
	case "sed", "gsed":
		return sed, true
	case "awk", "gawk", "mawk", "nawk":
		return awk, true
	case "curl", "wget", "http", "https", "xh", "httpie":
		return http, true
	case "rm", "gunlink", "unlink", "rmdir", "srm", "trash", "del", "erase", "rd", "rimraf", "wipe":
		return remove, true
	case "cp", "mv", "ln", "install", "rsync", "scp", "sftp", "rclone", "touch", "mkdir", "tee", "chmod", "chown", "chgrp", "chattr", "setfacl", "setfattr", "mkfifo", "mknod", "patch", "split", "csplit", "tar", "zip", "unzip", "gzip", "gunzip", "bzip2", "xz", "zstd", "unxz", "7z", "cpio", "truncate", "shred", "dd":
		return files, true
	case "mkfs", "mkfs.ext4", "mkfs.ext3", "mkfs.ext2", "mkfs.xfs", "mkfs.btrfs", "mkfs.vfat", "mkfs.fat", "mkfs.ntfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "fdisk", "sfdisk", "cfdisk", "parted", "gdisk", "diskpart", "format", "hdparm", "cryptsetup", "pvremove", "vgremove", "lvremove", "zpool", "zfs", "mdadm", "dmsetup", "nvme", "diskutil":
		return disk, true
	case "kill", "killall", "pkill", "skill", "reboot", "shutdown", "halt", "poweroff", "init", "telinit", "crontab", "userdel", "groupdel", "deluser", "delgroup", "usermod", "useradd", "passwd", "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "swapoff", "umount", "mount", "modprobe", "rmmod", "insmod", "at", "batch":
		return system, true
	case "python", "pypy", "node", "deno", "bun", "perl", "ruby", "php", "lua", "osascript", "powershell", "pwsh", "cmd", "tclsh", "Rscript", "groovy", "jshell", "ts-node", "tsx", "irb", "ipython":
		return interpreter, true
	case "psql", "pgcli", "mycli", "litecli", "mssql-cli", "ysqlsh", "usql", "cypher-shell", "trino", "presto", "hive", "beeline", "impala-shell", "spark-sql", "clickhouse", "isql", "db2", "vsql", "mysqlsh", "rqlite", "surreal", "osqueryi", "monetdb", "mclient", "mysql", "mariadb", "sqlite3", "sqlcmd", "duckdb", "clickhouse-client", "mongosh", "mongo", "redis-cli", "valkey-cli", "cqlsh", "snowsql", "bq", "cockroach", "sqlplus":
		return database, true
	case "nc", "ncat", "netcat", "socat", "telnet", "nsupdate":
		return wire, true
	case "java":
		return java, true
	case "git", "hub":
		return git, true
	case ".", "source":
		return sourced, true
	case "apply_patch", "applypatch":
		return patchCommand, true
	}
	if _, ok := tableOf(name); ok {
		return verbs, true
	}
	if isWindowsTool(name) {
		return windowsTool, true
	}
	if _, _, ok := cmdlet(name); ok {
		return powershell, true
	}
	if strings.HasPrefix(name, "mkfs") || strings.HasPrefix(name, "newfs") {
		return disk, true
	}
	return unknownProgram, false
}

// KnownProgram reports a program that a table here speaks of.
func KnownProgram(name string) bool {
	_, known := classifierOf(name)
	_, wraps := wrappers[name]
	return known || wraps || shells[name]
}

// record adds a command with its ruling to the reading.
func (w *walker) record(c call, e Effect, rule, why string) {
	w.add(c, ruling{effect: e, rule: rule, why: why})
}

func (w *walker) add(c call, r ruling) {
	rest := w.rest
	if w.scripts > 0 && r.effect == Opaque && quietly(r.rule) {
		w.opaque, r.effect = true, Mutate
	}
	w.note(r.effect, r.rule, r.why)
	if r.removes != nil && !w.lost {
		w.rest = rest
	}
	for _, p := range r.paths {
		w.path(p.s)
	}
	if len(w.cmds) >= maxCommands {
		w.note(Opaque, "budget", "too many commands")
		return
	}
	cmd := Command{
		Argv: make([]string, len(c.args)), Env: c.env, Cwd: w.cwd, Effect: r.effect, Rule: r.rule, Why: r.why,
		Regenerable: r.regen, Start: w.start, End: w.end,
	}
	for i, a := range c.args {
		cmd.Argv[i] = a.s
		if len(a.s) > maxWord {
			cmd.Argv[i] = a.s[:maxWord]
		}
		cmd.Dynamic = cmd.Dynamic || a.dyn
	}
	if !w.lost {
		cmd.Removes = r.removes
	}
	if len(w.wraps) > 0 {
		cmd.Wrappers = append([]string(nil), w.wraps...)
	}
	if w.cmds == nil {
		w.cmds = make([]Command, 0, 2)
	}
	w.cmds = append(w.cmds, cmd)
}

// program classifies a command whose wrappers are gone.
func (w *walker) program(name string, c call) stream {
	for _, e := range c.env {
		if hijack(e) {
			w.note(Opaque, "env.hijack", "changes what runs by "+e[:strings.IndexByte(e, '=')])
		}
	}
	for _, a := range c.args[1:] {
		if runsProgram(a.s) {
			w.note(Opaque, "option.program", "runs a program named in "+a.s)
		}
	}
	if name == "make" || name == "gmake" {
		for _, a := range c.args[1:] {
			if strings.HasPrefix(a.s, "SHELL=") || strings.HasPrefix(a.s, ".SHELLFLAGS=") || strings.HasPrefix(a.s, "MAKEFLAGS=") {
				w.note(Opaque, "env.hijack", "changes what make runs by "+a.s)
			}
		}
	}
	switch {
	case name == "make" || name == "gmake":
		w.makefile(c)
	case strings.IndexByte(c.args[0].s, '/') >= 0 && !systemPath(c.args[0].s):
		w.script("", c.args[0], c.args[1:], c.in)
	default:
		w.packageScripts(name, c)
		w.copied(name, c)
	}
	f, known := classifierOf(name)
	if known && len(c.args) == 2 && !strings.ContainsAny(c.args[0].s, "/.") {
		switch c.args[1].s {
		case "--version", "--help":
			r := ownCode(name, readOnly("prints version or help"))
			w.record(c, r.effect, r.rule, r.why)
			return stream{kind: unknown}
		}
	}
	// A path that is neither a system directory nor the bare name is some file
	// that calls itself that: it gets no credit for reading only.
	r := f(w, c)
	if most, ok := operands[name]; ok && len(positional(c.args, "")) > most {
		if said := byWords(name, c.args[1:]); said.effect.AtLeast(Destroy) { // another program of that name
			r = stronger(r, said)
		}
	}
	if carriers[name] {
		if e, ok := w.embedded(c); ok {
			r = stronger(r, e)
		}
	}
	r = ownCode(name, r)
	if r.effect == ReadOnly && strings.ContainsRune(c.args[0].s, '/') && !systemPath(c.args[0].s) {
		r.effect, r.rule, r.why = Mutate, "program.local", "a program of this directory: "+c.args[0].s
	}
	if e, rule, why := sensitive(r, name); e != "" {
		r.effect, r.rule, r.why = Join(r.effect, e), rule, why
	}
	if what := sendsSecret(name, c); what != "" && !r.effect.AtLeast(Opaque) {
		r.effect, r.rule, r.why = Opaque, "send.secret", name+" sends "+what+" to another machine"
	}
	w.add(c, r)
	switch name {
	case "set":
		w.setArgs(c.args[1:])
	case "shift":
		w.args = nil
	case "cd", "pushd":
		w.chdir(c)
	case "popd":
		w.lost = true
	}
	out := output(c.args, c.in)
	if name == "tee" {
		for _, p := range positional(c.args, "") {
			w.wrote(p, c.in, short(c.args, 'a') || hasFlag(c.args, "--append"))
		}
	}
	out.secret = secretOut(name, c)
	return out
}

// operands are the most that some tools take, whose short names others bear as well.
var operands = map[string]int{"split": 2, "join": 2, "comm": 2, "cmp": 4, "diff": 2, "look": 2, "host": 2, "uniq": 2}

// setArgs is set -- a b: from here on these are $1 and $2. In a branch that is
// taken for true, since what they hold is then read as well.
func (w *walker) setArgs(args []word) {
	i := slices.IndexFunc(args, func(a word) bool { return a.s == "--" })
	if i < 0 {
		return
	}
	w.args = append([]word{}, args[i+1:]...)
	for n, a := range w.args {
		if n < 9 {
			w.set(string(rune('1'+n)), a)
		}
	}
}

// runsProgram reports an option of otherwise harmless commands that names a
// program to run.
func runsProgram(a string) bool {
	name, _, _ := strings.Cut(a, "=")
	switch name {
	case "-toolexec", "--toolexec", "-vettool", "--vettool", "--post-renderer":
		return true
	}
	return false
}

func (w *walker) chdir(c call) {
	dir := "~"
	for _, a := range c.args[1:] {
		if a.s == "--" || a.s == "-P" || a.s == "-L" {
			continue
		}
		dir = a.s
		w.lost = w.lost || a.dyn || a.glob || a.s == "-"
		break
	}
	w.lost = w.lost || w.branch > 0
	w.cwd = joinPath(w.cwd, dir)
}

func systemPath(p string) bool {
	for _, d := range [...]string{"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"} {
		if rest, ok := strings.CutPrefix(p, d); ok && strings.IndexByte(rest, '/') < 0 {
			return true
		}
	}
	return false
}

// hijack reports an assignment that makes a harmless name run something else.
func hijack(e string) bool {
	i := strings.IndexByte(e, '=')
	if i < 0 {
		return false
	}
	switch n := e[:i]; n {
	case "PATH", "BASH_ENV", "ENV", "SHELL", "IFS", "PYTHONSTARTUP", "PYTHONPATH", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "PAGER", "EDITOR", "VISUAL",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "LESSOPEN", "MANPAGER", "PROMPT_COMMAND":
		v := e[i+1:]
		return v != "" && v != "cat" && v != "true" && v != "less" && v != "vi" && v != "vim" && v != "nano" && n != "NODE_OPTIONS" && n != "PYTHONPATH" || n == "NODE_OPTIONS" && strings.Contains(v, "require")
	default:
		return strings.HasPrefix(n, "LD_") && n != "LD_LIBRARY_PATH" || strings.HasPrefix(n, "DYLD_INSERT")
	}
}

// positional are the words that are no options; valued options lose their value.
func positional(args []word, valued string) []word {
	var out []word
	for i := 1; i < len(args); i++ {
		a := args[i].s
		if a == "--" {
			return append(out, args[i+1:]...)
		}
		if len(a) > 1 && a[0] == '-' {
			if takesValue(valued, a) {
				i++
			}
			continue
		}
		out = append(out, args[i])
	}
	return out
}

func readOnly(why string) ruling { return ruling{effect: ReadOnly, rule: "read", why: why} }

func mutate(rule, why string, paths ...word) ruling {
	return ruling{effect: Mutate, rule: rule, why: why, paths: paths}
}

func destroy(rule, why string, paths ...word) ruling {
	return ruling{effect: Destroy, rule: rule, why: why, paths: paths}
}
