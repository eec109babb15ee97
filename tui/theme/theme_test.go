package theme

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// luminance is the relative luminance of WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.03928 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	grounds := map[Kind][]string{
		Dark:  {"#000000", "#1e1e1e", "#282a36", "#002b36", "#2e3440"},
		Light: {"#ffffff", "#fafafa", "#fdf6e3", "#eeeeee"},
	}
	for k, p := range palettes {
		for role, c := range map[string]string{"dim": p.dim, "accent": p.accent, "good": p.good, "bad": p.bad, "ask": p.ask, "told": p.told} {
			for _, g := range grounds[k] {
				if r := contrast(t, c, g); r < 4.5 {
					t.Errorf("%s %s %s on %s: %.2f", k, role, c, g, r)
				}
			}
		}
	}
}

func TestStyles(t *testing.T) {
	for _, d := range []Depth{Sixteen, Many, True} {
		for _, k := range []Kind{Dark, Light} {
			th := New(k, d)
			seen := map[string]bool{}
			for _, s := range []Style{th.Accent, th.Good, th.Bad, th.Ask, th.Told} {
				out := string(s.Append(nil, "word"))
				if !strings.Contains(out, "word") || !strings.HasSuffix(out, "\x1b[0m") || !strings.HasPrefix(out, "\x1b[") {
					t.Errorf("%s at %d: %q", k, d, out)
				}
				seen[s.open] = true
			}
			if d != Sixteen && len(seen) != 5 {
				t.Errorf("%s at %d: roles share a colour", k, d)
			}
		}
	}
	th := New(None, True)
	for _, s := range []Style{th.Plain, th.Dim, th.Strong, th.Accent, th.Good, th.Bad, th.Ask, th.Told, th.Cursor} {
		out := string(s.Append(nil, "w"))
		for _, seq := range strings.Split(out, "\x1b[")[1:] {
			n := strings.SplitN(seq, "m", 2)[0]
			for _, p := range strings.Split(n, ";") {
				if v, err := strconv.Atoi(p); err != nil || v >= 30 {
					t.Errorf("none has a colour: %q", out)
				}
			}
		}
	}
	if New(Auto, True).Kind != Dark {
		t.Error("auto must end as a look")
	}
}

func TestDetect(t *testing.T) {
	yes := func(dark bool) func() (bool, bool) { return func() (bool, bool) { return dark, true } }
	never := func() (bool, bool) { t.Error("the terminal was asked"); return false, false }
	for _, c := range []struct {
		wish Kind
		env  []string
		ask  func() (bool, bool)
		want Kind
	}{
		{Light, []string{"NO_COLOR=1"}, never, Light},
		{Auto, []string{"NO_COLOR=1", "COLORFGBG=15;0"}, never, None},
		{Auto, []string{"NO_COLOR="}, yes(false), Light},
		{Auto, []string{"TERM=dumb"}, never, None},
		{"", []string{"COLORFGBG=15;0"}, never, Dark},
		{Auto, []string{"COLORFGBG=0;15"}, never, Light},
		{Auto, []string{"COLORFGBG=0;default;7"}, never, Light},
		{Auto, []string{"COLORFGBG=7;8"}, never, Dark},
		{Auto, []string{"COLORFGBG=0;default"}, yes(false), Light},
		{Auto, nil, yes(true), Dark},
		{Auto, nil, func() (bool, bool) { return false, false }, Dark},
		{Auto, nil, nil, Dark},
	} {
		if got := Detect(c.wish, c.env, c.ask); got != c.want {
			t.Errorf("%q %v: got %s, want %s", c.wish, c.env, got, c.want)
		}
	}
}

func TestDepths(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want Depth
	}{
		{nil, Sixteen}, {[]string{"TERM=xterm"}, Sixteen}, {[]string{"TERM=xterm-256color"}, Many},
		{[]string{"TERM=xterm", "COLORTERM=truecolor"}, True}, {[]string{"TERM=screen", "COLORTERM=truecolor"}, Many},
		{[]string{"TERM=screen-256color", "COLORTERM=24bit", "TMUX=x"}, True}, {[]string{"TERM=xterm-direct"}, True},
	} {
		if got := Depths(c.env); got != c.want {
			t.Errorf("%v: got %d, want %d", c.env, got, c.want)
		}
	}
}

func TestBackground(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b]11;rgb:1e1e/1e1e/1e1e\x07":            "dark",
		"x\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?1c": "light",
		"\x1b]11;rgba:ff/ff/ff/00\x1b\\":            "light",
		"\x1b]11;rgb:0/0/0\x07":                     "dark",
		"\x1b]11;rgb:fff/ff":                        "",
		"\x1b]11;rgb:zz/0/0\x07":                    "",
		"\x1b]11;#000000\x07":                       "",
		"\x1b]10;rgb:0/0/0\x07":                     "",
		"":                                          "",
	} {
		got := ""
		if dark, ok := background([]byte(in)); ok {
			got = string(kind(dark))
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if !attributes([]byte("\x1b[?62;22c")) || attributes([]byte("\x1b]11;rgb:cc/cc/cc\x07")) {
		t.Error("attributes")
	}
}

func FuzzBackground(f *testing.F) {
	f.Add([]byte("\x1b]11;rgb:1e1e/1e1e/1e1e\x07"))
	f.Fuzz(func(t *testing.T, b []byte) { background(b); attributes(b) })
}
