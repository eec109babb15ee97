package spec

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml/ast"
)

// Resolve makes a path absolute, from the place where the sensor runs, and
// follows symlinks. It comes in from outside because this package reads no
// files. Resolve(".") is the place that relative globs start from.
type Resolve func(path string) (string, error)

// ParamError says why a parameter got no value. Missing: nothing offered one,
// so the sensor does not match the claim; otherwise a value was refused.
type ParamError struct {
	Param   string
	What    string
	Missing bool
}

func (e *ParamError) Error() string { return fmt.Sprintf("parameter %s: %s", e.Param, e.What) }

// maxValue bounds one parameter's value in bytes.
const maxValue = 1024

// Bind gives every parameter of s a value and puts them into its argument
// vector. A value comes from params, else from the claim by from_claim, else
// from the default, else (for a path) from the one path in the claim that the
// glob allows. Each is validated whatever it came from; each fills one place
// inside one argument. Errors are *ParamError.
func Bind(s *Sensor, params map[string]string, claim string, resolve Resolve) (argv []string, bound map[string]string, err error) {
	for name := range params {
		if _, ok := s.Param(name); !ok {
			return nil, nil, &ParamError{Param: clip(name), What: "not declared by " + s.ID}
		}
	}
	bound = make(map[string]string, len(s.Params))
	for i := range s.Params {
		p := &s.Params[i]
		v, found, err := p.find(params, claim, resolve)
		if err != nil {
			return nil, nil, err
		}
		if !found {
			return nil, nil, &ParamError{Param: p.Name, What: "nothing gives it a value", Missing: true}
		}
		bound[p.Name] = v
	}
	argv = make([]string, len(s.Argv))
	for i, w := range s.Argv {
		var b strings.Builder
		for _, part := range w.Parts {
			if part.Param == "" {
				b.WriteString(part.Literal)
				continue
			}
			v, ok := bound[part.Param]
			if !ok {
				return nil, nil, &ParamError{Param: part.Param, What: "not declared by " + s.ID}
			}
			b.WriteString(v)
		}
		argv[i] = b.String()
		if len(w.Parts) > 0 && w.Parts[0].Param != "" && strings.HasPrefix(argv[i], "-") {
			if p, _ := s.Param(w.Parts[0].Param); p != nil && !p.AllowDash {
				return nil, nil, &ParamError{Param: p.Name, What: "would turn into an option"}
			}
		}
	}
	return argv, bound, nil
}

func (p *Param) find(params map[string]string, claim string, resolve Resolve) (string, bool, error) {
	if v, ok := params[p.Name]; ok {
		return p.accept(v, resolve)
	}
	if p.FromClaim != "" {
		re, err := regexp.Compile(p.FromClaim)
		if err != nil {
			return "", false, &ParamError{Param: p.Name, What: "from_claim does not compile"}
		}
		if m := re.FindStringSubmatch(claim); m != nil && re.SubexpIndex("value") >= 0 && m[re.SubexpIndex("value")] != "" {
			return p.accept(m[re.SubexpIndex("value")], resolve)
		}
	}
	if p.Default != nil {
		return p.accept(*p.Default, resolve)
	}
	if p.Type != "path" {
		return "", false, nil
	}
	return p.pathIn(claim, resolve)
}

// pathIn looks for the one allowed path among the claim's words. Two different
// ones would be a guess.
func (p *Param) pathIn(claim string, resolve Resolve) (string, bool, error) {
	found := ""
	words := strings.Fields(claim)
	if len(words) > 500 {
		words = words[:500]
	}
	for _, w := range words {
		w = strings.TrimRight(strings.Trim(w, "\"'`“”‘’()[]<>{},;:!?"), ".")
		if !strings.Contains(w, "/") && path.Ext(w) == "" {
			continue
		}
		v, _, err := p.accept(w, resolve)
		if err != nil {
			continue
		}
		if found != "" && v != found {
			return "", false, &ParamError{Param: p.Name, What: "the claim names more than one allowed path", Missing: true}
		}
		found = v
	}
	return found, found != "", nil
}

