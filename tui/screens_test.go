package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/tui/theme"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// ours are the only sequences that a frame may hold: styles.
var ours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// views is how each screen comes to the front.
var views = []struct {
	name string
	open func(r *rig)
}{
	{"holds", func(r *rig) { r.calm() }},
	{"ledger", func(r *rig) { r.key("2", "down") }},
	{"turns", func(r *rig) { r.key("3", "down"); r.wait(time.Second) }},
	{"story", func(r *rig) { r.key("3", "down", "enter") }},
	{"sensors", func(r *rig) { r.key("4") }},
	{"changes", func(r *rig) { r.key("4", "enter") }},
	{"audit", func(r *rig) { r.key("8") }},
	{"typing", func(r *rig) { r.calm(); r.key("r"); r.typed("it takes 1 MB") }},
	{"all", func(r *rig) { r.calm(); r.key("A"); r.calm() }},
	{"keys", func(r *rig) { r.key("?") }},
}

func TestGoldenScreens(t *testing.T) {
	for _, v := range views {
		for _, size := range [][2]int{{40, 12}, {80, 24}, {200, 60}} {
			for _, k := range []theme.Kind{theme.None, theme.Dark, theme.Light} {
				onRig(t, size[0], size[1], Options{Theme: k}, func(r *rig) {
					v.open(r)
					compare(t, fmt.Sprintf("%s.%dx%d.%s", v.name, size[0], size[1], k), r.m.View())
				})
			}
		}
	}
}

// readable spells styles so that a golden file shows them.
func readable(s string) string {
	s = strings.ReplaceAll(s, "\x1b[0m", "}")
	s = ours.ReplaceAllStringFunc(s, func(seq string) string { return "{" + strings.TrimSuffix(seq[2:], "m") + " " })
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func compare(t *testing.T, name, frame string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := readable(frame)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./tui -update writes it)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// check holds what is true of every frame: its lines, its width, and nothing in
// it that a terminal would act on but our own styles.
func check(t *testing.T, m *Model, what string) {
	t.Helper()
	frame := m.View()
	lines := strings.Split(frame, "\n")
	if len(lines) != m.h {
		t.Errorf("%s at %d×%d: %d lines", what, m.w, m.h, len(lines))
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > m.w {
			t.Errorf("%s at %d×%d: line %d has %d columns: %q", what, m.w, m.h, i, n, l)
		}
	}
	for _, c := range unstyle(frame) {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			t.Errorf("%s at %d×%d: %q reaches the terminal: %q", what, m.w, m.h, c, unstyle(frame))
			return
		}
	}
}

// Every size there is, on every screen, with hostile text in every field.
func TestEverySize(t *testing.T) {
	var ws, hs []int
	for n := 1; n <= 200; n++ {
		if n <= 66 || n%11 == 0 || n > 198 {
			ws = append(ws, n)
		}
		if n <= 26 || n%7 == 0 && n < 60 || n == 60 {
			hs = append(hs, n)
		}
	}
	if testing.Short() {
		ws, hs = []int{1, 2, 3, 7, 39, 40, 41, 59, 60, 61, 80, 200}, []int{1, 2, 3, 11, 12, 13, 16, 24, 60}
	}
	for _, v := range views {
		onRig(t, 80, 24, Options{Footer: "your own agent: OPENAI_BASE_URL=…" + evil}, func(r *rig) {
			v.open(r)
			for _, w := range ws {
				for _, h := range hs {
					if h > 60 || t.Failed() {
						continue
					}
					r.m.Update(tea.WindowSizeMsg{Width: w, Height: h})
					check(t, r.m, v.name)
				}
			}
		})
	}
}

// What keys and news do at any size must hold, too.
func TestWhateverHappens(t *testing.T) {
	keys := []string{"1", "2", "3", "4", "8", "j", "k", "G", "g", "tab", "A", "esc", "enter", "?", "/", "x", "c", "r", "w", "s", "esc", "pgdown", "pgup", "left", "right", " ", "n", "t", "a", "e", "v", "backspace", "esc", "ctrl+u"}
	for _, size := range [][2]int{{1, 1}, {40, 12}, {61, 17}, {80, 24}, {200, 60}} {
		onRig(t, size[0], size[1], Options{}, func(r *rig) {
			rnd := uint32(7)
			for i := range 400 {
				rnd = rnd*1664525 + 1013904223
				r.key(keys[int(rnd>>16)%len(keys)])
				if i%40 == 0 {
					r.d.opens(question(i))
					r.calm()
				}
				check(t, r.m, "after keys")
				if t.Failed() {
					t.Logf("%d keys", i)
					return
				}
			}
		})
	}
}

func TestTinySaysTheState(t *testing.T) {
	onRig(t, 39, 5, Options{}, func(r *rig) {
		r.shows("?2 gettier 2 holds wait")
		r.d.stop(os.ErrClosed)
		r.wait(100 * time.Millisecond)
		r.shows("○ gettier gettierd is away")
	})
	onRig(t, 1, 1, Options{}, func(r *rig) {
		if got := r.screen(); got != "?" && got != "…" {
			t.Errorf("one cell: %q", got)
		}
	})
}
