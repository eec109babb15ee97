package shell

import (
	"slices"
	"strings"
)

// launcher is a subcommand of a program that runs what its arguments hold.
type launcher struct {
	sub    string // words of the subcommand, "" for the program itself
	words  int    // plain words before the command: a host, a container, a profile
	valued string // options that take their value in the next word
	flag   string // options whose value is a command line; the rest is none then
	text   bool   // the rest is one command line, as after ssh
	dashed bool   // the command stands after --
	remote bool   // it runs on another system
}

// launchers by program. What they run is read as a command of its own; options
// that are not listed are taken for flags.
var launchers = map[string][]launcher{
	// containers and machines
	"lxc":                 {{sub: "exec", words: 1, valued: "--cwd --env --user --group --mode", remote: true}},
	"incus":               {{sub: "exec", words: 1, valued: "--cwd --env --user --group --mode", remote: true}},
	"multipass":           {{sub: "exec", words: 1, valued: "-d --working-directory", remote: true}},
	"crictl":              {{sub: "exec", words: 1, valued: "-r --runtime-endpoint --timeout", remote: true}},
	"ctr":                 {{sub: "task exec", words: 1, valued: "--exec-id --cwd --user", remote: true}, {sub: "tasks exec", words: 1, valued: "--exec-id --cwd --user", remote: true}, {sub: "run", words: 2, remote: true}},
	"nomad":               {{sub: "alloc exec", words: 1, valued: "-task -job -address -region -namespace", remote: true}},
	"machinectl":          {{sub: "shell", words: 1, valued: "--uid --setenv", remote: true}},
	"limactl":             {{sub: "shell", words: 1, valued: "--workdir --shell", remote: true}},
	"lima":                {{remote: true}},
	"colima":              {{sub: "ssh", valued: "-p --profile", remote: true}},
	"minikube":            {{sub: "ssh", valued: "-p --profile -n --node", text: true, remote: true}},
	"vagrant":             {{sub: "ssh", flag: "-c --command", remote: true}},
	"docker-machine":      {{sub: "ssh", words: 1, text: true, remote: true}},
	"distrobox":           {{sub: "enter", words: 1, remote: true}},
	"distrobox-host-exec": {{}},
	"toolbox":             {{sub: "run", valued: "-c --container -d --distro -r --release", remote: true}},
	"bwrap":               {{valued: "--chdir --unsetenv --uid --gid --hostname --proc --dev --tmpfs --dir --perms --lock-file --sync-fd --info-fd --seccomp --exec-label --args"}},
	"nsjail":              {{valued: "-M --mode -c --chroot -u --user -g --group -t --time_limit -D --cwd -R -B -T -C --config"}},
	"minijail0":           {{valued: "-u -g -c -C -P -b -k -S -f"}},
	"apptainer":           {{sub: "exec", words: 1, valued: "-B --bind --pwd --env", remote: true}},
	"singularity":         {{sub: "exec", words: 1, valued: "-B --bind --pwd --env", remote: true}},
	"devcontainer":        {{sub: "exec", valued: "--workspace-folder --container-id --config --remote-env", remote: true}},
	"flatpak-spawn":       {{valued: ""}},
	"schroot":             {{valued: "-c --chroot -u --user -d --directory -s --shell -o --option"}},
	"systemd-nspawn":      {{valued: "-D --directory -M --machine -u --user --bind -E"}},
	"arch-chroot":         {{words: 1, valued: "-u"}},

	// other machines
	"rsh": {{words: 1, valued: "-l", text: true, remote: true}}, "remsh": {{words: 1, valued: "-l", text: true, remote: true}}, "mosh": {{words: 1, valued: "-p --port --ssh", remote: true}},
	"autossh": {{words: 1, valued: "-M " + sshValued, text: true, remote: true}}, "plink": {{words: 1, valued: "-P -l -pw -i -m -load", text: true, remote: true}},
	"pdsh": {{valued: "-w -x -g -l -f -u -t -R", text: true, remote: true}}, "clush": {{valued: "-w -x -g -l -f -u -t", text: true, remote: true}}, "dsh": {{valued: "-m -g -f -r", text: true, remote: true}},
	"pssh": {{valued: "-h -H -l -p -o -e -t -O -x -X", text: true, remote: true}}, "parallel-ssh": {{valued: "-h -H -l -p -o -e -t -O -x -X", text: true, remote: true}},
	"salt": {{sub: "* cmd.run", text: true, remote: true}, {sub: "* cmd.shell", text: true, remote: true}}, "salt-call": {{sub: "cmd.run", text: true}},
	"gcloud":  {{sub: "compute ssh", flag: "--command", remote: true}, {sub: "compute tpus tpu-vm ssh", flag: "--command", remote: true}, {sub: "cloud-shell ssh", flag: "--command", remote: true}, {sub: "alpha compute ssh", flag: "--command", remote: true}},
	"fly":     {{sub: "ssh console", flag: "-C --command", remote: true}},
	"flyctl":  {{sub: "ssh console", flag: "-C --command", remote: true}},
	"eb":      {{sub: "ssh", flag: "-c --command", remote: true}},
	"az":      {{sub: "vm run-command invoke", flag: "--scripts", remote: true}, {sub: "container exec", flag: "--exec-command", remote: true}, {sub: "containerapp exec", flag: "--command", remote: true}, {sub: "aks command invoke", flag: "--command -c", remote: true}},
	"aws":     {{sub: "ecs execute-command", flag: "--command", remote: true}},
	"heroku":  {{sub: "run", valued: "-a --app -s --size -r --remote", text: true, remote: true}, {sub: "ps:exec", valued: "-a --app -d --dyno", text: true, remote: true}},
	"railway": {{sub: "run", valued: "-s --service -e --environment"}, {sub: "ssh", valued: "-s --service -e --environment", remote: true}},
	"cf":      {{sub: "ssh", flag: "-c --command", remote: true}, {sub: "run-task", flag: "-c --command", remote: true}},
	"psexec":  {{words: 0, valued: "-u -p -w -n -r", remote: true}},
	"winrs":   {{text: true, remote: true}},
	"wsl":     {{valued: "-d -u --distribution --user --cd"}},

	// secrets and environments
	"aws-vault": {{sub: "exec", words: 1, valued: "-d --duration -r --region"}}, "saml2aws": {{sub: "exec", valued: "-a --idp-account -p --profile"}}, "granted": {{sub: "exec", words: 1}}, "chamber": {{sub: "exec", words: 1}},
	"infisical": {{sub: "run", flag: "--command -c"}, {sub: "run", valued: "--env --path --projectId"}}, "envconsul": {{valued: "-prefix -secret -config -consul-addr -vault-addr -upcase"}}, "berglas": {{sub: "exec"}},
	"sops": {{sub: "exec-env", words: 1, text: true}, {sub: "exec-file", words: 1, text: true}}, "teller": {{sub: "run"}}, "doppler": {{sub: "run", flag: "--command"}, {sub: "run", valued: "-p --project -c --config"}}, "op": {{sub: "run", valued: "--env-file --account"}},
	"direnv": {{sub: "exec", words: 1}}, "dotenv": {{sub: "run"}, {valued: "-f -e -c"}}, "envchain": {{words: 1}}, "envdir": {{words: 1}}, "with-contenv": {{}},
	"nix-shell": {{flag: "--run --command"}}, "nix": {{sub: "develop", valued: "-f --file"}, {sub: "shell", valued: "-f --file"}}, "guix": {{sub: "shell", dashed: true}, {sub: "environment", dashed: true}},
	"ssh-agent": {{valued: "-a -t -P -E"}}, "dbus-launch": {{}}, "startx": {{}},

	// runtimes and version managers
	"nvm": {{sub: "exec", words: 1}, {sub: "run", words: 1}}, "fnm": {{sub: "exec", valued: "--using"}}, "volta": {{sub: "run", valued: "--node --npm --yarn"}}, "pyenv": {{sub: "exec"}}, "nodenv": {{sub: "exec"}}, "goenv": {{sub: "exec"}}, "jenv": {{sub: "exec"}},
	"pixi": {{sub: "run", valued: "-e --environment --manifest-path"}, {sub: "exec", valued: "-s --spec"}}, "micromamba": {{sub: "run", valued: "-n --name -p --prefix"}}, "pdm": {{sub: "run", valued: "-p --project"}}, "rtx": {{sub: "exec"}, {sub: "x"}},
	"rustup": {{sub: "run", words: 1}}, "opam": {{sub: "exec", valued: "--switch"}}, "stack": {{sub: "exec"}, {sub: "runghc"}}, "cabal": {{sub: "exec"}}, "composer": {{sub: "exec"}, {sub: "global exec"}}, "mix": {{sub: "cmd"}}, "lerna": {{sub: "exec"}},

	// watchers, limits, tracers
	"watchexec": {{valued: "-w --watch -e --exts -f --filter -i --ignore -d --debounce -s --signal"}}, "entr": {{flag: "-s"}, {valued: ""}}, "reflex": {{valued: "-r --regex -g --glob -R -G -d"}}, "nodemon": {{flag: "-x --exec"}}, "cargo": {{sub: "watch", flag: "-s --shell"}, {sub: "flamegraph"}},
	"chronic": {{}}, "ifne": {{}}, "timelimit": {{valued: "-t -T -s -S"}}, "cpulimit": {{valued: "-l --limit -p -e -c"}}, "schedtool": {{valued: "-n -a -p"}}, "eatmydata": {{}}, "rlwrap": {{valued: "-H -f -p -s"}}, "prlimit": {{valued: "-p --pid -o --output"}}, "numactl": {{valued: "-N -m -C -i -p"}},
	"cgexec": {{valued: "-g"}}, "chpst": {{valued: "-u -U -e -n -l -L -m -d -o -p -f -c -t -/ -b"}}, "softlimit": {{valued: "-m -d -s -l -a -o -p -f -c -r -t"}}, "setuidgid": {{words: 1}}, "s6-setuidgid": {{words: 1}}, "su-exec": {{words: 1}}, "gosu": {{words: 1}}, "setlock": {{words: 1}}, "envuidgid": {{words: 1}},
	"perf": {{sub: "stat", valued: "-e -o -r -x -I"}, {sub: "record", valued: "-e -o -F -c"}, {sub: "trace", valued: "-e -o"}}, "valgrind": {{valued: ""}}, "rr": {{sub: "record"}}, "heaptrack": {{valued: "-o"}}, "uftrace": {{sub: "record"}}, "catchsegv": {{}}, "memusage": {{valued: "-p -d"}},
	"faketime": {{words: 1, valued: "-f"}}, "torify": {{}}, "torsocks": {{valued: "-u -p -a -P"}}, "proxychains": {{valued: "-f"}}, "proxychains4": {{valued: "-f"}}, "tsocks": {{}}, "sshpass": {{valued: "-p -f -d -P"}}, "firejail": {{valued: ""}}, "runcon": {{words: 1, valued: "-t -u -r -l"}}, "aa-exec": {{valued: "-p --profile -n --namespace"}},
	"setarch": {{words: 1}}, "linux32": {{}}, "linux64": {{}}, "i386": {{}}, "x86_64": {{}}, "arch": {{valued: "-e -d"}}, "systemd-inhibit": {{valued: "--what --who --why --mode"}}, "systemd-cat": {{valued: "-t -p --identifier --priority"}}, "sem": {{valued: "-j --id"}}, "please": {{valued: "-u -t"}}, "sudo-rs": {{valued: "-u -g"}}, "gksudo": {{valued: "-u"}}, "kdesu": {{valued: "-u"}}, "kdesudo": {{valued: "-u"}},
	"dtach": {{words: 1, valued: "-e -r"}}, "abduco": {{words: 1, valued: "-e"}}, "zellij": {{sub: "run", valued: "-n --name -d --direction --cwd"}}, "wezterm": {{sub: "start", valued: "--cwd --class"}, {sub: "cli spawn", valued: "--cwd --pane-id"}}, "kitty": {{valued: "-o -d --directory -T --title"}}, "alacritty": {{valued: "--working-directory -t --title"}}, "gnome-terminal": {{valued: "--working-directory --title"}}, "xterm": {{valued: "-T -title -geometry"}}, "konsole": {{valued: "--workdir"}},
	"ip": {{sub: "netns exec", words: 1}, {sub: "vrf exec", words: 1}}, "nsenter": {{valued: "-t --target -S -G -r -w"}}, "sg": {{words: 1, flag: "-c"}}, "capsh": {{flag: "-c"}}, "unshare": {{valued: "-S -G --map-users --map-groups -R --root -w --wd"}},
	"retry": {{valued: "-t --times -d --delay -n"}}, "tox": {{sub: "exec", valued: "-e"}}, "hatch": {{sub: "run"}, {sub: "env run"}}, "cross-env-shell": {{text: true}}, "dotenvx": {{sub: "run", valued: "-f --env-file -e --env"}}, "env-cmd": {{valued: "-f --file -e --environments"}},
}

