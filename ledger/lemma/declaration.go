package lemma

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a declaration. Together they keep the entry that records one within
// the size of an entry of the chain.
const (
	MaxDeclaration = 40 << 10 // bytes of the whole JSON text
	MaxSummary     = 500      // characters of plan_summary
	MaxLemmas      = 64
	MaxClaim       = 1000 // bytes of a claim or a falsifier
	MaxSymbols     = 8
	MaxWord        = 256 // bytes of a sensor id, a key, a symbol or an observed value
)

// maxFaults is how many faults one refusal names.
const maxFaults = 5

// ErrDeclaration is a declaration whose required fields do not hold; its text
// names them and can be shown to the model.
var ErrDeclaration = errors.New("malformed declaration")

// ParseDeclaration reads a declaration (contract 1). A required field that is
// missing or malformed is an error. An optional one that is malformed is left out
// with a warning, and null stands for absent; nothing is ever coerced. Warnings
// about the declaration itself carry lemma -1.
func ParseDeclaration(b []byte) (Declaration, []LemmaWarned, error) {
	p := &parser{}
	if len(b) > MaxDeclaration {
		return Declaration{}, nil, fmt.Errorf("%w: %d bytes, at most %d allowed", ErrDeclaration, len(b), MaxDeclaration)
	}
	v, err := strictObject(b)
	if err != nil {
		return Declaration{}, nil, fmt.Errorf("%w: %w", ErrDeclaration, err)
	}
	d := p.declaration(v)
	if len(p.faults) > 0 {
		more := ""
		if n := len(p.faults) - maxFaults; n > 0 {
			more = fmt.Sprintf("; and %d more", n)
		}
		return Declaration{}, nil, fmt.Errorf("%w: %s%s", ErrDeclaration, strings.Join(p.faults[:min(len(p.faults), maxFaults)], "; "), more)
	}
	return d, p.warned, nil
}

// members is an object: values by name, and the names in order.
type members struct {
	names  []string
	values map[string]jsontext.Value
}

// strictObject reads exactly one object without duplicate names at any depth.
func strictObject(b []byte) (members, error) {
	if !utf8.Valid(b) {
		return members{}, errors.New("invalid UTF-8")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return members{}, err
		}
		return members{}, errors.New("a JSON object is wanted")
	}
	m, err := object(dec)
	if err != nil {
		return m, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return m, errors.New("data after the object")
	}
	return m, nil
}

// object reads the object that comes next.
func object(dec *jsontext.Decoder) (members, error) {
	m := members{values: map[string]jsontext.Value{}}
	if _, err := dec.ReadToken(); err != nil {
		return m, err
	}
	for dec.PeekKind() != '}' {
		t, err := dec.ReadToken()
		if err != nil {
			return m, err
		}
		name := t.String()
		v, err := dec.ReadValue()
		if err != nil {
			return m, err
		}
		m.names = append(m.names, name)
		if v.Kind() != 'n' {
			m.values[name] = v.Clone()
		}
	}
	_, err := dec.ReadToken()
	return m, err
}

// inner reads an object that has been checked as part of a larger text.
func inner(v jsontext.Value) members {
	m, err := object(jsontext.NewDecoder(bytes.NewBuffer(v)))
	if err != nil {
		return members{}
	}
	return m
}

// elements reads an array that has been checked as part of a larger text.
func elements(v jsontext.Value) []jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	var out []jsontext.Value
	for dec.PeekKind() != ']' {
		e, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		out = append(out, e.Clone())
	}
	return out
}

type parser struct {
	faults []string
	warned []LemmaWarned
}

func (p *parser) fault(path, format string, args ...any) {
	p.faults = append(p.faults, path+": "+fmt.Sprintf(format, args...))
}

// warn records a field that was left out; a flood of them is cut short.
func (p *parser) warn(lemma int, field, format string, args ...any) {
	const most = 64
	if len(p.warned) < most {
		p.warned = append(p.warned, LemmaWarned{Contract: Contract, Lemma: lemma, Field: show(field), Reason: fmt.Sprintf(format, args...)})
	}
}

// unknown warns of names outside the contract.
func (p *parser) unknown(lemma int, prefix string, m members, known ...string) {
names:
	for _, n := range m.names {
		for _, k := range known {
			if n == k {
				continue names
			}
		}
		p.warn(lemma, prefix+n, "not a field of the contract")
	}
}

func (p *parser) declaration(m members) Declaration {
	d := Declaration{Lemmas: []Lemma{}}
	d.PlanSummary = p.required(m, "", "plan_summary")
	if n := utf8.RuneCountInString(d.PlanSummary); n > MaxSummary {
		p.fault("plan_summary", "%d characters, at most %d allowed", n, MaxSummary)
	}
	p.unknown(-1, "", m, "plan_summary", "lemmas")
	v, ok := m.values["lemmas"]
	if !ok || v.Kind() != '[' {
		p.fault("lemmas", "an array is wanted, got %s", kindOf(v))
		return d
	}
	list := elements(v)
	if len(list) > MaxLemmas {
		p.fault("lemmas", "%d lemmas, at most %d allowed", len(list), MaxLemmas)
		return d
	}
	for i, e := range list {
		path := fmt.Sprintf("lemmas[%d]", i)
		if e.Kind() != '{' {
			p.fault(path, "an object is wanted, got %s", kindOf(e))
			continue
		}
		d.Lemmas = append(d.Lemmas, p.lemma(i, path+".", inner(e)))
	}
	return d
}

