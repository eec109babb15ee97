// Package evidence looks at the disk for package action: whether what a command
// removes is made again by a build (13.6), and where a path really leads. It reads
// directories and git's own files; it runs nothing and changes nothing.
package evidence

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/shell"
)

// maxEntries bounds one look below a directory; a larger one is not vouched for.
const maxEntries = 200_000

// Disk is the disk as it is now. Since, when set, is when the task began: what
// was wholly made after it may be removed by it.
type Disk struct {
	Since time.Time
	// Changed, when set, is since when a file must have been written or changed for
	// its text to be read when it is run.
	Changed time.Time
}

var _ action.Disk = Disk{}

func no(why string) action.Evidence { return action.Evidence{Why: why} }

// Regenerable vouches for a directory that a committed .gitignore names, that
// holds no tracked file, nothing that leads out of it, no other file system and
// nothing precious, or whose every file was born after the task began.
func (d Disk) Regenerable(cwd, path string) action.Evidence {
	if !filepath.IsAbs(cwd) {
		return no("where it runs is not known")
	}
	dir, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return no("where it runs cannot be read")
	}
	full := filepath.Join(dir, filepath.Clean(path))
	if rel, err := filepath.Rel(dir, full); err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return no(path + " does not lie below where it runs")
	}
	real, err := filepath.EvalSymlinks(full)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(full); errors.Is(err, fs.ErrNotExist) {
			return action.Evidence{OK: true, Why: path + " does not exist"}
		}
		return no(path + " is a link to nowhere")
	}
	if err != nil || real != full {
		return no(path + " is reached by a link")
	}
	top, ok := worktree(real)
	if !ok || top == real {
		return d.born(real, path, no(path+" lies in no git worktree"))
	}
	rel, err := filepath.Rel(top, real)
	if err != nil {
		return no(path + " cannot be placed in its worktree")
	}
	rel = filepath.ToSlash(rel)
	repo, err := openRepo(top)
	if err != nil {
		return d.born(real, path, no("its git repository cannot be read: "+err.Error()))
	}
	if tracked := repo.tracked(rel); tracked != "" {
		return no("git tracks " + tracked)
	}
	ignored, err := repo.ignored(rel)
	if err != nil {
		return no("the committed .gitignore cannot be read: " + err.Error())
	}
	if !ignored {
		return d.born(real, path, no("no committed .gitignore names "+path))
	}
	if why := inside(real); why != "" {
		return no(why)
	}
	return action.Evidence{OK: true, Why: path + " is ignored by a committed .gitignore and holds nothing of its own"}
}

// born vouches for what is younger than the task, else it returns otherwise.
func (d Disk) born(real, path string, otherwise action.Evidence) action.Evidence {
	if d.Since.IsZero() {
		return otherwise
	}
	if why := inside(real); why != "" {
		return no(why)
	}
	n := 0
	err := filepath.WalkDir(real, func(p string, _ fs.DirEntry, err error) error {
		if n++; err != nil || n > maxEntries {
			return errStop
		}
		if b, ok := birth(p); !ok || b.Before(d.Since) {
			return errStop
		}
		return nil
	})
	if err != nil {
		return otherwise
	}
	return action.Evidence{OK: true, Why: path + " and all in it was made after the task began"}
}

var errStop = errors.New("stop")

