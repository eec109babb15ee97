package daemon

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/witness"
)

// TestSnapshots keeps checkpoints at their times, and says when the log is not
// the one whose checkpoints were kept.
func TestSnapshots(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := func(named string) *ledger.Ledger {
		l, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{
			Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32)), MmapSize: 1 << 20, Now: func() time.Time { return now }, Version: named,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	grow := func(l *ledger.Ledger) {
		t.Helper()
		if _, err := l.Append(context.Background(), ledger.Draft{Body: lemma.ScopeConflict{Contract: lemma.Contract, Named: "a", Found: "b"}}); err != nil {
			t.Fatal(err)
		}
	}
	c := config.Snapshots{Every: time.Hour}
	var warned []string
	l := open("first")
	s := snapshots{ledger: l, every: func() time.Duration { return c.Every }, places: func() []place {
		if c.Dir == "" {
			return nil
		}
		p := place{name: "dir:" + c.Dir}
		p.to, p.err = witness.Parse(p.name, witness.Access{})
		return []place{p}
	}}
	s.warn = func(w string) { warned = append(warned, w) }
	s.note = s.warn
	tick := func(at time.Time) { s.tick(context.Background(), at) }
	kept := func() int {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(c.Dir, "*.checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	tick(now) // no directory: nothing to do
	c.Dir = filepath.Join(t.TempDir(), "outside")
	tick(now)
	tick(now.Add(2 * time.Hour)) // nothing new
	if kept() != 1 || len(warned) > 0 {
		t.Fatal(kept(), warned)
	}
	grow(l)
	tick(now.Add(59 * time.Minute)) // not due
	if kept() != 1 {
		t.Fatal(kept())
	}
	tick(now.Add(time.Hour))
	if kept() != 2 || len(warned) > 0 {
		t.Fatal(kept(), warned)
	}
	grow(l)
	tick(now) // the clock went backwards: that must not end it
	if kept() != 3 || len(warned) > 0 {
		t.Fatal(kept(), warned)
	}

	// The same key, but a log that was written anew: shorter, then longer.
	s.ledger, s.state = open("second"), nil
	tick(now.Add(9 * time.Hour))
	if len(warned) != 1 || !strings.Contains(warned[0], "a checkpoint of 3 was kept") {
		t.Fatal(warned)
	}
	for range 4 {
		grow(s.ledger)
	}
	tick(now.Add(9 * time.Hour))
	if len(warned) != 2 || !strings.Contains(warned[1], "rewritten") || kept() != 3 {
		t.Fatal(warned, kept())
	}
	c.Dir = "relative"
	tick(now.Add(9 * time.Hour))
	if _, err := os.Stat("relative"); len(warned) != 3 || err == nil {
		t.Fatal(warned)
	}
}

// TestPlaces: what the configuration names, and what is no place outside.
func TestPlaces(t *testing.T) {
	root := t.TempDir()
	s := &settings{d: &Daemon{}}
	c := &config.Config{Projects: []config.Project{{Name: "shop", Root: root}}}
	c.Audit.Snapshots.Dir = "/outside"
	c.Audit.Witness = "git:" + root + "/sub#away, dir:" + root + ",https://h/p,, s3:https://h/b , ftp://h"
	t.Setenv("PLANTED", "a secret")
	want := []string{"dir:/outside ", "git:" + root + "/sub#away project shop", "dir:" + root + " project shop", "https://h/p ", "s3:https://h/b secret key", "ftp://h no place"}
	check := func() {
		t.Helper()
		got := s.places(c)
		if len(got) != len(want) {
			t.Fatalf("%+v", got)
		}
		for i, p := range got {
			name, why, _ := strings.Cut(want[i], " ")
			if p.name != name || (p.err == nil) != (why == "") || p.err != nil && !strings.Contains(p.err.Error(), why) || (p.to == nil) != (p.err != nil) {
				t.Errorf("%+v, want %s", p, want[i])
			}
		}
	}
	check()
	c.Audit.S3 = config.S3{AccessKeyID: "me", KeyEnv: "PLANTED"}
	want[4] = "s3:https://h/b "
	check()
	c.Audit.S3.KeyFile = "/elsewhere"
	want[4] = "s3:https://h/b secret key"
	check()
}
