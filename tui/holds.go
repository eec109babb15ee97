package tui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/story"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

// quiet is how long no key may have been pressed, after a claim came to the
// front, before one can answer it: a key that was meant for something else must
// not.
const quiet = 425 * time.Millisecond

// holds is screen 1: what waits for a person. It is a queue beside the other
// screens: nothing here comes to the front by itself, and nothing has a default.
type holds struct {
	list  []*hold // open ones, the nearest deadline first
	front string  // id of the hold whose claim is shown
	item  int
	calm  time.Time // keys answer from then on
	scope lemma.AnswerScope
	all   bool             // A was pressed
	asOf  uint64           // the list already knows what stands up to there
	mine  map[string]bool  // answered from here
	swept time.Time        // when what has expired was last looked for
	edits string           // the hold that the editor answers
	kind  lemma.AnswerKind // and how
	offer offer            // shown while nothing waits
}

// hold is one of them, cleaned, with the answers that are not sent yet.
type hold struct {
	lemma.Hold
	short                   safe
	who, plan               safe
	items                   []claim
	opened, client, expires time.Time
	draft                   map[string]ipc.ItemAnswer // by item
	sending                 bool
	read                    bool // all of it was opened
}

type claim struct {
	lemma.HoldItem
	claim, reason safe
	tried         []safe
	acts          []safe // of an action: its text, then what it runs, a line each
	where         safe
}

// action reports an item that is approved or denied.
func (c *claim) action() bool { return c != nil && c.Action != nil }

func newHolds() *holds {
	return &holds{scope: lemma.ScopeTask, mine: map[string]bool{}, offer: newOffer()}
}

func (*holds) tab() (rune, safe) { return '1', "Holds" }

func (*holds) place() place { return inHolds }

func (s *holds) open(*Model) tea.Cmd { return nil }

func (s *holds) linked(*Model, bool) tea.Cmd { s.offer.pace.dirty = true; return nil }

func (s *holds) settle(m *Model, _ int) tea.Cmd {
	if len(s.list) > 0 {
		return nil
	}
	return s.offer.read(m)
}

func readHold(h lemma.Hold) *hold {
	v := &hold{Hold: h, draft: map[string]ipc.ItemAnswer{}, plan: tidy(h.PlanSummary)}
	v.who = join(" · ", first2(tidy(h.Agent), "unknown agent"), scopeWord(h.Scope))
	if h.Kind != "claims" {
		v.who = join(" · ", v.who, tidy(h.Kind))
	}
	v.opened, _ = words.Time(h.OpenedAt)
	v.client, _ = words.Time(h.ClientDeadline)
	v.expires, _ = words.Time(h.ExpiresAt)
	for _, it := range h.Items {
		c := claim{HoldItem: it, claim: tidy(it.Claim), reason: tidy(it.Reason)}
		for _, t := range it.Tried {
			c.tried = append(c.tried, tidy(t))
		}
		if act := it.Action; act != nil {
			c.acts = tidyLines(act.Text)
			if act.Cut > 0 {
				c.acts = append(c.acts, "and "+safe(words.Count(act.Cut, "byte", "bytes"))+" more that are not shown")
			}
			for _, r := range act.Runs {
				if len(act.Runs) == 1 && words.Runs(r) == act.Text {
					break // nothing was hidden in it
				}
				c.acts = append(c.acts, "▸ "+tidy(words.Runs(r)))
			}
			c.where = first2(tidy(act.Cwd), "a directory that is not known")
		}
		v.items = append(v.items, c)
	}
	return v
}

// reset takes the open holds as the daemon lists them.
func (s *holds) reset(m *Model, list []lemma.Hold, asOf uint64) {
	old := map[string]*hold{}
	for _, h := range s.list {
		old[h.ID] = h
	}
	s.list, s.asOf = nil, asOf
	for _, h := range list {
		v := readHold(h)
		if o := old[h.ID]; o != nil {
			v.draft = o.draft
		}
		s.list = append(s.list, v)
	}
	s.arrange(m)
}

// arrange sorts, names and chooses what is in front. Whatever is there stays.
func (s *holds) arrange(m *Model) {
	now := m.now()
	slices.SortStableFunc(s.list, func(a, b *hold) int {
		// A client that waits comes before a question that stands in a chat.
		ad, bd := a.deadline(now), b.deadline(now)
		if aw, bw := a.client.After(now), b.client.After(now); aw != bw {
			if aw {
				return -1
			}
			return 1
		}
		return ad.Compare(bd)
	})
	ids := make([]string, len(s.list))
	for i, h := range s.list {
		ids[i] = h.ID
	}
	for _, h := range s.list {
		h.short = tidy(lemma.Short(h.ID, ids))
	}
	if h, _ := s.current(); h == nil {
		s.drop(m)
		if len(s.list) > 0 {
			s.bring(m, s.list[0].ID, s.list[0].undecided(0))
		}
	}
}

