package shell

import "strings"

// runsProject names programs that first of all run, load or start what the
// directory they are called in says: a build file that is code, a settings file
// that is code, a tool that the settings name, another release of themselves. None
// of their commands is proven to read only, not even one that lists.
var runsProject = set(`make gmake rake gradle gradlew mvn mvnw sbt lein ant bazel bazelisk ninja ctest scons
 cargo rustc rustfmt bundle bundler pod rails vagrant knife yarn pnpm composer poetry uv pdm hatch dotnet lerna nx turbo
 pytest jest vitest eslint prettier flake8 pylint mypy golangci-lint semantic-release release-it goreleaser
 prisma drizzle-kit knex sequelize typeorm manage.py django-admin artisan alembic celery flyway liquibase
 cdk cdktf sst serverless sls terragrunt ansible ansible-playbook ansible-vault ansible-inventory haproxy`)

// makefile reads what make runs out of its makefile: one that stands in the command,
// or one of this session.
func (w *walker) makefile(c call) {
	var files []string
	var goals []string
	dir := ""
	for i := 1; i < len(c.args); i++ {
		a := c.args[i].s
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1].s
		}
		switch {
		case a == "-f" || a == "--file" || a == "--makefile":
			files, i = append(files, next), i+1
		case a == "-C" || a == "--directory":
			dir, i = next, i+1
		case strings.HasPrefix(a, "--file="), strings.HasPrefix(a, "--makefile="):
			files = append(files, a[strings.IndexByte(a, '=')+1:])
		case strings.HasPrefix(a, "-f"):
			files = append(files, a[2:])
		case strings.HasPrefix(a, "-C"):
			dir = a[2:]
		case strings.IndexByte(a, '=') < 0 && !strings.HasPrefix(a, "-"):
			goals = append(goals, a)
		}
	}
	outer := w.cwd
	if dir != "" {
		w.cwd = joinPath(w.cwd, dir)
	}
	defer func() { w.cwd = outer }()
	var texts []string
	for _, f := range files {
		if f == "-" || f == "/dev/stdin" {
			if c.in.kind == known {
				texts = append(texts, c.in.text)
			}
			continue
		}
		texts = append(texts, w.texts(joinPath(w.cwd, f))...)
	}
	if files == nil {
		for _, f := range [...]string{"GNUmakefile", "makefile", "Makefile"} {
			if texts = w.texts(joinPath(w.cwd, f)); texts != nil {
				break
			}
		}
	}
	if texts == nil || w.active["file make"] > 0 {
		return
	}
	w.enter("file make")
	w.wraps = append(w.wraps, scriptWrap+"make")
	w.scripts++
	for _, t := range texts {
		w.spend(t)
		for _, cmd := range recipes(t, goals) {
			w.nested(cmd, stream{})
		}
	}
	w.scripts--
	w.wraps = w.wraps[:len(w.wraps)-1]
	w.active["file make"]--
}

// rule is what stands under one line of targets.
type rule struct{ needs, runs []string }

// recipes are the command lines that a makefile runs for its goals, and those of
// $(shell …), which run whatever the goal.
func recipes(text string, goals []string) []string {
	targets, vars := map[string][]*rule{}, makeVars{text: map[string]string{}, done: map[string]string{}}
	var out []string
	cur := &rule{}
	for l := range strings.SplitSeq(strings.ReplaceAll(clip(text), "\\\n", " "), "\n") {
		for rest := l; ; { // runs when the makefile is read
			_, after, ok := strings.Cut(rest, "$(shell ")
			if !ok {
				break
			}
			n, depth := 0, 1
			for ; n < len(after) && depth > 0; n++ {
				switch after[n] {
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			if n > 0 {
				out = append(out, after[:n-1])
			}
			rest = after[n:]
		}
		if cmd, ok := strings.CutPrefix(l, "\t"); ok {
			cur.runs = append(cur.runs, cmd)
			continue
		}
		head, value, isVar := strings.Cut(l, "=")
		if name := strings.TrimSpace(strings.TrimRight(head, ":?+! \t")); isVar && name != "" && !strings.ContainsAny(name, " \t:") {
			vars.text[name] = strings.TrimSpace(value)
			continue
		}
		names, needs, ok := strings.Cut(l, ":")
		if !ok || strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		needs, inline, has := strings.Cut(strings.TrimPrefix(needs, ":"), ";")
		cur = &rule{needs: strings.Fields(needs)}
		if has {
			cur.runs = []string{inline}
		}
		for _, n := range strings.Fields(names) {
			if targets[n] = append(targets[n], cur); len(goals) == 0 && !strings.HasPrefix(n, ".") {
				goals = []string{n}
			}
		}
	}
	seen, ran := map[string]bool{}, map[*rule]bool{}
	for len(goals) > 0 {
		g := goals[0]
		if goals = goals[1:]; seen[g] {
			continue
		}
		seen[g] = true
		for _, r := range targets[g] {
			if ran[r] {
				continue
			}
			ran[r] = true
			goals = append(goals, r.needs...)
			for _, cmd := range r.runs {
				out = append(out, vars.put(strings.TrimLeft(cmd, "@-+ \t"), 0))
			}
		}
	}
	return out
}

// makeVars are a makefile's variables as written, and as far as they are put in.
type makeVars struct{ text, done map[string]string }

// put puts the variables in; what is not known is left to the shell's reading as a
// variable without a value.
func (v makeVars) put(s string, depth int) string {
	if depth > 8 || strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < maxWord; i++ {
		if s[i] != '$' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		open := s[i+1]
		if open == '$' {
			b.WriteByte('$')
			i++
			continue
		}
		if open != '(' && open != '{' {
			b.WriteString("${MAKE_AUTO}")
			i++
			continue
		}
		shut := byte(')')
		if open == '{' {
			shut = '}'
		}
		end := strings.IndexByte(s[i:], shut)
		if end < 0 {
			return b.String() + s[i:]
		}
		name := s[i+2 : i+end]
		switch text, ok := v.text[name]; {
		case ok:
			done, ok := v.done[name]
			if !ok {
				v.done[name] = "" // one that names itself
				done = v.put(text, depth+1)
				v.done[name] = done
			}
			b.WriteString(done)
		case isName(name):
			b.WriteString("${" + name + "}")
		default:
			b.WriteString("${MAKE_FUNCTION}")
		}
		i += end
	}
	return b.String()
}

// ownCode is what is said of them: a mutation at least.
func ownCode(name string, r ruling) ruling {
	if r.effect == ReadOnly && runsProject[name] {
		return mutate("project.code", name+" runs what the project says before it looks")
	}
	return r
}
