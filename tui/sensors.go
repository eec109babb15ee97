package tui

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/rows"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// tryLimit is more than a sensor may take.
const tryLimit = 3 * time.Minute

// sensors is screen 4: the registry, what each sensor read last, and approvals.
type sensors struct {
	list *rows.List[sensorRow]
	pace pace
	want string // sensor that is being tried
}

type sensorRow struct {
	ipc.Sensor
	key                        string
	state, name, level, effect safe
	last                       safe
}

func newSensors() *sensors {
	s := &sensors{list: rows.New(func(r sensorRow) string { return r.key }), pace: pace{gap: 400 * time.Millisecond}}
	s.list.Reset()
	return s
}

func (*sensors) tab() (rune, safe) { return '4', "Sensors" }

func (*sensors) place() place { return inSensors }

func (s *sensors) mover() mover { return s.list }

func (s *sensors) open(*Model) tea.Cmd { s.pace.dirty = true; return nil }

func (s *sensors) linked(_ *Model, fresh bool) tea.Cmd {
	if fresh {
		s.list.Reset()
	}
	s.pace.dirty = true
	return nil
}

func (s *sensors) news(_ *Model, b *batch) {
	s.pace.dirty = s.pace.dirty || touched(b, "registry.", "sensor.")
}

func readSensor(v ipc.Sensor) sensorRow {
	r := sensorRow{Sensor: v, key: v.Qualified, name: tidy(v.ID), level: tidy(v.Level), effect: tidy(v.Effects), state: sensorState(v.State)}
	if v.ID == "" {
		r.key, r.name, r.level = v.File, tidy(filepath.Base(v.File)), "file"
	}
	if v.Kind != "" && v.Kind != "sensor" && v.Kind != v.ID {
		r.name += " (" + tidy(v.Kind) + ")"
	}
	switch l := v.Last; {
	case v.State == ipc.SensorBroken || v.State == ipc.SensorBackedOff:
		r.last = tidy(v.Reason)
	case l == nil:
	case l.Reason != "":
		r.last = join(": ", "could not run", tidy(l.Reason), tidy(l.Detail))
	default:
		var parts []string
		for _, x := range l.Values {
			parts = append(parts, x.Key+" = "+words.Quote(first(x.Text, x.Problem)))
		}
		r.last = wordsOf(parts)
	}
	return r
}

func sensorState(state string) safe {
	switch state {
	case ipc.SensorApproved:
		return "✓ approved"
	case ipc.SensorPending:
		return "? pending"
	case ipc.SensorChanged:
		return "? changed"
	case ipc.SensorRemoved:
		return "? removed"
	case ipc.SensorBroken:
		return "✗ broken"
	case ipc.SensorBackedOff:
		return "◌ backed off"
	}
	return tidy(state)
}

func (s *sensors) settle(m *Model, h int) tea.Cmd {
	list, _ := split(h)
	s.list.Resize(list - 1)
	return follow(m, s.list, &s.pace, "sensors", func(ctx context.Context, p ipc.Page) (ipc.List[ipc.Sensor], error) {
		return m.d.Sensors(ctx, ipc.SensorQuery{Page: p})
	}, readSensor)
}

func (s *sensors) wake(*Model) (time.Time, bool) { return s.pace.wake() }

func (s *sensors) draw(m *Model, c *canvas, h int) {
	stop := c.lines + h
	list, details := split(h)
	name, level := min(26, c.w*2/5-8), 14
	switch {
	case c.w < wideW:
		level = 0
	case c.w >= 120:
		name, level = 40, 24
	}
	c.gap(2)
	c.cell("state", 14, m.look.Dim)
	c.cell("sensor", name+2, m.look.Dim)
	if level > 0 {
		c.cell("from", level+2, m.look.Dim)
	}
	c.text("last reading", m.look.Dim)
	c.end()
	n := 0
	c.b, n = s.list.View(c.b, func(dst []byte, r sensorRow, here, selected bool) []byte {
		c.b, c.left = dst, c.w
		st := m.look.Plain
		if selected {
			c.text("▸ ", m.look.Accent)
			st = m.look.Strong
		} else {
			c.gap(2)
		}
		if !here {
			c.text("…", m.look.Dim)
			return c.b
		}
		c.cell(r.state, 14, m.sensorStyle(r.State))
		c.cell(r.name, name, st)
		c.gap(2)
		if level > 0 {
			c.cell(r.level, level, m.look.Dim)
			c.gap(2)
		}
		c.text(first2(r.last, "not run yet"), lastStyle(m, r))
		return c.b
	})
	c.lines += n
	c.left = c.w
	if s.list.Len() == 0 {
		m.none(c, !s.list.Complete(), "no sensors: write sensors.yaml in the configuration directory, or .gettier/sensors.yaml in a project")
	}
	c.pad(stop - h + list)
	if details > 0 {
		m.rule(c, "")
		if r, ok := s.list.Selected(); ok {
			m.paras(c, stop, s.paras(m, r))
		}
	}
	c.pad(stop)
}

