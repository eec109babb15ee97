package symbols

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// nodeBuiltins come with the runtime: only running it could tell what they hold.
var nodeBuiltins = map[string]bool{
	"assert": true, "buffer": true, "child_process": true, "cluster": true, "console": true, "constants": true, "crypto": true, "dgram": true, "dns": true, "domain": true,
	"events": true, "fs": true, "http": true, "http2": true, "https": true, "inspector": true, "module": true, "net": true, "os": true, "path": true, "perf_hooks": true,
	"process": true, "punycode": true, "querystring": true, "readline": true, "repl": true, "stream": true, "string_decoder": true, "sys": true, "timers": true, "tls": true,
	"tty": true, "url": true, "util": true, "v8": true, "vm": true, "wasi": true, "worker_threads": true, "zlib": true, "test": true, "sqlite": true,
	"Array": true, "Object": true, "String": true, "Promise": true, "Math": true, "JSON": true, "Date": true, "Map": true, "Set": true, "window": true, "document": true,
}

// everyObject are members that anything has.
var everyObject = map[string]bool{
	"toString": true, "valueOf": true, "constructor": true, "hasOwnProperty": true, "call": true, "apply": true, "bind": true, "name": true, "length": true, "prototype": true,
	"on": true, "once": true, "off": true, "emit": true, "addListener": true, "removeListener": true, "removeAllListeners": true, "listeners": true, "listenerCount": true,
	"eventNames": true, "prependListener": true, "setMaxListeners": true, "getMaxListeners": true, "rawListeners": true, "pipe": true, "unpipe": true, "read": true, "write": true,
	"end": true, "destroy": true, "pause": true, "resume": true, "push": true, "pop": true, "shift": true, "unshift": true, "map": true, "filter": true, "reduce": true,
	"forEach": true, "find": true, "findIndex": true, "some": true, "every": true, "includes": true, "indexOf": true, "join": true, "slice": true, "splice": true, "sort": true,
	"concat": true, "flat": true, "flatMap": true, "keys": true, "values": true, "entries": true, "get": true, "set": true, "has": true, "delete": true, "clear": true, "add": true,
	"size": true, "finally": true, "split": true, "trim": true, "replace": true, "test": true, "exec": true, "next": true, "return": true, "throw": true, "message": true, "stack": true,
	"default": true, "then": true, "catch": true, "isPrototypeOf": true, "toLocaleString": true, "propertyIsEnumerable": true, "caller": true, "arguments": true, "__proto__": true,
}

var jsIdentifier = regexp.MustCompile(`^[A-Za-z_$][\w$]*$`)

// node resolves pkg.name, @scope/pkg.name and pkg/sub.name against the nearest
// node_modules. A name is absent when the word stands in no file of the package,
// nor of those whose exports it passes on: what a package exports under a name
// has to say that name somewhere, unless it makes names up, and then it is
// unknown.
func (s *search) node(symbol string) Answer {
	dirs, err := s.up()
	if err != nil {
		return Answer{Why: "no node project here"}
	}
	pkg, sub, names, ok := nodePath(symbol)
	if !ok {
		return Answer{Why: "no name of a package"}
	}
	if nodeBuiltins[pkg] && !strings.HasPrefix(pkg, "@") && sub == "" {
		return s.nodeBuiltin(dirs, pkg, names)
	}
	for i, d := range dirs {
		home := d.at("node_modules").at(pkg)
		if !d.isDir(path.Join("node_modules", pkg)) {
			continue
		}
		a := Answer{Package: pkg, Name: strings.Join(names, "."), Place: path.Join(d.path, "node_modules", pkg)}
		v := &visit{s: s, levels: dirs[i:], done: map[string]bool{}}
		a.Version, err = v.version(home)
		if err != nil {
			a.Why = "its package.json cannot be read"
			return a
		}
		if a.Presence, a.Nearest, a.Why = v.look(home, names); a.Presence == Absent {
			if why := s.nodeDoubt(d, v, pkg, sub, names[0]); why != "" {
				a.Presence, a.Nearest, a.Why = Unknown, "", why
			}
		}
		return a
	}
	return Answer{Why: "no package " + pkg + " is installed here"}
}

