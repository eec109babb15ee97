package main

import (
	"syscall"
	"testing"
)

// A crash writes no core, and a program that we become is not told so.
func TestRefuseCores(t *testing.T) {
	var before, within, after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	restore, err := refuseCores()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &within); err != nil || within.Cur != 0 || within.Max != before.Max {
		t.Errorf("within %+v %v", within, err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &after); err != nil || after != before {
		t.Errorf("before %+v, after %+v %v", before, after, err)
	}
}
