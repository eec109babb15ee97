package sensors

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// The kinds of a pinned definition. A file's own phrases are pinned as one,
// under the id "matching".
const (
	kindSensor   = "sensor"
	kindPremise  = "premise"
	kindMatching = "matching"
)

// Pin is a file that a sensor runs or that decides what it runs, as it was when
// a person approved it.
type Pin struct {
	Root   string `json:"root,omitempty"` // the project it stands in
	Path   string `json:"path"`           // below Root, else absolute
	SHA256 string `json:"sha256"`
}

// approval is one pinned definition.
type approval struct {
	File       string          `json:"file"`
	Kind       string          `json:"kind"`
	ID         string          `json:"id"`
	Hash       string          `json:"hash"`
	Definition json.RawMessage `json:"definition"`
	Version    string          `json:"version"` // registry_version it stood in
	Files      []Pin           `json:"files,omitempty"`
	At         string          `json:"at"`
	By         lemma.Answerer  `json:"by"`

	sensor   *spec.Sensor
	premise  *spec.Premise
	matching map[string][]string
}

// lock is sensors.lock in memory. Serial grows with each write, so that an older
// signed lock cannot take the place of the one in force.
type lock struct {
	V       int         `json:"v"`
	Serial  uint64      `json:"serial"`
	Entries []*approval `json:"entries"`
}

// lockHeader is the first line of the file and part of what is signed.
const lockHeader = "gettier sensors.lock 1\n"

// maxLockBytes bounds the file: full definitions of every approved sensor.
const maxLockBytes = 64 << 20

func lockPath(stateDir string) string { return filepath.Join(stateDir, "sensors.lock") }

func (l *lock) find(file, kind, id string) *approval {
	for _, a := range l.Entries {
		if a.File == file && a.Kind == kind && a.ID == id {
			return a
		}
	}
	return nil
}

// with returns a copy of l in which a stands in place of what had its identity.
func (l *lock) with(as ...*approval) *lock {
	out := &lock{V: 1, Serial: l.Serial, Entries: slices.Clone(l.Entries)}
	for _, a := range as {
		i := slices.IndexFunc(out.Entries, func(o *approval) bool { return o.File == a.File && o.Kind == a.Kind && o.ID == a.ID })
		if i < 0 {
			out.Entries = append(out.Entries, a)
		} else {
			out.Entries[i] = a
		}
	}
	return out
}

// without returns a copy of l that lacks these approvals.
func (l *lock) without(as ...*approval) *lock {
	out := &lock{V: 1, Serial: l.Serial, Entries: slices.Clone(l.Entries)}
	out.Entries = slices.DeleteFunc(out.Entries, func(o *approval) bool { return slices.Contains(as, o) })
	return out
}

// save signs and writes l with the next serial.
func (l *lock) save(stateDir string, key ed25519.PrivateKey) error {
	l.V, l.Serial = 1, l.Serial+1
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write sensors.lock: %w", err)
	}
	signed := append([]byte(lockHeader), body...)
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed))
	out := lockHeader + sig + "\n" + string(body) + "\n"
	if err := writeAtomic(lockPath(stateDir), []byte(out)); err != nil {
		return fmt.Errorf("write sensors.lock: %w", err)
	}
	return nil
}

// readLock verifies and reads the lock; a missing file is an empty one.
func readLock(stateDir string, key ed25519.PrivateKey) (*lock, error) {
	b, err := readSmall(lockPath(stateDir), maxLockBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &lock{V: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sensors.lock: %w", err)
	}
	rest, ok := bytes.CutPrefix(b, []byte(lockHeader))
	sigLine, body, ok2 := bytes.Cut(rest, []byte("\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	if !ok || !ok2 {
		return nil, errors.New("read sensors.lock: this is not a lock file")
	}
	sig, err := base64.StdEncoding.DecodeString(string(sigLine))
	if err != nil || !ed25519.Verify(key.Public().(ed25519.PublicKey), append([]byte(lockHeader), body...), sig) {
		return nil, errors.New("read sensors.lock: its signature is not of the local key")
	}
	l := &lock{}
	if err := json.Unmarshal(body, l); err != nil {
		return nil, fmt.Errorf("read sensors.lock: %w", err)
	}
	if l.V != 1 {
		return nil, fmt.Errorf("read sensors.lock: version %d is not known", l.V)
	}
	for _, a := range l.Entries {
		if err := a.decode(); err != nil {
			return nil, fmt.Errorf("read sensors.lock: %w", err)
		}
	}
	return l, nil
}

// decode fills the typed definition and checks it against the pinned hash.
func (a *approval) decode() error {
	var hash string
	switch a.Kind {
	case kindSensor:
		s, err := spec.SensorOf(a.Definition)
		if err != nil {
			return err
		}
		s.File, s.Version = a.File, a.Version
		a.sensor, hash = s, s.Hash
	case kindPremise:
		p, err := spec.PremiseOf(a.Definition)
		if err != nil {
			return err
		}
		a.premise, hash = p, p.Hash
	case kindMatching:
		m, err := spec.MatchingOf(a.Definition)
		if err != nil {
			return err
		}
		a.matching, hash = m, spec.HashOf(m)
	default:
		return fmt.Errorf("%s has the unknown kind %q", a.ID, a.Kind)
	}
	if hash != a.Hash {
		return fmt.Errorf("the definition of %s does not have its pinned hash", a.ID)
	}
	return nil
}

// holdLock keeps other processes from writing the lock until the returned
// function is called, so that an approval at the command line and one in the
// daemon cannot undo each other.
func holdLock(stateDir string) (release func(), err error) {
	f, err := os.Open(stateDir)
	if err != nil {
		return nil, fmt.Errorf("hold sensors.lock: %w", err)
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("hold sensors.lock: %w", err)
	}
	return func() { f.Close() }, nil
}

// LockKey reads the key that signs sensors.lock and config.lock from
// <stateDir>/keys/lock, and makes it when there is none: the seed as 64
// hexadecimal digits, mode 0600, in a directory of mode 0700. A key that others
// may read or that is not a plain file is refused, never repaired silently.
func LockKey(stateDir string, entropy io.Reader) (ed25519.PrivateKey, error) {
	dir := filepath.Join(stateDir, "keys")
	path := filepath.Join(dir, "lock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make key directory: %w", err)
	}
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(entropy, seed); err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	// Written beside and linked into place: two processes that start at once
	// agree on one key, and neither sees half of it.
	tmp, err := os.CreateTemp(dir, ".lock-*")
	if err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(seed) + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		if err = os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make lock key: %w", err)
	}
	return readKey(path)
}

func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("read lock key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read lock key: %s must be a plain file of mode 0600, it is %v", path, info.Mode())
	}
	b, err := readSmall(path, 1024)
	if err != nil {
		return nil, fmt.Errorf("read lock key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read lock key: %s does not hold %d hexadecimal digits", path, 2*ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// errTooLarge says that a file has more bytes than its reader takes.
var errTooLarge = errors.New("file too large")

// readSmall reads a regular file of at most limit bytes. It never blocks on a
// FIFO that someone put in the file's place.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w", path, errTooLarge)
	}
	return b, nil
}

func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// writeAtomic replaces path as a whole and makes that durable.
func writeAtomic(path string, data []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
