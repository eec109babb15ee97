package shell

import "strings"

// joinPath follows a path from a directory, as spelled, with . and .. resolved.
// A relative path from an unknown directory stays relative.
func joinPath(cwd, p string) string {
	if p == "" {
		return cwd
	}
	for _, h := range [...]string{"$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(p, h); ok && (rest == "" || rest[0] == '/') {
			p = "~" + rest
		}
	}
	abs := p[0] == '/' || p[0] == '~' || p[0] == '$' || len(p) > 1 && p[1] == ':'
	if !abs && cwd != "" {
		p = cwd + "/" + p
	}
	lead := ""
	if p[0] == '/' {
		lead = "/"
	}
	var out []string
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			if n := len(out); n > 0 && out[n-1] != ".." && !strings.HasPrefix(out[n-1], "~") && !strings.HasPrefix(out[n-1], "$") {
				out = out[:n-1]
			} else if lead == "" {
				out = append(out, part)
			}
		default:
			out = append(out, part)
		}
	}
	s := lead + strings.Join(out, "/")
	if s == "" {
		return "."
	}
	return s
}

var vital = set(`/ /* /. /.* /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /srv /sys /usr /var /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var/lib /var/log
 /Users /System /Library /Applications /private /Volumes /mnt /media ~ ~/* ~/. ~/.* ~/.ssh ~/.gnupg ~/.config ~/.aws ~/.kube C:\ C:/ C: /c /mnt/c`)

// vitalDir reports a directory that a system or a person cannot do without.
func vitalDir(p string) bool {
	if p != "/" {
		p = strings.TrimSuffix(p, "/")
	}
	if vital[p] {
		return true
	}
	if q, ok := strings.CutSuffix(p, "/*"); ok && (vital[q] || q == "") {
		return true
	}
	if q, ok := strings.CutSuffix(p, "/{…}"); ok && (vital[q] || q == "") {
		return true
	}
	for _, h := range [...]string{"/home/", "/Users/"} { // someone's whole home
		if rest, ok := strings.CutPrefix(p, h); ok && strings.IndexByte(strings.TrimSuffix(rest, "/*"), '/') < 0 {
			return true
		}
	}
	return false
}

// systemFile reports something below the directories of the system itself.
func systemFile(p string) bool {
	for _, d := range [...]string{"/etc/", "/bin/", "/boot/", "/lib/", "/lib64/", "/sbin/", "/usr/", "/sys/", "/proc/", "/dev/", "/System/", "/Library/", "/root/", `C:\Windows`, "C:/Windows"} {
		if strings.HasPrefix(p, d) {
			return true
		}
	}
	return false
}

func vitalFile(p string) bool {
	switch p {
	case "/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/fstab", "/etc/group", "/etc/hosts", "/proc/sysrq-trigger", "/boot/vmlinuz", "/etc/ld.so.preload":
		return true
	}
	return strings.HasPrefix(p, "/boot/") || strings.HasPrefix(p, "/sys/") || strings.HasPrefix(p, "/etc/sudoers.d/")
}

func blockDevice(p string) bool {
	rest, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	for _, d := range [...]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "dm-", "mem", "kmem", "port", "loop"} {
		if strings.HasPrefix(rest, d) {
			return true
		}
	}
	return false
}

// regenerable is 13.6's closed list of directories that a build makes again.
var regenerable = set("node_modules dist build out target .next .cache __pycache__ .venv coverage .pytest_cache")

// Regenerable reports the name of a directory that is on that list.
func Regenerable(name string) bool { return regenerable[name] }

// Precious reports a file or directory whose loss is data loss, by its name.
func Precious(name string) bool { return preciousName(name) }

