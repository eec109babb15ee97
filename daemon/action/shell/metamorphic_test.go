package shell

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// A change that still runs a command must not make its reading milder, and one
// that only speaks of it must not make it worse. Templates hold the command as a
// statement (%s), as words after a program (%w) or as a quoted text (%q).

var victims = []string{
	"rm -rf data", "rm -rf /etc", "git reset --hard", "git push --force origin main", "terraform destroy -auto-approve", "docker volume rm data", "kubectl delete ns shop", "find . -name x -delete", "truncate -s 0 app.log", "shred -u notes",
	"dropdb shop", "aws s3 rb s3://bucket", "mkfs.ext4 /dev/sda1", "systemctl stop nginx", "redis-cli flushall", "chmod -R 777 /",
}

const wordWraps = `sudo %w;sudo -n %w;sudo -u bob %w;sudo -E env A=1 %w;sudo -- %w;doas %w;doas -u bob %w;env %w;env A=1 %w;env -i %w;env -u X %w;nohup %w;nice %w;nice -n 5 %w;ionice -c 3 %w;timeout 5 %w;timeout -s KILL 5 %w;timeout --preserve-status 5 %w;time %w;time -p %w;stdbuf -oL %w;setsid %w;setsid -w %w;command %w;command -p %w;exec %w;exec -a x %w;busybox %w;chroot /srv %w;unshare -n %w;setpriv --reuid 1 %w;runuser -u bob %w;strace -f %w;ltrace %w;xvfb-run %w;dbus-run-session %w;systemd-run %w;caffeinate -i %w;firejail %w;cross-env A=1 %w;npx %w;bunx %w;uvx %w;watch %w;watch -n 1 %w;xargs %w;xargs -0 -n1 %w;flock /tmp/l %w;gosu bob %w;su-exec bob %w;setuidgid bob %w;s6-setuidgid bob %w;chpst -u bob %w;softlimit -m 1 %w;systemd-inhibit %w;systemd-cat %w;prlimit --nofile=5 %w;cgexec -g cpu:x %w;numactl -N 0 %w;setarch x86_64 %w;linux32 %w;i386 %w;faketime now %w;torify %w;torsocks %w;proxychains4 -q %w;tsocks %w;perf stat %w;perf record -g %w;valgrind %w;rr record %w;heaptrack %w;bwrap --ro-bind / / %w;nsjail -Mo -- %w;minijail0 -p %w;ip netns exec blue %w;ip vrf exec red %w;ssh host %w;ssh -p 22 -i k bob@host %w;ssh -o A=b host -- %w;mosh host -- %w;autossh -M 0 host %w;sshpass -p x ssh host %w;rsh host %w;pdsh -w a %w;clush -w a %w;pssh -H a %w;docker exec web %w;docker exec -it -u root web %w;docker run --rm alpine %w;docker run -v /:/h alpine %w;docker compose exec web %w;docker compose run --rm web %w;podman exec web %w;podman run alpine %w;nerdctl exec web %w;kubectl exec pod -- %w;kubectl exec -n a -it pod -c web -- %w;oc exec pod -- %w;lxc exec web -- %w;incus exec web -- %w;multipass exec vm -- %w;crictl exec id %w;nomad alloc exec id %w;machinectl shell vm %w;limactl shell vm %w;colima ssh -- %w;minikube ssh -- %w;distrobox enter box -- %w;toolbox run %w;apptainer exec img %w;devcontainer exec --workspace-folder . %w;schroot -c x -- %w;systemd-nspawn -D x %w;heroku run %w;railway run %w;aws-vault exec p -- %w;chamber exec a -- %w;infisical run -- %w;envconsul -prefix x %w;berglas exec -- %w;teller run -- %w;doppler run -- %w;op run -- %w;direnv exec . %w;envdir d %w;nix develop -c %w;guix shell x -- %w;ssh-agent %w;nvm exec 20 %w;fnm exec %w;volta run %w;pyenv exec %w;pixi run %w;micromamba run -n x %w;pdm run %w;rustup run stable %w;opam exec -- %w;stack exec -- %w;poetry run %w;pipenv run %w;uv run %w;hatch run %w;bundle exec %w;pnpm exec %w;pnpm dlx %w;yarn dlx %w;npm exec -- %w;mise exec -- %w;asdf exec %w;conda run %w;watchexec %w;reflex %w;chronic %w;ifne %w;timelimit -t 5 %w;cpulimit -l 5 %w;eatmydata %w;rlwrap %w;sem -j 2 %w;please %w;sudo-rs %w;kdesu %w;dtach -n /tmp/s %w;abduco -n s %w;zellij run -- %w;wezterm start -- %w;gnome-terminal -- %w;xterm -e %w;screen -dm %w;parallel %w;find . -maxdepth 0 -exec %w ;find . -maxdepth 0 -execdir %w +;fd x -x %w;git bisect run %w;coproc %w;noglob %w;retry %w;catchsegv %w;runcon -t x %w;aa-exec -p x %w`