// inside says why the content of a directory must not count as worthless, "" when
// nothing speaks against it.
func inside(root string) string {
	info, err := os.Lstat(root)
	if err != nil || !info.IsDir() {
		return filepath.Base(root) + " is no directory"
	}
	device, ok := deviceOf(info)
	if !ok {
		return "its file system is not known"
	}
	why, n := "", 0
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if n++; n > maxEntries {
			why = "it holds more than can be looked at"
			return errStop
		}
		if err != nil {
			why = "part of it cannot be read"
			return errStop
		}
		name := e.Name()
		switch {
		case p != root && name == ".git":
			why = "it holds a repository"
		case !e.IsDir() && precious(root, p):
			why = "it holds " + name
		case e.Type()&fs.ModeSymlink != 0:
			if leadsOut(root, p) {
				why = "its link " + name + " leads out of it"
			}
		case e.IsDir():
			if i, err := e.Info(); err != nil {
				why = "part of it cannot be read"
			} else if dev, ok := deviceOf(i); !ok || dev != device {
				why = "another file system is mounted in it"
			}
		case !e.Type().IsRegular():
			why = "it holds " + name + ", which is no file"
		}
		if why != "" {
			return errStop
		}
		return nil
	})
	if err != nil && why == "" {
		return "part of it cannot be read"
	}
	return why
}

// precious is stricter than a build's own leavings would need, but for what
// packages ship: certificates and test data below node_modules and .venv.
func precious(root, p string) bool {
	if !shell.Precious(p) {
		return false
	}
	switch filepath.Base(root) {
	case "node_modules", ".venv":
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return true
		}
		name := strings.ToLower(filepath.Base(p))
		installed := strings.Contains(rel, string(filepath.Separator))
		data := strings.HasSuffix(name, ".db") || strings.Contains(name, ".sqlite") || strings.HasPrefix(name, ".env") || strings.Contains(name, ".tfstate")
		return !installed || data
	}
	return true
}

// leadsOut reports a link whose target lies outside of root, or is not there.
func leadsOut(root, link string) bool {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		text, err := os.Readlink(link)
		if err != nil || filepath.IsAbs(text) {
			return true
		}
		target = filepath.Join(filepath.Dir(link), text) // dangling: nothing is lost
	}
	rel, err := filepath.Rel(root, target)
	return err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Real follows the links of a path as far as it exists.
func (Disk) Real(cwd, path string) string {
	if !filepath.IsAbs(path) {
		if strings.HasPrefix(path, "~/") {
			home, err := os.UserHomeDir()
			if err != nil {
				return ""
			}
			path = filepath.Join(home, path[2:])
		} else if !filepath.IsAbs(cwd) || strings.ContainsAny(path, "$~*?") {
			return ""
		} else {
			path = filepath.Join(cwd, path)
		}
	}
	rest := ""
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(r, rest)
		}
		if text, err := os.Readlink(p); err == nil { // a link to what is not there yet
			if !filepath.IsAbs(text) {
				text = filepath.Join(filepath.Dir(p), text)
			}
			return filepath.Join(text, rest)
		}
		if p == filepath.Dir(p) {
			return ""
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// maxScript is one byte more than a reader takes, so that a longer file is told
// from one that fits.
const maxScript = 64<<10 + 1

// Script is what a file holds whose content or name changed on or after Changed. What
// cannot be opened or is no file holds nothing that could be run.
func (d Disk) Script(cwd, p string) []string {
	if d.Changed.IsZero() {
		return nil
	}
	full := d.Real(cwd, p)
	if full == "" {
		return nil
	}
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold us up
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || changed(info).Before(d.Changed) {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, maxScript))
	if err != nil {
		return nil
	}
	return []string{string(text)}
}

// Born is when a file was made, zero where that is not kept.
func Born(path string) time.Time {
	if path == "" {
		return time.Time{}
	}
	t, _ := birth(path)
	return t
}

// ChangedAt is when a file's content, name or rights changed last, zero where it
// cannot be told.
func (d Disk) ChangedAt(cwd, p string) time.Time {
	full := d.Real(cwd, p)
	if full == "" {
		return time.Time{}
	}
	info, err := os.Stat(full)
	if err != nil {
		return time.Time{}
	}
	return changed(info)
}

// worktree is the nearest directory above p that git keeps.
func worktree(p string) (string, bool) {
	for d := filepath.Dir(p); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, true
		}
		if d == filepath.Dir(d) {
			return "", false
		}
	}
}
