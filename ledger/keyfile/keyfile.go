// Package keyfile is the log's private key as files: the one in use, and while it
// is being replaced the next one beside it, so that at no moment a log's key is
// nowhere. It makes no log, asks nobody and knows nothing of entries: which of two
// keys counts is what the log says.
package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Names of the files in the directory of keys. Each holds an Ed25519 seed of 32
// bytes.
const (
	Current = "log"
	Next    = "log.next"
)

// Keys are the private keys of a directory; Next is nil unless a change of keys
// was begun and not ended.
type Keys struct {
	Current, Next ed25519.PrivateKey
}

// Read reads what is there. A missing current key is os.ErrNotExist.
func Read(dir string) (k Keys, err error) {
	if k.Current, err = read(filepath.Join(dir, Current)); err != nil {
		return k, err
	}
	k.Next, err = read(filepath.Join(dir, Next))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return k, err
}

func read(path string) (ed25519.PrivateKey, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("read log key: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read log key %s: it is not a regular file", path)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read log key %s: others may read it (mode %04o)", path, st.Mode().Perm())
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read log key: %w", err)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read log key %s: it has %d bytes, not %d", path, len(seed), ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Begin returns the key that is to follow, durable on disk. One that an earlier
// attempt left is used again: it may stand in the log already, whatever that
// attempt was told.
func Begin(dir string, entropy io.Reader) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, Next)
	if k, err := read(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	seed := make([]byte, ed25519.SeedSize)
	defer clear(seed)
	if _, err := io.ReadFull(entropy, seed); err != nil {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	f, err := os.CreateTemp(dir, ".log-")
	if err != nil {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	defer os.Remove(f.Name()) // unless it has its name by then
	_, err = f.Write(seed)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	if err := sync(dir); err != nil {
		return nil, fmt.Errorf("make log key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Settle ends what Begin began, by the key that the log says signs now. If it is
// the next one, that becomes the current one in one step and the old one's bytes
// are overwritten: a file system that copies on write, or a disk that moves
// blocks, may keep them all the same. If it is the current one, the next one was
// never announced and goes. Call it while no other process can write the log, and
// after the log was read from the disk.
func Settle(dir string, signs ed25519.PublicKey) error {
	k, err := Read(dir)
	if err != nil {
		return err
	}
	if err := tidy(dir); err != nil {
		return err
	}
	current, next := filepath.Join(dir, Current), filepath.Join(dir, Next)
	switch {
	case k.Next == nil:
		return nil
	case signs.Equal(k.Current.Public()) && !signs.Equal(k.Next.Public()):
		return errors.Join(wrap("forget log key", wipe(next, func() error { return os.Remove(next) })), sync(dir))
	case !signs.Equal(k.Next.Public()):
		return fmt.Errorf("settle log key: neither key in %s is the one that the log wants", dir)
	}
	return wrap("replace log key", wipe(current, func() error {
		return errors.Join(os.Rename(next, current), sync(dir))
	}))
}

// wipe takes a file's name away and then overwrites what had it.
func wipe(path string, away func() error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := away(); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0}, ed25519.SeedSize), 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// tidy removes keys that never got a name.
func tidy(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, ".log-*"))
	if err != nil {
		return fmt.Errorf("tidy log keys: %w", err)
	}
	for _, path := range left {
		if err := wipe(path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("tidy log keys: %w", err)
		}
	}
	return nil
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
