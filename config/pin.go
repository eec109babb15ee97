package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Compare sorts the keys in which two configurations differ: those that
// tighten (or do neither), those that loosen, and, of both, those that need a
// restart. Keys are concrete, such as upstreams.openai.base_url.
func Compare(old, new *Config) (tighter, looser, restart []string) {
	a, b := values(old), values(new)
	for _, key := range changed(a, b) {
		if loosens(keyOf(key), a[key], b[key]) {
			looser = append(looser, key)
		} else {
			tighter = append(tighter, key)
		}
		if !keyOf(key).Live {
			restart = append(restart, key)
		}
	}
	return tighter, looser, restart
}

// changed lists the keys with different values, in the table's order. An
// upstream that only one side has differs in all its keys.
func changed(a, b map[string]any) []string {
	union := maps.Clone(a)
	maps.Copy(union, b)
	var out []string
	for _, key := range ordered(union) {
		if !reflect.DeepEqual(a[key], b[key]) {
			out = append(out, key)
		}
	}
	return out
}

// loosens reports whether going from one value to another weakens the guard.
// A value that is absent (an upstream came or went) counts as a loosening.
func loosens(k Key, from, to any) bool {
	if from == nil || to == nil {
		return true
	}
	switch k.Order {
	case Free:
		return false
	case Rising:
		return rank(to) > rank(from)
	case Falling:
		return rank(to) < rank(from)
	case FallingNever:
		f, t := rank(from), rank(to)
		return t != 0 && (f == 0 || t < f)
	case Listed:
		return slices.Index(k.Values, to.(string)) > slices.Index(k.Values, from.(string))
	}
	return true
}

func rank(v any) int64 {
	switch x := v.(type) {
	case bool:
		if x {
			return 1
		}
		return 0
	case int:
		return int64(x)
	case int64:
		return x
	case time.Duration:
		return int64(x)
	}
	return 0
}

// Effective returns what is in force when approved was approved last and the
// file now says fresh: what tightens counts at once, what loosens keeps its
// approved value until a person approves, and is named. Upstreams come, go and
// change as a whole, so that no key of one meets the address of another.
func Effective(approved, fresh *Config) (*Config, []string) {
	a, f := values(approved), values(fresh)
	out := make(map[string]any, len(f))
	pinned := make(map[string]bool) // upstreams that keep their approved form
	var pending []string
	for _, key := range changed(a, f) {
		if loosens(keyOf(key), a[key], f[key]) {
			pending = append(pending, key)
			if name := upstreamOf(key); name != "" {
				pinned[name] = true
			}
		}
	}
	for key, v := range f {
		if name := upstreamOf(key); name != "" && pinned[name] {
			continue
		}
		if slices.Contains(pending, key) {
			v = a[key]
		}
		out[key] = v
	}
	for key, v := range a {
		if name := upstreamOf(key); name != "" && pinned[name] {
			// A tightening of the same upstream (observe to gate, trust taken
			// back) still counts.
			if fv, ok := f[key]; ok && keyOf(key).Order != Pinned && !loosens(keyOf(key), v, fv) {
				v = fv
			}
			out[key] = v
		}
	}
	c, err := fromValues(out)
	if err != nil { // both sides decoded before
		return approved, pending
	}
	c.from, c.file = fresh.from, fresh.file
	return c, pending
}

// fromValues is the way back from values. Upstreams of the defaults that are
// not among them stay out.
func fromValues(vals map[string]any) (*Config, error) {
	var l layered
	l.add(vals)
	c, err := l.config()
	if err != nil {
		return nil, err
	}
	for name := range c.Upstreams {
		if _, ok := vals[upstreamPrefix+name+".base_url"]; !ok {
			delete(c.Upstreams, name)
		}
	}
	return c, nil
}

// Override is a variable or flag that sets a key.
type Override struct {
	Key    string
	Origin Origin
	Value  string // as people read it
}

// Resolution is what counts and why.
type Resolution struct {
	Config  *Config
	Pending []string   // loosenings in the file that wait for a person
	Named   []Override // variables and flags that loosen and are in force: the status names them
	Refused []Override // those that loosen and do not count, for no person started the daemon
}

// Resolve decides what is in force (13.4). approved is what a person approved
// last, nil on a fresh state: then the file as found is the baseline.
// Variables and flags that tighten always count; those that loosen count only
// when the daemon was started in a terminal.
func Resolve(approved, loaded *Config, terminal bool) Resolution {
	var res Resolution
	base := loaded
	if loaded.file != nil {
		b, err := fromValues(loaded.file)
		if err == nil {
			base = b
			base.from, base.file = loaded.from, loaded.file
		}
	}
	if approved == nil {
		approved = base
	}
	eff, pending := Effective(approved, base)
	res.Pending = pending
	vals, want := values(eff), values(loaded)
	for key, o := range loaded.from {
		if o.Kind != "env" && o.Kind != "flag" {
			continue
		}
		if reflect.DeepEqual(vals[key], want[key]) {
			continue
		}
		if loosens(keyOf(key), vals[key], want[key]) {
			ov := Override{key, o, display(keyOf(key), want[key])}
			if !terminal {
				res.Refused = append(res.Refused, ov)
				continue
			}
			res.Named = append(res.Named, ov)
		}
		vals[key] = want[key]
	}
	sortOverrides(res.Named)
	sortOverrides(res.Refused)
	c, err := fromValues(vals)
	if err != nil {
		c = eff
	}
	c.from, c.file = loaded.from, loaded.file
	res.Config = c
	return res
}

func sortOverrides(os []Override) {
	slices.SortFunc(os, func(a, b Override) int { return strings.Compare(a.Key, b.Key) })
}

// Base returns c without environment and flags: what a person approves and the
// lock keeps.
func (c *Config) Base() *Config {
	if c.file == nil {
		return c
	}
	b, err := fromValues(c.file)
	if err != nil {
		return c
	}
	b.file = c.file
	return b
}

// Change is one key of a difference, as people read it.
type Change struct {
	Key, Old, New string
	Loosens       bool
	Restart       bool
}

// Diff lists what differs between two configurations, for the screen on which
// a person approves.
func Diff(old, new *Config) []Change {
	a, b := values(old), values(new)
	var out []Change
	for _, key := range changed(a, b) {
		k := keyOf(key)
		c := Change{Key: key, Loosens: loosens(k, a[key], b[key]), Restart: !k.Live}
		if a[key] != nil {
			c.Old = display(k, a[key])
		}
		if b[key] != nil {
			c.New = display(k, b[key])
		}
		if k.Type == Headers && c.Old == c.New {
			c.New += " (values changed)"
		}
		out = append(out, c)
	}
	return out
}