// nodeDoubt says why a name that a package lacks may exist all the same.
func (s *search) nodeDoubt(d dir, v *visit, pkg, sub, name string) string {
	root := pkg[strings.LastIndexByte(pkg, '/')+1:]
	why, own := s.doubt("node", root, name)
	switch {
	case why != "":
		return why
	case sub == "" && jsIdentifier.MatchString(root) && own.bindsJS(root, pkg):
		return "the project calls something else so"
	}
	// Types and plugins add members to the packages whose names they bear.
	for _, scope := range []string{"node_modules", "node_modules/@types"} {
		entries, err := d.at(scope).list()
		if err != nil {
			continue
		}
		for _, e := range entries {
			n := e.Name()
			if n == pkg && scope == "node_modules" || strings.HasPrefix(n, ".") || !strings.Contains(n, root) {
				continue
			}
			home := d.at(scope).at(n)
			if v.done[home.path] {
				continue
			}
			if said, _ := v.said(home, name); said {
				return "another package may add it"
			}
		}
	}
	return ""
}

// nodePath splits @scope/pkg/sub.a.b.
func nodePath(symbol string) (pkg, sub string, names []string, ok bool) {
	symbol = strings.TrimPrefix(symbol, "node:")
	rest := symbol
	scope := ""
	if strings.HasPrefix(rest, "@") {
		var cut bool
		if scope, rest, cut = strings.Cut(rest, "/"); !cut || !simpleName(scope[1:]) {
			return "", "", nil, false
		}
		scope += "/"
	}
	// A package's name may itself hold dots (lodash.debounce, socket.io), so the
	// last slash counts first.
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		pkg, rest = rest[:i], rest[i+1:]
		j := strings.IndexByte(rest[strings.LastIndexByte(rest, '/')+1:], '.')
		if j < 0 {
			return "", "", nil, false
		}
		j += strings.LastIndexByte(rest, '/') + 1
		sub, rest = rest[:j], rest[j+1:]
	} else {
		pkg, rest, ok = strings.Cut(rest, ".")
		if !ok {
			return "", "", nil, false
		}
	}
	names = strings.Split(rest, ".")
	for _, n := range names {
		if !jsIdentifier.MatchString(n) {
			return "", "", nil, false
		}
	}
	return scope + pkg, sub, names, simpleName(pkg) && len(names) <= 4
}

func simpleName(s string) bool {
	return s != "" && !strings.HasPrefix(s, ".") && !strings.ContainsAny(s, `\:*?"<>|`) && s != "node_modules"
}

// nodeBuiltin finds a member of the runtime's own modules in the types that are
// installed for it. They may be of another version, so absence is not told.
func (s *search) nodeBuiltin(dirs []dir, pkg string, names []string) Answer {
	a := Answer{Package: "node:" + pkg, Name: strings.Join(names, "."), Why: "it comes with the runtime"}
	for _, d := range dirs {
		if text, err := d.read("node_modules/@types/node/" + pkg + ".d.ts"); err == nil {
			if hasWord(text, names[len(names)-1]) {
				a.Presence, a.Why, a.Place = Exists, "", path.Join(d.path, "node_modules/@types/node", pkg+".d.ts")
			}
			return a
		}
	}
	return a
}

// visit goes through a package and those it passes on.
type visit struct {
	s      *search
	levels []dir // from the place that has the package, upward
	done   map[string]bool
	names  []string // export-like names, for the nearest
	taken  int
	depth  int
}

func (v *visit) version(home dir) (string, error) {
	text, err := home.read("package.json")
	if err != nil {
		return "", err
	}
	var m struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", err
	}
	return m.Version, nil
}

