package action

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/action/strict"
)

// Rule is a rule of a policy over the resolved action. Every condition that it
// names must hold. A rule that confirms or denies fires when one command of the
// action meets it, one that allows when all of them do.
type Rule struct {
	ID       string   `yaml:"id" json:"id"`
	When     When     `yaml:"when" json:"when"`
	Then     string   `yaml:"then" json:"then"` // allow | confirm | deny
	Why      string   `yaml:"why" json:"why,omitempty"`
	Match    []string `yaml:"match" json:"match,omitempty"`         // commands, or tool calls as JSON, that it fires on
	NotMatch []string `yaml:"not_match" json:"not_match,omitempty"` // and that it does not
}

// When are the conditions of a rule. In each text * stands for anything.
type When struct {
	Program []string `yaml:"program" json:"program,omitempty"` // one of these
	Args    []string `yaml:"args" json:"args,omitempty"`       // each of these is one of the arguments
	Effect  string   `yaml:"effect" json:"effect,omitempty"`   // like ">= mutate"
	Paths   []string `yaml:"paths" json:"paths,omitempty"`     // one of these is written or removed
	Hosts   []string `yaml:"hosts" json:"hosts,omitempty"`     // one of these is spoken to
	Tool    []string `yaml:"tool" json:"tool,omitempty"`       // one of these, or its kind
	Actor   []string `yaml:"actor" json:"actor,omitempty"`
}

var effects = []string{string(shell.ReadOnly), string(shell.Mutate), string(shell.Opaque), string(shell.Destroy), string(shell.Catastrophe)}

func (r *Rule) reason() string {
	if r.Why != "" {
		return r.Why
	}
	return "rule " + r.ID + " of the policy"
}

// fires reports that the action meets the rule.
func (r *Rule) fires(w *weighing) bool {
	c := &r.When
	if len(c.Actor) > 0 && !listed(c.Actor, []string{w.action.Actor}) || len(c.Tool) > 0 && !listed(c.Tool, w.toolNames()) {
		return false
	}
	if len(c.Paths) > 0 && !w.anyPath(c.Paths, r.Then == "allow") {
		return false
	}
	if len(c.Hosts) > 0 {
		hosts := w.hosts()
		meets := func(h string) bool { return hostAllowed(c.Hosts, h) }
		if r.Then == "allow" && (len(hosts) == 0 || !all(hosts, meets)) || r.Then != "allow" && !slices.ContainsFunc(hosts, meets) {
			return false
		}
	}
	cmds := w.read.Shell.Commands
	if len(c.Program)+len(c.Args) == 0 {
		return c.effectMeets(w.effect)
	}
	meets := func(cmd shell.Command) bool { return c.command(cmd) }
	if r.Then == "allow" {
		return len(cmds) > 0 && all(cmds, meets) && c.effectMeets(w.effect)
	}
	return slices.ContainsFunc(cmds, func(cmd shell.Command) bool { return meets(cmd) && c.effectMeets(cmd.Effect) })
}

func (c *When) command(cmd shell.Command) bool {
	if len(cmd.Argv) == 0 || len(c.Program) > 0 && !listed(c.Program, []string{cmd.Program(), cmd.Argv[0]}) {
		return false
	}
	for _, pattern := range c.Args {
		if !slices.ContainsFunc(cmd.Argv[1:], func(a string) bool { return glob(pattern, a) }) {
			return false
		}
	}
	return true
}

func (c *When) effectMeets(e shell.Effect) bool {
	if c.Effect == "" {
		return true
	}
	return e.AtLeast(shell.Effect(strings.TrimSpace(strings.TrimPrefix(c.Effect, ">="))))
}

func (w *weighing) anyPath(patterns []string, every bool) bool {
	meets := func(p string) bool {
		for _, pattern := range patterns {
			if glob(pattern, p) || glob(pattern, path.Clean(p)) || glob(pattern, w.real(p)) {
				return true
			}
		}
		return false
	}
	if every {
		return len(w.read.Paths) > 0 && all(w.read.Paths, meets)
	}
	return slices.ContainsFunc(w.read.Paths, meets)
}

func all[T any](list []T, f func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !f(x) })
}

// glob matches * against any run of bytes. It takes time linear in both.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == s[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// Bounds of a policy's rules.
const (
	maxRules    = 500
	maxExamples = 50
)

var ruleID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (t *Terms) checkRules(d *strict.Doc) {
	if len(t.Rules) > maxRules {
		d.Fault("rules", fmt.Sprintf("more than %d rules", maxRules), "")
		return
	}
	seen := map[string]bool{}
	for i := range t.Rules {
		r := &t.Rules[i]
		at := "rules[" + strconv.Itoa(i) + "]"
		if !ruleID.MatchString(r.ID) {
			d.Fault(at+".id", "a rule needs an id of lower case letters, digits, dots and dashes", "")
		} else if seen[r.ID] {
			d.Fault(at+".id", fmt.Sprintf("%q stands twice", r.ID), "")
		}
		seen[r.ID] = true
		if then := []string{"allow", "confirm", "deny"}; !slices.Contains(then, r.Then) {
			hint := strict.Meant(r.Then, then)
			if hint == "" {
				hint = "one of: allow, confirm, deny"
			}
			d.Fault(at+".then", fmt.Sprintf("then cannot be %q", r.Then), hint)
		}
		c := r.When
		if len(c.Program)+len(c.Args)+len(c.Paths)+len(c.Hosts)+len(c.Tool)+len(c.Actor) == 0 && c.Effect == "" {
			d.Fault(at, "a rule without a condition would fire on everything", "name a program, effect, path, host, tool or actor under when")
		}
		if least, ok := strings.CutPrefix(c.Effect, ">="); c.Effect != "" && (!ok || !slices.Contains(effects, strings.TrimSpace(least))) {
			d.Fault(at+".when.effect", fmt.Sprintf("effect cannot be %q", c.Effect), `like ">= mutate", with one of: `+strings.Join(effects, ", "))
		}
		if len(r.Match) == 0 {
			d.Fault(at, "a rule needs at least one example under match", "")
		}
		if len(r.Match)+len(r.NotMatch) > maxExamples {
			d.Fault(at, fmt.Sprintf("more than %d examples", maxExamples), "")
		}
	}
}

// checkExamples runs a rule on its own examples.
func (r *Rule) checkExamples(p *Policy, d *strict.Doc, at string) {
	check := func(list []string, key string, want bool) {
		for i, text := range list {
			place := at + "." + key + "[" + strconv.Itoa(i) + "]"
			a, err := example(text)
			if err != nil {
				d.Fault(place, err.Error(), "")
				continue
			}
			if len(r.When.Actor) > 0 { // an example says nothing of who asks
				a.Actor = strings.ReplaceAll(r.When.Actor[0], "*", "x")
			}
			w := &weighing{action: a, policy: p}
			if err := runStage(w, pipeline[0]); err != nil {
				d.Fault(place, err.Error(), "")
			} else if got := r.fires(w); got != want {
				if want {
					d.Fault(place, fmt.Sprintf("rule %s does not fire on this, and should", r.ID), "")
				} else {
					d.Fault(place, fmt.Sprintf("rule %s fires on this, and should not", r.ID), "")
				}
			}
		}
	}
	check(r.Match, "match", true)
	check(r.NotMatch, "not_match", false)
}

// example reads a command line, or a tool call as a JSON object.
func example(text string) (Action, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || !json.Valid([]byte(text)) {
		return Action{Command: text}, nil
	}
	var a Action
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return Action{}, fmt.Errorf("read example: %w", err)
	}
	return a, nil
}
