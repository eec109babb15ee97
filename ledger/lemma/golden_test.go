package lemma_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files; only ever to add")

// bodies is one zero value of every body.
var bodies = []lemma.Body{
	lemma.TurnOpened{}, lemma.TurnClassified{}, lemma.TurnInjected{}, lemma.TurnDeclared{}, lemma.TurnUndeclared{},
	lemma.ProvenanceDowngraded{}, lemma.LemmaWarned{}, lemma.LemmaMatched{}, lemma.SensorInvoked{}, lemma.SensorFailed{},
	lemma.RedactionApplied{}, lemma.ClaimJudged{}, lemma.FactWritten{}, lemma.FactContradicted{}, lemma.FactInvalidated{},
	lemma.FactExpired{}, lemma.HoldOpened{}, lemma.HoldAnsweredBody{}, lemma.AnswerRefused{}, lemma.AnswerRevoked{}, lemma.ConnectDecided{}, lemma.HoldExpiredBody{}, lemma.HoldCancelledBody{},
	lemma.GateDecided{}, lemma.TurnGrounded{}, lemma.ActionDecided{}, lemma.TurnClosed{}, lemma.RegistryLoaded{},
	lemma.RegistryRejected{}, lemma.RegistryApproved{}, lemma.ConfigLoaded{}, lemma.ConfigPending{}, lemma.ConfigApproved{},
	lemma.StateLost{}, lemma.ScopeConflict{}, lemma.BreakerOpened{}, lemma.SensorBackedOff{}, lemma.ChainOpened{},
	lemma.ChainRecovered{}, lemma.BlobForgotten{}, lemma.KnowledgeChanged{},
	lemma.ActionOpined{}, lemma.RequestForgotten{}, lemma.KeyRotated{}, lemma.KeyCreated{}, lemma.KeyRevoked{}, lemma.KeySealed{},
}

// TestBodiesAreAllListed finds each type with a Kind method in the source.
func TestBodiesAreAllListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, b := range bodies {
		listed[reflect.TypeOf(b).Name()] = true
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Kind" && fn.Recv != nil {
				if recv, ok := fn.Recv.List[0].Type.(*ast.Ident); ok && !listed[recv.Name] {
					t.Errorf("%s has no golden file", recv.Name)
				}
			}
		}
	}
}

// TestGolden writes every body with every field set and compares the JSON with
// the file of its kind. Old chains hold these bytes: a name that goes away or
// changes can never be read again.
func TestGolden(t *testing.T) {
	seen := map[lemma.Kind]bool{}
	for _, b := range bodies {
		t.Run(string(b.Kind()), func(t *testing.T) {
			if seen[b.Kind()] {
				t.Fatalf("two bodies of kind %s", b.Kind())
			}
			seen[b.Kind()] = true
			if !slices.Contains(lemma.Kinds, b.Kind()) {
				t.Fatalf("%s is not in the closed set", b.Kind())
			}
			full := reflect.New(reflect.TypeOf(b))
			fill(full.Elem(), "")
			got, err := json.MarshalIndent(full.Interface(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", "bodies", string(b.Kind())+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Fatalf("the form of %s changed (-file +now):\n%s", b.Kind(), d)
			}
			// And nothing of an old entry is lost on the way in and out.
			back := reflect.New(reflect.TypeOf(b))
			dec := json.NewDecoder(bytes.NewReader(want))
			dec.UseNumber()
			dec.DisallowUnknownFields()
			if err := dec.Decode(back.Interface()); err != nil {
				t.Fatal(err)
			}
			again, err := json.MarshalIndent(back.Interface(), "", "  ")
			if err != nil || string(again)+"\n" != string(want) {
				t.Fatalf("read and written again: %v\n%s", err, cmp.Diff(string(want), string(again)+"\n"))
			}
		})
	}
}

// fill sets every field to a value made from its name, so that a field that is
// added adds lines and changes none.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		if name == "Contract" {
			v.SetString(lemma.Contract)
			return
		}
		v.SetString("a " + strings.ToLower(name))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Uint64:
		v.SetUint(uint64(len(name)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		v.Set(reflect.ValueOf(json.Number("20.10")))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, name+"Key")
		fill(value, name)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

func TestKinds(t *testing.T) {
	seen := map[lemma.Kind]bool{}
	for _, k := range lemma.Kinds {
		if seen[k] {
			t.Errorf("%s twice", k)
		}
		seen[k] = true
		if strings.Trim(string(k), "abcdefghijklmnopqrstuvwxyz._") != "" || len(k) > 64 {
			t.Errorf("%q cannot stand in an entry", k)
		}
	}
}

// TestObservationNumbers: canonical JSON must not change what a model wrote.
func TestObservationNumbers(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{json.Number("20.10"), `"20.10"`},
		{json.Number("20.1"), `20.1`},
		{json.Number("8192"), `8192`},
		{json.Number("-3"), `-3`},
		{json.Number("0"), `0`},
		{json.Number("-0"), `"-0"`},
		{json.Number("1e3"), `"1e3"`},
		{json.Number("9007199254740993"), `"9007199254740993"`},
		{json.Number("123456789012345678901234567890"), `"123456789012345678901234567890"`},
		{json.Number("0.0000000001"), `"0.0000000001"`},
		{json.Number("1e999"), `"1e999"`},
		{"on", `"on"`},
		{true, `true`},
	} {
		got, err := json.Marshal(lemma.Lemma{FalsifyingObservation: &lemma.FalsifyingObservation{Operator: lemma.Eq, Value: c.value}})
		if err != nil || !strings.Contains(string(got), `"value":`+c.want+`}`) {
			t.Errorf("%v: %s, %v; want %s", c.value, got, err, c.want)
		}
	}
}
