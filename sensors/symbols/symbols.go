// Package symbols tells whether a dotted API path exists in what is installed
// here: in Go modules of the module cache, in node_modules, in Python's
// site-packages. Files are read, nothing runs and nothing is fetched. It leans
// one way: a name is absent only when the one package that can be meant was read
// whole and says so in no way; whatever is generated, re-exported from where it
// cannot be followed, or compiled is unknown. What follows from an answer is
// decided in sensors/verdict.
package symbols

import (
	"context"
	"slices"
	"strings"
)

// Presence is what is known of a symbol.
type Presence int

const (
	Unknown Presence = iota
	Exists
	Absent
)

func (p Presence) String() string { return [...]string{"unknown", "exists", "absent"}[p] }

// Where is the place that a symbol is looked up from.
type Where struct {
	Top  string // of the work tree: project files are read below it only
	Cwd  string // in Top
	Home string
	// Env looks a variable of the agent up; nil when its environment is not
	// known, and then nothing is found that depends on it.
	Env func(string) (string, bool)
}

// Answer is what is known of one symbol.
type Answer struct {
	Presence Presence
	Language string // go | node | python
	Package  string // as it is imported
	Version  string // of the module or package, "" when it has none
	Name     string // what was looked for in the package
	Place    string // where: a path of the project, or module@version
	Nearest  string // of an absent one: the most alike name that exists, "" for none
	Why      string // of an unknown one
}

// Bounds of one look-up.
const (
	maxSymbol = 256
	maxFile   = 8 << 20
	maxBytes  = 48 << 20 // all files of one look-up
	maxFiles  = 4000
	maxDirs   = 64 // on the way up
)

// Resolve looks a dotted path up: fs.promises.readFile, golang.org/x/mod/modfile.ParseLax,
// requests.get. language narrows it to one of go, node and python; "" tries
// all that the project has. The first package that knows the name settles it;
// absent needs that every language in which there is such a package says so.
func Resolve(ctx context.Context, w Where, path, language string) Answer {
	path = strings.TrimSuffix(strings.Trim(strings.TrimSpace(path), "`'\""), "()")
	if path == "" || len(path) > maxSymbol || strings.ContainsAny(path, " \t\n\x00\\") || strings.Contains(path, "..") {
		return Answer{Why: "not a dotted path"}
	}
	s := &search{ctx: ctx, w: w}
	defer s.close()
	var best Answer
	for _, l := range []struct {
		name string
		find func(*search, string) Answer
	}{{"go", (*search).golang}, {"node", (*search).node}, {"python", (*search).python}} {
		if language != "" && language != l.name {
			continue
		}
		a := l.find(s, path)
		a.Language = l.name
		switch {
		case a.Presence == Exists:
			return a
		case a.Package == "": // this language has no such package
			if best.Why == "" && best.Package == "" {
				best.Why = a.Why
			}
		case best.Package == "" || best.Presence == Absent && a.Presence == Unknown:
			best = a
		}
	}
	if err := ctx.Err(); err != nil {
		return Answer{Why: "stopped: " + err.Error()}
	}
	return best
}

// nearest finds the most alike of the names, "" when none is alike.
func nearest(name string, names []string) string {
	best, distance := "", max(2, len(name)/3)+1
	slices.Sort(names)
	names = slices.Compact(names)
	lower := strings.ToLower(name)
	for _, n := range names {
		if len(n) < 2 || n == name {
			continue
		}
		d := levenshtein(lower, strings.ToLower(n), distance)
		if d < distance {
			best, distance = n, d
		}
	}
	return best
}

// levenshtein is the edit distance, or most when it is at least that.
func levenshtein(a, b string, most int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal, least := row[0], i
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], d
			least = min(least, d)
		}
		if least >= most {
			return most
		}
	}
	return row[len(b)]
}

// hasWord reports whether name stands in text with no letter, digit, _ or $
// beside it.
func hasWord(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		lo, hi := at+i, at+i+len(name)
		if (lo == 0 || !wordByte(text[lo-1])) && (hi == len(text) || !wordByte(text[hi])) {
			return true
		}
		at = lo + 1
	}
}

func wordByte(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