// drop closes what belonged to a hold that is gone. A person who is typing types
// on for a while: an editor stays, takes the keys and sends nothing, so that none
// of them answers the hold that comes to the front.
func (s *holds) drop(m *Model) {
	s.front, s.item, s.all = "", 0, false
	if e := m.editor; s.edits != "" && e != nil {
		e.prompt, e.send = "that hold is gone, esc", "nothing"
		e.done = func(*Model, string) (tea.Cmd, safe) { return nil, "that hold is gone: esc leaves this text" }
	}
	s.edits = ""
}

// deadline is when something changes for whoever waits.
func (h *hold) deadline(now time.Time) time.Time {
	if h.client.After(now) {
		return h.client
	}
	return h.expires
}

// undecided is the first claim from i on, going round, that has no answer yet.
func (h *hold) undecided(i int) int {
	for k := range h.items {
		j := (i + k) % len(h.items)
		if !h.decided(j) {
			return j
		}
	}
	return min(i, max(0, len(h.items)-1))
}

func (h *hold) decided(i int) bool {
	if h.items[i].Answer != nil {
		return true
	}
	_, ok := h.draft[h.items[i].ID]
	return ok
}

// left counts the claims without an answer.
func (h *hold) left() int {
	n := 0
	for i := range h.items {
		if !h.decided(i) {
			n++
		}
	}
	return n
}

// find returns an open hold by its id or the end of it; Next is the first.
func (s *holds) find(id string) *hold {
	for _, h := range s.list {
		if id == Next || h.ID == id || len(id) >= 3 && strings.HasSuffix(h.ID, id) {
			return h
		}
	}
	return nil
}

// current is the hold and the claim in front.
func (s *holds) current() (*hold, *claim) {
	for _, h := range s.list {
		if h.ID == s.front {
			if s.item < len(h.items) {
				return h, &h.items[s.item]
			}
			return h, nil
		}
	}
	return nil, nil
}

// bring puts a claim in front. Keys answer it after a moment of quiet.
func (s *holds) bring(m *Model, id string, item int) {
	if s.front != id {
		s.scope = lemma.ScopeTask
	}
	s.front, s.item, s.all = id, item, false
	if _, it := s.current(); it.action() && s.scope == lemma.ScopeProject {
		s.scope = lemma.ScopeTask
	}
	s.disturb(m.now())
}

func (s *holds) disturb(now time.Time) { s.calm = now.Add(quiet) }

// early reports that a key pressed now may have been meant for something else,
// and starts the wait again when it is asked for one.
func (s *holds) early(now time.Time) bool { return now.Before(s.calm) }

// pressed is called for every key on this screen.
func (s *holds) pressed(now time.Time) {
	if s.early(now) {
		s.disturb(now)
	}
}

// away forgets nothing, but what is being sent may not have arrived.
func (s *holds) away(*Model) {
	for _, h := range s.list {
		h.sending = false
	}
}

// sweep takes away what has expired, at the moment it does.
func (s *holds) sweep(m *Model) {
	now, gone := m.now(), false
	for _, h := range s.list { // who waited and no longer does, goes down
		gone = gone || h.client.After(s.swept) && !h.client.After(now)
	}
	s.swept = now
	s.list = slices.DeleteFunc(s.list, func(h *hold) bool {
		if h.expires.IsZero() || h.expires.After(now) {
			return false
		}
		gone = true
		if h.ID == s.front {
			m.say(h.short+" has expired", m.look.Dim)
		}
		return true
	})
	if gone {
		s.arrange(m)
	}
}

// clock is when a shown time changes: each second while something waits.
func (s *holds) clock(m *Model) (time.Time, bool) {
	if len(s.list) == 0 || m.w == 0 {
		return time.Time{}, false
	}
	return m.now().Truncate(time.Second).Add(time.Second), true
}

func (s *holds) wake(m *Model) (time.Time, bool) {
	if len(s.list) > 0 {
		return s.calm, s.early(m.now())
	}
	if at, ok := s.offer.pace.wake(); ok && m.up {
		return at, true
	}
	return s.calm, len(s.offer.packs) > 0 && s.early(m.now())
}

// oldest is how long the first of them has waited.
func (s *holds) oldest(now time.Time) safe {
	var d time.Duration
	for _, h := range s.list {
		if !h.opened.IsZero() {
			d = max(d, now.Sub(h.opened))
		}
	}
	return safe(words.Clock(d))
}

