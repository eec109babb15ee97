package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/snapshot"
)

// snapshots keeps checkpoints in the configured directory. Before it adds one it
// looks whether the log still contains the newest that is there.
type snapshots struct {
	ledger *ledger.Ledger
	conf   func() config.Snapshots
	warn   func(string)

	last time.Time // when one was kept
	dir  string    // where
	size uint64    // of what was kept
}

func (d *Daemon) newSnapshots() *snapshots {
	return &snapshots{ledger: d.ledger, conf: func() config.Snapshots { return d.conf.live().Audit.Snapshots }, warn: d.warn}
}

// tick keeps a checkpoint when one is due and the log has grown. A place that
// cannot be written is a warning, not a reason to stop: it is tried again.
func (s *snapshots) tick(now time.Time) {
	c := s.conf()
	if c.Dir == "" {
		return
	}
	head := s.ledger.Head()
	since := now.Sub(s.last)
	if s.dir == c.Dir && (head.Size == s.size || since >= 0 && since < c.Every) {
		return
	}
	if err := s.keep(c.Dir); err != nil {
		s.warn("checkpoints are not kept outside: " + err.Error())
		return
	}
	s.last, s.dir, s.size = now, c.Dir, head.Size
}

func (s *snapshots) keep(dir string) error {
	if !filepath.IsAbs(dir) {
		return errors.New("audit.snapshots.dir must be an absolute path")
	}
	l, place := s.ledger, snapshot.Dir(dir)
	signed := l.Checkpoint()
	now, err := l.Keys().Open(signed)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	old, size, err := place.Newest(now.Origin)
	if err != nil {
		return err
	}
	if old != nil {
		before, err := l.Keys().Open(old)
		if err != nil {
			return fmt.Errorf("the newest one in %s does not hold: %w", dir, err)
		}
		if before.Size != size || before.Size > now.Size {
			return fmt.Errorf("the log has %d entries, %s has a checkpoint of %d", now.Size, dir, before.Size)
		}
		root, err := l.RootAt(before.Size)
		if err != nil {
			return err
		}
		if root != before.Root {
			return fmt.Errorf("the log was rewritten: %s has a checkpoint of %d entries that it does not contain", dir, before.Size)
		}
	}
	return place.Put(now.Origin, now.Size, signed)
}