// preciousName reports a file whose loss is data loss, by its name.
func preciousName(p string) bool {
	b := strings.ToLower(p[strings.LastIndexByte(p, '/')+1:])
	for _, s := range [...]string{".db", ".sqlite", ".sqlite3", ".key", ".pem", ".tfstate", ".tfstate.backup", ".kdbx", ".p12", ".pfx", ".mdf", ".ibd"} {
		if strings.HasSuffix(b, s) {
			return true
		}
	}
	return strings.Contains(b, ".env") && !strings.Contains(b, ".env.example") && !strings.Contains(b, ".envrc.example") || strings.Contains(b, "dump") || strings.HasPrefix(b, "id_rsa") || strings.HasPrefix(b, "id_ed25519") ||
		b == ".git" || strings.Contains(p, "/.git/") || strings.HasPrefix(p, ".git/") || strings.HasSuffix(b, ".bak") || strings.Contains(b, "backup")
}

func remove(w *walker, c call) ruling {
	name := base(c.args[0].s)
	pos := positional(c.args, "")
	recursive := short(c.args, 'r') || short(c.args, 'R') || given(c.args, "--recursive") || base(c.args[0].s) == "rimraf"
	if name == "rmdir" {
		return mutate("rmdir", "removes empty directories", pos...)
	}
	if name == "trash" {
		return mutate("trash", "moves files to the trash", pos...)
	}
	if given(c.args, "--no-preserve-root") {
		return ruling{effect: Catastrophe, rule: "rm.root", why: "rm with --no-preserve-root", paths: pos}
	}
	r := mutate("rm.file", "removes files", pos...)
	regen, named := recursive && len(pos) > 0, name == "rm"
	for _, p := range pos {
		full := joinPath(w.cwd, p.s)
		switch {
		case (recursive || p.glob) && vitalDir(full):
			return ruling{effect: Catastrophe, rule: "rm.vital", why: "removes " + p.s, paths: pos}
		case recursive && (w.cwd == "/" || vital[w.cwd]) && (p.s == "*" || p.s == "." || p.s == "./*"):
			return ruling{effect: Catastrophe, rule: "rm.vital", why: "removes everything in " + w.cwd, paths: pos}
		case recursive:
			r.effect, r.rule, r.why = Join(r.effect, Destroy), "rm.recursive", "removes "+listed(pos)+" and all below"
			if w.cwd != "" {
				r.why += ", in " + w.cwd
			}
		case p.glob && (strings.HasSuffix(p.s, "/*") || strings.HasPrefix(p.s, "*")):
			r.effect, r.rule, r.why = Join(r.effect, Destroy), "rm.glob", "removes whatever matches "+p.s
		case p.dyn:
			r.effect, r.rule, r.why = Join(r.effect, Destroy), "rm.dynamic", "removes files known only when it runs"
		case systemFile(full) || preciousName(full):
			r.effect, r.rule, r.why = Join(r.effect, Destroy), "rm.precious", "removes "+p.s
		}
		b := strings.TrimSuffix(full, "/")
		named = named && !p.dyn && !p.glob && p.s != "" && b != "" && !strings.HasPrefix(b, "..") && b != "." && b[0] != '/' && b[0] != '~' && b[0] != '$'
		regen = regen && named && regenerable[b[strings.LastIndexByte(b, '/')+1:]]
	}
	if len(pos) == 0 && c.in.kind == unknown && recursive {
		return destroy("rm.recursive", "removes files known only when it runs")
	}
	r.regen = regen && r.effect == Destroy
	if named && recursive && r.rule == "rm.recursive" {
		for _, p := range pos {
			r.removes = append(r.removes, p.s)
		}
	}
	return r
}

// listed names the first few of several words.
func listed(ws []word) string {
	out := ""
	for i, v := range ws {
		switch {
		case i == 4:
			return out + " …"
		case i > 0:
			out += ", "
		}
		out += v.s
	}
	return out
}

// fileValued are the options of a program on files that take a value: what -f
// takes for tar is a flag for cp.
func fileValued(name string) string {
	switch name {
	case "cp", "mv", "ln", "touch", "mkdir", "tee", "chmod", "chown", "chgrp", "chattr", "gzip", "gunzip", "bzip2", "xz", "zstd", "unxz", "shred", "truncate":
		switch name {
		case "touch":
			return "-t -d --date -r --reference"
		case "truncate":
			return "-s --size -r --reference"
		case "shred":
			return "-n --iterations -s --size"
		case "mkdir":
			return "-m --mode"
		case "cp", "mv", "ln":
			return "-t --target-directory -S --suffix"
		}
		return ""
	}
	return "-m --mode -t --target-directory -s --size -o --owner -g --group -S --suffix -d --date -r --reference -C --directory -f --file -p -i -e --exclude --include --rsh -P -F -n"
}

