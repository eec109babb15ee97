package sensors

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// ErrNothing says that an approval or a diff named nothing that waits for one.
var ErrNothing = errors.New("nothing of this name waits for approval")

// Approve pins the definitions of these ids as they are in memory now, with the
// files that they run; approving one that is gone from its file takes it out of
// force. An id is short or qualified, premise:ID for a premise, "matching" for a
// file's own phrases, and may end in @ and the first characters of the hash
// that the person saw (Difference), or Gone. file narrows it to one file; "" stands for all. Either
// all are approved or none. It returns the qualified names.
func (r *Registry) Approve(ctx context.Context, ids []string, file string, by lemma.Answerer) ([]string, error) {
	if len(ids) == 0 {
		return nil, errors.New("approve sensors: name each one")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("approve sensors: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lockErr != nil {
		if err := r.setAside(); err != nil {
			return nil, fmt.Errorf("approve sensors: %w", err)
		}
	}
	var todo []*definition
	var names []string
	for _, id := range ids {
		if p, seen, ok := r.pack(id); ok {
			defs, err := r.packDefinitions(p, seen)
			if err != nil {
				return nil, fmt.Errorf("approve sensors: %w", err)
			}
			todo, names = append(todo, defs...), append(names, levelPack+"/"+p.Name)
			continue
		}
		d, err := r.waiting(id, file)
		if err != nil {
			return nil, fmt.Errorf("approve sensors: %w", err)
		}
		if !slices.Contains(todo, d) {
			todo, names = append(todo, d), append(names, d.source.level+"/"+d.name())
		}
	}
	events, err := r.pin(todo, by)
	if err != nil {
		return nil, fmt.Errorf("approve sensors: %w", err)
	}
	r.publish()
	r.record(events)
	return names, nil
}

// setAside moves a lock that cannot be trusted out of the way. Only a person's
// approval does that; what was in force in memory is written anew.
func (r *Registry) setAside() error {
	path := lockPath(r.o.StateDir)
	to := fmt.Sprintf("%s.refused-%d", path, r.o.Now().Unix())
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set aside the refused lock: %w", err)
	}
	r.lockErr = nil
	return nil
}

// waiting finds the definition that an id means.
func (r *Registry) waiting(id, file string) (*definition, error) {
	name, seen, _ := strings.Cut(id, "@")
	var all, hits []*definition
	for _, s := range r.sources {
		if file != "" && file != s.path || r.hidden(s) && !strings.HasPrefix(name, levelPack+"/") {
			continue
		}
		all = append(all, r.definitions(s)...)
	}
	for _, d := range all {
		if d.name() == name || d.source.level+"/"+d.name() == name {
			hits = append(hits, d)
		}
	}
	if len(hits) > 1 { // one that waits before one that does not
		if w := slices.DeleteFunc(slices.Clone(hits), func(d *definition) bool { return d.standing() == Approved }); len(w) == 1 {
			hits = w
		}
	}
	switch {
	case len(hits) == 0:
		return nil, fmt.Errorf("%s: %w", name, ErrNothing)
	case len(hits) > 1:
		return nil, fmt.Errorf("%s stands in %d files: name it %s/%s or %s/%s", name, len(hits),
			hits[0].source.level, hits[0].name(), hits[1].source.level, hits[1].name())
	}
	return hits[0], r.seen(hits[0], seen)
}

// seen compares a definition, with the files that it runs, with the hash that the
// person saw; "" is any.
func (r *Registry) seen(d *definition, hash string) error {
	pins, _ := r.files(d) // one that cannot be read fails the approval itself
	switch {
	case hash == "", hash == Gone && d.hash == "":
		return nil
	case hash == Gone, d.hash == "", !strings.HasPrefix(shown(d, pins), hash):
		return fmt.Errorf("%s has changed since you saw it", d.name())
	}
	return nil
}