// launch finds the command that a launcher runs: as words, or as a text, with the
// words that the text was joined from where it was.
func launch(name string, args []word) (rest []word, text word, l launcher, ok bool) {
	for _, l := range launchers[name] {
		after, found := afterSub(l, args[1:])
		if !found {
			continue
		}
		if l.flag != "" {
			if v, ok := flagValue(l.flag, after); ok {
				return nil, v, l, true
			}
			continue
		}
		words := l.words
		if l.dashed {
			i := slices.IndexFunc(after, func(a word) bool { return a.s == "--" })
			if i < 0 {
				continue
			}
			after, words = after[i:], 0
		}
		if name == "runcon" && len(after) > 0 && strings.HasPrefix(after[0].s, "-") {
			words = 0 // the context is given by options
		}
		for len(after) > 0 {
			a := after[0].s
			switch {
			case a == "--" && words == 0:
				after = after[1:]
			case a == "--":
				after, words = after[1:], 0
				continue
			case len(a) > 1 && a[0] == '-' || name == "psexec" && len(a) > 1 && (a[0] == '\\' || a[0] == '/') || name == "winrs" && strings.HasPrefix(a, "/"):
				n := 1
				if takesValue(l.valued, a) {
					n = 2
				}
				if bindLike(name, a) {
					n = 3
				}
				after = after[min(n, len(after)):]
				continue
			case !l.text && strings.IndexByte(a, '=') > 0 && strings.IndexByte(a, ' ') < 0 && isName(a[:strings.IndexByte(a, '=')]):
				after = after[1:]
				continue
			case words > 0:
				words--
				after = after[1:]
				continue
			}
			break
		}
		if len(after) == 0 {
			continue
		}
		if l.text {
			t := word{s: joinWords(after)}
			for _, a := range after {
				t.dyn = t.dyn || a.dyn
			}
			return after, t, l, true
		}
		return after, word{}, l, true
	}
	return nil, word{}, launcher{}, false
}

