package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/theme"
)

// fresh is an installation of which nothing was used yet.
func fresh(d *fake) {
	d.HoldRows, d.FactRows, d.TurnRows, d.SensorSet = nil, nil, nil, nil
	d.St.Registry, d.St.Counters, d.St.Projects = ipc.RegistryStatus{}, map[string]int64{}, 0
	d.PackSet = []ipc.Pack{
		{Name: "everyday", About: "what daily work takes for granted", State: ipc.PackOffered, Sensors: 2, Premises: 106, Hash: strings.Repeat("e1", 32), ReadsOnly: true,
			Reach: []string{"git.dirty built in: reads files itself, runs no program", "node.pm built in: reads files itself, runs no program"}},
		{Name: "git", About: "history", State: ipc.PackOffered, Sensors: 1, Hash: strings.Repeat("61", 32), ReadsOnly: true, Reach: []string{"git.tag runs git, which may read every file that you can read and write none"}},
		{Name: "docker", About: "containers" + evil, State: ipc.PackOffered, Sensors: 1, Hash: strings.Repeat("d0", 32), Reach: []string{"docker.container connects anywhere" + evil}},
		{Name: "kubernetes", State: ipc.PackNotHere, Sensors: 1, Hash: "00"},
	}
}

// TestFirstScreen: what a fresh installation shows, at every size and look.
func TestFirstScreen(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {80, 24}, {200, 60}} {
		for _, k := range []theme.Kind{theme.None, theme.Dark, theme.Light} {
			onRigOf(t, size[0], size[1], Options{Theme: k}, fresh, func(r *rig) {
				r.calm()
				r.shows("a  takes everyday: 2 sensors", "p  shows each", "everyday · git · docker")
				r.hides("kubernetes")
				compare(t, fmt.Sprintf("first.%dx%d.%s", size[0], size[1], k), r.m.View())
				check(t, r.m, "first")
				r.key("p")
				compare(t, fmt.Sprintf("packs.%dx%d.%s", size[0], size[1], k), r.m.View())
				check(t, r.m, "packs")
			})
		}
	}
}

// TestOneKeyTakesAPack: one deliberate key takes the first pack by the hash that
// the daemon gave, another all that only read, and none one that connects.
func TestOneKeyTakesAPack(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, fresh, func(r *rig) {
		r.key("a")
		r.shows("not taken: press it again after a moment of quiet")
		if len(r.d.approved()) != 0 {
			t.Fatal("a key that was pressed as the offer came took it")
		}
		r.calm()
		r.d.stop(errors.New("gone"))
		r.key("a")
		if len(r.d.approved()) != 0 {
			t.Fatal("taken without a daemon")
		}
		r.d.start()
		r.wait(retryMost * 2)
		r.calm()
		r.key("a")
		if got, want := r.d.approved(), []ipc.SensorPin{{Qualified: "pack/everyday", Hash: strings.Repeat("e1", 32)}}; !slices.Equal(got, want) {
			t.Errorf("taken: %v", got)
		}
		r.shows("✓ in force: everyday")
	})
	onRigOf(t, 40, 12, Options{}, fresh, func(r *rig) {
		r.key("p", "a")
		r.shows("take all: read to the end first")
		r.key("G", "a")
		if got, want := r.d.approved(), []ipc.SensorPin{{Qualified: "pack/everyday", Hash: strings.Repeat("e1", 32)}, {Qualified: "pack/git", Hash: strings.Repeat("61", 32)}}; !slices.Equal(got, want) {
			t.Errorf("taken: %v", got)
		}
	})
	// Where something waits for an answer, that is what the screen shows.
	onRigOf(t, 80, 24, Options{}, func(d *fake) { holds := d.HoldRows; fresh(d); d.HoldRows = holds }, func(r *rig) {
		r.calm()
		r.hides("takes everyday")
	})
}

// A fresh installation at real terminals: one key, and the first pack is in force.
func TestTmuxFirstScreen(t *testing.T) {
	for _, c := range []struct {
		w, h int
		env  []string
	}{{40, 12, nil}, {80, 24, []string{"NO_COLOR=1"}}, {200, 60, nil}} {
		f, socket := served(t, fresh)
		p := openTmux(t, socket, c.w, c.h, c.env...)
		p.until("takes everyday: 2 sensors", "a take everyday")
		p.keys("p")
		p.until("packs that fit this machine", "everyday", "a take all")
		p.keys("Escape")
		p.until("takes everyday: 2 sensors")
		p.calm()
		p.keys("a")
		p.until("✓ in force: everyday")
		if n := len(f.People()); n != 1 {
			t.Errorf("%d approvals of a person", n)
		}
		p.ends("q")
	}
}