var (
	// passes finds the packages whose exports a file hands on as its own.
	passes = regexp.MustCompile(`(?:export\s*\*\s*(?:as\s+[\w$]+\s*)?from\s*|module\.exports\s*=\s*(?:[\w$.]+\()?\s*require\(\s*|__exportStar\(\s*require\(\s*|__reExport\([^)]*require\(\s*|Object\.assign\(\s*(?:module\.)?exports\s*,\s*require\(\s*|\.\.\.\s*require\(\s*|export\s*=\s*|import\s*=\s*require\(\s*)["']([^"'./][^"']*|\.[^"'./][^"']*)["']`)
	// starred catches loops that copy another package's members.
	copies = regexp.MustCompile(`for\s*\(\s*(?:var|let|const)\s+[\w$]+\s+in\s+[\w$.]+\s*\)|Object\.keys\([\w$]+\)\.(?:forEach|map)|Object\.(?:assign|defineProperty|defineProperties|entries|getOwnPropertyNames)\(\s*(?:module\.)?exports\b`)
	// descends catches classes, whose members may be another package's. What the
	// runtime's own have to pass on is in everyObject.
	descends = regexp.MustCompile(`\bextends\s|\binherits\(|\bsetPrototypeOf\(|\bObject\.create\(|\b__proto__\b|\b[mM]ixin`)
	required = regexp.MustCompile(`(?:require\(\s*|from\s*|import\s*)["']([^"'./][^"']*|\.[^"'./][^"']*)["']`)
	makes    = regexp.MustCompile(`new\s+Proxy\(|\bexports\[(?:[^"'\]]|["'][^"']*["']\s*\+)|\bprocess\.dlopen\b|\bbindings\(|node-gyp-build|\beval\(|new\s+Function\(|wasm`)
	braces   = regexp.MustCompile(`export\s*(?:type\s*)?\{([^}]*)\}|module\.exports\s*=\s*\{([^}]*)\}`)
)

// look reads every file of a package.
func (v *visit) look(home dir, names []string) (Presence, string, string) {
	if everyObject[names[0]] {
		return Unknown, "", "everything has it"
	}
	said, why := v.said(home, names[0])
	switch {
	case said && v.exported(names[0]) && len(names) == 1:
		return Exists, "", ""
	case said:
		return Unknown, "", "the package says the word, whether it exports it is not certain"
	case why != "":
		return Unknown, "", why
	}
	return Absent, nearest(names[0], v.names), ""
}

func (v *visit) exported(name string) bool {
	for _, n := range v.names {
		if n == name {
			return true
		}
	}
	return false
}

// said reports whether the word stands anywhere in the package; why is not empty
// when it does not and yet might be exported.
func (v *visit) said(home dir, name string) (said bool, why string) {
	if v.depth++; v.depth > 4 {
		return false, "its exports come from too far"
	}
	defer func() { v.depth-- }()
	v.done[home.path] = true
	p := packageFiles{}
	if err := p.walk(home, 12); err != nil {
		return false, "not all of it can be read"
	}
	for _, text := range p.texts {
		if hasWord(text, name) {
			v.take(text)
			said = true
		}
	}
	if said {
		return true, ""
	}
	others := map[string]bool{}
	for _, text := range p.texts {
		v.take(text)
		for i := range handsOn(text) { // the expression is slow, so it sees little
			if m := passes.FindStringSubmatch(text[max(i-120, 0):min(i+220, len(text))]); m != nil {
				others[m[1]] = true
			}
		}
		all := mentions(text, "for (", "for(", "Object.") && copies.MatchString(text)
		if all || mentions(text, "extends", "inherits(", "Object.", "__proto__", "ixin") && descends.MatchString(text) {
			for _, m := range required.FindAllStringSubmatch(text, 64) {
				if all || !nodeBuiltins[strings.TrimPrefix(m[1], "node:")] {
					others[m[1]] = true
				}
			}
		}
		if p.made == "" && mentions(text, "Proxy(", "exports[", "dlopen", "bindings(", "node-gyp", "eval(", "Function(", "wasm") && makes.MatchString(text) {
			p.made = "it makes names up when it runs"
		}
	}
	for other := range others {
		found, w := v.other(home, other, name)
		if found {
			return true, ""
		}
		if p.made == "" {
			p.made = w
		}
	}
	return false, p.made
}

// handsOn finds the places where a text names another module.
func handsOn(text string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, word := range []string{"require(", "from ", "from\"", "from'"} {
			for at := 0; ; {
				i := strings.Index(text[at:], word)
				if i < 0 {
					break
				}
				if at += i; !yield(at) {
					return
				}
				at += len(word)
			}
		}
	}
}

