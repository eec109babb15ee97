package sensors

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/config/watch"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// Registry is the live set of definitions. Readers take a snapshot that never
// changes; edits, approvals and new projects make another one.
type Registry struct {
	o      Options
	key    ed25519.PrivateKey
	hashes hashes
	now    atomic.Pointer[snapshot]

	mu      sync.Mutex // held by whoever changes something
	lock    *lock
	lockErr error // why the lock on disk is not the one in force
	opened  bool
	sources []*source

	lastMu sync.Mutex
	last   map[string]*Reading // by file, id

	changed chan struct{} // 1: that the files to watch changed, not how often
}

// source is one registry file and what it last said.
type source struct {
	path, level, root string
	data              []byte // of a pack, whose file is part of the binary

	seen   string // hash of the bytes that were read last, "" before
	absent bool
	good   *spec.Registry // nil before the first good content
	faults []spec.Problem // of the newest content; the good one stays in force
}

// FileState is one registry file as people see it.
type FileState struct {
	Path     string
	Level    string
	Version  string // registry_version of the content in use, "" when none
	Missing  bool
	Problems []spec.Problem // why the newest content is not in use
	Warnings []spec.Problem
	Sensors  int
}

// ProjectFile is where a project keeps its registry.
func ProjectFile(root string) string { return filepath.Join(root, ".gettier", "sensors.yaml") }

