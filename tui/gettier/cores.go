package main

import (
	"fmt"
	"syscall"
)

// refuseCores keeps a crash from writing the memory of this process to a file:
// some commands hold a key for a moment. restore gives the limit back for a
// program that this one becomes.
func refuseCores() (restore func() error, err error) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &before); err != nil {
		return nil, fmt.Errorf("refuse core dumps: %w", err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &none); err != nil {
		return nil, fmt.Errorf("refuse core dumps: %w", err)
	}
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_CORE, &before) }, nil
}