func lastStyle(m *Model, r sensorRow) theme.Style {
	switch {
	case r.State == ipc.SensorBroken || r.Last != nil && r.Last.Reason != "":
		return m.look.Bad
	case r.last == "":
		return m.look.Dim
	}
	return m.look.Plain
}

func (s *sensors) paras(m *Model, r sensorRow) []para {
	look := m.look
	state := r.state
	switch {
	case r.Reason != "":
		state = join(": ", state, tidy(r.Reason))
	case r.State == ipc.SensorChanged || r.State == ipc.SensorRemoved:
		state += ", the approved definition stays in force"
	}
	ps := []para{{text: join("   ", r.name, tidy(r.Description)), st: look.Strong},
		{prefix: "state     ", pst: look.Dim, text: state, st: m.sensorStyle(r.State)}}
	add := func(label, text safe) {
		if text != "" {
			ps = append(ps, para{prefix: label, pst: look.Dim, text: text})
		}
	}
	add("command   ", tidy(r.Command))
	add("reads     ", wordsOf(r.Keys))
	add("verifies  ", wordsOf(r.Verifies))
	if r.ID != "" {
		ambient := safe("")
		if r.Ambient {
			ambient = "ambient"
		}
		add("runs      ", join(" · ", "effects "+r.effect, tidy(r.Network), ambient))
	}
	add("file      ", tidy(r.File)+":"+safe(words.Thousands(r.Line)))
	if l := r.Last; l != nil {
		add("last      ", join("  ", r.last, m.stamp(l.Invocation.StartedAt), safe(words.Millis(l.Invocation.DurationMS))))
	}
	return ps
}

func sensorKeys() []binding {
	selected := func(m *Model) (sensorRow, safe) {
		r, ok := m.sensors.list.Selected()
		switch {
		case !ok:
			return r, "no sensor is selected"
		case !m.up:
			return r, "gettierd is away"
		}
		return r, ""
	}
	changes := func(m *Model) safe {
		r, why := selected(m)
		switch {
		case why != "":
			return why
		case r.ID == "":
			return "the file is broken: e opens it"
		case r.State != ipc.SensorPending && r.State != ipc.SensorChanged && r.State != ipc.SensorRemoved:
			return "nothing waits for approval here"
		}
		return ""
	}
	return []binding{
		{key: on("enter", "enter", "changes"), in: inSensors, does: "what an approval would change; a approves it there", do: func(m *Model) tea.Cmd { return m.sensors.diff(m) }, off: changes},
		{key: on("t", "t", "try"), in: inSensors, does: "run it now: what it printed, what was read from that, how a claim is judged", do: func(m *Model) tea.Cmd { return m.sensors.try(m) }, off: func(m *Model) safe {
			r, why := selected(m)
			switch {
			case why != "":
				return why
			case m.sensors.want != "":
				return tidy(m.sensors.want) + " is running"
			case r.ID == "" || r.Kind != "" && r.Kind != "sensor":
				return "only sensors run"
			}
			return ""
		}},
		{key: on("e", "e", "edit"), in: inSensors, does: "open $EDITOR at this sensor", do: func(m *Model) tea.Cmd { return m.sensors.edit(m) }, off: func(m *Model) safe {
			r, why := selected(m)
			switch {
			case why != "":
				return why
			case r.File == "":
				return "it comes from no file"
			case len(m.editorArgs()) == 0:
				return "$EDITOR is not set"
			}
			return ""
		}},
		{key: on("a", "a", "approve"), in: inDiff, does: "take exactly what is shown here", do: func(m *Model) tea.Cmd { return m.sensors.approve(m) }, off: func(m *Model) safe {
			switch {
			case m.pager.diff == nil:
				return "nothing is shown yet"
			case !m.up:
				return "gettierd is away"
			case m.pager.off+m.pager.page < len(m.pager.rows):
				return "read to the end first"
			}
			return ""
		}},
	}
}