func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// declares yields the identifiers behind exports., and behind the words that
// declare something on a line that exports it or is a declaration of types.
func declares(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for at := 0; ; {
			i := strings.Index(text[at:], "exports.")
			if i < 0 {
				break
			}
			at += i + len("exports.")
			if w := identifier(text[at:]); w != "" && strings.HasPrefix(strings.TrimLeft(text[at+len(w):min(at+len(w)+8, len(text))], " \t"), "=") && !yield(w) {
				return
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			line = strings.TrimSpace(line)
			rest, ok := strings.CutPrefix(line, "export ")
			if !ok {
				if rest, ok = strings.CutPrefix(line, "declare "); !ok && !strings.HasPrefix(line, "function ") {
					continue
				}
				if !ok {
					rest = line
				}
			}
			if len(rest) > 400 {
				rest = rest[:400]
			}
			for f := range strings.FieldsSeq(rest) {
				if !slices.Contains(declaring, strings.TrimSuffix(f, "*")) {
					if w := identifier(f); w != "" && !yield(w) {
						return
					}
					break
				}
			}
		}
	}
}

var declaring = []string{"export", "declare", "default", "abstract", "async", "function", "class", "const", "let", "var", "interface", "type", "enum", "namespace"}

func identifier(s string) string {
	n := 0
	for n < len(s) && n < 100 && wordByte(s[n]) {
		n++
	}
	if w := s[:n]; jsIdentifier.MatchString(w) {
		return w
	}
	return ""
}

// packageFiles is what a package's files say.
type packageFiles struct {
	texts []string
	made  string // why names may exist that no text says
}

func (p *packageFiles) walk(d dir, left int) error {
	entries, err := d.list()
	if err != nil {
		return err
	}
	for _, e := range entries {
		n := e.Name()
		switch {
		case n == "node_modules" || n == ".git":
		case e.IsDir():
			if left == 0 {
				return errCap
			}
			if err := p.walk(d.at(n), left-1); err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			return errors.New("a link")
		case path.Ext(n) == ".node" || path.Ext(n) == ".wasm":
			p.made = "part of it is compiled"
		case slices.Contains(codeExts, path.Ext(n)):
			text, err := d.read(n)
			if err != nil {
				return err
			}
			p.texts = append(p.texts, text)
		}
	}
	return nil
}

// codeExts are the files that may say a name; one without an extension may be a
// script.
var codeExts = []string{".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".json", ""}

// other looks into a package whose exports may be handed on.
func (v *visit) other(home dir, spec, name string) (said bool, why string) {
	var pkg string
	if parts := strings.SplitN(strings.TrimPrefix(spec, "node:"), "/", 3); strings.HasPrefix(spec, "@") && len(parts) > 1 {
		pkg = parts[0] + "/" + parts[1]
	} else {
		pkg = parts[0]
	}
	if nodeBuiltins[pkg] {
		return false, "it hands on what the runtime has"
	}
	for _, d := range append([]dir{home}, v.levels...) { // its own before those beside it
		if d.has("node_modules/.pnpm") || d.has("node_modules/.store") {
			return false, "its own packages lie in a store"
		}
		if !d.isDir(path.Join("node_modules", pkg)) {
			continue
		}
		at := d.at("node_modules").at(pkg)
		if v.done[at.path] {
			return false, ""
		}
		return v.said(at, name)
	}
	return false, "it hands on a package that is not found"
}

// take collects names that look exported.
func (v *visit) take(text string) {
	if v.taken += len(text); len(v.names) > 20_000 || v.taken > 1<<20 {
		return // enough to find one that is alike
	}
	for word := range declares(text) {
		v.names = append(v.names, word)
	}
	if !mentions(text, "export {", "export{", "export type", "module.exports") {
		return
	}
	for _, m := range braces.FindAllStringSubmatch(text, 200) {
		for part := range strings.SplitSeq(m[1]+m[2], ",") {
			part = strings.TrimSpace(part)
			if _, as, ok := strings.Cut(part, " as "); ok {
				part = strings.TrimSpace(as)
			}
			part, _, _ = strings.Cut(part, ":")
			if part = strings.TrimSpace(part); jsIdentifier.MatchString(part) {
				v.names = append(v.names, part)
			}
		}
	}
}
