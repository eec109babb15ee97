package sensors

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gettier.dev/gettierd/sensors/spec"
)

// snapshot is what readers see; nothing in it changes.
type snapshot struct {
	roots   []string
	files   []FileState
	rows    []*row
	lockErr error
}

// row is a definition with what is in force of it.
type row struct {
	*definition
	level, root, file string
	broken            string // why it cannot be used

	// In force: the approved definition, at this file's level.
	sensorIn   *spec.Sensor
	premiseIn  *spec.Premise
	matchingIn map[string][]string
}

// approve fills what is in force. Copies carry level and file, which the lock
// does not store.
func (w *row) approve() {
	if w.pin == nil || w.broken != "" {
		return
	}
	switch w.kind {
	case kindSensor:
		s := *w.pin.sensor
		s.Level, s.File, s.Version = w.level, w.file, w.pin.Version
		if w.sensor != nil {
			s.Pos = w.sensor.Pos
			if w.sensor.Hash == s.Hash {
				s.Version = w.version
			}
		}
		w.sensorIn = &s
	case kindPremise:
		p := *w.pin.premise
		p.Level = w.level
		w.premiseIn = &p
	case kindMatching:
		w.matchingIn = w.pin.matching
	}
}

// drift looks at a sensor's scripts in one project.
func (r *Registry) drift(w *row, root, cwd string) string {
	at, err := stand(w.sensorIn, root, cwd)
	if err != nil {
		if w.sensorIn.Cwd == "worktree" && cwd == "" {
			at = place{root: root, dir: root} // the run itself looks at the tree it stands in
		} else {
			return ""
		}
	}
	now, err := r.hashes.pinned(w.sensorIn, at, root)
	if err != nil {
		return line(err.Error())
	}
	return drift(now, w.pin.Files, root)
}

// View is what a turn in the project of this root sees; "" or an unknown root
// sees the user's own sensors only.
func (r *Registry) View(root string) *View {
	n := r.now.Load()
	v := &View{Pending: map[string]string{}, Matching: map[string][]string{}, Inactive: map[string]string{}}
	if !slices.Contains(n.roots, root) {
		root = ""
	}
	names := map[string]bool{}
	var premises []*row
	sum := sha256.New()
	for _, near := range []bool{true, false} { // the project's file shadows the user's
		for _, w := range n.rows {
			if (w.root != "") != near || near && w.root != root {
				continue
			}
			reason := w.reason()
			switch w.kind {
			case kindSensor:
				if w.sensorIn != nil {
					if d := r.drift(w, root, ""); d != "" {
						v.wait(w, d)
						continue
					}
					if !names[w.id] {
						names[w.id] = true
						v.Sensors = append(v.Sensors, w.sensorIn)
						fmt.Fprintln(sum, w.sensorIn.Qualified(), w.sensorIn.Hash)
					}
				} else {
					v.wait(w, reason)
				}
			case kindPremise:
				if w.premiseIn != nil {
					premises = append(premises, w)
				} else {
					v.Inactive[w.id] = reason
					if w.premise != nil {
						v.asleep = append(v.asleep, w.premise)
					}
				}
			case kindMatching:
				if w.matchingIn == nil {
					v.note(kindMatching, reason)
					continue
				}
				for c, phrases := range w.matchingIn {
					v.Matching[c] = append(v.Matching[c], phrases...)
				}
				fmt.Fprintln(sum, w.level, w.pin.Hash)
			}
		}
	}
	v.premises(premises, sum)
	v.Version = hex.EncodeToString(sum.Sum(nil))
	return v
}

func (v *View) note(id, reason string) {
	if _, ok := v.Pending[id]; !ok {
		v.Pending[id] = reason
	}
}

func (v *View) wait(w *row, reason string) {
	v.note(w.id, reason)
	if s := cmp.Or(w.sensorIn, w.sensor); s != nil {
		v.Waiting = append(v.Waiting, s)
	}
}

