package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// maxTried bounds the output that one try sends.
const maxTried = 64 << 10

func (d *Daemon) registryStatus() ipc.RegistryStatus {
	out := ipc.RegistryStatus{Version: d.sensors.View("").Version, Problems: []ipc.RegistryError{}}
	for _, s := range d.sensors.States() {
		if s.Kind == "sensor" && s.InForce {
			out.Sensors++
		}
		switch s.State {
		case sensors.Pending, sensors.Changed, sensors.Removed:
			out.Pending++
		case sensors.Broken:
			out.Broken++
		}
	}
	for _, f := range d.sensors.Files() {
		for _, p := range f.Problems {
			out.Problems = append(out.Problems, ipc.RegistryError{File: f.Path, Line: p.Line, Column: p.Column, Reason: problemText(p)})
		}
	}
	return out
}

func problemText(p spec.Problem) string {
	if p.Hint != "" {
		return p.What + "; " + p.Hint
	}
	return p.What
}

// levelOf is the registry level of a project's file.
func levelOf(project string) string { return "project/" + project }

func (b backend) Sensors(ctx context.Context, q ipc.SensorQuery) (ipc.List[ipc.Sensor], error) {
	out := ipc.List[ipc.Sensor]{Items: []ipc.Sensor{}}
	out.AsOfSeq, _ = b.Head(ctx) // it has no error
	skip := 0
	if q.Cursor != "" {
		n, err := strconv.Atoi(q.Cursor)
		if err != nil || n < 0 {
			return out, fmt.Errorf("%w: cursor", ipcserver.ErrInvalid)
		}
		skip = n
	}
	n := 0
	for _, s := range b.d.sensors.States() {
		if q.Project != "" && strings.HasPrefix(s.Level, "project/") && s.Level != levelOf(q.Project) {
			continue
		}
		if q.State != "" && string(s.State) != q.State {
			continue
		}
		if n++; n <= skip {
			continue
		}
		if len(out.Items) == q.Limit {
			out.NextCursor = strconv.Itoa(n - 1)
			break
		}
		out.Items = append(out.Items, sensorOf(s))
	}
	return out, nil
}

func sensorOf(s sensors.State) ipc.Sensor {
	out := ipc.Sensor{
		ID: s.ID, Kind: s.Kind, Qualified: s.Qualified(), Level: s.Level, File: s.File, Line: s.Line, State: string(s.State),
		Reason: s.Reason, InForce: s.InForce, Hash: s.Hash, Verifies: []string{}, Keys: []string{}, Params: []ipc.SensorParam{},
	}
	if d := s.Sensor; d != nil {
		out.Description, out.Effects, out.Ambient, out.TTLSeconds = d.Description, string(d.Effects), d.Ambient, int64(d.TTL/time.Second)
		out.Network, out.Verifies = strings.Join(d.Network, ", "), append(out.Verifies, d.Verifies...)
		words := make([]string, len(d.Argv))
		for i, w := range d.Argv {
			words[i] = w.Text
			if strings.ContainsAny(w.Text, " \t\"'") {
				words[i] = strconv.Quote(w.Text)
			}
		}
		out.Command = strings.Join(words, " ")
		if d.Probe != "" {
			out.Command = "probe:" + d.Probe
		}
		for _, e := range d.Extract {
			out.Keys = append(out.Keys, e.Name)
		}
		for _, p := range d.Params {
			sp := ipc.SensorParam{Name: p.Name, Type: p.Type, Required: p.Default == nil && p.FromClaim == ""}
			if p.Default != nil {
				sp.Default = *p.Default
			}
			out.Params = append(out.Params, sp)
		}
	}
	if s.Last != nil {
		r := readingOf(*s.Last)
		out.Last = &r
	}
	return out
}

