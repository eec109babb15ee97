package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ledger/redact"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

// finding is one secret of a text: the rule that knew it, and where it stood,
// in bytes of the text's UTF-8, end exclusive.
type finding struct {
	Rule  string `json:"rule"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// redactedText answers one line of redact --jsonl.
type redactedText struct {
	Text     string    `json:"text"`
	Findings []finding `json:"findings"`
}

func (a *app) redactCommand() *cobra.Command {
	var jsonl, quiet bool
	cmd := &cobra.Command{
		Use:   "redact",
		Short: "take secrets out of text, without a daemon",
		Long: "Copies standard input to standard output without its secrets, by the same rules that the daemon\n" +
			"applies before it writes anything; a line on standard error says how many were taken out. Text is\n" +
			"held back for 80 KiB, because a secret may still begin there.\n" +
			"With --jsonl each line of input is {\"text\": …} and each line of output\n" +
			"{\"text\": redacted, \"findings\": [{\"rule\", \"start\", \"end\"}]}, places in bytes of the given text's UTF-8.\n" +
			"A line that cannot be read is answered by {\"error\", \"line\"}, the rest goes on, and the exit code is 1.",
		Example: "  gettier redact\n  gettier redact --jsonl",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e := redact.New()
			if jsonl {
				bad, err := jsonLines(a.in, a.out, func(line []byte) (any, error) { return redactLine(e, line) })
				if err != nil {
					return err
				}
				return refusedLines(bad)
			}
			out := a.out
			var shown *cleanWriter
			if _, tty := terminal(a.out); tty {
				shown = &cleanWriter{w: a.out}
				out = shown
			}
			s := e.NewStream(out)
			if _, err := io.Copy(s, a.in); err != nil {
				return fmt.Errorf("redact: %w", err)
			}
			if err := s.Close(); err != nil {
				return fmt.Errorf("redact: %w", err)
			}
			if shown != nil {
				if err := shown.end(); err != nil {
					return fmt.Errorf("redact: %w", err)
				}
			}
			if hits := s.Hits(); len(hits) > 0 && !quiet {
				newPrinter(a.err).line("gettier: redacted %s", tallied(hits))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "one JSON object a line, in and out")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not say on standard error what was taken out")
	return cmd
}

func redactLine(e *redact.Engine, line []byte) (any, error) {
	var in struct {
		Text *string `json:"text"`
	}
	if err := strictJSON(line, &in); err != nil {
		return nil, err
	}
	if in.Text == nil {
		return nil, errors.New(`no "text"`)
	}
	text, hits := e.String(*in.Text)
	out := redactedText{Text: text, Findings: []finding{}}
	for _, h := range hits {
		for _, s := range h.Spans {
			out.Findings = append(out.Findings, finding{h.Rule, s.Start, s.End})
		}
	}
	slices.SortFunc(out.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Rule, b.Rule))
	})
	return out, nil
}

// tallied says what was taken out: 3 secrets (jwt 1, password 2).
func tallied(hits []redact.Hit) string {
	n := 0
	parts := make([]string, len(hits))
	for i, h := range hits {
		n += h.Count
		parts[i] = fmt.Sprintf("%s %d", h.Rule, h.Count)
	}
	return words.Count(n, "secret", "secrets") + " (" + strings.Join(parts, ", ") + ")"
}

// cleanWriter shows foreign text on a terminal, line by line.
type cleanWriter struct {
	w    io.Writer
	rest []byte
}

func (c *cleanWriter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	cut := bytes.LastIndexByte(c.rest, '\n') + 1
	if cut == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(c.w, clean.Text(string(c.rest[:cut])))
	c.rest = append(c.rest[:0], c.rest[cut:]...)
	return len(p), err
}

// end shows a last line without an end.
func (c *cleanWriter) end() error {
	if len(c.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(c.w, clean.Text(string(c.rest))+"\n")
	return err
}
