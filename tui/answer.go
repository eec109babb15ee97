package tui

import (
	"context"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// holdKeys are the keys of the queue. None of them is enter or space, and none
// is a default: an answer is one deliberate letter.
func holdKeys() []binding {
	claims := func(m *Model) bool { h, it := m.holds.current(); return h == nil || it.action() }
	actions := func(m *Model) bool { return !claims(m) || len(m.holds.list) == 0 }
	all := func(m *Model) bool {
		h, _ := m.holds.current()
		return h == nil || slices.ContainsFunc(h.items, func(c claim) bool { return c.action() })
	}
	plain := func(kind lemma.AnswerKind) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd { return m.holds.answer(m, kind, "") }
	}
	return []binding{
		{key: on("c", "c", "confirm"), in: inHolds, does: "it is true: the answer goes out as it is", do: plain(lemma.AnswerConfirm),
			off: answerable, answers: true, pane: true, hidden: claims},
		{key: on("r", "r", "correct…"), in: inHolds, does: "it is not: say what is true", do: func(m *Model) tea.Cmd { return m.holds.write(m, lemma.AnswerCorrect, false) },
			off: answerable, answers: true, pane: true, hidden: claims},
		{key: on("w", "w", "waive…"), in: inHolds, does: "it does not matter here: say why", do: func(m *Model) tea.Cmd { return m.holds.write(m, lemma.AnswerWaive, false) },
			off: answerable, answers: true, pane: true, hidden: claims},
		{key: on("a", "a", "approve"), in: inHolds, does: "let exactly this happen", do: func(m *Model) tea.Cmd { return m.holds.approve(m) },
			off: answerable, answers: true, pane: true, hidden: actions},
		{key: on("d", "d", "deny"), in: inHolds, does: "do not let it happen", do: plain(lemma.AnswerDeny),
			off: answerable, answers: true, pane: true, hidden: actions},
		{key: on("s", "s", "scope"), in: inHolds, does: "how far the answer reaches: this task, the project, once", do: func(m *Model) tea.Cmd { m.holds.turnScope(); return nil },
			word: func(m *Model) safe { return "scope: " + safe(m.holds.scope) }, off: waiting, pane: true},
		{key: on("A", "A", "all…"), in: inHolds, does: "answer all claims of this hold that are left the same way, after one more key",
			do: func(m *Model) tea.Cmd { m.holds.all = true; m.holds.disturb(m.now()); return nil }, answers: true, pane: true, hidden: all,
			off: func(m *Model) safe {
				if why := answerable(m); why != "" {
					return why
				}
				if h, _ := m.holds.current(); h.left() < 2 {
					return "only one claim is left"
				}
				return ""
			}},
		{key: on("enter", "enter", "evidence"), in: inHolds, does: "everything there is to this hold, with what the sensors printed; answers nothing", do: evidence, off: waiting, pane: true},
		{key: on("tab", "tab", "next claim"), in: inHolds, does: "the next claim, then the next hold", do: func(m *Model) tea.Cmd { m.holds.next(m, 1); return nil }, off: waiting},
		{key: on("shift+tab", "shift+tab", "claim before"), in: inHolds, does: "the claim before this one", do: func(m *Model) tea.Cmd { m.holds.next(m, -1); return nil }, off: waiting, quiet: true},
		{key: on("down j", "↓ j", "next hold"), in: inHolds, does: "the next hold", do: func(m *Model) tea.Cmd { m.holds.step(m, 1); return nil }, off: waiting},
		{key: on("up k", "↑ k", "hold before"), in: inHolds, does: "the hold before this one", do: func(m *Model) tea.Cmd { m.holds.step(m, -1); return nil }, off: waiting, quiet: true},
		{key: on("t", "t", "turn"), in: inHolds, does: "the story of the turn that asks", do: func(m *Model) tea.Cmd {
			h, _ := m.holds.current()
			return m.turns.story(m, h.Turn)
		}, off: waiting},
		{key: on("esc", "esc", "leave open"), in: inHolds, does: "take back what was kept for this hold and is not sent; it stays open", do: func(m *Model) tea.Cmd { m.holds.leave(m); return nil }, off: waiting, quiet: true},

		{key: on("c", "c", "confirm all"), in: inAll, does: "all of them are true", do: func(m *Model) tea.Cmd { return m.holds.answerAll(m, lemma.AnswerConfirm, "") }, off: answerable, answers: true},
		{key: on("w", "w", "waive all…"), in: inAll, does: "none of them matters here: say why", do: func(m *Model) tea.Cmd { return m.holds.write(m, lemma.AnswerWaive, true) }, off: answerable, answers: true},
		{key: on("s", "s", "scope"), in: inAll, does: "how far the answers reach", do: func(m *Model) tea.Cmd { m.holds.turnScope(); return nil },
			word: func(m *Model) safe { return "scope: " + safe(m.holds.scope) }},
		{key: on("enter", "enter", "evidence"), in: inAll, does: "all claims with what was tried; answers nothing", do: evidence, off: waiting},
		{key: on("esc", "esc", "one by one"), in: inAll, does: "back to one claim at a time", do: func(m *Model) tea.Cmd { m.holds.all = false; m.holds.disturb(m.now()); return nil }},
	}
}