func files(w *walker, c call) ruling {
	name := base(c.args[0].s)
	pos := positional(c.args, fileValued(name))
	recursive := short(c.args, 'R') || short(c.args, 'r') || given(c.args, "--recursive")
	last := func() []word {
		if len(pos) > 1 {
			return pos[len(pos)-1:]
		}
		return pos
	}
	vitalIn := func(ps []word) bool {
		for _, p := range ps {
			if vitalDir(joinPath(w.cwd, p.s)) {
				return true
			}
		}
		return false
	}
	switch name {
	case "cp", "install", "ln":
		if n := len(pos); n > 1 && (pos[0].s == "/dev/null" || pos[0].s == "/dev/zero") && preciousName(pos[n-1].s) {
			return destroy("write.empty", "puts nothing in the place of "+pos[n-1].s, pos[n-1])
		}
	}
	if name == "cp" || name == "mv" || name == "install" || name == "ln" || name == "scp" || name == "rsync" {
		for _, p := range last() {
			host, path, remote := strings.Cut(p.s, ":")
			if remote && strings.IndexByte(host, '/') < 0 && len(host) > 1 && systemFile(path) && !strings.HasPrefix(path, "/root/") || !remote && vitalFile(p.s) {
				return destroy("write.vital", "overwrites "+p.s, p)
			}
		}
	}
	switch name {
	case "dd":
		for _, a := range c.args[1:] {
			if of, ok := strings.CutPrefix(a.s, "of="); ok {
				if blockDevice(of) {
					return ruling{effect: Catastrophe, rule: "write.device", why: "dd writes over " + of, paths: []word{{s: of}}}
				}
				if preciousName(of) && hasArg(c.args, "if=/dev/") {
					return destroy("write.empty", "overwrites "+of+" with nothing", word{s: of})
				}
				if of != "/dev/null" && of != "/dev/stdout" {
					return mutate("write", "dd writes "+of, word{s: of})
				}
			}
		}
		return readOnly("dd reads")
	case "shred":
		for _, p := range pos {
			if blockDevice(p.s) {
				return ruling{effect: Catastrophe, rule: "write.device", why: "shreds " + p.s, paths: pos}
			}
		}
		return destroy("shred", "overwrites files for good", pos...)
	case "truncate":
		return destroy("truncate", "cuts files off", pos...)
	case "mv":
		if len(pos) > 1 && vitalIn(pos[:len(pos)-1]) {
			return ruling{effect: Catastrophe, rule: "mv.vital", why: "moves " + pos[0].s + " away", paths: pos}
		}
		if n := len(pos); n > 1 && pos[n-1].s == "/dev/null" {
			return destroy("mv.null", "moves files into nothing", pos...)
		}
		if n := len(pos); n > 1 {
			for _, p := range pos[:n-1] {
				if from, to := joinPath(w.cwd, p.s), joinPath(w.cwd, pos[n-1].s); systemFile(from) && !systemFile(to) && !strings.HasPrefix(to, from) {
					return destroy("mv.system", "moves "+p.s+" away from where the system looks for it", pos...)
				}
			}
		}
		return mutate("write.move", "moves files", pos...)
	case "chmod", "chown", "chgrp", "setfacl", "chattr":
		if len(pos) > 0 {
			pos = pos[1:]
		}
		if recursive && vitalIn(pos) {
			return ruling{effect: Catastrophe, rule: "perm.vital", why: name + " of all of a system directory", paths: pos}
		}
		return mutate("write.perm", "changes permissions", pos...)
	case "rsync":
		for _, a := range c.args[1:] {
			if strings.HasPrefix(a.s, "--del") || abbreviates(a.s, "--remove-source-files") || a.s == "--remove-source-files" || a.s == "--ignore-existing-delete" {
				if hasFlag(c.args, "--dry-run") || short(c.args, 'n') {
					return readOnly("a dry run")
				}
				return destroy("rsync.delete", "removes what the source does not have", last()...)
			}
		}
		for i, a := range c.args {
			if (a.s == "-e" || strings.HasPrefix(a.s, "--rsh") || strings.HasPrefix(a.s, "--rsync-path")) && i+1 < len(c.args) && !strings.HasPrefix(c.args[i+1].s, "ssh") && a.s == "-e" {
				return ruling{effect: Opaque, rule: "rsync.rsh", why: "runs a program of its own to connect"}
			}
		}
		return mutate("write.copy", "copies files", last()...)
	case "rclone":
		if hasFlag(c.args, "--dry-run") || short(c.args, 'n') {
			return readOnly("a dry run")
		}
		if len(pos) > 0 {
			switch pos[0].s {
			case "ls", "lsd", "lsl", "lsf", "lsjson", "size", "version", "about", "cat", "check", "listremotes", "tree":
				return readOnly("lists")
			case "delete", "purge", "deletefile", "cleanup", "rmdirs", "rmdir", "sync", "dedupe", "move", "moveto", "bisync":
				return destroy("rclone.delete", "rclone "+pos[0].s)
			}
		}
		return mutate("write.copy", "copies files")
	case "tar":
		mode := ""
		for _, a := range c.args[1:] {
			if a.s == "--list" || a.s == "--diff" {
				mode = "t"
			}
			if strings.HasPrefix(a.s, "--to-command") || strings.HasPrefix(a.s, "--checkpoint-action") || a.s == "-I" || strings.HasPrefix(a.s, "--use-compress-program") {
				return ruling{effect: Opaque, rule: "tar.command", why: "runs a program on what it unpacks"}
			}
			if strings.HasPrefix(a.s, "--remove-f") {
				return destroy("tar.remove", "removes what it packed")
			}
		}
		if len(c.args) > 1 && !strings.HasPrefix(c.args[1].s, "--") && strings.ContainsAny(c.args[1].s, "t") && !strings.ContainsAny(c.args[1].s, "xcru") {
			mode = "t"
		}
		if mode == "t" {
			return readOnly("lists an archive")
		}
		return mutate("archive", "packs or unpacks files")
	case "zip", "unzip", "7z":
		if name == "unzip" && (short(c.args, 'l') || short(c.args, 'p') || short(c.args, 'Z')) || name == "7z" && len(c.args) > 1 && c.args[1].s == "l" {
			return readOnly("lists an archive")
		}
		if name == "zip" && (short(c.args, 'm') || given(c.args, "--move")) {
			return destroy("archive.move", "removes what it packed")
		}
		if name == "zip" && short(c.args, 'd') || name == "7z" && len(c.args) > 1 && (c.args[1].s == "d" || hasFlag(c.args, "-sdel")) {
			return destroy("archive.delete", "removes files from an archive, or what it packed")
		}
		return mutate("archive", "packs or unpacks files")
	case "gzip", "gunzip", "bzip2", "xz", "zstd", "unxz":
		if (len(pos) == 0 || short(c.args, 'c') || short(c.args, 'l') || short(c.args, 't')) && !hasFlag(c.args, "--rm") {
			return readOnly("packs to its output")
		}
		return mutate("archive", "packs or unpacks files", pos...)
	case "cp", "install", "ln", "scp":
		return mutate("write.copy", name+" writes files", last()...)
	case "tee":
		for _, p := range pos {
			if blockDevice(p.s) {
				return ruling{effect: Catastrophe, rule: "write.device", why: "writes over " + p.s, paths: pos}
			}
			if p.s != "/dev/null" && p.s != "/dev/stderr" && p.s != "/dev/tty" {
				return mutate("write", "writes its input to files", pos...)
			}
		}
		return readOnly("copies its input to its output")
	}
	return mutate("write", name+" writes files", pos...)
}