const textWraps = `bash -c %q;sh -c %q;zsh -c %q;dash -c %q;ksh -c %q;bash -lc %q;bash -e -u -c %q;bash --norc -c %q;bash -o pipefail -c %q;/bin/sh -c %q;sudo bash -c %q;env bash -c %q;eval %q;eval eval %q;echo %q | bash;echo %q | sh -s;printf '%%s' %q | bash;printf %q | sh;echo %q | sudo bash;bash <<< %q;sh <<< %q;cat <<< %q | bash;echo %q | tee /dev/null | bash;bash <(echo %q);. <(echo %q);trap %q EXIT;trap %q INT TERM;su bob -c %q;su - bob -c %q;sg dev -c %q;script -qc %q /dev/null;script -c %q;flock /tmp/l -c %q;npx -c %q;watch %q;ssh host %q;ssh host bash -c %q;docker exec web sh -c %q;docker run --rm alpine sh -c %q;kubectl exec pod -- sh -c %q;xargs -I{} sh -c %q;find . -maxdepth 0 -exec sh -c %q _ {} +;env -S %q;tmux new -d %q;tmux send-keys %q Enter;nix-shell --run %q;sops exec-env f %q;vagrant ssh -c %q;gcloud compute ssh vm --command=%q;fly ssh console -C %q;salt x cmd.run %q;cargo watch -s %q;nodemon --exec %q;git -c alias.x=!%q x;git rebase -x %q main;git submodule foreach %q;python3 -c "import os; os.system('''%s''')";perl -e 'system("%s")';ruby -e 'system("%s")';node -e 'require("child_process").execSync("%s")';php -r 'system("%s");';lua -e 'os.execute("%s")';awk 'BEGIN { system("%s") }';alias ll=%q; ll;x=%q; eval "$x";x=%q; bash -c "$x";x=%q; $x;f() { eval "$1"; }; f %q;echo %q > /dev/null; bash -c %q;builtin eval %q;command eval %q;parallel ::: %q;xargs -a /dev/null bash -c %q`

const statementWraps = `%s;( %s );{ %s; };! %s;true && %s;false || %s;true; %s;%s; true;%s && true;%s || true;%s &;%s & wait;if true; then %s; fi;if %s; then true; fi;if false; then true; else %s; fi;while true; do %s; done;until %s; do true; done;for i in 1 2; do %s; done;for ((i=0;i<2;i++)); do %s; done;case x in x) %s;; esac;select x in a; do %s; done;f() { %s; }; f;function f { %s; }; f;x=$(%s);x=` + "`%s`" + `;echo $(%s);echo "$(%s)";echo "a $(echo "$(%s)")";cat <(%s);tee >(%s) < /dev/null;[[ -n $(%s) ]];: $(%s);: ${x:-$(%s)};(( $(%s) ));echo $(( $(%s) ));cd sub && %s;cd sub; %s;export A=1; %s;A=1 %s;A=1 B=2 %s;%s > out.txt;%s 2>&1;%s >/dev/null 2>&1;%s < /dev/null;%s | cat;%s | tee log;%s |& cat;true | %s;yes | %s;set -e; %s;set +x; %s;local x; %s;pushd /tmp; %s;time %s;time ( %s );coproc { %s; };{ { { %s; }; }; };( ( %s ) );eval "%s";exec 3>&1; %s;x=1; %s;# note\n%s;%s # note;true \\\n && %s;\t %s;cat <<X\n$(%s)\nX;bash <<X\n%s\nX;bash <<'X'\n%s\nX;sh <<-X\n\t%s\nX;cat <<'X' | bash\n%s\nX;bash -s <<'X'\n%s\nX;sudo bash <<'X'\n%s\nX;ssh host <<'X'\n%s\nX;docker exec -i web sh <<'X'\n%s\nX`

