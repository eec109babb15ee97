package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Status is how a work tree differs from its last commit.
type Status struct {
	Staged    bool // the index differs from HEAD
	Modified  int  // tracked files with another content or mode
	Deleted   int
	Conflicts int
	Untracked int // files, and directories without any tracked file counted once
	// Unknown says why one of the above may be more than it says, "" when all is
	// certain: a filter that would have to run, a submodule, a bound.
	Unknown string
}

// Clean reports whether nothing would be lost; ok is false when that cannot be
// told. What is known to differ is dirty whatever else is unknown.
func (s Status) Clean() (clean, ok bool) {
	if s.Staged || s.Modified+s.Deleted+s.Conflicts+s.Untracked > 0 {
		return false, true
	}
	return true, s.Unknown == ""
}

// Limits of one look at a work tree.
const (
	maxHashed  = 64 << 20 // bytes of files whose times say nothing
	maxVisited = 60_000   // directory entries looked at for untracked files
)

// Status compares the work tree with the index and the index with HEAD. home is
// where the user's own ignore file stands.
func (r *Repo) Status(ctx context.Context, home string) (Status, error) {
	x, err := r.Index()
	if err != nil {
		return Status{}, err
	}
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return Status{}, fmt.Errorf("look at the work tree: %w", err)
	}
	defer root.Close()
	cfg, err := r.Config()
	if err != nil {
		return Status{}, err
	}
	w := &work{ctx: ctx, r: r, x: x, root: root, ignoreMode: cfg.Get("core.filemode") != "" && !isTrue(cfg.Get("core.filemode"))}
	defer w.leave()
	w.staged()
	last := ""
	for i := range x.Entries {
		e := &x.Entries[i]
		if err := ctx.Err(); err != nil {
			return Status{}, fmt.Errorf("look at the work tree: %w", err)
		}
		if e.Stage != 0 {
			if e.Path != last {
				w.s.Conflicts++
			}
			last = e.Path
			continue
		}
		if !e.Assume && !e.Skip {
			w.tracked(e)
		}
	}
	if err := w.untracked(home); err != nil {
		return Status{}, err
	}
	return w.s, nil
}

type work struct {
	ctx        context.Context
	r          *Repo
	x          *Index
	root       *os.Root
	ignoreMode bool
	s          Status
	hashed     int64
	visited    int
	dir        string   // of the entry looked at last
	in         *os.Root // that directory, nil when it cannot be entered
}

func (w *work) leave() {
	if w.in != nil && w.in != w.root {
		w.in.Close()
	}
	w.in = nil
}

func (w *work) unknown(why string) {
	if w.s.Unknown == "" {
		w.s.Unknown = why
	}
}

// staged compares the tree that the index would make with that of HEAD.
func (w *work) staged() {
	head, err := w.r.Head()
	if err != nil {
		w.unknown("HEAD cannot be read")
		return
	}
	for _, e := range w.x.Entries {
		if e.Stage != 0 {
			w.s.Staged = true
			return
		}
	}
	if head.Commit == "" {
		w.s.Staged = len(w.x.Entries) > 0
		return
	}
	tree, ok := w.x.Tree()
	if !ok {
		w.unknown("a sparse index")
		return
	}
	committed, err := w.r.CommitTree(head.Commit)
	if err != nil {
		w.unknown("the last commit cannot be read")
		return
	}
	w.s.Staged = tree != committed
}

// enter makes w.in the directory of path.
func (w *work) enter(dir string) *os.Root {
	if w.in != nil && w.dir == dir {
		return w.in
	}
	w.leave()
	w.dir, w.in = dir, w.root
	if dir != "" {
		in, err := w.root.OpenRoot(dir)
		if err != nil {
			w.in, w.dir = nil, ""
			return nil
		}
		w.in = in
	}
	return w.in
}

func safePath(p string) bool {
	return fs.ValidPath(p) && p != "." && !slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return strings.EqualFold(s, ".git") })
}