func (p *parser) lemma(i int, path string, m members) Lemma {
	l := Lemma{Claim: p.required(m, path, "claim")}
	if len(l.Claim) > MaxClaim {
		p.fault(path+"claim", "%d bytes, at most %d allowed", len(l.Claim), MaxClaim)
	} else if l.Claim != "" && strings.TrimSpace(l.Claim) == "" {
		p.fault(path+"claim", "a statement is wanted, got white space")
	}
	switch pr := Provenance(p.required(m, path, "provenance")); pr {
	case Measured, Told, Believed:
		l.Provenance = pr
	case "":
	default:
		p.fault(path+"provenance", "measured, told or believed is wanted, got %s", show(string(pr)))
	}
	switch v := m.values["load_bearing"]; v.Kind() {
	case 't', 'f':
		l.LoadBearing = v.Kind() == 't'
	default:
		p.fault(path+"load_bearing", "true or false is wanted, got %s", kindOf(v))
	}
	l.Falsifier = p.optional(i, m, "falsifier", MaxClaim)
	l.SuggestedSensor = p.optional(i, m, "suggested_sensor", MaxWord)
	if v, ok := m.values["falsifying_observation"]; ok {
		if o, why := observation(v); why != "" {
			p.warn(i, "falsifying_observation", "%s", why)
		} else {
			l.FalsifyingObservation = o
		}
	}
	if v, ok := m.values["symbols"]; ok {
		if s, why := symbols(v); why != "" {
			p.warn(i, "symbols", "%s", why)
		} else {
			l.Symbols = s
		}
	}
	p.unknown(i, "", m, "claim", "provenance", "load_bearing", "falsifier", "falsifying_observation", "suggested_sensor", "symbols")
	return l
}

// required is a string that must be there, not empty and without controls.
func (p *parser) required(m members, path, name string) string {
	v, ok := m.values[name]
	if !ok {
		p.fault(path+name, "is missing")
		return ""
	}
	s, why := str(v)
	switch {
	case why != "":
		p.fault(path+name, "%s", why)
		return ""
	case s == "":
		p.fault(path+name, "is empty")
	}
	return s
}

// optional is a string that is left out with a warning when malformed.
func (p *parser) optional(i int, m members, name string, most int) string {
	v, ok := m.values[name]
	if !ok {
		return ""
	}
	s, why := str(v)
	if why == "" && len(s) > most {
		why = fmt.Sprintf("%d bytes, at most %d allowed", len(s), most)
	}
	if why != "" {
		p.warn(i, name, "%s", why)
		return ""
	}
	return s
}

// observation reads a falsifying observation whole or not at all.
func observation(v jsontext.Value) (*FalsifyingObservation, string) {
	if v.Kind() != '{' {
		return nil, "an object is wanted, got " + kindOf(v)
	}
	m := inner(v)
	o := &FalsifyingObservation{}
	op := ""
	for _, f := range []struct {
		name string
		to   *string
	}{{"sensor", &o.Sensor}, {"key", &o.Key}, {"operator", &op}} {
		s, why := str(m.values[f.name])
		switch {
		case why != "":
			return nil, f.name + ": " + why
		case s == "":
			return nil, f.name + " is empty"
		case len(s) > MaxWord:
			return nil, f.name + " is too long"
		}
		*f.to = s
	}
	if o.Operator = Operator(op); !o.Operator.Valid() {
		return nil, "unknown operator " + show(op)
	}
	val := m.values["value"]
	switch val.Kind() {
	case '"':
		s, why := str(val)
		if why != "" {
			return nil, "value: " + why
		}
		if len(s) > MaxWord {
			return nil, "value is too long"
		}
		o.Value = s
	case '0':
		if len(val) > MaxWord {
			return nil, "value is too long"
		}
		o.Value = json.Number(val)
	case 't', 'f':
		o.Value = val.Kind() == 't'
	default:
		return nil, "value: a string, number or bool is wanted, got " + kindOf(val)
	}
	return o, ""
}

func symbols(v jsontext.Value) ([]string, string) {
	if v.Kind() != '[' {
		return nil, "an array is wanted, got " + kindOf(v)
	}
	list := elements(v)
	if len(list) > MaxSymbols {
		return nil, fmt.Sprintf("%d symbols, at most %d allowed", len(list), MaxSymbols)
	}
	var out []string
	for _, e := range list {
		s, why := str(e)
		switch {
		case why != "":
			return nil, why
		case s == "" || len(s) > MaxWord || strings.ContainsFunc(s, unicode.IsSpace):
			return nil, "not a dotted path: " + show(s)
		}
		out = append(out, s)
	}
	return out, ""
}

// str is the text of a JSON string, or why it is none. Tab and line breaks are
// the only control characters that a text may hold.
func str(v jsontext.Value) (string, string) {
	if v.Kind() != '"' {
		return "", "a string is wanted, got " + kindOf(v)
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", "not a valid string"
	}
	s := string(b)
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }) {
		return "", "holds control characters"
	}
	return s, ""
}

func kindOf(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a bool"
	}
	return "nothing"
}

// show quotes a short stretch of foreign text.
func show(s string) string {
	const most = 60
	if len(s) > most {
		n := most
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	q := fmt.Sprintf("%q", s)
	if q == `"`+s+`"` && !strings.ContainsAny(s, " ") {
		return s
	}
	return q
}
