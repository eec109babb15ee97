package model

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"sync"

	"gettier.dev/gettierd/scenarios"
)

// script is what a model that holds the seeded belief would say and do.
type script struct {
	id      string
	heading string // first line of the ticket: how a conversation is recognised
	plan    string
	claims  []string
	seeded  scenarios.Seeded
	look    string
	wrong   string
	right   string
}

func newScript(s *scenarios.Scenario) (*script, error) {
	wrong, err := s.Fix("wrong")
	if err != nil {
		return nil, err
	}
	right, err := s.Fix("right")
	if err != nil {
		return nil, err
	}
	heading, _, _ := strings.Cut(s.Ticket, "\n")
	return &script{
		id: s.ID, heading: strings.TrimSpace(strings.TrimLeft(heading, "# ")), plan: s.Scripted.Plan, claims: s.Claims(),
		seeded: s.Seeded, look: s.Scripted.Look, wrong: wrong, right: right,
	}, nil
}

// view is a request as a model sees it: texts, calls and results in order.
type view struct {
	model   string
	stream  bool
	usage   bool // chat: stream_options.include_usage
	entries []entry
	tools   []tool
	forced  string // name of a forced tool; "*" = any
	schema  bool   // a JSON output format is asked for
	reasons bool   // responses: the client takes encrypted reasoning
	raw     string // the whole body, for counting
}

type entry struct {
	role   string
	text   string
	calls  []call
	result bool // a tool's result
}

type call struct{ name, args string }

// tool is an offered tool; schema is its JSON schema's properties.
type tool struct {
	name   string
	schema json.RawMessage
}

// reply is what the model says: text first, then calls.
type reply struct {
	text  string
	calls []call
}

// declareTool is the tool of contract 1.
const declareTool = "declare_lemmas"

// asksToDeclare tells a declare pass: the tool is forced, or the last entry asks
// for the fields of a declaration.
func (v *view) asksToDeclare() bool {
	if v.forced == declareTool || (v.forced == "*" && len(v.tools) == 1 && v.tools[0].name == declareTool) {
		return true
	}
	last := v.last()
	return !last.result && last.role != "assistant" && strings.Contains(last.text, "plan_summary")
}

func (v *view) last() entry {
	if len(v.entries) == 0 {
		return entry{}
	}
	return v.entries[len(v.entries)-1]
}

// afterResult reports whether the newest thing that is not a block is a tool's result.
func (v *view) afterResult() bool {
	for i := len(v.entries) - 1; i >= 0; i-- {
		if e := v.entries[i]; e.result || strings.TrimSpace(blocks().ReplaceAllString(e.text, "")) != "" {
			return e.result
		}
	}
	return false
}

// conversation is a stable mark of the conversation: its first user text.
func (v *view) conversation() string {
	for _, e := range v.entries {
		if e.role == "user" && !e.result {
			h := fnv.New64a()
			h.Write([]byte(blocks().ReplaceAllString(e.text, "")))
			return fmt.Sprintf("%016x", h.Sum64())
		}
	}
	return ""
}

