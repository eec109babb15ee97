package verdict

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Topic is what a claim is about: one value of one sensor, measured with
// certain parameters in one scope.
type Topic struct {
	Scope  string
	Sensor string // qualified id: the same id of another file is another sensor
	Params string // ParamsHash
	Key    string
}

// ParamsHash is 16 hex digits over the bound parameters.
func ParamsHash(params map[string]string) string {
	names := make([]string, 0, len(params))
	for n := range params {
		names = append(names, n)
	}
	sort.Strings(names)
	parts := make([]string, 0, 2*len(names))
	for _, n := range names {
		parts = append(parts, n, params[n])
	}
	return digest("params", parts...)[:16]
}

// Subject is the fact's subject for a reading: id@params.
func Subject(sensor string, params map[string]string) string {
	return sensor + "@" + ParamsHash(params)
}

// TopicID is 32 hex digits.
func TopicID(t Topic) string { return digest("topic", t.Scope, t.Sensor, t.Params, t.Key) }

// ClaimID is 32 hex digits: of the topic, what is said of it and the canonical
// value.
func ClaimID(topicID string, op lemma.Operator, canonical string) string {
	return digest("claim", topicID, string(op), canonical)
}

// TextID is the claim id of a claim without a topic.
func TextID(symbols []string, text string) string {
	syms := append([]string(nil), symbols...)
	sort.Strings(syms)
	return digest("text", append(syms, "", Normalise(text))...)
}

// Identity is a claim's ids; Topic is "" for a claim that no sensor's value is
// known to be about.
type Identity struct{ Claim, Topic string }

// At is where a claim is judged.
type At struct {
	Scope  string
	Sensor *spec.Sensor
	Params map[string]string
}

// Identify derives the ids of a claim: from the first judge rule that applies,
// else from the falsifying observation, whose opposite the claim asserts, else
// from the suggested sensor when it has one value only. Two wordings that one
// rule reads alike are the same claim.
func Identify(c Claim, at At) Identity {
	text := c.text()
	if c.Expect != nil && at.Sensor != nil {
		t := typeOf(at.Sensor, c.Expect.Key, literalType(c.Expect.Value))
		return at.identity(c.Expect.Key, c.Expect.Operator, canonical(t, c.Expect.Value))
	}
	claim := readSentence(text)
	var symbols []string
	if c.Lemma != nil {
		symbols = c.Lemma.Symbols
	}
	textual := Identity{Claim: TextID(symbols, text)}
	if at.Sensor == nil || claim.compound != "" {
		return textual
	}
	for i := range at.Sensor.Judge {
		r := &at.Sensor.Judge[i]
		b, _ := bind(&claim, r)
		if b == nil || b.partial {
			continue
		}
		t := r.Type
		if t == "" {
			t = typeOf(at.Sensor, r.Key, literalType(r.Value))
		}
		return at.identity(r.Key, r.Operator, canonical(t, b.claimed))
	}
	if c.Lemma == nil {
		return textual
	}
	if fo := c.Lemma.FalsifyingObservation; fo != nil && (fo.Sensor == at.Sensor.ID || fo.Sensor == at.Sensor.Qualified()) {
		if f, ok := observed(fo); ok && hasKey(at.Sensor, fo.Key) {
			return at.identity(fo.Key, opposite(fo.Operator), canonical(typeOf(at.Sensor, fo.Key, f.lit), f.value))
		}
	}
	if s := c.Lemma.SuggestedSensor; s != "" && (s == at.Sensor.ID || s == at.Sensor.Qualified()) && len(at.Sensor.Extract) == 1 {
		return at.identity(at.Sensor.Extract[0].Name, "", Normalise(text))
	}
	return textual
}

func (a At) identity(key string, op lemma.Operator, value string) Identity {
	id := TopicID(Topic{Scope: a.Scope, Sensor: a.Sensor.Qualified(), Params: ParamsHash(a.Params), Key: key})
	return Identity{Claim: ClaimID(id, op, value), Topic: id}
}

func hasKey(s *spec.Sensor, key string) bool { return extractOf(s, key) != nil }

func extractOf(s *spec.Sensor, key string) *spec.Extract {
	for i := range s.Extract {
		if s.Extract[i].Name == key {
			return &s.Extract[i]
		}
	}
	return nil
}

func typeOf(s *spec.Sensor, key string, literal spec.Type) spec.Type {
	if e := extractOf(s, key); e != nil {
		if t, set := extract.ValueType(e); set {
			return t
		}
	}
	return literal
}

func opposite(op lemma.Operator) lemma.Operator {
	switch op {
	case lemma.Eq:
		return lemma.Ne
	case lemma.Ne:
		return lemma.Eq
	case lemma.Lt:
		return lemma.Ge
	case lemma.Ge:
		return lemma.Lt
	case lemma.Gt:
		return lemma.Le
	case lemma.Le:
		return lemma.Gt
	case lemma.Contains:
		return lemma.NotContains
	}
	return lemma.Contains
}

// canonical brings equal spellings of a value together: 25 MB, 25mb, 25m.
func canonical(t spec.Type, value string) string {
	value = claimedForm(t, strings.TrimSpace(value))
	switch t {
	case spec.Number:
		if r, ok := extract.Number(value); ok {
			return r.RatString()
		}
	case spec.Duration:
		if r, ok := extract.Duration(value); ok {
			return r.RatString() + "ns"
		}
	case spec.Bytes:
		if r, u, ok := extract.Size(value); ok {
			binary := extract.Scale(r, 1024, u.Power).RatString()
			if u.Exact || u.Power == 0 {
				return binary
			}
			return extract.Scale(r, 1000, u.Power).RatString() + "/" + binary
		}
	case spec.Version:
		if v, ok := extract.ParseVersion(value); ok {
			return strings.Join(v.Parts, ".") + v.Suffix
		}
	case spec.Bool:
		if b, ok := extract.Bool(value); ok {
			if b {
				return "true"
			}
			return "false"
		}
	}
	return value
}

// Normalise is a claim's text for comparing: NFKC, lower case, single spaces,
// without articles and punctuation. Signs, comparisons and names like c++ stay;
// numbers with units take one form.
func Normalise(text string) string {
	text = strings.ToLower(strings.ReplaceAll(plain(text), "\n", " "))
	text = sizeText.ReplaceAllStringFunc(text, func(m string) string { return " " + canonical(spec.Bytes, m) + "b " })
	text = timeText.ReplaceAllStringFunc(text, func(m string) string { return " " + canonical(spec.Duration, m) + " " })
	var out []string
	for _, w := range strings.Fields(text) {
		w = strings.Trim(w, `.,;:!?"'()[]{}`+"`")
		switch w {
		case "", "a", "an", "the":
			continue
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// digest hashes parts unambiguously: as a JSON array with its purpose first.
func digest(purpose string, parts ...string) string {
	// A slice of strings always encodes.
	b, _ := json.Marshal(append([]string{purpose}, parts...))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
