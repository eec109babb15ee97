package turn

import (
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// symbolProbe is the built-in sensor that tells whether an API exists. A person
// has to have approved a sensor of it, as for every reading.
const symbolProbe = "symbols"

// symbolSensor is the sensor in force that looks symbols up, nil for none.
func symbolSensor(v *sensors.View) *spec.Sensor {
	if v == nil {
		return nil
	}
	i := slices.IndexFunc(v.Sensors, func(s *spec.Sensor) bool { _, ok := s.Param("symbol"); return ok && s.Probe == symbolProbe })
	if i < 0 {
		return nil
	}
	return v.Sensors[i]
}

// dotted are the symbols of a lemma that name a package.
func dotted(l lemma.Lemma) []string {
	var out []string
	for _, s := range l.Symbols[:min(len(l.Symbols), lemma.MaxSymbols)] {
		if s = strings.TrimSuffix(strings.TrimSpace(s), "()"); strings.Contains(s, ".") && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// found are the symbols that were looked up for one lemma.
type foundSymbols map[string]reading

// Presence is what the readings say of a symbol; what was not read, or could
// not be, is unknown.
func (f foundSymbols) Presence(path string) (verdict.Presence, string) {
	r, ok := f[strings.TrimSuffix(strings.TrimSpace(path), "()")]
	if !ok || r.failed != "" {
		return verdict.Unknown, ""
	}
	presence, place, near := verdict.Unknown, "", ""
	for _, v := range r.Evidence.Values {
		switch {
		case v.Problem != "":
		case v.Key == "exists" && v.Text == "yes":
			presence = verdict.Exists
		case v.Key == "exists" && v.Text == "no":
			presence = verdict.Absent
		case v.Key == "place":
			place = v.Text
		case v.Key == "nearest":
			near = v.Text
		}
	}
	if near != "" {
		place = strings.TrimSpace(place + " (there is " + near + ")")
	}
	return presence, place
}

// judgeSymbols judges a lemma by the symbols that it names; ok is false when
// they settle nothing.
func judgeSymbols(l lemma.Lemma, f foundSymbols) (verdict.Result, bool) {
	if len(f) == 0 {
		return verdict.Result{}, false
	}
	res, ok := verdict.JudgeSymbols(verdict.Claim{Lemma: &l, Symbols: f})
	if !ok {
		return verdict.Result{}, false
	}
	if r, ok := f[res.Key]; ok {
		res.Sensor, res.Invocation = r.Sensor.ID, r.Invocation.ID
	}
	if res.Place != "" {
		res.Measured += " in " + res.Place
	}
	return res, true
}
