package route

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
)

// codexMeta is what Codex says of a request: in the body's client_metadata, in
// headers of the same names, and in one JSON text that stands in both.
type codexMeta struct {
	session, thread    string
	turn, rootTurn     string
	parent, forkedFrom string // threads
	kind               string // request_kind
	source             string // thread_source
	trigger            string // turn_trigger
	subagent           string
	started            int64 // of the turn, ms since 1970
	// body reports that the turn's metadata stand in the body. A repository's
	// settings can add headers, they cannot touch that.
	body bool
}

// maxMeta bounds the metadata text. Recorded ones are about 1 kB, most of which
// names workspaces.
const maxMeta = 256 << 10

const codexMetaName = "x-codex-turn-metadata"

func isCodex(r *wire.Request, h Headers) bool {
	return r.Format == wire.Responses &&
		(strings.HasPrefix(h("User-Agent"), "codex") || strings.HasPrefix(h("Originator"), "codex") || h("X-Codex-Turn-Metadata") != "")
}

// readCodex reads the body's words first: headers only fill what it leaves out.
func readCodex(r *wire.Request, h Headers) codexMeta {
	var m codexMeta
	set := func(dst *string, v string) {
		if *dst == "" {
			*dst = v
		}
	}
	inner := ""
	if raw := r.Raw("client_metadata"); len(raw) > 0 {
		gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
			switch k.Str {
			case codexMetaName:
				inner = v.Str
			case "thread_id":
				set(&m.thread, v.Str)
			case "session_id":
				set(&m.session, v.Str)
			case "turn_id":
				set(&m.turn, v.Str)
			case "root_turn_id":
				set(&m.rootTurn, v.Str)
			case "x-codex-parent-thread-id":
				set(&m.parent, v.Str)
			case "x-openai-subagent":
				set(&m.subagent, v.Str)
			}
			return true
		})
	}
	m.body = inner != ""
	if inner == "" {
		inner = h("X-Codex-Turn-Metadata")
	}
	if len(inner) <= maxMeta && gjson.Valid(inner) {
		gjson.Parse(inner).ForEach(func(k, v gjson.Result) bool {
			switch k.Str {
			case "thread_id":
				set(&m.thread, v.Str)
			case "session_id":
				set(&m.session, v.Str)
			case "turn_id":
				set(&m.turn, v.Str)
			case "root_turn_id":
				set(&m.rootTurn, v.Str)
			case "parent_thread_id":
				set(&m.parent, v.Str)
			case "forked_from_thread_id":
				set(&m.forkedFrom, v.Str)
			case "request_kind":
				set(&m.kind, v.Str)
			case "thread_source":
				set(&m.source, v.Str)
			case "turn_trigger":
				set(&m.trigger, v.Str)
			case "subagent_kind":
				set(&m.subagent, v.Str)
			case "turn_started_at_unix_ms":
				if v.Type == gjson.Number {
					m.started = v.Int()
				}
			}
			return true
		})
	} else {
		m.body = false
	}
	set(&m.thread, h("Thread-Id"))
	set(&m.session, h("Session-Id"))
	set(&m.parent, h("X-Codex-Parent-Thread-Id"))
	set(&m.subagent, h("X-Openai-Subagent"))
	set(&m.session, h("Session_id")) // older versions
	set(&m.thread, h("Conversation_id"))
	set(&m.thread, m.session)
	return m
}

