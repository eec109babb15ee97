package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gettier.dev/gettierd/ledger/archive"
)

// exportTo writes an export beside target, checks it and gives it its name. A
// target that holds something is refused; what is cut off leaves nothing behind.
func exportTo(ctx context.Context, from func(io.Writer) error, target string) (r archive.Report, err error) {
	taken := func() error {
		return &exit{code: exitRefused, err: fmt.Errorf("export to %s: there is something already", target), hint: "name a path that is not there yet"}
	}
	empty, err := nothingAt(target)
	if err != nil {
		return r, err
	}
	if !empty {
		return r, taken()
	}
	target = filepath.Clean(target)
	work, err := os.MkdirTemp(filepath.Dir(target), "."+filepath.Base(target)+".")
	if err != nil {
		return r, &exit{code: exitUsage, err: fmt.Errorf("export to %s: %w", target, err)}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	part := filepath.Join(work, "export")
	if strings.HasSuffix(target, ".tar") {
		err = writeTar(from, part)
	} else {
		err = writeDir(ctx, from, part)
	}
	if err != nil {
		return r, err
	}
	in, closer, err := archive.Open(part)
	if err != nil {
		return r, err
	}
	r, err = archive.Check(ctx, in, archive.Options{})
	if err := errors.Join(err, closer.Close()); err != nil {
		return r, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, taken() // empty a moment ago
	}
	// A rename takes the place of a file that came meanwhile; a link does not.
	if st, err := os.Stat(part); err == nil && !st.IsDir() {
		if err := os.Link(part, target); err != nil {
			return r, taken()
		}
		return r, nil
	}
	if err := os.Rename(part, target); err != nil {
		return r, taken()
	}
	return r, nil
}

// nothingAt reports whether path is free: not there, an empty file or an empty
// directory.
func nothingAt(path string) (bool, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, &exit{code: exitUsage, err: err}
	}
	if st.IsDir() {
		names, err := os.ReadDir(path)
		return len(names) == 0, err
	}
	return st.Mode().IsRegular() && st.Size() == 0, nil
}

func writeTar(from func(io.Writer) error, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = from(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func writeDir(ctx context.Context, from func(io.Writer) error, path string) error {
	return piped(from, func(r io.Reader) error { return archive.Unpack(ctx, r, path) })
}

// piped gives to what from writes. The first error is the one that counts: that
// of the other end only follows from it.
func piped(from func(io.Writer) error, to func(io.Reader) error) error {
	r, w := io.Pipe()
	sent := make(chan error, 1) // the goroutine ends even when nobody listens any more
	go func() {
		err := from(w)
		w.CloseWithError(err)
		sent <- err
	}()
	err := to(r)
	r.CloseWithError(errStopped)
	if serr := <-sent; serr != nil && !errors.Is(serr, errStopped) {
		return serr
	}
	return err
}

// errStopped tells the writing end that the reading one has what it wants.
var errStopped = errors.New("stopped reading")
