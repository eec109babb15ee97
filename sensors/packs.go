package sensors

import (
	"fmt"
	"slices"
	"strings"

	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/spec"
)

// levelPack is the level of the packs that are part of the binary.
const levelPack = "pack"

// packSources lists the files of the packs as sources, whose content never
// changes while the program runs.
func (r *Registry) packSources() []*source {
	var out []*source
	for _, p := range r.o.Packs {
		for _, f := range p.Files {
			out = append(out, &source{path: f.Name, level: levelPack, data: f.Data})
		}
	}
	return out
}

// readPack parses the file of a pack when it is first wanted. Its examples ran
// before it became part of the binary.
func (s *source) readPack() {
	if s.level == levelPack && s.good == nil && len(s.faults) == 0 {
		s.good, s.faults = spec.Parse(s.path, s.level, s.data)
	}
}

// enabled reports whether anything of this pack is approved. What nobody asked
// for is no definition that waits: it is offered, by name.
func (r *Registry) enabled(file string) bool {
	name := packs.Of(file)
	return slices.ContainsFunc(r.lock.Entries, func(a *approval) bool { return packs.Of(a.File) == name })
}

// hidden reports whether the definitions of a source are not shown.
func (r *Registry) hidden(s *source) bool { return s.level == levelPack && !r.enabled(s.path) }

// pack finds the pack that an approval names: pack/NAME, with the hash that the
// person saw behind @. A sensor of a pack has a dot in its name, a pack has none.
func (r *Registry) pack(id string) (p packs.Pack, seen string, ok bool) {
	name, seen, _ := strings.Cut(id, "@")
	if seen == Gone {
		seen = ""
	}
	if name, ok = strings.CutPrefix(name, levelPack+"/"); !ok || strings.ContainsAny(name, ".:") {
		return packs.Pack{}, "", false
	}
	i := slices.IndexFunc(r.o.Packs, func(p packs.Pack) bool { return p.Name == name })
	if i < 0 {
		return packs.Pack{}, "", false
	}
	return r.o.Packs[i], seen, true
}

// PackState is where a pack stands.
type PackState struct {
	packs.Pack
	Sensors  []*spec.Sensor
	Premises []*spec.Premise
	Enabled  bool // something of it is in force
	Changed  bool // that is not what this program has
}

// Packs lists the packs of this program, in the order in which they are offered.
func (r *Registry) Packs() []PackState {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []PackState
	for _, p := range r.o.Packs {
		st := PackState{Pack: p}
		for _, s := range r.sources {
			if packs.Of(s.path) != p.Name {
				continue
			}
			s.readPack()
			for _, d := range r.definitions(s) {
				st.Enabled = st.Enabled || d.pin != nil
				st.Changed = st.Changed || d.standing() != Approved
				if d.sensor != nil {
					st.Sensors = append(st.Sensors, d.sensor)
				}
				if d.premise != nil {
					st.Premises = append(st.Premises, d.premise)
				}
			}
		}
		st.Changed = st.Changed && st.Enabled
		out = append(out, st)
	}
	return out
}

// packDefinitions is what approving a pack pins. Without a hash it is taken out
// of force, as an empty hash stands for a definition that is gone.
func (r *Registry) packDefinitions(p packs.Pack, seen string) ([]*definition, error) {
	if seen != "" && !strings.HasPrefix(p.Hash, seen) {
		return nil, fmt.Errorf("the pack %s is not the one that you saw", p.Name)
	}
	var out []*definition
	for _, s := range r.sources {
		if packs.Of(s.path) != p.Name {
			continue
		}
		s.readPack()
		if len(s.faults) > 0 {
			return nil, fmt.Errorf("the pack %s: %s: %w", p.Name, s.path, s.faults[0])
		}
		for _, d := range r.definitions(s) {
			if seen == "" {
				d.hash = ""
			}
			if d.hash != "" || d.pin != nil {
				out = append(out, d)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the pack %s: %w", p.Name, ErrNothing)
	}
	return out, nil
}
