package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc/ipctest"
)

// TestForget drops a turn's request once, for a person who said yes.
func TestForget(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	if code, _, errs := w.gettier("forget", "last"); code != exitRefused || !strings.Contains(errs, "--yes") || len(w.b.People()) != 0 {
		t.Errorf("unasked: exit %d, %s", code, errs)
	}
	if code, out, errs := w.gettier("forget", "last", "--yes", "--json"); code != exitOK || !strings.Contains(out, `"blobs":1`) || len(w.b.People()) != 1 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := w.gettier("forget", "last", "--yes"); code == exitOK || !strings.Contains(errs, "already") || len(w.b.People()) != 1 {
		t.Errorf("again: exit %d, %s", code, errs)
	}
	if code, _, errs := w.gettier("forget", "zzzzz", "--yes"); code == exitOK || len(w.b.People()) != 1 {
		t.Errorf("no such turn: exit %d, %s", code, errs)
	}
	nobody := newWorld(t, ipctest.Nobody)
	if code, _, errs := nobody.gettier("forget", "last", "--yes"); code != exitRefused || len(nobody.b.People()) != 0 {
		t.Errorf("by nobody: exit %d, %s", code, errs)
	}
}

// TestRevoke takes back what was answered, once.
func TestRevoke(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	_, out, _ := w.gettier("holds", "--json")
	var l struct {
		Items []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Items) == 0 {
		t.Fatalf("%s: %v", out, err)
	}
	id := l.Items[0].ID
	if code, _, errs := w.gettier("answer", id, "--revoke"); code == exitOK || len(w.b.People()) != 0 {
		t.Errorf("an open hold: exit %d, %s", code, errs)
	}
	if code, _, errs := w.gettier("answer", id, "--confirm"); code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	if code, _, errs := w.gettier("answer", id, "--revoke", "--confirm"); code != exitUsage {
		t.Errorf("both: exit %d, %s", code, errs)
	}
	if code, out, errs := w.gettier("answer", id, "--revoke"); code != exitOK || !strings.Contains(out, "confirm taken back") || len(w.b.People()) != 2 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := w.gettier("answer", id, "--revoke"); code == exitOK || !strings.Contains(errs, "no answer") {
		t.Errorf("again: exit %d, %s", code, errs)
	}
}
