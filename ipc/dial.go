package ipc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Unreachable: nobody answers on the socket. The daemon is down, or the path
// is another one's.
type Unreachable struct {
	Path string
	Err  error
}

func (e *Unreachable) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("gettierd is not running (no socket at %s)", e.Path)
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("gettierd is not running (nobody listens at %s)", e.Path)
	}
	return fmt.Sprintf("cannot reach gettierd at %s: %v", e.Path, e.Err)
}

func (e *Unreachable) Unwrap() error { return e.Err }

// Foreign: the socket, its directory or the process behind it is not ours, so
// nothing is sent to it.
type Foreign struct {
	Path string
	Why  string
}

func (e *Foreign) Error() string { return fmt.Sprintf("%s is not used: %s", e.Path, e.Why) }

// dialOwn connects to the socket at path when it and its listener are uid's.
func dialOwn(ctx context.Context, path string, uid int) (*net.UnixConn, error) {
	if err := ownSocket(path, uid); err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, &Unreachable{path, err}
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, &Unreachable{path, errors.New("not a unix socket")}
	}
	who, known, err := listener(u)
	if err == nil && known && who.UID != uid {
		err = &Foreign{path, fmt.Sprintf("uid %d listens there, you are uid %d", who.UID, uid)}
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return u, nil
}

// ownSocket looks at the socket and its directory before anything is connected.
func ownSocket(path string, uid int) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return &Unreachable{path, err}
	}
	if fi.Mode()&fs.ModeSocket == 0 {
		return &Foreign{path, "it is no socket"}
	}
	if o, ok := owner(fi); ok && o != uid {
		return &Foreign{path, fmt.Sprintf("it belongs to uid %d, you are uid %d", o, uid)}
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return &Unreachable{path, err}
	}
	if o, ok := owner(dir); ok && o != uid {
		return &Foreign{path, fmt.Sprintf("its directory belongs to uid %d, you are uid %d", o, uid)}
	}
	if dir.Mode().Perm()&0o022 != 0 {
		return &Foreign{path, "others may write to its directory"}
	}
	return nil
}

func owner(fi fs.FileInfo) (int, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// Listener is the process that listens at the other end.
type Listener struct {
	UID int
	PID int
}

// FindListener says which process serves the socket at path.
func FindListener(ctx context.Context, path string) (Listener, error) {
	c, err := dialOwn(ctx, path, os.Geteuid())
	if err != nil {
		return Listener{}, err
	}
	defer c.Close()
	l, known, err := listener(c)
	if err != nil {
		return Listener{}, err
	}
	if !known {
		return Listener{}, &Unreachable{path, errors.New("this system does not say who listens")}
	}
	return l, nil
}
