package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// ErrOlder says that what would take the ledger's place lacks entries that were
// seen of it.
var ErrOlder = errors.New("it lacks entries that this ledger had")

// ErrUnfit says that a file is sound and cannot be this installation's ledger.
var ErrUnfit = errors.New("this ledger cannot go on from it")

// Snapshot writes the ledger as of now to f, as a file that can be opened, while
// appends go on. Give it a file of this machine, not a client: the writer cannot
// grow its map until the copy is done. It returns the number of entries.
func (l *Ledger) Snapshot(ctx context.Context, f *os.File) (size uint64, err error) {
	err = l.view(func(tx *bbolt.Tx) (err error) {
		if size, err = sizeOf(tx); err != nil {
			return err
		}
		_, err = tx.WriteTo(stopping{ctx, f})
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if ctx.Err() != nil {
		err = ctx.Err() // bbolt says it in words only
	}
	if err != nil {
		return 0, fmt.Errorf("copy ledger: %w", err)
	}
	return size, nil
}

// stopping is a writer that ends with its context.
type stopping struct {
	ctx context.Context
	w   io.Writer
}

func (s stopping) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// Replaced says what took the ledger's place, and where the old files are.
type Replaced struct {
	Size  uint64   `json:"size"`  // entries of the new file, the one that records this included
	Had   uint64   `json:"had"`   // entries that were seen of the old one; 0 when nothing was
	Aside []string `json:"aside"` // the old files
	// Forgotten counts the requests that the backup brought back and the old ledger
	// had forgotten: they were dropped again.
	Forgotten int `json:"forgotten"`
}

// RestoreOptions say whose ledger it is and what is allowed.
type RestoreOptions struct {
	Options
	// Check judges the backup; it stands in for a check in another process, which
	// a wrecked file may kill. Nil checks here.
	Check func(ctx context.Context, path string) (Health, error)
	// Older allows a backup that lacks entries which the ledger had.
	Older bool
}

// Restore puts the backup file in the ledger's place. It is checked in full
// before anything is written; the ledger that is there, sound or not, is moved
// aside and never overwritten. The restored ledger records what it came from.
func Restore(ctx context.Context, backup, path string, o RestoreOptions) (Replaced, error) {
	r, err := restore(ctx, backup, path, o)
	if err != nil {
		return r, fmt.Errorf("restore ledger: %w", err)
	}
	return r, nil
}

func restore(ctx context.Context, backup, path string, o RestoreOptions) (r Replaced, err error) {
	if o.Check == nil {
		o.Check = func(ctx context.Context, path string) (Health, error) {
			return Inspect(ctx, path, InspectOptions{Key: o.public(), Full: true}), nil
		}
	}
	release, err := alone(path)
	if err != nil {
		return r, err
	}
	defer release()
	beside := path + ".restore"
	if err := ignoreMissing(os.Remove(beside)); err != nil { // of a restore that was cut off
		return r, err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(beside))) }()
	if err := makeDir(filepath.Dir(path)); err != nil {
		return r, err
	}
	// The copy is what is checked and used: the backup may lie where others write.
	if err := copyFile(backup, beside); err != nil {
		return r, err
	}
	h, err := o.Check(ctx, beside)
	if err != nil {
		return r, err
	}
	switch {
	case h.Damaged:
		return r, fmt.Errorf("%w: %s", ErrDamaged, h.Reason)
	case !h.Sound:
		return r, fmt.Errorf("%w: %s. A copy of before the log's key was changed can be verified and read, and only that key could have gone on with it; `gettier ledger repair` keeps what can be proved of a damaged file", ErrUnfit, h.Reason)
	}
	if r.Had, err = seenOutside(o.Options); err != nil {
		return r, err
	}
	if r.Had > h.Size && !o.Older {
		return r, fmt.Errorf("%w: the backup has %d entries, the ledger had %d", ErrOlder, h.Size, r.Had)
	}
	why := []Draft{{Body: lemma.StateLost{Contract: lemma.Contract, Reason: fmt.Sprintf("restored from a backup of %d entries; the ledger had been seen with %d", h.Size, r.Had)}}}
	forgot, err := forgottenIn(ctx, path)
	if err != nil {
		return r, err
	}
	err = takePlace(ctx, beside, path, why, forgot, o.Options, &r)
	return r, err
}

// seenOutside is how many entries the checkpoint outside the file vouches for.
func seenOutside(o Options) (uint64, error) {
	out, err := readOutside(o.CheckpointFile)
	if err != nil || out == nil {
		return 0, err
	}
	for _, pub := range o.publics() {
		if out.by(pub) {
			return out.Size, nil
		}
	}
	return 0, fmt.Errorf("%s: %w: another key signed it", o.CheckpointFile, ErrWrongKey)
}

// takePlace gives the new file the ledger's name, after moving what is there
// aside, and records why it did. What was forgotten does not come back with it.
func takePlace(ctx context.Context, beside, path string, why []Draft, forgot []lemma.RequestForgotten, o Options, r *Replaced) error {
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	stamp := now().UTC().Format("20060102T150405Z")
	old := []string{path}
	if r.Had > 0 {
		// It may be ahead of the new file, and then nothing would open it.
		old = append(old, o.CheckpointFile)
	}
	for _, from := range old {
		to, err := moveAside(from, stamp)
		if err != nil {
			return err
		}
		if to != "" {
			r.Aside = append(r.Aside, to)
		}
	}
	if r.Had > 0 {
		// A checkpoint that came back after a power cut would be ahead again.
		if err := syncDir(filepath.Dir(o.CheckpointFile)); err != nil {
			return err
		}
	}
	// A link, so that a file which somebody made meanwhile is not replaced.
	if err := os.Link(beside, path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	l, err := Open(path, o)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // it has taken the place
	if _, err = l.Append(ctx, why...); err == nil {
		r.Forgotten, err = l.forgetAgain(ctx, forgot)
	}
	r.Size = l.Head().Size
	return errors.Join(err, l.Close())
}

// moveAside renames a file to a name that is free. A file that is not there is
// no error and has no new name.
func moveAside(path, stamp string) (string, error) {
	for n := range 100 {
		to := path + ".aside-" + stamp
		if n > 0 {
			to = fmt.Sprintf("%s-%d", to, n)
		}
		err := os.Link(path, to)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", nil
		case errors.Is(err, os.ErrExist):
			continue
		case err != nil:
			return "", err
		}
		return to, os.Remove(path)
	}
	return "", fmt.Errorf("%w: a hundred files beside %s", ErrExists, path)
}

// alone reports ErrLocked when another process has the ledger open. release
// gives up the lock, which lies on the old file and moves aside with it.
func alone(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	}
	return func() { f.Close() }, nil // read only: nothing to lose
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", from)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// public is whose log the options are about.
func (o Options) public() ed25519.PublicKey {
	if len(o.Key) == ed25519.PrivateKeySize {
		return o.Key.Public().(ed25519.PublicKey)
	}
	return o.PublicKey
}

// makeDir makes a directory and those above it, so that a power cut does not take
// them away again.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o700)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case errors.Is(err, os.ErrNotExist) && filepath.Dir(path) != path:
		if err := makeDir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(path))
}

// publics are the keys of which the log may want either.
func (o Options) publics() []ed25519.PublicKey {
	out := []ed25519.PublicKey{o.public()}
	if len(o.NextKey) == ed25519.PrivateKeySize {
		out = append(out, o.NextKey.Public().(ed25519.PublicKey))
	}
	return out
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
