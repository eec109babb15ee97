package ipcserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is what fits sun_path on every platform we build for.
const maxSocketPath = 103

// ErrRunning: another daemon answers on the socket.
var ErrRunning = errors.New("a gettierd already listens there")

// Listen makes the socket: its directory ours, reached without links that others
// could turn, 0700 where it is new, the socket 0600. A socket that a dead daemon left is
// replaced, one that answers is ErrRunning. The caller already holds the
// ledger's lock, so two starting daemons do not race here.
func Listen(path string) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on socket: the path has %d bytes, the system takes %d: choose a shorter one with --socket", len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make socket directory: %w", err)
	}
	if err := ownDir(dir); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// 0177: the socket is 0600 from its first moment, not after a chmod.
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	return l, nil
}

// ownDir checks that dir is a directory of ours, tightens it where it is only
// for the socket, and that no directory above can be swapped by another user.
func ownDir(dir string) error {
	me := uint32(os.Geteuid())
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check socket directory: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || !ok || st.Uid != me {
		return fmt.Errorf("check socket directory: %s must be a directory of uid %d, not a link", dir, me)
	}
	if err := tighten(dir, fi.Mode()); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("check socket directory: %w", err)
	}
	for p := real; ; p = filepath.Dir(p) {
		fi, err := os.Lstat(p)
		if err != nil {
			return fmt.Errorf("check socket directory: %w", err)
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("check socket directory: %s has no owner", p)
		}
		if st.Uid != me && st.Uid != 0 {
			return fmt.Errorf("check socket directory: %s belongs to uid %d, who could replace what is in it", p, st.Uid)
		}
		if fi.Mode().Perm()&0o022 != 0 && fi.Mode()&fs.ModeSticky == 0 && st.Uid != me {
			return fmt.Errorf("check socket directory: others may write to %s", p)
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// tighten makes a directory that is there for the socket alone 0700. One that
// holds other things keeps its mode, since others may need to pass through it
// and the socket is 0600 anyway; one that others may write to, such as the
// system's for temporary files, is no place for a socket.
func tighten(dir string, mode fs.FileMode) error {
	switch {
	case mode.Perm()&0o077 == 0:
		return nil
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("check socket directory: others may write to %s: choose a directory of your own with --socket", dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("check socket directory: %w", err)
	}
	if len(names) > 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("tighten socket directory: %w", err)
	}
	return nil
}

// removeStale unlinks a socket that nobody answers on.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check socket: %w", err)
	}
	if fi.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("check socket: %s is there and is no socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("listen on %s: %w", path, ErrRunning)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("check socket: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}
