package daemon

import (
	"context"
	"errors"
	"strings"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/endpoint"
	"gettier.dev/gettierd/daemon/action/opinion"
	"gettier.dev/gettierd/daemon/action/semantic"
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// beside is who is asked beside the action gate's own rules; a nil one is not set up.
type beside struct {
	meaning *semantic.Evaluator // may add a question
	of      config.Constitution // that meaning was made from
	model   *opinion.Asker      // is recorded
	policy  *action.Policy      // is recorded
}

// besideOf sets up who is asked. An evaluator whose settings stay stays warm.
func (s *settings) besideOf(c *config.Config) (beside, error) {
	out := beside{of: c.Constitution}
	if was := s.cur.Load(); was != nil && was.beside.of == c.Constitution {
		out.meaning = was.beside.meaning
	}
	var err error
	if k := c.Constitution; out.meaning == nil && (k.URL != "" || k.Model != "") {
		if out.meaning, err = semantic.New(endpoint.Options{URL: k.URL, Model: k.Model, Key: s.environ(k.KeyEnv)}, k.Timeout); err != nil {
			return out, err
		}
	}
	k := c.Action.Shadow
	if k.URL != "" || k.Model != "" {
		if out.model, err = opinion.New(endpoint.Options{URL: k.URL, Model: k.Model, Key: s.environ(k.KeyEnv)}); err != nil {
			return out, err
		}
	}
	if k.Policy != "" {
		if out.policy, err = readPolicy("action.shadow.policy", k.Policy); err != nil {
			return out, err
		}
	}
	return out, nil
}

// environ is a variable of the daemon's environment, "" for no name.
func (s *settings) environ(name string) string {
	for _, kv := range s.d.o.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name && name != "" {
			return v
		}
	}
	return ""
}

// mostOpinions bounds how many models are asked at once; more actions than that go
// without.
const mostOpinions = 4

// measure asks for the meaning of an action's text, nil where nobody is set up.
func (g *actionGate) measure(rules *action.Policy, a action.Action) *action.Semantic {
	if g.beside == nil {
		return nil
	}
	e := g.beside().meaning
	if e == nil {
		return nil
	}
	return e.Measure(context.Background(), rules, g.hide(textOf(a)))
}

// opine records what others think of an action that is ruled on already.
func (g *actionGate) opine(a action.Action, d action.Decision, about action.Situation) {
	if g.beside == nil {
		return
	}
	b := g.beside()
	if b.policy != nil {
		g.opined(d, action.Project(a, b.policy, about))
	}
	if b.model == nil {
		return
	}
	select {
	case g.asking <- struct{}{}:
		go func() {
			defer func() { <-g.asking }()
			g.opined(d, b.model.Ask(context.Background(), g.hide(textOf(a))))
		}()
	default:
	}
}

func (g *actionGate) opined(d action.Decision, o action.Opinion) {
	far := d.Compare(o)
	g.record(lemma.ActionOpined{
		Contract: lemma.Contract, DecisionID: d.DecisionID, From: o.From, Risk: min(max(o.Score, 0), 100), State: string(o.State),
		Delta: far.Delta, Disagrees: far.Disagrees, Flags: o.Flags, Reasoning: shell.OneLine(g.hide(o.Text), 200),
	})
}

// textOf is an action in words: where it came from, and what it is.
func textOf(a action.Action) string {
	out := a.Raw
	for _, s := range []string{a.Command, strings.Join(a.Argv, " "), a.Tool, string(a.Args)} {
		if s != "" {
			out += "\n" + s
		}
	}
	return strings.TrimPrefix(out, "\n")
}

// errNothingToWarm: nobody is set up.
var errNothingToWarm = errors.New("no model of meaning is set up: constitution.url and constitution.model name one")

// warmup loads the model of meaning and says how many principles it measured.
func (d *Daemon) warmup(ctx context.Context) (string, int, error) {
	f := d.conf.cur.Load()
	if f.beside.meaning == nil {
		return "", 0, errNothingToWarm
	}
	n, err := f.beside.meaning.Warm(ctx, f.rules)
	return f.beside.of.Model, n, err
}
