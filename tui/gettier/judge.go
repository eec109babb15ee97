package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
	"gettier.dev/gettierd/tui/words"
)

// judgeAsk is one line of sensors judge --jsonl.
type judgeAsk struct {
	Claim  string                     `json:"claim"`
	Lemma  map[string]json.RawMessage `json:"lemma"`
	Sensor string                     `json:"sensor"`
	Output *string                    `json:"output"`
	Exit   int                        `json:"exit"` // of the recorded run
}

// judgeAnswer is what the turn would have found.
type judgeAnswer struct {
	Verdict  lemma.Verdict `json:"verdict"`
	Reason   string        `json:"reason"`
	Rule     string        `json:"rule"`
	Key      string        `json:"key"`
	Measured string        `json:"measured"`
}

func (a *app) sensorsJudge() *cobra.Command {
	var (
		registry string
		jsonl    bool
		ask      judgeAsk
	)
	cmd := &cobra.Command{
		Use:   "judge --registry FILE (--jsonl | --sensor ID --claim TEXT)",
		Short: "judge claims by recorded output, without a daemon",
		Long: "Holds a claim against output that a sensor printed before, by the same code that judges in a turn.\n" +
			"Nothing runs and nothing has to be approved. With --sensor and --claim the output is read from\n" +
			"standard input. With --jsonl each line of input is {\"claim\", \"lemma\"?, \"sensor\", \"output\", \"exit\"?}\n" +
			"and each line of output {\"verdict\", \"reason\", \"rule\", \"key\", \"measured\"}. A line that cannot be read\n" +
			"is answered by {\"error\", \"line\"}, the rest goes on, and the exit code is 1.",
		Example: "  gettier sensors judge --registry testdata/sensors.yaml --jsonl\n" +
			"  gettier sensors judge --registry testdata/sensors.yaml --sensor proxy.config --claim 'nginx accepts uploads of 25 MB'",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if registry == "" {
				return usage("name the registry: --registry sensors.yaml")
			}
			if jsonl == (ask.Sensor != "" || ask.Claim != "") {
				return usage("say --jsonl, or --sensor and --claim")
			}
			data, err := readSmall(registry)
			if err != nil {
				return &exit{code: exitUsage, err: err}
			}
			reg, faults := spec.Parse(registry, "user", data, verdict.CheckExamples)
			if reg == nil {
				newPrinter(a.err).text(spec.Explain(registry, data, faults), "")
				return &exit{code: exitUsage, err: fmt.Errorf("%s has %s", registry, words.Count(len(faults), "fault", "faults"))}
			}
			j := &judge{run: sensors.NewRunner(sensors.RunnerOptions{}), reg: reg}
			if jsonl {
				bad, err := jsonLines(a.in, a.out, j.line)
				if err != nil {
					return err
				}
				return refusedLines(bad)
			}
			out, err := io.ReadAll(io.LimitReader(a.in, maxJSONLine))
			if err != nil {
				return fmt.Errorf("read output: %w", err)
			}
			text := string(out)
			ask.Output = &text
			got, err := j.judge(ask)
			if err != nil {
				return &exit{code: exitUsage, err: err}
			}
			a.printJudged(got)
			if got.Verdict == lemma.Contradicted {
				return &exit{code: exitFound}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&registry, "registry", "", "the sensors.yaml with the sensors and their judge rules")
	fl.BoolVar(&jsonl, "jsonl", false, "one JSON object a line, in and out")
	fl.StringVar(&ask.Sensor, "sensor", "", "whose output stands on standard input")
	fl.StringVar(&ask.Claim, "claim", "", "what is claimed")
	fl.IntVar(&ask.Exit, "exit", 0, "the exit code of the recorded run")
	return cmd
}

func (a *app) printJudged(r judgeAnswer) {
	p := newPrinter(a.out)
	if a.json {
		p.value(r)
		return
	}
	p.text(string(r.Verdict)+"  "+r.Reason, "")
	if r.Key != "" {
		p.line("  measured %s %s by %s", r.Key, words.Quote(r.Measured), r.Rule)
	}
}

// judge answers from one registry file.
type judge struct {
	run *sensors.Runner
	reg *spec.Registry
}

func (j *judge) line(line []byte) (any, error) {
	var in judgeAsk
	if err := strictJSON(line, &in); err != nil {
		return nil, err
	}
	return j.judge(in)
}

func (j *judge) judge(in judgeAsk) (judgeAnswer, error) {
	s := j.sensor(in.Sensor)
	switch {
	case in.Sensor == "":
		return judgeAnswer{}, errors.New(`no "sensor"`)
	case s == nil:
		return judgeAnswer{}, fmt.Errorf("no sensor %.64q in the registry", in.Sensor)
	case in.Output == nil:
		return judgeAnswer{}, errors.New(`no "output"`)
	}
	l, err := in.premise()
	if err != nil {
		return judgeAnswer{}, err
	}
	rd := j.run.Recorded(s, []byte(*in.Output), in.Exit)
	var r verdict.Result
	if reason, failed := sensors.Failed(rd); failed {
		r = verdict.CouldNotRun(s.ID, "", reason)
	} else {
		r = verdict.Judge(verdict.Claim{Lemma: &l}, s, rd.Evidence)
	}
	return judgeAnswer{r.Verdict, r.Reason, r.Rule, r.Key, r.Measured}, nil
}

func (j *judge) sensor(id string) *spec.Sensor {
	for _, s := range j.reg.Sensors {
		if s.ID == id || s.Qualified() == id {
			return s
		}
	}
	return nil
}

// premise is the lemma as a declaration would have brought it: read and cleaned
// by the same parser. What the line leaves out is a load-bearing belief.
func (in judgeAsk) premise() (lemma.Lemma, error) {
	fields := map[string]any{"provenance": lemma.Believed, "load_bearing": true}
	for k, v := range in.Lemma {
		fields[k] = v
	}
	if in.Claim != "" {
		fields["claim"] = in.Claim
	}
	if _, ok := fields["claim"]; !ok {
		return lemma.Lemma{}, errors.New(`no "claim"`)
	}
	b, err := json.Marshal(map[string]any{"plan_summary": "recorded output", "lemmas": []any{fields}})
	if err != nil {
		return lemma.Lemma{}, fmt.Errorf("read lemma: %w", err)
	}
	d, _, err := lemma.ParseDeclaration(b)
	if err != nil {
		return lemma.Lemma{}, err
	}
	return d.Lemmas[0], nil
}
