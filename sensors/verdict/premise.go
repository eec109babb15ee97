package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/sensors/spec"
)

// EditProgram is the program that a premise names for a tool that writes a file;
// the file is its first operand.
const EditProgram = "@edit"

// Edit is the command that stands for a tool's edit of a file.
func Edit(path string, effect shell.Effect) shell.Command {
	return shell.Command{Argv: []string{EditProgram, path}, Effect: effect}
}

// Implied is a premise that a command takes for granted, with what it says of
// the sensor's parameters. Dynamic says that some of that is known only when the
// command runs: then nothing is measured and nothing confirmed (13.7).
type Implied struct {
	Premise *spec.Premise
	Command shell.Command
	Params  map[string]string
	Dynamic bool
}

// Takes reports whether a command takes a premise for granted: by its program,
// its words and its effect, as the shell reader resolved them.
func Takes(p *spec.Premise, c shell.Command) (Implied, bool) {
	argv, ok := as(p.Program, c)
	if !ok {
		return Implied{}, false
	}
	given := c
	c.Argv = argv
	im, ok := takes(p, c)
	im.Command = given
	return im, ok
}

// versioned are programs whose name may end in a version.
var versioned = regexp.MustCompile(`^(python|pip)[0-9.]+$`)

// runs are programs that run another one by its bare name when they have no
// command of that name themselves.
var runs = set("pnpm yarn bun")

// as gives a command the form that a premise on program knows: pip3 and python
// -m pip are pip, docker-compose up is docker compose up, pnpm prisma is prisma.
func as(program string, c shell.Command) ([]string, bool) {
	if len(c.Argv) == 0 {
		return nil, false
	}
	name := c.Program()
	if c.Argv[0] == EditProgram {
		name = EditProgram
	}
	if m := versioned.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	rest := c.Argv[1:]
	switch {
	case name == program:
		return append([]string{program}, rest...), true
	case name == "docker-compose" && program == "docker":
		return append([]string{program, "compose"}, rest...), true
	case name == "python" && len(rest) > 1 && rest[0] == "-m" && rest[1] == program:
		return append([]string{program}, rest[2:]...), true
	case runs[name] && len(rest) > 0 && rest[0] == program:
		return rest, true
	}
	return nil, false
}

func takes(p *spec.Premise, c shell.Command) (Implied, bool) {
	if p.Effect != "" && !c.Effect.AtLeast(shell.Effect(p.Effect)) {
		return Implied{}, false
	}
	w := readWords(c)
	used := 0
	if len(p.Args) > 0 {
		used = -1
		for _, phrase := range p.Args {
			if n, ok := w.has(phrase); ok && n > used {
				used = n
			}
		}
		if used < 0 {
			return Implied{}, false
		}
	}
	for _, phrase := range p.Except {
		if _, ok := w.has(phrase); ok {
			return Implied{}, false
		}
	}
	im := Implied{Premise: p, Command: c, Dynamic: w.dynamic(c)}
	if len(p.Params) == 0 {
		return im, true
	}
	im.Params = map[string]string{}
	for name, value := range p.Params {
		v, ok := w.fill(value, used)
		if !ok {
			if strings.HasSuffix(strings.TrimSpace(value), "?}}") {
				continue // what stands nowhere is left to the sensor's default
			}
			return Implied{}, false // the premise speaks of what is not there
		}
		im.Dynamic = im.Dynamic || strings.ContainsAny(v, "$`")
		im.Params[name] = v
	}
	return im, true
}

// words are a command's words by what they are.
type argWords struct {
	operands []string
	options  map[string]string // the value behind an option, where it may have one
	given    []string          // options as spelled
	last     bool              // -- was seen
	env      []string
	args     []string
}

