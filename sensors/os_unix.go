//go:build unix

package sensors

import (
	"errors"
	"os"
	"syscall"
)

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
