package symbols

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// gomod is the module that the agent stands in.
type gomod struct {
	dir      dir
	path     string
	version  string // of the language
	require  map[string]string
	replaced map[string]bool
	vendor   bool
	work     bool   // a go.work may choose other versions
	chosen   string // the toolchain that go.mod asks for, "" for none
}

func (s *search) gomod() (*gomod, bool) {
	dirs, err := s.up()
	if err != nil {
		return nil, false
	}
	var m *gomod
	for _, d := range dirs {
		if m == nil && d.has("go.mod") {
			text, err := d.read("go.mod")
			if err != nil {
				return nil, false
			}
			f, err := modfile.Parse("go.mod", []byte(text), nil)
			if err != nil || f.Module == nil {
				return nil, false
			}
			m = &gomod{dir: d, path: f.Module.Mod.Path, require: map[string]string{}, replaced: map[string]bool{}}
			if f.Go != nil {
				m.version = f.Go.Version
			}
			if f.Toolchain != nil {
				m.chosen = strings.TrimPrefix(f.Toolchain.Name, "go")
			}
			for _, r := range f.Require {
				m.require[r.Mod.Path] = r.Mod.Version
			}
			for _, r := range f.Replace {
				m.replaced[r.Old.Path] = true
			}
			m.vendor = d.has("vendor/modules.txt")
		}
		if m != nil && d.has("go.work") {
			m.work = true
		}
	}
	if v := s.env("GOWORK"); m != nil && v != "" && v != "off" {
		m.work = true
	}
	if m != nil && strings.Contains(s.env("GOFLAGS"), "-mod") {
		m.work = true // another set of modules than go.mod's
	}
	return m, m != nil
}

// goPackage is one candidate for the package that is meant.
type goPackage struct {
	path, version string
	dir           dir
	unknown       string // why it cannot be read
}

// golang resolves pkg.Name, pkg.Type.Method or import/path.Name.
func (s *search) golang(symbol string) Answer {
	m, ok := s.gomod()
	if !ok {
		return Answer{Why: "no Go module here"}
	}
	slash := strings.LastIndexByte(symbol, '/')
	pkg, rest, ok := strings.Cut(symbol[slash+1:], ".")
	if !ok || pkg == "" || rest == "" {
		return Answer{Why: "no name of a package"}
	}
	if slash >= 0 && !strings.Contains(symbol[:slash], "/") && strings.Contains(symbol[:slash], ".") && len(strings.Split(symbol, "/")) == 2 && strings.HasPrefix(rest, "v") {
		return Answer{Why: "not certain which package is meant"} // gopkg.in/yaml.v3.Node
	}
	names := strings.Split(rest, ".")
	if len(names) > 2 || !ast.IsExported(names[0]) || !token.IsIdentifier(names[0]) {
		return Answer{Why: "not the name of something exported"}
	}
	var found []goPackage
	if slash >= 0 {
		if p, ok := s.goImport(m, symbol[:slash+1]+pkg); ok {
			found = append(found, p)
		}
	} else {
		found = s.goByName(m, pkg)
	}
	if len(found) == 0 {
		return Answer{Why: "no package " + pkg + " is required here"}
	}
	var unread Answer
	var absent []Answer
	for _, p := range found {
		a := Answer{Package: p.path, Version: p.version, Name: rest, Place: p.path}
		if p.version != "" {
			a.Place += "@" + p.version
		}
		if p.unknown != "" {
			a.Why = p.unknown
			unread = a
			continue
		}
		a.Presence, a.Nearest, a.Why = p.dir.goNames(names)
		switch a.Presence {
		case Exists:
			return a
		case Absent:
			absent = append(absent, a)
		default:
			unread = a
		}
	}
	switch {
	case unread.Package != "":
		return unread
	case len(absent) == 1 && slash >= 0:
		return absent[0]
	case len(absent) == 1:
		a := absent[0]
		why, own := s.doubt("go", "", names[len(names)-1])
		if why == "" && !own.importsOnly(pkg, a.Package) {
			why = "not certain which package " + pkg + " is"
		}
		if why != "" {
			a.Presence, a.Nearest, a.Why = Unknown, "", why
		}
		return a
	}
	a := absent[0]
	a.Presence, a.Nearest, a.Why = Unknown, "", "several packages are called "+pkg
	return a
}

