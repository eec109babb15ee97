package clean

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "client_max_body_size 1m", "client_max_body_size 1m"},
		{"umlauts", "Größe 3 µs ≤ 日本", "Größe 3 µs ≤ 日本"},
		{"colour", "\x1b[31mred\x1b[0m", "red"},
		{"clear screen", "\x1b[2J\x1b[Hgone", "gone"},
		{"window title", "\x1b]0;owned\x07x", "0;ownedx"},
		{"clipboard", "\x1b]52;c;cm0gLXJmIH4=\x1b\\", "52;c;cm0gLXJmIH4="},
		{"link keeps its target", "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "8;;http://evil.exampleclick8;;"},
		{"dcs", "\x1bP$q\"p\x1b\\", "$q\"p"},
		{"c1 csi", "\u009b31mred", "red"},
		{"c1 bytes", "a\x9b31mb", "a\ufffd31mb"},
		{"c1 osc", "\u009d0;t\u009c", "0;t"},
		{"charset", "\x1b(0qqq\x1b(B", "qqq"},
		{"reset", "\x1bcx", "x"},
		{"unfinished", "x\x1b[", "x["},
		{"unfinished params", "x\x1b[31", "x[31"},
		{"escape at the end", "x\x1b", "x"},
		{"text after a stray csi", "\x1b[ä", "[ä"},
		{"overwriting", "safe\rrm -rf ~", "safe rm -rf ~"},
		{"backspace", "ok\b\bno", "okno"},
		{"two lines", "a\r\nb\n\nc\td", "a b c d"},
		{"bidi", "user\u202e\u2066// admin\u2069\u2066", "user// admin"},
		{"marks of direction", "a\u200eb\u200fc\u061cd", "abcd"},
		{"zero width", "pay\u200bpal\u2060\ufeff", "paypal"},
		{"soft hyphen", "pass\u00adword", "password"},
		{"tags", "hi\U000e0041\U000e0042", "hi"},
		{"smuggling selectors", "a\ufe01\U000e0105b", "ab"},
		{"filler", "a\u3164b", "a b"},
		{"joiner in ascii", "a\u200db", "ab"},
		{"joiner in emoji", "👩\u200d💻 ok", "👩\u200d💻 ok"},
		{"half joiner", "👩\u200d ok", "👩 ok"},
		{"zalgo", "e" + strings.Repeat("\u0301", 50) + "x", "e" + strings.Repeat("\u0301", maxMarks) + "x"},
		{"mark first", "\u0301x", "x"},
		{"private use", "a\ue000b", "ab"},
		{"noncharacter", "a\uffffb\ufdd0", "ab"},
		{"nul and del", "a\x00b\x7fc", "abc"},
		{"broken utf8", "a\xffb\xc3", "a\ufffdb\ufffd"},
		{"line separators", "a\u2028b\u2029c\u0085d", "a b c d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Line(c.in); got != c.want {
				t.Errorf("Line(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	if got, want := Text("a\r\nb\rc\n\td\x1b[1m\u2028e"), "a\nb\nc\n\td\ne"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"", 3, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"\x1b[31mabcd\x1b[0m", 4, "abcd"},
		{"👩\u200d💻👩\u200d💻", 3, "👩\u200d💻…"},
	} {
		got := Cut(c.in, c.width)
		if got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
		if Width(got) > c.width {
			t.Errorf("Cut(%q, %d) takes %d columns", c.in, c.width, Width(got))
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a", "\x1b[31mx", "\x1b]0;t\x07", "\u202e", "e\u0301\u0301", "👩\u200d💻", "\x9b", "\x1b\x1b[\x1b", "\u009b3\u200d", "a\u0301\u200d\u0301é", "\x1b[[31m[31m"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, in string, width int) {
		for name, fn := range map[string]func(string) string{"Line": Line, "Text": Text} {
			got := fn(in)
			if !utf8.ValidString(got) {
				t.Fatalf("%s(%q) = %q: not UTF-8", name, in, got)
			}
			marks := 0
			for _, r := range got {
				if unicode.IsControl(r) && (name == "Line" || r != '\n' && r != '\t') {
					t.Fatalf("%s(%q) = %q: control %U", name, in, got, r)
				}
				if unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Cf) && r != 0x200c && r != 0x200d {
					t.Fatalf("%s(%q) = %q: %U", name, in, got, r)
				}
				if unicode.In(r, unicode.Mn, unicode.Me) {
					if marks++; marks > maxMarks {
						t.Fatalf("%s(%q) = %q: too many marks", name, in, got)
					}
				} else if r != 0x200c && r != 0x200d {
					marks = 0
				}
			}
			if again := fn(got); again != got {
				t.Fatalf("%s is not stable: %q, then %q", name, got, again)
			}
			// What a person could read in plain ASCII letters is still there, in order.
			if want, have := letters(in), letters(got); len(have) < len(want)-escapes(in) {
				t.Fatalf("%s(%q) = %q lost text", name, in, got)
			}
		}
		if width = width % 200; width > 0 {
			if got := Cut(in, width); Width(got) > width {
				t.Fatalf("Cut(%q, %d) = %q takes %d columns", in, width, got, Width(got))
			}
		}
	})
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII && unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

// escapes is how many letters sequences may take: their final bytes.
func escapes(s string) int {
	return strings.Count(s, "\x1b") + strings.Count(s, "\u009b")
}

func BenchmarkLine(b *testing.B) {
	for _, c := range []struct{ name, s string }{
		{"plain", strings.Repeat("client_max_body_size 1m; ", 40)},
		{"coloured", strings.Repeat("\x1b[32mok\x1b[0m größe 日本 ", 40)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.s)))
			for b.Loop() {
				Line(c.s)
			}
		})
	}
}
