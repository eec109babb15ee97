// Package witness keeps signed checkpoints of a log in places outside it: a
// directory, a ref of a git repository, a web store, an S3-compatible one. A log
// that was written anew by whoever holds its key shows only against such a copy.
// It knows checkpoints as signed bytes with a size; it reads no ledger, decides
// nothing about one and has no schedule. Another kind of place (a C2SP witness,
// OpenTimestamps) is one more Place and one more case of Parse.
package witness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"gettier.dev/gettierd/ledger/snapshot"
)

// Place is somewhere that the log's own machine should not be able to change.
type Place interface {
	// Put keeps a checkpoint of so many entries. One that is kept already is left
	// as it is; another one of the same size is snapshot.ErrForked.
	Put(ctx context.Context, origin string, size uint64, signed []byte) error
	// Newest is the checkpoint that was kept last of a log, nil when there is none.
	Newest(ctx context.Context, origin string) ([]byte, error)
}

// Names of the kinds of places, as their specs begin.
const (
	kindDir = "dir:"
	kindGit = "git:"
	kindS3  = "s3:"
)

// noteMax bounds a checkpoint in bytes.
const noteMax = 64 << 10

// ErrSpec is wrapped by every refusal of a spec.
var ErrSpec = errors.New("is no place for checkpoints")

// Access is what S3 wants to know of who writes.
type Access struct {
	Region string // us-east-1 when empty
	ID     string // access key id
	Secret string
}

// Check reports whether spec names a place, without going there.
func Check(spec string) error {
	_, err := Parse(spec, Access{})
	return err
}

// Parse reads a spec:
//
//	dir:/abs/path            one file a checkpoint
//	git:/abs/repo[#REMOTE]   commits on refs/gettier/checkpoints, pushed to REMOTE
//	https://host/path        PUT and GET of path/NAME
//	s3:https://host/bucket[/prefix]   the same, signed (AWS Signature Version 4)
//
// Plain http is for this machine only.
func Parse(spec string, a Access) (Place, error) {
	bad := func(why string) (Place, error) { return nil, fmt.Errorf("%.200q %w: %s", spec, ErrSpec, why) }
	switch {
	case strings.HasPrefix(spec, kindDir):
		path := strings.TrimPrefix(spec, kindDir)
		if !filepath.IsAbs(path) {
			return bad("the directory is no absolute path")
		}
		return directory{snapshot.Dir(path)}, nil
	case strings.HasPrefix(spec, kindGit):
		path, remote, _ := strings.Cut(strings.TrimPrefix(spec, kindGit), "#")
		if !filepath.IsAbs(path) {
			return bad("the repository is no absolute path")
		}
		if strings.HasPrefix(remote, "-") || strings.ContainsAny(remote, " \t\n:") {
			return bad("the remote is no name of one")
		}
		return repository{path, remote}, nil
	}
	store, signed := strings.CutPrefix(spec, kindS3)
	u, err := url.Parse(store)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return bad("it begins with none of dir:, git:, https: and s3:https:")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return bad("plain http is for this machine only")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return bad("it holds more than host and path")
	case signed && strings.Trim(u.Path, "/") == "":
		return bad("the bucket is missing")
	}
	w := &webStore{base: *u}
	if signed {
		if a.Region == "" {
			a.Region = "us-east-1"
		}
		w.access = &a
	}
	return w, nil
}

// directory is a snapshot.Dir as a Place.
type directory struct{ dir snapshot.Dir }

func (d directory) Put(_ context.Context, origin string, size uint64, signed []byte) error {
	return d.dir.Put(origin, size, signed)
}

func (d directory) Newest(_ context.Context, origin string) ([]byte, error) {
	signed, _, err := d.dir.Newest(origin)
	return signed, err
}
