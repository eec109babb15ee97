package spec

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

var typeNames = []string{string(String), string(Number), string(Bool), string(Bytes), string(Duration), string(Version)}

var extractKinds = []string{"regex", "json", "kv", "line", "lines", "table", "exit"}

func (r *reader) extracts(n ast.Node) []Extract {
	seq, ok := r.sequence(n, "extract")
	if !ok {
		return nil
	}
	if len(seq) > maxList {
		r.fault(pos(n), fmt.Sprintf("extract has more than %d entries", maxList), "")
		return nil
	}
	var out []Extract
	seen := map[string]bool{}
	for _, e := range seq {
		x, ok := r.extract(e)
		if !ok {
			continue
		}
		if !keyForm.MatchString(x.Name) || len(x.Name) > 64 {
			r.fault(pos(e), fmt.Sprintf("%q is not the name of a value", clip(x.Name)), "letters, digits and _.-:/@ only")
			continue
		}
		if seen[x.Name] {
			r.fault(pos(e), fmt.Sprintf("the value %s is extracted twice", x.Name), "give one of them another name")
			continue
		}
		seen[x.Name] = true
		out = append(out, x)
	}
	return out
}

func (r *reader) extract(n ast.Node) (Extract, bool) {
	x := Extract{Type: String}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		name, ok := r.str(n, "a value")
		x.Name, x.Bare = name, true
		return x, ok
	}
	es, ok := r.mapping(n, "an extraction", append([]string{"name", "which", "type", "map"}, extractKinds...)...)
	if !ok {
		return x, false
	}
	faults := len(r.problems)
	var kinds []string
	for _, e := range es {
		if contains(extractKinds, e.key) {
			kinds = append(kinds, e.key)
		}
		switch e.key {
		case "name":
			x.Name, _ = r.str(e.val, "name")
		case "regex":
			x.Regex, _ = r.regexp(e.val, "regex", "value")
		case "json":
			x.JSON, _ = r.str(e.val, "json")
		case "kv":
			x.KV, _ = r.str(e.val, "kv")
		case "line":
			x.Line, _ = r.str(e.val, "line")
		case "lines":
			x.Lines, _ = r.regexp(e.val, "lines")
		case "table":
			x.Table = r.table(e.val)
		case "exit":
			if x.Exit, _ = r.boolean(e.val, "exit"); !x.Exit {
				r.fault(pos(e.val), "exit can only be true", "leave it out")
			}
		case "which":
			x.Which, _ = r.oneOf(e.val, "which", "last", "first", "all", "effective")
		case "type":
			if t, ok := r.oneOf(e.val, "type", typeNames...); ok {
				x.Type, x.TypeSet = Type(t), true
			}
		case "map":
			x.Map = r.textMap(e.val, "map")
		}
	}
	if x.Name == "" && len(r.problems) == faults {
		r.fault(pos(n), "an extraction without a name", "add name:")
	}
	if len(kinds) > 1 {
		r.fault(pos(n), fmt.Sprintf("an extraction has one kind, not %s", strings.Join(kinds, " and ")), "")
	}
	if x.Bare = len(kinds) == 0; !x.Bare && x.Which == "effective" && x.Line == "" {
		r.fault(pos(n), "which: effective needs line:, whose context it follows", "")
	}
	if (x.Exit || x.Lines != "") && !x.TypeSet {
		x.Type, x.TypeSet = Number, true // counts and exit codes are nothing else
	}
	return x, len(r.problems) == faults
}

func (r *reader) table(n ast.Node) *Table {
	es, ok := r.mapping(n, "table", "column", "where")
	if !ok {
		return nil
	}
	t := &Table{}
	for _, e := range es {
		if e.key == "column" {
			t.Column, _ = r.str(e.val, "column")
		} else {
			t.Where = r.textMap(e.val, "where")
		}
	}
	if t.Column == "" {
		r.fault(pos(n), "table needs a column", "")
		return nil
	}
	return t
}

func (r *reader) textMap(n ast.Node, what string) map[string]string {
	es, ok := r.mapping(n, what)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, e := range es {
		if s, f := r.scalar(e.val, what+": "+clip(e.key)); f != absent {
			out[e.key] = s
		}
	}
	return out
}

