package verdict

import (
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// A suggested line is one that the loader takes, and it judges the claim.
func TestSuggest(t *testing.T) {
	for _, tc := range []struct {
		claim, key, text string
		t                spec.Type
		want             lemma.Verdict
	}{
		{"the production database is Postgres 14", "server_version", "15.3", spec.Version, lemma.Contradicted},
		{"the production database is Postgres 14", "server_version", "14.11", "", lemma.Confirmed},
		{"nginx accepts uploads of 25 MB", "limit", "20m", spec.Bytes, lemma.Contradicted},
		{"the gateway waits for 30 seconds", "time_out", "60s", spec.Duration, lemma.Contradicted},
		{"the pool has 10 connections", "pool-size", "10", "", lemma.Confirmed},
	} {
		s := sensor("x.y")
		ev := spec.Evidence{Values: []spec.Value{{Key: "note", Text: "hello"}, {Key: tc.key, Text: tc.text, Type: tc.t, TypeSet: tc.t != ""}}}
		line, ok := Suggest(tc.claim, s, ev)
		if !ok {
			t.Errorf("%q: no suggestion", tc.claim)
			continue
		}
		file := "version: 1\nsensors:\n  - id: x.y\n    description: d\n    command: [true]\n    extract: [note, " + yamlName(tc.key) + "]\n    verifies: [a.b]\n    judge:\n      " + line + "\n"
		reg, problems := spec.Parse("s.yaml", "user", []byte(file), CheckExamples)
		if len(problems) > 0 {
			t.Errorf("%s\n%v", file, problems)
			continue
		}
		if r := Judge(Claim{Text: tc.claim}, reg.Sensors[0], ev); r.Verdict != tc.want {
			t.Errorf("%s: %+v", line, r)
		}
	}
	ev := spec.Evidence{Values: []spec.Value{{Key: "v", Text: "14"}, {Key: "bad", Text: "1", Problem: MissingValue}}}
	for _, claim := range []string{"the database is big", "Postgres is not 14", "it is Postgres 14 and Redis 7", "between 3 or 4", "14", "it should be 14"} {
		if line, ok := Suggest(claim, sensor("x"), ev); ok {
			t.Errorf("%q: %s", claim, line)
		}
	}
}