const inertForms = `echo %q;echo -n %q;printf '%%s' %q;printf '%%s\n' a %q;grep %q notes.md;grep -rn %q .;grep -e %q a b;rg %q;rg -n --hidden %q src;ag %q;git grep %q;git log --grep=%q;git log -S%q;git commit -m %q;git commit -am %q;git commit --message=%q;git tag -a v1 -m %q;git stash push -m %q;git notes add -m %q;git config --get %q;cat <<'X'\n%s\nX;cat <<'X' > notes.md\n%s\nX;cat <<'X' | grep x\n%s\nX;cat > notes.md <<'X'\n%s\nX;tee notes.md <<'X'\n%s\nX;: %q;true %q;false %q;# %s;ls # %s;x=%q;export X=%q;declare x=%q;readonly X=%q;a=( %q );[ %q = x ];test %q = x;[[ %q == x ]];[[ $a == %q ]];case %q in a) ;; esac;if [ %q = x ]; then true; fi;for i in %q; do echo "$i"; done;man -k %q;apropos %q;which %q;type %q;whatis %q;gh pr create --title %q --body x;gh issue create -t x -b %q;gh pr comment 7 --body %q;jq -n --arg x %q '$x';awk -v x=%q 'BEGIN { print x }';sed -n '/%s/p' notes.md;sed 's/a/%s/' notes.md;echo %q >> notes.md;echo %q > notes.md;echo %q | grep x;echo %q | cat;echo %q | wc -c;echo %q | sort | uniq;echo %q | tee notes.md;echo %q | base64;printf %q | md5sum;wc <<< %q;cat <<< %q;read x <<< %q;diff <(echo %q) a;python3 -c 'print("x")' %q;node -p 1 %q;expr %q : x;logger %q;notify-send %q;say %q;touch %q;mkdir -p %q;curl -s https://x.test -H %q;head -1 <<< %q;strings <<< %q`

type transform struct {
	template string
	apply    func(string) string
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// simple reports a command that is nothing but plain words.
func simple(s string) bool { return !strings.ContainsAny(s, "|&;<>()$`\"'\\\n{}#![]*?~=") }

// asWords is a command as what stands after another program.
func asWords(s string) string {
	if simple(s) && !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "coproc ") {
		return s
	}
	return "bash -c " + quote(s)
}

func templates(list string) []transform {
	var out []transform
	list = strings.NewReplacer("; ll", "\x01 ll", "; eval", "\x01 eval", "; bash", "\x01 bash", "; $x", "\x01 $x", "; }", "\x01 }", "; f", "\x01 f", "; then", "\x01 then", "; else", "\x01 else", "; do", "\x01 do", "; true", "\x01 true", "; wait", "\x01 wait", "; %s", "\x01 %s", ";;", "\x01\x01", "; esac", "\x01 esac",
		"i=0;i<2;i++", "i=0\x01i<2\x01i++", "; os", "\x01 os", `");'`, "\")\x01'", "; echo", "\x01 echo").Replace(list)
	for t := range strings.SplitSeq(list, ";") {
		t = strings.ReplaceAll(t, "\x01", ";")
		t = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(t)
		if strings.Contains(t, "-exec %w ") && !strings.HasSuffix(t, "+") {
			t += `\;`
		}
		out = append(out, transform{t, func(s string) string {
			return strings.NewReplacer("%w", asWords(s), "%q", quote(s), "%s", s, "%%", "%").Replace(t)
		}})
	}
	return out
}

