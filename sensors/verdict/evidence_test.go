package verdict

import (
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

func TestFromFacts(t *testing.T) {
	s := edge()
	s.Extract = append(s.Extract, spec.Extract{Name: "workers", Lines: "x"})
	fact := func(key, value, ref string) lemma.Fact {
		return lemma.Fact{Key: key, Value: value, Status: lemma.StatusActive, Provenance: lemma.Measured, Source: lemma.Source{Ref: ref}}
	}
	ev, ok := FromFacts(s, []lemma.Fact{fact("limit", "1m", "i_1"), fact("workers", "3", "i_1")})
	if !ok || ev.Invocation != "i_1" || len(ev.Values) != 2 {
		t.Fatalf("%+v", ev)
	}
	if r := Judge(Claim{Text: "nginx allows uploads up to 25 MB"}, s, ev); r.Verdict != lemma.Contradicted {
		t.Errorf("%+v", r)
	}
	stale := fact("workers", "3", "i_1")
	stale.Status = lemma.StatusStale
	told := fact("workers", "3", "i_1")
	told.Provenance = lemma.Told
	for name, facts := range map[string][]lemma.Fact{
		"missing": {fact("limit", "1m", "i_1")}, "two readings": {fact("limit", "1m", "i_1"), fact("workers", "3", "i_2")},
		"stale": {fact("limit", "1m", "i_1"), stale}, "told": {fact("limit", "1m", "i_1"), told},
	} {
		if _, ok := FromFacts(s, facts); ok {
			t.Errorf("%s: reused", name)
		}
	}
	s.Extract[0].Which = "all"
	if _, ok := FromFacts(s, []lemma.Fact{fact("limit", "1m", "i_1"), fact("workers", "3", "i_1")}); ok {
		t.Error("one of several values stands for all")
	}
}

func TestPremiseClaim(t *testing.T) {
	p := &spec.Premise{Claim: "the target database is on this machine", Key: "host_class", Operator: lemma.Eq, Value: "local"}
	s := sensor("db.target")
	for text, want := range map[string]lemma.Verdict{"local": lemma.Confirmed, "remote": lemma.Contradicted} {
		r := Judge(PremiseClaim(p), s, spec.Evidence{Values: []spec.Value{{Key: "host_class", Text: text, Type: spec.String}}})
		if r.Verdict != want || r.Measured != text {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// An expectation is about every value of a reading, whatever its words say.
func TestExpectEveryValue(t *testing.T) {
	s := &spec.Sensor{ID: "backends", Extract: []spec.Extract{{Name: "version", Bare: true, Type: spec.Version, TypeSet: true, Which: "all"}}}
	v := spec.Value{Key: "version", Type: spec.Version, TypeSet: true, Which: "all", Text: "2.4.0", All: []string{"2.4.0", "2.3.9"}}
	x := &spec.Expect{Key: "version", Operator: lemma.Eq, Value: "2.4.0", Claim: "some backends run 2.4.0"}
	if r := Judge(Claim{Text: x.Claim, Expect: x}, s, spec.Evidence{Values: []spec.Value{v}}); r.Verdict != lemma.Contradicted || r.Rule != RuleExpect {
		t.Errorf("%+v", r)
	}
	none := v
	none.Text, none.All = "2.3.9", nil
	if r := Judge(Claim{Text: x.Claim, Expect: x}, s, spec.Evidence{Values: []spec.Value{none}}); r.Verdict != lemma.Contradicted {
		t.Errorf("no list of values: %+v", r)
	}
	v.All = v.All[:1]
	if r := Judge(Claim{Text: x.Claim, Expect: x}, s, spec.Evidence{Values: []spec.Value{v}}); r.Verdict != lemma.Confirmed {
		t.Errorf("%+v", r)
	}
}

// What is shown of several values: each different one once, and not all of many.
func TestExpectShownValues(t *testing.T) {
	var many []string
	for i := range 20 {
		many = append(many, string(rune('a'+i)))
	}
	for _, c := range []struct {
		all  []string
		want string
	}{
		{[]string{"a", "b"}, "a, b"},
		{[]string{"a", "b", "a"}, "a, b"},
		{many, "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p"},
	} {
		if got := shown(&spec.Value{Text: "a", All: c.all}); got != c.want {
			t.Errorf("%v: %q", c.all, got)
		}
	}
}

// An observation names its sensor: that of another one is not read here.
func TestObservationOfAnotherSensor(t *testing.T) {
	s := edge()
	ev := spec.Evidence{Values: []spec.Value{{Key: "limit", Text: "1m", Type: spec.Bytes, TypeSet: true}}}
	for sensor, want := range map[string]lemma.Verdict{s.ID: lemma.Contradicted, s.Qualified(): lemma.Contradicted, "other": lemma.Unjudged} {
		l := &lemma.Lemma{Claim: "Large files arrive", FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: sensor, Key: "limit", Operator: lemma.Lt, Value: "25MB"}}
		if r := Judge(Claim{Lemma: l}, s, ev); r.Verdict != want {
			t.Errorf("%s: %+v", sensor, r)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("a\x1bb\x7fc\u0085d\u2028e\u2029f\x1fg h"); got != "a b c d e f g h" {
		t.Errorf("%q", got)
	}
	whole := strings.Repeat("x", maxMeasured)
	if got := oneLine(whole); got != whole {
		t.Errorf("%d bytes are cut", len(whole))
	}
	if got := oneLine(whole + "x"); len(got) != maxMeasured || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}

// A claim's own text comes before its lemma's; none at all is not judged; one
// of more than a thousand bytes is no single statement.
func TestClaimText(t *testing.T) {
	s := edge()
	ev := spec.Evidence{Values: []spec.Value{{Key: "limit", Text: "1m", Type: spec.Bytes, TypeSet: true}}}
	other := &lemma.Lemma{Claim: "Large files arrive"}
	if r := Judge(Claim{Text: "nginx allows uploads up to 25 MB", Lemma: other}, s, ev); r.Verdict != lemma.Contradicted {
		t.Errorf("%+v", r)
	}
	if r := Judge(Claim{}, s, ev); r.Verdict != lemma.Unjudged {
		t.Errorf("%+v", r)
	}
	long := "the server listens on port 80"
	long = strings.Repeat("x", maxClaim-1-len(long)) + " " + long
	if r := judged(long, 80); r.Verdict != lemma.Confirmed {
		t.Errorf("%d bytes: %+v", len(long), r)
	}
	if r := judged("x"+long, 80); r.Reason != Compound+":length" {
		t.Errorf("%d bytes: %+v", len(long)+1, r)
	}
}

func TestCombineTakesTheFirstOfEqualOnes(t *testing.T) {
	if r := Combine(Result{Verdict: lemma.Contradicted, Sensor: "a"}, Result{Verdict: lemma.Contradicted, Sensor: "b"}); r.Sensor != "a" {
		t.Errorf("%+v", r)
	}
}

// A prose falsifier may name the program that the sensor runs.
func TestFalsifierNamesProgram(t *testing.T) {
	s := edge()
	s.Argv = []spec.Word{{Text: "sysctl"}}
	ev := spec.Evidence{Values: []spec.Value{{Key: "limit", Text: "1m", Type: spec.Bytes, TypeSet: true}}}
	for f, want := range map[string]lemma.Verdict{"sysctl shows limit < 25MB": lemma.Contradicted, "strace shows limit < 25MB": lemma.Unjudged} {
		if r := Judge(Claim{Lemma: &lemma.Lemma{Claim: "Large files arrive", Falsifier: f}}, s, ev); r.Verdict != want {
			t.Errorf("%s: %+v", f, r)
		}
	}
}
