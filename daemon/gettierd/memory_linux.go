//go:build !gettier_cores

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideMemory closes this process's memory, and with it the keys, to the other
// processes of its user: no ptrace, no /proc/PID/mem, no core (prctl(2),
// PR_SET_DUMPABLE). What it starts is dumpable again; sensors depend on that
// (package confine). It is no wall against a program of the same user that
// replaces our binary.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide memory: %w", err)
	}
	return nil
}