// Open loads every file and the approvals. A bad file or lock does not make it
// fail: both are states with a reason, and events. The error is about the key.
func Open(o Options) (*Registry, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Record == nil {
		o.Record = func(lemma.Body) {}
	}
	if o.Check == nil {
		o.Check = verdict.CheckExamples
	}
	key, err := LockKey(o.StateDir, o.Entropy)
	if err != nil {
		return nil, err
	}
	r := &Registry{o: o, key: key, lock: &lock{V: 1}, last: map[string]*Reading{}, changed: make(chan struct{}, 1)}
	r.now.Store(&snapshot{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reload()
	r.opened = true
	return r, nil
}

// Reload reads everything again, as after a signal.
func (r *Registry) Reload(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reload()
}

// Configure puts another set of user-level files and projects in place.
func (r *Registry) Configure(files []string, projects []Project, autoApprove bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Files, r.o.Projects, r.o.AutoApprove = slices.Clone(files), slices.Clone(projects), autoApprove
	r.reload()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// reload brings sources in line with the options, reads what changed, pins what
// is approved by setting, and publishes the result. r.mu is held.
func (r *Registry) reload() {
	events := r.readLock()
	old := r.sources
	r.sources = nil
	add := func(path, level, root string) {
		if slices.ContainsFunc(r.sources, func(s *source) bool { return s.path == path }) {
			return
		}
		for _, s := range old {
			if s.path == path && s.level == level && s.root == root {
				r.sources = append(r.sources, s)
				return
			}
		}
		r.sources = append(r.sources, &source{path: path, level: level, root: root})
	}
	for _, p := range r.o.Projects {
		add(ProjectFile(p.Root), "project/"+p.Name, p.Root)
	}
	for _, f := range r.o.Files {
		if abs, err := filepath.Abs(f); err == nil {
			add(abs, "user", "")
		}
	}
	for _, p := range r.packSources() {
		i := slices.IndexFunc(old, func(s *source) bool { return s.path == p.path })
		if i >= 0 {
			p = old[i]
		}
		r.sources = append(r.sources, p)
	}
	for _, s := range r.sources {
		if s.level != levelPack && r.read(s) {
			events = append(events, r.news(s)...)
		}
	}
	r.publish()
	r.record(events)
}

// news pins what is approved by setting, and makes the events of a source whose
// content changed.
func (r *Registry) news(s *source) []lemma.Body {
	return append(r.auto(s), r.loaded(s))
}

func (r *Registry) record(events []lemma.Body) {
	for _, e := range events {
		r.o.Record(e)
	}
}

// readLock takes the lock from disk when it is newer than the one in memory:
// another process may have approved something. A damaged or older one never
// replaces what is in force.
func (r *Registry) readLock() []lemma.Body {
	l, err := readLock(r.o.StateDir, r.key)
	if err == nil && l.Serial < r.lock.Serial {
		err = fmt.Errorf("read sensors.lock: serial %d is older than %d, which is in force", l.Serial, r.lock.Serial)
	}
	if err != nil {
		known := r.lockErr != nil && r.lockErr.Error() == err.Error()
		r.lockErr = err
		if known {
			return nil
		}
		return []lemma.Body{r.lockRefused(err)}
	}
	before := r.lock
	r.lock, r.lockErr = l, nil
	if !r.opened || l.Serial == before.Serial {
		return nil
	}
	return approvedElsewhere(before, l)
}

func (r *Registry) lockRefused(err error) lemma.Body {
	return lemma.RegistryRejected{
		Contract: lemma.Contract, File: lockPath(r.o.StateDir), Line: 1, Column: 1,
		Reason: line(err.Error()), Live: fmt.Sprintf("serial %d", r.lock.Serial),
	}
}

// approvedElsewhere makes the events of approvals at the command line.
func approvedElsewhere(before, now *lock) []lemma.Body {
	byFile := map[string]*lemma.RegistryApproved{}
	var out []*lemma.RegistryApproved
	for _, a := range now.Entries {
		if b := before.find(a.File, a.Kind, a.ID); b != nil && b.Hash == a.Hash && b.At == a.At {
			continue
		}
		e := byFile[a.File]
		if e == nil {
			e = &lemma.RegistryApproved{Contract: lemma.Contract, File: a.File, Version: a.Version, By: a.By}
			byFile[a.File] = e
			out = append(out, e)
		}
		e.Sensors = append(e.Sensors, approvedName(a.Kind, a.ID))
	}
	events := make([]lemma.Body, len(out))
	for i, e := range out {
		events[i] = *e
	}
	return events
}

// read takes new content of a file from disk.
func (r *Registry) read(s *source) bool {
	data, err := readSmall(s.path, maxRead)
	if errors.Is(err, fs.ErrNotExist) {
		return r.take(s, false, nil, nil)
	}
	return r.take(s, true, data, err)
}

// maxRead lets a file that is too large reach the parser, which says so.
const maxRead = spec.MaxFileBytes + 1

// take puts the content of a file in place and reports whether that is news:
// once per content, good or bad. A bad one never replaces a good one.
func (r *Registry) take(s *source, exists bool, data []byte, err error) bool {
	if !exists {
		first, was := s.seen == "" && !s.absent, s.absent
		s.seen, s.absent, s.faults = "", true, nil
		s.good = &spec.Registry{File: s.path, Level: s.level}
		return !was && (!first || r.pins(s.path))
	}
	sum := sha256.Sum256(data)
	seen := hex.EncodeToString(sum[:])
	if err != nil {
		seen = "error: " + err.Error()
	}
	if s.seen == seen {
		return false
	}
	s.seen, s.absent = seen, false
	if err != nil {
		s.faults = []spec.Problem{{Pos: spec.Pos{Line: 1, Column: 1}, What: line("the file cannot be read: " + err.Error())}}
		return true
	}
	reg, faults := spec.Parse(s.path, s.level, data, r.o.Check)
	if reg != nil {
		if faults = verdict.CheckPremises(reg); len(faults) > 0 {
			reg = nil
		}
	}
	if s.faults = faults; reg != nil {
		s.good = reg
	}
	return true
}

// pins reports whether anything of this file is approved.
func (r *Registry) pins(file string) bool {
	return slices.ContainsFunc(r.lock.Entries, func(a *approval) bool { return a.File == file })
}

// loaded is the event that follows one read.
func (r *Registry) loaded(s *source) lemma.Body {
	live := ""
	if s.good != nil {
		live = s.good.Hash
	}
	if len(s.faults) > 0 {
		p := s.faults[0]
		reason := p.What
		if p.Hint != "" {
			reason += " (" + p.Hint + ")"
		}
		if n := len(s.faults) - 1; n > 0 {
			reason = fmt.Sprintf("%s; and %d more", reason, n)
		}
		return lemma.RegistryRejected{Contract: lemma.Contract, File: s.path, Line: p.Line, Column: p.Column, Reason: line(reason), Live: live}
	}
	e := lemma.RegistryLoaded{Contract: lemma.Contract, File: s.path, Version: live, Sensors: len(s.good.Sensors), Pending: []string{}, Changed: []string{}, Warnings: []string{}}
	for _, d := range r.definitions(s) {
		switch d.standing() {
		case Pending:
			e.Pending = append(e.Pending, d.name())
		case Changed, Removed:
			e.Changed = append(e.Changed, d.name())
		}
	}
	for _, w := range s.good.Warnings {
		if len(e.Warnings) == 20 {
			break
		}
		e.Warnings = append(e.Warnings, line(w.Error()))
	}
	return e
}

// definition is one thing that a file says or that was approved for it.
type definition struct {
	kind, id string
	source   *source
	hash     string // in the file, "" when it is gone
	version  string
	pos      spec.Pos
	sensor   *spec.Sensor
	premise  *spec.Premise
	matching map[string][]string
	pin      *approval

	looked bool // pins and failed are what files found
	pins   []Pin
	failed []error
}

func (d *definition) name() string { return approvedName(d.kind, d.id) }

// approvedName is how approvals and events name a definition.
func approvedName(kind, id string) string {
	if kind == kindPremise {
		return "premise:" + id
	}
	return id
}

// standing compares the file with the approval; whether scripts changed is
// looked at when a view is made.
func (d *definition) standing() Standing {
	switch {
	case d.pin == nil:
		return Pending
	case d.hash == "":
		return Removed
	case d.hash != d.pin.Hash:
		return Changed
	}
	return Approved
}

// body is the definition's value in canonical form.
func (d *definition) body() ([]byte, error) {
	switch {
	case d.sensor != nil:
		return spec.Definition(d.sensor)
	case d.premise != nil:
		return spec.Definition(d.premise)
	}
	return spec.Definition(d.matching)
}

// definitions lists a source's in the order of the file, approved ones that the
// file lacks at the end.
func (r *Registry) definitions(s *source) []*definition {
	var out []*definition
	have := map[string]bool{}
	put := func(d *definition) {
		d.source, d.pin = s, r.lock.find(s.path, d.kind, d.id)
		have[d.kind+"\x00"+d.id] = true
		out = append(out, d)
	}
	if g := s.good; g != nil {
		for _, x := range g.Sensors {
			put(&definition{kind: kindSensor, id: x.ID, hash: x.Hash, version: g.Hash, pos: x.Pos, sensor: x})
		}
		for _, p := range g.Premises {
			put(&definition{kind: kindPremise, id: p.ID, hash: p.Hash, version: g.Hash, pos: p.Pos, premise: p})
		}
		if len(g.Matching) > 0 {
			put(&definition{kind: kindMatching, id: kindMatching, hash: spec.HashOf(g.Matching), version: g.Hash, matching: g.Matching})
		}
	}
	for _, a := range r.lock.Entries {
		if a.File == s.path && !have[a.Kind+"\x00"+a.ID] {
			put(&definition{kind: a.Kind, id: a.ID})
		}
	}
	return out
}

// publish makes the snapshot that readers see from now on.
func (r *Registry) publish() {
	n := &snapshot{lockErr: r.lockErr}
	for _, p := range r.o.Projects {
		n.roots = append(n.roots, p.Root)
	}
	taken := map[string]string{} // user-level ids, whose files share one level
	for _, s := range r.sources {
		if r.hidden(s) {
			continue
		}
		s.readPack()
		f := FileState{Path: s.path, Level: s.level, Missing: s.absent, Problems: s.faults}
		if s.good != nil {
			f.Version, f.Warnings, f.Sensors = s.good.Hash, s.good.Warnings, len(s.good.Sensors)
		}
		n.files = append(n.files, f)
		for _, d := range r.definitions(s) {
			row := &row{definition: d, level: s.level, root: s.root, file: s.path}
			if s.level == "user" && d.kind != kindMatching {
				key := d.kind + "\x00" + d.id
				if first, dup := taken[key]; dup {
					row.broken = "the id is taken by " + first
				} else {
					taken[key] = s.path
				}
			}
			row.approve()
			n.rows = append(n.rows, row)
		}
	}
	r.now.Store(n)
}

// auto pins new, changed and removed definitions of a user-level file when the
// person asked for that in the configuration.
func (r *Registry) auto(s *source) []lemma.Body {
	if !r.o.AutoApprove || s.level != "user" || len(s.faults) > 0 || s.absent || r.lockErr != nil {
		return nil
	}
	var todo []*definition
	for _, d := range r.definitions(s) {
		if d.standing() != Approved {
			todo = append(todo, d)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	events, err := r.pin(todo, lemma.Answerer{Via: "auto_approve"})
	if err != nil {
		r.lockErr = err
		return []lemma.Body{r.lockRefused(err)}
	}
	return events
}

// Noted keeps the last reading of each sensor for States.
func (r *Registry) Noted(rs ...Reading) {
	r.lastMu.Lock()
	defer r.lastMu.Unlock()
	for i := range rs {
		if s := rs[i].Sensor; s != nil {
			r.last[s.File+"\x00"+s.ID] = &rs[i]
		}
	}
}

// Watch takes edits of registry files and of the lock as they settle, until ctx
// ends. A reader of the registry never waits for it.
func (r *Registry) Watch(ctx context.Context) error {
	w := watch.New(watch.Options{MaxBytes: maxLockBytes})
	w.Set(r.paths()...)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.changed:
				w.Set(r.paths()...)
			}
		}
	}()
	err := w.Run(ctx, r.settled)
	cancel()
	<-done
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// paths lists what Watch follows.
func (r *Registry) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []string{lockPath(r.o.StateDir)}
	for _, s := range r.sources {
		if s.level != levelPack {
			out = append(out, s.path)
		}
	}
	return out
}

// settled takes one settled content.
func (r *Registry) settled(c watch.Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Path == lockPath(r.o.StateDir) {
		events := r.readLock()
		r.publish()
		r.record(events)
		return
	}
	for _, s := range r.sources {
		if s.path != c.Path || !r.take(s, c.Exists, c.Data, c.Err) {
			continue
		}
		events := r.news(s)
		r.publish()
		r.record(events)
	}
}
