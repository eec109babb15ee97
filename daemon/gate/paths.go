package gate

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
)

// fileKind is what a file is for, as far as its path says.
type fileKind string

const (
	plainFile    fileKind = "code"
	docFile      fileKind = "docs"
	testFile     fileKind = "tests"
	manifestFile fileKind = "manifest"
	configFile   fileKind = "config"
	infraFile    fileKind = "infra"
	dataFile     fileKind = "data"
	ciFile       fileKind = "ci"
	authFile     fileKind = "auth"
	liveFile     fileKind = "runs-or-instructs" // 13.8: runs at the next ordinary step, or instructs an agent
)

var manifests = words(`package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.json deno.lock go.mod go.sum go.work cargo.toml cargo.lock pyproject.toml poetry.lock uv.lock requirements.txt pipfile pipfile.lock
 gemfile gemfile.lock composer.json composer.lock pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties packages.lock.json directory.build.props mix.exs mix.lock pubspec.yaml pubspec.lock package.swift package.resolved
 podfile podfile.lock flake.nix flake.lock .nvmrc .node-version .python-version .ruby-version .tool-versions mise.toml rust-toolchain rust-toolchain.toml environment.yml conda.yml constraints.txt bower.json lerna.json nx.json turbo.json pnpm-workspace.yaml go.work.sum`)

var infra = words(`dockerfile containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml nginx.conf haproxy.cfg caddyfile procfile fly.toml vercel.json netlify.toml wrangler.toml wrangler.json render.yaml app.yaml serverless.yml serverless.yaml samconfig.toml
 chart.yaml values.yaml kustomization.yaml kustomization.yml skaffold.yaml tiltfile vagrantfile ansible.cfg playbook.yml inventory.ini pulumi.yaml cdk.json traefik.yml traefik.yaml prometheus.yml supervisord.conf crontab httpd.conf apache2.conf my.cnf postgresql.conf pg_hba.conf redis.conf sshd_config sudoers hosts fstab`)

// live are names that 13.8 never lets pass as trivial.
var live = words(`conftest.py sitecustomize.py usercustomize.py setup.py setup.cfg noxfile.py tasks.py fabfile.py build.rs makefile gnumakefile justfile rakefile gulpfile.js gruntfile.js jakefile.js cmakelists.txt meson.build build.bazel workspace.bazel module.bazel taskfile.yml taskfile.yaml .envrc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf
 .mcp.json mcp.json claude.md claude.local.md agents.md agent.md gemini.md .cursorrules .windsurfrules .clinerules copilot-instructions.md .aider.conf.yml opencode.json opencode.jsonc .gitattributes .gitmodules .gitconfig .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lintstagedrc .huskyrc .bazelrc .babelrc .eslintrc .eslintrc.js .eslintrc.cjs .eslintrc.json .prettierrc.js
 .bashrc .zshrc .profile .bash_profile .zprofile .zshenv .inputrc .vimrc .tmux.conf config.fish sensors.yaml gettierd.yaml sensors.lock tox.ini pytest.ini .coveragerc .python-startup.py .rspec .irbrc .pryrc`)

var liveDirs = words(`.git .github .gitlab .circleci .vscode .idea .devcontainer .claude .codex .cursor .continue .opencode .windsurf .gemini .aider .roo .cline .husky .githooks hooks .hooks .gettier .ssh .kube .aws .config .zed node_modules .venv venv site-packages autostart systemd init.d cron.d profile.d`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, f := range strings.Fields(s) {
		m[f] = true
	}
	return m
}

