package harness

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"gettier.dev/gettierd/scenarios/fixture"
)

// TestMain lets the test binary stand in for the gettier binary that a run
// starts again: as a fixture, a guard or the agent loop.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fixture" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := fixture.Main(ctx, os.Args[2:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