// project is the registered name that a sensor belongs to.
func (r sensorRow) project() string {
	name, ok := strings.CutPrefix(r.Level, "project/")
	if !ok {
		return ""
	}
	return name
}

// diff shows what an approval would change.
func (s *sensors) diff(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	p := &pager{title: "changes of " + r.name, in: inDiff}
	p.set([]para{{text: "…", st: m.look.Dim}})
	m.pager = p
	return m.ask(callLimit, func(ctx context.Context) then {
		d, err := m.d.SensorDiff(ctx, r.Qualified, r.project())
		return func(m *Model) tea.Cmd {
			if err != nil {
				p.set([]para{{text: "cannot be shown: " + reason(err), st: m.look.Bad}})
				return nil
			}
			ps := []para{{text: join("  ", tidy(d.Qualified), sensorState(d.State)), st: m.look.Strong},
				{text: join("  ", tidy(d.File), "definition "+tidy(words.Hash(first(d.Hash, "removed"))))}, {}}
			for _, l := range tidyLines(d.Text) {
				st := m.look.Plain
				switch {
				case strings.HasPrefix(string(l), "+"):
					st = m.look.Good
				case strings.HasPrefix(string(l), "-"):
					st = m.look.Bad
				case strings.HasPrefix(string(l), "!"):
					st = m.look.Strong
				}
				ps = append(ps, para{text: l, st: st})
			}
			p.set(ps)
			p.diff = &d
			return nil
		}
	})
}

// approve pins the definition that the screen shows, by its hash.
func (s *sensors) approve(m *Model) tea.Cmd {
	p, d := m.pager, *m.pager.diff
	return m.ask(callLimit, func(ctx context.Context) then {
		_, err := m.d.ApproveSensors(ctx, ipc.SensorApproval{Sensors: []ipc.SensorPin{{Qualified: d.Qualified, Hash: d.Hash}}})
		return func(m *Model) tea.Cmd {
			if err != nil {
				m.fail("not approved", err)
				return nil
			}
			if m.pager == p {
				m.pager = p.back
			}
			s.pace.dirty, m.statusPace.dirty = true, true
			m.say("✓ approved: "+tidy(d.Qualified), m.look.Good)
			return nil
		}
	})
}

// try asks for what the sensor needs and the claim to judge, and runs it.
func (s *sensors) try(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	var need []string
	for _, p := range r.Params {
		if p.Required {
			need = append(need, p.Name+"=")
		}
	}
	m.editor = &editor{prompt: "claim to judge, or nothing", send: "run", done: func(m *Model, text string) (tea.Cmd, safe) {
		t := ipc.SensorTry{Project: r.project(), Params: map[string]string{}, Draft: !r.InForce || r.State == ipc.SensorPending}
		var claim []string
		for _, w := range strings.Fields(text) {
			name, value, ok := strings.Cut(w, "=")
			if ok && slices.ContainsFunc(r.Params, func(p ipc.SensorParam) bool { return p.Name == name }) {
				t.Params[name] = value
			} else {
				claim = append(claim, w)
			}
		}
		for _, n := range need {
			if t.Params[strings.TrimSuffix(n, "=")] == "" {
				return nil, "it needs " + tidy(n) + "…"
			}
		}
		t.Claim = strings.Join(claim, " ")
		return s.run(m, r, t), ""
	}}
	if len(need) > 0 {
		m.editor.prompt = "values, then a claim to judge"
		m.editor.insert([]rune(strings.Join(need, " ")))
		m.editor.pos = strings.IndexByte(m.editor.text(), '=') + 1
	}
	return nil
}

