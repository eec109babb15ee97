// Package gitrepo reads a git repository without git: where it is, what HEAD
// names, its index, its configuration, and whether the work tree differs from
// both. Nothing that a repository brings along ever runs: no hook, no filter, no
// fsmonitor, no pager (13.1). What cannot be told without running one of them is
// unknown, never a guess. Nothing is written; what a state means for a claim is
// decided elsewhere.
package gitrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNone says that a directory is no work tree of a repository.
var ErrNone = errors.New("no git repository here")

// ErrForeign says that a work tree points at a repository that does not know it.
var ErrForeign = errors.New("the repository does not know this work tree")

// Bounds on what is read.
const (
	maxSmall  = 1 << 20   // a ref, HEAD, a configuration, an ignore file
	maxIndex  = 64 << 20  // an index of about half a million files
	maxObject = 16 << 20  // one commit, inflated
	maxPack   = 256 << 20 // one pack index
)

// Repo is one work tree and its repository.
type Repo struct {
	Top    string // the work tree
	Dir    string // its own directory: HEAD, index
	Common string // shared by all work trees: refs, objects, config
	// Linked says that it is a linked work tree, Sub that it is a submodule.
	Linked, Sub bool
}

// Open finds the repository of a work tree's top directory. The .git file of a
// linked work tree or a submodule is believed only when the repository it points
// at names the work tree in turn, or lies below it.
func Open(top string) (*Repo, error) {
	dot := filepath.Join(top, ".git")
	info, err := os.Lstat(dot)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("open repository: %w", err)
	case info.IsDir():
		r := &Repo{Top: top, Dir: dot, Common: dot}
		if _, err := readFile(filepath.Join(dot, "HEAD"), maxSmall); err != nil {
			return nil, fmt.Errorf("open repository: %w", err)
		}
		return r, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open repository: %s is no directory and no file: %w", dot, ErrForeign)
	}
	b, err := readFile(dot, 4096)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok {
		return nil, fmt.Errorf("open repository: %s names no directory: %w", dot, ErrForeign)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	r := &Repo{Top: top, Dir: filepath.Clean(dir), Common: filepath.Clean(dir)}
	if b, err := readFile(filepath.Join(r.Dir, "commondir"), 4096); err == nil {
		common := strings.TrimSpace(string(b))
		if !filepath.IsAbs(common) {
			common = filepath.Join(r.Dir, common)
		}
		r.Common, r.Linked = filepath.Clean(common), true
		back, err := readFile(filepath.Join(r.Dir, "gitdir"), 4096)
		if err != nil || !same(r.Dir, strings.TrimSpace(string(back)), dot) || filepath.Dir(filepath.Dir(r.Dir)) != r.Common {
			return nil, fmt.Errorf("open repository: %w", ErrForeign)
		}
		return r, nil
	}
	// A submodule: its directory lies in modules/ of the repository round it.
	r.Sub = true
	cfg, err := r.Config()
	if err != nil {
		return nil, err
	}
	tree := cfg.Get("core.worktree")
	if tree == "" || !same(r.Dir, tree, top) || !strings.Contains(r.Dir, string(filepath.Separator)+"modules"+string(filepath.Separator)) {
		return nil, fmt.Errorf("open repository: %w", ErrForeign)
	}
	return r, nil
}

// same reports whether path, from dir when it is relative, is the file that want
// is, links on the way resolved.
func same(dir, path, want string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(want)
	return err == nil && os.SameFile(a, b)
}

// Main is the work tree that the repository was made with, "" for a bare one.
func (r *Repo) Main() string {
	if !r.Linked {
		return r.Top
	}
	if filepath.Base(r.Common) == ".git" {
		return filepath.Dir(r.Common)
	}
	return ""
}

// Trees lists the work trees of the repository, the main one first.
func (r *Repo) Trees() []string {
	var out []string
	if m := r.Main(); m != "" && !r.Sub {
		out = append(out, m)
	}
	entries, err := os.ReadDir(filepath.Join(r.Common, "worktrees"))
	if err != nil || len(entries) > 1000 {
		return out
	}
	for _, e := range entries {
		b, err := readFile(filepath.Join(r.Common, "worktrees", e.Name(), "gitdir"), 4096)
		if err != nil {
			continue
		}
		if dot := strings.TrimSpace(string(b)); filepath.IsAbs(dot) && filepath.Base(dot) == ".git" {
			out = append(out, filepath.Dir(dot))
		}
	}
	return out
}