// imageFiles reports operands that are all known and no devices.
func imageFiles(ps []word) bool {
	for _, p := range ps {
		if p.dyn || p.glob || strings.HasPrefix(p.s, "/dev/") || strings.HasPrefix(p.s, "$") || strings.HasPrefix(p.s, "/") && vitalDir(p.s) || preciousName(p.s) {
			return false
		}
	}
	return true
}

func disk(w *walker, c call) ruling {
	name := base(c.args[0].s)
	pos := positional(c.args, "-t -L -b -U -n -E -F -f -T")
	if asksHelp(c.args) || len(c.args) == 2 && c.args[1].s == "-V" {
		return readOnly("prints version or help")
	}
	first := ""
	if len(pos) > 0 {
		first = pos[0].s
	}
	mkfs := name == "mkfs" || name == "mke2fs" || strings.HasPrefix(name, "mkfs.")
	switch {
	case name == "wipefs" && (!hasFlag(c.args, "-a", "--all", "-o", "--offset") && !short(c.args, 'a') && !short(c.args, 'o') || hasFlag(c.args, "-n", "--no-act") || short(c.args, 'n')):
		return readOnly("lists signatures")
	case name == "sgdisk" && hasFlag(c.args, "-v", "--verify", "-p", "--print", "-i", "--info", "-b", "--backup", "-L", "--list-types") && !hasFlag(c.args, "-Z", "-z", "-o", "-d", "-n", "-g", "-l", "-R", "--zap-all", "--zap", "--clear", "--delete", "--new"):
		return mutate("disk.look", "reads a partition table, and may save a copy")
	case (mkfs || name == "mkswap") && len(pos) > 0 && imageFiles(pos):
		return mutate("disk.image", "makes a file system in a file", pos...)
	case mkfs && (name == "mke2fs" || strings.HasPrefix(name, "mkfs.ext")) && short(c.args, 'n'), name == "mkfs.xfs" && short(c.args, 'N'),
		(name == "fdisk" || name == "sfdisk") && (short(c.args, 'l') || hasFlag(c.args, "--list", "-d", "--dump", "-n", "--no-act")),
		name == "gdisk" && short(c.args, 'l'),
		name == "parted" && (short(c.args, 'l') || hasFlag(c.args, "--list") || len(pos) == 2 && pos[1].s == "print"),
		name == "hdparm" && onlyShort(c.args, "iIgtTCHqv"),
		name == "mdadm" && hasFlag(c.args, "--detail", "-D", "--examine", "-E", "--query", "-Q") && !hasFlag(c.args, "--zero-superblock"),
		name == "pvremove" && hasFlag(c.args, "-t", "--test"), name == "vgremove" && hasFlag(c.args, "-t", "--test"), name == "lvremove" && hasFlag(c.args, "-t", "--test"),
		looksAtDisk[name+" "+first], name == "zfs" && first == "destroy" && short(c.args, 'n') && !short(c.args, 'd'):
		return readOnly("looks at disks")
	}
	switch name {
	case "zpool", "zfs", "cryptsetup", "mdadm", "dmsetup", "nvme", "diskutil", "hdparm":
		for _, a := range c.args[1:] {
			if destructiveVerb(a.s) || strings.HasPrefix(a.s, "erase") || strings.HasPrefix(a.s, "luksErase") || a.s == "luksFormat" || a.s == "rollback" || a.s == "format" || a.s == "sanitize" || a.s == "--zero-superblock" || strings.EqualFold(a.s, "partitionDisk") || a.s == "labelclear" || strings.HasPrefix(a.s, "--user-master") || a.s == "reencrypt" || a.s == "write-zeroes" || a.s == "create-ns" || a.s == "delete-ns" || a.s == "dsm" {
				return ruling{effect: Catastrophe, rule: "disk.destroy", why: name + " " + a.s}
			}
		}
		return mutate("disk", name+" changes storage")
	}
	return ruling{effect: Catastrophe, rule: "disk.format", why: name + " destroys what is on a disk", paths: positional(c.args, "-t -L -b")}
}

