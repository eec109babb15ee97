package extract

import (
	"strconv"
	"strings"
)

// patterns keeps compiled expressions: a registry holds a few dozen, read anew
// for each output.
var patterns = NewPatterns(256)

// findRegex yields the group `value` of every match, ^ and $ at line ends.
func findRegex(expr string, d *document) found {
	re, err := patterns.Compile("(?m)" + expr)
	if err != nil {
		return found{}
	}
	group := re.SubexpIndex("value")
	if group < 0 {
		return found{}
	}
	var f found
	for _, m := range re.FindAllStringSubmatchIndex(d.text, maxMatches+1) {
		if lo, hi := m[2*group], m[2*group+1]; lo >= 0 {
			f.matches = append(f.matches, match{clean(d.text[lo:hi]), d.lineAt(lo).place()})
		}
	}
	return f
}

// clean drops the carriage returns that `$` leaves before a line's end.
func clean(s string) string { return strings.TrimSpace(strings.TrimRight(s, "\r")) }

// countLines counts the lines that match.
func countLines(expr string, d *document) found {
	re, err := patterns.Compile(expr)
	if err != nil {
		return found{}
	}
	n := 0
	for _, l := range d.lines {
		if re.MatchString(l.text) {
			n++
		}
	}
	return found{matches: []match{{text: strconv.Itoa(n), place: "output"}}}
}

// findBare reads `name value`, `name = value` and `name: value`.
func findBare(name string, d *document) found {
	return scanStatements(d, func(s string) (string, bool) { return afterName(s, name, " =:") })
}

// findKV reads `key=value` and `key: value`.
func findKV(key string, d *document) found {
	return scanStatements(d, func(s string) (string, bool) { return afterName(s, key, "=:") })
}

// findDirective reads `directive value`, a directive of several words included.
func findDirective(name string, d *document) found {
	words := strings.Fields(name)
	if len(words) == 0 {
		return found{}
	}
	return scanStatements(d, func(s string) (string, bool) {
		for i, w := range words {
			rest, ok := strings.CutPrefix(s, w)
			if !ok {
				return "", false
			}
			if s = strings.TrimLeft(rest, " \t"); s == rest {
				return "", i == len(words)-1 && s == ""
			}
		}
		return value(s), true
	})
}

// scanStatements offers each statement to read and keeps what it yields: a
// line, or where the output holds brace blocks the parts of one.
func scanStatements(d *document, read func(string) (string, bool)) found {
	if dump := d.nginx(); dump != nil {
		return dump.scan(read)
	}
	var f found
	for _, l := range d.lines {
		s := strings.TrimLeft(l.text, " \t")
		if s == "" || s[0] == '#' || s[0] == ';' || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "-- ") {
			continue
		}
		if v, ok := read(strings.TrimPrefix(s, "export ")); ok {
			f.matches = append(f.matches, match{v, l.place()})
			if len(f.matches) > maxMatches {
				break
			}
		}
	}
	return f
}

// afterName is the value behind name when s starts with it and one of the
// separators follows. A name may stand in double quotes, as in JSON.
func afterName(s, name, separators string) (string, bool) {
	if name == "" {
		return "", false
	}
	rest, ok := strings.CutPrefix(s, name)
	if !ok {
		if rest, ok = strings.CutPrefix(s, `"`+name+`"`); !ok {
			return "", false
		}
	}
	trimmed := strings.TrimLeft(rest, " \t")
	if trimmed == "" {
		return "", false
	}
	if (trimmed[0] == '=' || trimmed[0] == ':') && strings.IndexByte(separators, trimmed[0]) >= 0 {
		after := strings.TrimPrefix(trimmed[1:], "=")
		return value(after), true
	}
	if trimmed != rest && strings.IndexByte(separators, ' ') >= 0 {
		return value(trimmed), true
	}
	return "", false
}

// value takes quotes, a statement's end and a trailing comment off.
func value(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	if q := s[0]; q == '"' || q == '\'' {
		if end := strings.IndexByte(s[1:], q); end >= 0 {
			return s[1 : 1+end]
		}
	}
	for _, mark := range []string{" #", "\t#", " //"} {
		if i := strings.Index(s, mark); i >= 0 {
			s = strings.TrimRight(s[:i], " \t")
		}
	}
	return strings.TrimRight(s, ";, \t")
}
