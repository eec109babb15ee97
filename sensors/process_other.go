//go:build unix && !linux

package sensors

import (
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"syscall"
)

// attributes puts a process into a session of its own.
func attributes(c *credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: c.system()}
}

// workers would start sensors in a sandbox; there is none here.
type workers struct{}

func (w *workers) close() {}

func launch(c command, stdout, stderr io.Writer) (*child, error) { return plain(c, stdout, stderr) }

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