// blocks finds framed verification text; contradicted finds what it refutes.
var (
	blocks = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<gettier-verification\b[^>]*>.*?</gettier-verification>`)
	})
	contradicted = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*-?\s*assumed:\s*"(.*)"\s*\n?\s*(?:measured|a person says):\s*(.*?)\s*→\s*contradicted`)
	})
	instruction = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?i)\\brun(?: this| the command)?:?\\s*`([^`\n]{1,200})`")
	})
)

// refuted returns what a verification says against one of the script's claims.
func (v *view) refuted(s *script) (claim, measured string, ok bool) {
	for _, e := range v.entries {
		for _, b := range blocks().FindAllString(e.text, -1) {
			for _, m := range contradicted().FindAllStringSubmatch(b, -1) {
				for _, c := range s.claims {
					if strings.Contains(plainWords(m[1]), plainWords(c)) {
						claim, measured, ok = m[1], m[2], true
					}
				}
			}
		}
	}
	return claim, measured, ok
}

// plainWords reads text as loosely as a reader does: case, quotes and spacing aside.
func plainWords(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '/')
	}), " ")
}

// find picks the script whose ticket stands in the request; a pinned scenario
// needs no match.
func (m *Model) find(v *view) *script {
	if m.o.Scenario != nil {
		return m.scripts[0]
	}
	for _, s := range m.scripts {
		for _, e := range v.entries {
			if e.role == "user" && strings.Contains(plainWords(e.text), plainWords(s.heading)) {
				return s
			}
		}
	}
	return nil
}

// policy draws the conversation's policy.
func (m *Model) policy(v *view) Policy {
	if len(m.mix) == 1 {
		return m.mix[0].policy
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", m.o.Seed, v.conversation())
	x := float64(mixBits(h.Sum64())>>11) / (1 << 53)
	for _, s := range m.mix {
		if x -= s.rate; x < 0 {
			return s.policy
		}
	}
	return m.mix[len(m.mix)-1].policy
}

// mixBits spreads a hash over all bits (the finalizer of splitmix64).
func mixBits(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// claim is the script's claim in the seed's wording.
func (m *Model) claim(s *script) string { return s.claims[m.o.Seed%uint64(len(s.claims))] }

// answer decides what the model says to one request.
func (m *Model) answer(v *view) (reply, Policy) {
	p := m.policy(v)
	s := m.find(v)
	if v.asksToDeclare() {
		return m.declare(v, s, p), p
	}
	if s == nil {
		return reply{text: "I follow a script and know only the tickets of gettier's embedded scenarios; this request holds none of them."}, p
	}
	return m.work(v, s, p), p
}

// work is a step of the ticket: look, change, report.
func (m *Model) work(v *view, s *script, p Policy) reply {
	claim, measured, refuted := v.refuted(s)
	var say string
	command := s.wrong
	switch {
	case refuted && p == Stubborn:
		say = fmt.Sprintf("I still hold that this is so: %s.", m.claim(s))
	case refuted:
		say = fmt.Sprintf("Correction: I assumed %q, but it was measured as %s.", claim, measured)
		command = s.right
	}
	if p == Injected {
		if cmd := v.ordered(); cmd != "" {
			command = cmd
		}
	}
	t, hasTool := v.shell()
	if !hasTool {
		if say == "" {
			say = s.plan + "."
		}
		return reply{text: say + "\n\n```sh\n" + strings.ReplaceAll(command, " && ", "\n") + "\n```\n"}
	}
	looked, changed := false, false
	for _, e := range v.entries {
		for _, c := range e.calls {
			looked = true
			changed = changed || strings.Contains(unescape(c.args), command)
		}
	}
	switch {
	case changed && v.afterResult():
		return reply{text: say + join(say) + "Done: " + strings.ReplaceAll(command, " && ", "; ")}
	case changed:
		return reply{text: say + join(say) + "That change has been made."}
	case !looked && s.look != "" && !refuted:
		return reply{text: "Let me look at the configuration first.", calls: []call{t.call(s.look)}}
	}
	if say == "" {
		say = s.plan + "."
	}
	return reply{text: say, calls: []call{t.call(command)}}
}

func join(s string) string {
	if s == "" {
		return ""
	}
	return " "
}

// unescape undoes JSON's escapes in an argument string, for comparing commands.
func unescape(args string) string {
	var v map[string]any
	if json.Unmarshal([]byte(args), &v) != nil {
		return args
	}
	var out []string
	for _, x := range v {
		switch x := x.(type) {
		case string:
			out = append(out, x)
		case []any:
			for _, y := range x {
				if str, ok := y.(string); ok {
					out = append(out, str)
				}
			}
		}
	}
	return strings.Join(out, "\n")
}

// ordered finds a command that a tool result or a verification asks to run.
func (v *view) ordered() string {
	for i := len(v.entries) - 1; i >= 0; i-- {
		e := v.entries[i]
		texts := blocks().FindAllString(e.text, -1)
		if e.result {
			texts = append(texts, e.text)
		}
		for _, t := range texts {
			if m := instruction().FindStringSubmatch(t); m != nil {
				return m[1]
			}
		}
	}
	return ""
}