// looksAtDisk are subcommands that only tell.
var looksAtDisk = map[string]bool{}

func init() {
	for prog, subs := range map[string]string{
		"zpool": "list status get iostat history events", "zfs": "list get diff holds userspace groupspace", "cryptsetup": "status luksDump isLuks luksUUID benchmark",
		"dmsetup": "ls info status table deps targets version", "nvme": "list list-subsys smart-log id-ctrl id-ns error-log fw-log get-feature show-regs", "diskutil": "list info listFilesystems",
	} {
		for s := range strings.FieldsSeq(subs) {
			looksAtDisk[prog+" "+s] = true
		}
	}
}

// onlyShort reports that every option is one of the letters, and that there is one.
func onlyShort(args []word, letters string) bool {
	n := 0
	for _, a := range args[1:] {
		if len(a.s) < 2 || a.s[0] != '-' {
			continue
		}
		if n++; strings.Trim(a.s[1:], letters) != "" {
			return false
		}
	}
	return n > 0
}

func system(w *walker, c call) ruling {
	name := base(c.args[0].s)
	pos := positional(c.args, "-s -n -u -g --signal")
	switch name {
	case "kill", "killall", "pkill", "skill":
		if hasFlag(c.args, "-l", "-L", "-0") {
			return readOnly("lists or tests")
		}
		for _, p := range c.args[1:] {
			if p.s == "-1" && (len(c.args) > 2) {
				return destroy("kill.all", "signals every process")
			}
		}
		return mutate("process.signal", "signals processes")
	case "reboot", "shutdown", "halt", "poweroff":
		return destroy("system.stop", "stops the machine")
	case "init", "telinit":
		if len(pos) > 0 && (pos[0].s == "0" || pos[0].s == "6") {
			return destroy("system.stop", "stops the machine")
		}
		return mutate("system.init", "changes the run level")
	case "crontab":
		if short(c.args, 'r') {
			return destroy("cron.remove", "removes all of a crontab")
		}
		if short(c.args, 'l') {
			return readOnly("lists a crontab")
		}
		return mutate("cron", "changes a crontab")
	case "userdel", "groupdel", "deluser", "delgroup":
		return destroy("user.delete", name+" removes an account")
	case "iptables", "ip6tables", "nft", "ufw", "firewall-cmd":
		if name == "ufw" && hasFlag(c.args, "--dry-run") {
			return readOnly("a dry run")
		}
		for _, a := range c.args[1:] {
			switch a.s {
			case "-F", "--flush", "-X", "flush", "reset", "disable", "-D", "--delete", "delete", "destroy":
				return destroy("firewall.flush", "takes firewall rules away")
			case "-L", "-S", "--list", "list", "status", "--list-all", "--state":
				return readOnly("lists firewall rules")
			}
			if name == "firewall-cmd" && (strings.HasPrefix(a.s, "--remove-") || strings.HasPrefix(a.s, "--delete-") || a.s == "--reset-to-defaults") {
				return destroy("firewall.flush", "takes firewall rules away")
			}
		}
		return mutate("firewall", "changes the firewall")
	case "mount":
		if len(c.args) == 1 {
			return readOnly("lists mounts")
		}
	case "at", "batch":
		if name == "at" && hasFlag(c.args, "-c", "-l", "-V") {
			return readOnly("lists what runs later")
		}
		if c.in.kind == known {
			w.nested(c.in.text, stream{})
		}
		return ruling{effect: Opaque, rule: "later", why: "runs commands later"}
	}
	return mutate("system", name+" changes the system")
}

// sensitive raises writes into places that run or instruct something later.
func sensitive(r ruling, name string) (Effect, string, string) {
	if r.effect == ReadOnly || r.effect.AtLeast(Destroy) {
		return "", "", ""
	}
	for _, p := range r.paths {
		if blockDevice(p.s) && name != "mount" && name != "umount" {
			return Catastrophe, "write.device", name + " writes over " + p.s
		}
	}
	return "", "", ""
}

// hasArg reports an argument that begins with prefix.
func hasArg(args []word, prefix string) bool {
	for _, a := range args[1:] {
		if strings.HasPrefix(a.s, prefix) {
			return true
		}
	}
	return false
}
