package keyfile_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/keyfile"
)

// state is an installation's directory.
type state struct {
	dir string
	t   *testing.T
}

func lay(t *testing.T) state {
	t.Helper()
	s := state{t.TempDir(), t}
	if err := os.Mkdir(s.keys(), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(keyfile.Current, bytes.Repeat([]byte{7}, ed25519.SeedSize))
	return s
}

func (s state) keys() string { return filepath.Join(s.dir, "keys") }

func (s state) write(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.keys(), name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// copied is what a crash at this moment would leave.
func (s state) copied() state {
	s.t.Helper()
	c := state{filepath.Join(s.t.TempDir(), "copy"), s.t}
	if err := os.CopyFS(c.dir, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// start opens the log as a daemon does.
func (s state) start() *ledger.Ledger {
	s.t.Helper()
	k, err := keyfile.Read(s.keys())
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := ledger.Open(filepath.Join(s.dir, "ledger.db"), ledger.Options{Key: k.Current, NextKey: k.Next, CheckpointFile: filepath.Join(s.keys(), "checkpoint"), MmapSize: 1 << 20})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := keyfile.Settle(s.keys(), l.PublicKey()); err != nil {
		s.t.Fatal(err)
	}
	return l
}

// sound starts the copy, and checks that one key is left and that it signs.
func (s state) sound(at string, want ed25519.PublicKey) {
	s.t.Helper()
	l := s.start()
	defer l.Close()
	k, err := keyfile.Read(s.keys())
	if err != nil || k.Next != nil || !l.PublicKey().Equal(k.Current.Public()) || want != nil && !l.PublicKey().Equal(want) {
		s.t.Errorf("%s: %v, next key %v", at, err, k.Next != nil)
	}
	r, err := l.Verify(context.Background(), nil)
	if err != nil || !r.OK() {
		s.t.Errorf("%s: %+v %v", at, r, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.keys(), ".log-*")); err != nil || len(left) > 0 {
		s.t.Errorf("%s: left %v %v", at, left, err)
	}
	if err := l.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.start().Close() // and once more
}

// TestEachCrash stops a change of keys after each of its steps.
func TestEachCrash(t *testing.T) {
	s := lay(t)
	l := s.start()
	old := l.PublicKey()
	defer func() { l.Close() }()

	c := s.copied()
	c.write(".log-123", bytes.Repeat([]byte{9}, 11)) // the write of the next key was cut
	c.sound("half a key is written", old)

	entropy := bytes.NewReader(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	next, err := keyfile.Begin(s.keys(), entropy)
	if err != nil {
		t.Fatal(err)
	}
	s.copied().sound("the next key is written", old)

	if _, err := l.RotateKey(context.Background(), next, "test"); err != nil {
		t.Fatal(err)
	}
	s.copied().sound("it is announced", l.PublicKey())

	// The file has its last word when the log is closed; the key was not settled.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.copied().sound("it is announced, and the log closed", next.Public().(ed25519.PublicKey))

	was, err := os.Open(filepath.Join(s.keys(), keyfile.Current))
	if err != nil {
		t.Fatal(err)
	}
	defer was.Close()
	l = s.start()
	left, err := io.ReadAll(was)
	if err != nil || !bytes.Equal(left, make([]byte, ed25519.SeedSize)) {
		t.Errorf("the old key's bytes: %x %v", left, err)
	}
	s.copied().sound("it took its place", next.Public().(ed25519.PublicKey))

	// And back to the start: the next change begins with a key of its own.
	if k, err := keyfile.Begin(s.keys(), bytes.NewReader(bytes.Repeat([]byte{4}, 32))); err != nil || k.Equal(next) {
		t.Errorf("%v", err)
	}
}

// An attempt that failed may have been written all the same: its key is kept.
func TestBeginAgain(t *testing.T) {
	s := lay(t)
	first, err := keyfile.Begin(s.keys(), bytes.NewReader(bytes.Repeat([]byte{1}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	again, err := keyfile.Begin(s.keys(), iotest.ErrReader(errors.New("asked for entropy")))
	if err != nil || !again.Equal(first) {
		t.Errorf("another key: %v", err)
	}
	if err := keyfile.Settle(s.keys(), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32)).Public().(ed25519.PublicKey)); err == nil {
		t.Error("neither key is the log's")
	}
	if k, err := keyfile.Read(s.keys()); err != nil || k.Next == nil {
		t.Errorf("a key went though neither is the log's: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for name, harm := range map[string]func(s state) error{
		"others may read it": func(s state) error { return os.Chmod(filepath.Join(s.keys(), keyfile.Next), 0o644) },
		"it is short":        func(s state) error { return os.Truncate(filepath.Join(s.keys(), keyfile.Next), 31) },
		"it is a link": func(s state) error {
			return errors.Join(os.Remove(filepath.Join(s.keys(), keyfile.Next)), os.Symlink(keyfile.Current, filepath.Join(s.keys(), keyfile.Next)))
		},
	} {
		s := lay(t)
		s.write(keyfile.Next, bytes.Repeat([]byte{8}, 32))
		if err := harm(s); err != nil {
			t.Fatal(err)
		}
		if _, err := keyfile.Read(s.keys()); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := keyfile.Begin(s.keys(), iotest.ErrReader(io.EOF)); err == nil {
			t.Errorf("%s: used", name)
		}
	}
	if _, err := keyfile.Read(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no key: %v", err)
	}
}
