package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"gettier.dev/gettierd/sensors/gitrepo"
)

// repo opens the repository of the work tree that the agent stands in.
func (p *probe) repo() (*gitrepo.Repo, error) {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"} {
		if _, set, _ := p.env(name); set {
			return nil, fmt.Errorf("%s is set, so git works elsewhere", name)
		}
	}
	r, err := gitrepo.Open(p.Dir)
	if errors.Is(err, gitrepo.ErrNone) {
		return nil, fmt.Errorf("%w: no git repository", ErrNone)
	}
	return r, err
}

// gitDirty: would anything be lost? (issue 11's table, row 2)
func (p *probe) gitDirty() error {
	r, err := p.repo()
	if err != nil {
		return err
	}
	s, err := r.Status(p.ctx, p.Home)
	if err != nil {
		return err
	}
	if clean, ok := s.Clean(); ok {
		p.putBool("clean", clean)
	}
	changed := s.Modified + s.Deleted + s.Conflicts
	// What may be more than was counted is told only where it is already there.
	if s.Unknown == "" || s.Staged {
		p.putBool("staged", s.Staged)
	}
	if s.Unknown == "" || changed > 0 || s.Staged {
		p.putBool("uncommitted", changed > 0 || s.Staged)
	}
	if s.Unknown == "" || s.Untracked > 0 {
		p.putBool("has_untracked", s.Untracked > 0)
	}
	if s.Unknown == "" {
		p.putInt("changed", changed)
		p.putInt("untracked", s.Untracked)
	}
	p.putInt("conflicts", s.Conflicts)
	n, err := r.Stashes()
	if err != nil {
		return err
	}
	p.putInt("stashes", n)
	p.put("doing", or(r.Doing(), "nothing"))
	p.put("unknown", s.Unknown)
	return p.gitPath(r)
}

// gitPath tells of one file whether its content is committed.
func (p *probe) gitPath(r *gitrepo.Repo) error {
	path := p.param("path")
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Cwd, path)
	}
	rel, err := filepath.Rel(p.Dir, path)
	if err != nil || !below(p.Dir, path) {
		return errors.New("the path is outside of the work tree")
	}
	x, err := r.Index()
	if err != nil {
		return err
	}
	_, tracked := x.Find(filepath.ToSlash(rel))
	p.putBool("path_tracked", tracked || x.Holds(filepath.ToSlash(rel)))
	return nil
}

// gitBranch: which branch is this, and which is the main one? (row 3)
func (p *probe) gitBranch() error {
	r, err := p.repo()
	if err != nil {
		return err
	}
	h, err := r.Head()
	if err != nil {
		return err
	}
	p.putBool("detached", h.Detached)
	if h.Detached {
		p.put("branch", "HEAD")
	} else {
		p.put("branch", h.Branch)
	}
	p.put("doing", or(r.Doing(), "nothing"))
	p.putBool("has_commits", h.Commit != "")
	cfg, err := r.Config()
	if err != nil {
		return err
	}
	main := p.mainBranch(r, cfg)
	p.put("default", main)
	if main != "" {
		p.putBool("on_default", !h.Detached && h.Branch == main)
	}
	if want := p.param("branch"); want != "" {
		_, err := r.Ref("refs/heads/" + want)
		switch {
		case err == nil:
			p.put("branch_exists", "yes")
		case errors.Is(err, fs.ErrNotExist):
			p.put("branch_exists", "no")
		}
		p.putBool("branch_is_current", !h.Detached && h.Branch == want)
	}
	p.upstream(r, cfg, h)
	return nil
}

