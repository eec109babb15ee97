package verdict

import (
	"testing"
	"unicode/utf8"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Judge never panics, is deterministic, shows one bounded line, and never
// settles a compound claim.
func FuzzJudge(f *testing.F) {
	for _, r := range readClaims(f, "testdata/claims.txt") {
		f.Add(r.claim, r.readings, r.falsify, "25 MB", "limit", `(?i)\b(?P<n>\d+\s*MB)\b`, "{{n}}", ">=", "bytes")
	}
	f.Fuzz(func(t *testing.T, claim, reading, falsifier, value, key, when, template, op, typ string) {
		s := &spec.Sensor{ID: "s", Level: "user"}
		e := spec.Extract{Name: key, Bare: true, Type: spec.Type(typ), TypeSet: len(typ)%2 == 0, Which: []string{"", "all", "last"}[len(reading)%3]}
		s.Extract = []spec.Extract{e}
		s.Judge = []spec.Rule{
			{When: when, Key: key, Operator: lemma.Operator(op), Value: template, Type: spec.Type(typ)},
			{When: when, Key: key, Operator: lemma.Operator(op), Value: value, Negated: true},
		}
		l := &lemma.Lemma{Claim: claim, Falsifier: falsifier, SuggestedSensor: key, Symbols: []string{key},
			FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: "s", Key: key, Operator: lemma.Operator(op), Value: value}}
		values := append(extract.Extract(s, []byte(reading), 0), extract.Typed(&e, reading))
		values[0].All = []string{reading, value}
		ev := spec.Evidence{Values: values}
		c := Claim{Lemma: l}
		got := Judge(c, s, ev)
		again := Judge(c, s, ev)
		if got.Verdict != again.Verdict || got.Reason != again.Reason || got.Measured != again.Measured {
			t.Fatalf("%+v, then %+v", got, again)
		}
		switch got.Verdict {
		case lemma.Confirmed, lemma.Contradicted, lemma.Inconclusive, lemma.Unjudged:
		default:
			t.Fatalf("verdict %q", got.Verdict)
		}
		if len(got.Measured) > maxMeasured || !utf8.ValidString(got.Measured) {
			t.Fatalf("measured %q", got.Measured)
		}
		for _, r := range got.Measured {
			if r < 0x20 || r == 0x7f {
				t.Fatalf("control character in %q", got.Measured)
			}
		}
		joined := &lemma.Lemma{Claim: claim + " and the rest follows", Falsifier: falsifier, FalsifyingObservation: l.FalsifyingObservation}
		if r := Judge(Claim{Lemma: joined}, s, ev); r.settled() {
			t.Fatalf("a compound claim is %+v", r)
		}
		if got.Verdict == lemma.Confirmed && (got.Rule == RuleFalsifier || got.Rule == RuleObservation) {
			t.Fatalf("a falsifier confirms: %+v", got)
		}
		Identify(c, At{Scope: "host", Sensor: s})
		CheckExamples(s)
		Match(*l, Sensors{InForce: []*spec.Sensor{s}, Matching: map[string][]string{key: {value}}})
	})
}

func FuzzCompare(f *testing.F) {
	f.Add("bytes", "1m", ">=", "25 MB")
	f.Add("version", "14.11 (Debian)", "=", "14")
	f.Add("duration", "1h30m", "<", "90 min")
	f.Fuzz(func(t *testing.T, typ, measured, op, claimed string) {
		eq, ok1 := Compare(spec.Type(typ), measured, lemma.Eq, claimed)
		ne, ok2 := Compare(spec.Type(typ), measured, lemma.Ne, claimed)
		if ok1 != ok2 || ok1 && eq == ne {
			t.Fatalf("= %v %v, != %v %v", eq, ok1, ne, ok2)
		}
		Compare(spec.Type(typ), measured, lemma.Operator(op), claimed)
	})
}

func BenchmarkJudge(b *testing.B) {
	s := edge()
	ev := spec.Evidence{Values: []spec.Value{extract.Typed(&s.Extract[0], "1m")}}
	l := &lemma.Lemma{Claim: "The edge proxy accepts request bodies of 25 MB", Falsifier: "limit < 25MB"}
	b.ReportAllocs()
	for b.Loop() {
		if r := Judge(Claim{Lemma: l}, s, ev); r.Verdict != lemma.Contradicted {
			b.Fatal(r)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	in := Sensors{InForce: everyCategory(), Matching: map[string][]string{"x": {"upload ceiling"}}}
	l := lemma.Lemma{Claim: "The edge proxy accepts request bodies of 25 MB"}
	b.ReportAllocs()
	for b.Loop() {
		if m, _ := Match(l, in); len(m) == 0 {
			b.Fatal("no match")
		}
	}
}
