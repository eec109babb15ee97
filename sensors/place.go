package sensors

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/sensors/spec"
)

// stand finds the directory a sensor runs in: cwd: project is the project's
// root, worktree the work tree that the agent stands in, config the registry
// file's directory, empty one without files. Without a project the file's
// directory is the default.
func stand(s *spec.Sensor, root, cwd string) (place, error) {
	home := filepath.Dir(s.File)
	at := place{root: root}
	switch {
	case s.Cwd == "config", s.Cwd == "" && root == "":
		at.dir = home
	case s.Cwd == "worktree":
		if root == "" || cwd == "" {
			return place{}, errors.New("no work tree is known here")
		}
		top, err := worktree(root, cwd)
		if err != nil {
			return place{}, err
		}
		at.root, at.dir = top, top
	case s.Cwd == "empty":
		at.dir, at.empty = "/", true // root's own where the sandbox has no empty one
	case s.Cwd == "" || s.Cwd == "project":
		if root == "" {
			return place{}, errors.New("no project is known here")
		}
		at.dir = root
	default:
		at.dir = s.Cwd
	}
	if at.dir == "" || !filepath.IsAbs(at.dir) {
		return place{}, fmt.Errorf("%q is not a directory to run in", at.dir)
	}
	return at, nil
}

// worktree walks up from cwd to the top of its work tree. A tree outside the
// project counts only when the project's repository knows it.
func worktree(root, cwd string) (string, error) {
	dir, err := filepath.EvalSymlinks(cwd)
	if err != nil || !filepath.IsAbs(dir) {
		return "", errors.New("the agent's directory cannot be resolved")
	}
	for top := dir; ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		if err == nil {
			if below(root, top) || top == root || info.Mode().IsRegular() && linked(root, top) {
				return top, nil
			}
			return "", errors.New("the agent stands in a work tree of another repository")
		}
		if top == root {
			return root, nil
		}
		if top == filepath.Dir(top) {
			return "", errors.New("the agent stands in no work tree of the project")
		}
	}
}