func (s *holds) news(m *Model, b *batch) {
	s.offer.pace.dirty = s.offer.pace.dirty || touched(b, "registry.")
	opened := 0
	for _, e := range b.entries {
		if e.Seq <= s.asOf {
			continue
		}
		switch lemma.Kind(e.Kind) {
		case lemma.KAnswerRefused:
			m.say(tidy(story.Gist(e, story.Options{})), m.look.Bad)
		case lemma.KHoldOpened:
			var body lemma.HoldOpened
			if unmarshal(e, &body) && s.find(body.Hold.ID) == nil && body.Hold.ID != "" {
				s.list = append(s.list, readHold(body.Hold))
				opened++
			}
		case lemma.KHoldAnswered:
			var body lemma.HoldAnsweredBody
			if unmarshal(e, &body) {
				s.ended(m, body.Hold, answeredBy(body, m.now()))
			}
		case lemma.KHoldExpired:
			var body lemma.HoldExpiredBody
			if unmarshal(e, &body) {
				s.ended(m, body.Hold, "has expired")
			}
		case lemma.KHoldCancelled:
			var body lemma.HoldCancelledBody
			if unmarshal(e, &body) {
				s.ended(m, body.Hold, "is no longer asked: "+tidy(body.Reason))
			}
		}
	}
	s.arrange(m)
	if opened > 0 {
		m.ring("gettier: a question waits for your answer")
	}
}

// answeredBy says who, how and when.
func answeredBy(b lemma.HoldAnsweredBody, _ time.Time) safe {
	if len(b.Answers) == 0 {
		return "is answered"
	}
	a := b.Answers[0]
	s := "answered: " + tidy(string(a.Answer)) + " by " + tidy(words.Person(a.By)) + " via " + tidy(first(a.By.Via, "unknown"))
	if t, ok := words.Time(a.At); ok {
		s += " at " + safe(t.Local().Format("15:04:05"))
	}
	return s
}

// ended takes a hold off the queue and says how it ended, unless that is no news.
func (s *holds) ended(m *Model, id string, how safe) {
	i := slices.IndexFunc(s.list, func(h *hold) bool { return h.ID == id })
	if i < 0 {
		return
	}
	h := s.list[i]
	s.list = slices.Delete(s.list, i, i+1)
	if !s.mine[id] && (id == s.front || m.front() == screen(s)) {
		m.say(h.short+" "+how, m.look.Ask)
	}
	delete(s.mine, id)
}

// step goes to another hold of the queue.
func (s *holds) step(m *Model, d int) {
	for i, h := range s.list {
		if h.ID == s.front {
			n := s.list[max(0, min(i+d, len(s.list)-1))]
			if n != h {
				s.bring(m, n.ID, n.undecided(0))
			}
			return
		}
	}
}

// next goes to another claim, over the ends of a hold.
func (s *holds) next(m *Model, d int) {
	for i, h := range s.list {
		if h.ID != s.front {
			continue
		}
		switch k := s.item + d; {
		case k >= 0 && k < len(h.items):
			s.bring(m, h.ID, k)
		default:
			n := s.list[(i+d+len(s.list))%len(s.list)]
			at := 0
			if d < 0 {
				at = max(0, len(n.items)-1)
			}
			s.bring(m, n.ID, at)
		}
		return
	}
}

func (s *holds) draw(m *Model, c *canvas, h int) {
	stop := c.lines + h
	if len(s.list) == 0 {
		s.empty(m, c, stop)
		return
	}
	per := 1
	if h >= 16 {
		per = 2
	}
	rows := max(1, min(len(s.list), h/(3*per)))
	s.queue(m, c, rows, per)
	if h >= 12 {
		m.rule(c, "")
	}
	s.detail(m, c, stop)
	c.pad(stop)
}

// queue draws the holds around the one in front.
func (s *holds) queue(m *Model, c *canvas, rows, per int) {
	at := max(0, slices.IndexFunc(s.list, func(h *hold) bool { return h.ID == s.front }))
	from := max(0, min(at-rows/2, len(s.list)-rows))
	now := m.now()
	for i := from; i < from+rows; i++ {
		h := s.list[i]
		mark, st := safe(" "), m.look.Plain
		if i == at {
			mark, st = "▸", m.look.Strong
		}
		wait := h.waits(now, c.w < wideW)
		count := ""
		if len(h.items) > 1 {
			count = words.Thousands(len(h.items)-h.left()) + " of " + words.Thousands(len(h.items)) + " answered"
			if i == at {
				count = "claim " + words.Thousands(s.item+1) + " of " + words.Thousands(len(h.items))
			}
		}
		c.text(mark, m.look.Accent)
		c.text("? ", m.look.Ask)
		c.text(h.short+"  ", m.look.Dim)
		if per == 1 && len(h.items) > 1 {
			n := len(h.items) - h.left()
			if i == at {
				n = s.item + 1
			}
			c.text(safe(words.Thousands(n))+"/"+safe(words.Thousands(len(h.items)))+"  ", m.look.Plain)
		}
		c.cell(h.who, max(0, c.left-width(wait)-3), st)
		c.gap(2)
		c.flush(wait, c.left-1, m.look.Ask)
		c.end()
		if per > 1 {
			c.gap(4)
			c.cell(h.plan, max(0, c.left-len(count)-3), m.look.Dim)
			c.gap(2)
			c.flush(safe(count), c.left-1, m.look.Dim)
			c.end()
		}
	}
}

