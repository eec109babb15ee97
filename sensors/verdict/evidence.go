package verdict

import (
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// PremiseClaim is an action's premise as a claim: judged by its own
// comparison, like an ambient sensor's expectation.
func PremiseClaim(p *spec.Premise) Claim {
	return Claim{Text: p.Claim, Expect: &spec.Expect{Key: p.Key, Operator: p.Operator, Value: p.Value, Claim: p.Claim}}
}

// FromFacts rebuilds a sensor's evidence from active facts of one subject, for
// reuse within their ttl. ok is false when a value is missing, comes from
// another invocation than the rest, or is one of several: then the sensor has
// to be asked again.
func FromFacts(s *spec.Sensor, facts []lemma.Fact) (ev spec.Evidence, ok bool) {
	ev = spec.Evidence{Sensor: s.ID}
	for i := range s.Extract {
		e := &s.Extract[i]
		var f *lemma.Fact
		for j := range facts {
			if facts[j].Key == e.Name && facts[j].Status == lemma.StatusActive && facts[j].Provenance == lemma.Measured {
				f = &facts[j]
			}
		}
		if f == nil || e.Which == "all" || ev.Invocation != "" && f.Source.Ref != ev.Invocation {
			return spec.Evidence{}, false
		}
		ev.Invocation = f.Source.Ref
		t, set := extract.ValueType(e)
		v := spec.Value{Key: e.Name, Type: t, TypeSet: set, Text: f.Value, Which: e.Which}
		if !extract.Parses(t, f.Value) {
			v.Problem = TypeMismatch
		}
		ev.Values = append(ev.Values, v)
	}
	return ev, len(ev.Values) > 0
}