func (s *sensors) run(m *Model, r sensorRow, t ipc.SensorTry) tea.Cmd {
	s.want = string(r.name)
	p := &pager{title: "try of " + r.name}
	p.set([]para{{text: "running", st: m.look.Dim}})
	m.pager = p
	return m.ask(tryLimit, func(ctx context.Context) then {
		got, err := m.d.TrySensor(ctx, r.Qualified, t)
		return func(m *Model) tea.Cmd {
			s.want = ""
			s.pace.dirty = true
			if err != nil {
				p.set([]para{{text: "it did not run: " + reason(err), st: m.look.Bad}})
				return nil
			}
			p.set(m.tried(t, got))
			return nil
		}
	})
}

// tried is one run in full: the command, the values, the judgement, the output.
func (m *Model) tried(t ipc.SensorTry, v ipc.SensorTried) []para {
	look := m.look
	inv := v.Reading.Invocation
	ps := []para{
		{prefix: "command   ", pst: look.Dim, text: tidy(words.Argv(inv.Argv)), st: look.Strong},
		{prefix: "took      ", pst: look.Dim, text: join(" · ", safe(words.Millis(inv.DurationMS)), "exit "+safe(words.Thousands(inv.ExitCode)), "sandbox "+tidy(words.Or(inv.Sandbox, "none")))},
	}
	if v.Reading.Reason != "" {
		ps = append(ps, para{prefix: "failed    ", pst: look.Dim, text: join(": ", "✗ could not run", tidy(v.Reading.Reason), tidy(v.Reading.Detail)), st: look.Bad})
	}
	for _, x := range v.Reading.Values {
		text, st := tidy(x.Key+" = "+words.Quote(x.Text)), look.Plain
		if x.Problem != "" {
			text, st = join("  ", text, "✗ "+tidy(x.Problem)), look.Bad
		}
		ps = append(ps, para{prefix: "value     ", pst: look.Dim, text: join("  ", text, tidy(x.Type), tidy(x.Place)), st: st})
	}
	if t.Claim != "" {
		ps = append(ps, para{prefix: "claim     ", pst: look.Dim, text: tidy(t.Claim)},
			para{prefix: "reached   ", pst: look.Dim, text: first2(tidy(v.Matches), "the claim does not reach this sensor in a turn")})
	}
	if j := v.Judged; j != nil {
		how := join("  ", tidy(words.Verdict(j.Verdict)), tidy(j.Rule), tidy(j.Reason))
		if j.Measured != "" {
			how = join("  ", how, tidy(j.Key+": "+words.Quote(j.Measured)+" "+j.Operator+" "+words.Quote(j.Claimed)))
		}
		ps = append(ps, para{prefix: "verdict   ", pst: look.Dim, text: how, st: m.verdictStyle(j.Verdict)})
	}
	if v.Suggestion != "" {
		ps = append(ps, para{prefix: "hint      ", pst: look.Dim, text: "no rule reads this claim; this one would:"})
		for _, l := range tidyLines(v.Suggestion) {
			ps = append(ps, para{prefix: "          ", text: l, raw: true})
		}
	}
	for _, x := range v.Redacted {
		ps = append(ps, para{prefix: "redacted  ", pst: look.Dim, text: safe(words.Count(x.Count, "secret", "secrets")) + ", rule " + tidy(x.Rule)})
	}
	ps = append(ps, para{}, para{text: "it printed", st: look.Dim})
	for _, l := range tidyLines(v.Output) {
		ps = append(ps, para{text: "│ " + l, raw: true})
	}
	if v.Truncated {
		ps = append(ps, para{text: "… cut here", st: look.Dim})
	}
	return ps
}

// editorArgs is the person's editor.
func (m *Model) editorArgs() []string {
	return strings.Fields(first(theme.Getenv(m.o.Env, "VISUAL"), theme.Getenv(m.o.Env, "EDITOR")))
}

// edit hands the terminal to the editor, at the line of the sensor.
func (s *sensors) edit(m *Model) tea.Cmd {
	r, _ := s.list.Selected()
	args := m.editorArgs()
	if r.Line > 0 {
		args = append(args, fmt.Sprintf("+%d", r.Line))
	}
	cmd := exec.CommandContext(m.ctx, args[0], append(args[1:], r.File)...)
	cmd.Env = m.o.Env
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		return then(func(m *Model) tea.Cmd {
			s.pace.dirty = true
			if err != nil {
				m.fail("the editor", err)
			}
			return nil
		})
	})
}
