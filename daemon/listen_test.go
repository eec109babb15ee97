package daemon

import (
	"log/slog"
	"os"
	"testing"
)

// TestLeaveLoop: a daemon that was started from a shell with gettier env --connect
// does not send its own calls to itself; another proxy stays.
func TestLeaveLoop(t *testing.T) {
	for value, kept := range map[string]bool{
		"http://127.0.0.1:11435": false, "http://localhost:11435": false, "http://[::1]:11435/": false,
		"http://127.0.0.1:3128": true, "http://proxy.corp:11435": true, "": true,
	} {
		t.Setenv("HTTPS_PROXY", value)
		d := &Daemon{log: slog.New(slog.DiscardHandler)}
		d.leaveLoop("127.0.0.1:11435")
		if got := os.Getenv("HTTPS_PROXY"); (got == value) != kept || len(d.warningLines()) == 0 != kept {
			t.Errorf("%q became %q, said %v", value, got, d.warningLines())
		}
	}
}
