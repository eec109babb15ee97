package spec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(SchemaFile, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML as an editor's server does.
func asJSON(t *testing.T, data []byte) (any, bool) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, false
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return nil, false
	}
	return out, true
}

// fixture are the slots that a scenario fills in before its file is read.
var fixture = regexp.MustCompile(`\{\{(port|dir|gettier|var|nonce)[^}]*\}\}`)

// What Parse takes, the schema takes: an editor never marks what is good.
func TestSchemaTakesWhatParseTakes(t *testing.T) {
	s := compiledSchema(t)
	var files []string
	for _, pattern := range []string{"testdata/good/*.yaml", "../../scenarios/*/sensors.yaml", "../../tui/gettier/testdata/sensors.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 3 {
		t.Fatalf("only %v", files)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := asJSON(t, fixture.ReplaceAll(data, []byte("9")))
		if !ok {
			t.Fatalf("%s is not read", file)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What the schema refuses, Parse refuses; the other way round there is more
// that only Parse sees, but the schema must see something too.
func TestSchemaRefusesNoMore(t *testing.T) {
	s := compiledSchema(t)
	files, err := filepath.Glob("testdata/faults/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := asJSON(t, data); ok && s.Validate(v) != nil {
			refused++
			if reg, _ := Parse(file, "user", data); reg != nil {
				t.Errorf("%s is good, and the schema refuses it", file)
			}
		}
	}
	if refused < 4 {
		t.Errorf("the schema refuses %d of %d faulty files", refused, len(files))
	}
}

// Every key that the schema offers is one that Parse knows: full.yaml, which
// Parse takes, has each of them.
func TestSchemaOffersKnownKeys(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal([]byte(Schema()), &doc); err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["properties"].(map[string]any); ok {
				for k := range p {
					offered[k] = true
				}
			}
			for _, c := range v {
				walk(c)
			}
		case []any:
			for _, c := range v {
				walk(c)
			}
		}
	}
	walk(doc)
	full, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range slices.Sorted(maps.Keys(offered)) {
		if !strings.Contains(string(full), k+":") {
			t.Errorf("%s is offered and stands nowhere in full.yaml", k)
		}
	}
	for _, k := range sensorKeys {
		if !offered[k] {
			t.Errorf("%s is not offered", k)
		}
	}
}
