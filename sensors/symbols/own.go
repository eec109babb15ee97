package symbols

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A bare name such as config.url or log.Infof may be a variable, an import under
// another name or a module of the project, and not the package that is called so.
// A symbol is told as absent only when the project's own files leave no doubt.

// sources maps a language to the ends of its files.
var sources = map[string][]string{
	"go": {".go"}, "node": {".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".vue", ".svelte"}, "python": {".py", ".pyi", ".ipynb"},
}

// notOwn are directories of other people's code.
var notOwn = []string{"node_modules", "vendor", "venv", "site-packages", "testdata"}

// ownFiles are the project's own files of a language.
type ownFiles struct {
	texts []string
	names map[string]bool // of files, without their ends, and of directories
	links bool            // some of it lies elsewhere
}

func (s *search) ownFiles(language string) (*ownFiles, error) {
	top, err := s.project()
	if err != nil {
		return nil, err
	}
	o := &ownFiles{names: map[string]bool{}}
	return o, o.walk(top, sources[language], 24)
}

func (o *ownFiles) walk(d dir, ends []string, left int) error {
	entries, err := d.list()
	if err != nil {
		return err
	}
	for _, e := range entries {
		n := e.Name()
		switch {
		case strings.HasPrefix(n, ".") || slices.Contains(notOwn, n):
		case e.IsDir():
			o.names[n] = true
			if left == 0 {
				return errCap
			}
			if err := o.walk(d.at(n), ends, left-1); err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			o.links = true
		case slices.Contains(ends, path.Ext(n)):
			o.names[strings.TrimSuffix(n, path.Ext(n))] = true
			text, err := d.read(n)
			if err != nil {
				return err
			}
			o.texts = append(o.texts, text)
		}
	}
	return nil
}

func (o *ownFiles) says(word string) bool {
	return slices.ContainsFunc(o.texts, func(t string) bool { return hasWord(t, word) })
}

// doubt says why an absent symbol may be something else than the package's, ""
// for no doubt. root is how the symbol begins, name what was not found.
func (s *search) doubt(language, root, name string) (why string, own *ownFiles) {
	own, err := s.ownFiles(language)
	switch {
	case err != nil:
		return "not all of the project can be read", nil
	case own.links:
		return "part of the project is linked from elsewhere", nil
	case own.says(name):
		return "the project says the word itself", nil
	case own.names[root]:
		return "the project has something of that name", nil
	}
	return "", own
}

// importsOnly reports whether every Go file that has an import by this name means
// this one path, and some do.
func (o *ownFiles) importsOnly(name, imported string) bool {
	seen := false
	for _, text := range o.texts {
		f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
		if err != nil {
			return false
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return false
			}
			as := lastElement(p)
			if i.Name != nil {
				as = i.Name.Name
			}
			switch {
			case as != name && p != imported:
			case as == name && p == imported:
				seen = true
			default:
				return false
			}
		}
	}
	return seen
}

// bindsJS finds a name that is bound to something else than the package.
func (o *ownFiles) bindsJS(name, pkg string) bool {
	declared := regexp.MustCompile(`\b(?:const|let|var|function|class|import)\s+(?:\*\s+as\s+|\{[^}]*)?` + regexp.QuoteMeta(name) + `\b[^\n;]*`)
	for _, text := range o.texts {
		for _, m := range declared.FindAllString(text, -1) {
			if !strings.Contains(m, `"`+pkg+`"`) && !strings.Contains(m, "'"+pkg+"'") {
				return true
			}
		}
	}
	return false
}

// bindsPython finds a name that stands for something else than the module, and
// imports whether the module is imported at all.
func (o *ownFiles) bindsPython(name string) (binds, imports bool) {
	q := regexp.QuoteMeta(name)
	bound := regexp.MustCompile(`(?m)\bas\s+` + q + `\b|^\s*` + q + `\s*(?::[^=\n]+)?=|\bfor\s+` + q + `\b|\bdef\s+` + q + `\b|\bclass\s+` + q + `\b|[(,]\s*` + q + `\s*[:,=)]|\bimport\s+(?:[\w., ]*,\s*)?` + q + `\b`)
	imported := regexp.MustCompile(`(?m)^\s*(?:import\s+(?:[\w.]+\s*,\s*)*` + q + `\b|from\s+` + q + `\b)`)
	plain := regexp.MustCompile(`(?m)^\s*import\s+(?:[\w.]+\s*,\s*)*` + q + `\s*(?:$|[,#.])`)
	for _, text := range o.texts {
		imports = imported.MatchString(text) || imports
		rest := plain.ReplaceAllString(text, "")
		binds = binds || bound.MatchString(rest)
	}
	return binds, imports
}
