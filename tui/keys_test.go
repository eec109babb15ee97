package tui

import (
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
)

// The table is the only source of keys: each says what it does, and within what
// counts at one time no key stands twice.
func TestKeyTable(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		m := r.m
		hiddenTwins := map[string]bool{"a": true, "d": true, "c": true, "w": true, "r": true} // of claims and of actions
		for _, places := range [][]place{{inEditor}, {inStory, inPager, everywhere}, {inDiff, inPager, everywhere}, {inAll}, {inHolds, everywhere},
			{inLedger, inList, everywhere}, {inTurns, inList, everywhere}, {inSensors, inList, everywhere}, {inAudit, inList, everywhere}} {
			seen := map[string]place{}
			for i := range m.keys {
				b := &m.keys[i]
				if !slices.Contains(places, b.in) {
					continue
				}
				if b.does == "" || b.key.Help().Desc == "" || b.do == nil {
					t.Errorf("%s in %s says nothing or does nothing", b.key.Help().Key, b.in)
				}
				for _, k := range b.key.Keys() {
					if p, twice := seen[k]; twice && !hiddenTwins[k] {
						t.Errorf("%q counts in %s and in %s", k, p, b.in)
					}
					seen[k] = b.in
					if (k == "enter" || k == " ") && b.answers {
						t.Errorf("%q may answer something", k)
					}
				}
			}
		}
		for i := range m.keys {
			if !slices.Contains(allPlaces, m.keys[i].in) {
				t.Errorf("%s is not on the ? screen", m.keys[i].in)
			}
		}
	})
}

// Every key that does nothing now says why, and none of them panics when it is
// asked on an empty screen.
func TestDisabledKeysSayWhy(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows, d.FactRows, d.TurnRows, d.SensorSet = nil, nil, nil, nil }, func(r *rig) {
		for _, c := range []struct{ screen, key, why string }{
			{"1", "s", "scope: nothing waits"}, {"1", "tab", "next claim: nothing waits"},
			{"2", "enter", "details: no fact is selected"}, {"2", "x", "invalidate: no fact is selected"},
			{"3", "enter", "story: no turn is selected"}, {"4", "t", "try: no sensor is selected"}, {"4", "e", "edit: no sensor is selected"},
		} {
			r.key(c.screen, c.key)
			r.shows(c.why)
		}
		r.key("1", "?")
		r.shows("not now: nothing waits")
		r.key("q")
		if !r.quits {
			t.Error("q does not quit")
		}
	})
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("4", "down", "down", "enter")
		r.shows("changes: nothing waits for approval here")
		r.key("e")
		r.shows("edit: $EDITOR is not set")
	})
}

func TestHelpComesFromTheTable(t *testing.T) {
	onRig(t, 100, 60, Options{}, func(r *rig) {
		for _, k := range []string{"1", "2", "3", "4", "8"} {
			r.key(k, "?")
			var all strings.Builder
			for _, row := range r.m.pager.rows {
				all.WriteString(string(row.prefix + row.text + "\n"))
			}
			for i := range r.m.keys {
				if b := &r.m.keys[i]; t.Failed() {
					return
				} else if !strings.Contains(all.String(), string(fold(b.does, 60)[0])) {
					t.Errorf("? of screen %s lacks %q", k, b.does)
				}
			}
			r.key("?", "esc")
			if r.m.pager != nil {
				t.Error("esc does not close the keys")
			}
		}
	})
}

// Fast typing moves about; an esc with a key behind it is both.
func TestBursts(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("8")
		last, _ := r.m.audit.list.Selected()
		r.key("kkk")
		if got, _ := r.m.audit.list.Selected(); got.seq != last.seq-3 {
			t.Errorf("three keys at once moved from %d to %d", last.seq, got.seq)
		}
		r.key("enter")
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2"), Alt: true})
		r.shows("[2 Ledger]")
		r.key("/status:stale") // opens the filter and goes on in it
		r.shows("filter › status:stale")
	})
}

func TestEditor(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("2", "n")
		r.typed("one two  three")
		r.key("ctrl+w")
		text := func(want string) {
			t.Helper()
			if got := r.m.editor.text(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		text("one two  ")
		r.key("home", "right", "delete", "backspace")
		text("e two  ")
		r.key("end", "left", "ctrl+k", "ctrl+a", "right", "ctrl+u")
		text(" two ")
		r.key("ctrl+e")
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Paste: true, Runes: []rune("a\nb" + evil + "\tc")})
		if s := r.m.editor.text(); strings.ContainsAny(s, "\n\t\x1b\r\u202e") || !strings.Contains(s, "a b") {
			t.Errorf("pasted: %q", s)
		}
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Paste: true, Runes: []rune(strings.Repeat("x", 2*editMost))})
		if n := len([]rune(r.m.editor.text())); n != editMost {
			t.Errorf("%d characters", n)
		}
		r.shows("no more fits")
		r.key("left")
		r.shows("true for shop › ", "xxx")
		check(t, r.m, "a long text")
		r.key("q") // is text
		if r.quits || r.m.editor == nil {
			t.Error("q in a text quits")
		}
		r.key("esc")
		r.key("2")
		r.shows("[2 Ledger]")
		if r.d.calls["tell"] > 0 {
			t.Error("esc told")
		}
	})
}