// linked reports whether root's repository lists top as one of its work trees,
// which its own file below .git/worktrees says; top's word alone is not enough.
func linked(root, top string) bool {
	b, err := readSmall(filepath.Join(top, ".git"), 4096)
	if err != nil {
		return false
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok || !below(filepath.Join(root, ".git", "worktrees"), dir) {
		return false
	}
	back, err := readSmall(filepath.Join(dir, "gitdir"), 4096)
	return err == nil && filepath.Clean(strings.TrimSpace(string(back))) == filepath.Join(top, ".git")
}

// resolver makes a spec.Resolve for one place: absolute from its directory,
// links followed as far as the path exists. A link that leads nowhere is
// refused, since what it will point at is not known.
func resolver(dir string) spec.Resolve {
	return func(path string) (string, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return follow(filepath.Clean(path))
	}
}

func follow(path string) (string, error) {
	full, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return full, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("resolve %s: a link that leads nowhere", path)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	parent, err = follow(parent)
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// cleanPath drops the entries of a PATH that depend on the working directory.
func cleanPath(path string) string {
	var keep []string
	for _, d := range filepath.SplitList(path) {
		if filepath.IsAbs(d) {
			keep = append(keep, d)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator))
}

// lookPath finds a program by its bare name on path.
func lookPath(name, path string) (string, error) {
	denied := false
	for _, d := range filepath.SplitList(path) {
		p := filepath.Join(d, name)
		info, err := os.Stat(p)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode().Perm()&0o111 == 0 {
			denied = true
			continue
		}
		return p, nil
	}
	if denied {
		return "", fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// asData lists programs that only read the files they are given. What such a
// file says is what the sensor measures, so it is not pinned; for every other
// program a file among its arguments may be code.
var asData = map[string]bool{
	"cat": true, "grep": true, "egrep": true, "fgrep": true, "head": true, "tail": true, "wc": true, "cut": true, "sort": true,
	"uniq": true, "stat": true, "ls": true, "sha256sum": true, "sha1sum": true, "md5sum": true, "cksum": true, "test": true,
	"file": true, "diff": true, "cmp": true, "readlink": true, "realpath": true, "du": true, "od": true, "strings": true, "jq": true,
}

// steering lists, by program, the files of its working directory that decide
// what it runs though no argument names them. A trailing pattern is a glob.
var steering = map[string][]string{
	"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"},
	"npm": nodeFiles, "npx": nodeFiles, "pnpm": nodeFiles, "yarn": nodeFiles, "bun": nodeFiles, "bunx": nodeFiles,
	"go": {"go.mod", "go.work", "*.go"}, "just": {"justfile", "Justfile", ".justfile"},
	"cargo": rustFiles, "rustc": rustFiles, "rustup": rustFiles,
	"rake": {"Rakefile", "Gemfile", ".bundle/config"}, "bundle": {"Gemfile", ".bundle/config"}, "ruby": {".ruby-version"},
	"gradlew": {"gradle/wrapper/gradle-wrapper.jar", "gradle/wrapper/gradle-wrapper.properties", "build.gradle*", "settings.gradle*"},
	"mvnw":    {".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml", "pom.xml"}, "mvn": {".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml", "pom.xml"},
	"direnv": {".envrc"}, "mise": {"mise.toml", ".mise.toml", ".tool-versions"}, "tox": {"tox.ini"}, "pytest": {"conftest.py", "pytest.ini", "setup.cfg", "pyproject.toml", "tox.ini"},
	"terraform": {"*.tf", ".terraformrc"}, "php": {"php.ini"}, "composer": {"composer.json"},
}

var (
	rustFiles = []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"}
	// pythonFiles are what an import in the working directory may find.
	pythonFiles = []string{"*.py", "*.pyc", "*.so", "*/__init__.py"}
	// runners run a program of node_modules by its name.
	runners = map[string]bool{"npx": true, "npm": true, "pnpm": true, "yarn": true, "bun": true, "bunx": true}
)

var nodeFiles = []string{"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", "pnpm-workspace.yaml"}

// maxPins bounds how many files one sensor may depend on.
const maxPins = 200

// place is where a sensor would run.
type place struct {
	root string // the project, or the worktree that stands for it; "" for host
	dir  string // working directory
	// empty: the sandbox gives it a directory without files, in place of dir.
	empty bool
}

// base is where its paths begin. One that stands nowhere is given the files of
// the project as arguments.
func (p place) base() string {
	if p.empty && p.root != "" {
		return p.root
	}
	return p.dir
}

// files finds what a sensor runs, or is steered by, among files that an agent
// could write: those below the project and those named relative to the
// working directory.
func files(s *spec.Sensor, at place) ([]string, error) {
	if len(s.Argv) == 0 {
		return nil, nil
	}
	program := filepath.Base(s.Argv[0].Text)
	found := map[string]bool{}
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found[path] = true
		}
	}
	for i, w := range s.Argv {
		text, literal := literal(w)
		switch {
		case !literal || text == "":
		case i == 0 && !strings.Contains(text, "/"):
			if path := cleanPath(os.Getenv("PATH")); offers(path, at.root) {
				if p, err := lookPath(text, path); err == nil && below(at.root, p) {
					add(p)
				}
			}
		case i > 0 && asData[program]:
		case filepath.IsAbs(text):
			if below(at.root, text) {
				add(filepath.Clean(text))
			}
		case at.dir != "":
			add(filepath.Join(at.dir, text))
			if i > 0 && runners[program] {
				binary(at.dir, text, add)
			}
			if python(program) && strings.HasSuffix(text, ".py") {
				glob(filepath.Join(at.dir, filepath.Dir(text)), "*.py", add) // importable beside the script
			}
			if _, val, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") && val != "" && !filepath.IsAbs(val) {
				add(filepath.Join(at.dir, val)) // --require=./x
			}
		}
	}
	if at.dir != "" && at.root != "" {
		patterns := steering[program]
		if python(program) && inline(s) {
			patterns = pythonFiles
		}
		for _, pattern := range patterns {
			glob(at.dir, pattern, add)
		}
	}
	out := make([]string, 0, len(found))
	for p := range found {
		out = append(out, p)
	}
	if len(out) > maxPins {
		return nil, fmt.Errorf("more than %d files of the project decide what it runs", maxPins)
	}
	slices.Sort(out)
	return out, nil
}

// offers reports whether some directory of path lies below root, as
// node_modules/.bin may.
func offers(path, root string) bool {
	return root != "" && slices.ContainsFunc(filepath.SplitList(path), func(d string) bool { return below(root, d) })
}

