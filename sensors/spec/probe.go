package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// probes are the built-in sensors that a definition names in place of a command,
// each with the parameters it takes. They read files and the process table
// themselves and run nothing (13.1). Package sensors/probe implements them.
var probes = map[string][]string{
	"claim.file":       {"path"},
	"compose.project":  {"service"},
	"db.target":        {"tool", "url", "host", "variable"},
	"env.names":        {"name"},
	"file.kind":        {"path"},
	"git.branch":       {"branch"},
	"git.dirty":        {"path"},
	"git.remote":       {"remote"},
	"git.where":        {"path"},
	"infra.context":    {"context", "workspace", "profile"},
	"nginx.files":      {"conf"},
	"node.pm":          {},
	"os.tools":         {},
	"ports.owner":      {"port", "pid"},
	"proc.fresh":       {"port"},
	"python.env":       {},
	"runtime.versions": {},
	"symbols":          {"symbol", "package", "language"},
	"test.command":     {"script"},
	"time.zone":        {},
}

// Probes lists the built-in sensors, sorted.
func Probes() []string {
	out := make([]string, 0, len(probes))
	for name := range probes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// ProbeParams lists what a built-in sensor takes; known is false for a name that
// is none.
func ProbeParams(name string) (params []string, known bool) {
	p, ok := probes[name]
	return slices.Clone(p), ok
}

// notForProbes are the keys that speak of a process.
var notForProbes = []string{"command", "env", "env_from", "exit_ok", "network", "runs_as"}

func (r *reader) probe(n ast.Node) string {
	v, ok := r.str(n, "probe")
	if !ok {
		return ""
	}
	if _, known := probes[v]; !known {
		r.fault(pos(n), fmt.Sprintf("there is no probe %q", clip(v)), orElse(meant(v, Probes()), "one of: "+strings.Join(Probes(), ", ")))
		return ""
	}
	return v
}

// probeWhole holds the rules of a sensor that runs nothing.
func (r *reader) probeWhole(s *Sensor, have map[string]entry) {
	for _, k := range notForProbes {
		if e, ok := have[k]; ok {
			r.fault(e.pos, k+" means nothing for a probe, which runs no process", "leave it out, or write a command")
		}
	}
	if e, ok := have["effects"]; ok && s.Effects != None {
		r.fault(e.pos, "a probe only reads", "effects: none")
	}
	takes := probes[s.Probe]
	for _, p := range s.Params {
		if !contains(takes, p.Name) {
			r.fault(have["params"].pos, fmt.Sprintf("the probe %s takes no parameter %s", s.Probe, clip(p.Name)), orElse(meant(p.Name, takes), ""))
		}
	}
}
