package extract

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gettier.dev/gettierd/sensors/spec"
)

// document is an output with what several finders share, made at most once.
type document struct {
	raw   []byte
	text  string
	lines []line
	nginx func() *nginxDump
}

// line is one line without its end. Configuration dumps say which file they
// print; there place is FILE:LINE, elsewhere output:LINE.
type line struct {
	text  string
	file  string
	n     int
	start int // offset in document.text
}

func (l line) place() string {
	if l.file == "" {
		return "output:" + strconv.Itoa(l.n)
	}
	return l.file + ":" + strconv.Itoa(l.n)
}

// colour is the escape sequences that terminals' colours are made of.
var colour = regexp.MustCompile("\x1b\\[[0-9;:]*[A-Za-z]")

const fileMark = "# configuration file "

func newDocument(raw []byte) *document {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // a byte order mark is no part of the first name
	d := &document{raw: raw}
	if bytes.IndexByte(raw, 0x1b) >= 0 {
		d.raw = colour.ReplaceAll(raw, nil)
	}
	d.text = strings.ToValidUTF8(string(d.raw), "\uFFFD")
	file, n := "", 0
	for rest, at := d.text, 0; rest != ""; {
		text, after, _ := strings.Cut(rest, "\n")
		size := len(rest) - len(after)
		n++
		trimmed := strings.TrimRight(text, "\r")
		if name, ok := strings.CutPrefix(trimmed, fileMark); ok && strings.HasSuffix(name, ":") {
			file, n = strings.TrimSuffix(name, ":"), 0
		}
		d.lines = append(d.lines, line{text: trimmed, file: file, n: n, start: at})
		rest, at = after, at+size
	}
	d.nginx = sync.OnceValue(func() *nginxDump { return parseNginx(d.lines) })
	return d
}

// lineAt is the line that holds offset off of d.text.
func (d *document) lineAt(off int) line {
	lo, hi := 0, len(d.lines)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; d.lines[mid].start <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	if len(d.lines) == 0 {
		return line{n: 1}
	}
	return d.lines[lo]
}

// find runs the finder of e's kind.
func find(e *spec.Extract, d *document, exit int) found {
	switch {
	case e.Exit:
		return found{matches: []match{{text: strconv.Itoa(exit), place: "exit"}}}
	case e.Regex != "":
		return findRegex(e.Regex, d)
	case e.Lines != "":
		return countLines(e.Lines, d)
	case e.JSON != "":
		return findJSON(e.JSON, d)
	case e.KV != "":
		return findKV(e.KV, d)
	case e.Table != nil:
		return findTable(e.Table, d)
	case e.Line != "":
		if e.Which == "effective" && d.nginx() != nil {
			return d.nginx().effective(e.Line)
		}
		return findDirective(e.Line, d)
	}
	if e.Which == "effective" && d.nginx() != nil {
		return d.nginx().effective(e.Name)
	}
	return findBare(e.Name, d)
}

// settle picks what `which` asks for, maps and types it.
func settle(e *spec.Extract, f found) spec.Value {
	t, set := ValueType(e)
	v := spec.Value{Key: e.Name, Type: t, TypeSet: set, Which: e.Which}
	ms := f.matches
	if len(ms) > maxMatches {
		ms, f.unclear = ms[:maxMatches], true
	}
	if len(ms) == 0 {
		v.Problem = Missing
		if f.unclear {
			v.Problem = Ambiguous
		}
		return v
	}
	switch e.Which {
	case "first":
		ms = ms[:1]
	case "last":
		ms = ms[len(ms)-1:]
	}
	texts := make([]string, len(ms))
	same := true
	for i, m := range ms {
		texts[i] = mapped(e.Map, m.text)
		same = same && texts[i] == texts[0]
	}
	v.Text, v.Place = texts[0], ms[0].place
	if len(ms) > 1 && (e.Which == "all" || !same) {
		v.All = texts
		for _, m := range ms {
			v.Places = append(v.Places, m.place)
		}
	}
	switch {
	case f.unclear, !same && e.Which != "all":
		v.Problem = Ambiguous
	default:
		for i, text := range texts {
			if !Parses(t, text) || len(text) > maxText {
				v.Problem = Mismatch
			}
			if len(text) > maxText {
				texts[i] = strings.ToValidUTF8(text[:maxText], "")
			}
		}
		v.Text = texts[0]
	}
	return v
}

// mapped applies the special values to the text as printed.
func mapped(m map[string]string, text string) string {
	text = strings.TrimSpace(text)
	if to, ok := m[text]; ok {
		return to
	}
	return text
}
