package ipctest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
)

// Anyone is a Person that takes every caller for a person.
func Anyone(*net.UnixConn) (lemma.Answerer, error) {
	return lemma.Answerer{UID: os.Geteuid(), User: "test"}, nil
}

// Nobody is a Person that refuses, with a reason like the real one gives.
func Nobody(*net.UnixConn) (lemma.Answerer, error) {
	return lemma.Answerer{}, errors.New("the caller has no terminal")
}

// Self is a Peer that says every caller is this process.
func Self(*net.UnixConn) (ipcserver.Peer, error) {
	return ipcserver.Peer{UID: os.Geteuid(), PID: os.Getpid()}, nil
}

// Socket is a short path for a socket of this test: sun_path is small, and
// t.TempDir names the whole test.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gt")
	if err != nil {
		t.Fatalf("make socket directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "gettierd.sock")
}

// Serve runs a server over o (Peer defaults to Self) at path until the test
// ends or stop is called.
func Serve(t testing.TB, path string, o ipcserver.Options) (stop func()) {
	t.Helper()
	if o.Peer == nil {
		o.Peer = Self
	}
	s := ipcserver.New(o)
	l, err := ipcserver.Listen(path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	done := make(chan error, 1) // the goroutine ends even when stop is never called
	go func() { done <- s.Serve(l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