func evidence(m *Model) tea.Cmd {
	h, _ := m.holds.current()
	h.read = true
	return m.holds.details(m)
}

// waiting: there is something to look at.
func waiting(m *Model) safe {
	if h, _ := m.holds.current(); h == nil {
		return "nothing waits"
	}
	return ""
}

// answerable: the claim in front can be answered now, and was there to be read.
func answerable(m *Model) safe {
	if why := ready(m); why != "" {
		return why
	}
	if h, _ := m.holds.current(); !h.read && !m.holds.fits(m) {
		return "not all of it fits here; enter shows it, then come back"
	}
	return ""
}

// ready: an answer to the claim in front can go out.
func ready(m *Model) safe {
	h, it := m.holds.current()
	switch {
	case h == nil || it == nil:
		return "nothing waits"
	case !m.up:
		return "gettierd is away, the answer would not arrive"
	case h.sending:
		return "an answer is on its way"
	case it.Answer != nil:
		return "this claim is answered; tab goes to the next"
	}
	return ""
}

func (s *holds) turnScope() {
	if _, it := s.current(); it.action() { // an action is approved for its task or once
		if s.scope == lemma.ScopeOnce {
			s.scope = lemma.ScopeTask
		} else {
			s.scope = lemma.ScopeOnce
		}
		return
	}
	switch s.scope {
	case lemma.ScopeTask:
		s.scope = lemma.ScopeProject
	case lemma.ScopeProject:
		s.scope = lemma.ScopeOnce
	default:
		s.scope = lemma.ScopeTask
	}
}

// leave takes back what was kept but not sent.
func (s *holds) leave(m *Model) {
	h, _ := s.current()
	clear(h.draft)
	m.say(h.short+" stays open until "+m.stamp(h.ExpiresAt), m.look.Dim)
}

// write asks for the text of an answer.
func (s *holds) write(m *Model, kind lemma.AnswerKind, all bool) tea.Cmd {
	h, it := s.current()
	prompt, empty := safe("what is true"), safe("a correction needs what is true")
	if kind == lemma.AnswerApprove {
		prompt, empty = "why it may run", "what cannot be read to its end is approved with a note"
	}
	if kind == lemma.AnswerWaive {
		prompt, empty = "why it does not matter", "a waiver needs a reason"
	}
	id, item := h.ID, it.ID
	s.edits = id
	m.editor = &editor{prompt: prompt, send: safe(kind), done: func(m *Model, text string) (tea.Cmd, safe) {
		if strings.TrimSpace(text) == "" {
			return nil, empty
		}
		h, it := s.current()
		if h == nil || h.ID != id || it.ID != item {
			return nil, ""
		}
		if why := ready(m); why != "" {
			return nil, why
		}
		s.edits, m.editor = "", nil
		if all {
			return s.answerAll(m, kind, strings.TrimSpace(text)), ""
		}
		return s.answer(m, kind, strings.TrimSpace(text)), ""
	}, left: func(m *Model) tea.Cmd {
		s.edits = ""
		s.disturb(m.now())
		return nil
	}}
	s.kind = kind
	return nil
}

// approve lets the action in front happen; one that cannot be read to its end
// asks for a note first.
func (s *holds) approve(m *Model) tea.Cmd {
	if _, it := s.current(); it.action() && it.Action.State == "ESCALATE" {
		return s.write(m, lemma.AnswerApprove, false)
	}
	return s.answer(m, lemma.AnswerApprove, "")
}

// answer keeps an answer to the claim in front. When no claim of the hold is
// left, all answers go out at once.
func (s *holds) answer(m *Model, kind lemma.AnswerKind, text string) tea.Cmd {
	h, it := s.current()
	h.draft[it.ID] = ipc.ItemAnswer{Item: it.ID, Answer: kind, Text: text, Scope: s.scope}
	if n := h.left(); n > 0 {
		m.say("kept: "+safe(kind)+". It goes out with the answer to the "+safe(words.Count(n, "claim that is left", "claims that are left")), m.look.Plain)
		scope := s.scope
		s.bring(m, h.ID, h.undecided(s.item))
		s.scope = scope
		return nil
	}
	return s.send(m, h)
}

