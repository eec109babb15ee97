package sensors

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// Place is where an agent acts: its project, its directory, its environment.
type Place struct {
	Root string // "" when no scope is certain
	Cwd  string
	Env  func(string) (string, bool)
}

// Why a premise of an action is not measured, in Implied.Unknown. Each is
// inconclusive, so on_unknown rules, and from effect destroy up a hold (13).
const (
	UnknownDynamic  = "dynamic"      // known only when the command runs (13.7)
	UnknownScope    = "out_of_scope" // the command acts outside the project
	UnknownInactive = "inactive"     // not approved, or its sensor is not; told only from effect destroy up
	UnknownParam    = "param"        // the sensor cannot be asked about what the command names
)

// Implied is one premise that an action takes for granted, and how to measure it.
type Implied struct {
	verdict.Implied
	Action  int          // index of the action
	Effect  shell.Effect // of its command
	Sensor  *spec.Sensor // nil when Unknown says that it is inactive
	Request Request      // what to run, when Unknown is ""
	Unknown string       // a word above, with its reason behind a colon
}

// maxImplied bounds the premises of one answer's actions; what is beyond is told
// as the last one's Unknown, never dropped in silence.
const maxImplied = 64

// Implied lists the premises that actions take for granted here, each once per
// place and parameters, in the order of the actions and of the registry. The
// caller runs Request where Unknown is "", and asks Judge.
func (v *View) Implied(acts []shell.Action, at Place) []Implied {
	if v == nil || len(v.Premises)+len(v.asleep) == 0 {
		return nil
	}
	var out []Implied
	seen := map[string]bool{}
	add := func(im Implied) {
		key := fmt.Sprint(im.Premise.ID, "\x00", im.Request.Cwd, "\x00", im.Unknown, "\x00", im.Params, "\x00", im.Request.Set)
		if seen[key] {
			return
		}
		seen[key] = true
		out = append(out, im)
	}
	for i, a := range acts {
		cmds := a.Shell.Commands
		for _, e := range a.Edits {
			cmds = append(cmds[:len(cmds):len(cmds)], verdict.Edit(e.Path, a.Effect))
		}
		for _, c := range cmds {
			for _, p := range v.Premises {
				if got, ok := verdict.Takes(p, c); ok {
					add(v.implied(i, got, a, at))
				}
			}
			if !c.Effect.AtLeast(shell.Destroy) {
				continue
			}
			for _, p := range v.asleep {
				if got, ok := verdict.Takes(p, c); ok {
					add(Implied{Implied: got, Action: i, Effect: c.Effect, Unknown: UnknownInactive + ": " + v.Inactive[p.ID]})
				}
			}
		}
		if len(out) > maxImplied {
			out = out[:maxImplied]
			out[maxImplied-1].Unknown = UnknownDynamic + ": more premises than are measured at once"
			return out
		}
	}
	return out
}

// implied settles where and with what one premise is measured.
func (v *View) implied(i int, got verdict.Implied, a shell.Action, at Place) Implied {
	c := got.Command
	im := Implied{Implied: got, Action: i, Effect: c.Effect}
	s, ok := v.Lookup(strings.TrimPrefix(got.Premise.Sensor, levelPack+"/"))
	if !ok {
		im.Unknown = UnknownInactive + ": its sensor is not in force"
		return im
	}
	im.Sensor = s
	dir, ok := actsIn(c, a, at.Cwd)
	switch {
	case at.Root == "" || at.Cwd == "":
		im.Unknown = UnknownScope + ": no certain project"
		return im
	case got.Dynamic || !ok:
		im.Unknown = UnknownDynamic + ": it is known only when the command runs"
		return im
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	} else {
		im.Unknown = UnknownScope + ": the command's directory is not here"
		return im
	}
	if !below(at.Root, dir) {
		if _, err := worktree(at.Root, dir); err != nil {
			im.Unknown = UnknownScope + ": " + err.Error()
			return im
		}
	}
	if c.Argv[0] == verdict.EditProgram && got.Params != nil {
		for k, p := range got.Params { // the agent's path is from where it stands
			if k == "path" && !filepath.IsAbs(p) {
				got.Params[k] = filepath.Join(dir, p)
			}
		}
	}
	im.Request = Request{
		Sensor: s, Params: maps.Clone(got.Params), Claim: got.Premise.Claim, Root: at.Root, Cwd: dir, Env: at.Env, Set: slices.Clone(c.Env),
		Why: "implied:" + got.Premise.ID,
	}
	if s.Probe == "" && len(c.Env) > 0 {
		im.Request.Set = nil // a program of the daemon's measures with its own environment
	}
	if !Binds(im.Request) {
		im.Unknown = UnknownParam + ": " + s.ID + " cannot be asked about this"
	}
	return im
}

