package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Bounds of what one run reads.
const (
	maxFile  = 4 << 20  // one file
	maxRead  = 32 << 20 // all of them
	maxDirs  = 64       // directories on the way up
	maxNames = 20_000   // entries of a directory
)

// tree is the work tree that a probe may read: no path and no link leads out of
// it.
type tree struct {
	root *os.Root
	p    *probe
	cwd  string // of the agent, relative, "." at the top
}

// files opens the work tree.
func (p *probe) files() (*tree, error) {
	if p.tree != nil {
		return p.tree, nil
	}
	if !below(p.Dir, p.Cwd) {
		return nil, fmt.Errorf("the agent stands outside %s", p.Dir)
	}
	rel, err := filepath.Rel(p.Dir, p.Cwd)
	if err != nil {
		return nil, fmt.Errorf("find the agent's directory: %w", err)
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	p.tree = &tree{root: root, p: p, cwd: filepath.ToSlash(rel)}
	return p.tree, nil
}

const openFlags = os.O_RDONLY | syscall.O_NONBLOCK // a pipe in a file's place must not block

// file reads a file of the tree. fs.ErrNotExist is the only error that means it
// is not there: a link that leads out is there and cannot be read.
func (t *tree) file(name string) (string, error) {
	f, err := t.root.OpenFile(name, openFlags, 0)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return t.p.readAll(f)
}

// head reads the beginning of a file.
func (t *tree) head(name string, n int64) (string, error) {
	f, err := t.root.OpenFile(name, openFlags, 0)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, n))
	t.p.read += int64(len(b))
	return string(b), err
}

// has reports whether something stands at name; what cannot be looked at counts
// as an error.
func (t *tree) has(name string) (bool, error) {
	_, err := t.root.Lstat(name)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	}
	return false, fmt.Errorf("look for %s: %w", name, err)
}

// names lists a directory.
func (t *tree) names(dir string) ([]fs.DirEntry, error) {
	f, err := t.root.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	if len(entries) > maxNames {
		return nil, fmt.Errorf("list %s: %w", dir, ErrCap)
	}
	return entries, nil
}

// up lists the agent's directory and those above it, to the top.
func (t *tree) up() []string {
	dirs := []string{t.cwd}
	for d := t.cwd; d != "." && len(dirs) < maxDirs; {
		d = path.Dir(d)
		dirs = append(dirs, d)
	}
	return dirs
}

// nearest finds the first directory on the way up that has one of the names, and
// which of them it has.
func (t *tree) nearest(names ...string) (dir string, found []string, err error) {
	for _, d := range t.up() {
		for _, n := range names {
			ok, err := t.has(path.Join(d, n))
			if err != nil {
				return "", nil, err
			}
			if ok {
				found = append(found, n)
			}
		}
		if len(found) > 0 {
			return d, found, nil
		}
	}
	return "", nil, nil
}

func (p *probe) readAll(f *os.File) (string, error) {
	defer f.Close()
	if err := p.ctx.Err(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: not a regular file", info.Name())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", info.Name(), err)
	}
	if p.read += int64(len(b)); len(b) > maxFile || p.read > maxRead {
		return "", fmt.Errorf("read %s: %w", info.Name(), ErrCap)
	}
	return string(b), nil
}

// outside reads a file of the machine or of the user, named by this package and
// never by a project.
func (p *probe) outside(name string) (string, error) {
	f, err := os.OpenFile(name, openFlags, 0)
	if err != nil {
		return "", err
	}
	return p.readAll(f)
}

// home reads a file below the user's home; fs.ErrNotExist without one.
func (p *probe) home(name string) (string, error) {
	if p.Home == "" {
		return "", fs.ErrNotExist
	}
	return p.outside(filepath.Join(p.Home, name))
}

// absent reports whether err says that there is no such file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// rel turns a path parameter, which is absolute and resolved, into one of the
// tree.
func (t *tree) rel(abs string) (string, error) {
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(t.p.Cwd, abs)
	}
	if !below(t.p.Dir, abs) {
		return "", fmt.Errorf("%s is outside of the work tree", path.Base(abs))
	}
	rel, err := filepath.Rel(t.p.Dir, abs)
	if err != nil {
		return "", err
	}
	return filepath.ToSlash(rel), nil
}

// lines are the lines of a text that say something: blank ones and those that
// begin with the mark of a comment are left out.
func lines(text, comment string) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, comment) {
			out = append(out, l)
		}
	}
	return out
}
