package verdict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// edge is the first scenario's sensor.
func edge() *spec.Sensor {
	s := sensor("proxy.limit", "request_path.size_limits")
	s.Extract = []spec.Extract{{Name: "limit", Line: "client_max_body_size", Which: "effective", Type: spec.Bytes, TypeSet: true, Map: map[string]string{"0": "unlimited"}}}
	s.Judge = []spec.Rule{
		{
			When: `(?i)\b(edge|proxy|nginx)\b.*\b(accepts?|allows?)\b.*\b(bod(y|ies)|uploads?)\b.*?\b(?P<n>\d+\s*[kmg](i?b)?)\b`,
			Key:  "limit", Operator: lemma.Ge, Value: "{{n}}", Pos: spec.Pos{Line: 10},
			Examples: []spec.Example{
				{Claim: "nginx accepts uploads of 10 MB", Measured: "20m", Verdict: "confirmed"},
				{Claim: "nginx accepts uploads of 25 MB", Measured: "20m", Verdict: "contradicted"},
				{Claim: "nginx accepts uploads of 25 MB", Measured: "0", Verdict: "confirmed"},
				{Claim: "nginx accepts uploads of 25 MB", Measured: "much", Verdict: "inconclusive"},
				{Claim: "nginx upload requests time out after 25 minutes", Measured: "1m", Verdict: "skip"},
			},
		},
		{When: `(?i)\buploads of (?P<n>\d+\s*MB) pass\b`, Key: "limit", Operator: lemma.Ge, Value: "{{ n }}", Pos: spec.Pos{Line: 20}},
	}
	return s
}

func TestIdentifySameClaim(t *testing.T) {
	at := At{Scope: "project:shop", Sensor: edge(), Params: map[string]string{"conf": "/etc/nginx/nginx.conf"}}
	id := func(text string) Identity { return Identify(Claim{Text: text}, at) }
	first := id("The edge proxy accepts request bodies of 25 MB")
	if len(first.Claim) != 32 || len(first.Topic) != 32 {
		t.Fatalf("%+v", first)
	}
	for _, same := range []string{"nginx allows uploads up to 25MB", "Uploads of 25 MB pass the reverse proxy", "nginx allows uploads up to 25m."} {
		if got := id(same); got != first {
			t.Errorf("%q is another claim", same)
		}
	}
	if got := id("nginx allows uploads up to 26 MB"); got.Topic != first.Topic || got.Claim == first.Claim {
		t.Errorf("another value: %+v", got)
	}
	l := &lemma.Lemma{Claim: "Large files get through", FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: "proxy.limit", Key: "limit", Operator: lemma.Lt, Value: "25 MB"}}
	if got := Identify(Claim{Lemma: l}, at); got != first {
		t.Error("the observation's opposite is not the same claim")
	}
	elsewhere := at
	elsewhere.Scope = "project:other"
	if got := Identify(Claim{Text: "nginx allows uploads up to 25 MB"}, elsewhere); got.Topic == first.Topic || got.Claim == first.Claim {
		t.Error("scope is no part of the topic")
	}
	elsewhere = at
	elsewhere.Params = map[string]string{"conf": "/etc/nginx/other.conf"}
	if got := Identify(Claim{Text: "nginx allows uploads up to 25 MB"}, elsewhere); got.Topic == first.Topic {
		t.Error("params are no part of the topic")
	}
	other := *at.Sensor
	other.Level = "project/shop"
	elsewhere = at
	elsewhere.Sensor = &other
	if got := Identify(Claim{Text: "nginx allows uploads up to 25 MB"}, elsewhere); got.Topic == first.Topic {
		t.Error("the sensor's file is no part of the topic")
	}
	for _, text := range []string{"nginx does not allow uploads of 25 MB", "nginx allows uploads of 25 MB and more", "The sky is blue"} {
		if got := id(text); got.Topic != "" || got.Claim == first.Claim {
			t.Errorf("%q has topic %+v", text, got)
		}
	}
	suggested := &lemma.Lemma{Claim: "The limit is generous", SuggestedSensor: "proxy.limit"}
	if got := Identify(Claim{Lemma: suggested}, at); got.Topic != first.Topic || got.Claim == first.Claim {
		t.Errorf("suggested: %+v", got)
	}
	e := &spec.Expect{Key: "limit", Operator: lemma.Ge, Value: "25MB", Claim: "whatever it says"}
	if got := Identify(Claim{Text: e.Claim, Expect: e}, at); got != first {
		t.Error("an expectation of the same is another claim")
	}
	if a, b := ParamsHash(map[string]string{"a": "1", "b": "2"}), ParamsHash(map[string]string{"a": "1b", "": "2"}); a == b || len(a) != 16 {
		t.Errorf("params hash %s %s", a, b)
	}
}

