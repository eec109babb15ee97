package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
)

// lemmaJSON writes the fields of contract 1 in its order.
type lemmaJSON struct {
	Claim           string           `json:"claim"`
	Provenance      lemma.Provenance `json:"provenance,omitempty"`
	LoadBearing     bool             `json:"load_bearing"`
	Falsifier       string           `json:"falsifier,omitempty"`
	Observation     *observation     `json:"falsifying_observation,omitempty"`
	SuggestedSensor string           `json:"suggested_sensor,omitempty"`
}

type observation struct {
	Sensor   string         `json:"sensor"`
	Key      string         `json:"key"`
	Operator lemma.Operator `json:"operator"`
	Value    string         `json:"value"`
}

// negations: what would be observed if the claim were false.
var negations = map[lemma.Operator]lemma.Operator{
	lemma.Eq: lemma.Ne, lemma.Ne: lemma.Eq, lemma.Lt: lemma.Ge, lemma.Ge: lemma.Lt,
	lemma.Gt: lemma.Le, lemma.Le: lemma.Gt, lemma.Contains: lemma.NotContains, lemma.NotContains: lemma.Contains,
}

// trivia are claims that no sensor of a scenario reads.
var trivia = []string{
	"The working directory holds the whole service", "Configuration files are UTF-8", "JSON has no comments",
	"The service logs to standard error", "Requests carry a Host header", "The team reviews changes before release",
	"Clients retry on a lost connection", "The clock of this machine is right", "Tests run on each push",
	"File names are case-sensitive", "The loopback address is 127.0.0.1", "HTTP status 413 means too large",
	"HTTP status 429 means too many requests", "The editor keeps line endings", "sed edits files in place with -i",
	"The shell is POSIX", "The repository has one main branch", "Users send well-formed requests",
	"The disk has free space", "Processes may be reloaded", "The README is up to date", "Indentation is two spaces",
	"Ports below 1024 are not used", "The language of the interface is English", "Releases are numbered",
	"Dates are in ISO 8601", "Numbers are decimal", "Names are ASCII", "Old clients stay supported",
}

// declare answers a declare pass.
func (m *Model) declare(v *view, s *script, p Policy) reply {
	if p == Prose {
		return reply{text: "Sure. I will look at the configuration, make the change and tell you what I did."}
	}
	d := struct {
		PlanSummary string      `json:"plan_summary"`
		Lemmas      []lemmaJSON `json:"lemmas"`
	}{PlanSummary: "Answer what was asked", Lemmas: []lemmaJSON{}}
	if s != nil {
		d.PlanSummary = s.plan
	}
	if s != nil && p != Silent {
		l := lemmaJSON{Claim: m.claim(s), Provenance: lemma.Believed, LoadBearing: true}
		switch p {
		case Asker:
			l.Falsifier = fmt.Sprintf("%s %s %s", s.seeded.Key, negations[s.seeded.Operator], s.seeded.Value)
			l.Observation = &observation{s.seeded.Sensor, s.seeded.Key, negations[s.seeded.Operator], s.seeded.Value}
			l.SuggestedSensor = s.seeded.Sensor
		case Launderer:
			l.Provenance = lemma.Measured
		case Compound:
			l.Claim += " and the service picks up changes by itself"
		case OverDeclarer:
			for _, t := range trivia {
				d.Lemmas = append(d.Lemmas, lemmaJSON{Claim: t, Provenance: lemma.Believed, LoadBearing: true})
			}
		case Malformed:
			if m.firstAsk(v.conversation()) {
				l.Provenance = "" // a required field
			}
		}
		d.Lemmas = append(d.Lemmas, l)
	}
	out, err := json.Marshal(d)
	if err != nil { // strings and bools only: cannot happen
		return reply{text: err.Error()}
	}
	offered := false
	for _, t := range v.tools {
		offered = offered || t.name == declareTool
	}
	if offered && v.forced != "" {
		return reply{calls: []call{{declareTool, string(out)}}}
	}
	return reply{text: string(out)}
}

// firstAsk reports whether a conversation is asked to declare for the first time.
func (m *Model) firstAsk(conversation string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[conversation]++
	return m.asked[conversation] == 1
}

// shellTools are names under which agents offer a command line, most specific first.
var shellTools = []string{
	"shell", "bash", "exec_command", "execute_command", "run_command", "run_terminal_command", "run_terminal_cmd",
	"run_shell_command", "local_shell", "terminal",
}

// shellTool is an offered tool that runs a command, and how it wants to be called.
type shellTool struct {
	name  string
	field string
	list  bool
	rest  map[string]any // other required fields, filled by type
}

// shell finds a tool to run commands with.
func (v *view) shell() (shellTool, bool) {
	for _, want := range shellTools {
		for _, t := range v.tools {
			if !strings.EqualFold(t.name, want) {
				continue
			}
			if st, ok := shape(t); ok {
				return st, true
			}
		}
	}
	return shellTool{}, false
}

func shape(t tool) (shellTool, bool) {
	var sc struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(t.schema, &sc) != nil {
		return shellTool{}, false
	}
	st := shellTool{name: t.name, rest: map[string]any{}}
	for _, f := range []string{"command", "cmd", "script"} {
		if p, ok := sc.Properties[f]; ok {
			st.field, st.list = f, strings.Contains(string(p.Type), "array")
			break
		}
	}
	if st.field == "" {
		return shellTool{}, false
	}
	for _, r := range sc.Required {
		if r == st.field {
			continue
		}
		switch strings.Trim(string(sc.Properties[r].Type), `"`) {
		case "boolean":
			st.rest[r] = false
		case "integer", "number":
			st.rest[r] = 60
		case "array":
			st.rest[r] = []string{}
		default:
			st.rest[r] = "carry out the ticket"
		}
	}
	return st, true
}

// call makes the arguments as a model would, the command first.
func (s shellTool) call(command string) call {
	var val any = command
	if s.list {
		val = []string{"sh", "-c", command}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	args := map[string]any{s.field: val}
	for k, x := range s.rest {
		args[k] = x
	}
	if err := enc.Encode(args); err != nil {
		return call{s.name, "{}"}
	}
	return call{s.name, strings.TrimSpace(b.String())}
}
