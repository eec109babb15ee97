package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// ledgerAt makes a ledger where the daemon of this home would have it, and a copy
// of it, older by an entry, in the working directory.
func ledgerAt(t *testing.T, home string) string {
	t.Helper()
	state := filepath.Join(home, "state", "gettier")
	if err := os.MkdirAll(filepath.Join(state, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	seed := make([]byte, ed25519.SeedSize)
	if err := os.WriteFile(filepath.Join(state, "keys", "log"), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(state, "ledger.db")
	l, err := ledger.Open(path, ledger.Options{Key: ed25519.NewKeyFromSeed(seed)})
	if err != nil {
		t.Fatal(err)
	}
	note := ledger.Draft{Body: lemma.StateLost{Contract: lemma.Contract, Reason: strings.Repeat("planted ", 9)}}
	if _, err := l.Append(context.Background(), note); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create("copy.db")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Snapshot(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLedgerCommands(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	t.Chdir(t.TempDir())
	path := ledgerAt(t, w.home)
	want := func(code int, words string, args ...string) {
		t.Helper()
		got, out, errs := w.gettier(args...)
		if got != code || !strings.Contains(out+errs, words) {
			t.Errorf("%q: exit %d\n%s%s", args, got, out, errs)
		}
	}
	want(exitOK, "sound  2 entries", "ledger", "check", "--full")
	want(exitOK, "the same  2 entries", "ledger", "rebuild")
	want(exitRefused, "nobody is there", "ledger", "rebuild", "--write")
	want(exitOK, "written  3 entries folded anew", "ledger", "rebuild", "--write", "--yes")
	want(exitUsage, "-o names", "ledger", "backup")
	want(exitRefused, "is there already", "ledger", "backup", "-o", "copy.db")
	want(exitOK, "verified  1 entries", "ledger", "backup", "-o", "daemon.db")
	w.b.Broken = errors.New("the disk fails")
	want(exitReach, "EOF", "ledger", "backup", "-o", "broken.db")
	if _, err := os.Lstat("broken.db"); err == nil {
		t.Error("half a backup has a name")
	}
	w.b.Broken = nil
	want(exitOK, "last 24 hours", "ledger", "size")
	want(exitRefused, "nobody is there", "ledger", "restore", "copy.db")
	want(exitRefused, "nobody is there", "ledger", "repair")
	want(exitOK, "moved aside", "ledger", "restore", "copy.db", "--yes", "--older")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("planted"), []byte("plucked")) // freed pages hold it, too
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	want(exitFound, "entries can be proved", "ledger", "check", "--full")
	want(exitFound, "how many can be proved shows with the log's --key", "ledger", "check", path, "--full")
	want(exitFound, "damaged", "ledger", "restore", path, "--yes")
	// The log's key is read by nobody whose memory others may read.
	w.hide = func() (func() error, error) { return nil, errors.New("no hiding here") }
	for _, args := range [][]string{{"restore", "copy.db"}, {"repair"}, {"rebuild", "--write"}} {
		want(exitInternal, "no hiding here", append(append([]string{"ledger"}, args...), "--yes")...)
	}
	w.hide = nil
	if err := os.Truncate(path, 64<<10); err != nil {
		t.Fatal(err)
	}
	got, _, errs := w.gettier("ledger", "repair", "--yes")
	if got != exitOK && got != exitFound {
		t.Errorf("repair: exit %d, %s", got, errs)
	}
	want(exitRefused, "no log key", "ledger", "repair", "--yes", "--state", t.TempDir())
}

func TestPrintReplaced(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "  1 request that you had forgotten did not come back with it\n", 2: "  2 requests that you had forgotten did not come back with it\n"} {
		var out bytes.Buffer
		if err := (&app{out: &out}).printReplaced(ledger.Replaced{Size: 5, Had: 6, Forgotten: n}, "restored"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != "restored  5 entries now, 6 had been seen\n"+want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// TestLedgerPath: the commands are about the file that the configuration names,
// once a person has approved it.
func TestLedgerPath(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	t.Chdir(t.TempDir())
	path := ledgerAt(t, w.home)
	moved := filepath.Join(t.TempDir(), "elsewhere.db")
	conf := filepath.Join(w.home, "config", "gettier")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(conf, "gettierd.yaml"), []byte("version: 1\nledger:\n  path: "+moved+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		if _, out, errs := w.gettier("ledger", "check"); !strings.Contains(out, want) {
			t.Errorf("%s%s, want %s", out, errs, want)
		}
	}
	check("sound  2 entries  " + path) // a ledger is here, and nobody has approved another
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	check("sound  2 entries  " + moved)
}
