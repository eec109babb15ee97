//go:build unix

package sensors

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// credential is another user that a sensor runs as.
type credential struct {
	uid, gid uint32
	home     string
}

// credentialOf looks a user up by name.
func credentialOf(name string) (*credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &credential{uint32(uid), uint32(gid), u.HomeDir}, nil
}

func (c *credential) system() *syscall.Credential {
	if c == nil {
		return nil
	}
	return &syscall.Credential{Uid: c.uid, Gid: c.gid, Groups: []uint32{c.gid}}
}

// signalGroup signals all that is left of a process group. Nobody being left
// is no error.
func signalGroup(pgid int, sig syscall.Signal) {
	if pgid > 1 {
		_ = syscall.Kill(-pgid, sig)
	}
}

func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}

const nonblock = syscall.O_NONBLOCK

// flock waits for the exclusive advisory lock of f; closing f gives it back.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
