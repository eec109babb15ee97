//go:build unix && !gettier_cores

package main

import (
	"fmt"
	"syscall"
)

// refuseCores lets no crash write the memory of this process, and with it the
// keys, to a file; nor that of any process it starts. Nor may its memory be looked into
// while it runs.
func refuseCores() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("refuse core dumps: %w", err)
	}
	return hideMemory()
}
