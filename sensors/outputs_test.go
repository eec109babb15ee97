package sensors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/verdict"
)

// TestOutputs holds claims against whole outputs, see testdata/outputs.
func TestOutputs(t *testing.T) {
	files, err := filepath.Glob("testdata/outputs/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	rows := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
			name, rest, _ := strings.Cut(block, "\n")
			t.Run(name, func(t *testing.T) { rows += outputs(t, rest) })
		}
	}
	t.Logf("%d claims", rows)
}

func outputs(t *testing.T, block string) (rows int) {
	t.Helper()
	definition, rest, ok := strings.Cut(block, "\n-- output")
	kind, rest, ok2 := strings.Cut(rest, "\n")
	output, claims, ok3 := strings.Cut("\n"+rest, "\n-- claims\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("no output or no claims in %.40q", block)
	}
	output = strings.TrimPrefix(output, "\n") + "\n"
	switch strings.TrimSpace(kind) {
	case "crlf":
		output = "\ufeff" + strings.ReplaceAll(output, "\n", "\r\n")
	case "escaped":
		output = strings.ReplaceAll(output, `\x1b`, "\x1b")
	}
	s := parse(t, testDir(t), "- id: probe\n  command: \"true\"\n  effects: none\n  "+strings.ReplaceAll(definition, "\n", "\n  "))[0]
	rd := NewRunner(RunnerOptions{}).Recorded(s, []byte(output), 0)
	if reason, failed := Failed(rd); failed {
		t.Fatalf("could not run: %s %s", reason, rd.Detail)
	}
	for line := range strings.Lines(claims) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rows++
		f := strings.SplitN(line, " | ", 3)
		l := lemma.Lemma{Claim: f[1], Provenance: lemma.Believed, LoadBearing: true}
		if len(f) > 2 {
			fo := strings.SplitN(strings.TrimPrefix(f[2], "fo "), " ", 3)
			d := json.NewDecoder(strings.NewReader(fo[2]))
			d.UseNumber()
			var value any
			if err := d.Decode(&value); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			l.FalsifyingObservation = &lemma.FalsifyingObservation{Sensor: "probe", Key: fo[0], Operator: lemma.Operator(fo[1]), Value: value}
		}
		got := verdict.Judge(verdict.Claim{Lemma: &l}, s, rd.Evidence)
		want, reason, _ := strings.Cut(f[0], " ")
		if string(got.Verdict) != want || reason != "" && got.Reason != reason {
			t.Errorf("%s: %s (%s, %s: %s is %q)", line, got.Verdict, got.Reason, got.Rule, got.Key, got.Measured)
		}
	}
	return rows
}