// identifyCodex: a thread is a conversation. Sub-agents have a thread of their
// own in their parent's session.
func identifyCodex(rt *Route, key []byte, r *wire.Request, m codexMeta, s scanned) {
	rt.Session = m.session
	thread := func(id string) string { return name(key, "session", string(Codex), id) }
	if m.thread != "" {
		rt.Conversation = thread(m.thread)
	} else {
		rt.Conversation = name(key, "text", firstSystem(r), s.first)
	}
	if m.turn != "" {
		rt.Turn = name(key, "turn id", m.turn)
	}
	if rt.RootTurn = rt.Turn; m.rootTurn != "" {
		rt.RootTurn = name(key, "turn id", m.rootTurn)
	}
	switch {
	case m.parent != "" && m.parent != m.thread:
		rt.Parent = thread(m.parent)
	case m.forkedFrom != "" && m.forkedFrom != m.thread:
		rt.Parent = thread(m.forkedFrom)
	}
	// The compaction of older versions carries the sub-agents' header in the
	// main thread: it is no agent.
	if m.source != "subagent" && (m.subagent == "" || m.subagent == "compact") {
		return
	}
	if rt.SubagentRoot = m.thread; rt.SubagentRoot == "" {
		rt.SubagentRoot = name(key, "agent", s.first)
	}
	if rt.Parent == "" && m.session != "" && m.session != m.thread {
		rt.Parent = thread(m.session) // the session is named after its first thread
	}
	rt.Why = "sub-agent " + clip(m.subagent, 64)
}

const (
	tellCodexCompaction = "You are performing a CON"
	tellCodexSummary    = "Another language model s"
	tellCodexSide       = "Side conversation bounda"
	tellCodexAgents     = "# AGENTS.md instructions"
)

// codexSide recognises Codex's errands by what it says of them and by their shape.
func codexSide(r *wire.Request, m codexMeta, s scanned) (Kind, string) {
	last := len(r.Items) - 1
	switch {
	case last >= 0 && r.Items[last].Type == "compaction_trigger":
		return SideCompaction, "the last item asks for a compaction"
	case len(r.Tools) == 0 && m.kind == "compaction":
		return SideCompaction, "request_kind compaction, no tools"
	case s.summing:
		return SideCompaction, "compaction prompt, no tools"
	case len(r.Tools) == 0 && m.source == "thread_title" && m.trigger == "" && r.OutputFormat:
		return SideTitle, "thread_source thread_title with an output format, no tools"
	case len(r.Tools) == 0 && m.body && m.kind != "" && m.kind != "turn":
		return SideOther, "request_kind " + clip(m.kind, 64) + ", no tools"
	case m.body && m.source == "tui_side_chat" && m.forkedFrom != "":
		return SideChat, "thread_source tui_side_chat, forked"
	}
	return "", ""
}

// of says whose turn a user item belongs to.
type of int

const (
	unknownTurn of = iota
	thisTurn
	earlierTurn
)

// turnOf tells by the time in an item's id, which comes from the clock that
// started the turn, else by the turn that the item names. The id stands before
// the content, the name behind it.
func (m *codexMeta) turnOf(r *wire.Request, it *wire.Item) of {
	if it.Plain && it.Span == it.Content {
		return unknownTurn
	}
	raw := r.Body[it.Span.Start:it.Span.End]
	if m.started > 0 {
		if ms, ok := idTime(gjson.GetBytes(raw, "id").Str); ok {
			if ms >= m.started {
				return thisTurn
			}
			return earlierTurn
		}
	}
	if m.turn == "" {
		return unknownTurn
	}
	switch gjson.GetBytes(raw, "internal_chat_message_metadata_passthrough.turn_id").Str {
	case m.turn:
		return thisTurn
	case "":
		return unknownTurn
	}
	return earlierTurn
}

// idTime is the time in an id that ends in a UUID of version 7.
func idTime(id string) (ms int64, ok bool) {
	if len(id) < 36 {
		return 0, false
	}
	u := id[len(id)-36:]
	if u[8] != '-' || u[13] != '-' || u[14] != '7' || u[18] != '-' || u[23] != '-' {
		return 0, false
	}
	hi, err := strconv.ParseInt(u[:8], 16, 64)
	if err != nil {
		return 0, false
	}
	lo, err := strconv.ParseInt(u[9:13], 16, 64)
	return hi<<16 | lo, err == nil
}