// withValue are options that stand before a sub-command and take the next word;
// behind it every option may or may not, and the word counts as an operand.
var withValue = map[string]map[string]bool{
	"git":            set("-C -c --git-dir --work-tree --namespace --exec-path"),
	"docker":         set("--context -c -H --host --config -l --log-level -f --file -p --project-name --profile --env-file --project-directory"),
	"docker-compose": set("-f --file -p --project-name --profile --env-file --project-directory -c --context -H --host"),
	"kubectl":        set("--context -n --namespace --kubeconfig --cluster --user -s --server --as --token -f --filename -l --selector -o --output"),
	"helm":           set("--kube-context -n --namespace --kubeconfig -f --values --set --version"),
	"npm":            set("--prefix -w --workspace -C --registry --loglevel"),
	"pnpm":           set("-C --dir -F --filter --reporter"),
	"yarn":           set("--cwd"),
	"bun":            set("--cwd"),
	"go":             set("-C"),
	"aws":            set("--profile --region --output --endpoint-url --query"),
	"gcloud":         set("--project --account --configuration --region --zone --format"),
	"terraform":      set(""),
	"psql":           set("-h --host -p --port -U --username -d --dbname -c --command -f --file -v --set -o"),
	"mysql":          set("-h --host -P --port -u --user -e --execute -D --database"),
	"redis-cli":      set("-h -p -a -n -u --user --pass"),
	"dropdb":         set("-h --host -p --port -U --username"),
	"createdb":       set("-h --host -p --port -U --username -O --owner -T --template -E"),
	"pg_restore":     set("-h --host -p --port -U --username -d --dbname -j --jobs -n -t"),
	"mongosh":        set("--host --port -u -p --eval -f"),
	"kill":           set("-s --signal -n"),
	"gh":             set("-R --repo"),
	"date":           set("-d --date -r --reference -f --file -s --set -v"),
	"stat":           set("-c --format --printf -f -t"),
	"prisma":         set("--schema --config"),
	"alembic":        set("-c --config -n --name -x"),
	"uvicorn":        set("--port --host --app-dir --workers"),
	"flask":          set("--app -A --env-file -e -p --port -h --host"),
	"vite":           set("--port --host --config -c --mode -m"),
	"next":           set("-p --port -H --hostname"),
	"drizzle-kit":    set("--config --url --dialect --schema --out"),
	"rails":          set("-p --port -b --binding -e --environment"),
	"php":            set("-S -d -c -t"),
	"fuser":          set("-n --namespace -SIGNAL"),
	"python":         set("-m -c -W -X"),
	"python3":        set("-m -c -W -X"),
}

func set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

func readWords(c shell.Command) argWords {
	w := argWords{options: map[string]string{}, env: c.Env}
	if len(c.Argv) == 0 {
		return w
	}
	w.args = c.Argv[1:]
	valued := withValue[c.Program()]
	for i := 0; i < len(w.args); i++ {
		a := w.args[i]
		switch {
		case w.last || a == "-" || !strings.HasPrefix(a, "-"):
			w.operands = append(w.operands, a)
		case a == "--":
			w.last = true
			w.given = append(w.given, a)
		default:
			name, value, inline := strings.Cut(a, "=")
			w.given = append(w.given, name)
			if inline {
				w.options[name] = value
				continue
			}
			if len(a) > 2 && a[1] != '-' && valued[a[:2]] { // -p3000, -Cdir
				w.given = append(w.given, a[:2])
				w.options[a[:2]] = a[2:]
				continue
			}
			if i+1 < len(w.args) && !strings.HasPrefix(w.args[i+1], "-") {
				w.options[name] = w.args[i+1]
				if valued[name] {
					i++
				}
			}
		}
	}
	return w
}

// has reports whether a phrase stands here: its words as the first operands, in
// their order, its options anywhere. n is how many operands it took.
func (w argWords) has(phrase string) (n int, ok bool) {
	for f := range strings.FieldsSeq(phrase) {
		if strings.HasPrefix(f, "-") && f != "-" {
			if !w.option(f) {
				return 0, false
			}
			continue
		}
		if n >= len(w.operands) || w.operands[n] != f {
			return 0, false
		}
		n++
	}
	return n, true
}

