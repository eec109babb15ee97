package strict

import (
	"strings"
	"testing"
)

type sample struct {
	Name  string            `yaml:"name"`
	Count int               `yaml:"count"`
	Rate  float64           `yaml:"rate"`
	On    bool              `yaml:"on"`
	Words []string          `yaml:"words"`
	Table map[string]string `yaml:"table"`
	Inner *struct {
		Deep []struct {
			ID string `yaml:"id"`
		} `yaml:"deep"`
	} `yaml:"inner"`
}

func TestDecode(t *testing.T) {
	v := sample{Rate: 0.5}
	d := Decode([]byte("name: a\ncount: 7\non: true\nwords: [x, 'y']\ntable:\n  k: v\ninner:\n  deep:\n    - id: one\n"), &v)
	if len(d.Problems) > 0 {
		t.Fatal(d.Text("f"))
	}
	if v.Name != "a" || v.Count != 7 || v.Rate != 0.5 || !v.On || len(v.Words) != 2 || v.Table["k"] != "v" || v.Inner.Deep[0].ID != "one" {
		t.Errorf("%+v", v)
	}
	d.Fault("inner.deep[0].id", "is taken", "")
	if p := d.Problems[0]; p.Line != 9 || p.Column != 11 {
		t.Errorf("%+v", p)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		want []string // each a prefix of line:column: what
	}{
		"all at once": {"nam: a\ncount: x\non: yes\nwords:\n  - {a: b}\n", []string{`1:1: the file has no key "nam"; did you mean name?`, "2:8: count must be a whole number", "3:5: on must be true or false", "5:"}},
		"twice":       {"name: a\nname: b\n", []string{"2:1"}},
		"empty":       {"# nothing\n", []string{"1:1: the file is empty"}},
		"null":        {"name:\n", []string{"1:"}},
		"second":      {"name: a\n---\nname: b\n", []string{"3:1"}},
		"alias":       {"name: &x a\ntable: {k: *x}\n", []string{"1:7: anchors", "2:"}},
		"octal":       {"count: 010\n", []string{"1:8"}},
		"invisible":   {"name: \"a\u200bb\"\n", []string{"1:7: name: the invisible character U+200B"}},
		"list":        {"inner: {deep: 7}\n", []string{"1:"}},
		"broken":      {"name: [a\n", []string{"1:"}},
		"latin":       {"name: \xff\n", []string{"1:1: this is not valid UTF-8"}},
		"deep":        {"table: " + strings.Repeat("[", 5000), []string{"1:1: the file is nested too deeply"}},
		"large":       {strings.Repeat("#", MaxBytes+1), []string{"1:1"}},
		"long":        {strings.Repeat("#\n", maxLines+1), []string{"1:1"}},
	} {
		var v sample
		d := Decode([]byte(c.doc), &v)
		var got []string
		for _, l := range strings.Split(d.Text("f"), "\n") {
			if rest, ok := strings.CutPrefix(l, "f:"); ok {
				got = append(got, rest)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
	var v sample
	if text := Decode([]byte("a: b\nname: x\n"), &v).Text("p.yaml"); text != "p.yaml:1:1: the file has no key \"a\"\n  a: b\n  ^\n" {
		t.Errorf("%q", text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: a\nwords: [x]\ninner: {deep: [{id: 1}]}\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v sample
		d := Decode(data, &v)
		d.Fault("inner.deep[3].id", "x", "")
		_ = d.Text("f")
	})
}
