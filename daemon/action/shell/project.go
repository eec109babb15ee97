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

// makefile reads the recipes of a makefile that stands in the command itself.
func (w *walker) makefile(c call) {
	if c.in.kind != known || c.in.text == "" {
		return
	}
	if !hasFlag(c.args, "-f", "--file", "--makefile", "-f-", "-f/dev/stdin") {
		return
	}
	w.wraps = append(w.wraps, "make -f")
	w.recipes(c.in.text)
	w.wraps = w.wraps[:len(w.wraps)-1]
}

// recipes reads the command lines of a makefile, those of every target.
func (w *walker) recipes(text string) {
	lines := strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
	for _, l := range lines {
		recipe, ok := strings.CutPrefix(l, "\t")
		if !ok {
			if target, cmd, inline := strings.Cut(l, ";"); inline && strings.Contains(target, ":") {
				recipe, ok = cmd, true
			}
		}
		if recipe = strings.TrimLeft(recipe, "@-+ \t"); ok && recipe != "" {
			w.nested(strings.NewReplacer("$$", "$", "$(", "${", ")", "}").Replace(recipe), stream{})
		}
	}
}

// ownCode is what is said of them: a mutation at least.
func ownCode(name string, r ruling) ruling {
	if r.effect == ReadOnly && runsProject[name] {
		return mutate("project.code", name+" runs what the project says before it looks")
	}
	return r
}