// scanCodex is scan for Codex. Words typed while a turn runs come as ordinary
// user items; after a compaction old prompts stand in a row with a summary. What
// is new is told by the turn that an item belongs to, where that is known; else
// words right after an output were queued, since a turn ends in a message or an
// abort.
func scanCodex(r *wire.Request, m codexMeta) scanned {
	s := scanned{item: -1, anchor: -1, user: -1}
	begun := false // this turn's prompt has been seen
	for i := range r.Items {
		it := &r.Items[i]
		switch it.Role {
		case "tool", "function":
			s.newest, s.anchor = byTool, i
		case "assistant":
			// The newest thing still, when no prompt follows: the client goes on.
			s.newest = byClient
			if s.first == "" {
				s.first = firstText(it)
			}
		case "user":
			text, event, picture, any := s.codexItem(r, i)
			if !any {
				continue
			}
			s.user, s.users, s.anchor, s.plain = i, s.users+1, i, it.Plain
			if event {
				s.newest = byClient
			}
			if text == "" && !picture {
				continue // context that the client gives along
			}
			at := m.turnOf(r, it)
			queued := begun || at != thisTurn && s.newest == byTool
			begun = begun || at == thisTurn
			if queued && s.item >= 0 {
				if text != "" {
					s.queued = append(s.queued, text)
				}
				continue
			}
			s.newest, s.text, s.item, s.queued = byPerson, text, i, nil
			if s.prompts++; s.prompts == 1 && text != "" {
				s.first = text
			}
		}
	}
	return s
}

// codexItem is what a person wrote in a user item. event: it tells that the turn
// went on or ended, so that what stood before it is not the newest thing. any:
// it holds more than blocks of ours.
func (s *scanned) codexItem(r *wire.Request, i int) (text string, event, picture, any bool) {
	it := &r.Items[i]
	for k := range it.Parts {
		p := &it.Parts[k]
		if p.Kind != wire.Text {
			picture = picture || p.Kind == wire.Media
			any = any || picture
			continue
		}
		if wire.IsBlock(p.Text) {
			continue
		}
		any, s.last = true, p.Text
		if summing(r, i, p.Text) {
			s.summing, event = true, true
			continue
		}
		if codexSummary(p.Text) || strings.HasPrefix(p.Text, "<turn_aborted>") {
			event = true
		}
		if w := words(p.Text, Codex); w != "" {
			if text != "" {
				text += "\n"
			}
			text += w
		}
	}
	return text, event, picture, any
}

// summing reports the prompt of a local compaction: the last item of a request
// without tools.
func summing(r *wire.Request, i int, text string) bool {
	return i == len(r.Items)-1 && len(r.Tools) == 0 && strings.HasPrefix(text, tellCodexCompaction) && strings.Contains(text, "\n")
}

// codexSummary reports what a compaction leaves: a line of introduction, then
// the summary.
func codexSummary(text string) bool {
	return strings.HasPrefix(text, tellCodexSummary) && strings.Contains(text, "\n")
}

// codexWords is what a person wrote in a text part of Codex.
func codexWords(text string) string {
	switch {
	case codexSummary(text), strings.HasPrefix(text, tellCodexSide) && strings.Contains(text, "\n"),
		strings.HasPrefix(text, tellCodexAgents) && strings.HasSuffix(strings.TrimSpace(text), "</INSTRUCTIONS>"),
		imageTag(text):
		return ""
	case strings.HasPrefix(text, "# Context from my IDE setup:\n"), strings.HasPrefix(text, "# Files mentioned by the user:\n"):
		// The words come last: a selection before them may hold a heading, too.
		for _, heading := range [...]string{"\n## My request for Codex:", "\n## My request:"} {
			if i := strings.LastIndex(text, heading); i >= 0 {
				text = text[i+len(heading):]
				break
			}
		}
	}
	return strip(text, Codex)
}

// imageTag reports one of the tags that Codex puts around a picture.
func imageTag(text string) bool {
	t := strings.TrimSpace(text)
	return t == "</image>" || strings.HasPrefix(t, "<image") && strings.HasSuffix(t, ">") && strings.Count(t, "<") == 1 && len(t) < 512
}

func firstText(it *wire.Item) string {
	for _, p := range it.Parts {
		if p.Kind == wire.Text {
			return p.Text
		}
	}
	return ""
}
