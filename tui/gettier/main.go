// Package main is gettier, everything that a person types. Each command is a
// file: it asks the daemon through ipc, or runs the same packages offline, and
// prints. No rule, no storage and no wire format is decided here, and whatever a
// model or a sensor said goes through tui/clean before it is printed.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
