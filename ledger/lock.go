package ledger

import (
	"os"
	"syscall"
)

// lockFile takes the lock that bbolt takes on a file it writes, or fails at once.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
