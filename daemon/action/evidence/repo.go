package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"gettier.dev/gettierd/sensors/gitrepo"
)

// repo is a git worktree as far as 13.6 asks for it.
type repo struct {
	*gitrepo.Repo
	commit string
	index  *gitrepo.Index
}

func openRepo(top string) (*repo, error) {
	r, err := gitrepo.Open(top)
	if err != nil {
		return nil, err
	}
	head, err := r.Head()
	if err != nil {
		return nil, err
	}
	if head.Commit == "" {
		return nil, errors.New("nothing is committed yet")
	}
	index, err := r.Index()
	if err != nil {
		return nil, err
	}
	return &repo{r, head.Commit, index}, nil
}

// tracked names what git tracks at or below a directory, "" for nothing. In a
// sparse index a directory may stand for its files.
func (r *repo) tracked(rel string) string {
	if r.index.Holds(rel) {
		return "files below " + rel
	}
	if _, ok := r.index.Find(rel); ok {
		return rel
	}
	if r.index.Sparse {
		for _, e := range r.index.Entries {
			if dir, ok := strings.CutSuffix(e.Path, "/"); ok && (rel == dir || strings.HasPrefix(rel, dir+"/")) {
				return dir
			}
		}
	}
	return ""
}

// ignored reports that the .gitignore files committed at HEAD name the directory
// or one above it. What the work tree's own files say does not count: an agent can
// write those.
func (r *repo) ignored(rel string) (bool, error) {
	g := &gitrepo.Ignores{}
	parts := strings.Split(rel, "/")
	for i := range parts {
		dir := strings.Join(parts[:i], "/")
		text, err := r.File(r.commit, path.Join(dir, ".gitignore"))
		if err == nil {
			if dir != "" {
				dir += "/"
			}
			g = g.With(dir, string(text))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read .gitignore of HEAD: %w", err)
		}
		if g.Match(strings.Join(parts[:i+1], "/"), true) {
			return true, nil
		}
	}
	return false, nil
}
