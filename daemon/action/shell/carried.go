package shell

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxNested bounds how deep calls inside of calls are followed.
const maxNested = 6

// commandKeys are the names, in lower case and without punctuation, under which
// tools of any name carry a command line.
var commandKeys = set("command cmd commands cmds commandline shellcommand bashcommand shell bash script exec")

// carried is the strongest reading of the commands that stand anywhere in a
// call's arguments, whatever the tool is called and however deep they lie. Only
// what destroys is worth telling: the rest is the tool's own reading.
func carried(kind string, args []byte, ok bool) Reading {
	var r Reading
	switch {
	case ok:
		nested(&r, gjson.ParseBytes(args), 0)
	case kind == "edit" || kind == "patch" || kind == "read" || kind == "plan" || kind == "agent" || kind == "web" || kind == "resource":
		// Their texts are data; that they cannot be read makes them opaque already.
	default: // an agent may repair what broke off, so what it would find is looked at
		for _, s := range literals(string(args)) {
			r = merge(r, Read(s))
		}
	}
	return r
}

// raise takes over a reading that destroys.
func (a *Action) raise(r Reading) {
	if !r.Effect.AtLeast(Destroy) || r.Effect.Rank() <= a.Effect.Rank() {
		return
	}
	a.Effect, a.Rule, a.Why = r.Effect, r.Rule, r.Why
	a.Shell = merge(a.Shell, r)
	for _, p := range r.Paths {
		if !slices.Contains(a.Paths, p) {
			a.Paths = append(a.Paths, p)
		}
	}
}

func nested(r *Reading, v gjson.Result, depth int) {
	if depth > maxNested || !v.IsObject() && !v.IsArray() {
		return
	}
	if v.IsObject() && depth > 0 {
		for _, n := range [...]string{"recipient_name", "tool_name", "tool", "name", "function"} {
			name := v.Get(n)
			if name.Type != gjson.String {
				continue
			}
			for _, p := range [...]string{"parameters", "arguments", "args", "input"} {
				if in := v.Get(p); in.IsObject() || in.Type == gjson.String {
					text := in.Raw
					if in.Type == gjson.String {
						text = in.Str
					}
					short := name.Str[strings.LastIndexByte(name.Str, '.')+1:]
					if a := Tool(short, []byte(text)); a.Effect.AtLeast(Destroy) {
						*r = merge(*r, Reading{Effect: a.Effect, Rest: a.Effect, Rule: a.Rule, Why: a.Why, Commands: a.Shell.Commands, Paths: a.Paths})
					}
				}
			}
		}
	}
	v.ForEach(func(k, x gjson.Result) bool {
		if k.Type == gjson.String && commandKeys[plain(k.Str)] {
			switch {
			case x.Type == gjson.String:
				*r = merge(*r, Read(x.Str))
			case x.IsArray():
				var argv []string
				x.ForEach(func(_, w gjson.Result) bool {
					argv = append(argv, w.Str)
					return len(argv) < maxCommands
				})
				*r = merge(*r, ReadArgv(argv))
				for _, w := range argv {
					if strings.IndexByte(w, ' ') > 0 && len(argv) == 1 {
						*r = merge(*r, Read(w))
					}
				}
			}
		}
		nested(r, x, depth+1)
		return true
	})
}

// literals are the double-quoted texts of something that should have been JSON,
// the last one possibly unended, and the whole where it is none.
func literals(s string) []string {
	s = clip(s)
	var out []string
	if t := strings.TrimSpace(s); t != "" && t[0] != '{' && t[0] != '[' && t[0] != '"' {
		out = append(out, t)
	}
	for len(out) < 64 {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		j := i + 1
		for j < len(s) && s[j] != '"' {
			if s[j] == '\\' {
				j++
			}
			j++
		}
		j = min(j, len(s))
		if text := gjson.Parse(s[i:j] + `"`).Str; strings.IndexByte(text, ' ') > 0 {
			out = append(out, text)
		}
		s = s[min(j+1, len(s)):]
	}
	return out
}

// rest are the texts of all arguments but those named, in the order of their names.
func (f fields) rest(but ...string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(f.m)) {
		if slices.Contains(but, k) {
			continue
		}
		texts(&out, f.m[k], 0)
	}
	return out
}

func texts(out *[]string, v gjson.Result, depth int) {
	switch {
	case depth > maxNested || len(*out) >= maxCommands:
	case v.Type == gjson.String && v.Str != "":
		*out = append(*out, v.Str)
	case v.IsObject() || v.IsArray():
		v.ForEach(func(_, x gjson.Result) bool {
			texts(out, x, depth+1)
			return true
		})
	}
}
