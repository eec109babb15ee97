package sensors

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gettier.dev/gettierd/ledger/redact"
	"gettier.dev/gettierd/sensors/spec"
)

// envDump finds NAME=value lines and the same in JSON lists, as env, docker
// inspect and compose print them.
// Only names in capitals count: workers=4 is a setting that someone measures.
var envDump = regexp.MustCompile(`(?m)(^|["'\s])([A-Z_][A-Z0-9_]*)=([^\n"']+)`)

var envName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// maskRule names what env_values hid, in hits and in the text.
const maskRule = "env_value"

var mask = []byte("[redacted:" + maskRule + "]")

// classes is the redaction of one sensor: every token rule, and what its
// definition asks for beside them.
func classes(s *spec.Sensor, engine func([]byte) ([]byte, []redact.Hit)) func([]byte) ([]byte, []redact.Hit) {
	if !slices.Contains(s.Redact, "env_values") {
		return engine
	}
	return func(b []byte) ([]byte, []redact.Hit) {
		b, n := maskEnv(b, s.RedactAllow)
		out, hits := engine(b)
		if n > 0 {
			hits = append(hits, redact.Hit{Rule: maskRule, Count: n})
		}
		return out, hits
	}
}

// maskEnv keeps the names of variables and hides their values, but for those
// that the definition allows.
func maskEnv(b []byte, allow []string) ([]byte, int) {
	var out []byte
	last, n := 0, 0
	for _, m := range envDump.FindAllSubmatchIndex(b, -1) {
		name, from, to := string(b[m[4]:m[5]]), m[6], m[7]
		if slices.Contains(allow, name) || string(b[from:to]) == string(mask) {
			continue
		}
		out = append(out, b[last:from]...)
		out = append(out, mask...)
		last = to
		n++
	}
	if n == 0 {
		return b, 0
	}
	return append(out, b[last:]...), n
}

// hideValue redacts an extracted value. One that lost a part settles nothing
// any more: comparing a claim with a mask would be a made-up verdict.
func hideValue(s *spec.Sensor, v spec.Value, engine func([]byte) ([]byte, []redact.Hit)) spec.Value {
	if s.Sensitivity == "secret" {
		// A boolean compares with nothing but true and false, so no guess at the
		// secret itself can be contradicted.
		return spec.Value{
			Key: v.Key, Type: spec.Bool, TypeSet: true, Place: v.Place,
			Text: map[bool]string{true: "true", false: "false"}[v.Problem != "missing_value"],
		}
	}
	// With its name in front, as rules for key = value need it.
	touched := false
	clean := func(text string) string {
		prefix := v.Key + "="
		b, hits := engine([]byte(prefix + text))
		if len(hits) == 0 {
			return text
		}
		touched = true
		if len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix {
			return string(b[len(prefix):])
		}
		return string(mask)
	}
	if envValue(s, v.Key) {
		v.Text, v.All, v.Problem = string(mask), nil, "missing_value"
		return v
	}
	v.Text = clean(v.Text)
	v.All = slices.Clone(v.All)
	for i := range v.All {
		v.All[i] = clean(v.All[i])
	}
	if touched {
		v.Problem = "missing_value"
	}
	return v
}

// envValue reports whether a value was read from a variable that env_values
// hides.
func envValue(s *spec.Sensor, key string) bool {
	if !slices.Contains(s.Redact, "env_values") {
		return false
	}
	names := []string{key}
	if x, ok := s.Value(key); ok {
		names = append(names, x.KV, x.Line)
	}
	return slices.ContainsFunc(names, func(n string) bool { return envName.MatchString(n) && !slices.Contains(s.RedactAllow, n) })
}

// oneLine makes foreign text fit for one line: no control or invisible
// characters, runs of blanks as one, at most n bytes and whole characters.
func oneLine(s string, n int) string {
	var b strings.Builder
	blank := false
	for _, c := range s {
		if c == utf8.RuneError || unicode.IsControl(c) || unicode.IsSpace(c) {
			blank = b.Len() > 0
			continue
		}
		if unicode.Is(unicode.Cf, c) {
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(c)
		if b.Len() > 4*n {
			break
		}
	}
	out := b.String()
	if len(out) <= n {
		return out
	}
	const more = "…"
	cut := n - len(more)
	for cut > 0 && !utf8.RuneStart(out[cut]) {
		cut--
	}
	return out[:cut] + more
}
