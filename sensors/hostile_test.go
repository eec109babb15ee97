package sensors

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/sensors/spec"
)

// trap is something in a repository that runs when a tool is used there in the
// ordinary way.
type trap struct {
	name string
	// files of the repository; CANARY in them is a command that leaves a mark of
	// this trap's own. A name that begins with ! is executable.
	files map[string]string
	git   []string // configuration of the repository, key and value, in turn
	plant func(t *testing.T, root, mark string)
	naive string // shell: runs the trap, which shows that it is one
	// sensors are commands that a person approved before the trap was there.
	sensors []string
	slow    bool // only with -thorough
}

var thorough = flag.Bool("thorough", false, "the slow traps")

// pythonMark is Python that runs the mark.
const pythonMark = "import os\nos.system('CANARY')\n"

var traps = []trap{
	{name: "json.py", files: map[string]string{"json.py": pythonMark}, naive: "python3 -c 'import json'", sensors: []string{`[python3, -c, "import json"]`}},
	{name: "package that hides a module", files: map[string]string{"json/__init__.py": pythonMark}, naive: "python3 -c 'import json'", sensors: []string{`[python3, -c, "import json"]`, `[python3, -m, json.tool, data.json]`}, slow: true},
	{name: "module of -m", files: map[string]string{"encodings_.py": "", "argparse.py": pythonMark}, naive: "python3 -m json.tool data.json", sensors: []string{`[python3, -m, json.tool, data.json]`}},
	{name: "sitecustomize.py", files: map[string]string{"sitecustomize.py": pythonMark}, naive: "PYTHONPATH=. python3 -c 'pass'", sensors: []string{`[python3, -c, "import sys; print(sys.version)"]`}, slow: true},
	{name: "beside a script", files: map[string]string{"json.py": pythonMark}, naive: "python3 check.py", sensors: []string{`[python3, check.py]`}, slow: true},
	{name: "filter clean", files: map[string]string{".gitattributes": "* filter=evil\n", "tracked": "as it is now\n"}, git: []string{"filter.evil.clean", "CANARY; cat"}, naive: "git status --porcelain", sensors: []string{`[git, status, --porcelain]`, `[git, diff, --stat]`}},
	{name: "filter process", files: map[string]string{".gitattributes": "* filter=evil\n", "tracked": "as it is now\n"}, git: []string{"filter.evil.process", "CANARY", "filter.evil.required", "true"}, naive: "git status --porcelain", sensors: []string{`[git, status, --porcelain]`}},
	{name: "filter of an included file", files: map[string]string{".gitattributes": "* filter=evil\n", "tracked": "as it is now\n", "more.cfg": "[filter \"evil\"]\n\tclean = CANARY\n"}, git: []string{"include.path", "../more.cfg"}, naive: "git diff", sensors: []string{`[git, diff]`}, slow: true},
	{name: "textconv", files: map[string]string{".gitattributes": "* diff=evil\n", "tracked": "as it is now\n"}, git: []string{"diff.evil.textconv", "CANARY; cat"}, naive: "git diff", sensors: []string{`[git, diff]`, `[git, log, -p, -1]`}},
	{name: "diff driver", files: map[string]string{".gitattributes": "* diff=evil\n", "tracked": "as it is now\n"}, git: []string{"diff.evil.command", "CANARY"}, naive: "git diff", sensors: []string{`[git, diff]`}, slow: true},
	{name: "external diff", files: map[string]string{"tracked": "as it is now\n"}, git: []string{"diff.external", "CANARY"}, naive: "git diff", sensors: []string{`[git, diff]`}},
	{name: "fsmonitor", git: []string{"core.fsmonitor", "CANARY; false"}, naive: "git status", sensors: []string{`[git, status]`, `[git, ls-files, -m]`}},
	{name: "hooksPath", files: map[string]string{"!hooks/post-index-change": "#!/bin/sh\nCANARY\n"}, git: []string{"core.hooksPath", "hooks"}, naive: "touch tracked; git update-index --refresh; git status", sensors: []string{`[git, status]`}},
	{name: "hook in place", files: map[string]string{"!.git/hooks/post-index-change": "#!/bin/sh\nCANARY\n"}, naive: "touch tracked; git status", sensors: []string{`[git, status]`}},
	{name: "alias", git: []string{"alias.where", "!CANARY"}, naive: "git where", sensors: []string{`[git, where]`}},
	{name: "signature program", git: []string{"log.showSignature", "true", "gpg.program", "CANARY"}, plant: signedCommit, naive: "git log -1", sensors: []string{`[git, log, -1]`, `[git, show, --show-signature]`}},
	{name: "work tree elsewhere", plant: elsewhere, naive: "git status --porcelain | grep -q secret && CANARY", sensors: []string{`[git, status, --porcelain]`}},
	{name: "bare shape", plant: bareShape, naive: "cd sub && git status", sensors: []string{`[git, -C, sub, status]`}},
	{name: "submodule", plant: submodule, naive: "git status", sensors: []string{`[git, status, --porcelain]`, `[git, diff]`}, slow: true},
	{name: "Makefile", files: map[string]string{"GNUmakefile": "version:\n\tCANARY\n"}, naive: "make version", sensors: []string{`[make, version]`}},
	{name: "Makefile of an include", files: map[string]string{"makefile": "include more.mk\n", "more.mk": "version:\n\tCANARY\n", "Makefile": ""}, naive: "make version", sensors: []string{`[make, version]`}},
	{name: "package.json script", files: map[string]string{"package.json": `{"scripts":{"ver":"CANARY"}}`}, naive: "npm run -s ver", sensors: []string{`[npm, run, -s, ver]`}, slow: true},
	{name: ".npmrc script-shell", files: map[string]string{".npmrc": "script-shell=./shell.sh\n", "!shell.sh": "#!/bin/sh\nCANARY\n"}, naive: "npm run -s ver", sensors: []string{`[npm, run, -s, ver]`}, slow: true},
	{name: ".bin", files: map[string]string{"!node_modules/.bin/tool": "#!/bin/sh\nCANARY\n"}, naive: "npx --no-install tool", sensors: []string{`[npx, --no-install, tool]`}, slow: true},
	{name: ".yarnrc.yml", files: map[string]string{".yarnrc.yml": "yarnPath: ./y.cjs\n", "y.cjs": "require('child_process').execSync('CANARY')\n"}, naive: "yarn --version", sensors: []string{`[yarn, --version]`}},
	{name: ".pnp.cjs", files: map[string]string{".pnp.cjs": "require('child_process').execSync('CANARY')\n", ".yarnrc.yml": "nodeLinker: pnp\n"}, naive: "node -r ./.pnp.cjs -e 1", sensors: []string{`[node, -e, "console.log(process.version)"]`, `[yarn, --version]`}, slow: true},
	{name: "shim on PATH", files: map[string]string{"!ls": "#!/bin/sh\nCANARY\n"}, naive: "PATH=.:$PATH ls", sensors: []string{`[ls]`, `[env]`}},
	{name: ".envrc", files: map[string]string{".envrc": "CANARY\n"}, naive: ". ./.envrc", sensors: []string{`[env]`}},
	{name: "go.work and a toolchain", files: map[string]string{"go.work": "go 1.99\ntoolchain go1.99.9\nuse .\n", "go.mod": "module gettier.dev/gettierd\n\ngo 1.99\n", "main.go": "package main\nimport \"os/exec\"\nfunc main() { exec.Command(\"sh\", \"trap.sh\").Run() }\n", "trap.sh": "CANARY\n"}, naive: "printf 'module m\\n\\ngo 1.21\\n' > go.mod; GOWORK=off GOFLAGS= go run .", sensors: []string{`[go, env, GOMOD]`, `[go, list, -m]`, `[go, run, .]`}, slow: true},
	{name: "rust toolchain", files: map[string]string{"rust-toolchain.toml": "[toolchain]\npath = \"./tc\"\n", "!tc/bin/rustc": "#!/bin/sh\nCANARY\n"}, naive: "tc/bin/rustc --version", sensors: []string{`[rustc, --version]`}},
	{name: "script that was approved", files: map[string]string{"!check.sh": "#!/bin/sh\nCANARY\n"}, naive: "./check.sh", sensors: []string{`[./check.sh]`, `[sh, check.sh]`}},
	{name: "pipe in place of a file", plant: func(t *testing.T, root, _ string) {
		for _, f := range []string{".gitattributes", "pipe"} {
			if err := syscall.Mkfifo(filepath.Join(root, f), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}, naive: "timeout 0.2 cat pipe || CANARY", sensors: []string{`[cat, pipe]`}},
	{name: "huge file", plant: func(t *testing.T, root, _ string) {
		f, err := os.Create(filepath.Join(root, "huge"))
		if err == nil {
			err = errors.Join(f.Truncate(1<<40), f.Close())
		}
		if err != nil {
			t.Skip(err)
		}
	}, naive: "test $(stat -c %s huge) -gt 1000000 && CANARY", sensors: []string{`[cat, huge]`}},
	{name: "link that leads out", plant: func(t *testing.T, root, _ string) {
		if err := os.Symlink("/etc/passwd", filepath.Join(root, "data.txt")); err != nil {
			t.Fatal(err)
		}
	}, naive: "grep -q root data.txt && CANARY", sensors: []string{`[cat, "{{f}}"]`}},
}

// gitIn runs git for a fixture.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func signedCommit(t *testing.T, root, _ string) {
	signer := filepath.Join(root, ".git", "signer")
	if err := os.WriteFile(signer, []byte("#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho '-----BEGIN PGP SIGNATURE-----'\necho\necho x\necho '-----END PGP SIGNATURE-----'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	gitIn(t, root, "-c", "gpg.program="+signer, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-S", "-m", "signed")
}

func elsewhere(t *testing.T, root, _ string) {
	other := testDir(t)
	if err := os.WriteFile(filepath.Join(other, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, root, "config", "core.worktree", other)
}

func bareShape(t *testing.T, root, mark string) {
	dir := filepath.Join(root, "sub")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "objects"), 0o755), os.MkdirAll(filepath.Join(dir, "refs"), 0o755), os.MkdirAll(filepath.Join(dir, "wt"), 0o755),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = wt\n\tfsmonitor = "+mark+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func submodule(t *testing.T, root, mark string) {
	other := testDir(t)
	gitIn(t, other, "init", "-q")
	gitIn(t, other, "commit", "-q", "--allow-empty", "-m", "x")
	gitIn(t, root, "submodule", "--quiet", "add", other, "lib")
	gitIn(t, root, "commit", "-q", "-m", "lib")
	gitIn(t, filepath.Join(root, "lib"), "config", "core.fsmonitor", mark)
	gitIn(t, root, "config", "--file", ".gitmodules", "submodule.lib.ignore", "none")
	gitIn(t, root, "config", "submodule.lib.ignore", "none")
}

// clean makes the repository as it was when its sensors were approved.
func clean(t *testing.T, root string) {
	t.Helper()
	for name, text := range map[string]string{
		"tracked": "as committed\n", "data.json": "{}\n", "check.py": "import json\nprint(json.dumps(1))\n", "check.sh": "#!/bin/sh\necho fine\n",
		"Makefile": "version:\n\t@echo 1\n", "package.json": `{"scripts":{"ver":"echo 1"}}`, "data.txt.sample": "", "sub/keep": "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, root, "init", "-q")
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "commit", "-q", "-m", "begin")
}

// set plants a trap; what it runs appends to the file mark.
func (tr *trap) set(t *testing.T, root, mark string) {
	t.Helper()
	command := "echo sprung >> " + mark
	if tr.plant != nil {
		tr.plant(t, root, command)
	}
	for name, text := range tr.files {
		mode := os.FileMode(0o644)
		if n, ok := strings.CutPrefix(name, "!"); ok {
			name, mode = n, 0o755
		}
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.ReplaceAll(text, "CANARY", command)), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i+1 < len(tr.git); i += 2 {
		value := tr.git[i+1]
		if strings.HasSuffix(tr.git[i], ".program") { // a program, not a shell's text
			value = filepath.Join(root, ".git", "mark.sh")
			if err := os.WriteFile(value, []byte("#!/bin/sh\n"+command+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		gitIn(t, root, "config", tr.git[i], strings.ReplaceAll(value, "CANARY", command))
	}
}

// TestHostileRepository: sensors were approved in a repository, then it turns
// hostile. Measured, no trap springs: not where no sandbox can be had, and not in
// the sandbox. Then the control: used in the ordinary way, each one does.
func TestHostileRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GOFLAGS", "")
	template := testDir(t)
	clean(t, template)
	var permit func(*spec.Sensor, string, string) error
	asked := func(s *spec.Sensor, root, cwd string) error { return permit(s, root, cwd) }
	runners := map[string]*Runner{"no sandbox": NewRunner(RunnerOptions{Permit: asked}), "sandbox": NewRunner(RunnerOptions{Permit: asked, Confine: true})}
	defer runners["sandbox"].Close()
	set := 0
	for _, tr := range traps {
		t.Run(tr.name, func(t *testing.T) {
			if tr.slow && !*thorough {
				t.Skip("only with -thorough")
			}
			root, mark := testDir(t), filepath.Join(testDir(t), "mark")
			if err := os.CopyFS(root, os.DirFS(template)); err != nil {
				t.Fatal(err)
			}
			h := newHouse(t)
			h.root = root
			if err := os.Mkdir(filepath.Join(root, ".gettier"), 0o700); err != nil {
				t.Fatal(err)
			}
			h.write(h.project(), tr.registry())
			if _, err := ApproveAll(h.state, h.project(), "project/shop"); err != nil {
				t.Fatal(err)
			}
			tr.set(t, root, mark)
			r := h.open(func(o *Options) { o.Projects = []Project{{"shop", root}} })
			permit = r.Permit
			v := r.View(root)
			var reqs []Request
			for _, s := range append(slices.Clone(v.Sensors), v.Waiting...) {
				reqs = append(reqs, Request{Sensor: s, Root: root, Cwd: root})
			}
			if len(reqs) != len(tr.sensors) {
				t.Fatalf("%d of %d sensors", len(reqs), len(tr.sensors))
			}
			for name, runner := range runners {
				for _, rd := range runner.Run(t.Context(), reqs) {
					if strings.Contains(string(rd.Output), "secret") || strings.Contains(string(rd.Output), "root:x:0") {
						t.Errorf("%s: %v tells of another directory: %q", name, rd.Invocation.Argv, rd.Output)
					}
				}
				if b, err := os.ReadFile(mark); err == nil {
					t.Fatalf("sprung, %s: %q", name, b)
				}
			}
			tr.spring(t, root, mark)
			set++
		})
	}
	if set < 20 {
		t.Errorf("%d traps could be set here", set)
	}
}

// registry is the project's file that was approved.
func (tr *trap) registry() string {
	var b strings.Builder
	b.WriteString("sensors:\n")
	for i, c := range tr.sensors {
		limit := 30
		if strings.Contains(c, "pipe") {
			limit = 1
		}
		fmt.Fprintf(&b, "  - { id: s%d, command: %s, effects: none, timeout: %d", i, c, limit)
		if strings.Contains(c, "{{f}}") {
			b.WriteString(`, params: { f: { type: path, allow: "*.txt", default: data.txt } }`)
		}
		b.WriteString(" }\n")
	}
	return b.String()
}

// spring uses the repository in the ordinary way: a trap that does not spring
// then tests nothing.
func (tr *trap) spring(t *testing.T, root, mark string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	naive := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(tr.naive, "CANARY", "echo sprung >> "+mark))
	naive.Dir = root
	out, _ := naive.CombinedOutput() // many traps break what springs them
	if _, err := os.Stat(mark); err == nil {
		return
	}
	program := strings.FieldsFunc(tr.naive, func(r rune) bool { return strings.ContainsRune(" ;", r) })[0]
	if _, err := exec.LookPath(program); err != nil && !strings.Contains(program, "/") {
		t.Skipf("%s is not installed", program)
	}
	t.Fatalf("it is no trap: %s\n%s", tr.naive, out)
}
