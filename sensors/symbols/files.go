package symbols

import (
	"context"
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

// search is one look-up with what it may still read.
type search struct {
	ctx   context.Context
	w     Where
	top   *os.Root
	open  []*os.Root
	bytes int64
	files int
}

func (s *search) close() {
	for _, r := range s.open {
		r.Close()
	}
}

// dir is a directory whose files are read without leaving the root it was opened
// under.
type dir struct {
	s    *search
	root *os.Root
	path string // below root, with slashes, "." for itself
	name string // how it is called in an answer
}

var errCap = errors.New("more than a look-up reads")

// project is the work tree.
func (s *search) project() (dir, error) {
	if s.top == nil {
		r, err := os.OpenRoot(s.w.Top)
		if err != nil {
			return dir{}, fmt.Errorf("open the work tree: %w", err)
		}
		s.top = r
		s.open = append(s.open, r)
	}
	return dir{s: s, root: s.top, path: "."}, nil
}

// outside opens a directory of the machine: a module cache, a library.
func (s *search) outside(name string) (dir, error) {
	r, err := os.OpenRoot(name)
	if err != nil {
		return dir{}, err
	}
	s.open = append(s.open, r)
	return dir{s: s, root: r, path: ".", name: name}, nil
}

// up lists the agent's directory and those above it, to the top of the tree.
func (s *search) up() ([]dir, error) {
	d, err := s.project()
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(s.w.Top, s.w.Cwd)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil, errors.New("the agent stands outside of the work tree")
	}
	var out []dir
	for at := filepath.ToSlash(rel); len(out) < maxDirs; at = path.Dir(at) {
		out = append(out, d.at(at))
		if at == "." {
			break
		}
	}
	return out, nil
}

func (d dir) at(name string) dir {
	d.path = path.Join(d.path, name)
	return d
}

func (d dir) has(name string) bool {
	_, err := d.root.Stat(path.Join(d.path, name))
	return err == nil
}

func (d dir) isDir(name string) bool {
	info, err := d.root.Stat(path.Join(d.path, name))
	return err == nil && info.IsDir()
}

const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// read reads a file whole, or fails: half a file proves nothing.
func (d dir) read(name string) (string, error) {
	if err := d.s.ctx.Err(); err != nil {
		return "", err
	}
	f, err := d.root.OpenFile(path.Join(d.path, name), openFlags, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: not a regular file", name)
	}
	if info.Size() > maxFile {
		return "", errCap
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	d.s.files++
	if d.s.bytes += int64(len(b)); len(b) > maxFile || d.s.bytes > maxBytes || d.s.files > maxFiles {
		return "", errCap
	}
	return string(b), nil
}

// list reads a directory.
func (d dir) list() ([]fs.DirEntry, error) {
	f, err := d.root.Open(d.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxFiles {
		return nil, errCap
	}
	return entries, nil
}

func (s *search) env(name string) string {
	if s.w.Env == nil {
		return ""
	}
	v, _ := s.w.Env(name)
	return v
}

// program finds a program on the agent's PATH, links resolved; "" for none.
func (s *search) program(name string) string {
	for _, d := range filepath.SplitList(s.env("PATH")) {
		if !filepath.IsAbs(d) {
			return ""
		}
		file := filepath.Join(d, name)
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil || strings.Contains(file, "/shims/") || strings.Contains(real, "/shims/") {
			return ""
		}
		return real
	}
	return ""
}
