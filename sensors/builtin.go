package sensors

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/probe"
)

// sandboxProbe is what an invocation of a probe has in place of sandbox layers:
// no process, only reading.
const sandboxProbe = "builtin"

// prepareProbe settles a run that needs no process. Such a run is never shared:
// the environment that it looks into is one agent's.
func (p *prepared) prepareProbe(r *Runner, bound map[string]string) *prepared {
	p.argv = []string{"probe:" + p.req.Sensor.Probe}
	p.inv.Argv = []string{p.argv[0]}
	p.inv.Sandbox = sandboxProbe
	p.bound = bound
	for _, k := range slices.Sorted(maps.Keys(bound)) {
		v := r.hide(bound[k])
		p.inv.Params[k] = v
		p.inv.Argv = append(p.inv.Argv, k+"="+v)
	}
	// What a reading depends on beside its parameters is part of what names it.
	if rel, err := filepath.Rel(p.inv.Cwd, p.req.Cwd); err == nil && p.req.Cwd != "" && rel != "." {
		p.inv.Params["cwd"] = r.hide(oneLine(rel, 200))
		p.inv.Argv = append(p.inv.Argv, "cwd="+p.inv.Params["cwd"])
	}
	for _, set := range p.req.Set {
		name, v, _ := strings.Cut(set, "=")
		p.inv.Params["env:"+oneLine(name, 64)] = r.hide(oneLine(v, 200))
	}
	p.key = p.inv.ID
	return p
}

// env is the agent's environment with what the command sets for itself.
func (q Request) env() func(string) (string, bool) {
	if q.Env == nil {
		return nil
	}
	return func(name string) (string, bool) {
		for i := len(q.Set) - 1; i >= 0; i-- {
			if k, v, ok := strings.Cut(q.Set[i], "="); ok && k == name {
				return v, true
			}
		}
		return q.Env(name)
	}
}

// runProbe measures with a built-in sensor.
func (r *Runner) runProbe(ctx context.Context, p *prepared) Reading {
	s := p.req.Sensor
	home, _ := r.o.Env("HOME")
	began := r.o.Now()
	p.inv.StartedAt = lemma.Time(began)
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cwd := p.req.Cwd
	if !below(p.inv.Cwd, cwd) {
		cwd = p.inv.Cwd // a sensor of the whole project or of the machine
	}
	out, err := probe.Run(limited, s.Probe, probe.In{
		Root: p.req.Root, Dir: p.inv.Cwd, Cwd: cwd, Home: home, Env: p.req.env(), Params: p.bound, Now: began,
	})
	p.inv.DurationMS = r.o.Now().Sub(began).Milliseconds()
	switch {
	case ctx.Err() != nil:
		return p.fail(r, ReasonTimeout, "stopped: "+ctx.Err().Error())
	case limited.Err() != nil:
		return p.fail(r, ReasonTimeout, "longer than "+s.Timeout.Round(time.Second).String())
	case err != nil:
		return p.fail(r, probeReason(err), err.Error())
	case len(out) > s.MaxOutputBytes:
		return p.fail(r, ReasonOutputCap, "more than it may print")
	}
	p.inv.ExitCode = 0
	return r.reading(p, &outcome{started: true, stdout: out})
}

func probeReason(err error) string {
	switch {
	case errors.Is(err, probe.ErrNone), errors.Is(err, fs.ErrNotExist):
		return ReasonNotFound
	case errors.Is(err, probe.ErrCap):
		return ReasonOutputCap
	case errors.Is(err, fs.ErrPermission):
		return ReasonPermission
	}
	return ReasonExit
}
