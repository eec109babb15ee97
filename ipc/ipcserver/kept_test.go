package ipcserver

import "testing"

// A connection that cannot be made again is not closed for being silent.
func TestKept(t *testing.T) {
	if s := New(Options{Kept: true}); s.http.ReadHeaderTimeout != 0 || s.http.IdleTimeout != 0 || s.http.ReadTimeout != 0 {
		t.Errorf("timeouts %s, %s, %s", s.http.ReadHeaderTimeout, s.http.IdleTimeout, s.http.ReadTimeout)
	}
	if s := New(Options{}); s.http.ReadHeaderTimeout == 0 || s.http.IdleTimeout == 0 {
		t.Error("anybody may keep a connection of the socket for ever")
	}
}
