// Package credential reads the key of an upstream from where its owner keeps it:
// an environment variable, a file, the keyring of the desktop, or a file that is
// encrypted to an age identity; and seals keys for an identity of this
// installation. The key lives in the caller's memory only.
//
// Which upstream has which key, and when it is read again, is ruled elsewhere.
package credential

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/zalando/go-keyring"
)

// Source says where a key is. At most one of Env, File, Keyring and Age is set.
type Source struct {
	Env         string // name of a variable
	File        string // path
	Keyring     string // SERVICE/USER
	Age         string // path of a file encrypted with age, armored or not
	AgeIdentity string // path of the identity file that opens Age
}

// None reports that no place is named: a client's own credential is passed on.
func (s Source) None() bool { return s == Source{} }

var (
	// ErrNone says that the place is there and holds no key.
	ErrNone = errors.New("holds no key")
	// ErrForm says that what is there cannot be a key.
	ErrForm = errors.New("is no key: it has more than one line, control characters, or more than 8 KiB")
)

const (
	keyMax  = 8 << 10
	fileMax = 64 << 10
	// keyringWait bounds the wait for a keyring that is locked: it asks a person,
	// and a daemon has nobody to show the question to.
	keyringWait = 5 * time.Second
)

// Read returns the key. Errors name the place and never hold what is in it.
func Read(s Source, env func(string) string) (string, error) {
	var (
		key   string
		err   error
		place string
	)
	switch {
	case s.Env != "":
		key, place = env(s.Env), "variable "+s.Env
	case s.File != "":
		place = s.File
		var b []byte
		b, err = readFile(s.File)
		key = string(b)
	case s.Keyring != "":
		place = "keyring entry " + s.Keyring
		key, err = fromKeyring(s.Keyring, env)
	case s.Age != "":
		place = s.Age
		key, err = fromAge(s.Age, s.AgeIdentity)
	default:
		return "", nil
	}
	if err == nil {
		key, err = form(key)
	}
	if err != nil {
		return "", fmt.Errorf("read key: %s: %w", place, err)
	}
	return key, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(b) > fileMax {
		err = errors.New("is larger than 64 KiB")
	}
	return b, err
}

// fromAge decrypts a file. The identity is a secret by itself, so others may not
// read its file.
func fromAge(path, identity string) (string, error) {
	st, err := os.Stat(identity)
	if err != nil {
		return "", fmt.Errorf("identity: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("identity %s: others may read it (mode %04o); chmod 600 it if you are sure that nobody did", identity, st.Mode().Perm())
	}
	text, err := readFile(identity)
	if err != nil {
		return "", fmt.Errorf("identity: %w", err)
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		// Its own error may quote the line, which is the secret.
		return "", fmt.Errorf("identity %s: it has no age identity that could be read", identity)
	}
	data, err := readFile(path)
	if err != nil {
		return "", err
	}
	var in io.Reader = bufio.NewReader(bytes.NewReader(data))
	if bytes.HasPrefix(data, []byte(armor.Header)) {
		in = armor.NewReader(in)
	}
	out, err := age.Decrypt(in, ids...)
	if err != nil {
		return "", fmt.Errorf("decrypt with %s: %w", identity, err)
	}
	plain, err := io.ReadAll(io.LimitReader(out, keyMax+1))
	if err != nil {
		return "", fmt.Errorf("decrypt with %s: %w", identity, err)
	}
	return string(plain), nil
}

// splitKeyring takes SERVICE/USER apart.
func splitKeyring(s string) (service, user string, ok bool) {
	service, user, ok = strings.Cut(s, "/")
	return service, user, ok && service != "" && user != ""
}

func fromKeyring(name string, env func(string) string) (string, error) {
	service, user, ok := splitKeyring(name)
	if !ok {
		return "", errors.New("its name is not SERVICE/USER")
	}
	if runtime.GOOS == "linux" && !sessionBus(env) {
		// The library would start a bus of its own, with an empty keyring.
		return "", errors.New("there is no session bus here (DBUS_SESSION_BUS_ADDRESS)")
	}
	type result struct {
		key string
		err error
	}
	// The library takes no context. The goroutine ends with its call; when the
	// keyring asks a person who is not there, that is after we went on.
	got := make(chan result, 1) // its one result, read or not
	go func() {
		key, err := keyring.Get(service, user)
		got <- result{key, err}
	}()
	late := time.NewTimer(keyringWait)
	defer late.Stop()
	select {
	case r := <-got:
		if errors.Is(r.err, keyring.ErrNotFound) {
			return "", ErrNone
		}
		return r.key, r.err
	case <-late.C:
		return "", fmt.Errorf("no answer within %s: is it locked?", keyringWait)
	}
}

func sessionBus(env func(string) string) bool {
	if env("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := env("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}
