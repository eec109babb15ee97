package ipcserver_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
)

func TestListen(t *testing.T) {
	t.Run("private", func(t *testing.T) {
		path := ipctest.Socket(t)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := ipcserver.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			fi, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := fi.Mode().Perm(); got != want {
				t.Errorf("%s has mode %o, want %o", p, got, want)
			}
		}
		if _, err := ipcserver.Listen(path); !errors.Is(err, ipcserver.ErrRunning) {
			t.Errorf("second listener: %v", err)
		}
	})
	t.Run("stale", func(t *testing.T) {
		path := ipctest.Socket(t)
		l, err := ipcserver.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed daemon leaves it
		l.Close()
		l, err = ipcserver.Listen(path)
		if err != nil {
			t.Fatalf("a stale socket was not replaced: %v", err)
		}
		l.Close()
	})
	t.Run("a file is kept", func(t *testing.T) {
		path := ipctest.Socket(t)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ipcserver.Listen(path); err == nil {
			t.Error("a file was replaced")
		}
	})
	t.Run("others' modes are kept", func(t *testing.T) {
		path := ipctest.Socket(t)
		dir := filepath.Dir(path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for mode, refused := range map[os.FileMode]bool{0o755: false, 0o777 | os.ModeSticky: true, 0o770: true} {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			l, err := ipcserver.Listen(path)
			if (err != nil) != refused {
				t.Errorf("mode %v: %v", mode, err)
			}
			if l != nil {
				l.Close()
			}
			if fi, err := os.Stat(dir); err != nil || fi.Mode()&^os.ModeDir != mode {
				t.Errorf("mode %v was changed: %v %v", mode, fi.Mode(), err)
			}
		}
	})
	t.Run("link as directory", func(t *testing.T) {
		path := ipctest.Socket(t)
		if err := os.Symlink(t.TempDir(), filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if _, err := ipcserver.Listen(path); err == nil {
			t.Error("followed a link")
		}
	})
	t.Run("others' directory above", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("giving a directory away needs root")
		}
		path := ipctest.Socket(t)
		if err := os.Chown(filepath.Dir(filepath.Dir(path)), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := ipcserver.Listen(path); err == nil || !strings.Contains(err.Error(), "12345") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("too long", func(t *testing.T) {
		path := filepath.Join(filepath.Dir(ipctest.Socket(t)), strings.Repeat("x", 120))
		if _, err := ipcserver.Listen(path); err == nil || !strings.Contains(err.Error(), "--socket") {
			t.Errorf("got %v", err)
		}
	})
}