// Worktrees counts the linked work trees.
func (r *Repo) Worktrees() int {
	entries, err := os.ReadDir(filepath.Join(r.Common, "worktrees"))
	if err != nil {
		return 0
	}
	return len(entries)
}

// Head is what HEAD names. Commit is "" for a branch without commits.
type Head struct {
	Branch   string // "" when detached
	Commit   string
	Detached bool
}

// Head reads HEAD and follows it to a commit.
func (r *Repo) Head() (Head, error) {
	b, err := readFile(filepath.Join(r.Dir, "HEAD"), maxSmall)
	if err != nil {
		return Head{}, fmt.Errorf("read HEAD: %w", err)
	}
	text := strings.TrimSpace(string(b))
	if name, ok := strings.CutPrefix(text, "ref: "); ok {
		name = strings.TrimSpace(name)
		branch, ok := strings.CutPrefix(name, "refs/heads/")
		if !ok || !refName(name) {
			return Head{}, errors.New("read HEAD: it names no branch")
		}
		if branch == ".invalid" { // of the reftable format, whose refs stand elsewhere
			return Head{}, errors.New("read HEAD: the references are kept in a form that is not read here")
		}
		commit, err := r.Ref(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Head{}, err
		}
		return Head{Branch: branch, Commit: commit}, nil
	}
	if !isHash(text) {
		return Head{}, errors.New("read HEAD: it names neither a branch nor a commit")
	}
	return Head{Commit: text, Detached: true}, nil
}

// Ref resolves a full reference name to a commit; fs.ErrNotExist when there is none.
func (r *Repo) Ref(name string) (string, error) {
	for range 5 {
		if !refName(name) {
			return "", fmt.Errorf("read reference: %q is no name of one", name)
		}
		text, err := r.loose(name)
		if errors.Is(err, fs.ErrNotExist) {
			return r.packed(name)
		}
		if err != nil {
			return "", fmt.Errorf("read reference: %w", err)
		}
		next, symbolic := strings.CutPrefix(text, "ref: ")
		if !symbolic {
			if !isHash(text) {
				return "", fmt.Errorf("read reference: %s holds no commit", name)
			}
			return text, nil
		}
		name = strings.TrimSpace(next)
	}
	return "", errors.New("read reference: a chain of more than five")
}

// Symbolic is the name that a symbolic reference points at, "" for none.
func (r *Repo) Symbolic(name string) string {
	text, err := r.loose(name)
	if err != nil {
		return ""
	}
	next, ok := strings.CutPrefix(text, "ref: ")
	if !ok || !refName(strings.TrimSpace(next)) {
		return ""
	}
	return strings.TrimSpace(next)
}

func (r *Repo) loose(name string) (string, error) {
	b, err := readFile(filepath.Join(r.Common, filepath.FromSlash(name)), maxSmall)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

func (r *Repo) packed(name string) (string, error) {
	b, err := readFile(filepath.Join(r.Common, "packed-refs"), 16*maxSmall)
	if err != nil {
		return "", fmt.Errorf("read reference %s: %w", name, fs.ErrNotExist)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if h, n, ok := strings.Cut(line, " "); ok && n == name && isHash(h) {
			return h, nil
		}
	}
	return "", fmt.Errorf("read reference %s: %w", name, fs.ErrNotExist)
}

// refName refuses what would leave the directory of references.
func refName(name string) bool {
	if !strings.HasPrefix(name, "refs/") || len(name) > 1024 || strings.ContainsAny(name, "\x00\\ ~^:?*[\n") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") && part != ".invalid" || strings.HasSuffix(part, ".lock") || strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

func isHash(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// Doing names an operation that stopped half-way, "" for none.
func (r *Repo) Doing() string {
	for _, s := range [...][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(r.Dir, s[0])); err == nil {
			return s[1]
		}
	}
	return ""
}

// Stashes counts the entries of the stash, which all work trees share.
func (r *Repo) Stashes() (int, error) {
	b, err := readFile(filepath.Join(r.Common, "logs", "refs", "stash"), 4*maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := r.Ref("refs/stash"); err == nil {
			return 1, nil
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count stashes: %w", err)
	}
	return strings.Count(string(b), "\n"), nil
}

// Locked says that some program holds the index right now.
func (r *Repo) Locked() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, "index.lock"))
	return err == nil
}

// readFile reads a regular file of at most limit bytes and never waits for the
// other end of a pipe that stands in its place.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

func readAll(f fs.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", info.Name())
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", info.Name(), limit)
	}
	b := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, fmt.Errorf("%s has more than %d bytes", info.Name(), limit)
		}
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
