package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a process into a session of its own and ties its life to
// ours. The kernel watches the thread that started it, hence pinThread.
func attributes(c *credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: c.system()}
}

// pinThread keeps the starting thread alive until the returned function is
// called: its end would kill the process.
func pinThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// watchExit tells when the process has ended, before it is reaped: until reap
// is called the number of its group cannot belong to anyone else.
func watchExit(cmd *exec.Cmd) (gone <-chan struct{}, reap func() error) {
	done := make(chan struct{})
	pid := cmd.Process.Pid
	go func() {
		defer close(done)
		for {
			err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return done, cmd.Wait
}

// identity changes whenever a file's content may have changed. The change time
// counts too: unlike the modification time, no program can set it back.
func identity(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}
