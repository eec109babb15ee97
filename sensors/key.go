package sensors

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LockKey reads the key that signs sensors.lock and config.lock from
// <stateDir>/keys/lock, and makes it when there is none: the seed as 64
// hexadecimal digits, mode 0600, in a directory of mode 0700. A key that others
// may read or that is not a plain file is refused, never repaired silently.
func LockKey(stateDir string, entropy io.Reader) (ed25519.PrivateKey, error) {
	dir := filepath.Join(stateDir, "keys")
	path := filepath.Join(dir, "lock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make key directory: %w", err)
	}
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(entropy, seed); err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	// Written beside and linked into place: two processes that start at once
	// agree on one key, and neither sees half of it.
	tmp, err := os.CreateTemp(dir, ".lock-*")
	if err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(seed) + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		if err = os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	return readKey(path)
}

func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("read lock key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read lock key: %s must be a plain file of mode 0600, it is %v", path, info.Mode())
	}
	b, err := readSmall(path, 1024)
	if err != nil {
		return nil, fmt.Errorf("read lock key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read lock key: %s does not hold %d hexadecimal digits", path, 2*ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// errTooLarge says that a file has more bytes than its reader takes.
var errTooLarge = errors.New("file too large")

// readSmall reads a regular file of at most limit bytes. It never blocks on a
// FIFO that someone put in the file's place.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w", path, errTooLarge)
	}
	return b, nil
}

func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// writeAtomic replaces path as a whole and makes that durable.
func writeAtomic(path string, data []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