// answerAll answers all claims that are left the same way.
func (s *holds) answerAll(m *Model, kind lemma.AnswerKind, text string) tea.Cmd {
	h, _ := s.current()
	for i := range h.items {
		if !h.decided(i) {
			id := h.items[i].ID
			h.draft[id] = ipc.ItemAnswer{Item: id, Answer: kind, Text: text, Scope: s.scope}
		}
	}
	s.all = false
	return s.send(m, h)
}

// send writes the answers of a hold. It leaves the queue when the daemon has
// them; a refusal says why, and the hold stays open.
func (s *holds) send(m *Model, h *hold) tea.Cmd {
	var a ipc.HoldAnswer
	for _, it := range h.items {
		if d, ok := h.draft[it.ID]; ok {
			a.Items = append(a.Items, d)
		}
	}
	h.sending, s.mine[h.ID] = true, true
	id, short := h.ID, h.short
	var how safe
	for i, it := range a.Items {
		if i == 0 || it.Answer != a.Items[i-1].Answer {
			how = join(", ", how, safe(it.Answer))
		}
	}
	m.say("sending the answer to "+short, m.look.Dim)
	return m.ask(callLimit, func(ctx context.Context) then {
		_, err := m.d.AnswerHold(ctx, id, a)
		return func(m *Model) tea.Cmd {
			if err != nil {
				delete(s.mine, id)
				if h := s.find(id); h != nil {
					h.sending = false
					clear(h.draft)
					s.disturb(m.now())
				}
				m.fail(short+" was not answered", err)
				return nil
			}
			m.say("✓ "+short+" answered: "+how, m.look.Good)
			if h := s.find(id); h != nil {
				s.ended(m, id, "")
				s.arrange(m)
			} else {
				delete(s.mine, id)
			}
			return nil
		}
	})
}

// reach is an answer's scope in words.
func (s *holds) reach(h *hold, kind lemma.AnswerKind) safe {
	where := scopeWord(h.Scope)
	if _, it := s.current(); it.action() {
		return tidy(words.Covers(*it.Action, s.scope)) + " · " + where
	}
	switch s.scope {
	case lemma.ScopeOnce:
		return "this turn only · " + where
	case lemma.ScopeProject:
		out := where + " for 24 h"
		switch kind {
		case lemma.AnswerConfirm, lemma.AnswerCorrect:
			out += ", and as a told fact"
		case "":
			out += "; confirmed or corrected also as a told fact"
		}
		return out
	}
	return "this task, this conversation · " + where
}

// written is what a key would write, line by line.
func (s *holds) written(m *Model, h *hold) []safe {
	kind, text := lemma.AnswerKind(""), ""
	if m.editor != nil && s.edits == h.ID {
		kind, text = s.kind, m.editor.text()
	}
	word := first2(safe(kind), "your answer")
	if text != "" {
		word += " “" + tidy(text) + "”"
	}
	if s.all {
		out := []safe{word + " to each of these claims · scope " + s.reach(h, kind)}
		for i := range h.items {
			if !h.decided(i) {
				out = append(out, "· "+h.items[i].claim)
			}
		}
		return out
	}
	if _, it := s.current(); it.action() {
		return []safe{word + " · " + s.reach(h, kind)}
	}
	return []safe{word + " · to this claim · scope " + s.reach(h, kind)}
}

// kept is what was answered and waits for the rest.
func (s *holds) kept(h *hold) []safe {
	var out []safe
	for i := range h.items {
		if d, ok := h.draft[h.items[i].ID]; ok {
			l := safe(d.Answer)
			if d.Text != "" {
				l += " “" + tidy(d.Text) + "”"
			}
			out = append(out, l+" · scope "+safe(d.Scope)+" · "+h.items[i].claim)
		}
	}
	return out
}

// section is a part of what is said of a claim.
type section struct {
	long, brief safe // its label above the lines, and before them
	text        []safe
	st          theme.Style
	whole       bool // it must not be cut
}

