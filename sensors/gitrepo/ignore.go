package gitrepo

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one line of an ignore or attributes file.
type pattern struct {
	base    string // directory of the file, "" for the top, else with a slash at its end
	glob    string
	path    bool // holds a slash, so it is matched from base; else at any depth
	dirOnly bool
	negated bool
}

// Ignores tells which untracked files a repository does not want to hear of.
// The zero value ignores nothing.
type Ignores struct{ files []pattern }

// maxPatterns bounds the patterns that are kept in all.
const maxPatterns = 20_000

// Ignores reads what applies to the whole tree: the user's file, the
// repository's, and the one at the top. home may be "".
func (r *Repo) Ignores(home string) *Ignores {
	g := &Ignores{}
	for _, path := range []string{r.userIgnores(home), filepath.Join(r.Common, "info", "exclude"), filepath.Join(r.Top, ".gitignore")} {
		if path == "" {
			continue
		}
		if b, err := readFile(path, maxSmall); err == nil {
			g.add("", string(b))
		}
	}
	return g
}

// userIgnores is where the user's own patterns stand.
func (r *Repo) userIgnores(home string) string {
	if home == "" {
		return ""
	}
	for _, path := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config")} {
		b, err := readFile(path, maxSmall)
		if err != nil {
			continue
		}
		v := ParseConfig(string(b)).Get("core.excludesfile")
		if rest, ok := strings.CutPrefix(v, "~/"); ok {
			v = filepath.Join(home, rest)
		}
		if filepath.IsAbs(v) {
			return v
		}
	}
	return filepath.Join(home, ".config", "git", "ignore")
}

// With adds the patterns of a directory's own file; dir ends in a slash, "" is
// the top. g itself stays as it is.
func (g *Ignores) With(dir, text string) *Ignores {
	out := &Ignores{files: g.files[:len(g.files):len(g.files)]}
	out.add(dir, text)
	return out
}

func (g *Ignores) add(dir, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if p, ok := parsePattern(dir, strings.TrimSuffix(line, "\r")); ok && len(g.files) < maxPatterns {
			g.files = append(g.files, p)
		}
	}
}

func parsePattern(dir, line string) (pattern, bool) {
	p := pattern{base: dir}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated, line = true, line[1:]
	} else if strings.HasPrefix(line, `\#`) || strings.HasPrefix(line, `\!`) {
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, strings.TrimSuffix(line, "/")
	}
	p.path = strings.Contains(line, "/")
	p.glob = strings.TrimPrefix(line, "/")
	if rest, ok := strings.CutPrefix(p.glob, "**/"); ok && !strings.Contains(rest, "/") {
		p.glob, p.path = rest, false
	}
	return p, p.glob != "" && doublestar.ValidatePattern(p.glob)
}

func (p *pattern) matches(path string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	rel, ok := strings.CutPrefix(path, p.base)
	if !ok {
		return false
	}
	if !p.path {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	// Braces are plain characters to git.
	glob := p.glob
	if strings.ContainsAny(glob, "{}") {
		glob = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(glob)
	}
	return doublestar.MatchUnvalidated(glob, rel)
}

// Match reports whether a path, with slashes and from the top, is ignored by
// itself; whoever walks asks for each directory first.
func (g *Ignores) Match(path string, dir bool) bool {
	for i := len(g.files) - 1; i >= 0; i-- {
		if g.files[i].matches(path, dir) {
			return !g.files[i].negated
		}
	}
	return false
}

// Ignored reports whether a path or a directory above it is ignored, reading the
// files of the directories on the way.
func (r *Repo) Ignored(home, path string) bool {
	g := r.Ignores(home)
	parts := strings.Split(path, "/")
	for i := range parts {
		dir := i < len(parts)-1
		at := strings.Join(parts[:i+1], "/")
		if !dir {
			if info, err := os.Lstat(filepath.Join(r.Top, filepath.FromSlash(at))); err == nil {
				dir = info.IsDir()
			}
		}
		if g.Match(at, dir) {
			return true
		}
		if i < len(parts)-1 {
			if b, err := readFile(filepath.Join(r.Top, filepath.FromSlash(at), ".gitignore"), maxSmall); err == nil {
				g = g.With(at+"/", string(b))
			}
		}
	}
	return false
}

// Attributes lists what the attributes files say of a path, the strongest
// last: name, -name or name=value.
func (r *Repo) Attributes(path string) []string {
	var out []string
	take := func(file, dir string) {
		b, err := readFile(file, maxSmall)
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) < 2 || strings.HasPrefix(f[0], "[attr]") {
				continue
			}
			if p, ok := parsePattern(dir, f[0]); ok && !p.negated && p.matches(path, false) {
				out = append(out, f[1:]...)
			}
		}
	}
	take(filepath.Join(r.Top, ".gitattributes"), "")
	for i, c := range path {
		if c == '/' {
			take(filepath.Join(r.Top, filepath.FromSlash(path[:i]), ".gitattributes"), path[:i+1])
		}
	}
	take(filepath.Join(r.Common, "info", "attributes"), "")
	return out
}
