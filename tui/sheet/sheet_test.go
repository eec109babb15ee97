package sheet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var ignoreLines = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Line" }, cmp.Ignore())

func TestPageRoundTrip(t *testing.T) {
	rows := []Row{
		{ID: "k_1", Scope: "project:shop", Text: "invoices are numbered by a sequence", Topics: []string{"invoice", "db.target"}, Sensitivity: "internal"},
		{Scope: "host", Text: `it says "no": # not a comment`, Topics: []string{}, Sensitivity: "public"},
		{Scope: "host", Text: "20.10", Topics: []string{"on", "- x", "1e3", "a: b", "null", "ü, [x]"}, Sensitivity: "secret"},
	}
	page := Print(rows, "line 3: wrong\nand so on", map[string]string{"k_1": "changed meanwhile"})
	got, ok, err := Parse(page)
	if err != nil || !ok {
		t.Fatalf("%v\n%s", err, page)
	}
	if d := cmp.Diff(rows, got, ignoreLines); d != "" {
		t.Errorf("%s\n%s", d, page)
	}
	for _, want := range []string{"# line 3: wrong\n# and so on\n", "  # changed meanwhile\n  - id: k_1\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if rows, ok, err := Parse(Print(nil, "", nil)); len(rows) != 0 || !ok || err != nil {
		t.Errorf("an empty shelf: %v, %t, %v", rows, ok, err)
	}
}

// TestAnyPageRoundTrips: whatever a piece may say, it comes back as it was.
func TestAnyPageRoundTrips(t *testing.T) {
	line := rapid.StringOfN(rapid.RuneFrom([]rune("ab \"'\\#:-[]{},&*!|>%@`~=.?01üon\u00a0")), 1, 20, 60).Filter(func(s string) bool { return strings.TrimSpace(s) == s && s != "" })
	rapid.Check(t, func(rt *rapid.T) {
		r := Row{ID: "k_1", Scope: "host", Text: line.Draw(rt, "text"), Topics: rapid.SliceOfN(line, 0, 3).Draw(rt, "topics"), Sensitivity: "public"}
		page := Print([]Row{r}, line.Draw(rt, "note"), nil)
		got, _, err := Parse(page)
		if err != nil || cmp.Diff([]Row{r}, got, ignoreLines) != "" {
			rt.Fatalf("%v\n%s\n%s", err, cmp.Diff([]Row{r}, got, ignoreLines), page)
		}
	})
}

func TestFaults(t *testing.T) {
	const good = "knowledge:\n  - scope: host\n    text: x is y\n"
	for _, c := range []struct{ name, page, want string }{
		{"unknown key", good + "    txt: z\n", `4:5: "txt" is no part of a piece`},
		{"unknown top", "facts: []\n" + good, `1:1: "facts" is no part of a page`},
		{"twice", good + "    text: z\n", "4:5"},
		{"no text", "knowledge:\n  - scope: host\n", "the piece has no text"},
		{"bad scope", "knowledge:\n  - scope: shop\n    text: x\n", `2:12: the scope "shop"`},
		{"bad sensitivity", good + "    sensitivity: top\n", `4:18: the sensitivity "top"`},
		{"long", "knowledge:\n  - scope: host\n    text: " + strings.Repeat("x", 401) + "\n", "3:11: the text has 401 bytes"},
		{"topics", good + "    topics: one\n", "4:13: topics are a list"},
		{"topic", good + "    topics: [[a]]\n", "one line of text"},
		{"many topics", good + "    topics: [a,b,c,d,e,f,g,h,i]\n", "4:13: 9 topics"},
		{"text is a list", "knowledge:\n  - scope: host\n    text: [a]\n", "3:11: text is one line"},
		{"empty text", "knowledge:\n  - scope: host\n    text:\n", "text is empty"},
		{"not a list", "knowledge: x\n", "1:12: knowledge is a list"},
		{"all gone", "knowledge:\n", "write knowledge: []"},
		{"a piece is text", "knowledge:\n  - x\n", "2:5: a piece has"},
		{"syntax", "knowledge:\n  - {scope: host\n", "it is no YAML"},
		{"tab", "knowledge:\n\t- a\n", "2:"},
		{"two pages", good + "---\n" + good, "a page is one document"},
		{"same id", "knowledge:\n  - {id: k_1, scope: host, text: a}\n  - {id: k_1, scope: host, text: b}\n", "stands there twice; a copy has no id"},
		{"control", "knowledge:\x01\n", "control character 0x01"},
		{"utf-8", "knowledge: \xff\n", "not UTF-8"},
		{"escape", "knowledge:\n  - {scope: host, text: \"a\\u001bb\"}\n", "without control characters"},
		{"anchor", "knowledge: &a\n  - *a\n", ""},
		{"deep", strings.Repeat("[", 5000), "nested too deeply"},
	} {
		_, _, err := Parse([]byte(c.page))
		var fs Faults
		if !errors.As(err, &fs) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for _, page := range []string{"", "# only this\n", "\n\n", "---\n"} {
		if rows, ok, err := Parse([]byte(page)); len(rows) != 0 || ok || err != nil {
			t.Errorf("%q: %v, %t, %v", page, rows, ok, err)
		}
	}
}

func TestExplain(t *testing.T) {
	page := "knowledge:\n  - scope: shop\n    text: x\n"
	_, _, err := Parse([]byte(page))
	var fs Faults
	if !errors.As(err, &fs) {
		t.Fatal(err)
	}
	want := "line 2, column 12: the scope \"shop\" is neither host nor project:NAME\n    - scope: shop\n             ^\n"
	if got := fs.Explain([]byte(page)); got != want {
		t.Errorf("%q\n%q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("knowledge:\n  - {id: k_1, scope: host, text: a, topics: [b], sensitivity: public}\n"))
	f.Add([]byte("knowledge: [*a, &a b, !!x y, {<<: *a}]\n"))
	f.Add([]byte("knowledge:\n  - scope: host\n    text: |\n      a\n      b\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		rows, _, err := Parse(page)
		var fs Faults
		if err != nil {
			if !errors.As(err, &fs) {
				t.Fatalf("%T", err)
			}
			fs.Explain(page)
			return
		}
		again, _, err := Parse(Print(rows, fmt.Sprint(len(rows)), nil))
		if err != nil || (len(rows) > 0 && cmp.Diff(rows, again, ignoreLines) != "") {
			t.Fatalf("%v\n%s", err, cmp.Diff(rows, again, ignoreLines))
		}
	})
}