var (
	hostForm       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?$`)
	identifierForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	integerForm    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	numberForm     = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

func (p *Param) accept(v string, resolve Resolve) (string, bool, error) {
	out, what := p.valid(v, resolve)
	if what != "" {
		return "", false, &ParamError{Param: p.Name, What: what}
	}
	return out, true, nil
}

// valid returns the value to substitute, or what is wrong with v.
func (p *Param) valid(v string, resolve Resolve) (out, what string) {
	switch {
	case v == "":
		return "", "is empty"
	case len(v) > maxValue:
		return "", fmt.Sprintf("longer than %d bytes", maxValue)
	}
	for _, c := range v {
		if unicode.IsControl(c) || c == unicode.ReplacementChar || unicode.Is(unicode.Cf, c) {
			return "", "has a control or invisible character"
		}
	}
	if v[0] == '-' && !p.AllowDash {
		return "", "begins with - (allow_dash is not set)"
	}
	if len(p.Values) > 0 && !contains(p.Values, v) {
		return "", fmt.Sprintf("%q is not one of %s", clip(v), strings.Join(p.Values, ", "))
	}
	switch p.Type {
	case "path":
		v, what = p.path(v, resolve)
	case "int", "port":
		what = p.integer(v)
	case "number":
		if f, err := strconv.ParseFloat(v, 64); err != nil || !numberForm.MatchString(v) {
			what = fmt.Sprintf("%q is not a number", clip(v))
		} else {
			what = p.bounds(f)
		}
	case "bool":
		if v != "true" && v != "false" {
			what = fmt.Sprintf("%q is not true or false", clip(v))
		}
	case "host":
		name := strings.TrimSuffix(strings.TrimPrefix(v, "["), "]")
		if _, err := netip.ParseAddr(name); err != nil && (len(v) > 253 || !hostForm.MatchString(v)) {
			what = fmt.Sprintf("%q is not a host", clip(v))
		}
	case "identifier":
		if len(v) > 128 || !identifierForm.MatchString(v) {
			what = fmt.Sprintf("%q is not an identifier", clip(v))
		}
	case "string", "enum":
	default:
		what = "has no type"
	}
	if what == "" && p.Pattern != "" {
		re, err := regexp.Compile(`^(?:` + p.Pattern + `)$`)
		if err != nil || !re.MatchString(v) {
			what = fmt.Sprintf("%q does not match its pattern", clip(v))
		}
	}
	if what != "" {
		return "", what
	}
	return v, ""
}

func (p *Param) integer(v string) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || !integerForm.MatchString(v) {
		return fmt.Sprintf("%q is not a whole number", clip(v))
	}
	if p.Type == "port" && (n < 1 || n > 65535) {
		return fmt.Sprintf("%d is not a port", n)
	}
	return p.bounds(float64(n))
}

func (p *Param) bounds(f float64) string {
	if p.Min != nil && f < *p.Min || p.Max != nil && f > *p.Max {
		return "out of bounds"
	}
	return ""
}

// path resolves first and compares then: what a link points at is what counts.
func (p *Param) path(v string, resolve Resolve) (string, string) {
	if resolve == nil {
		return "", "paths cannot be resolved here"
	}
	full, err := resolve(path.Clean(v))
	if err != nil {
		return "", fmt.Sprintf("%q cannot be resolved", clip(v))
	}
	glob := p.Allow
	if !path.IsAbs(glob) {
		base, err := resolve(".")
		if err != nil {
			return "", "its base directory cannot be resolved"
		}
		glob = path.Join(escapeGlob(base), glob)
	}
	if ok, err := doublestar.Match(glob, full); err != nil || !ok {
		return "", fmt.Sprintf("%q (%s) is outside %s", clip(v), clip(full), clip(p.Allow))
	}
	return full, ""
}

// escapeGlob keeps a directory's own special characters from matching others.
func escapeGlob(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\*?[]{}`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

var paramTypes = []string{"path", "int", "number", "bool", "enum", "string", "host", "port", "identifier"}

func (r *reader) params(n ast.Node) []Param {
	es, ok := r.mapping(n, "params")
	if !ok {
		return nil
	}
	if len(es) > maxList {
		r.fault(pos(n), fmt.Sprintf("more than %d parameters", maxList), "")
		return nil
	}
	var out []Param
	for _, e := range es {
		if !identifierForm.MatchString(e.key) || len(e.key) > 64 {
			r.fault(e.pos, fmt.Sprintf("%q is not the name of a parameter", clip(e.key)), "a letter, then letters, digits and _")
			continue
		}
		out = append(out, r.param(e)) // a faulty one still counts as declared
	}
	return out
}

func (r *reader) param(e entry) Param {
	p := Param{Name: e.key}
	what := "the parameter " + e.key
	fs, ok := r.mapping(e.val, what, "type", "allow", "pattern", "default", "from_claim", "allow_dash", "min", "max", "values")
	if !ok {
		return p
	}
	faults := len(r.problems)
	have := map[string]entry{}
	for _, f := range fs {
		have[f.key] = f
		switch f.key {
		case "type":
			p.Type, _ = r.oneOf(f.val, "type", paramTypes...)
		case "allow":
			if p.Allow, ok = r.str(f.val, "allow"); ok && !doublestar.ValidatePattern(p.Allow) {
				r.fault(pos(f.val), fmt.Sprintf("allow: %q is not a glob", clip(p.Allow)), "")
			} else if ok && contains(strings.Split(p.Allow, "/"), "..") {
				r.fault(pos(f.val), "allow must not climb with ..", "write an absolute glob")
			}
		case "pattern":
			p.Pattern, _ = r.regexp(f.val, "pattern")
		case "default":
			if s, form := r.scalar(f.val, "default"); form != absent {
				p.Default = &s
			}
		case "from_claim":
			p.FromClaim, _ = r.regexp(f.val, "from_claim", "value")
		case "allow_dash":
			p.AllowDash, _ = r.boolean(f.val, "allow_dash")
		case "min":
			p.Min = r.float(f.val, "min")
		case "max":
			p.Max = r.float(f.val, "max")
		case "values":
			p.Values = r.texts(f.val, "values", maxList)
		}
	}
	if len(r.problems) == faults {
		r.paramWhole(&p, e, have)
	}
	return p
}

func (r *reader) paramWhole(p *Param, e entry, have map[string]entry) {
	needs := func(key, hint string) {
		if _, ok := have[key]; !ok {
			r.fault(e.pos, fmt.Sprintf("the parameter %s of type %s needs %s", p.Name, p.Type, key), hint)
		}
	}
	only := func(key string, types ...string) {
		if f, ok := have[key]; ok && !contains(types, p.Type) {
			r.fault(f.pos, fmt.Sprintf("%s means nothing for type %s", key, p.Type), "it is for "+strings.Join(types, ", "))
		}
	}
	switch p.Type {
	case "":
		r.fault(e.pos, fmt.Sprintf("the parameter %s has no type", p.Name), "one of: "+strings.Join(paramTypes, ", "))
		return
	case "path":
		needs("allow", `a glob such as "src/**" or "/etc/nginx/**"`)
	case "string":
		needs("pattern", "a regular expression that the whole value matches")
	case "enum":
		needs("values", "a list")
	case "host", "port":
		// A claim is a model's text: it must not choose freely whom to talk to.
		if p.FromClaim != "" && len(p.Values) == 0 && p.Pattern == "" && (p.Min == nil || p.Max == nil) {
			r.fault(have["from_claim"].pos, fmt.Sprintf("a claim may not choose any %s", p.Type), "add values, a pattern, or min and max")
		}
	}
	only("allow", "path")
	only("pattern", "string", "host", "identifier")
	only("min", "int", "number", "port")
	only("max", "int", "number", "port")
	if p.Default != nil && len(r.problems) == 0 {
		check := *p
		if p.Type == "path" { // its glob is compared when it is resolved
			check.Type, check.Allow = "string", ""
		}
		if _, what := check.valid(*p.Default, nil); what != "" {
			r.fault(pos(have["default"].val), "default: "+what, "")
		}
	}
}
