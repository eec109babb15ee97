package spec

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func spelled(words []Word) []string {
	var out []string
	for _, w := range words {
		out = append(out, w.Text)
	}
	return out
}

func TestSplitVectors(t *testing.T) {
	f, err := os.Open("testdata/argv.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		var row struct {
			Text  string
			Argv  []string
			Error bool
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		words, err := Split(row.Text)
		if (err != nil) != row.Error {
			t.Errorf("Split(%q): error %v, want an error: %v", row.Text, err, row.Error)
			continue
		}
		if diff := cmp.Diff(row.Argv, spelled(words)); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", row.Text, diff)
		}
	}
	if n < 60 {
		t.Fatalf("only %d vectors were read", n)
	}
}

func TestSplitSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{"ls | wc", 3}, {"a; b", 1}, {"echo $HOME", 5}, {"x 'abc", 2}, {"ls *.go", 3}, {"FOO=1 x", 0}, {"ab ~/x", 3}, {`x "a $b"`, 5}, {"x {{1}}", 2}, {"x\ny", 1},
	} {
		_, err := Split(tt.text)
		var se *SplitError
		if !errors.As(err, &se) {
			t.Errorf("Split(%q) = %v, want a *SplitError", tt.text, err)
		} else if se.Offset != tt.at {
			t.Errorf("Split(%q) fails at %d (%s), want %d", tt.text, se.Offset, se.What, tt.at)
		}
	}
}

func TestSplitParts(t *testing.T) {
	words, err := Split(`x --p={{ a }}/'b c'{{d}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := Word{Text: "--p={{ a }}/b c{{d}}", Parts: []WordPart{{Literal: "--p="}, {Param: "a"}, {Literal: "/b c"}, {Param: "d"}}}
	if diff := cmp.Diff(want, words[1]); diff != "" {
		t.Error(diff)
	}
}

func TestListTakesWordsAsTheyAre(t *testing.T) {
	words, _, err := List([]string{"x", "a | b; $c *", "{{p}}", "", "--f={{p}}"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "a | b; $c *", "{{p}}", "", "--f={{p}}"}, spelled(words)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]string{nil, {""}, {"{{p}}"}, {"sudo", "x"}, {"/bin/sh", "-c", "ls {{p}}"}, {"x", "a\x00b"}, {"x", "a\nb"}} {
		if _, _, err := List(bad); err == nil {
			t.Errorf("List(%q) is accepted", bad)
		}
	}
}

// FuzzSplit holds what must be true of any text: no word without a source in
// the text, no placeholder as the program, parts that spell the word.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"nginx -T", "a 'b c' \"d\\\"e\" {{ f }}", "x --p={{a}}/{{b}}", "'' x", "a\\ b", "{{", "x '{{.A}}'", "é {{x}}é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := Split(text)
		if err != nil {
			var se *SplitError
			if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(text) || se.What == "" {
				t.Fatalf("Split(%q): %#v", text, err)
			}
			return
		}
		if len(words) == 0 || len(words) > MaxWords || words[0].Text == "" {
			t.Fatalf("Split(%q) = %d words", text, len(words))
		}
		for i, w := range words {
			var b strings.Builder
			for _, p := range w.Parts {
				if (p.Param == "") == (p.Literal == "") {
					t.Fatalf("Split(%q): a part that is both or neither: %+v", text, p)
				}
				if p.Param != "" && i == 0 {
					t.Fatalf("Split(%q): a placeholder as the program", text)
				}
				b.WriteString(p.Literal)
			}
			if strings.ContainsAny(b.String(), "\x00\n\x1b") {
				t.Fatalf("Split(%q): control characters in %q", text, b.String())
			}
		}
		// A second reading of the words as a list says the same.
		again, _, err := List(spelled(words))
		if err == nil && len(again) != len(words) {
			t.Fatalf("Split(%q) and List differ", text)
		}
	})
}
