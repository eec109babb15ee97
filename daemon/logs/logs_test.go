package logs_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/logs"
)

const prompt = "please delete the old invoices of March"

func lines(t *testing.T, say func(*slog.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	say(slog.New(logs.New(logs.New(slog.NewTextHandler(&b, nil)))))
	return b.String()
}

type sly struct{}

func (sly) LogValue() slog.Value { return slog.StringValue(prompt) }

func TestUnknownFieldsAreHidden(t *testing.T) {
	for name, say := range map[string]func(*slog.Logger){
		"unknown field":       func(l *slog.Logger) { l.Info("turn", "prompt", prompt) },
		"unknown one-word":    func(l *slog.Logger) { l.Info("turn", "fact", prompt[:6]) },
		"field of a logger":   func(l *slog.Logger) { l.With("claim", prompt).Info("turn") },
		"group":               func(l *slog.Logger) { l.Info("turn", slog.Group("turn", "turn", prompt)) },
		"known in a group":    func(l *slog.Logger) { l.WithGroup("g").Info("turn", "error", prompt) },
		"id with a sentence":  func(l *slog.Logger) { l.Info("turn", "turn", prompt) },
		"number with text":    func(l *slog.Logger) { l.Info("turn", "at", prompt) },
		"a value that logs":   func(l *slog.Logger) { l.Info("turn", "turn", sly{}) },
		"a key as a carrier":  func(l *slog.Logger) { l.Info("turn", prompt, 1) },
		"struct":              func(l *slog.Logger) { l.Info("turn", "value", struct{ Claim string }{prompt}) },
		"quoted in an error":  func(l *slog.Logger) { l.Warn("turn", "error", errors.New("parse "+strconv.Quote(prompt))) },
		"escaped in an error": func(l *slog.Logger) { l.Warn("turn", "error", `parse "a \" `+prompt+`"`) },
		"JSON in an error":    func(l *slog.Logger) { l.Warn("turn", "error", `the upstream says {"message":"`+prompt+`"}`) },
		"list in an error":    func(l *slog.Logger) { l.Warn("turn", "error", `got [`+prompt+`]`) },
		"open quote":          func(l *slog.Logger) { l.Warn("turn", "error", `parse "`+prompt) },
		"single quotes":       func(l *slog.Logger) { l.Warn("turn", "error", `parse '`+prompt+`'`) },
		"back quotes":         func(l *slog.Logger) { l.Warn("turn", "error", "parse `"+prompt+"`") },
		"typographic quotes":  func(l *slog.Logger) { l.Warn("turn", "error", "parse “"+prompt+"”") },
		"second line":         func(l *slog.Logger) { l.Warn("turn", "error", "failed\n"+prompt) },
		"message":             func(l *slog.Logger) { l.Warn(`Unsolicited response starting with "` + prompt + `"`) },
		"message, two lines":  func(l *slog.Logger) { l.Warn("http: panic serving\n" + prompt) },
		"far behind":          func(l *slog.Logger) { l.Warn("turn", "error", strings.Repeat("x ", 200)+prompt) },
	} {
		got := lines(t, say)
		for _, w := range []string{"please", "invoices", "March"} {
			if strings.Contains(got, w) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if strings.Count(got, "\n") != 1 {
			t.Errorf("%s: not one line: %q", name, got)
		}
	}
}

func TestKnownFieldsComeThrough(t *testing.T) {
	got := lines(t, func(l *slog.Logger) {
		l.Warn("close turn", "turn", "t_01jx", "stage", "gate.decided", "at", 7, "error", errors.New(`the upstream "local" didn't answer: dial tcp 127.0.0.1:1: connection refused`))
	})
	for _, want := range []string{`msg="close turn"`, "turn=t_01jx", "stage=gate.decided", "at=7", `upstream \"local\" didn't answer: dial tcp 127.0.0.1:1`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	got = lines(t, func(l *slog.Logger) { l.Info("took", "at", time.Second, "turn", "") })
	if !strings.Contains(got, "at=1s") {
		t.Error(got)
	}
}

// FuzzText: whatever comes, one bounded line, and no quotation with a space.
func FuzzText(f *testing.F) {
	for _, s := range []string{`a "b c" d`, `{"a`, "“x", "it's 'so'", `"\`, "[[]", "'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := logs.Text(s)
		if strings.ContainsAny(out, "\r\n") || len(out) > 310 {
			t.Fatalf("%q", out)
		}
	})
}

// TestLogSites reads the daemon's source: each line is logged through a logger
// that was handed down, with a message of our own and fields of the list.
func TestLogSites(t *testing.T) {
	sites := 0
	for _, root := range []string{"../../daemon", "../../ipc/ipcserver", "../../ledger", "../../sensors", "../../config"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bench" || d.Name() == "e2e") {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, src, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				where := set.Position(call.Pos())
				from := string(src[set.Position(sel.X.Pos()).Offset:set.Position(sel.X.End()).Offset])
				switch from {
				case "log", "slog":
					switch name := sel.Sel.Name; name {
					case "Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln":
						t.Errorf("%s: %s.%s goes round the door", where, from, name)
					}
				}
				switch sel.Sel.Name {
				case "Debug", "Info", "Warn", "Error":
				default:
					return true
				}
				if !strings.HasSuffix(strings.ToLower(from), "log") || len(call.Args) == 0 {
					return true
				}
				if from == "slog" {
					t.Errorf("%s: the default logger is for what net/http prints", where)
				}
				sites++
				for i := 1; i < len(call.Args); i += 2 {
					lit, ok := call.Args[i].(*ast.BasicLit)
					if !ok {
						t.Errorf("%s: a field's name is written out", where)
						continue
					}
					key, _ := strconv.Unquote(lit.Value)
					if got := lines(t, func(l *slog.Logger) { l.Info("m", key, 1) }); strings.Contains(got, logs.Hidden) {
						t.Errorf("%s: field %q is not on the list: it would be hidden", where, key)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if sites < 10 {
		t.Errorf("only %d log sites were found", sites)
	}
}