// std is Go's own library, as the go of the agent's PATH has it.
func (s *search) std(m *gomod) (dir, string, bool) {
	root := s.env("GOROOT")
	if root == "" {
		bin := s.program("go")
		if bin == "" {
			return dir{}, "", false
		}
		root = filepath.Dir(filepath.Dir(bin))
	}
	d, err := s.outside(root)
	if err != nil {
		return dir{}, "", false
	}
	text, err := d.read("VERSION")
	if err != nil || !d.isDir("src") {
		return dir{}, "", false
	}
	line, _, _ := strings.Cut(text, "\n")
	version := strings.TrimPrefix(strings.TrimSpace(line), "go")
	switch s.env("GOTOOLCHAIN") {
	case "", "auto", "path", "local":
	default:
		return dir{}, "", false // which one that is, is not looked into
	}
	if newer(m.version, version) || newer(m.chosen, version) {
		return dir{}, "", false // another toolchain takes its place
	}
	return d.at("src"), version, true
}

// newer reports whether a Go version is beyond another one.
func newer(want, have string) bool {
	if want == "" {
		return false
	}
	a, b := strings.Split(want, "."), strings.Split(have, ".")
	for i := range a {
		x, err := strconv.Atoi(a[i])
		if err != nil || i >= len(b) {
			return err != nil
		}
		y, err := strconv.Atoi(b[i])
		if err != nil {
			return true
		}
		if x != y {
			return x > y
		}
	}
	return false
}

// goImport finds the package of an import path.
func (s *search) goImport(m *gomod, imp string) (goPackage, bool) {
	if imp == m.path || strings.HasPrefix(imp, m.path+"/") {
		sub := strings.TrimPrefix(strings.TrimPrefix(imp, m.path), "/")
		if sub == "" {
			sub = "."
		}
		if m.dir.isDir(sub) {
			return goPackage{path: imp, dir: m.dir.at(sub)}, true
		}
		return goPackage{}, false
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		src, version, ok := s.std(m)
		if ok && src.isDir(imp) {
			return goPackage{path: imp, version: version, dir: src.at(imp)}, true
		}
		return goPackage{}, false
	}
	for prefix := imp; prefix != "." && prefix != "/"; prefix = path.Dir(prefix) {
		if v, ok := m.require[prefix]; ok {
			sub := strings.TrimPrefix(strings.TrimPrefix(imp, prefix), "/")
			return s.goRequired(m, prefix, v, sub)
		}
	}
	return goPackage{}, false
}

// goRequired opens a package of a required module.
func (s *search) goRequired(m *gomod, mod, version, sub string) (goPackage, bool) {
	p := goPackage{path: path.Join(mod, sub), version: version}
	switch {
	case m.version == "" || newer("1.17", m.version):
		p.unknown = "go.mod does not list every version that is chosen"
	case m.work:
		p.unknown = "a workspace may choose another version"
	case m.replaced[mod]:
		p.unknown = "the module is replaced"
	case m.vendor:
		if p.dir = m.dir.at("vendor").at(p.path); !m.dir.isDir(path.Join("vendor", p.path)) {
			p.unknown = "the package is not vendored"
		}
	default:
		cache := s.env("GOMODCACHE")
		if cache == "" {
			if gopath := s.env("GOPATH"); gopath != "" {
				cache = filepath.Join(filepath.SplitList(gopath)[0], "pkg", "mod")
			} else if s.w.Home != "" {
				cache = filepath.Join(s.w.Home, "go", "pkg", "mod")
			}
		}
		esc, err := module.EscapePath(mod)
		escVersion, err2 := module.EscapeVersion(version)
		if err != nil || err2 != nil || cache == "" {
			p.unknown = "there is no module cache"
			return p, true
		}
		d, err := s.outside(filepath.Join(cache, filepath.FromSlash(esc)+"@"+escVersion))
		if err != nil {
			p.unknown = "the module is not in the cache"
			return p, true
		}
		if sub != "" && !d.isDir(sub) {
			return goPackage{}, false
		}
		p.dir = d.at(sub)
	}
	return p, true
}