// formType is the compare type that a value's spelling in the file implies.
func formType(f form) Type {
	switch f {
	case number:
		return Number
	case boolean:
		return Bool
	}
	return String
}

func (r *reader) keyOf(n ast.Node, what string, s *Sensor) (*Extract, string) {
	key, ok := r.str(n, "key")
	if !ok {
		return nil, ""
	}
	x, ok := s.Value(key)
	if !ok {
		known := make([]string, len(s.Extract))
		for i := range s.Extract {
			known[i] = s.Extract[i].Name
		}
		r.fault(pos(n), fmt.Sprintf("%s: %s is not extracted", what, clip(key)), orElse(meant(key, known), "add it under extract:"))
		return nil, ""
	}
	return x, key
}

func (r *reader) rules(n ast.Node, s *Sensor) []Rule {
	seq, ok := r.sequence(n, "judge")
	if !ok {
		return nil
	}
	if len(seq) > maxList {
		r.fault(pos(n), fmt.Sprintf("judge has more than %d rules", maxList), "")
		return nil
	}
	var out []Rule
	for _, e := range seq {
		if rule, ok := r.rule(e, s); ok {
			out = append(out, rule)
		}
	}
	return out
}

func (r *reader) rule(n ast.Node, s *Sensor) (Rule, bool) {
	rule := Rule{Pos: pos(n)}
	es, ok := r.mapping(n, "a judge rule", "when", "unless", "key", "type", "operator", "value", "negated", "examples")
	if !ok {
		return rule, false
	}
	faults := len(r.problems)
	have := map[string]entry{}
	var groups []string
	var x *Extract
	vform := absent
	for _, e := range es {
		have[e.key] = e
		switch e.key {
		case "when":
			w, re := r.regexp(e.val, "when")
			if rule.When = w; re != nil {
				groups = re.SubexpNames()
			}
		case "unless":
			rule.Unless, _ = r.regexp(e.val, "unless")
		case "key":
			x, rule.Key = r.keyOf(e.val, "judge", s)
		case "type":
			if t, ok := r.oneOf(e.val, "type", typeNames...); ok {
				rule.Type = Type(t)
			}
		case "operator":
			rule.Operator, _ = r.operator(e.val)
		case "value":
			rule.Value, vform = r.scalar(e.val, "value")
		case "negated":
			rule.Negated, _ = r.boolean(e.val, "negated")
		case "examples":
			rule.Examples = r.examples(e.val)
		}
	}
	for _, k := range []string{"when", "key", "operator", "value"} {
		if _, ok := have[k]; !ok {
			r.fault(rule.Pos, "a judge rule needs "+k, "")
		}
	}
	if len(r.problems) > faults {
		return rule, false
	}
	template := false
	for _, p := range parts(rule.Value) {
		if p.Param == "" {
			continue
		}
		if template = true; !contains(groups, p.Param) {
			r.fault(pos(have["value"].val), fmt.Sprintf("value: when has no group %s", p.Param), orElse(meant(p.Param, groups), fmt.Sprintf("write (?P<%s>…) in when", p.Param)))
		}
	}
	if rule.Type == "" && !x.TypeSet && !template && vform != text {
		rule.Type = formType(vform)
	}
	if t := rule.Type; ordered(rule.Operator) && !sortable(t) && (t != "" || !sortable(x.Type)) {
		r.fault(pos(have["operator"].val), fmt.Sprintf("%s needs values that have an order", rule.Operator), "add type: number, bytes, duration or version")
	}
	if len(rule.Examples) == 0 {
		r.warn(rule.Pos, "a judge rule without examples", "add one claim that it confirms, one that it contradicts, and one that it must skip")
	}
	return rule, len(r.problems) == faults
}