// tracked compares one file with its entry: by size and time when they tell,
// else by content.
func (w *work) tracked(e *Entry) {
	if !safePath(e.Path) {
		w.unknown("the index names a path that cannot be")
		return
	}
	dir, name := path.Split(e.Path)
	in := w.enter(strings.TrimSuffix(dir, "/"))
	if in == nil {
		w.s.Deleted++
		return
	}
	info, err := in.Lstat(name)
	if err != nil {
		w.s.Deleted++
		return
	}
	switch e.Mode & 0o170000 {
	case 0o160000:
		w.submodule(e)
		return
	case 0o120000:
		if info.Mode()&fs.ModeSymlink == 0 {
			w.s.Modified++
			return
		}
		to, err := in.Readlink(name)
		if err != nil || objectName(w.x.SHA256, "blob", []byte(to)) != e.Hash {
			w.s.Modified++
		}
		return
	}
	if !info.Mode().IsRegular() || !w.ignoreMode && (info.Mode()&0o100 != 0) != (e.Mode&0o100 != 0) || e.Intent {
		w.s.Modified++
		return
	}
	times := info.ModTime().Unix() == e.Mtime.Unix() && (e.Mtime.Nanosecond() == 0 || info.ModTime().Nanosecond() == e.Mtime.Nanosecond())
	if times && uint32(info.Size()) == e.Size && e.Mtime.Before(w.x.Written) {
		return
	}
	if w.hashed += info.Size(); w.hashed > maxHashed {
		w.unknown("too many files changed their times")
		return
	}
	w.compare(in, name, e)
}

// compare reads a file whose times say nothing.
func (w *work) compare(in *os.Root, name string, e *Entry) {
	f, err := in.OpenFile(name, openFlags, 0)
	if err != nil {
		w.unknown("a file cannot be read")
		return
	}
	defer f.Close()
	b, err := readAll(f, maxHashed)
	if err != nil {
		w.unknown("a file cannot be read")
		return
	}
	if objectName(w.x.SHA256, "blob", b) == e.Hash {
		return
	}
	// What git stores may be another form of what stands in the tree. Only line
	// ends can be told without running anything.
	for _, a := range w.r.Attributes(e.Path) {
		if strings.HasPrefix(a, "filter=") || strings.HasPrefix(a, "working-tree-encoding") || a == "ident" {
			w.unknown("a filter decides about " + path.Base(e.Path))
			return
		}
	}
	if bytes.Contains(b, []byte("\r\n")) && objectName(w.x.SHA256, "blob", bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))) == e.Hash {
		w.unknown("line ends differ")
		return
	}
	w.s.Modified++
}

// submodule compares the commit that a submodule stands at; what is changed
// inside it is not looked for.
func (w *work) submodule(e *Entry) {
	sub, err := Open(w.r.Top + "/" + e.Path)
	if err != nil {
		return // not checked out
	}
	if head, err := sub.Head(); err == nil && head.Commit != e.Hash {
		w.s.Modified++
		return
	}
	w.unknown("a submodule is not looked into")
}

// untracked walks the tree for files that neither the index nor an ignore
// pattern knows.
func (w *work) untracked(home string) error {
	_, err := w.walk("", w.r.Ignores(home), false)
	return err
}

// walk counts below dir; with first it only tells whether there is any.
func (w *work) walk(dir string, g *Ignores, first bool) (bool, error) {
	if err := w.ctx.Err(); err != nil {
		return false, fmt.Errorf("look at the work tree: %w", err)
	}
	if strings.Count(dir, "/") > maxTreeDepth {
		w.unknown("directories nested too deep")
		return false, nil
	}
	at := "."
	if dir != "" {
		at = strings.TrimSuffix(dir, "/")
	}
	f, err := w.root.Open(at)
	if err != nil {
		w.unknown("a directory cannot be read")
		return false, nil
	}
	entries, err := f.ReadDir(maxVisited + 1 - w.visited)
	f.Close()
	if err != nil && len(entries) == 0 {
		return false, nil // empty
	}
	if w.visited += len(entries); w.visited > maxVisited {
		w.unknown("more than 60000 files")
		return false, nil
	}
	if dir != "" && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" && e.Type().IsRegular() }) {
		if f, err := w.root.OpenFile(dir+".gitignore", openFlags, 0); err == nil {
			if b, err := readAll(f, maxSmall); err == nil {
				g = g.With(dir, string(b))
			}
			f.Close()
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if strings.EqualFold(e.Name(), ".git") {
			continue
		}
		name := dir + e.Name()
		if !e.IsDir() {
			if _, ok := w.x.Find(name); ok || g.Match(name, false) || !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			w.s.Untracked++
			if first {
				return true, nil
			}
			continue
		}
		if _, sub := w.x.Find(name); sub || g.Match(name, true) && !w.x.Holds(name) {
			continue
		}
		if g.Match(name, true) {
			continue // what is not tracked in it is ignored
		}
		if _, err := w.root.Lstat(name + "/.git"); err == nil && !w.x.Holds(name) {
			w.s.Untracked++ // a repository of its own
			if first {
				return true, nil
			}
			continue
		}
		found, err := w.walk(name+"/", g, first || !w.x.Holds(name))
		if err != nil {
			return false, err
		}
		if found && first {
			return true, nil
		}
	}
	return false, nil
}
