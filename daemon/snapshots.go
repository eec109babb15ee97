package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/credential"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/snapshot"
	"gettier.dev/gettierd/ledger/witness"
)

// place is somewhere that checkpoints are kept; err says why it is none.
type place struct {
	name string
	to   witness.Place
	err  error
}

// places are those of the configuration. One that cannot be is no reason not to
// start: it shows in the status, as one that cannot be written does.
func (s *settings) places(c *config.Config) []place {
	var specs []string
	if c.Audit.Snapshots.Dir != "" {
		specs = append(specs, "dir:"+c.Audit.Snapshots.Dir)
	}
	for spec := range strings.SplitSeq(c.Audit.Witness, ",") {
		if spec = strings.TrimSpace(spec); spec != "" {
			specs = append(specs, spec)
		}
	}
	var out []place
	for _, spec := range specs {
		p := place{name: spec}
		var a witness.Access
		if strings.HasPrefix(spec, "s3:") {
			a, p.err = s.s3(c.Audit.S3)
		}
		if p.err == nil {
			p.to, p.err = witness.Parse(spec, a)
		}
		if name := within(c, spec); p.err == nil && name != "" {
			p.to, p.err = nil, fmt.Errorf("it lies in the project %s, where agents write", name)
		}
		out = append(out, p)
	}
	return out
}

// within names the project that a place of this machine lies in: there it would be
// no outside, and a repository's own configuration can make git run things.
func within(c *config.Config, spec string) string {
	path, local := strings.CutPrefix(spec, "dir:")
	if !local {
		if path, local = strings.CutPrefix(spec, "git:"); !local {
			return ""
		}
		path, _, _ = strings.Cut(path, "#")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, p := range c.Projects {
		if rel, err := filepath.Rel(p.Root, path); err == nil && filepath.IsLocal(rel) {
			return p.Name
		}
	}
	return ""
}

// s3 reads what the s3: places are written with.
func (s *settings) s3(c config.S3) (witness.Access, error) {
	a := witness.Access{Region: c.Region, ID: c.AccessKeyID}
	named := 0
	for _, from := range []string{c.KeyEnv, c.KeyFile, c.KeyKeyring, c.KeyLedger} {
		if from != "" {
			named++
		}
	}
	if named != 1 {
		return a, errors.New("audit.s3 names not exactly one place of its secret key")
	}
	var err error
	if c.KeyLedger != "" {
		a.Secret, err = s.d.sealedKey(c.KeyLedger)
	} else {
		a.Secret, err = credential.Read(credential.Source{Env: c.KeyEnv, File: c.KeyFile, Keyring: c.KeyKeyring}, os.Getenv)
	}
	return a, err
}

// snapshots keeps checkpoints in the configured places. Before it adds one it
// looks whether the log still contains the newest that is there.
type snapshots struct {
	ledger *ledger.Ledger
	places func() []place
	every  func() time.Duration
	warn   func(string) // of what a person must see
	note   func(string) // of what may be over at the next attempt, and stands in status until then

	mu    sync.Mutex
	state map[string]*keeping // by the place's name
}

// errRewritten: the place has a checkpoint that the log does not contain.
var errRewritten = errors.New("the log was rewritten or cut")

// keeping is how a place stands.
type keeping struct {
	at     time.Time // when one was kept
	size   uint64    // of what is there
	failed string    // why the last attempt did not
}

func (d *Daemon) newSnapshots() *snapshots {
	return &snapshots{
		ledger: d.ledger, warn: d.warn, note: func(s string) { d.log.Warn(s) }, places: func() []place { return d.conf.cur.Load().kept },
		every: func() time.Duration { return d.conf.live().Audit.Snapshots.Every },
	}
}

// run keeps checkpoints until ctx ends. A place may be slow, so it has a goroutine
// of its own.
func (s *snapshots) run(ctx context.Context, now func() time.Time) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.tick(ctx, now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tick keeps a checkpoint in each place where one is due and the log has grown. A
// place that cannot be written is a warning, not a reason to stop: it is tried
// again.
func (s *snapshots) tick(ctx context.Context, now time.Time) {
	for _, p := range s.places() {
		s.mu.Lock()
		if s.state == nil {
			s.state = map[string]*keeping{}
		}
		k := s.state[p.name]
		if k == nil {
			k = &keeping{}
			s.state[p.name] = k
		}
		since := now.Sub(k.at)
		due := k.at.IsZero() || s.ledger.Head().Size != k.size && (since < 0 || since >= s.every())
		s.mu.Unlock()
		if !due {
			continue
		}
		size, err := s.keep(ctx, p)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		if err == nil {
			k.at, k.size, k.failed = now, size, ""
		} else {
			k.failed = clean(err.Error())
		}
		s.mu.Unlock()
		switch text := "checkpoints are not kept outside: " + p.name + ": "; {
		case errors.Is(err, errRewritten), errors.Is(err, snapshot.ErrForked):
			s.warn(text + clean(err.Error()))
		case err != nil:
			s.note(text + clean(err.Error()))
		}
	}
}

// keep adds the newest checkpoint and returns its size.
func (s *snapshots) keep(ctx context.Context, p place) (uint64, error) {
	if p.err != nil {
		return 0, p.err
	}
	l := s.ledger
	signed := l.Checkpoint()
	now, err := l.Keys().Open(signed)
	if err != nil {
		return 0, fmt.Errorf("read checkpoint: %w", err)
	}
	old, err := p.to.Newest(ctx, now.Origin)
	if err != nil {
		return 0, err
	}
	if old != nil {
		before, err := l.Keys().Open(old)
		if err != nil {
			return 0, fmt.Errorf("%w: the newest one there is not of this log: %w", errRewritten, err)
		}
		if before.Size > now.Size {
			return 0, fmt.Errorf("%w: it has %d entries, a checkpoint of %d was kept", errRewritten, now.Size, before.Size)
		}
		root, err := l.RootAt(before.Size)
		if err != nil {
			return 0, err
		}
		if root != before.Root {
			return 0, fmt.Errorf("%w: it does not contain the checkpoint of %d entries that was kept", errRewritten, before.Size)
		}
	}
	return now.Size, p.to.Put(ctx, now.Origin, now.Size, signed)
}

// status is what each place has, in the configuration's order.
func (s *snapshots) status() []ipc.OutsideCopy {
	out := []ipc.OutsideCopy{}
	for _, p := range s.places() {
		c := ipc.OutsideCopy{Place: p.name}
		s.mu.Lock()
		if k := s.state[p.name]; k != nil {
			c.Size, c.Error = k.size, k.failed
		}
		s.mu.Unlock()
		if c.Size > 0 {
			if e, _, err := s.ledger.At(c.Size - 1); err == nil {
				c.Until = e.TS
			}
		}
		out = append(out, c)
	}
	return out
}