func (r *reader) examples(n ast.Node) []Example {
	seq, ok := r.sequence(n, "examples")
	if !ok {
		return nil
	}
	if len(seq) > maxList {
		r.fault(pos(n), fmt.Sprintf("more than %d examples", maxList), "")
		return nil
	}
	var out []Example
	for _, e := range seq {
		x := Example{Pos: pos(e)}
		es, ok := r.mapping(e, "an example", "claim", "measured", "verdict")
		if !ok {
			continue
		}
		have := map[string]bool{}
		for _, f := range es {
			have[f.key] = true
			switch f.key {
			case "claim":
				x.Claim, _ = r.str(f.val, "claim")
			case "measured":
				x.Measured, _ = r.scalar(f.val, "measured")
			case "verdict":
				x.Verdict, _ = r.oneOf(f.val, "verdict", "confirmed", "contradicted", "inconclusive", "skip")
			}
		}
		for _, k := range []string{"claim", "measured", "verdict"} {
			if !have[k] {
				r.fault(x.Pos, "an example needs "+k, "")
			}
		}
		out = append(out, x)
	}
	return out
}

func (r *reader) expects(n ast.Node, s *Sensor) []Expect {
	seq, ok := r.sequence(n, "expect")
	if !ok {
		return nil
	}
	if len(seq) > maxList {
		r.fault(pos(n), fmt.Sprintf("expect has more than %d entries", maxList), "")
		return nil
	}
	var out []Expect
	for _, e := range seq {
		es, ok := r.mapping(e, "an expectation", "key", "operator", "value", "claim", "category")
		if !ok {
			continue
		}
		faults := len(r.problems)
		x, have, vform := Expect{}, map[string]entry{}, absent
		var ex *Extract
		for _, f := range es {
			have[f.key] = f
			switch f.key {
			case "key":
				ex, x.Key = r.keyOf(f.val, "expect", s)
			case "operator":
				x.Operator, _ = r.operator(f.val)
			case "value":
				x.Value, vform = r.scalar(f.val, "value")
			case "claim":
				x.Claim, _ = r.str(f.val, "claim")
			case "category":
				if x.Category, ok = r.str(f.val, "category"); ok {
					r.category(pos(f.val), x.Category)
				}
			}
		}
		for _, k := range []string{"key", "operator", "value", "claim"} {
			if _, ok := have[k]; !ok {
				r.fault(pos(e), "an expectation needs "+k, "")
			}
		}
		if len(r.problems) == faults && ordered(x.Operator) && !sortable(ex.Type) && (ex.TypeSet || vform != number) {
			r.fault(pos(have["operator"].val), fmt.Sprintf("%s needs values that have an order", x.Operator), fmt.Sprintf("give the extraction of %s a type: number, bytes, duration or version", x.Key))
		}
		if len(r.problems) == faults {
			out = append(out, x)
		}
	}
	return out
}

var effectNames = []string{"read_only", "mutate", "opaque", "destroy", "catastrophe"}

func (r *reader) premises(n ast.Node, reg *Registry) {
	seq, ok := r.sequence(n, "premises")
	if !ok {
		return
	}
	if len(seq) > maxSensors {
		r.fault(pos(n), fmt.Sprintf("more than %d premises", maxSensors), "")
		return
	}
	seen := map[string]bool{}
	for _, e := range seq {
		p := r.premise(e, reg)
		if p == nil {
			continue
		}
		if seen[p.ID] {
			r.fault(p.Pos, fmt.Sprintf("the premise %s stands here twice", p.ID), "")
		}
		seen[p.ID] = true
		reg.Premises = append(reg.Premises, p)
	}
}

