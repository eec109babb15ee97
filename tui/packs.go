package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// firstPack is the one that a single key takes.
const firstPack = "everyday"

// offer is what a fresh installation is asked first: the packs that fit the
// machine. It stands on the first screen while nothing waits there, until the
// first pack is taken.
type offer struct {
	packs []ipc.Pack // offered ones
	pace  pace
}

func newOffer() offer { return offer{pace: pace{gap: 400 * time.Millisecond}} }

// first is the pack that one key takes; false is that it is not offered.
func (o *offer) first() (ipc.Pack, bool) {
	i := slices.IndexFunc(o.packs, func(p ipc.Pack) bool { return p.Name == firstPack })
	if i < 0 {
		return ipc.Pack{}, false
	}
	return o.packs[i], true
}

// read asks which packs there are.
func (o *offer) read(m *Model) tea.Cmd {
	if !m.up || !o.pace.start(m.now()) {
		return nil
	}
	return m.ask(callLimit, func(ctx context.Context) then {
		l, err := m.d.Packs(ctx)
		return func(m *Model) tea.Cmd {
			o.pace.busy = false
			if err != nil {
				return nil // the screen is whole without it
			}
			_, had := o.first()
			o.packs = slices.DeleteFunc(l.Items, func(p ipc.Pack) bool { return p.State != ipc.PackOffered })
			if _, has := o.first(); has && !had {
				m.holds.disturb(m.now()) // a key that was meant for something else takes nothing
			}
			return nil
		}
	})
}

// draw says what is offered, in a few lines.
func (o *offer) draw(m *Model, put func(prefix, text safe, st theme.Style)) {
	p, ok := o.first()
	if !ok {
		return
	}
	begin := safe("Sensors that come with gettier and fit this machine:")
	if m.status.Registry.Sensors == 0 {
		begin = "Nothing is measured yet. What comes with gettier and fits this machine:"
	}
	put("", begin, m.look.Plain)
	names := make([]string, len(o.packs))
	for i, q := range o.packs {
		names[i] = q.Name
	}
	put("  ", tidy(strings.Join(names, " · ")), m.look.Dim)
	put("  a  ", "takes "+tidy(p.Name)+": "+packSize(p), m.look.Accent)
	put("  p  ", "shows each, and what it may do", m.look.Accent)
	put("", "", m.look.Plain)
}

// packSize says how much a pack is.
func packSize(p ipc.Pack) safe {
	s := safe(words.Count(p.Sensors, "sensor", "sensors"))
	built := 0
	for _, w := range p.Reach {
		if strings.Contains(w, " built in:") {
			built++
		}
	}
	if built == p.Sensors {
		s += " that read files and run nothing"
	}
	if p.Premises > 0 {
		s += ", " + safe(words.Count(p.Premises, "check before a command runs", "checks before commands run"))
	}
	return s
}

func packKeys() []binding {
	none := func(m *Model) bool {
		_, ok := m.holds.offer.first()
		return !ok || len(m.holds.list) > 0 || !m.up
	}
	return []binding{
		{key: on("a", "a", "take everyday"), in: inHolds, does: "take the sensors of the pack everyday, exactly as they are in this program", hidden: none, answers: true,
			do: func(m *Model) tea.Cmd {
				p, _ := m.holds.offer.first()
				return m.take([]ipc.Pack{p})
			}},
		{key: on("p", "p", "packs"), in: inHolds, does: "the packs that fit this machine, and what each may do", hidden: none, do: showPacks},
		{key: on("a", "a", "take all"), in: inPacks, does: "take all packs that are shown as taken by it: those that only read", do: func(m *Model) tea.Cmd {
			return m.take(m.pager.packs)
		}, off: func(m *Model) safe {
			switch {
			case !m.up:
				return "gettierd is away"
			case m.pager.off+m.pager.page < len(m.pager.rows):
				return "read to the end first"
			}
			return ""
		}},
	}
}

// showPacks opens what is offered; what is shown is what the key then takes.
func showPacks(m *Model) tea.Cmd {
	look := m.look
	p := &pager{title: "packs that fit this machine", in: inPacks}
	var ps []para
	add := func(q ipc.Pack) {
		ps = append(ps, para{text: join("  ", tidy(q.Name), "sha256:"+tidy(words.Hash(q.Hash))), st: look.Strong}, para{prefix: "  ", text: tidy(q.About)}, para{prefix: "  ", text: packSize(q), st: look.Dim})
		for _, w := range q.Reach {
			if !strings.Contains(w, " built in:") {
				ps = append(ps, para{prefix: "  ! ", pst: look.Ask, text: tidy(w)})
			}
		}
		ps = append(ps, para{})
	}
	for _, q := range m.holds.offer.packs {
		if q.ReadsOnly {
			add(q)
			p.packs = append(p.packs, q)
		}
	}
	if len(p.packs) < len(m.holds.offer.packs) {
		ps = append(ps, para{text: "These connect somewhere, so no key takes them: gettier sensors packs enable NAME", st: look.Ask}, para{})
		for _, q := range m.holds.offer.packs {
			if !q.ReadsOnly {
				add(q)
			}
		}
	}
	p.set(ps)
	m.pager = p
	return nil
}

// take approves packs by the hashes that were shown.
func (m *Model) take(packs []ipc.Pack) tea.Cmd {
	var ap ipc.SensorApproval
	var names []string
	for _, p := range packs {
		ap.Sensors = append(ap.Sensors, ipc.SensorPin{Qualified: "pack/" + p.Name, Hash: p.Hash})
		names = append(names, p.Name)
	}
	shown := m.pager
	return m.ask(callLimit, func(ctx context.Context) then {
		_, err := m.d.ApproveSensors(ctx, ap)
		return func(m *Model) tea.Cmd {
			if err != nil {
				m.fail("not taken", err)
				return nil
			}
			if shown != nil && m.pager == shown {
				m.pager = shown.back
			}
			m.holds.offer.pace.dirty, m.sensors.pace.dirty, m.statusPace.dirty = true, true, true
			m.say("✓ in force: "+tidy(strings.Join(names, ", "))+"; 4 lists the sensors", m.look.Good)
			return nil
		}
	})
}
