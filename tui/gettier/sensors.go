package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) sensorsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sensors", Short: "what can be measured here",
		Example: "  gettier sensors list",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.sensorsList(), a.sensorsTry(), a.sensorsNew(), a.sensorsLint(), a.sensorsJudge(), a.sensorsSchema(), a.sensorsDiff(), a.sensorsApprove(), a.sensorsPacks())
	return cmd
}

// project is the registered root that the working directory lies in, "" for none.
func (a *app) project(cmd *cobra.Command, c *ipc.Client) (string, error) {
	wd, err := here()
	if err != nil {
		return "", err
	}
	l, err := c.Projects(cmd.Context())
	if err != nil {
		return "", err
	}
	name, root := "", ""
	for _, p := range l.Items {
		if (wd == p.Root || strings.HasPrefix(wd, p.Root+"/")) && len(p.Root) > len(root) {
			name, root = p.Name, p.Root
		}
	}
	return name, nil
}

// allSensors reads every page.
func allSensors(cmd *cobra.Command, c *ipc.Client, q ipc.SensorQuery) (ipc.List[ipc.Sensor], error) {
	q.Limit = ipc.MaxLimit
	all, err := c.Sensors(cmd.Context(), q)
	for next := all.NextCursor; err == nil && next != ""; {
		q.Cursor = next
		var l ipc.List[ipc.Sensor]
		l, err = c.Sensors(cmd.Context(), q)
		all.Items, next = append(all.Items, l.Items...), l.NextCursor
	}
	all.NextCursor = ""
	return all, err
}

func (a *app) sensorsList() *cobra.Command {
	var q ipc.SensorQuery
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "every sensor with its state and last reading",
		Example: "  gettier sensors list\n  gettier sensors list --only pending --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			l, err := allSensors(cmd, c, q)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(l)
				return nil
			}
			if len(l.Items) == 0 {
				p.line("no sensors: describe one in sensors.yaml (gettier sensors lint says where it is looked for)")
				return nil
			}
			rows := [][]string{{"STATE", "SENSOR", "FROM", "LAST", "MEASURES"}}
			for _, s := range l.Items {
				what := strings.Join(s.Verifies, ", ")
				if s.Reason != "" {
					what = s.Reason
				}
				rows = append(rows, []string{standing(s), name(s), place(s), a.last(s.Last), what})
			}
			p.table(rows)
			return nil
		},
	}
	cmd.Flags().StringVar(&q.Project, "project", "", "hide other projects' sensors")
	cmd.Flags().StringVar(&q.State, "only", "", "approved, pending, changed, removed, broken or backed_off")
	return cmd
}

func name(s ipc.Sensor) string {
	if s.Kind != "" && s.Kind != "sensor" {
		return s.Kind + " " + s.ID
	}
	return words.Or(s.ID, "(whole file)")
}