func (r *reader) premise(n ast.Node, reg *Registry) *Premise {
	p := &Premise{OnFalse: "hold", OnUnknown: "annotate", Pos: pos(n)}
	es, ok := r.mapping(n, "a premise", "id", "on_action", "claim", "sensor", "params", "key", "operator", "value", "on_false", "on_unknown", "examples")
	if !ok {
		return nil
	}
	faults := len(r.problems)
	have := map[string]entry{}
	for _, e := range es {
		have[e.key] = e
		switch e.key {
		case "id":
			if v, ok := r.str(e.val, "id"); ok {
				if p.ID = v; len(v) > 64 || !idForm.MatchString(v) {
					r.fault(pos(e.val), fmt.Sprintf("the id %q is not a name", clip(v)), "")
				}
			}
		case "on_action":
			r.onAction(e.val, p)
		case "claim":
			p.Claim, _ = r.str(e.val, "claim")
		case "sensor":
			p.Sensor, _ = r.str(e.val, "sensor")
		case "params":
			p.Params = r.textMap(e.val, "params")
		case "key":
			p.Key, _ = r.str(e.val, "key")
		case "operator":
			p.Operator, _ = r.operator(e.val)
		case "value":
			p.Value, _ = r.scalar(e.val, "value")
		case "on_false":
			p.OnFalse, _ = r.oneOf(e.val, "on_false", "hold", "correct", "deny", "annotate")
		case "on_unknown":
			p.OnUnknown, _ = r.oneOf(e.val, "on_unknown", "annotate", "hold", "release")
		case "examples":
			if fs, ok := r.mapping(e.val, "examples", "fires", "not"); ok {
				for _, f := range fs {
					if l := r.texts(f.val, f.key, maxList); f.key == "fires" {
						p.Fires = l
					} else {
						p.Not = l
					}
				}
			}
		}
	}
	for _, k := range []string{"id", "on_action", "claim", "sensor", "key", "operator", "value"} {
		if _, ok := have[k]; !ok {
			r.fault(p.Pos, "a premise needs "+k, "")
		}
	}
	if len(r.problems) > faults {
		return nil
	}
	r.premiseSensor(p, reg, have)
	if len(r.problems) > faults {
		return nil
	}
	return p
}

// premiseSensor checks a premise against its sensor where that stands in the
// same file; one of another file is looked up when the premise is used.
func (r *reader) premiseSensor(p *Premise, reg *Registry, have map[string]entry) {
	var s *Sensor
	for _, c := range reg.Sensors {
		if c.ID == p.Sensor {
			s = c
		}
	}
	if s == nil {
		if !strings.HasPrefix(p.Sensor, "pack/") {
			known := make([]string, len(reg.Sensors))
			for i, c := range reg.Sensors {
				known[i] = c.ID
			}
			r.warn(pos(have["sensor"].val), fmt.Sprintf("the sensor %s is not in this file, so the premise %s is inactive until a pack brings it", clip(p.Sensor), p.ID), meant(p.Sensor, known))
		}
		return
	}
	x, _ := r.keyOf(have["key"].val, "premise", s)
	if x == nil {
		return
	}
	if ordered(p.Operator) && !sortable(x.Type) {
		r.fault(pos(have["operator"].val), fmt.Sprintf("%s needs values that have an order", p.Operator), fmt.Sprintf("give the extraction of %s a type", p.Key))
	}
	for name := range p.Params {
		if _, ok := s.Param(name); !ok {
			r.fault(have["params"].pos, fmt.Sprintf("%s has no parameter %s", s.ID, clip(name)), "")
		}
	}
}

func (r *reader) onAction(n ast.Node, p *Premise) {
	es, ok := r.mapping(n, "on_action", "program", "args", "except", "effect")
	if !ok {
		return
	}
	for _, e := range es {
		switch e.key {
		case "program":
			p.Program, _ = r.str(e.val, "program")
		case "args":
			p.Args = r.texts(e.val, "args", maxList)
		case "except":
			p.Except = r.texts(e.val, "except", maxList)
		case "effect":
			s, ok := r.str(e.val, "effect")
			if !ok {
				continue
			}
			least, found := strings.CutPrefix(s, ">=")
			if least = strings.TrimSpace(least); !found || !contains(effectNames, least) {
				hint := `like ">= mutate", with one of: ` + strings.Join(effectNames, ", ")
				if contains(effectNames, least) {
					hint = fmt.Sprintf(`did you mean ">= %s"?`, least)
				} else if found {
					hint = orElse(meant(least, effectNames), hint)
				}
				r.fault(pos(e.val), fmt.Sprintf("effect cannot be %q", clip(s)), hint)
				continue
			}
			p.Effect = least
		}
	}
	if p.Program == "" {
		r.fault(pos(n), "on_action needs a program", "")
	}
}
