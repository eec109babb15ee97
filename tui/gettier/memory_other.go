//go:build !linux

package main

// hideMemory has no counterpart here: debuggers of the same user are the
// system's to refuse.
func hideMemory() (show func() error, err error) { return func() error { return nil }, nil }