// premises takes those whose sensor is in force and comes from the same file or
// from a pack.
func (v *View) premises(rows []*row, sum interface{ Write([]byte) (int, error) }) {
	seen := map[string]bool{}
	for _, w := range rows {
		p := w.premiseIn
		if seen[p.ID] {
			continue // shadowed by the nearer file's
		}
		seen[p.ID] = true
		s, ok := v.Lookup(strings.TrimPrefix(p.Sensor, "pack/"))
		before := len(v.Premises)
		switch {
		case !ok:
			reason := "its sensor " + p.Sensor + " is not registered"
			if why, pending := v.Pending[p.Sensor]; pending {
				reason = "its sensor " + p.Sensor + " is not in force: " + why
			}
			v.Inactive[p.ID] = reason
		case s.Level != w.level && s.Level != levelPack && w.level != levelPack:
			v.Inactive[p.ID] = "its sensor " + p.Sensor + " stands in another file"
		case !measures(s, p):
			v.Inactive[p.ID] = "its sensor " + s.Qualified() + " does not measure " + p.Key
		default:
			v.Premises = append(v.Premises, p)
			fmt.Fprintln(sum, "premise", w.level, p.ID, p.Hash)
		}
		if len(v.Premises) == before {
			v.asleep = append(v.asleep, p)
		}
	}
}

// measures reports whether a sensor, perhaps a nearer one than the premise was
// written for, has what the premise asks.
func measures(s *spec.Sensor, p *spec.Premise) bool {
	if _, ok := s.Value(p.Key); !ok {
		return false
	}
	for name := range p.Params {
		if _, ok := s.Param(name); !ok {
			return false
		}
	}
	return true
}

// reason says why a definition is not in force, or not as the file has it.
func (w *row) reason() string {
	if w.broken != "" {
		return w.broken
	}
	switch w.standing() {
	case Pending:
		return "not approved yet"
	case Changed:
		return "edited; the approved definition stays in force"
	case Removed:
		return "gone from the file; the approved definition stays in force"
	}
	return ""
}

// Permit says whether this very definition may run now in this place: it is the
// approved one and the files that it runs are as they were. A runner asks right
// before each run, since files can change after a view was made.
func (r *Registry) Permit(s *spec.Sensor, root, cwd string) error {
	for _, w := range r.now.Load().rows {
		if w.kind != kindSensor || w.file != s.File || w.id != s.ID {
			continue
		}
		switch {
		case w.sensorIn == nil:
			return errors.New(w.reason())
		case w.sensorIn.Hash != s.Hash:
			return errors.New("this is not the approved definition")
		}
		if d := r.drift(w, root, cwd); d != "" {
			return errors.New(d)
		}
		return nil
	}
	return errors.New("not registered")
}

// States lists every definition with where it stands, and each broken file as a
// row without an id.
func (r *Registry) States() []State {
	n := r.now.Load()
	r.lastMu.Lock()
	last := maps.Clone(r.last)
	r.lastMu.Unlock()
	var out []State
	if n.lockErr != nil {
		out = append(out, State{Kind: "file", File: lockPath(r.o.StateDir), Line: 1, State: Broken, Reason: line(n.lockErr.Error())})
	}
	for _, f := range n.files {
		if len(f.Problems) > 0 {
			p := f.Problems[0]
			out = append(out, State{Kind: "file", Level: f.Level, File: f.Path, Line: p.Line, State: Broken, Reason: line(p.Error())})
		}
	}
	for _, w := range n.rows {
		st := State{
			ID: w.id, Kind: w.kind, Level: w.level, File: w.file, Line: w.pos.Line, Hash: w.hash, State: w.standing(),
			Reason: w.reason(), InForce: w.sensorIn != nil || w.premiseIn != nil || w.matchingIn != nil,
			Sensor: w.sensor, Last: last[w.file+"\x00"+w.id],
		}
		if w.pin != nil {
			st.Pinned = w.pin.Hash
		}
		if w.broken != "" {
			st.State = Broken
		}
		if w.sensorIn != nil {
			if st.Sensor == nil {
				st.Sensor = w.sensorIn
			}
			r.driftState(n, w, &st)
		}
		out = append(out, st)
	}
	return out
}

// driftState marks a sensor whose scripts changed, in its own project or, for a
// user-level one, in any.
func (r *Registry) driftState(n *snapshot, w *row, st *State) {
	roots := n.roots
	if w.root != "" {
		roots = []string{w.root}
	} else if len(roots) == 0 {
		roots = []string{""}
	}
	for _, root := range roots {
		if d := r.drift(w, root, ""); d != "" {
			st.State, st.Reason = Pending, d
			st.InForce = st.InForce && w.root == "" && len(roots) > 1
			return
		}
	}
}

// Files lists the registry files, nearest first.
func (r *Registry) Files() []FileState { return slices.Clone(r.now.Load().files) }

// line makes text of a file or a program fit for one line of an event.
func line(s string) string { return oneLine(s, 200) }
