package shell

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type row struct {
	effect Effect
	rule   string
	cmd    string
}

func commands(t testing.TB) []row {
	t.Helper()
	files, err := filepath.Glob("testdata/families/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d families: %v", len(files), err)
	}
	var out []row
	for _, file := range append(files, "testdata/commands.txt") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(raw), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			f := strings.SplitN(line, " | ", 3)
			if len(f) != 3 {
				t.Fatalf("%s: bad row %q", file, line)
			}
			cmd := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\|`, "|").Replace(f[2])
			out = append(out, row{Effect(f[0]), f[1], cmd})
		}
	}
	return out
}

func TestCommands(t *testing.T) {
	for _, r := range commands(t) {
		got := Read(r.cmd)
		if got.Effect != r.effect || r.rule != "-" && got.Rule != r.rule {
			t.Errorf("%q: %s by %s (%s), want %s by %s", r.cmd, got.Effect, got.Rule, got.Why, r.effect, r.rule)
		}
		if again := Read(r.cmd); !reflect.DeepEqual(got, again) {
			t.Errorf("%q: two readings differ", r.cmd)
		}
		if got.Why == "" || got.Rule == "" {
			t.Errorf("%q: no reason", r.cmd)
		}
	}
}

// TestWrapped: what runs a command has at least its effect.
func TestWrapped(t *testing.T) {
	wraps := []string{
		"%", "sudo %", "env A=1 %", "nohup % &", "timeout 5 %", "( % )", "{ %; }", "! %", "true && %", "false || %", "if true; then %; fi", "while true; do %; done", "for i in 1 2; do %; done",
		"time %", "nice -n 3 %", "stdbuf -oL %", "setsid %", "command %", "exec %", "x=$(%)", "echo `%`", "case x in x) %;; esac", "coproc { %; }", "f() { %; }; f", "cat <(%)", "cd sub && %", "% | cat", "% > out.txt", "% 2>&1 | tee log",
	}
	quoted := []string{"bash -c '%'", "sh -c \"%\"", "eval '%'", "sudo bash -c '%'", "xargs -I{} sh -c '%'", "ssh host '%'", "docker run --rm img sh -c '%'", "echo '%' | bash", "bash <<< '%'", "trap '%' EXIT", "su - bob -c '%'", "npx -c '%'", "flock /tmp/l -c '%'", "script -qc '%' /dev/null"}
	plain := []string{"rm -rf data", "git reset --hard", "terraform destroy", "rm -rf /etc", "ls"}
	for _, cmd := range plain {
		want := Read(cmd).Effect
		for _, w := range wraps {
			line := strings.ReplaceAll(w, "%", cmd)
			if got := Read(line); got.Effect.Rank() < want.Rank() {
				t.Errorf("%q: %s, the command alone is %s", line, got.Effect, want)
			}
			for _, q := range quoted {
				line := strings.ReplaceAll(w, "%", strings.ReplaceAll(q, "%", cmd))
				if got := Read(line); got.Effect.Rank() < want.Rank() {
					t.Errorf("%q: %s, the command alone is %s", line, got.Effect, want)
				}
			}
		}
	}
}

// TestMentioned: text that only speaks of a command runs nothing.
func TestMentioned(t *testing.T) {
	for _, m := range []string{
		"echo '%'", "echo \"%\"", "grep '%' notes.md", "cat <<'X'\n%\nX", "git commit -m '%'", "# %", "printf '%s' '%'", "git log --grep='%'", "rg '%' .", "echo '%' | grep rm", "test '%' = x", "x='%'", "man -k '%'", "jq -n '\"%\"'", "git grep -n '%'", "[[ $a == '%' ]]",
	} {
		line := strings.ReplaceAll(m, "%'", "%'")
		line = strings.Replace(line, "'%'", "'rm -rf data'", 1)
		line = strings.ReplaceAll(line, "%\nX", "rm -rf data\nX")
		line = strings.ReplaceAll(line, "# %", "# rm -rf data")
		line = strings.ReplaceAll(line, "\"%\"", "\"rm -rf data\"")
		if got := Read(line); got.Effect.AtLeast(Opaque) {
			t.Errorf("%q: %s by %s", line, got.Effect, got.Rule)
		}
	}
}

func TestReading(t *testing.T) {
	r := Read(`cd app && sudo DATABASE_URL=x npx prisma db push --force-reset > out.log`)
	if len(r.Commands) != 2 {
		t.Fatalf("%d commands: %+v", len(r.Commands), r.Commands)
	}
	c := r.Commands[1]
	if diff := cmp.Diff([]string{"prisma", "db", "push", "--force-reset"}, c.Argv); diff != "" {
		t.Error(diff)
	}
	if c.Program() != "prisma" || c.Cwd != "app" || !slices.Contains(c.Env, "DATABASE_URL=x") || !slices.Equal(c.Wrappers, []string{"sudo", "npx"}) || c.Effect != Destroy {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(r.Paths, []string{"out.log"}) {
		t.Errorf("paths %v", r.Paths)
	}
	src := "ls; rm -rf data"
	r = Read(src)
	if got := src[r.Commands[1].Start:r.Commands[1].End]; got != "rm -rf data" {
		t.Errorf("span holds %q", got)
	}
	if r := Read("rm -rf node_modules dist/"); !r.Commands[0].Regenerable || r.Effect != Destroy {
		t.Errorf("%+v", r.Commands[0])
	}
	if r := Read("rm -rf node_modules src"); r.Commands[0].Regenerable {
		t.Error("src is not regenerable")
	}
	if r := Read("rm -rf ../node_modules"); r.Commands[0].Regenerable {
		t.Error("outside is not regenerable")
	}
}

func TestBounds(t *testing.T) {
	for name, src := range map[string]string{
		"long":   strings.Repeat("a", maxText+1),
		"deep":   strings.Repeat("bash -c '", 3) + strings.Repeat("$(", 200) + "ls" + strings.Repeat(")", 200),
		"wide":   strings.Repeat("ls;", 20_000),
		"braces": "echo " + strings.Repeat("{a,b}", 40),
		"nul":    "ls\x00rm",
		"self":   "f() { f; }; f",
		"mutual": "f() { g; }; g() { f; }; f",
		"alias":  "alias ls='ls -l'; ls",
	} {
		r := Read(src)
		if name == "long" || name == "nul" {
			if r.Effect != Opaque {
				t.Errorf("%s: %s", name, r.Effect)
			}
		}
		if len(r.Commands) > maxCommands {
			t.Errorf("%s: %d commands", name, len(r.Commands))
		}
	}
}

func TestSQL(t *testing.T) {
	for q, want := range map[string]Effect{
		"SELECT 1": ReadOnly, "select * from t where x = 'drop table t'": ReadOnly, "-- drop table t\nselect 1": ReadOnly, "/* drop */ SELECT a FROM b": ReadOnly, "EXPLAIN SELECT 1": ReadOnly, "SHOW TABLES": ReadOnly, `\dt`: ReadOnly,
		"SELECT pg_terminate_backend(3)": Mutate, "SELECT * INTO x FROM y": Mutate, "INSERT INTO t VALUES (1)": Mutate, "CREATE TABLE x (a int)": Mutate, "DELETE FROM t WHERE id = 1": Mutate, "UPDATE t SET a = 1 WHERE id = 2": Mutate, "": ReadOnly,
		"DROP TABLE t": Destroy, "drop database x": Destroy, "TRUNCATE t": Destroy, "DELETE FROM t": Destroy, "UPDATE t SET a = 1": Destroy, "DELETE FROM t WHERE true": Destroy, "DELETE FROM t WHERE 1 = 1": Destroy,
		"ALTER TABLE t DROP COLUMN c": Destroy, "WITH x AS (DELETE FROM t) SELECT 1": Destroy, "DO $$ BEGIN DROP TABLE t; END $$": Destroy, "/*!50000 DROP TABLE t */": Destroy, "GRANT ALL PRIVILEGES ON *.* TO bob": Destroy, "GRANT ALL ON shop.* TO bob": Mutate, "SELECT 1; DROP TABLE t": Destroy, `\! rm x`: Opaque,
	} {
		if got, rule, _ := SQL(q); got != want {
			t.Errorf("%q: %s by %s, want %s", q, got, rule, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, r := range commands(f) {
		f.Add(r.cmd)
	}
	f.Fuzz(func(t *testing.T, src string) {
		a, b := Read(src), Read(src)
		if !reflect.DeepEqual(a, b) {
			t.Fatal("two readings differ")
		}
		if a.Effect == "" || a.Why == "" {
			t.Fatalf("no effect or reason: %+v", a)
		}
		for _, c := range a.Commands {
			if c.Effect.Rank() > a.Effect.Rank() {
				t.Fatalf("%v is stronger than the whole", c.Argv)
			}
			if c.Start > c.End || c.End > len(src) {
				t.Fatalf("span %d–%d of %d", c.Start, c.End, len(src))
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for name, src := range map[string]string{
		"plain":   "ls -la src",
		"usual":   `cd app && grep -rn "total" src test | head -20 && npm test 2>&1 | tail -5`,
		"wrapped": `sudo env A=1 timeout 5 bash -c 'for f in *.log; do rm -rf "$f"; done'`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Read(src)
			}
		})
	}
}
