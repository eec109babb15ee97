package credential

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
)

// Identity is where this installation's age identity is, which opens the upstream
// keys that it keeps sealed: a file that nobody else may read or, when Keyring is
// set, an entry of the desktop's keyring.
type Identity struct {
	File    string
	Keyring string // SERVICE/USER
}

func (i Identity) String() string {
	if i.Keyring != "" {
		return "keyring entry " + i.Keyring
	}
	return i.File
}

// Make makes the identity file where there is none. An identity in a keyring is
// its owner's to make.
func (i Identity) Make() error {
	if i.Keyring != "" {
		return nil
	}
	if _, err := os.Lstat(i.File); !errors.Is(err, os.ErrNotExist) {
		return err // there, or it cannot be told
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make age identity: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(i.File), ".seal-")
	if err != nil {
		return fmt.Errorf("make age identity: %w", err)
	}
	defer os.Remove(f.Name()) // of this name
	_, err = io.WriteString(f, id.String()+"\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("make age identity: %w", err)
	}
	// A link takes no file's place: the identity that is there opens what is sealed.
	if err := os.Link(f.Name(), i.File); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make age identity: %w", err)
	}
	d, err := os.Open(filepath.Dir(i.File))
	if err != nil {
		return fmt.Errorf("make age identity: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// read returns the identity. Errors name the place and never hold what is in it.
func (i Identity) read(env func(string) string) (*age.X25519Identity, error) {
	var text string
	if i.Keyring != "" {
		s, err := fromKeyring(i.Keyring, env)
		if err != nil {
			return nil, fmt.Errorf("read age identity: %s: %w", i, err)
		}
		text = s
	} else {
		st, err := os.Lstat(i.File)
		if err != nil {
			return nil, fmt.Errorf("read age identity: %w", err)
		}
		if !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("read age identity: %s: it is no file that you alone may read (mode %04o)", i.File, st.Mode().Perm())
		}
		b, err := readFile(i.File)
		if err != nil {
			return nil, fmt.Errorf("read age identity: %w", err)
		}
		text = string(b)
	}
	id, err := age.ParseX25519Identity(strings.TrimSpace(text))
	if err != nil {
		// Its own error may quote the line, which is the secret.
		return nil, fmt.Errorf("read age identity: %s: it has no age identity that could be read", i)
	}
	return id, nil
}

// Seal encrypts a key for the identity, and names the recipient.
func (i Identity) Seal(key string, env func(string) string) (sealed []byte, recipient string, err error) {
	if key, err = form(key); err != nil {
		return nil, "", fmt.Errorf("seal key: it %w", err)
	}
	id, err := i.read(env)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, id.Recipient())
	if err == nil {
		_, err = io.WriteString(w, key)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, "", fmt.Errorf("seal key: %w", err)
	}
	return out.Bytes(), id.Recipient().String(), nil
}

// Unseal opens what Seal made.
func (i Identity) Unseal(sealed []byte, env func(string) string) (string, error) {
	id, err := i.read(env)
	if err != nil {
		return "", err
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return "", fmt.Errorf("unseal key with %s: %w", i, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, keyMax+1))
	if err != nil {
		return "", fmt.Errorf("unseal key with %s: %w", i, err)
	}
	key, err := form(string(plain))
	if err != nil {
		return "", fmt.Errorf("unseal key: it %w", err)
	}
	return key, nil
}

// form is a key without the blanks around it, if it can be one.
func form(key string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", ErrNone
	case len(key) > keyMax || strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "", ErrForm
	}
	return key, nil
}