// option reports whether an option is given, also among letters that stand
// together: -fd has -f.
func (w argWords) option(name string) bool {
	for _, g := range w.given {
		if g == name {
			return true
		}
		if len(name) == 2 && len(g) > 2 && g[0] == '-' && g[1] != '-' && strings.Trim(g[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.Contains(g[1:], name[1:]) {
			return true
		}
	}
	return false
}

// dynamic reports whether any word that could matter is known only when it runs.
func (w argWords) dynamic(c shell.Command) bool {
	return c.Dynamic || slices.ContainsFunc(c.Env, func(e string) bool { return strings.ContainsAny(e, "$`") })
}

var (
	fromAction = regexp.MustCompile(`^\{\{\s*([^{}?]+?)\s*\??\}\}$`)
	localPort  = regexp.MustCompile(`(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):([0-9]{1,5})\b`)
)

// fill takes a parameter's value from the action. {{a|b}} is the first that is
// there:
//
//	opt:--host    the value of an option; opt:-p,--port of either
//	operand:1     the first word behind the phrase that matched, no option
//	env:NAME      what the command sets for itself
//	port          the port of a URL of this machine among the words
//	path          the file of an edit
func (w argWords) fill(value string, used int) (string, bool) {
	m := fromAction.FindStringSubmatch(strings.TrimSpace(value))
	if m == nil {
		return value, true
	}
	for source := range strings.SplitSeq(m[1], "|") {
		if v := w.from(strings.TrimSpace(source), used); v != "" {
			return v, true
		}
	}
	return "", false
}

func (w argWords) from(source string, used int) string {
	kind, name, _ := strings.Cut(source, ":")
	switch kind {
	case "opt":
		for n := range strings.SplitSeq(name, ",") {
			if v := w.options[strings.TrimSpace(n)]; v != "" {
				return v
			}
		}
	case "operand":
		if i := used + int(name[0]-'1'); i < len(w.operands) {
			return w.operands[i]
		}
	case "env":
		for i := len(w.env) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(w.env[i], name+"="); ok {
				return v
			}
		}
	case "port":
		for _, a := range w.args {
			if m := localPort.FindStringSubmatch(a); m != nil {
				return m[1]
			}
		}
	case "path":
		if len(w.operands) > 0 {
			return w.operands[0]
		}
	}
	return ""
}

var sourceForm = regexp.MustCompile(`^(opt:-[A-Za-z0-9,-]+|operand:[1-9]|env:[A-Za-z_][A-Za-z0-9_]*|port|path)$`)

// CheckPremises runs the examples of a registry's premises: a premise whose own
// examples fail is not loaded. The registry loader calls it.
func CheckPremises(reg *spec.Registry) []spec.Problem {
	var out []spec.Problem
	report := func(p *spec.Premise, hint, format string, args ...any) {
		out = append(out, spec.Problem{Pos: p.Pos, What: "premise " + p.ID + ": " + fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, p := range reg.Premises {
		for name, v := range p.Params {
			if !strings.Contains(v, "{{") {
				continue
			}
			m := fromAction.FindStringSubmatch(strings.TrimSpace(v))
			if m == nil {
				report(p, "write {{opt:--host}}, {{operand:1}}, {{env:NAME}}, {{port}} or {{path}}", "the value of %s is no place of an action", name)
				continue
			}
			for source := range strings.SplitSeq(m[1], "|") {
				if !sourceForm.MatchString(strings.TrimSpace(source)) {
					report(p, "write opt:--host, operand:1, env:NAME, port or path", "%s takes its value from %q", name, strings.TrimSpace(source))
				}
			}
		}
		for _, cmd := range p.Fires {
			if !fires(p, cmd) {
				report(p, "", "it does not fire at its example %q", cmd)
			}
		}
		for _, cmd := range p.Not {
			if fires(p, cmd) {
				report(p, "", "it fires at %q, which it must not", cmd)
			}
		}
	}
	return out
}

func fires(p *spec.Premise, cmd string) bool {
	if p.Program == EditProgram {
		path, ok := strings.CutPrefix(cmd, EditProgram+" ")
		if !ok {
			return false
		}
		_, ok = Takes(p, Edit(path, shell.Mutate))
		return ok
	}
	return slices.ContainsFunc(shell.Read(cmd).Commands, func(c shell.Command) bool {
		_, ok := Takes(p, c)
		return ok
	})
}
