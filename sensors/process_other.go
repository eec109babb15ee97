//go:build unix && !linux

package sensors

import (
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"

	"gettier.dev/gettierd/sensors/confine"
)

// attributes puts a process into a session of its own.
func attributes(c *credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: c.system()}
}

// launch starts a command; there is no sandbox here.
func launch(c command, process func() *exec.Cmd) (*exec.Cmd, func() *confine.Report, error) {
	cmd := process()
	cmd.Path, cmd.Args, cmd.SysProcAttr = c.path, c.argv, attributes(c.user)
	return cmd, func() *confine.Report { return nil }, cmd.Start()
}

func pinThread() func() { return func() {} }

// watchExit tells when the process has ended. Without a wait that leaves it
// unreaped, that is also when it is reaped.
func watchExit(cmd *exec.Cmd) (gone <-chan struct{}, reap func() error) {
	done := make(chan struct{})
	var err error
	go func() {
		err = cmd.Wait()
		close(done)
	}()
	return done, func() error { return err }
}

// identity changes whenever a file's content may have changed.
func identity(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}