func TestNormalise(t *testing.T) {
	for _, pair := range [][2]string{
		{"The limit is 25 MB.", "limit is 25mb"},
		{"The  limit\nis “25 MB”", "limit is 25m"},
		{"ＮＧＩＮＸ waits", "nginx waits"},
		{"It waits 1 minute", "it waits 60s"},
		{"It's a C++ program", "it's C++ program"},
	} {
		if a, b := Normalise(pair[0]), Normalise(pair[1]); a != b {
			t.Errorf("%q → %q, %q → %q", pair[0], a, pair[1], b)
		}
	}
	for _, pair := range [][2]string{
		{"more than 5", "less than 5"}, {"x > 5", "x < 5"}, {"x is -5", "x is 5"}, {"a c++ program", "a c program"},
		{"it is on", "it is not on"}, {"limit is 25 MB", "limit is 25 MiB"}, {"v1.10", "v1.1"},
	} {
		if a, b := Normalise(pair[0]), Normalise(pair[1]); a == b {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], a)
		}
	}
	if TextID([]string{"b", "a"}, "X is.") != TextID([]string{"a", "b"}, "x  is") || TextID(nil, "x") == TextID([]string{"x"}, "x") {
		t.Error("TextID")
	}
}

func TestExpectation(t *testing.T) {
	s := edge()
	e := &spec.Expect{Key: "limit", Operator: lemma.Ge, Value: "20MB", Claim: "the edge accepts bodies of 20 MB, and more"}
	for measured, want := range map[string]lemma.Verdict{"20m": lemma.Confirmed, "1m": lemma.Contradicted, "0": lemma.Confirmed, "huge": lemma.Inconclusive} {
		r := Judge(Claim{Text: e.Claim, Expect: e}, s, spec.Evidence{Values: []spec.Value{extract.Typed(&s.Extract[0], measured)}})
		if r.Verdict != want || r.Rule != RuleExpect || r.Claimed != "20MB" {
			t.Errorf("%s: %+v", measured, r)
		}
	}
	if r := Judge(Claim{Expect: e}, s, spec.Evidence{}); r.Verdict != lemma.Inconclusive || r.Reason != MissingValue {
		t.Errorf("%+v", r)
	}
}

