package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/rows"
	"gettier.dev/gettierd/tui/theme"
)

func wantOf(m *Model, page int) rows.Want { return rows.Want{Gen: m.audit.list.Gen(), Page: page} }

// Answers to the question for the background that come late are no keys.
func TestLateAnswers(t *testing.T) {
	const late = "\x1b]11;rgb:1c1c/1c1c/1c1c\x1b\\"
	for _, c := range []struct{ in, want string }{
		{"jk" + late + "q", "jkq"}, {"\x1b]11;rgb:0/0/0\x07c", "c"}, {late + late, ""}, {"\x1b[A\x1b", "\x1b[A\x1b"},
		{"\x1b]11;" + strings.Repeat("x", 200), "\x1b]11;" + strings.Repeat("x", 200)},
	} {
		if got := string((&reader{}).filter([]byte(c.in))); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		if !strings.Contains(c.in, late) {
			continue
		}
		for i := range len(c.in) { // in two pieces
			if strings.HasSuffix(c.in[:i], "\x1b") || strings.HasSuffix(c.in[:i], "\x1b]") || strings.HasSuffix(c.in[:i], "\x1b]1") || strings.HasSuffix(c.in[:i], "\x1b]11") {
				continue // a lone esc is a key; terminals send their answers in one piece
			}
			r := &reader{}
			if got := string(r.filter([]byte(c.in[:i]))) + string(r.filter([]byte(c.in[i:]))); got != c.want {
				t.Errorf("%q | %q: got %q, want %q", c.in[:i], c.in[i:], got, c.want)
			}
		}
	}
}

func TestFramesAreBracketed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := &writer{File: w}
	n, err := out.Write([]byte("frame"))
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	if _, err := out.WriteString("\a"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	buf := make([]byte, 100)
	k, _ := r.Read(buf)
	if got, want := string(buf[:k]), "\x1b[?2026h\x1b[?7lframe\x1b[?7h\x1b[?2026l\a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUsable(t *testing.T) {
	if err := Usable(nil, os.Stdout, nil); err == nil {
		t.Error("no input is no terminal")
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Run(t.Context(), Options{Client: newFake(), Input: f, Output: f, Env: []string{"TERM=xterm"}}); err == nil || !strings.Contains(err.Error(), "no terminal") {
		t.Errorf("got %v", err)
	}
}

func TestFitAndFold(t *testing.T) {
	for _, c := range []struct {
		in   safe
		w    int
		want safe
		cut  bool
	}{
		{"abc", 3, "abc", false}, {"abcd", 3, "abc", true}, {"日本", 3, "日", true}, {"日本", 4, "日本", false}, {"e\u0301x", 1, "e\u0301", true}, {"x", 0, "", true}, {"", 0, "", false},
	} {
		if got, _, cut := fit(c.in, c.w); got != c.want || cut != c.cut {
			t.Errorf("fit(%q, %d) = %q, %v", c.in, c.w, got, cut)
		}
	}
	for _, c := range []struct {
		in   safe
		w    int
		want string
	}{
		{"one two three", 7, "one two|three"}, {"one two three", 8, "one two|three"}, {"abcdefghij", 4, "abcd|efgh|ij"}, {"a 日本語 b", 4, "a 日|本語|b"},
		{"日本", 1, "…|…"}, {"x", 0, ""}, {"", 5, ""}, {"a  b", 2, "a|b"},
	} {
		var got []string
		for _, l := range fold(c.in, c.w) {
			got = append(got, string(l))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("fold(%q, %d) = %q, want %q", c.in, c.w, s, c.want)
		}
	}
}

// Whatever a text holds, its lines fit, and nothing in them steers a terminal.
func FuzzLines(f *testing.F) {
	f.Add("one two 日本語 👩‍💻 e\u0301\u0301\u0301\u0301\u0301", uint8(7))
	f.Add(evil, uint8(1))
	f.Fuzz(func(t *testing.T, s string, w8 uint8) {
		w := int(w8)%120 + 1
		for _, raw := range tidyLines(s) {
			for _, l := range fold(raw, w) {
				if n := ansi.StringWidth(string(l)); n > w {
					t.Fatalf("%d columns in %d: %q", n, w, l)
				}
				if clean.Line(string(l)) != string(l) && !strings.Contains(s, "\u200d") {
					t.Fatalf("%q is not clean", l)
				}
			}
			var c canvas
			c.reset(w)
			c.cell(raw, w/2, theme.Style{})
			c.gap(1)
			c.flush(raw, w/3, theme.Style{})
			c.text(raw, theme.Style{})
			if n := ansi.StringWidth(string(c.b)); n > w {
				t.Fatalf("a line of %d columns in %d: %q", n, w, c.b)
			}
		}
	})
}
