package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideMemory closes this process to the other ones of its user before it reads a
// key: no ptrace, no /proc/PID/mem. The daemon cannot see who calls either then,
// so it has to have looked before; show undoes it.
func hideMemory() (show func() error, err error) {
	set := func(n uintptr) error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, n, 0, 0, 0); err != nil {
			return fmt.Errorf("hide memory: %w", err)
		}
		return nil
	}
	return func() error { return set(1) }, set(0)
}