func TestCheckExamples(t *testing.T) {
	if p := CheckExamples(edge()); len(p) != 0 {
		t.Fatalf("%v", p)
	}
	for name, tc := range map[string]struct {
		change func(*spec.Sensor)
		line   int
		want   string
	}{
		"wrong example": {func(s *spec.Sensor) {
			s.Judge[0].Examples = []spec.Example{{Claim: "nginx accepts uploads of 25 MB", Measured: "20m", Verdict: "confirmed", Pos: spec.Pos{Line: 12}}}
		}, 12, "gives contradicted, not confirmed"},
		"shadowed": {func(s *spec.Sensor) {
			s.Judge[1].When, s.Judge[1].Operator = s.Judge[0].When, lemma.Lt
			s.Judge[1].Examples = []spec.Example{{Claim: "nginx accepts uploads of 25 MB", Measured: "20m", Verdict: "confirmed", Pos: spec.Pos{Line: 22}}}
		}, 22, "by judge[1] first"},
		"no such key":     {func(s *spec.Sensor) { s.Judge[0].Key = "limits" }, 10, "not extracted"},
		"no such group":   {func(s *spec.Sensor) { s.Judge[1].Value = "{{size}}" }, 20, "{{size}}"},
		"bad expression":  {func(s *spec.Sensor) { s.Judge[1].When = "(" }, 20, "when:"},
		"bad unless":      {func(s *spec.Sensor) { s.Judge[1].Unless = "(" }, 20, "unless:"},
		"no when":         {func(s *spec.Sensor) { s.Judge[1].When = "" }, 20, "no when"},
		"operator":        {func(s *spec.Sensor) { s.Judge[1].Operator = "~" }, 20, "operator"},
		"order of text":   {func(s *spec.Sensor) { s.Judge[1].Type = spec.String }, 20, "no order"},
		"contains number": {func(s *spec.Sensor) { s.Judge[1].Operator = lemma.Contains }, 20, "contains of a bytes"},
		"constant":        {func(s *spec.Sensor) { s.Judge[1].Value = "lots" }, 20, "no bytes"},
	} {
		s := edge()
		tc.change(s)
		p := CheckExamples(s)
		if len(p) != 1 || p[0].Line != tc.line || !strings.Contains(p[0].What, tc.want) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// The decoy at http level is not what holds: the whole way from the dump to the
// verdict.
func TestDumpToVerdict(t *testing.T) {
	dump := `nginx: the configuration file /run/x/nginx.conf syntax is ok
# configuration file /run/x/nginx.conf:
http {
    client_max_body_size 20m;
    server {
        listen 127.0.0.1:8080;
        include conf.d/*.conf;
        location / { proxy_pass http://127.0.0.1:3000; }
    }
}
# configuration file /run/x/conf.d/limits.conf:
# written by the platform
client_max_body_size 1m;
`
	s := edge()
	ev := spec.Evidence{Sensor: s.ID, Invocation: "i_1", Values: extract.Extract(s, []byte(dump), 0)}
	got := Judge(Claim{Text: "Uploads of 25 MB pass the reverse proxy"}, s, ev)
	want := Result{Verdict: lemma.Contradicted, Rule: "judge[2]", Sensor: s.ID, Invocation: "i_1", Key: "limit", Measured: "1m", Claimed: "25 MB",
		Operator: lemma.Ge, Type: spec.Bytes, Place: "/run/x/conf.d/limits.conf:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The observation's direction, asked for at declaration time.
func TestWrongWay(t *testing.T) {
	fo := func(key string, op lemma.Operator, v any) *lemma.FalsifyingObservation {
		return &lemma.FalsifyingObservation{Sensor: "s", Key: key, Operator: op, Value: v}
	}
	for _, tc := range []struct {
		claim string
		fo    *lemma.FalsifyingObservation
		t     spec.Type
		want  bool
	}{
		{"nginx allows uploads up to 25 MB", fo("limit", lemma.Ge, "25MB"), spec.Bytes, true},
		{"nginx allows uploads up to 25 MB", fo("limit", lemma.Lt, "25MB"), spec.Bytes, false},
		{"nginx allows uploads up to 25 MB", fo("limit", lemma.Eq, "30MB"), spec.Bytes, true},
		{"nginx allows uploads up to 25 MB", fo("limit", lemma.Eq, "1MB"), spec.Bytes, false},
		{"nginx caps uploads below 25 MB", fo("limit", lemma.Ge, "25MB"), spec.Bytes, false},
		{"nginx caps uploads below 25 MB", fo("limit", lemma.Lt, "25MB"), spec.Bytes, true},
		{"Sessions last 24 h", fo("ttl", lemma.Lt, "24h"), spec.Duration, false},
		{"Sessions last 24 h", fo("ttl", lemma.Gt, "1h"), spec.Duration, true},
		{"A single process serves the login route", fo("workers", lemma.Eq, 1.0), spec.Number, true},
		{"A single process serves the login route", fo("workers", lemma.Gt, 1.0), spec.Number, false},
		{"Port 8080 is served by the app", fo("workers", lemma.Gt, 1.0), spec.Number, false},
		{"The server is Postgres 14", fo("version", lemma.Eq, "14.2"), spec.Version, false},
		{"The server is Postgres 14", fo("version", lemma.Eq, "14"), "", true},
		{"Foreign keys are enforced", fo("foreign_keys", lemma.Eq, "0"), spec.Bool, false},
		{"Foreign keys are enforced", fo("foreign_keys", lemma.Eq, []any{"1"}), "", false},
		{"Foreign keys are enforced", fo("foreign_keys", lemma.Eq, "1"), spec.Bool, true},
		{"Foreign keys are not enforced", fo("foreign_keys", lemma.Eq, "1"), spec.Bool, false},
		{"Foreign keys are not enforced", fo("foreign_keys", lemma.Ne, "1"), spec.Bool, true},
		{"The app connects as app_rw", fo("role", lemma.Eq, "app_rw"), spec.String, true},
		{"The app does not connect as postgres", fo("role", lemma.Eq, "postgres"), spec.String, false},
		{"The app does not connect as postgres", fo("role", lemma.Ne, "postgres"), spec.String, true},
		{"anything", fo("role", "~", "x"), spec.String, false},
		{"anything", fo("role", lemma.Eq, nil), spec.String, false},
	} {
		if got := WrongWay(tc.claim, tc.fo, tc.t); got != tc.want {
			t.Errorf("%q with %s %s %v: %v", tc.claim, tc.fo.Key, tc.fo.Operator, tc.fo.Value, got)
		}
	}
}
