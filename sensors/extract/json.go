package extract

import (
	"strings"

	"github.com/tidwall/gjson"
)

// findJSON follows a gjson path. Numbers keep their spelling (20.10 stays
// 20.10). A path that starts with .. reads one document a line.
func findJSON(path string, d *document) (f found) {
	// The evaluator is foreign code on untrusted bytes: its panic is no reading.
	defer func() {
		if recover() != nil {
			f = found{unclear: true}
		}
	}()
	doc := strings.TrimSpace(d.text)
	if strings.HasPrefix(path, "..") {
		for _, l := range d.lines {
			if t := strings.TrimSpace(l.text); t != "" && !gjson.Valid(t) {
				return found{unclear: true}
			}
		}
	} else if !gjson.Valid(doc) {
		return found{}
	}
	collect(gjson.Get(doc, path), &f, 0)
	return f
}

// collect adds scalars; an object is no value, an array is several.
func collect(r gjson.Result, f *found, depth int) {
	const deepest = 4
	if len(f.matches) > maxMatches {
		return
	}
	switch r.Type {
	case gjson.String:
		f.matches = append(f.matches, match{r.Str, "json"})
	case gjson.Number, gjson.True, gjson.False:
		f.matches = append(f.matches, match{strings.TrimSpace(r.Raw), "json"})
	case gjson.JSON:
		if !r.IsArray() || depth == deepest {
			f.unclear = true
			return
		}
		r.ForEach(func(_, v gjson.Result) bool {
			collect(v, f, depth+1)
			return len(f.matches) <= maxMatches
		})
	case gjson.Null:
		if r.Raw == "null" && depth > 0 {
			f.unclear = true
		}
	}
}
