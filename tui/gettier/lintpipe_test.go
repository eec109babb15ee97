package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in place of a registry is read as what is in it, and never waited for.
func TestLintPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "sensors.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if b, err := readSmall(pipe); err != nil || len(b) != 0 {
		t.Errorf("%q %v", b, err)
	}
	writer := make(chan error, 1)
	text := "version: 1\n" + strings.Repeat("# filler\n", 20000)
	f, err := syscall.Open(pipe, syscall.O_RDWR, 0) // so that the writer below does not wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer syscall.Close(f)
		for rest := []byte(text); len(rest) > 0; {
			n, err := syscall.Write(f, rest)
			if err != nil {
				writer <- err
				return
			}
			rest = rest[n:]
		}
		writer <- nil
	}()
	if b, err := readSmall(pipe); err != nil || string(b) != text {
		t.Errorf("%d of %d bytes, %v", len(b), len(text), err)
	}
	if err := <-writer; err != nil {
		t.Error(err)
	}
}
