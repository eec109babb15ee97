package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/snapshot"
)

// Ref is where a repository has the checkpoints: one commit each, beside all
// branches. Nothing in the work tree or the index is touched.
const Ref = "refs/gettier/checkpoints"

// gitWait bounds one command; a push may ask a slow server.
const gitWait = time.Minute

// repository is a git repository, and the remote that its ref is pushed to.
type repository struct{ dir, remote string }

// hardened keeps a repository from running anything of its own.
var hardened = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never", "-c", "gc.auto=0"}

func (r repository) git(ctx context.Context, in []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"-C", r.dir}, hardened...), args...)...)
	cmd.Env = append(gitEnv(), "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=gettierd", "GIT_AUTHOR_EMAIL=gettierd@localhost",
		"GIT_COMMITTER_NAME=gettierd", "GIT_COMMITTER_EMAIL=gettierd@localhost")
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(in), time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %.120q", args[0], err, first)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// gitEnv is our environment without what would lead git elsewhere.
func gitEnv() []string {
	var out []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "GIT_SSH") {
			out = append(out, kv)
		}
	}
	if _, set := os.LookupEnv("GIT_SSH_COMMAND"); !set {
		out = append(out, "GIT_SSH_COMMAND=ssh") // before the repository's core.sshCommand
	}
	return out
}

func fileOf(origin string) string { return path.Base(origin) + ".checkpoint" }

// tip is the newest commit, "" when there is none.
func (r repository) tip(ctx context.Context) (string, error) {
	out, err := r.git(ctx, nil, "for-each-ref", "--format=%(objectname)", Ref)
	return out, err
}

func (r repository) Put(ctx context.Context, origin string, size uint64, signed []byte) error {
	if err := r.put(ctx, origin, size, signed); err != nil {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	return nil
}

func (r repository) put(ctx context.Context, origin string, size uint64, signed []byte) error {
	parent, err := r.tip(ctx)
	if err != nil {
		return err
	}
	subject := fmt.Sprintf("%s: %d entries", origin, size)
	if parent != "" {
		newest, err := r.git(ctx, nil, "log", "-1", "--format=%s", parent)
		if err != nil {
			return err
		}
		if have, err := r.blob(ctx, parent, origin); err != nil {
			return err
		} else if newest == subject && bytes.Equal(have, signed) {
			return r.push(ctx) // a push of before may have failed
		} else if newest == subject {
			return fmt.Errorf("%w: %s of %s", snapshot.ErrForked, Ref, r.dir)
		}
	}
	blob, err := r.git(ctx, signed, "hash-object", "-w", "--stdin", "--no-filters")
	if err != nil {
		return err
	}
	listing := ""
	if parent != "" { // other logs' files stay
		if listing, err = r.git(ctx, nil, "ls-tree", parent); err != nil {
			return err
		}
	}
	var tree strings.Builder
	for line := range strings.SplitSeq(listing, "\n") {
		if _, name, ok := strings.Cut(line, "\t"); ok && name != fileOf(origin) {
			tree.WriteString(line + "\n")
		}
	}
	fmt.Fprintf(&tree, "100644 blob %s\t%s\n", blob, fileOf(origin))
	id, err := r.git(ctx, []byte(tree.String()), "mktree")
	if err != nil {
		return err
	}
	args := []string{"commit-tree", id, "-m", subject}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	commit, err := r.git(ctx, nil, args...)
	if err != nil {
		return err
	}
	// The old value must still be the one that this grew from; empty is none.
	if _, err := r.git(ctx, nil, "update-ref", Ref, commit, parent); err != nil {
		return err
	}
	return r.push(ctx)
}

func (r repository) push(ctx context.Context) error {
	if r.remote == "" {
		return nil
	}
	_, err := r.git(ctx, nil, "push", "--quiet", "--no-verify", "--no-signed", "--receive-pack=git-receive-pack", r.remote, Ref+":"+Ref)
	return err
}

// errNoFile: the commit has none of this log.
var errNoFile = errors.New("no checkpoint of this log")

func (r repository) blob(ctx context.Context, commit, origin string) ([]byte, error) {
	listing, err := r.git(ctx, nil, "ls-tree", commit, fileOf(origin))
	if err != nil || listing == "" {
		return nil, err
	}
	fields := strings.Fields(listing)
	if len(fields) < 3 || fields[1] != "blob" {
		return nil, errNoFile
	}
	size, err := r.git(ctx, nil, "cat-file", "-s", fields[2])
	if err != nil {
		return nil, err
	}
	if len(size) > 5 {
		return nil, errNoFile
	}
	out, err := r.git(ctx, nil, "cat-file", "blob", fields[2])
	return []byte(out + "\n"), err
}

func (r repository) Newest(ctx context.Context, origin string) ([]byte, error) {
	tip, err := r.tip(ctx)
	if err == nil && tip != "" {
		var b []byte
		if b, err = r.blob(ctx, tip, origin); err == nil {
			return b, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return nil, nil
}