// bindLike options of sandboxes take two values.
func bindLike(name, opt string) bool {
	if name != "bwrap" {
		return false
	}
	switch opt {
	case "--bind", "--ro-bind", "--dev-bind", "--bind-try", "--ro-bind-try", "--dev-bind-try", "--symlink", "--setenv", "--file", "--bind-data", "--ro-bind-data", "--chmod":
		return true
	}
	return false
}

// afterSub is what follows the words of a subcommand, options among them skipped.
func afterSub(l launcher, args []word) ([]word, bool) {
	for f := range strings.FieldsSeq(l.sub) {
		for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' && args[0].s != "--" {
			n := 1
			if takesValue("-n --namespace -p --profile -a --app --project --region --zone -f --file --context --config --cwd -C --directory -o --output -address -region -namespace --stack "+l.valued, args[0].s) {
				n = 2
			}
			args = args[min(n, len(args)):]
		}
		if len(args) == 0 || f != "*" && args[0].s != f {
			return nil, false
		}
		args = args[1:]
	}
	return args, true
}

// flagValue is the value of one of the options, in the next word or after =.
func flagValue(flags string, args []word) (word, bool) {
	for i, a := range args {
		if a.s == "--" {
			break
		}
		for f := range strings.FieldsSeq(flags) {
			if a.s == f && i+1 < len(args) {
				return args[i+1], true
			}
			if v, ok := strings.CutPrefix(a.s, f+"="); ok {
				return word{s: v, dyn: a.dyn}, true
			}
			if len(f) == 2 && len(a.s) > 2 && strings.HasPrefix(a.s, f) && a.s[2] != '-' {
				return word{s: a.s[2:], dyn: a.dyn}, true
			}
		}
	}
	return word{}, false
}
