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
		for _, cmd := range recipes(t, goals) {
			w.nested(cmd, stream{})
		}
	}
	w.scripts--
	w.wraps = w.wraps[:len(w.wraps)-1]
	w.active["file make"]--
}

// recipes are the command lines that a makefile runs for its goals, and those of
// $(shell …), which run whatever the goal.
func recipes(text string, goals []string) []string {
	type target struct{ needs, runs []string }
	targets, vars := map[string]*target{}, map[string]string{}
	var out []string
	var cur []*target
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
			for _, t := range cur {
				t.runs = append(t.runs, cmd)
			}
			continue
		}
		head, value, isVar := strings.Cut(l, "=")
		if name := strings.TrimRight(head, ":?+! \t"); isVar && name != "" && !strings.ContainsAny(strings.TrimSpace(name), " \t:") {
			vars[strings.TrimSpace(name)] = strings.TrimSpace(value)
			continue
		}
		names, needs, ok := strings.Cut(l, ":")
		if !ok || strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		needs, inline, has := strings.Cut(strings.TrimPrefix(needs, ":"), ";")
		cur = nil
		for _, n := range strings.Fields(names) {
			t := targets[n]
			if t == nil {
				t = &target{}
				targets[n] = t
			}
			t.needs = append(t.needs, strings.Fields(needs)...)
			if has {
				t.runs = append(t.runs, inline)
			}
			if cur = append(cur, t); len(goals) == 0 && !strings.HasPrefix(n, ".") {
				goals = []string{n}
			}
		}
	}
	seen := map[string]bool{}
	for len(goals) > 0 && len(seen) < maxPaths {
		g := goals[0]
		goals = goals[1:]
		t := targets[g]
		if t == nil || seen[g] {
			continue
		}
		seen[g] = true
		goals = append(goals, t.needs...)
		for _, cmd := range t.runs {
			out = append(out, makeVars(strings.TrimLeft(cmd, "@-+ \t"), vars, 0))
		}
	}
	return out
}

// makeVars puts a makefile's variables in; what it does not know is left to the
// shell's reading as a variable without a value.
func makeVars(s string, vars map[string]string, depth int) string {
	if depth > 4 || strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < maxText; i++ {
		if s[i] != '$' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch c := s[i+1]; c {
		case '$':
			b.WriteByte('$')
			i++
		case '(', '{':
			end := strings.IndexByte(s[i:], map[byte]byte{'(': ')', '{': '}'}[c])
			if end < 0 {
				return b.String() + s[i:]
			}
			name := s[i+2 : i+end]
			if v, ok := vars[name]; ok {
				b.WriteString(makeVars(v, vars, depth+1))
			} else if isName(name) {
				b.WriteString("${" + name + "}")
			} else {
				b.WriteString("${MAKE_FUNCTION}")
			}
			i += end
		default:
			b.WriteString("${MAKE_AUTO}")
			i++
		}
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