// goByName finds every package that a bare name may mean.
func (s *search) goByName(m *gomod, name string) []goPackage {
	var out []goPackage
	src, version, haveStd := s.std(m)
	if haveStd {
		for _, p := range stdByName[name] {
			if src.isDir(p) {
				out = append(out, goPackage{path: p, version: version, dir: src.at(p)})
			}
		}
		if src.isDir(name) && name != "cmd" && name != "internal" && name != "vendor" {
			out = append(out, goPackage{path: name, version: version, dir: src.at(name)})
		}
	} else if _, ok := stdByName[name]; ok || stdTop[name] {
		out = append(out, goPackage{path: name, unknown: "the standard library of the toolchain is not here"})
	}
	for mod, v := range m.require {
		if lastElement(mod) == name {
			if p, ok := s.goRequired(m, mod, v, ""); ok {
				out = append(out, p)
			}
			continue
		}
		// A package inside a module.
		p, ok := s.goRequired(m, mod, v, "")
		if !ok || p.unknown != "" {
			continue
		}
		for _, sub := range []string{name, "pkg/" + name, path.Join(lastElement(mod), name), "v2/" + name} {
			if p.dir.isDir(sub) {
				q := p
				q.path, q.dir = path.Join(mod, sub), p.dir.at(sub)
				out = append(out, q)
			}
		}
	}
	if lastElement(m.path) == name {
		out = append(out, goPackage{path: m.path, dir: m.dir})
	}
	for _, sub := range m.dir.findDirs(name, 4) {
		out = append(out, goPackage{path: path.Join(m.path, sub), dir: m.dir.at(sub)})
	}
	return out
}

// lastElement is the name that a module's root package usually has.
func lastElement(p string) string {
	last := path.Base(p)
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = path.Base(path.Dir(p))
	}
	last, _, _ = strings.Cut(strings.TrimPrefix(last, "go-"), ".")
	return last
}

// findDirs finds directories of a name below d.
func (d dir) findDirs(name string, depth int) []string {
	var out []string
	seen := 0
	var walk func(at string, left int)
	walk = func(at string, left int) {
		entries, err := d.at(at).list()
		if err != nil {
			return
		}
		for _, e := range entries {
			if seen++; seen > 5000 || !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "vendor" || e.Name() == "node_modules" {
				continue
			}
			sub := path.Join(at, e.Name())
			if e.Name() == name {
				out = append(out, sub)
			}
			if left > 1 {
				walk(sub, left-1)
			}
		}
	}
	walk(".", depth)
	return out
}

// stdByName are the packages of the library whose name is not their path.
var stdByName = map[string][]string{
	"http": {"net/http"}, "url": {"net/url"}, "json": {"encoding/json"}, "xml": {"encoding/xml"}, "hex": {"encoding/hex"}, "base64": {"encoding/base64"},
	"csv": {"encoding/csv"}, "binary": {"encoding/binary"}, "filepath": {"path/filepath"}, "exec": {"os/exec"}, "signal": {"os/signal"}, "user": {"os/user"},
	"rand": {"math/rand", "math/rand/v2", "crypto/rand"}, "template": {"text/template", "html/template"}, "sha256": {"crypto/sha256"}, "sha1": {"crypto/sha1"},
	"tls": {"crypto/tls"}, "atomic": {"sync/atomic"}, "big": {"math/big"}, "bits": {"math/bits"}, "httptest": {"net/http/httptest"}, "httputil": {"net/http/httputil"},
	"sql": {"database/sql"}, "slog": {"log/slog"}, "fs": {"io/fs"}, "ioutil": {"io/ioutil"}, "utf8": {"unicode/utf8"}, "netip": {"net/netip"}, "ast": {"go/ast"},
	"parser": {"go/parser"}, "token": {"go/token"}, "scanner": {"text/scanner", "go/scanner"}, "list": {"container/list"}, "heap": {"container/heap"},
	"gzip": {"compress/gzip"}, "zip": {"archive/zip"}, "tar": {"archive/tar"}, "synctest": {"testing/synctest"}, "fstest": {"testing/fstest"}, "quick": {"testing/quick"},
}

