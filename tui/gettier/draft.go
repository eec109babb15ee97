package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) sensorsSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "the JSON Schema of sensors.yaml, for editors",
		Long: "Prints the schema (draft-07). Editors complete and check a registry that begins with the line\n" +
			"  " + spec.Modeline + "\n" +
			"when the schema lies beside it under that name.",
		Example: "  gettier sensors schema",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := io.WriteString(a.out, spec.Schema()); err != nil {
				return fmt.Errorf("print schema: %w", err)
			}
			return nil
		},
	}
}

func (a *app) sensorsNew() *cobra.Command {
	var file, recorded string
	cmd := &cobra.Command{
		Use:   "new ID [--to FILE] -- COMMAND…",
		Short: "write a sensor from a command",
		Long: "Runs the command once, as the sensor would, and writes a definition with the values that its output\n" +
			"holds. With --output the output is read from a file (- is standard input) and nothing runs. Without\n" +
			"--to the definition is printed; with it, it is put into that registry, which is made when it is not\n" +
			"there. Nothing is approved.",
		Example: "  gettier sensors new time.now -- date +%Z\n  gettier sensors new proxy.limit --output - -- nginx -T",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := drafted(args[0], args[1:])
			if err != nil {
				return err
			}
			var out []byte
			switch recorded {
			case "":
				wd, err := here()
				if err != nil {
					return err
				}
				rd := sensors.NewRunner(sensors.RunnerOptions{Confine: true}).Run(cmd.Context(), []sensors.Request{{Sensor: s, Root: wd, Cwd: wd, Draft: true}})[0]
				if _, failed := sensors.Failed(rd); failed {
					return &exit{code: exitFound, err: errors.New(sensors.CouldNotRun(rd))}
				}
				out = rd.Output
			case "-":
				if out, err = io.ReadAll(io.LimitReader(a.in, int64(s.MaxOutputBytes))); err != nil {
					return fmt.Errorf("read output: %w", err)
				}
			default:
				if out, err = readSmall(recorded); err != nil {
					return &exit{code: exitUsage, err: err}
				}
			}
			entry := entryOf(s, extract.Suggest(out))
			if file == "" {
				newPrinter(a.out).text(spec.Modeline+"\nversion: 1\nsensors:\n"+entry, "")
				return nil
			}
			if err := a.putEntry(file, s.ID, entry); err != nil {
				return err
			}
			p := newPrinter(a.out)
			p.line("%s: %s written. Next:", file, s.ID)
			p.line("  gettier sensors lint %s", file)
			p.line("  gettier sensors try %s --draft", s.ID)
			p.line("  gettier sensors approve %s", s.ID)
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "to", "", "the registry to put it into")
	cmd.Flags().StringVar(&recorded, "output", "", "read the command's output from this file instead of running it")
	return cmd
}

// drafted is a sensor of this id and command, checked as a file's would be.
func drafted(id string, argv []string) (*spec.Sensor, error) {
	reg, faults := spec.Parse("new", "user", []byte("version: 1\nsensors:\n"+entryOf(&spec.Sensor{ID: id, Argv: literals(argv)}, nil)))
	if reg == nil {
		what := faults[0].What
		if h := faults[0].Hint; h != "" {
			what += " (" + h + ")"
		}
		return nil, usage("%s", what)
	}
	return reg.Sensors[0], nil
}

func literals(argv []string) []spec.Word {
	out := make([]spec.Word, len(argv))
	for i, w := range argv {
		out[i] = spec.Word{Text: w}
	}
	return out
}

// entryOf spells a sensor as it stands in a registry.
func entryOf(s *spec.Sensor, values []spec.Extract) string {
	var b strings.Builder
	argv := make([]string, len(s.Argv))
	for i, w := range s.Argv {
		argv[i] = strconv.Quote(w.Text)
	}
	fmt.Fprintf(&b, "  - id: %s\n    description: %s\n    command: [%s]\n", strconv.Quote(s.ID), strconv.Quote("what "+s.ID+" measures"), strings.Join(argv, ", "))
	b.WriteString("    effects: none                        # it only reads; leave it out when it changes anything\n")
	if len(values) > 0 {
		b.WriteString("    extract:                             # keep what a claim could be about\n")
		for _, e := range values {
			parts := []string{"name: " + strconv.Quote(e.Name)}
			if e.JSON != "" {
				parts = append(parts, "json: "+strconv.Quote(e.JSON))
			}
			if e.Regex != "" {
				parts = append(parts, "regex: '"+e.Regex+"'")
			}
			if e.Table != nil {
				t := "table: { column: " + strconv.Quote(e.Table.Column)
				for column, is := range e.Table.Where { // one at most
					t += ", where: { " + strconv.Quote(column) + ": " + strconv.Quote(is) + " }"
				}
				parts = append(parts, t+" }")
			}
			if e.Which != "" {
				parts = append(parts, "which: "+e.Which)
			}
			if e.TypeSet {
				parts = append(parts, "type: "+string(e.Type))
			}
			b.WriteString("      - { " + strings.Join(parts, ", ") + " }\n")
		}
	}
	return b.String()
}

// putEntry puts an entry behind the last sensor of a registry. The file is
// changed only when the result is a registry without faults.
func (a *app) putEntry(file, id, entry string) error {
	old, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte(spec.Modeline+"\nversion: 1\nsensors:\n"), nil
	}
	if err != nil {
		return &exit{code: exitUsage, err: err}
	}
	text, ok := insert(string(old), entry)
	if !ok {
		return &exit{code: exitUsage, err: fmt.Errorf("%s has no sensors: list that could take an entry", file), hint: "leave --to out and put what is printed where it belongs"}
	}
	reg, faults := spec.Parse(file, "user", []byte(text), verdict.CheckExamples)
	if reg == nil {
		newPrinter(a.err).text(spec.Explain(file, []byte(text), faults), "")
		return &exit{code: exitFound, err: fmt.Errorf("%s would have %s with %s, and is left as it was", file, words.Count(len(faults), "fault", "faults"), id)}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write registry: %w", err)
	}
	return nil
}

// insert puts entry at the end of the block of sensors:, which is a list with
// two blanks of indent or has no entries yet.
func insert(text, entry string) (string, bool) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	lines := strings.SplitAfter(text, "\n")
	at := -1
	for i, l := range lines {
		if strings.TrimRight(l, " \r\n") == "sensors:" {
			at = i + 1
			break
		}
	}
	if at < 0 {
		return "", false
	}
	end := at
	for i := at; i < len(lines); i++ {
		l := lines[i]
		if strings.TrimSpace(l) == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if !strings.HasPrefix(l, "  ") {
			break
		}
		end = i + 1
	}
	return strings.Join(lines[:end], "") + entry + strings.Join(lines[end:], ""), true
}