func readingOf(r sensors.Reading) ipc.Reading {
	out := ipc.Reading{Invocation: r.Invocation, Values: []ipc.Value{}}
	if reason, failed := sensors.Failed(r); failed {
		out.Reason, out.Detail = reason, r.Detail
		return out
	}
	for _, v := range r.Evidence.Values {
		out.Values = append(out.Values, ipc.Value{Key: v.Key, Type: string(v.Type), Text: v.Text, Place: v.Place, Problem: v.Problem})
	}
	return out
}

// root finds a registered project's root; "" is no project.
func (d *Daemon) root(project string) (string, error) {
	if project == "" {
		return "", nil
	}
	for _, p := range d.conf.live().Projects {
		if p.Name == project {
			return p.Root, nil
		}
	}
	return "", fmt.Errorf("%w: no project is named %q (gettier project add DIR)", ipcserver.ErrNotFound, project)
}

// state finds a definition by short or qualified id: the project's first, and of
// one name a sensor before a premise.
func (d *Daemon) state(id, project string, kinds ...string) (sensors.State, error) {
	var found *sensors.State
	for _, s := range d.sensors.States() {
		if !s.Named(id) || !slices.Contains(kinds, s.Kind) {
			continue
		}
		if strings.HasPrefix(s.Level, "project/") && project != "" && s.Level != levelOf(project) {
			continue
		}
		if found == nil || found.Kind != "sensor" && s.Kind == "sensor" {
			found = &s
		}
	}
	if found == nil {
		return sensors.State{}, fmt.Errorf("%w: no registry has a %s %q", ipcserver.ErrNotFound, strings.Join(kinds, ", "), id)
	}
	return *found, nil
}

func (b backend) SensorDiff(_ context.Context, id, project string) (ipc.SensorDiff, error) {
	s, err := b.d.state(id, project, "sensor", "premise", "matching")
	if err != nil {
		return ipc.SensorDiff{}, err
	}
	q := s.Qualified()
	d, err := b.d.sensors.Diff(q)
	if err != nil && !errors.Is(err, sensors.ErrNothing) {
		return ipc.SensorDiff{}, err
	}
	out := ipc.SensorDiff{ID: s.ID, Qualified: q, File: s.File, State: string(s.State), Hash: d.Hash, Text: d.Text}
	if d.State != "" && s.State != sensors.Broken {
		out.State = string(d.State)
	}
	return out, nil
}

func (b backend) Packs(ctx context.Context) (ipc.List[ipc.Pack], error) {
	out := ipc.List[ipc.Pack]{Items: []ipc.Pack{}}
	out.AsOfSeq, _ = b.Head(ctx) // it has no error
	for _, p := range b.d.sensors.Packs() {
		row := ipc.Pack{Name: p.Name, About: p.About, State: ipc.PackNotHere, Sensors: len(p.Sensors), Premises: len(p.Premises), Hash: p.Hash, Reach: []string{}, ReadsOnly: true}
		switch {
		case p.Changed:
			row.State = ipc.PackChanged
		case p.Enabled:
			row.State = ipc.PackEnabled
		case p.Fits(func(program string) bool { _, err := exec.LookPath(program); return err == nil }):
			row.State = ipc.PackOffered
		}
		for _, s := range p.Sensors {
			row.ReadsOnly = row.ReadsOnly && s.Effects == spec.None && len(s.Network) == 0
			for _, w := range spec.Reach(s) {
				row.Reach = append(row.Reach, s.ID+" "+w)
			}
		}
		out.Items = append(out.Items, row)
	}
	return out, nil
}

