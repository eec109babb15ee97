package extract

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/sensors/spec"
)

// maxSuggested bounds what is offered: a person picks from it.
const maxSuggested = 8

var (
	pairLine = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.-]{0,63})(?:\s*[=:]\s*(\S.*?);?|\s+(\S+?);?|\s+(\S.*);)\s*$`)
	// A text that begins with a number is no version yet, nor is a date.
	wholeVersion = regexp.MustCompile(`^v?\d+(?:\.\d+)+[\w.+~-]*$`)
	versionText  = regexp.MustCompile(`\bv?(\d+(?:\.\d+)+)\b`)
)

// Suggest offers extractions for an output that was seen once: the members of a
// JSON object, names with one value each, the columns of a table, or a version
// number. Each of them
// reads a value from that very output; the person who writes the sensor picks.
func Suggest(raw []byte) []spec.Extract {
	text := string(raw)
	if gjson.Valid(text) && gjson.Parse(text).IsObject() {
		return working(members(gjson.Parse(text)), raw)
	}
	var out []spec.Extract
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		m := pairLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		value := m[2] + m[3] + m[4] // one of them
		if len(value) > 200 {
			continue
		}
		seen[m[1]]++
		if seen[m[1]] == 1 {
			out = append(out, guessed(m[1], value))
		}
	}
	if out = working(out, raw); len(out) > 0 {
		return out
	}
	if out = working(cells(text), raw); len(out) > 0 {
		return out
	}
	if versionText.MatchString(text) {
		return working([]spec.Extract{{Name: "version", Regex: `\bv?(?P<value>\d+(?:\.\d+)+)\b`, Which: "first", Type: spec.Version, TypeSet: true}}, raw)
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) == 1 && lines[0] != "" {
		return working([]spec.Extract{{Name: "value", Regex: `^(?P<value>.+)$`, Type: spec.String}}, raw)
	}
	return nil
}

func members(v gjson.Result) []spec.Extract {
	var out []spec.Extract
	v.ForEach(func(k, v gjson.Result) bool {
		name := k.String()
		switch v.Type {
		case gjson.String, gjson.Number, gjson.True, gjson.False:
			e := guessed(name, v.String())
			e.Bare, e.JSON = false, name
			out = append(out, e)
		}
		return true
	})
	return out
}

// headings are a first line that names columns, as df, ps and docker print them.
var headings = regexp.MustCompile(`^\s*[A-Z][A-Za-z%/-]*(\s+[A-Z0-9][A-Za-z0-9%/-]*){2,}( on)?\s*$`)

// cells are the columns of a table's first row, which is named by its first
// column where there are others.
func cells(text string) (out []spec.Extract) {
	head, rest, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	rows := strings.Split(strings.TrimSpace(rest), "\n")
	if !headings.MatchString(head) || rows[0] == "" {
		return nil
	}
	columns, first := strings.Fields(head), strings.Fields(rows[0])
	for i, c := range columns {
		t := &spec.Table{Column: c}
		if len(rows) > 1 {
			t.Where = map[string]string{columns[0]: first[0]}
		}
		name := strings.Trim(notName.ReplaceAllString(strings.ToLower(c), "_"), "_")
		if i >= len(first) || name == "" || len(rows) > 1 && i == 0 {
			continue
		}
		e := guessed(name, first[i])
		e.Bare, e.Table = false, t
		out = append(out, e)
	}
	return out
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// guessed gives a name the type that its value reads as, the narrowest first.
func guessed(name, value string) spec.Extract {
	e := spec.Extract{Name: name, Bare: true, Type: spec.String}
	switch strings.ToLower(value) {
	case "true", "false", "on", "off", "yes", "no":
		e.Type, e.TypeSet = spec.Bool, true
		return e
	}
	for _, t := range []spec.Type{spec.Number, spec.Bytes, spec.Duration, spec.Version} {
		if Parses(t, value) && (t != spec.Version || wholeVersion.MatchString(value)) {
			e.Type, e.TypeSet = t, true
			break
		}
	}
	return e
}

// working keeps those that read a clear value from raw.
func working(list []spec.Extract, raw []byte) []spec.Extract {
	var out []spec.Extract
	for _, e := range list {
		if len(out) == maxSuggested {
			break
		}
		if v := Extract(&spec.Sensor{Extract: []spec.Extract{e}}, raw, 0)[0]; v.Problem == "" && v.Text != "" {
			out = append(out, e)
		}
	}
	return out
}