// goesTo are options by which a program works in another directory.
var goesTo = map[string][]string{
	"git": {"-C"}, "npm": {"--prefix", "-C"}, "pnpm": {"-C", "--dir"}, "yarn": {"--cwd"}, "bun": {"--cwd"}, "go": {"-C"}, "make": {"-C"}, "uv": {"--directory", "--project"},
	"poetry": {"-C", "--directory"}, "docker": {"--project-directory"}, "terraform": {"-chdir"}, "cargo": {"-C"}, "just": {"-d"},
}

// otherRepo are options that make a program work on something that
// its directory does not tell.
var otherRepo = []string{"--git-dir", "--work-tree"}

// actsIn is the directory in which a command acts: the call's own, a cd before
// it, an option. ok is false when it is known only when the command runs.
func actsIn(c shell.Command, a shell.Action, cwd string) (dir string, ok bool) {
	dir = cwd
	into := func(to string) bool {
		if strings.ContainsAny(to, "$`*?") || strings.HasPrefix(to, "~") {
			return false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		dir = filepath.Clean(to)
		return true
	}
	for _, to := range []string{a.Dir, c.Cwd} {
		if to != "" && !into(to) {
			return "", false
		}
	}
	options := goesTo[c.Program()]
	for i := 1; i < len(c.Argv); i++ {
		arg := c.Argv[i]
		if arg == "--" {
			break
		}
		name, value, inline := strings.Cut(arg, "=")
		if slices.Contains(otherRepo, name) && c.Program() == "git" {
			return "", false
		}
		if !slices.Contains(options, name) {
			continue
		}
		if !inline {
			if i+1 >= len(c.Argv) {
				return "", false
			}
			i++
			value = c.Argv[i]
		}
		if !into(value) {
			return "", false
		}
	}
	return dir, true
}

// Judge is the verdict on the premise by a reading of its Request, or by why
// there is none.
func (im Implied) Judge(rd Reading) verdict.Result {
	if im.Unknown != "" {
		res := verdict.Result{Verdict: lemma.Inconclusive, Reason: im.Unknown}
		if strings.HasPrefix(im.Unknown, UnknownScope) {
			res.Verdict = lemma.OutOfScope
		}
		if im.Sensor != nil {
			res.Sensor = im.Sensor.ID
		}
		return res
	}
	if reason, failed := Failed(rd); failed {
		return verdict.CouldNotRun(im.Sensor.ID, rd.Invocation.ID, reason)
	}
	return verdict.Judge(verdict.PremiseClaim(im.Premise), im.Sensor, rd.Evidence)
}

// Then is what follows from a verdict on the premise: hold, correct, deny,
// annotate, or "" for nothing. From effect destroy up whatever does not settle
// holds, and what is false is never only told (13).
func (im Implied) Then(v lemma.Verdict) string {
	destroys := im.Effect.AtLeast(shell.Destroy)
	switch v {
	case lemma.Confirmed, lemma.VerdictTold, lemma.Waived:
		return ""
	case lemma.Contradicted:
		if destroys && im.Premise.OnFalse == "annotate" {
			return "hold"
		}
		return im.Premise.OnFalse
	}
	if destroys {
		return "hold"
	}
	switch im.Premise.OnUnknown {
	case "hold":
		return "hold"
	case "annotate":
		return "annotate"
	}
	return ""
}

// Told says what a reading has beside the value that a premise asks for, for the
// line that a person reads: host shop.example, source .env.
func (im Implied) Told(rd Reading) string {
	var parts []string
	for _, val := range rd.Evidence.Values {
		if val.Problem == "" && val.Key != im.Premise.Key && val.Text != "" && len(parts) < 5 {
			parts = append(parts, val.Key+" "+oneLine(val.Text, 80))
		}
	}
	return strings.Join(parts, ", ")
}

// Key names what a request measures: definition, place, parameters and, where
// an environment counts, whose. Two requests of one key give one reading, and a
// reading is reused for no other.
func Key(q Request, agent string) string {
	s := q.Sensor
	parts := []string{s.Qualified(), s.Hash, q.Root}
	if s.Cwd == "worktree" || s.Probe != "" {
		parts = append(parts, q.Cwd)
	}
	if s.Probe != "" || s.EnvFrom == "agent" {
		parts = append(parts, agent)
	}
	for _, k := range slices.Sorted(maps.Keys(q.Params)) {
		parts = append(parts, k+"="+q.Params[k])
	}
	if len(s.Params) > 0 {
		parts = append(parts, q.Claim)
	}
	return strings.Join(append(parts, q.Set...), "\x00")
}
