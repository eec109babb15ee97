package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/evidence"
	"gettier.dev/gettierd/daemon/action/rate"
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/action/strict"
	"gettier.dev/gettierd/ledger/lemma"
)

// rulesOf reads the action gate's policy. A file whose fingerprint is not the one
// that the configuration names is refused: whoever changes the file must be
// somebody who may change the configuration.
func rulesOf(c *config.Config) (*action.Policy, error) {
	p := c.Action.Policy
	if p.File == "" {
		return action.Default(), nil
	}
	rules, err := readPolicy("action.policy.file", p.File)
	switch {
	case err != nil:
		return nil, err
	case p.Fingerprint == "":
		return nil, fmt.Errorf("action.policy.fingerprint is missing: gettier policy show %s prints it", p.File)
	case p.Fingerprint != rules.Fingerprint():
		return nil, errors.New("action.policy.file is not the one whose fingerprint action.policy.fingerprint names: it was changed, or the wrong one")
	}
	return rules, nil
}

// readPolicy reads the policy file that a key names.
func readPolicy(key, file string) (*action.Policy, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	rules, doc := action.ParsePolicy(data)
	if rules == nil {
		return nil, fmt.Errorf("read %s: %s", key, doc.Text(file))
	}
	return rules, nil
}

// actionGate asks the action gate with the policy in force, what the limiter
// counted and what the disk shows.
type actionGate struct {
	rules func() *action.Policy
	now   func() time.Time

	mu      sync.Mutex
	limits  action.RateLimit
	limiter *rate.Limiter

	written  written
	sessions sessions

	beside func() beside       // nil: nobody is asked beside the rules
	hide   func(string) string // takes secrets out of a text
	record func(lemma.Body)
	asking chan struct{} // one slot a model that is being asked
}

func (d *Daemon) actionGate() *actionGate {
	return &actionGate{
		rules: func() *action.Policy { return d.conf.cur.Load().rules }, now: d.o.Now,
		beside: func() beside { return d.conf.cur.Load().beside }, record: d.record, asking: make(chan struct{}, mostOpinions),
		hide: func(s string) string { out, _ := d.redact.String(s); return out },
	}
}

// decide rules on an action of a task that began at since, zero where unknown.
// Looking is not counted: an agent reads more in a minute than it does.
func (g *actionGate) decide(a action.Action, since time.Time) action.Decision {
	rules := g.rules()
	about := action.Situation{}
	if a.Cwd != "" {
		about.Disk = scripts{evidence.Disk{Since: since, Changed: g.sessions.began(a.Actor, since, g.now())}, &g.written}
	}
	read := reading(a)
	if read.Effect != shell.ReadOnly {
		r := g.counter(rules.RateLimit).Take(a.Actor, g.now())
		about.Rate = &r
	}
	d := action.Decide(a, rules, about)
	if d.Allowed && (read.Effect != shell.ReadOnly || a.Raw != "") { // meaning can change nothing else
		if about.Semantic = g.measure(rules, a); about.Semantic != nil {
			d = action.Decide(a, rules, about)
		}
	}
	if !d.Refused() {
		g.written.take(a.Cwd, read, g.now())
	}
	g.opine(a, d, about)
	return d
}

// reading is what an action's words say, no file looked at.
func reading(a action.Action) shell.Action {
	var r shell.Reading
	switch {
	case a.Tool != "":
		return shell.Tool(a.Tool, a.Args)
	case a.Command != "":
		r = shell.Read(a.Command)
	case len(a.Argv) > 0:
		r = shell.ReadArgv(a.Argv)
	}
	return shell.Action{Effect: r.Effect, Shell: r}
}

// counter is the limiter of these limits; other limits begin to count anew.
func (g *actionGate) counter(l action.RateLimit) *rate.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limiter == nil || g.limits != l {
		g.limits, g.limiter = l, rate.New(l)
	}
	return g.limiter
}