// stdTop are the packages of the library whose name is their path.
var stdTop = map[string]bool{
	"bufio": true, "bytes": true, "cmp": true, "context": true, "crypto": true, "embed": true, "encoding": true, "errors": true, "expvar": true, "flag": true, "fmt": true,
	"hash": true, "html": true, "image": true, "io": true, "iter": true, "log": true, "maps": true, "math": true, "mime": true, "net": true, "os": true, "path": true,
	"plugin": true, "reflect": true, "regexp": true, "runtime": true, "slices": true, "sort": true, "strconv": true, "strings": true, "structs": true, "sync": true,
	"syscall": true, "testing": true, "time": true, "unicode": true, "unique": true, "unsafe": true, "weak": true,
}

// goNames looks a name up among what a package exports. Build constraints are
// not applied: what exists on any platform exists.
func (d dir) goNames(names []string) (Presence, string, string) {
	entries, err := d.list()
	if err != nil {
		return Unknown, "", "the package cannot be read"
	}
	top := map[string]bool{}
	members := map[string]map[string]bool{}
	open := map[string]bool{} // types that have members from elsewhere
	parsed := 0
	generates := false
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") || e.IsDir() {
			continue
		}
		text, err := d.read(e.Name())
		if err != nil {
			return Unknown, "", "a file of the package cannot be read"
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), text, parser.SkipObjectResolution)
		if err != nil {
			return Unknown, "", "a file of the package does not parse"
		}
		if f.Name.Name == "main" || strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		parsed++
		generates = generates || strings.HasPrefix(text, "//go:generate ") || strings.Contains(text, "\n//go:generate ")
		collect(f, top, members, open)
	}
	if parsed == 0 {
		return Unknown, "", "it holds no Go package"
	}
	if generates && d.name == "" && (!top[names[0]] || len(names) > 1 && !members[names[0]][names[1]]) {
		return Unknown, "", "part of the package may not be generated yet"
	}
	if !top[names[0]] {
		return Absent, nearest(names[0], exported(top)), ""
	}
	if len(names) == 1 {
		return Exists, "", ""
	}
	switch m := members[names[0]]; {
	case m[names[1]]:
		return Exists, "", ""
	case open[names[0]] || !ast.IsExported(names[1]):
		return Unknown, "", "the type may have it from another one"
	default:
		return Absent, nearest(names[1], exported(m)), ""
	}
}

func exported(m map[string]bool) []string {
	var out []string
	for n := range m {
		if ast.IsExported(n) {
			out = append(out, n)
		}
	}
	return out
}

func collect(f *ast.File, top map[string]bool, members map[string]map[string]bool, open map[string]bool) {
	member := func(t, name string) {
		if members[t] == nil {
			members[t] = map[string]bool{}
		}
		members[t][name] = true
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				top[d.Name.Name], open[d.Name.Name] = true, true // what it returns is not followed
			} else if len(d.Recv.List) == 1 {
				if t := receiver(d.Recv.List[0].Type); t != "" {
					member(t, d.Name.Name)
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range sp.Names {
						top[n.Name] = true
						open[n.Name] = true // its type is not followed
					}
				case *ast.TypeSpec:
					top[sp.Name.Name] = true
					switch t := sp.Type.(type) {
					case *ast.StructType:
						fields(t.Fields, sp.Name.Name, member, open)
					case *ast.InterfaceType:
						fields(t.Methods, sp.Name.Name, member, open)
					case *ast.ArrayType, *ast.MapType, *ast.ChanType, *ast.FuncType:
						open[sp.Name.Name] = open[sp.Name.Name] || sp.Assign.IsValid()
					case *ast.Ident:
						open[sp.Name.Name] = open[sp.Name.Name] || sp.Assign.IsValid() || ast.IsExported(t.Name) || !basic[t.Name]
					default:
						open[sp.Name.Name] = true
					}
				}
			}
		}
	}
}

var basic = map[string]bool{
	"string": true, "bool": true, "int": true, "int8": true, "int16": true, "int32": true, "int64": true, "uint": true, "uint8": true, "uint16": true, "uint32": true,
	"uint64": true, "uintptr": true, "byte": true, "rune": true, "float32": true, "float64": true, "complex64": true, "complex128": true,
}

func fields(l *ast.FieldList, t string, member func(t, name string), open map[string]bool) {
	if l == nil {
		return
	}
	for _, f := range l.List {
		if len(f.Names) == 0 {
			open[t] = true // embedded
			if n := receiver(f.Type); n != "" {
				member(t, n)
			}
		}
		for _, n := range f.Names {
			member(t, n.Name)
		}
	}
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return ""
}
