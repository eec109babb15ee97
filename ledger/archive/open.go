package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is one file of an archive. It must be read before the next is asked for.
type File struct {
	Name string
	Size int64
	io.Reader
}

// Reader yields the files in the archive's order, io.EOF after the last.
type Reader interface {
	Next() (*File, error)
}

// Stream reads a tar.
func Stream(r io.Reader) Reader { return newTarReader(r) }

// Open reads a directory or a tar.
func Open(path string) (Reader, io.Closer, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open export: %w", err)
	}
	if !st.IsDir() {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("open export: %w", err)
		}
		return newTarReader(f), f, nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open export: %w", err)
	}
	d := &dirReader{root: root}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			d.names = append(d.names, named{placeOf(name), name})
		}
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open export: %w", err), root.Close())
	}
	slices.SortStableFunc(d.names, func(a, b named) int { return a.compare(b.place) })
	return d, d, nil
}

type named struct {
	place
	name string
}

type dirReader struct {
	root  *os.Root
	names []named
	cur   *os.File
}

func (d *dirReader) Next() (*File, error) {
	if err := d.done(); err != nil {
		return nil, err
	}
	if len(d.names) == 0 {
		return nil, io.EOF
	}
	name := d.names[0].name
	d.names = d.names[1:]
	// A root keeps links from leading out of the export.
	st, err := d.root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read export: %w", err)
	}
	if !st.Mode().IsRegular() {
		return &File{Name: name + " (no regular file)"}, nil
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read export: %w", err)
	}
	d.cur = f
	return &File{Name: name, Size: st.Size(), Reader: f}, nil
}

func (d *dirReader) done() error {
	f := d.cur
	d.cur = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

func (d *dirReader) Close() error { return errors.Join(d.done(), d.root.Close()) }

// Unpack writes the files of a tar under dir, which must be empty or not there.
// Names are taken only as this package spells them, so none leads out of dir.
func Unpack(ctx context.Context, r io.Reader, dir string) error {
	t := newTarReader(r)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("unpack export: %w", err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackOne(f, dir)
		}
		if err != nil {
			return fmt.Errorf("unpack export: %w", err)
		}
	}
}

func unpackOne(f *File, dir string) error {
	if placeOf(f.Name).class == classUnknown {
		return fmt.Errorf("%w: %.100q", ErrFormat, f.Name)
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return errors.Join(err, out.Close())
}
