package lemma

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDeclaration(t *testing.T) {
	d, warned, err := ParseDeclaration([]byte(`{"plan_summary":"raise the limit","lemmas":[
		{"claim":"the edge accepts 20 MB","provenance":"believed","load_bearing":true,"falsifier":"a smaller limit is set",
		 "falsifying_observation":{"sensor":"proxy.config","key":"limit","operator":"<","value":20.10},"suggested_sensor":"proxy.config","symbols":["fs.readFile"]},
		{"claim":"it runs on node 20","provenance":"told","load_bearing":false,"falsifier":null,"symbols":[],"suggested_sensor":""}]}`))
	if err != nil || len(warned) != 0 {
		t.Fatal(err, warned)
	}
	want := Declaration{PlanSummary: "raise the limit", Lemmas: []Lemma{
		{Claim: "the edge accepts 20 MB", Provenance: Believed, LoadBearing: true, Falsifier: "a smaller limit is set", SuggestedSensor: "proxy.config", Symbols: []string{"fs.readFile"},
			FalsifyingObservation: &FalsifyingObservation{Sensor: "proxy.config", Key: "limit", Operator: Lt, Value: json.Number("20.10")}},
		{Claim: "it runs on node 20", Provenance: Told},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	d, _, err = ParseDeclaration([]byte(` {"lemmas":[],"plan_summary":"nothing"} `))
	if err != nil || d.Lemmas == nil || len(d.Lemmas) != 0 {
		t.Errorf("an empty list: %+v, %v", d, err)
	}
}

// with is a declaration of one lemma with more members.
func with(members string) []byte {
	return []byte(`{"plan_summary":"p","lemmas":[{"claim":"c","provenance":"believed","load_bearing":true` + members + `}]}`)
}

func TestRequiredFieldsFail(t *testing.T) {
	one := func(l string) string { return `{"plan_summary":"p","lemmas":[` + l + `]}` }
	for _, c := range []struct{ body, says string }{
		{``, ""},
		{`[]`, "a JSON object is wanted"},
		{`{"plan_summary":"p","lemmas":[]} {}`, "data after the object"},
		{`{"plan_summary":"p","plan_summary":"q","lemmas":[]}`, "duplicate"},
		{"{\"plan_summary\":\"\xff\",\"lemmas\":[]}", "invalid UTF-8"},
		{`{"lemmas":[]}`, "plan_summary: is missing"},
		{`{"plan_summary":null,"lemmas":[]}`, "plan_summary: is missing"},
		{`{"plan_summary":"","lemmas":[]}`, "plan_summary: is empty"},
		{`{"plan_summary":7,"lemmas":[]}`, "plan_summary: a string is wanted, got a number"},
		{`{"plan_summary":"` + strings.Repeat("é", 501) + `","lemmas":[]}`, "plan_summary: 501 characters"},
		{`{"plan_summary":"p"}`, "lemmas: an array is wanted, got nothing"},
		{`{"plan_summary":"p","lemmas":{}}`, "lemmas: an array is wanted, got an object"},
		{one(`"c"`), "lemmas[0]: an object is wanted, got a string"},
		{one(`{"provenance":"told","load_bearing":true}`), "lemmas[0].claim: is missing"},
		{one(`{"claim":"  ","provenance":"told","load_bearing":true}`), "lemmas[0].claim: a statement is wanted"},
		{one(`{"claim":"a\u001b[2J","provenance":"told","load_bearing":true}`), "lemmas[0].claim: holds control characters"},
		{one(`{"claim":"` + strings.Repeat("a", 1001) + `","provenance":"told","load_bearing":true}`), "lemmas[0].claim: 1001 bytes"},
		{one(`{"claim":"c","provenance":"Told","load_bearing":true}`), "lemmas[0].provenance: measured, told or believed is wanted, got Told"},
		{one(`{"claim":"c","provenance":"told"}`), "lemmas[0].load_bearing: true or false is wanted, got nothing"},
		{one(`{"claim":"c","provenance":"told","load_bearing":"true"}`), "got a string"},
		{one(`{"claim":"c","provenance":"told","load_bearing":true,"symbols":["a"],"symbols":[]}`), "duplicate"},
		{one(strings.Repeat(`{},`, 65) + `{}`), "66 lemmas, at most 64"},
		{one(strings.Repeat(`{},`, 9) + `{}`), "and 25 more"},
		{one(`{"claim":"` + strings.Repeat("a", MaxDeclaration) + `"}`), "bytes, at most"},
	} {
		d, w, err := ParseDeclaration([]byte(c.body))
		if !errors.Is(err, ErrDeclaration) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%.120s: %v, want %q", c.body, err, c.says)
		}
		if len(d.Lemmas) > 0 || w != nil {
			t.Errorf("%.120s: something came with the error", c.body)
		}
	}
}

func TestOptionalFieldsAreDroppedWithAWarning(t *testing.T) {
	for _, c := range []struct{ members, field, says string }{
		{`,"falsifier":1`, "falsifier", "a string is wanted, got a number"},
		{`,"falsifier":"` + strings.Repeat("a", 1001) + `"`, "falsifier", "1001 bytes"},
		{`,"suggested_sensor":["a"]`, "suggested_sensor", "got an array"},
		{`,"symbols":"a.b"`, "symbols", "got a string"},
		{`,"symbols":["a",1]`, "symbols", "got a number"},
		{`,"symbols":["a b"]`, "symbols", "not a dotted path"},
		{`,"symbols":["1","2","3","4","5","6","7","8","9"]`, "symbols", "9 symbols"},
		{`,"falsifying_observation":"x < 1"`, "falsifying_observation", "got a string"},
		{`,"falsifying_observation":{"sensor":"s","key":"k","operator":"<"}`, "falsifying_observation", "value: a string, number or bool is wanted, got nothing"},
		{`,"falsifying_observation":{"sensor":"s","key":"k","operator":"=<","value":1}`, "falsifying_observation", "unknown operator =<"},
		{`,"falsifying_observation":{"sensor":"","key":"k","operator":"<","value":1}`, "falsifying_observation", "sensor is empty"},
		{`,"falsifying_observation":{"sensor":"s","key":2,"operator":"<","value":1}`, "falsifying_observation", "key: a string"},
		{`,"falsifying_observation":{"sensor":"s","key":"k","operator":"<","value":[1]}`, "falsifying_observation", "got an array"},
		{`,"certainty":0.9`, "certainty", "not a field"},
	} {
		d, warned, err := ParseDeclaration(with(c.members))
		if err != nil {
			t.Errorf("%.100s: %v", c.members, err)
			continue
		}
		if len(warned) != 1 || warned[0].Lemma != 0 || warned[0].Field != c.field || !strings.Contains(warned[0].Reason, c.says) || warned[0].Contract != Contract {
			t.Errorf("%.100s: warned %+v", c.members, warned)
		}
		if diff := cmp.Diff(Lemma{Claim: "c", Provenance: Believed, LoadBearing: true}, d.Lemmas[0]); diff != "" {
			t.Errorf("%.100s: not dropped: %s", c.members, diff)
		}
	}
	_, warned, err := ParseDeclaration([]byte(`{"plan_summary":"p","lemmas":[],"note":1}`))
	if err != nil || len(warned) != 1 || warned[0].Lemma != -1 {
		t.Errorf("%+v, %v", warned, err)
	}
}

func TestValuesKeepTheirSpelling(t *testing.T) {
	for raw, want := range map[string]any{`20.10`: json.Number("20.10"), `"20.10"`: "20.10", `false`: false, `1e400`: json.Number("1e400"), `12345678901234567890`: json.Number("12345678901234567890")} {
		d, _, err := ParseDeclaration(with(`,"falsifying_observation":{"sensor":"s","key":"k","operator":"=","value":` + raw + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Lemmas[0].FalsifyingObservation.Value; got != want {
			t.Errorf("%s became %#v", raw, got)
		}
	}
}

func FuzzParseDeclaration(f *testing.F) {
	f.Add(with(`,"symbols":["a.b"],"falsifier":"x","falsifying_observation":{"sensor":"s","key":"k","operator":"<","value":1.50}`))
	f.Add([]byte(`{"plan_summary":"p","lemmas":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, warned, err := ParseDeclaration(b)
		if err != nil {
			if !errors.Is(err, ErrDeclaration) || len(err.Error()) > 4<<10 {
				t.Fatalf("%v", err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatal("accepted what is no JSON")
		}
		if len(d.Lemmas) > MaxLemmas || len(warned) > 64 {
			t.Fatalf("%d lemmas, %d warnings", len(d.Lemmas), len(warned))
		}
		// What passed once passes again, the same and without warnings.
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
		if again.Len() > MaxDeclaration {
			return
		}
		e, warned, err := ParseDeclaration(again.Bytes())
		if err != nil || len(warned) > 0 {
			t.Fatalf("second time: %v %v\n%s", err, warned, again.Bytes())
		}
		spelled := cmp.Transformer("spelled", func(o FalsifyingObservation) [4]string {
			return [4]string{o.Sensor, o.Key, string(o.Operator), fmt.Sprint(o.Value)} // an inexact number is written as a string
		})
		if diff := cmp.Diff(d, e, spelled); diff != "" {
			t.Fatal(diff)
		}
	})
}