// mainBranch is the remote's own choice, else the one of main and master that
// there is.
func (p *probe) mainBranch(r *gitrepo.Repo, cfg *gitrepo.Config) string {
	remotes := cfg.Sections("remote")
	for _, name := range append([]string{"origin"}, remotes...) {
		if b, ok := strings.CutPrefix(r.Symbolic("refs/remotes/"+name+"/HEAD"), "refs/remotes/"+name+"/"); ok {
			return b
		}
	}
	var found []string
	for _, b := range []string{"main", "master", "trunk"} {
		if _, err := r.Ref("refs/heads/" + b); err == nil {
			found = append(found, b)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

// upstream says where the branch is pushed to and whether the remote, as it was
// seen last, stands at the same commit.
func (p *probe) upstream(r *gitrepo.Repo, cfg *gitrepo.Config, h gitrepo.Head) {
	if h.Detached || h.Branch == "" {
		return
	}
	remote, merge := cfg.Get("branch."+h.Branch+".remote"), cfg.Get("branch."+h.Branch+".merge")
	branch, ok := strings.CutPrefix(merge, "refs/heads/")
	if remote == "" || !ok {
		p.put("upstream", "none")
		return
	}
	p.put("upstream", remote+"/"+branch)
	p.putBool("upstream_same_name", branch == h.Branch)
	if c, err := r.Ref("refs/remotes/" + remote + "/" + branch); err == nil {
		p.putBool("pushed", c == h.Commit)
	}
}

// gitWhere: is this the directory, the work tree, that is meant? (row 4)
func (p *probe) gitWhere() error {
	r, err := p.repo()
	if err != nil {
		return err
	}
	p.put("top", r.Top)
	p.put("name", filepath.Base(r.Top))
	switch {
	case r.Linked:
		p.put("kind", "worktree")
	case r.Sub:
		p.put("kind", "submodule")
	default:
		p.put("kind", "main")
	}
	p.put("main", r.Main())
	p.putInt("worktrees", r.Worktrees())
	rel, err := filepath.Rel(r.Top, p.Cwd)
	if err != nil || !below(r.Top, p.Cwd) {
		return errors.New("the agent stands outside of the work tree")
	}
	p.put("cwd", filepath.ToSlash(rel))
	p.putBool("at_top", rel == ".")
	if p.Root != "" {
		p.putBool("in_project", below(p.Root, r.Top))
	}
	if h, err := r.Head(); err == nil {
		p.put("branch", or(h.Branch, "HEAD"))
	}
	if path := p.param("path"); path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.Cwd, path)
		}
		path = filepath.Clean(path)
		p.putBool("path_inside", below(r.Top, path))
		p.putBool("other_tree", otherTree(r, path))
	}
	return nil
}

// otherTree reports whether a path lies in another work tree of this repository:
// the same file, and not the one that is meant. A work tree may lie within
// another, so the innermost that holds the path counts.
func otherTree(r *gitrepo.Repo, path string) bool {
	inner := ""
	for _, t := range append(r.Trees(), r.Top) {
		if below(t, path) && len(t) > len(inner) {
			inner = t
		}
	}
	return inner != "" && inner != r.Top
}

// gitRemote: where does a push go? (row 21) User names and passwords of a URL
// are never printed.
func (p *probe) gitRemote() error {
	r, err := p.repo()
	if err != nil {
		return err
	}
	cfg, err := r.Config()
	if err != nil {
		return err
	}
	remotes := cfg.Sections("remote")
	p.put("remotes", or(strings.Join(remotes, ","), "none"))
	p.putInt("count", len(remotes))
	h, err := r.Head()
	if err != nil {
		return err
	}
	push := cfg.Get("branch." + h.Branch + ".pushremote")
	if push == "" {
		push = or(cfg.Get("remote.pushdefault"), cfg.Get("branch."+h.Branch+".remote"))
	}
	if push == "" && (len(remotes) == 1 || contains(remotes, "origin")) {
		push = "origin"
		if len(remotes) == 1 {
			push = remotes[0]
		}
	}
	name := or(p.param("remote"), push)
	p.put("push_remote", push)
	p.put("email", or(cfg.Get("user.email"), p.userEmail()))
	if name == "" {
		return nil
	}
	p.put("remote", name)
	p.putBool("remote_exists", contains(remotes, name))
	u := or(cfg.Get("remote."+name+".pushurl"), cfg.Get("remote."+name+".url"))
	for _, base := range cfg.Sections("url") {
		if cfg.Get("url."+base+".insteadof") != "" || cfg.Get("url."+base+".pushinsteadof") != "" {
			return nil // written anew on the way: what it becomes is not told here
		}
	}
	host, repo := remoteURL(u)
	p.put("host", host)
	p.put("repo", repo)
	if owner, _, ok := strings.Cut(repo, "/"); ok {
		p.put("owner", owner)
	}
	return nil
}

func (p *probe) userEmail() string {
	for _, name := range []string{".gitconfig", ".config/git/config"} {
		if b, err := p.home(name); err == nil {
			if v := gitrepo.ParseConfig(b).Get("user.email"); v != "" {
				return v
			}
		}
	}
	return ""
}

// remoteURL is the host and path of a URL or of git's own host:path form.
func remoteURL(s string) (host, repo string) {
	if u, err := url.Parse(s); err == nil && u.Scheme != "" && u.Host != "" {
		return u.Hostname(), strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	}
	if filepath.IsAbs(s) || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "file:") {
		return "local", ""
	}
	host, repo, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(host, "/") {
		return "", ""
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	return host, strings.TrimSuffix(strings.Trim(repo, "/"), ".git")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
