package symbols

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func nothing(string) (string, bool) { return "", false }

// TestCases reads testdata/cases.txt.
func TestCases(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, project := range strings.Split(string(data), "\n== ")[1:] {
		title, body, _ := strings.Cut(project, "\n")
		t.Run(title, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			w := Where{Top: top, Cwd: top, Env: nothing}
			var file *os.File
			end := func() {
				if file != nil {
					file.Close()
				}
				file = nil
			}
			defer end()
			for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
				symbol, want, isCase := strings.Cut(line, " => ")
				switch {
				case strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --"):
					end()
					path := filepath.Join(top, strings.Trim(line, "- "))
					if strings.HasPrefix(line, "-- .") {
						path = filepath.Join(top, strings.TrimSuffix(strings.TrimPrefix(line, "-- "), " --"))
					}
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if file, err = os.Create(path); err != nil {
						t.Fatal(err)
					}
				case strings.HasPrefix(line, "$"):
					end()
					f := strings.Fields(line)
					if f[0] == "$cwd" {
						w.Cwd = filepath.Join(top, f[1])
						continue
					}
					at := filepath.Join(top, f[1])
					if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(f[2], at)); err != nil {
						t.Fatal(err)
					}
				case isCase && !strings.ContainsAny(line, "{}()'") || strings.HasPrefix(line, "yaml.parse()"):
					end()
					n++
					a := Resolve(t.Context(), w, symbol, "")
					got := a.Presence.String()
					if a.Nearest != "" {
						got += " " + a.Nearest
					}
					if got != strings.TrimSpace(want) {
						t.Errorf("%s: %s, want %s (%+v)", symbol, got, want, a)
					}
					if a.Presence == Unknown && a.Why == "" {
						t.Errorf("%s: unknown, and nothing says why: %+v", symbol, a)
					}
				case file != nil:
					fmt.Fprintln(file, line)
				}
			}
		})
	}
	if n < 85 {
		t.Errorf("only %d cases were read", n)
	}
}

// The module that this test belongs to, its requirements in the module cache and
// the library of the go that runs it.
func TestThisModule(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory, so no module cache")
	}
	w := Where{Top: top, Cwd: filepath.Join(top, "sensors"), Home: home, Env: os.LookupEnv}
	for symbol, want := range map[string]string{
		"golang.org/x/mod/modfile.ParseLax":             "exists",
		"golang.org/x/mod/modfile.ParseLenient":         "absent",
		"github.com/tidwall/gjson.Result.Exists":        "exists",
		"github.com/tidwall/gjson.Result.Exist":         "absent",
		"gjson.GetBytes":                                "exists",
		"strings.CutPrefix":                             "exists",
		"strings.Cut" + "Middle":                        "absent", // the word itself must not stand in the project
		"http.ListenAndServe":                           "exists",
		"http.Client.Fet" + "chh":                       "absent",
		"log.Fatal":                                     "exists",
		"net/rpc.Dial" + "Twice":                        "absent",
		"trace.Start" + "Twice":                         "unknown", // of runtime/trace, which is not known by that name
		"gettier.dev/gettierd/sensors/symbols.Resolve":  "exists",
		"gettier.dev/gettierd/sensors/symbols.Dissolve": "absent",
		"github.com/nobody/nothing.Thing":               "unknown",
	} {
		a := Resolve(t.Context(), w, symbol, "go")
		if strings.HasPrefix(a.Why, "the module is not in the cache") || strings.Contains(a.Why, "standard library") || strings.HasPrefix(a.Why, "no package strings") || strings.HasPrefix(a.Why, "no package http") {
			t.Logf("%s: %s", symbol, a.Why)
			continue
		}
		if a.Presence.String() != want {
			t.Errorf("%s: %v, want %s (%+v)", symbol, a.Presence, want, a)
		}
	}
}

// A name that the package says somewhere is never absent, whatever its files
// look like.
func FuzzNode(f *testing.F) {
	f.Add("exports.parse = 1; module.exports = { a, b: c }", "parse")
	f.Add("export * from \"inner\"\nexport {x as y}", "y")
	f.Fuzz(func(t *testing.T, text, name string) {
		if !jsIdentifier.MatchString(name) || len(name) > 40 || !hasWord(text, name) {
			return // says nothing here
		}
		top := t.TempDir()
		dir := filepath.Join(top, "node_modules", "p")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600), os.WriteFile(filepath.Join(dir, "index.js"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if a := Resolve(t.Context(), Where{Top: top, Cwd: top, Env: nothing}, "p."+name, "node"); a.Presence == Absent {
			t.Fatalf("%+v", a)
		}
	})
}

// What many files cost is bounded.
func TestBounds(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "node_modules", "big")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "package.json"), 2); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxFile+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	if a := Resolve(t.Context(), Where{Top: top, Cwd: top, Env: nothing}, "big.name", ""); a.Presence != Unknown {
		t.Errorf("a file that is too large was taken for the whole package: %+v", a)
	}
}

func BenchmarkNode(b *testing.B) {
	top := b.TempDir()
	dir := filepath.Join(top, "node_modules", "p")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600)); err != nil {
		b.Fatal(err)
	}
	for i := range 200 {
		text := strings.Repeat("exports.name"+fmt.Sprint(i)+" = function () { return 1 }\n", 100)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)+".js"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	for b.Loop() {
		if a := Resolve(b.Context(), Where{Top: top, Cwd: top, Env: nothing}, "p.other", "node"); a.Presence != Absent {
			b.Fatal(a)
		}
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/look-up")
}
