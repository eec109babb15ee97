package verdict

import (
	"slices"
	"sort"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// maxMatched is how many sensors one lemma is measured with.
const maxMatched = 4

// Sensors is what can be measured at one place.
type Sensors struct {
	InForce  []*spec.Sensor      // nearest file first shadowing done, registry order
	Pending  map[string]string   // short id → reason: known, not approved
	Waiting  []*spec.Sensor      // definitions of the pending, for keyword notes; optional
	Matching map[string][]string // own phrases per category
	// Binds reports whether the sensor's parameters can be filled from
	// defaults and the claim. nil: only defaults and from_claim count.
	Binds func(s *spec.Sensor, claim string) bool
}

// byID finds a sensor by short or qualified id.
func byID(sensors []*spec.Sensor, id string) *spec.Sensor {
	for _, s := range sensors {
		if s.ID == id || s.Qualified() == id {
			return s
		}
	}
	return nil
}

// Match chooses the sensors for a lemma: the suggested one, the one its
// falsifying observation names, then those whose categories the keyword table
// finds in the claim; the first four of the union. The note names what stood in
// the way: pending:ID, unknown_sensor:ID, params:ID, comma-separated.
func Match(l lemma.Lemma, in Sensors) ([]lemma.SensorMatch, string) {
	var out []lemma.SensorMatch
	var notes []string
	claim := l.Claim
	note := func(n string) {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	take := func(s *spec.Sensor, why string) {
		for _, m := range out {
			if m.ID == s.ID {
				return
			}
		}
		if !in.binds(s, claim) {
			note("params:" + s.ID)
			return
		}
		out = append(out, lemma.SensorMatch{ID: s.ID, Why: why})
	}
	named := func(id, why string) {
		switch {
		case id == "":
		case byID(in.InForce, id) != nil:
			take(byID(in.InForce, id), why)
		case in.pending(id) != "":
			note("pending:" + in.pending(id))
		default:
			note("unknown_sensor:" + shortText(id))
		}
	}
	named(l.SuggestedSensor, "suggested_sensor")
	if fo := l.FalsifyingObservation; fo != nil {
		named(fo.Sensor, "falsifying_observation")
	}
	found := Categories(claim, in.Matching)
	for _, s := range in.InForce {
		if why := firstCategory(s, found); why != "" {
			take(s, why)
		}
	}
	for _, s := range in.Waiting {
		if firstCategory(s, found) != "" && byID(in.InForce, s.ID) == nil {
			note("pending:" + s.ID)
		}
	}
	if len(out) > maxMatched {
		out = out[:maxMatched]
	}
	return out, strings.Join(notes, ", ")
}

// Sweep chooses the sensors of a consequential turn that no lemma needs to
// name: every ambient one, and those whose categories stand in the plan or the
// task. What they find may correct; it never holds.
func Sweep(texts []string, in Sensors) []lemma.SensorMatch {
	found := map[string]string{}
	budget := maxSwept
	for _, text := range texts {
		text = text[:min(len(text), budget)]
		budget -= len(text)
		for _, sentence := range sentences(text) {
			for _, h := range Categories(sentence, in.Matching) {
				if _, ok := found[h.Category]; !ok {
					found[h.Category] = h.Phrase
				}
			}
		}
	}
	hits := make([]Hit, 0, len(found))
	for c, p := range found {
		hits = append(hits, Hit{c, p})
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Category < hits[j].Category })
	var out []lemma.SensorMatch
	for _, s := range in.InForce {
		switch why := firstCategory(s, hits); {
		case s.Ambient:
			out = append(out, lemma.SensorMatch{ID: s.ID, Why: "ambient"})
		case why != "" && in.binds(s, strings.Join(texts, "\n")):
			out = append(out, lemma.SensorMatch{ID: s.ID, Why: why})
		}
	}
	return out
}

// maxSwept bounds the text that a sweep reads.
const maxSwept = 16 << 10

// sentences cuts prose where a thought ends, so that a phrase's words have to
// stand together.
func sentences(text string) []string {
	return strings.FieldsFunc(strings.NewReplacer(". ", "\n", "? ", "\n", "! ", "\n", "; ", "\n").Replace(text),
		func(r rune) bool { return r == '\n' || r == '\r' })
}

// firstCategory explains in one line why s fits: category:phrase, the first of
// the sensor's own list that was found.
func firstCategory(s *spec.Sensor, found []Hit) string {
	for _, c := range s.Verifies {
		for _, h := range found {
			if h.Category == c {
				return h.Category + ":" + h.Phrase
			}
		}
	}
	return ""
}

// pending is the short id under which id waits for approval.
func (in Sensors) pending(id string) string {
	if _, ok := in.Pending[id]; ok {
		return id
	}
	if s := byID(in.Waiting, id); s != nil {
		return s.ID
	}
	return ""
}

func (in Sensors) binds(s *spec.Sensor, claim string) bool {
	if in.Binds != nil {
		return in.Binds(s, claim)
	}
	for _, p := range s.Params {
		if p.Default != nil && *p.Default != "" {
			continue
		}
		re, err := patterns.Compile(p.FromClaim)
		if p.FromClaim == "" || err != nil {
			return false
		}
		m, g := re.FindStringSubmatch(claim), re.SubexpIndex("value")
		if m == nil || g < 0 || m[g] == "" {
			return false
		}
	}
	return true
}

// shortText bounds a foreign id in a note.
func shortText(s string) string {
	if s = oneLine(s); len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "")
	}
	return s
}