// waits says who waits how long.
func (h *hold) waits(now time.Time, brief bool) safe {
	switch {
	case h.sending:
		return "being sent"
	case brief && h.deadline(now).After(now):
		return safe(words.Clock(h.deadline(now).Sub(now))) + " left"
	case h.client.After(now):
		return "client waits, " + safe(words.Clock(h.client.Sub(now))) + " left"
	case h.expires.After(now):
		return "asked in chat, " + safe(words.Span(h.expires.Sub(now).Truncate(time.Second))) + " left"
	}
	return ""
}

// empty says that nothing waits, and what else a person may want to know.
func (s *holds) empty(m *Model, c *canvas, stop int) {
	hang := func(prefix, text safe, st theme.Style) {
		for i, l := range fold(text, c.w-2-width(prefix)) {
			if i > 0 && prefix != "" {
				prefix = pad("", width(prefix))
			}
			if c.lines < stop {
				c.gap(1)
				c.line(prefix+l, st)
			}
		}
	}
	put := func(text safe, st theme.Style) { hang("", text, st) }
	if !m.up {
		put("gettierd is not here. Start it in another terminal:", m.look.Plain)
		put("  gettier up", m.look.Accent)
		c.pad(stop)
		return
	}
	s.offer.draw(m, hang)
	put("Nothing waits for you.", m.look.Plain)
	put("What could not be measured, and would change what an agent does, is asked here.", m.look.Dim)
	st := m.status
	if st.Counters["turns"] == 0 && st.Proxy != "" {
		put("", m.look.Plain)
		put("No turn has gone through yet. Point an agent at the proxy:", m.look.Plain)
		put("  OPENAI_BASE_URL=http://"+tidy(st.Proxy)+"/v1", m.look.Accent)
		put("  ANTHROPIC_BASE_URL=http://"+tidy(st.Proxy), m.look.Accent)
	}
	if st.Projects == 0 {
		put("", m.look.Plain)
		put("! no project is registered, so nothing is measured: gettier project add DIR", m.look.Ask)
	}
	if n := st.Registry.Pending; n > 0 {
		put("! "+safe(words.Count(n, "sensor waits", "sensors wait"))+" for your approval: 4", m.look.Ask)
	}
	for _, p := range st.Registry.Problems {
		put("✗ "+tidy(p.File)+":"+safe(words.Thousands(p.Line))+": "+tidy(p.Reason), m.look.Bad)
	}
	if len(st.Config.Pending) > 0 {
		put("! settings that loosen wait for your approval: "+wordsOf(st.Config.Pending)+" (gettier config approve)", m.look.Ask)
	}
	if st.Config.Error != "" {
		put("✗ the configuration on disk is not used: "+tidy(st.Config.Error), m.look.Bad)
	}
	for _, w := range st.Warnings {
		put("! "+tidy(w), m.look.Ask)
	}
	c.pad(stop)
}

// details opens everything there is to a hold.
func (s *holds) details(m *Model) tea.Cmd {
	h, _ := s.current()
	if h == nil {
		return nil
	}
	p := &pager{title: "hold " + h.short, in: ""}
	p.set(s.detailParas(m, h, nil))
	m.pager = p
	turn := h.Turn
	return m.ask(callLimit, func(ctx context.Context) then {
		d, err := m.d.Turn(ctx, turn)
		out := map[string][]byte{}
		if err == nil {
			for _, it := range h.items {
				if inv, ok := story.Output(d, it.Invocation); ok && inv.OutputBlob != "" {
					if b, err := m.d.Blob(ctx, inv.OutputBlob); err == nil {
						out[it.ID] = b
					}
				}
			}
		}
		return func(m *Model) tea.Cmd {
			p.set(s.detailParas(m, h, out))
			return nil
		}
	})
}

// unmarshal reads an entry's body; one that cannot be read says nothing.
func unmarshal(e ipc.Entry, body any) bool { return json.Unmarshal(e.Body, body) == nil }

// stamp is a time of the chain for reading.
func (m *Model) stamp(ts string) safe { return tidy(words.Stamp(ts, m.now())) }
