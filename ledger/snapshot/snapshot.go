// Package snapshot keeps signed checkpoints of a log in a place outside it. A
// log that was written anew by whoever holds its key shows only there. It knows
// checkpoints as signed bytes with a size; it reads no ledger and has no clock.
package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrForked says that the place has another checkpoint of the same size: one of
// the two logs was written anew.
var ErrForked = errors.New("another checkpoint of this size was kept before")

const suffix = ".checkpoint"

// maxNote bounds a checkpoint in bytes.
const maxNote = 64 << 10

// Name is the file of a checkpoint: the log's last origin part and the size, so
// that names sort as the log grew.
func Name(origin string, size uint64) string {
	return fmt.Sprintf("%s-%016d%s", filepath.Base(origin), size, suffix)
}

// Dir is a directory with one file a checkpoint. Files are added, never changed.
type Dir string

// Put keeps a checkpoint. One that is there already is left as it is.
func (d Dir) Put(origin string, size uint64, signed []byte) (err error) {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	path := filepath.Join(string(d), Name(origin, size))
	if have, err := read(path); err == nil {
		if !bytes.Equal(have, signed) {
			return fmt.Errorf("keep checkpoint: %w: %s", ErrForked, path)
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	f, err := os.CreateTemp(string(d), ".new-*")
	if err != nil {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep checkpoint: %w", err)
		}
	}()
	defer os.Remove(f.Name())
	_, err = f.Write(signed)
	if err == nil {
		err = errors.Join(f.Chmod(0o444), f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A link, unlike a rename, takes no file's place.
	return os.Link(f.Name(), path)
}

// Newest is the checkpoint of the largest size that the directory has of a log;
// nil when it has none.
func (d Dir) Newest(origin string) (signed []byte, size uint64, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read checkpoints: %w", err)
	}
	for _, e := range slices.Backward(entries) { // sorted by name
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(origin)+"-")
		digits, isNote := strings.CutSuffix(rest, suffix)
		n, err := strconv.ParseUint(digits, 10, 64)
		if !ours || !isNote || err != nil || Name(origin, n) != e.Name() {
			continue
		}
		signed, err := read(filepath.Join(string(d), e.Name()))
		if err != nil {
			return nil, 0, fmt.Errorf("read checkpoint: %w", err)
		}
		return signed, n, nil
	}
	return nil, 0, nil
}

func read(path string) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxNote {
		return nil, fmt.Errorf("%s is no checkpoint", path)
	}
	return os.ReadFile(path)
}