// pathKind says what a path is, the most consequential reading first.
func pathKind(p string) fileKind {
	p = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(p), `\`, "/"))
	if p == "" {
		return plainFile
	}
	name := p[strings.LastIndexByte(p, '/')+1:]
	dirs := strings.Split(p, "/")
	dirs = dirs[:len(dirs)-1]
	for _, d := range dirs {
		if d == ".github" || d == ".gitlab" || d == ".circleci" || d == ".buildkite" {
			if d == ".github" && (strings.HasSuffix(name, ".md") && name != "copilot-instructions.md") {
				break
			}
			return ciFile
		}
		if liveDirs[d] || strings.HasPrefix(d, ".cursor") {
			return liveFile
		}
	}
	ext := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case manifests[name]:
		return manifestFile
	case live[name] || strings.HasPrefix(name, "requirements") && ext == "txt", strings.HasPrefix(name, "setup.") && !isProse(ext) || strings.HasPrefix(name, ".cursor") || strings.HasPrefix(name, "webpack.") || strings.HasPrefix(name, "vite.") || strings.HasPrefix(name, "tsconfig") || strings.HasPrefix(name, "jsconfig"):
		if strings.HasPrefix(name, "requirements") {
			return manifestFile
		}
		return liveFile
	case strings.HasPrefix(name, ".env"), strings.HasSuffix(name, ".env"):
		return configFile
	case infra[name], strings.HasPrefix(name, "dockerfile"), strings.HasSuffix(name, ".dockerfile"), strings.HasPrefix(name, "docker-compose"), ext == "tf", ext == "tfvars", ext == "hcl", ext == "nomad", ext == "service", ext == "timer", ext == "socket", ext == "mount", ext == "bicep":
		return infraFile
	case name == ".gitlab-ci.yml", name == ".travis.yml", name == "jenkinsfile", name == "azure-pipelines.yml", name == "bitbucket-pipelines.yml", name == "appveyor.yml", name == ".drone.yml", name == "cloudbuild.yaml", name == "buildspec.yml":
		return ciFile
	case ext == "sql", ext == "prisma", ext == "db", ext == "sqlite", ext == "sqlite3":
		return dataFile
	case isCode(ext) && (strings.Contains(name, "config.") || strings.HasPrefix(name, "config") || strings.Contains(name, ".conf.") || strings.Contains(name, "settings.")):
		return liveFile
	}
	for _, d := range dirs {
		switch d {
		case "migrations", "migration", "migrate", "alembic", "db", "prisma", "schema", "schemas", "seeds", "fixtures-db", "dbt":
			return dataFile
		case "terraform", "infra", "infrastructure", "deploy", "deployment", "deployments", "k8s", "kubernetes", "helm", "charts", "ansible", "nginx", "ops", "iac", "docker":
			return infraFile
		case "auth", "authentication", "authorization", "security", "crypto", "iam", "permissions", "rbac", "oauth":
			return authFile
		case "etc", "conf.d", "sites-enabled", "sites-available":
			return configFile
		}
	}
	if base, _, _ := strings.Cut(name, "."); base == "auth" || base == "login" || base == "permissions" || base == "middleware" || strings.HasPrefix(base, "auth_") || strings.HasSuffix(base, "_auth") || strings.Contains(base, "password") || strings.Contains(base, "session") || strings.Contains(base, "crypto") || strings.Contains(base, "security") {
		return authFile
	}
	if isProse(ext) {
		if ext == "txt" && len(dirs) == 0 && (name == "cmakelists.txt" || name == "robots.txt") {
			return configFile
		}
		return docFile
	}
	switch ext {
	case "yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "json", "jsonc", "json5", "xml", "plist", "env", "lock", "cnf", "pem", "key", "crt":
		for _, d := range dirs {
			if testDir(d) {
				return testFile
			}
		}
		return configFile
	}
	for _, d := range dirs {
		if testDir(d) {
			return testFile
		}
	}
	if strings.HasSuffix(strings.TrimSuffix(name, "."+ext), "_test") || strings.HasPrefix(name, "test_") || strings.Contains(name, ".test.") || strings.Contains(name, ".spec.") || strings.HasSuffix(strings.TrimSuffix(name, "."+ext), "_spec") {
		return testFile
	}
	return plainFile
}

func testDir(d string) bool {
	switch d {
	case "test", "tests", "__tests__", "spec", "specs", "testdata", "e2e", "__mocks__":
		return true
	}
	return false
}

// isProse: files of words, which nothing runs.
func isProse(ext string) bool {
	switch ext {
	case "md", "mdx", "rst", "txt", "adoc", "asciidoc", "tex", "org":
		return true
	}
	return false
}

func isCode(ext string) bool {
	switch ext {
	case "js", "ts", "mjs", "cjs", "mts", "cts", "py", "rb", "go", "rs", "php", "lua", "pl", "exs", "kts", "jsx", "tsx", "sh", "bash", "zsh", "ps1":
		return true
	}
	return false
}

// trivialLines is how many changed lines of one file may still be trivial.
const trivialLines = 10

// Trivial reports whether edits are too small to declare for, and why. Docs,
// comments and tests are, and under ten changed lines in ordinary code; nothing
// in a manifest, lock file, migration, CI, infra, env, auth or SQL file is, nor
// in a file that runs at the next ordinary step or instructs an agent. Lines are
// counted per file over all edits given: pass a task's edits together.
func Trivial(edits []shell.Edit) (bool, string) {
	if len(edits) == 0 {
		return false, ""
	}
	lines := map[string]int{}
	why := "docs, comments or tests"
	for _, e := range edits {
		if e.Path == "" || e.Removed {
			return false, ""
		}
		if strings.HasPrefix(e.Path, "/etc/") || strings.HasPrefix(e.Path, "~") || strings.Contains(e.Path, "..") {
			return false, ""
		}
		switch k := pathKind(e.Path); k {
		case docFile, testFile:
			continue
		case plainFile:
		default:
			return false, ""
		}
		if commentsOnly(e) {
			continue
		}
		lines[e.Path] += e.Lines
		if e.Everywhere || e.Whole || e.Lines == 0 || lines[e.Path] >= trivialLines {
			return false, ""
		}
		if isScript(e.Path) {
			return false, ""
		}
		why = "few lines"
	}
	return true, why
}

// isScript: a shell script is all effect, however short.
func isScript(p string) bool {
	for _, s := range [...]string{".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd"} {
		if strings.HasSuffix(strings.ToLower(p), s) {
			return true
		}
	}
	return false
}

// commentsOnly: every line that differs is blank or a line comment, before and after.
func commentsOnly(e shell.Edit) bool {
	if e.Old == "" && e.New == "" {
		return false
	}
	prefixes := commentPrefixes(e.Path)
	if len(prefixes) == 0 {
		return false
	}
	a, b := strings.Split(e.Old, "\n"), strings.Split(e.New, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for _, side := range [][]string{a, b} {
		for _, l := range side {
			if l = strings.TrimSpace(l); l != "" && !comment(l, prefixes) {
				return false
			}
		}
	}
	return true
}

// comment reports a line that is a comment and no instruction to a tool.
func comment(l string, prefixes []string) bool {
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(l, p)
		if !ok {
			continue
		}
		// #!, //go:build, // +build, # type:, eslint, @ts-ignore, # noqa, pragma …
		if strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "go:") || strings.HasPrefix(rest, "export ") {
			return false
		}
		low := strings.ToLower(rest)
		for _, d := range [...]string{"+build", "eslint", "@ts-", "type:", "noqa", "nolint", "pragma", "-*-", "coding:", "prettier", "istanbul", "#cgo", "cgo ", "webpack", "@jsx", "frozen_string_literal", "rubocop", "mypy:", "pylint", "use strict", "sourcemapping", "@vite", "region", "nosec", "semgrep", "codeql"} {
			if strings.Contains(low, d) {
				return false
			}
		}
		return true
	}
	return false
}

func commentPrefixes(p string) []string {
	switch p[strings.LastIndexByte(p, '.')+1:] {
	case "go", "js", "ts", "jsx", "tsx", "mjs", "cjs", "mts", "cts", "java", "kt", "swift", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "scala", "dart", "zig", "php":
		return []string{"//"}
	case "py", "rb", "pl", "r", "jl", "ex", "exs", "nim", "cr":
		return []string{"#"}
	case "lua", "hs", "elm":
		return []string{"--"}
	}
	return nil
}
