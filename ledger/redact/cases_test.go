package redact

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type labelled struct {
	Source  string
	Rule    string
	Kind    string
	Text    string
	Expect  bool `json:"expect_secret"`
	Secrets []string
}

func readCases(t testing.TB, name string) []labelled {
	dir := os.Getenv("GETTIER_CASES")
	if dir == "" {
		t.Skip("GETTIER_CASES names no directory of labelled cases")
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Skip("these cases are not there:", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []labelled
	s := bufio.NewScanner(z)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var c labelled
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Outputs as sensors see them: nothing may leak, and nothing harmless may go.
func TestOwnOutputs(t *testing.T) {
	e := New()
	caught, secrets, wrong, harmless := 0, 0, 0, 0
	for _, c := range readCases(t, "sensor_outputs_own.dev.jsonl.gz") {
		out, hits := e.String(c.Text)
		if !c.Expect {
			harmless++
			if len(hits) > 0 {
				wrong++
				t.Logf("%s: took %s out of something harmless", c.Kind, hits[0].Rule)
				if testing.Verbose() {
					t.Log(c.Text[:min(len(c.Text), 200)], "→", out[:min(len(out), 200)])
				}
			}
			continue
		}
		secrets++
		leaked := len(hits) == 0
		for _, s := range c.Secrets {
			leaked = leaked || strings.Contains(out, s)
		}
		if leaked {
			t.Logf("%s: leaked: %s", c.Kind, out)
		} else {
			caught++
		}
	}
	t.Logf("caught %d of %d (%.1f %%), wrong %d of %d", caught, secrets, 100*float64(caught)/float64(secrets), wrong, harmless)
	if wrong > 0 {
		t.Errorf("%d harmless texts were changed", wrong)
	}
	if float64(caught) < 0.99*float64(secrets) {
		t.Errorf("only %d of %d were caught", caught, secrets)
	}
}

// Cases of other scanners' tests. Many of their negatives are about one rule
// only and hold a secret for any other eye, so the bound on them is loose.
func TestForeignCases(t *testing.T) {
	e := New()
	caught, secrets, wrong, harmless := 0, 0, 0, 0
	for _, c := range readCases(t, "secrets_mit.dev.jsonl.gz") {
		out, hits := e.String(c.Text)
		if !c.Expect {
			harmless++
			if len(hits) > 0 {
				wrong++
				t.Logf("FP %s %s: %.160q → %.160q", c.Rule, hits[0].Rule, c.Text, out)
			}
			continue
		}
		secrets++
		if len(hits) > 0 {
			caught++
		} else {
			t.Logf("FN %s: %.200q", c.Rule, c.Text)
		}
	}
	t.Logf("caught %d of %d (%.1f %%), hit %d of %d labelled harmless", caught, secrets, 100*float64(caught)/float64(secrets), wrong, harmless)
	if float64(caught) < 0.95*float64(secrets) {
		t.Errorf("only %d of %d were caught", caught, secrets)
	}
}
