package verdict

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// row is one line of testdata/claims.txt.
type row struct {
	line     int
	sensor   *spec.Sensor
	claim    string
	readings string
	falsify  string
	want     string
}

func readClaims(t testing.TB, name string) []row {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	var s *spec.Sensor
	for i, l := range strings.Split(string(data), "\n") {
		f := strings.Fields(l)
		indented := strings.HasPrefix(l, "  ")
		switch {
		case len(f) == 0 || strings.HasPrefix(l, "#"):
		case f[0] == "sensor" && len(f) == 2:
			s = &spec.Sensor{ID: f[1], Level: "user"}
		case indented && f[0] == "extract":
			e := spec.Extract{Name: f[1], Bare: true, Type: spec.String, Map: map[string]string{}}
			for _, o := range f[2:] {
				if from, to, ok := strings.Cut(o, "="); ok {
					e.Map[from] = to
				} else if o == "all" {
					e.Which = o
				} else {
					e.Type, e.TypeSet = spec.Type(o), true
				}
			}
			s.Extract = append(s.Extract, e)
		case indented && f[0] == "rule":
			r := spec.Rule{Operator: lemma.Operator(f[1]), Key: f[2], Type: spec.Type(strings.Trim(f[3], "-")), Value: f[4], Negated: len(f) > 5}
			s.Judge = append(s.Judge, r)
		case indented && f[0] == "when":
			s.Judge[len(s.Judge)-1].When = strings.TrimSpace(strings.TrimSpace(l)[4:])
		case indented && f[0] == "unless":
			s.Judge[len(s.Judge)-1].Unless = strings.TrimSpace(strings.TrimSpace(l)[6:])
		default:
			c := strings.Split(" "+l, " |")
			if len(c) != 4 || s == nil {
				t.Fatalf("%s:%d: %d columns", name, i+1, len(c))
			}
			for j := range c {
				c[j] = strings.TrimSpace(c[j])
			}
			rows = append(rows, row{i + 1, s, c[0], c[1], c[2], c[3]})
		}
	}
	return rows
}

// evidence reads `key=value, key=[a, b]`.
func (r row) evidence() spec.Evidence {
	ev := spec.Evidence{Sensor: r.sensor.ID, Invocation: "i_1"}
	for rest := r.readings; rest != ""; {
		key, after, _ := strings.Cut(rest, "=")
		var v string
		if strings.HasPrefix(after, "[") && !strings.HasPrefix(after, "[redacted") {
			v, rest, _ = strings.Cut(after[1:], "]")
			rest = strings.TrimPrefix(rest, ", ")
			e := extractOf(r.sensor, key)
			val := spec.Value{Key: key, Type: e.Type, TypeSet: e.TypeSet, Which: e.Which, All: strings.Split(v, ", ")}
			val.Text = val.All[0]
			ev.Values = append(ev.Values, val)
			continue
		}
		v, rest, _ = strings.Cut(after, ", ")
		e := extractOf(r.sensor, key)
		val := extract.Typed(e, v)
		switch v {
		case "?":
			val.Text, val.Problem = "", extract.Missing
		case "!":
			val.Problem = extract.Ambiguous
		}
		ev.Values = append(ev.Values, val)
	}
	return ev
}

func (r row) lemma(t testing.TB) *lemma.Lemma {
	l := &lemma.Lemma{Claim: r.claim, Provenance: lemma.Believed, LoadBearing: true}
	if text, ok := strings.CutPrefix(r.falsify, "say "); ok {
		l.Falsifier = text
	}
	if text, ok := strings.CutPrefix(r.falsify, "fo "); ok {
		f := strings.SplitN(text, " ", 3)
		fo := &lemma.FalsifyingObservation{Sensor: r.sensor.ID, Key: f[0], Operator: lemma.Operator(f[1])}
		d := json.NewDecoder(strings.NewReader(f[2]))
		d.UseNumber()
		if err := d.Decode(&fo.Value); err != nil {
			t.Fatalf("line %d: %v", r.line, err)
		}
		l.FalsifyingObservation = fo
	}
	return l
}

func TestClaims(t *testing.T) {
	rows := slices.Concat(readClaims(t, "testdata/claims.txt"), readClaims(t, "testdata/claims_field.txt"), readClaims(t, "testdata/claims_edges.txt"))
	if len(rows) < 300 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, r := range rows {
		t.Run(fmt.Sprintf("%s:%d", r.sensor.ID, r.line), func(t *testing.T) {
			got := Judge(Claim{Lemma: r.lemma(t)}, r.sensor, r.evidence())
			verdict, detail, _ := strings.Cut(r.want, " ")
			if string(got.Verdict) != verdict || detail != "" && detail != got.Reason && detail != got.Rule {
				t.Errorf("%q with %s %s: got %s %q by %q, want %s", r.claim, r.readings, r.falsify, got.Verdict, got.Reason, got.Rule, r.want)
			}
			if got.settled() == (got.Reason != "") {
				t.Errorf("verdict %s with reason %q", got.Verdict, got.Reason)
			}
			if got.Sensor != r.sensor.ID || got.Invocation != "i_1" {
				t.Errorf("result does not name its reading: %+v", got)
			}
		})
	}
}