func (b backend) TrySensor(ctx context.Context, id string, t ipc.SensorTry, by *lemma.Answerer) (ipc.SensorTried, error) {
	root, err := b.d.root(t.Project)
	if err != nil {
		return ipc.SensorTried{}, err
	}
	st, err := b.d.state(id, t.Project, "sensor")
	if err != nil {
		return ipc.SensorTried{}, err
	}
	def, inForce := b.d.sensors.View(root).Lookup(st.ID)
	if by != nil && st.Sensor != nil {
		def = st.Sensor
	} else if !inForce {
		return ipc.SensorTried{}, fmt.Errorf("%w: %s is %s (%s); a person may try it as a draft: gettier sensors try %s --draft", ipcserver.ErrRefused, st.ID, st.State, st.Reason, st.ID)
	}
	cwd := t.Cwd
	if cwd == "" {
		cwd = root
	}
	req := sensors.Request{Sensor: def, Params: t.Params, Claim: t.Claim, Root: root, Cwd: cwd, Why: "try", Env: bare}
	run := b.d.runner
	if by != nil {
		run = b.d.drafts
	}
	r := run.Run(ctx, []sensors.Request{req})[0]
	b.d.sensors.Noted(r)
	if err := b.d.note(ctx, r); err != nil {
		return ipc.SensorTried{}, err
	}
	out := ipc.SensorTried{Sensor: sensorOf(st), Reading: readingOf(r), Redacted: []ipc.Redaction{}, Categories: append([]string{}, def.Verifies...)}
	shown := r.Output
	if len(shown) > maxTried {
		shown, out.Truncated = shown[:maxTried], true
	}
	out.Output = strings.ToValidUTF8(string(shown), "�")
	for _, h := range r.Hits {
		out.Redacted = append(out.Redacted, ipc.Redaction{Rule: h.Rule, Count: h.Count})
	}
	if t.Claim == "" {
		return out, nil
	}
	view := b.d.sensors.View(root)
	l := lemma.Lemma{Claim: t.Claim, LoadBearing: true, Provenance: lemma.Believed}
	matches, note := verdict.Match(l, verdict.Sensors{InForce: []*spec.Sensor{def}, Pending: view.Pending, Matching: view.Matching})
	if i := slices.IndexFunc(matches, func(m lemma.SensorMatch) bool { return m.ID == def.ID }); i >= 0 {
		out.Matches = matches[i].Why
	} else {
		out.Matches = note
	}
	res := verdict.CouldNotRun(def.ID, r.Invocation.ID, r.Reason)
	if _, failed := sensors.Failed(r); !failed {
		res = verdict.Judge(verdict.Claim{Lemma: &l}, def, r.Evidence)
	}
	out.Judged = &ipc.Judged{Verdict: res.Verdict, Reason: res.Reason, Rule: res.Rule, Key: res.Key, Operator: string(res.Operator), Measured: res.Measured, Claimed: res.Claimed}
	return out, nil
}

// bare is the environment of an agent that has set nothing but what the daemon
// has, too: a try stands for no agent's process.
func bare(name string) (string, bool) {
	switch name {
	case "PATH", "HOME", "LANG", "TZ":
		return os.LookupEnv(name)
	}
	return "", false
}

// note records a reading that no turn asked for.
func (d *Daemon) note(ctx context.Context, r sensors.Reading) error {
	var body lemma.Body = lemma.SensorInvoked{Contract: lemma.Contract, Invocation: r.Invocation}
	if reason, failed := sensors.Failed(r); failed {
		body = lemma.SensorFailed{Contract: lemma.Contract, Invocation: r.Invocation, Reason: reason, Detail: r.Detail}
	}
	var blobs [][]byte
	if r.Invocation.OutputBlob != "" {
		blobs = [][]byte{r.Output}
	}
	_, err := d.ledger.Append(ctx, ledger.Draft{Body: body, Blobs: blobs})
	return err
}

func (b backend) ApproveSensors(ctx context.Context, a ipc.SensorApproval, by lemma.Answerer) (ipc.SensorsApproved, error) {
	ids := make([]string, len(a.Sensors))
	for i, p := range a.Sensors {
		ids[i] = p.Qualified + "@" + cmp.Or(p.Hash, sensors.Gone)
	}
	done, err := b.d.sensors.Approve(ctx, ids, "", by)
	if err != nil {
		return ipc.SensorsApproved{}, fmt.Errorf("%w: %w", ipcserver.ErrConflict, err)
	}
	return ipc.SensorsApproved{Approved: done, Version: b.d.sensors.View("").Version}, nil
}
