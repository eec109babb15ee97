package ipc_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

func TestUnreachableSaysWhy(t *testing.T) {
	path := ipctest.Socket(t)
	_, err := ipc.New(path, "cli").Status(t.Context())
	var u *ipc.Unreachable
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "not running") {
		t.Errorf("no socket: %v", err)
	}
	l, err := ipcserver.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed daemon leaves it
	l.Close()
	_, err = ipc.New(path, "cli").Status(t.Context())
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("dead socket: %v", err)
	}
}

// A client sends nothing to a socket that someone else made or could replace.
func TestForeignSockets(t *testing.T) {
	check := func(t *testing.T, path, says string) {
		t.Helper()
		c := ipc.New(path, "cli")
		_, err := c.Status(t.Context())
		var f *ipc.Foreign
		if !errors.As(err, &f) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want a refusal with %q", err, says)
		}
		for _, err := range c.Watch(t.Context(), nil) {
			if !errors.As(err, &f) {
				t.Errorf("watch: %v", err)
			}
		}
	}
	t.Run("open directory", func(t *testing.T) {
		path := ipctest.Socket(t)
		ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New()})
		if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		check(t, path, "others may write")
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, path, "no socket")
	})
	t.Run("another's socket", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("giving a socket away needs root")
		}
		path := ipctest.Socket(t)
		ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New()})
		if err := os.Lchown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		check(t, path, "12345")
	})
}

func TestFindListener(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New()})
	l, err := ipc.FindListener(t.Context(), path)
	if err != nil {
		t.Skipf("this system does not say who listens: %v", err)
	}
	if l.PID != os.Getpid() || l.UID != os.Geteuid() {
		t.Errorf("got %+v", l)
	}
}

// The daemon goes away and comes back: the watcher says so and misses nothing.
func TestWatchSurvivesRestart(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	stop := ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	zero := uint64(0)
	b.Append("t_1", lemma.TurnOpened{})
	var got []uint64
	breaks := 0
	for e, err := range c.Watch(t.Context(), &zero) {
		if err != nil {
			breaks++
			if breaks == 2 { // the stream ended, and a reconnect failed: now it comes back
				b.Append("t_1", lemma.TurnClosed{})
				ipctest.Serve(t, path, ipcserver.Options{Backend: b})
			}
			continue
		}
		got = append(got, e.Seq)
		if e.Seq == 1 {
			stop()
			b.Append("t_1", lemma.GateDecided{})
		}
		if e.Seq == 3 {
			break
		}
	}
	if fmt.Sprint(got) != "[1 2 3]" || breaks < 2 {
		t.Errorf("got %v with %d interruptions", got, breaks)
	}
}

// Filtered streams resume behind what the heartbeat passed, and an entry that
// the log no longer holds is not waited for.
func TestWatchEndsOnAnotherLog(t *testing.T) {
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: ipctest.New()})
	since := uint64(500)
	n := 0
	for _, err := range ipc.New(path, "cli").Watch(t.Context(), &since) {
		var p *ipc.Problem
		if !errors.As(err, &p) || p.Status != 409 {
			t.Errorf("got %v", err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d results, want one refusal", n)
	}
}

func TestIDsAreEscaped(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	b.Tries["project/shop/db.version"] = ipc.SensorTried{Output: "14"}
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	if v, err := c.TrySensor(t.Context(), "project/shop/db.version", ipc.SensorTry{}); err != nil || v.Output != "14" {
		t.Errorf("got %+v, %v", v, err)
	}
	for _, id := range []string{"../status", "?x=1", "a#b", "%2e%2e"} {
		var p *ipc.Problem
		if _, err := c.Fact(t.Context(), id); !errors.As(err, &p) || p.Status != 404 {
			t.Errorf("fact %q: %v", id, err)
		}
	}
}
