//go:build !linux

package main

import (
	"os"
	"testing"
)

// typed needs a pseudo-terminal, which this test makes on Linux only.
func typed(t *testing.T, _ string) *os.File {
	t.Helper()
	t.Skip("pseudo-terminals are made on Linux only")
	return nil
}
