package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gettier.dev/gettierd/sensors/spec"
)

// stand finds the directory a sensor runs in: cwd: project is the project's
// root, worktree the work tree that the agent stands in, config the registry
// file's directory. Without a project the file's directory is the default.
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