func (s *holds) sections(m *Model, h *hold, it *claim) []section {
	tried := it.tried
	if len(tried) == 0 {
		tried = []safe{"nothing could be measured: " + it.reason}
	} else if it.reason != "" {
		tried = append(append([]safe{}, tried...), "so it is "+tidy(string(it.Verdict))+": "+it.reason)
	}
	if it.EvidenceExcerpt != "" {
		tried = append(append([]safe{}, tried...), "it read "+tidy(words.Quote(it.EvidenceExcerpt)))
	}
	what := section{long: "The model assumes", brief: "assumes ", text: []safe{it.claim}, st: m.look.Strong, whole: true}
	out := []section{what}
	switch {
	case it.action():
		what.long, what.brief, what.text = "The agent wants", "wants   ", it.acts
		because := append([]safe{tidy(it.Action.Effect) + ": " + it.reason}, it.tried...)
		out = []section{what,
			{long: "in", brief: "in      ", text: []safe{it.where}, st: m.look.Plain},
			{long: "It is asked because", brief: "because ", text: because, st: m.look.Plain}}
		if h.plan != "" {
			out = append(out, section{long: "its plan is", brief: "plan    ", text: []safe{h.plan}, st: m.look.Plain})
		}
	case !s.all:
		out = append(out,
			section{long: "because its plan is", brief: "plan    ", text: []safe{first2(h.plan, "not said")}, st: m.look.Plain},
			section{long: "We tried", brief: "tried   ", text: tried, st: m.look.Plain})
	default:
		out = nil
	}
	if it.Answer != nil {
		return append(out, section{long: "It is answered", brief: "answer  ", st: m.look.Good, text: []safe{tidy(string(it.Answer.Answer)) + " by " + tidy(words.Person(it.Answer.By)) + "  " + tidy(it.Answer.Text)}})
	}
	out = append(out, section{long: "This will be written", brief: "writes  ", text: s.written(m, h), st: m.look.Ask, whole: true})
	if k := s.kept(h); len(k) > 0 {
		out = append(out, section{long: "Kept, and written together with it", brief: "kept    ", text: k, st: m.look.Plain})
	}
	return out
}

// laid is a section in lines.
type laid struct {
	section
	lines []safe
}

// layout gives each section its lines: all of them under their labels when there
// is room, else beside the labels, and the least important cut. fits is false
// when something that must be whole is not.
func layout(secs []section, w, room int) (out []laid, tall, fits bool) {
	lay := func(w int) (out []laid, n int) {
		for _, x := range secs {
			l := laid{section: x}
			for _, t := range x.text {
				l.lines = append(l.lines, fold(t, w)...)
			}
			out = append(out, l)
			n += len(l.lines)
		}
		return out, n
	}
	if out, n := lay(w - 4); n+len(secs) <= room {
		return out, true, true
	}
	out, n := lay(w - 9)
	for _, least := range []int{2, 1, 0} {
		for i := len(out) - 1; i >= 0 && n > room; i-- {
			if x := &out[i]; !x.whole && len(x.lines) > least {
				cut := min(len(x.lines)-least, n-room)
				x.lines = x.lines[:len(x.lines)-cut]
				n -= cut
				if k := len(x.lines); k > 0 {
					x.lines[k-1] += " …"
				}
			}
		}
	}
	fits = n <= room
	for i := range out { // what must be whole shows its beginning
		if x := &out[i]; n > room && x.whole && len(x.lines) > 0 {
			cut := min(len(x.lines)-1, n-room)
			x.lines = x.lines[:len(x.lines)-cut]
			x.lines[len(x.lines)-1] += " …"
			n -= cut
		}
	}
	return out, false, fits
}

// room is how many lines of the body are left for a claim.
func (s *holds) room(m *Model) int {
	h := m.body()
	per := 1
	if h >= 16 {
		per = 2
	}
	n := h - per*max(1, min(len(s.list), h/(3*per))) - 1
	if h >= 12 {
		n-- // the rule
	}
	return n
}

func (s *holds) fits(m *Model) bool {
	h, it := s.current()
	_, _, ok := layout(s.sections(m, h, it), m.w, s.room(m))
	return ok
}

// detail draws the claim in front, and the keys that answer it.
func (s *holds) detail(m *Model, c *canvas, stop int) {
	h, it := s.current()
	if h == nil || it == nil {
		return
	}
	out, tall, _ := layout(s.sections(m, h, it), c.w, stop-c.lines-1)
	for _, x := range out {
		if tall {
			c.gap(1)
			c.line(x.long, m.look.Dim)
		}
		for i, l := range x.lines {
			if c.lines >= stop-1 {
				break
			}
			c.gap(1)
			switch {
			case tall:
				c.gap(2)
			case i == 0:
				c.text(x.brief, m.look.Dim)
			default:
				c.gap(width(x.brief))
			}
			c.line(l, x.st)
		}
	}
	if tall {
		c.pad(min(c.lines+1, stop-1))
	} else {
		c.pad(stop - 1)
	}
	if c.lines < stop {
		c.gap(1)
		m.helpLine(c, true)
		c.end()
	}
}
