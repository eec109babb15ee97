package harness

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
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
		syscall.Exit(code) // at once: os.Exit would linger for a second under the race detector
	}
	if len(os.Args) > 3 && os.Args[1] == "scenarios" && os.Args[2] == "agent" {
		syscall.Exit(AgentMain(context.Background(), os.Args[3:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 3 && os.Args[1] == "supervise-and-hang" {
		superviseAndHang(os.Args[2], os.Args[3])
	}
	code := m.Run()
	if built {
		if bin, err := gettierd(); err == nil {
			os.RemoveAll(filepath.Dir(bin))
		}
	}
	os.Exit(code)
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// superviseAndHang stands in for a harness that is about to be killed.
func superviseAndHang(dir, file string) {
	exe, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	s := newSupervisor(exe, dir, dir)
	if _, err := s.start(command{name: "tree", dir: dir,
		argv: []string{"sh", "-c", `setsid sh -c 'echo $$ >"$1"; exec sleep 600' x "$1" & wait`, "x", file}}); err != nil {
		os.Exit(1)
	}
	select {}
}
