package ipc

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// listener asks the kernel who called listen on the other end.
func listener(c *net.UnixConn) (Listener, bool, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Listener{}, false, fmt.Errorf("ask for the socket's owner: %w", err)
	}
	var (
		cred *unix.Ucred
		serr error
	)
	if err := raw.Control(func(fd uintptr) {
		cred, serr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return Listener{}, false, fmt.Errorf("ask for the socket's owner: %w", err)
	}
	if serr != nil {
		return Listener{}, false, fmt.Errorf("ask for the socket's owner: %w", serr)
	}
	return Listener{UID: int(cred.Uid), PID: int(cred.Pid)}, true, nil
}