// disguises change how the words of a plain command are written.
func disguises() []transform {
	first := func(s string) (string, string) { a, b, _ := strings.Cut(s, " "); return a, " " + b }
	plain := func(f func(head, rest string) string) func(string) string {
		return func(s string) string {
			if !simple(s) || strings.HasPrefix(s, "\t") || strings.HasPrefix(s, "time ") || strings.HasPrefix(s, "bash -c ") || strings.HasPrefix(s, "coproc ") {
				return s
			}
			return f(first(s))
		}
	}
	return []transform{
		{"quoted name", plain(func(h, r string) string { return "'" + h + "'" + r })},
		{"double quoted name", plain(func(h, r string) string { return `"` + h + `"` + r })},
		{"split name", plain(func(h, r string) string { return h[:1] + "''" + h[1:] + r })},
		{"split name twice", plain(func(h, r string) string { return `"` + h[:1] + `"'` + h[1:] + "'" + r })},
		{"escaped name", plain(func(h, r string) string { return `\` + h + r })},
		{"escape inside", plain(func(h, r string) string { return h[:1] + `\` + h[1:] + r })},
		{"ansi name", plain(func(h, r string) string { return `$'\x` + hex.EncodeToString([]byte(h[:1])) + h[1:] + "'" + r })},
		{"path", plain(func(h, r string) string { return "/usr/bin/" + h + r })},
		{"variable name", plain(func(h, r string) string { return "x=" + h + "; $x" + r })},
		{"braced variable", plain(func(h, r string) string { return "x=" + h + "; ${x}" + r })},
		{"half a variable", plain(func(h, r string) string { return "x=" + h[:1] + "; ${x}" + h[1:] + r })},
		{"empty variable", plain(func(h, r string) string { return h[:1] + "$@" + h[1:] + r })},
		{"substituted name", plain(func(h, r string) string { return "$(echo " + h + ")" + r })},
		{"printed name", plain(func(h, r string) string { return "$(printf " + h + ")" + r })},
		{"IFS", plain(func(h, r string) string { return "eval " + quote(h+strings.ReplaceAll(r, " ", "${IFS}")) })},
		{"continued line", plain(func(h, r string) string { return h + " \\\n" + r })},
		{"many blanks", plain(func(h, r string) string { return h + strings.ReplaceAll(r, " ", "   ") })},
		{"braces", plain(func(h, r string) string { return "{" + h + strings.ReplaceAll(r, " ", ",") + "}" })},
		{"variable of all", plain(func(h, r string) string { return "c=" + quote(h+r) + "; $c" })},
		{"array", plain(func(h, r string) string { return "set --" + r + "; " + h + ` "$@"` })},
		{"base64", func(s string) string {
			return "echo " + base64.StdEncoding.EncodeToString([]byte(s)) + " | base64 -d | bash"
		}},
		{"base64 evaluated", func(s string) string {
			return `eval "$(echo ` + base64.StdEncoding.EncodeToString([]byte(s)) + ` | base64 --decode)"`
		}},
		{"hex", func(s string) string { return "echo " + hex.EncodeToString([]byte(s)) + " | xxd -r -p | sh" }},
		{"octal", func(s string) string {
			var b strings.Builder
			for _, c := range []byte(s) {
				b.WriteString(`\` + string('0'+c>>6) + string('0'+c>>3&7) + string('0'+c&7))
			}
			return "printf " + quote(b.String()) + " | sh"
		}},
		{"reversed", func(s string) string {
			if strings.Contains(s, "\n") {
				return s
			}
			return "echo " + quote(strings.TrimSuffix(reverseLines(s), "\n")) + " | rev | bash"
		}},
	}
}

func live() []transform {
	return append(append(append(disguises(), templates(wordWraps)...), templates(textWraps)...), templates(statementWraps)...)
}

// fits says whether a template that writes the command between quotes of its own
// can hold it.
func fits(t transform, s string) bool {
	raw := strings.Contains(t.template, "%s")
	if strings.HasPrefix(s, "! ") && (t.template == "! %s" || strings.HasSuffix(t.template, "| %s")) {
		return false // no shell takes that
	}
	if t.template == "env -S %q" && strings.Contains(s, "<<") {
		return false // it knows no here-documents
	}
	if strings.HasPrefix(s, "coproc ") && (raw || strings.Contains(t.template, "$x") || strings.Contains(t.template, "A=1")) || strings.HasPrefix(s, "( ") && strings.Contains(t.template, "$(%s") {
		return false // another thing than the command alone
	}
	switch {
	case t.template == "x=%q; $x", t.template == "eval eval %q", strings.HasPrefix(t.template, "A=1 "): // only words come of that
		return simple(s)
	case t.template == "printf %q | sh", t.template == "octal": // where % and \\ mean something else
		return !strings.ContainsAny(s, `%\`)
	case strings.HasPrefix(t.template, "alias"):
		return !strings.Contains(s, "alias")
	case t.template == "f() { eval \"$1\"; }; f %q":
		return !strings.Contains(s, "f() {") && !strings.Contains(s, "function f") && !strings.Contains(s, "$@")
	case strings.Contains(t.template, "f() {") || strings.Contains(t.template, "function f"):
		return !strings.Contains(s, "f() {") && !strings.Contains(s, "function f") && !strings.Contains(s, "<<") && !strings.Contains(s, "#") && !strings.HasSuffix(s, "&")
	case !raw:
		return true
	case t.template == "%s &", t.template == "%s & wait":
		return !strings.Contains(s, "<<") && !strings.Contains(s, "#") && !strings.HasSuffix(s, "&") || simple(s)
	case strings.Contains(t.template, `"%s"`) || strings.Contains(t.template, "'''"), strings.Contains(t.template, "`"), strings.HasPrefix(t.template, "sed "), strings.Contains(t.template, `("%s")`):
		return simple(s) && !strings.Contains(s, "/")
	case strings.Contains(t.template, "X\n"), strings.HasPrefix(t.template, "#"), strings.HasPrefix(t.template, "ls #"), strings.Contains(t.template, "#"):
		return !strings.Contains(s, "\nX") && !strings.Contains(s, "<<") && !(strings.Contains(t.template, "#") && strings.Contains(s, "\n")) && !(strings.Contains(t.template, "<<X") || strings.Contains(t.template, "<<-X")) || simple(s)
	case strings.HasPrefix(t.template, "A=1"), strings.HasPrefix(t.template, "yes"), strings.HasSuffix(t.template, "%s"), strings.HasPrefix(t.template, "%s"):
		return !strings.Contains(s, "<<") && !strings.Contains(s, "#") && !strings.HasSuffix(s, "&") && !strings.HasPrefix(s, "exec ") || simple(s)
	}
	return !strings.Contains(s, "<<") && !strings.Contains(s, "#") && !strings.HasSuffix(s, "&") || simple(s)
}

func joins(template string) bool {
	for _, p := range []string{"ssh ", "pssh ", "autossh ", "rsh ", "pdsh ", "clush ", "watch ", "minikube ", "heroku ", "salt ", "sshpass ", "mosh ", "eval eval", "env -S"} {
		if strings.HasPrefix(template, p) {
			return true
		}
	}
	return false
}

// TestMetamorphic tries each change alone and in pairs: 20,000 cases spread
// evenly, all of them with GETTIER_METAMORPHIC=all.
func TestMetamorphic(t *testing.T) {
	lives, inerts := live(), templates(inertForms)
	if len(lives) < 200 || len(inerts) < 60 {
		t.Fatalf("%d live and %d inert changes", len(lives), len(inerts))
	}
	harmless := make([]bool, len(lives)) // wraps that are no worse than what they wrap
	for i, l := range lives {
		// What joins words into a text again runs what they speak of.
		harmless[i] = !Read(l.apply("ls -l")).Effect.AtLeast(Opaque) && !joins(l.template)
	}
	base := make([]Effect, len(victims))
	for i, v := range victims {
		if base[i] = Read(v).Effect; !base[i].AtLeast(Destroy) {
			t.Fatalf("%q is %s", v, base[i])
		}
	}
	every := 1
	total := len(victims) * (len(lives) + len(inerts) + len(lives)*len(lives) + 2*len(lives)*len(inerts))
	if os.Getenv("GETTIER_METAMORPHIC") != "all" {
		every = total / 20_000
	}
	n, run, failed := 0, 0, 0
	fail := func(kind string, e Effect, parts ...string) {
		if failed++; failed <= 60 {
			t.Errorf("%s: %s: %q", kind, e, parts)
		}
	}
	try := func() bool {
		n++
		// A stride that is no factor of the table's sides, so that every row and column is met.
		if every > 1 && n%every != 0 {
			return false
		}
		run++
		return true
	}
	runs := func(e Effect, want Effect, parts ...string) {
		if !e.AtLeast(Opaque) || e.Rank() < want.Rank() && e != Opaque {
			fail("still runs", e, parts...)
		}
	}
	for vi, v := range victims {
		for _, in := range lives {
			if !fits(in, v) {
				continue
			}
			once := in.apply(v)
			run++ // each change alone is always tried
			runs(Read(once).Effect, base[vi], in.template, once)
			for _, out := range lives {
				if fits(out, once) && try() {
					text := out.apply(once)
					runs(Read(text).Effect, base[vi], out.template, in.template, text)
				}
			}
			for _, m := range inerts {
				if fits(m, once) && try() {
					text := m.apply(once)
					if e := Read(text).Effect; e.AtLeast(Opaque) {
						fail("only speaks", e, m.template, in.template, text)
					}
				}
			}
		}
		for _, m := range inerts {
			if !fits(m, v) {
				continue
			}
			said := m.apply(v)
			run++
			if e := Read(said).Effect; e.AtLeast(Opaque) {
				fail("only speaks", e, m.template, said)
			}
			for oi, out := range lives {
				if harmless[oi] && fits(out, said) && try() {
					text := out.apply(said)
					if e := Read(text).Effect; e.AtLeast(Opaque) {
						fail("only speaks, wrapped", e, out.template, m.template, text)
					}
				}
			}
		}
	}
	t.Logf("%d cases of %d pairs, %d live and %d inert changes, %d failed", run, n, len(lives), len(inerts), failed)
	if run < 20_000 {
		t.Errorf("only %d cases", run)
	}
}
