// Package main is gettier, everything that a person types. Each command is a
// file: it asks the daemon through ipc, or runs the same packages offline, and
// prints. No rule, no storage and no wire format is decided here, and whatever a
// model or a sensor said goes through tui/clean before it is printed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	restore, err := refuseCores()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gettier:", err)
		os.Exit(exitInternal)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	a.hide = hideMemory
	a.exec = func(path string, argv, env []string) error {
		if err := restore(); err != nil {
			return err
		}
		return syscall.Exec(path, argv, env)
	}
	os.Exit(a.run(ctx, os.Args[1:]))
}