// inline reports whether a Python command runs a module or a text: what either
// imports is found first in the working directory.
func inline(s *spec.Sensor) bool {
	return slices.ContainsFunc(s.Argv[1:], func(w spec.Word) bool { return w.Text == "-m" || w.Text == "-c" })
}

// binary adds what node_modules/.bin of a directory or one above has under a name.
func binary(dir, name string, add func(string)) {
	if strings.ContainsAny(name, "/\\") {
		return
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "node_modules", ".bin", name)
		if full, err := filepath.EvalSymlinks(path); err == nil {
			add(full)
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

func glob(dir, pattern string, add func(string)) {
	if parent, file, ok := strings.Cut(pattern, "/"); ok && parent == "*" {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			add(filepath.Join(dir, e.Name(), file))
		}
		return
	}
	if !strings.Contains(pattern, "*") {
		add(filepath.Join(dir, pattern))
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			add(filepath.Join(dir, e.Name()))
		}
	}
}

func literal(w spec.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		if p.Param != "" {
			return "", false
		}
		b.WriteString(p.Literal)
	}
	return b.String(), true
}

// below reports whether path lies inside root, by name.
func below(root, path string) bool {
	if root == "" {
		return false
	}
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// pinned hashes what a sensor depends on at a place. project is the registered
// root under which the pins are kept.
func (h *hashes) pinned(s *spec.Sensor, at place, project string) ([]Pin, error) {
	paths, err := files(s, at)
	if err != nil {
		return nil, err
	}
	var pins []Pin
	for _, p := range paths {
		sum, err := h.of(p)
		if err != nil {
			return nil, err
		}
		pin := Pin{Path: p, SHA256: sum}
		if below(at.root, p) {
			rel, err := filepath.Rel(at.root, p)
			if err != nil {
				return nil, fmt.Errorf("name script: %w", err)
			}
			pin.Root, pin.Path = project, rel
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// drift compares what is there now with what was approved, and says what
// changed, or "".
func drift(now, approved []Pin, project string) string {
	find := func(p Pin, in []Pin) (Pin, bool) {
		i := slices.IndexFunc(in, func(o Pin) bool { return o.Root == p.Root && o.Path == p.Path })
		if i < 0 {
			return Pin{}, false
		}
		return in[i], true
	}
	for _, p := range now {
		switch was, ok := find(p, approved); {
		case !ok:
			return p.Path + " is new since the approval"
		case was.SHA256 != p.SHA256:
			return p.Path + " changed since the approval"
		}
	}
	for _, p := range approved {
		if p.Root != project || project == "" {
			continue // of another project, or of where the sensor stands without one
		}
		if _, ok := find(p, now); !ok {
			return p.Path + " is gone since the approval"
		}
	}
	return ""
}

// hashes remembers SHA-256 sums by what identifies a file's content without
// reading it.
type hashes struct {
	mu   sync.Mutex
	sums map[string]hashed
}

type hashed struct {
	id  string
	sum string
}

// settled is how old a file must be before its sum is remembered.
const settled = 2 * time.Second

// maxHashed is the largest file that is pinned.
const maxHashed = 256 << 20

func (h *hashes) of(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		h.mu.Lock()
		c, ok := h.sums[path]
		h.mu.Unlock()
		if ok && c.id == identity(info) {
			return c.sum, nil
		}
	}
	f, err := openRegular(path)
	if err != nil {
		return "", fmt.Errorf("hash script: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("hash script: %w", err)
	}
	id := identity(info)
	if info.Size() > maxHashed {
		return "", fmt.Errorf("hash script: %s: %w", path, errTooLarge)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("hash script: %w", err)
	}
	after, err := f.Stat()
	if err != nil || identity(after) != id {
		return "", errors.Join(errors.New("hash script: it changed while it was read"), err)
	}
	out := hex.EncodeToString(sum.Sum(nil))
	if time.Since(info.ModTime()) < settled {
		return out, nil // a second write within the clock's tick would look the same
	}
	h.mu.Lock()
	if h.sums == nil || len(h.sums) > 10000 {
		h.sums = map[string]hashed{}
	}
	h.sums[path] = hashed{id, out}
	h.mu.Unlock()
	return out, nil
}