func place(s ipc.Sensor) string {
	if s.Line > 0 {
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return words.Or(s.File, s.Level)
}

// standing says a state with a glyph and a word.
func standing(s ipc.Sensor) string {
	glyph := map[string]string{ipc.SensorApproved: "✓", ipc.SensorPending: "?", ipc.SensorChanged: "?", ipc.SensorRemoved: "?",
		ipc.SensorBroken: "✗", ipc.SensorBackedOff: "◌"}[s.State]
	return words.Or(glyph, "·") + " " + s.State
}

func (a *app) last(r *ipc.Reading) string {
	switch {
	case r == nil:
		return "never"
	case r.Reason != "":
		return r.Reason + "  " + a.stamp(r.Invocation.StartedAt)
	case len(r.Values) > 0:
		return r.Values[0].Key + " = " + r.Values[0].Text + "  " + a.stamp(r.Invocation.StartedAt)
	}
	return "ran  " + a.stamp(r.Invocation.StartedAt)
}

func (a *app) sensorsTry() *cobra.Command {
	var (
		t      ipc.SensorTry
		params []string
	)
	cmd := &cobra.Command{
		Use:   "try SENSOR",
		Short: "run one sensor and show everything it gave",
		Long: "Runs a sensor once and prints its command, output, values and, with --claim, the verdict.\n" +
			"A sensor that nobody approved yet runs only with --draft, and only for a person at a terminal.",
		Example: "  gettier sensors try proxy.config\n  gettier sensors try proxy.config --claim 'nginx accepts uploads of 25 MB'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Params = map[string]string{}
			for _, kv := range params {
				k, v, ok := strings.Cut(kv, "=")
				if !ok || k == "" {
					return usage("--param %q: write NAME=VALUE", kv)
				}
				t.Params[k] = v
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if t.Project == "" {
				if t.Project, err = a.project(cmd, c); err != nil {
					return err
				}
			}
			if t.Project != "" && t.Cwd == "" {
				if t.Cwd, err = a.cwdIn(cmd, c, t.Project); err != nil {
					return err
				}
			}
			r, err := c.TrySensor(cmd.Context(), args[0], t)
			if err != nil {
				return err
			}
			if a.json {
				newPrinter(a.out).value(r)
			} else {
				a.printTried(r)
			}
			if r.Reading.Reason != "" || r.Judged != nil && r.Judged.Verdict == lemma.Contradicted {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&params, "param", nil, "NAME=VALUE of a parameter, once each")
	fl.StringVar(&t.Claim, "claim", "", "a claim to judge by the reading")
	fl.StringVar(&t.Project, "project", "", "registered project to run in (default: the one you stand in)")
	fl.BoolVar(&t.Draft, "draft", false, "run it although it is not approved")
	return cmd
}

// cwdIn is the working directory when it lies in the project, else "".
func (a *app) cwdIn(cmd *cobra.Command, c *ipc.Client, project string) (string, error) {
	in, err := a.project(cmd, c)
	if err != nil || in != project {
		return "", err
	}
	return here()
}

func (a *app) printTried(r ipc.SensorTried) {
	p := newPrinter(a.out)
	inv := r.Reading.Invocation
	p.line("%s  %s", r.Sensor.Qualified, r.Sensor.State)
	p.line("ran       %s", words.Argv(inv.Argv))
	p.line("in        %s  sandbox %s", inv.Cwd, words.Or(inv.Sandbox, "none"))
	p.line("took      %s, exit %d", words.Millis(inv.DurationMS), inv.ExitCode)
	if r.Reading.Reason != "" {
		p.line("could not run: %s  %s", r.Reading.Reason, r.Reading.Detail)
	}
	for _, h := range r.Redacted {
		p.line("redacted  %s by rule %s", words.Count(h.Count, "secret", "secrets"), h.Rule)
	}
	if r.Output != "" {
		p.line("output")
		p.text(r.Output, "  │ ")
		if r.Truncated {
			p.line("  … cut")
		}
	}
	if len(r.Reading.Values) > 0 {
		rows := [][]string{}
		for _, v := range r.Reading.Values {
			text := words.Quote(v.Text)
			if v.Problem != "" {
				text = v.Problem
			}
			rows = append(rows, []string{"  " + v.Key, text, v.Type, v.Place})
		}
		p.line("values")
		p.table(rows)
	}
	if len(r.Categories) > 0 {
		p.line("answers   %s", strings.Join(r.Categories, ", "))
	}
	if j := r.Judged; j != nil {
		if r.Matches != "" {
			p.line("matched   %s", r.Matches)
		}
		p.line("verdict   %s  %s", string(j.Verdict), j.Reason)
		if j.Measured != "" {
			p.line("          measured %s %s, claimed %s %s", j.Key, words.Quote(j.Measured), j.Operator, words.Quote(j.Claimed))
		}
		if j.Rule != "" {
			p.line("          by %s", j.Rule)
		}
	}
	if r.Suggestion != "" {
		p.line("no judge rule reads this. Add:")
		p.text(r.Suggestion, "  ")
	}
}

// linted is one file's result.
type linted struct {
	File     string         `json:"file"`
	OK       bool           `json:"ok"`
	Sensors  int            `json:"sensors"`
	Premises int            `json:"premises"`
	Hash     string         `json:"hash,omitempty"`
	Problems []spec.Problem `json:"problems"`
	Warnings []spec.Problem `json:"warnings"`
}

func (a *app) sensorsLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint [FILE…]",
		Short: "check sensors.yaml files, without a daemon",
		Long: "Checks form, commands, parameters, extraction and the judge rules with their examples.\n" +
			"Without files: your own sensors.yaml and .gettier/sensors.yaml of the directory you stand in.",
		Example: "  gettier sensors lint\n  gettier sensors lint testdata/sensors.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			given := len(args) > 0
			if !given {
				l, err := a.layout()
				if err != nil {
					return err
				}
				args = []string{l.Sensors, filepath.Join(".gettier", "sensors.yaml")}
			}
			p := newPrinter(a.out)
			results, bad := []linted{}, false
			for _, file := range args {
				data, err := readSmall(file)
				if !given && errors.Is(err, fs.ErrNotExist) {
					if !a.json {
						p.line("%s: not there", file)
					}
					continue
				}
				if err != nil {
					return &exit{code: exitUsage, err: err}
				}
				r := lint(file, data)
				results = append(results, r)
				bad = bad || !r.OK
				if a.json {
					continue
				}
				if len(r.Problems)+len(r.Warnings) > 0 {
					p.text(spec.Explain(file, data, slices.Concat(r.Problems, r.Warnings)), "")
				}
				if r.OK {
					p.line("%s: %s, %s: good", file, words.Count(r.Sensors, "sensor", "sensors"), words.Count(len(r.Warnings), "warning", "warnings"))
				} else {
					p.line("%s: %s", file, words.Count(len(r.Problems), "fault", "faults"))
				}
			}
			if a.json {
				p.value(results)
			}
			if bad {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
}

// lint parses a file the way the daemon would, and adds what only costs sleep:
// categories that no claim can reach.
func lint(file string, data []byte) linted {
	reg, problems := spec.Parse(file, "user", data, verdict.CheckExamples)
	r := linted{File: file, OK: reg != nil, Problems: problems, Warnings: []spec.Problem{}}
	if reg == nil {
		return r
	}
	r.Problems = []spec.Problem{}
	if problems := verdict.CheckPremises(reg); len(problems) > 0 {
		r.OK, r.Problems = false, problems
	}
	r.Sensors, r.Premises, r.Hash = len(reg.Sensors), len(reg.Premises), reg.Hash
	r.Warnings = append(r.Warnings, reg.Warnings...)
	for _, s := range reg.Sensors {
		r.Warnings = append(r.Warnings, verdict.Unreachable(s, reg.Matching)...)
	}
	return r
}

// readSmall reads a registry file; one that is too large is refused unread. A pipe
// that nobody writes to is empty rather than waited for.
func readSmall(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, spec.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	return b, nil // one byte too many is a fault that spec.Parse names
}

// waiting are the definitions that an approval would settle.
func waiting(s ipc.Sensor) bool {
	switch s.State {
	case ipc.SensorPending, ipc.SensorChanged, ipc.SensorRemoved:
		return s.ID != ""
	}
	return false
}

func (a *app) sensorsDiff() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:     "diff [SENSOR…]",
		Short:   "what an approval would change",
		Example: "  gettier sensors diff\n  gettier sensors diff proxy.config",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			picked, err := a.pick(cmd, c, args, project, len(args) == 0, true)
			if err != nil {
				return err
			}
			diffs, err := a.diffs(cmd, c, picked, project)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(diffs)
				return nil
			}
			if len(diffs) == 0 {
				p.line("nothing waits for approval")
			}
			for _, d := range diffs {
				p.text(d.Text, "")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "hide other projects' sensors")
	return cmd
}

func (a *app) diffs(cmd *cobra.Command, c *ipc.Client, picked []ipc.Sensor, project string) ([]ipc.SensorDiff, error) {
	out := []ipc.SensorDiff{}
	for _, s := range picked {
		d, err := c.SensorDiff(cmd.Context(), s.Qualified, project)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// pick finds the waiting definitions that are meant: by id or qualified id, or
// all; projects' ones are part of all only for looking.
func (a *app) pick(cmd *cobra.Command, c *ipc.Client, ids []string, project string, all, withProjects bool) ([]ipc.Sensor, error) {
	l, err := allSensors(cmd, c, ipc.SensorQuery{Project: project})
	if err != nil {
		return nil, err
	}
	var out []ipc.Sensor
	if all {
		for _, s := range l.Items {
			if waiting(s) && (withProjects || !strings.HasPrefix(s.Level, "project/")) {
				out = append(out, s)
			}
		}
		return out, nil
	}
	for _, id := range ids {
		var hits, settled []ipc.Sensor
		for _, s := range l.Items {
			if s.Qualified != id && s.ID != id && s.Qualified != s.Level+"/"+id {
				continue
			}
			if waiting(s) {
				hits = append(hits, s)
			} else {
				settled = append(settled, s)
			}
		}
		switch {
		case len(hits) == 1:
			out = append(out, hits[0])
		case len(hits) > 1:
			var names []string
			for _, h := range hits {
				names = append(names, h.Qualified)
			}
			return nil, usage("%s: several are called so: %s", id, strings.Join(names, ", "))
		case len(settled) > 0:
			return nil, usage("%s is %s, it does not wait for approval", id, settled[0].State)
		default:
			return nil, usage("no sensor is called %s", id)
		}
	}
	return out, nil
}

func (a *app) sensorsApprove() *cobra.Command {
	var (
		project  string
		all, yes bool
	)
	cmd := &cobra.Command{
		Use:   "approve SENSOR… | --all",
		Short: "let sensors run as they now stand in their files",
		Long: "Shows what would change and asks. What is approved is exactly what was shown: if a file\n" +
			"changes meanwhile, the approval fails. --all takes your own sensors.yaml; those of a project are\n" +
			"named one by one. Only a person at a terminal can approve.",
		Example: "  gettier sensors approve proxy.config\n  gettier sensors approve --all --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage("name the sensors, or say --all")
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			picked, err := a.pick(cmd, c, args, project, all, false)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if len(picked) == 0 {
				if a.json {
					p.value(ipc.SensorsApproved{Approved: []string{}})
					return nil
				}
				p.line("nothing of your own waits for approval")
				return nil
			}
			diffs, err := a.diffs(cmd, c, picked, project)
			if err != nil {
				return err
			}
			var ap ipc.SensorApproval
			for _, d := range diffs {
				if !a.json {
					p.text(d.Text, "")
				}
				ap.Sensors = append(ap.Sensors, ipc.SensorPin{Qualified: d.Qualified, Hash: d.Hash})
			}
			if !yes {
				if err := a.confirm(fmt.Sprintf("Approve %s?", words.Count(len(ap.Sensors), "definition", "definitions"))); err != nil {
					return err
				}
			}
			done, err := c.ApproveSensors(cmd.Context(), ap)
			if err != nil {
				return err
			}
			if a.json {
				p.value(done)
				return nil
			}
			p.line("approved: %s", strings.Join(done.Approved, ", "))
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&project, "project", "", "hide other projects' sensors")
	fl.BoolVar(&all, "all", false, "everything in your own files that waits")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks a person; anything but y is no.
func (a *app) confirm(question string) error {
	if _, ok := terminal(a.in); !ok {
		return &exit{code: exitRefused, err: errors.New("nobody is there to ask"), hint: "run it in a terminal, or add --yes"}
	}
	q := newPrinter(a.err)
	q.w.WriteString(question + " [y/N] ")
	q.flush()
	answer, err := bufio.NewReader(io.LimitReader(a.in, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exit{code: exitRefused, err: errors.New("not done")}
}