// pin writes approvals and returns their events. r.mu is held; the state
// directory is locked against other processes meanwhile.
func (r *Registry) pin(todo []*definition, by lemma.Answerer) ([]lemma.Body, error) {
	release, err := holdLock(r.o.StateDir)
	if err != nil {
		return nil, err
	}
	defer release()
	// Take what another process approved in between; a refused lock was set aside.
	if l, err := readLock(r.o.StateDir, r.key); err != nil {
		return nil, err
	} else if l.Serial > r.lock.Serial {
		r.lock = l
	}
	var put, gone []*approval
	byFile := map[string]*lemma.RegistryApproved{}
	var order []string
	for _, d := range todo {
		e := byFile[d.source.path]
		if e == nil {
			e = &lemma.RegistryApproved{Contract: lemma.Contract, File: d.source.path, By: by}
			if d.source.good != nil {
				e.Version = d.source.good.Hash
			}
			byFile[d.source.path] = e
			order = append(order, d.source.path)
		}
		e.Sensors = append(e.Sensors, d.name())
		if d.hash == "" {
			if a := r.lock.find(d.source.path, d.kind, d.id); a != nil {
				gone = append(gone, a)
			}
			continue
		}
		a, err := r.approvalOf(d, by)
		if err != nil {
			return nil, err
		}
		put = append(put, a)
	}
	next := r.lock.without(gone...).with(put...)
	if err := next.save(r.o.StateDir, r.key); err != nil {
		return nil, err
	}
	r.lock = next
	var events []lemma.Body
	for _, f := range order {
		events = append(events, *byFile[f])
	}
	return events, nil
}

func (r *Registry) approvalOf(d *definition, by lemma.Answerer) (*approval, error) {
	body, err := d.body()
	if err != nil {
		return nil, err
	}
	pins, failed := r.files(d)
	if len(failed) > 0 {
		return nil, failed[0]
	}
	a := &approval{
		File: d.source.path, Kind: d.kind, ID: d.id, Hash: d.hash, Definition: body, Version: d.version,
		Files: pins, At: lemma.Time(r.o.Now()), By: by,
	}
	return a, a.decode()
}

// ApproveAll pins everything that one file says, without a daemon: for tests, for
// private daemons of the harness, and for the command line after a person said
// yes. roots are the projects that user-level sensors may run in; a project's
// file knows its own. A file with faults is an error that explains them.
func ApproveAll(stateDir, file, level string, roots ...string) ([]string, error) {
	path, root, err := locate(file, level)
	if err != nil {
		return nil, fmt.Errorf("approve %s: %w", file, err)
	}
	key, err := LockKey(stateDir, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("approve %s: %w", file, err)
	}
	data, err := readSmall(path, spec.MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("approve %s: %w", file, err)
	}
	reg, faults := spec.Parse(path, level, data, verdict.CheckExamples)
	if reg != nil {
		if faults = verdict.CheckPremises(reg); len(faults) > 0 {
			reg = nil
		}
	}
	if reg == nil {
		return nil, fmt.Errorf("approve %s: %s", file, spec.Explain(file, data, faults))
	}
	l, err := readLock(stateDir, key)
	if err != nil {
		return nil, fmt.Errorf("approve %s: %w", file, err)
	}
	s := &source{path: path, level: level, root: root, good: reg}
	r := &Registry{o: Options{StateDir: stateDir, Now: time.Now}, key: key, lock: l, sources: []*source{s}}
	for _, root := range roots {
		r.o.Projects = append(r.o.Projects, Project{Root: root})
	}
	var names []string
	var defs []*definition
	for _, d := range r.definitions(s) {
		if d.hash != "" { // what is gone from the file stays in force
			defs, names = append(defs, d), append(names, d.name())
		}
	}
	if len(defs) == 0 {
		return nil, nil
	}
	if _, err := r.pin(defs, lemma.Answerer{UID: os.Getuid(), Via: "cli"}); err != nil {
		return nil, fmt.Errorf("approve %s: %w", file, err)
	}
	return names, nil
}

// locate names a registry file as a daemon will: a project's root has its links
// resolved, the file's own are left alone.
func locate(file, level string) (path, root string, err error) {
	if path, err = filepath.Abs(file); err != nil || !strings.HasPrefix(level, "project/") {
		return path, "", err
	}
	dir := filepath.Dir(path)
	if filepath.Base(dir) != ".gettier" {
		root, err = filepath.EvalSymlinks(dir)
		return filepath.Join(root, filepath.Base(path)), root, err
	}
	root, err = filepath.EvalSymlinks(filepath.Dir(dir))
	return filepath.Join(root, ".gettier", filepath.Base(path)), root, err
}

// diff marks the lines of a longest common subsequence with two blanks, others
// with - or +. Definitions are short; larger ones are shown as a whole.
func diff(a, b []string) []string {
	var out []string
	all := func(mark string, ls []string) {
		for _, l := range ls {
			out = append(out, mark+l)
		}
	}
	if len(a) > 2000 || len(b) > 2000 {
		all("- ", a)
		all("+ ", b)
		return out
	}
	lcs := make([][]int, len(a)+1)
	for i := range lcs {
		lcs[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				lcs[i][j] = lcs[i+1][j+1] + 1
			} else {
				lcs[i][j] = max(lcs[i+1][j], lcs[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case lcs[i+1][j] >= lcs[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	all("- ", a[i:])
	all("+ ", b[j:])
	return out
}
