package gate

import (
	"os"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

func rows(t *testing.T, file string) [][]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		out = append(out, f)
	}
	return out
}

func TestPromptClass(t *testing.T) {
	for _, r := range rows(t, "testdata/prompts.txt") {
		if got, why := PromptClass(r[2], r[1] == "tools"); string(got) != r[0] || len(why) == 0 {
			t.Errorf("%q with %s: %s, want %s (%v)", r[2], r[1], got, r[0], why)
		}
	}
}

func TestPathKind(t *testing.T) {
	for _, r := range rows(t, "testdata/paths.txt") {
		if got := pathKind(r[1]); string(got) != r[0] {
			t.Errorf("%s: %s, want %s", r[1], got, r[0])
		}
	}
}

func TestActionClass(t *testing.T) {
	for _, tc := range []struct {
		effect shell.Effect
		path   string
		want   lemma.Class
	}{
		{"", "", lemma.Explore}, {shell.ReadOnly, "nginx.conf", lemma.Explore}, {shell.Mutate, "src/a.js", lemma.Edit}, {shell.Mutate, "", lemma.Edit},
		{shell.Mutate, "nginx.conf", lemma.Change}, {shell.Mutate, "package.json", lemma.Change}, {shell.Opaque, "", lemma.Change},
		{shell.Destroy, "", lemma.Destructive}, {shell.Catastrophe, "", lemma.Destructive}, {"odd", "", lemma.Change},
	} {
		if got := ActionClass(tc.effect, []string{tc.path}); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.effect, tc.path, got, tc.want)
		}
	}
}

func TestTrivial(t *testing.T) {
	edit := func(path string, lines int) shell.Edit {
		return shell.Edit{Path: path, Lines: lines, Old: "a", New: "b"}
	}
	for _, tc := range []struct {
		name  string
		edits []shell.Edit
		want  bool
	}{
		{"none", nil, false},
		{"docs", []shell.Edit{edit("README.md", 400)}, true},
		{"tests", []shell.Edit{edit("pkg/a_test.go", 90)}, true},
		{"few lines", []shell.Edit{edit("src/a.go", 3)}, true},
		{"many lines", []shell.Edit{edit("src/a.go", 30)}, false},
		{"few lines, many times", []shell.Edit{edit("src/a.go", 4), edit("src/a.go", 4), edit("src/a.go", 4)}, false},
		{"two files", []shell.Edit{edit("src/a.go", 6), edit("src/b.go", 6)}, true},
		{"comments", []shell.Edit{{Path: "a.go", Lines: 20, Old: "// one\nx := 1", New: "// two\n// three\nx := 1"}}, true},
		{"a build tag is no comment", []shell.Edit{{Path: "a.go", Lines: 20, Old: "//go:build linux", New: "//go:build windows"}}, false},
		{"everywhere", []shell.Edit{{Path: "a.go", Lines: 2, Everywhere: true, Old: "a", New: "b"}}, false},
		{"whole file", []shell.Edit{{Path: "a.go", Lines: 2, Whole: true, New: "a\nb"}}, false},
		{"removed", []shell.Edit{{Path: "README.md", Removed: true}}, false},
		{"manifest", []shell.Edit{edit("package.json", 1)}, false},
		{"env", []shell.Edit{edit(".env", 1)}, false},
		{"sql", []shell.Edit{edit("a.sql", 1)}, false},
		{"conftest", []shell.Edit{edit("tests/conftest.py", 1)}, false},
		{"instructions", []shell.Edit{edit("CLAUDE.md", 1)}, false},
		{"a script", []shell.Edit{edit("run.sh", 1)}, false},
		{"outside", []shell.Edit{edit("../other/a.go", 1)}, false},
		{"one of two", []shell.Edit{edit("README.md", 1), edit("Makefile", 1)}, false},
	} {
		if got, _ := Trivial(tc.edits); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func FuzzPromptClass(f *testing.F) {
	f.Add("drop the database", true)
	f.Add("can you please fix it and then deploy?", false)
	f.Fuzz(func(t *testing.T, text string, tools bool) {
		a, why := PromptClass(text, tools)
		b, _ := PromptClass(text, tools)
		if a != b || a.Rank() > 3 || len(why) == 0 {
			t.Fatalf("%q: %s, %s, %v", text, a, b, why)
		}
		pathKind(text)
	})
}

func BenchmarkPromptClass(b *testing.B) {
	const text = "Uploads of 20 MB fail with 413. Raise the limit of the nginx proxy to 25 MB, then restart it and check that the upload of the large file works again."
	for b.Loop() {
		PromptClass(text, true)
	}
}

func TestCallClass(t *testing.T) {
	for cmd, want := range map[string]lemma.Class{
		"ls": lemma.Explore, "touch a.js": lemma.Edit, "npm test": lemma.Edit, "npm install x": lemma.Change, "npm run build": lemma.Edit, "go test ./...": lemma.Edit, "go get x": lemma.Change, "git commit -m x": lemma.Edit,
		"git push": lemma.Change, "sudo touch a": lemma.Change, "kubectl apply -f x.yaml": lemma.Change, "docker compose up -d": lemma.Change, "systemctl restart nginx": lemma.Change, "psql -c 'INSERT INTO t VALUES (1)'": lemma.Change,
		"ssh web touch a": lemma.Change, "curl -X POST x": lemma.Change, "$X": lemma.Change, "rm -rf data": lemma.Destructive, "sed -i s/a/b/ nginx.conf": lemma.Change, "echo x > .env": lemma.Change, "prisma migrate deploy": lemma.Change,
	} {
		if got := CallClass(shell.Action{Kind: "shell", Effect: shell.Read(cmd).Effect, Paths: shell.Read(cmd).Paths, Shell: shell.Read(cmd)}); got != want {
			t.Errorf("%q: %s, want %s", cmd, got, want)
		}
	}
}
