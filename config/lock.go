package config

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Lock is what config.lock holds: the configuration that a person approved
// last, signed by the key for locks.
type Lock struct {
	Hash   string // of the canonical form, hex SHA-256
	Config *Config
	At     string
	By     lemma.Answerer
}

// lockFile is the file's form. Signature is over lockDomain and the canonical
// JSON of the other members.
type lockFile struct {
	V         int                        `json:"v"`
	Hash      string                     `json:"hash"`
	Values    map[string]json.RawMessage `json:"values"`
	At        string                     `json:"approved_at"`
	By        lemma.Answerer             `json:"by"`
	Signature []byte                     `json:"signature,omitempty"`
}

const (
	lockDomain  = "gettier.dev config.lock v1\n"
	lockVersion = 1
	lockMost    = 1 << 20
)

// ErrLockForged: the lock was not signed by this installation's key.
var ErrLockForged = errors.New("config.lock is not signed by this installation")

// Canonical returns c as JSON with one member per concrete key, in the order of
// their bytes. Environment and flags are part of it only if they are part of c;
// approve c.Base().
func Canonical(c *Config) []byte {
	out, err := json.Marshal(encodeValues(values(c)))
	if err != nil { // strings, numbers and bools only
		return nil
	}
	return out
}

// Hash is what a person approves: SHA-256 of the canonical form, hex.
func Hash(c *Config) string {
	sum := sha256.Sum256(Canonical(c))
	return hex.EncodeToString(sum[:])
}

func encodeValues(vals map[string]any) map[string]any {
	out := make(map[string]any, len(vals))
	for key, v := range vals {
		switch x := v.(type) {
		case time.Duration:
			v = x.String()
		case []Project:
			list := make([]map[string]string, 0, len(x))
			for _, p := range x {
				list = append(list, map[string]string{"name": p.Name, "root": p.Root})
			}
			v = list
		case []string:
			v = append([]string{}, x...)
		}
		out[key] = v
	}
	return out
}

func decodeValue(k Key, raw json.RawMessage) (any, error) {
	into := func(p any) error { return json.Unmarshal(raw, p) }
	switch k.Type {
	case String, Enum:
		var s string
		err := into(&s)
		return s, err
	case Bool:
		var b bool
		err := into(&b)
		return b, err
	case Int:
		var n int
		err := into(&n)
		return n, err
	case Bytes:
		var n int64
		err := into(&n)
		return n, err
	case Duration:
		var s string
		if err := into(&s); err != nil {
			return nil, err
		}
		return time.ParseDuration(s)
	case List, Hosts:
		var l []string
		err := into(&l)
		return l, err
	case Headers:
		var m map[string]string
		err := into(&m)
		return m, err
	case Roots:
		var l []struct{ Name, Root string }
		err := into(&l)
		ps := make([]Project, len(l))
		for i, p := range l {
			ps[i] = Project(p)
		}
		return ps, err
	}
	return nil, fmt.Errorf("no such type")
}

// WriteLock pins c as approved by a person at a time. The file is replaced in
// one step and survives a crash as old or new.
func WriteLock(path string, key ed25519.PrivateKey, c *Config, by lemma.Answerer, at time.Time) error {
	f := lockFile{V: lockVersion, Hash: Hash(c), Values: make(map[string]json.RawMessage), At: lemma.Time(at), By: by}
	for k, v := range encodeValues(values(c)) {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("write config.lock: %w", err)
		}
		f.Values[k] = b
	}
	signed, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write config.lock: %w", err)
	}
	f.Signature = ed25519.Sign(key, append([]byte(lockDomain), signed...))
	out, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write config.lock: %w", err)
	}
	if err := replaceFile(path, append(out, '\n')); err != nil {
		return fmt.Errorf("write config.lock: %w", err)
	}
	return nil
}

// ReadLock reads and verifies the lock. Without one the error is
// fs.ErrNotExist; a lock of other hands is ErrLockForged. Keys that the lock
// does not know yet have their default, keys that are gone are left out.
func ReadLock(path string, pub ed25519.PublicKey) (*Lock, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read config.lock: %w", err)
	}
	if info.Size() > lockMost {
		return nil, fmt.Errorf("read config.lock: %d bytes are too many", info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read config.lock: %w", err)
	}
	var f lockFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read config.lock: %w", err)
	}
	sig := f.Signature
	f.Signature = nil
	// Indented raw values become compact again when they are marshalled.
	signed, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("read config.lock: %w", err)
	}
	if len(pub) != ed25519.PublicKeySize || !ed25519.Verify(pub, append([]byte(lockDomain), signed...), sig) {
		return nil, ErrLockForged
	}
	if f.V != lockVersion {
		return nil, fmt.Errorf("read config.lock: version %d is not known", f.V)
	}
	vals := make(map[string]any, len(f.Values))
	for name, raw := range f.Values {
		k := keyOf(name)
		if k.Name == "" {
			continue
		}
		v, err := decodeValue(k, raw)
		if err != nil {
			return nil, fmt.Errorf("read config.lock: %s: %w", name, err)
		}
		vals[name] = v
	}
	c, err := fromValues(vals)
	if err != nil {
		return nil, fmt.Errorf("read config.lock: %w", err)
	}
	c.file = values(c)
	return &Lock{Hash: f.Hash, Config: c, At: f.At, By: f.By}, nil
}

func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".config.lock-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if _, err := tmp.Write(data); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Sync(); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
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

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
