package verify

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNote is wrapped by every refusal of a key or a signed checkpoint.
var ErrNote = errors.New("not signed by this log")

// Key is a log's public key.
type Key struct {
	pub  ed25519.PublicKey
	name string
	id   []byte // the four bytes that its signatures begin with
}

// ParseKey reads a key as note tools write it. The name must be one that gettierd
// gives to a log: that of its first key, which need not be this one.
func ParseKey(line string) (Key, error) {
	parts := strings.Split(line, "+")
	if len(parts) < 3 {
		return Key{}, fmt.Errorf("%w: no key", ErrNote)
	}
	// Base64 may hold a plus itself.
	raw, err := base64.StdEncoding.DecodeString(strings.Join(parts[2:], "+"))
	if err != nil || len(raw) != 33 || raw[0] != 1 {
		return Key{}, fmt.Errorf("%w: no Ed25519 key", ErrNote)
	}
	digits, ours := strings.CutPrefix(parts[0], originPrefix)
	if !ours || len(digits) != 16 || !word(digits, "") || !isHex(digits) {
		return Key{}, fmt.Errorf("%w: the key has no log's name", ErrNote)
	}
	k := keyNamed(parts[0], raw[1:])
	if k.String() != line {
		return Key{}, fmt.Errorf("%w: the key is spelled another way", ErrNote)
	}
	return k, nil
}

const originPrefix = "gettier.dev/log/"

func keyNamed(name string, pub ed25519.PublicKey) Key {
	id := sha256.Sum256(append([]byte(name+"\n\x01"), pub...))
	return Key{pub: pub, name: name, id: id[:4]}
}

// first reports whether the log is named after this key.
func (k Key) first() bool {
	sum := sha256.Sum256(k.pub)
	return k.name == originPrefix+hex.EncodeToString(sum[:8])
}

// Name is the log's origin.
func (k Key) Name() string { return k.name }

func (k Key) String() string {
	return k.name + "+" + hex.EncodeToString(k.id) + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, k.pub...))
}

// Checkpoint is what a log signs: so many entries, under this root.
type Checkpoint struct {
	Size uint64
	Root Digest
}

// OpenCheckpoint reads a signed checkpoint (C2SP signed-note, tlog-checkpoint)
// and checks the signature by k.
func OpenCheckpoint(signed []byte, k Key) (Checkpoint, error) {
	bad := func(what string) (Checkpoint, error) { return Checkpoint{}, fmt.Errorf("%w: %s", ErrNote, what) }
	for i := 0; i < len(signed); {
		r, n := utf8.DecodeRune(signed[i:])
		if r < 0x20 && r != '\n' || r == utf8.RuneError && n == 1 {
			return bad("control characters or invalid UTF-8")
		}
		i += n
	}
	cut := bytes.LastIndex(signed, []byte("\n\n"))
	if cut < 0 {
		return bad("no signature")
	}
	text, lines := signed[:cut+1], strings.Split(string(signed[cut+2:]), "\n")
	if len(lines) < 2 || len(lines) > 101 || lines[len(lines)-1] != "" {
		return bad("no line with a signature")
	}
	verified := false
	for _, line := range lines[:len(lines)-1] {
		rest, ok := strings.CutPrefix(line, "— ")
		name, b64, _ := strings.Cut(rest, " ")
		sig, err := base64.StdEncoding.Strict().DecodeString(b64)
		if !ok || err != nil || len(sig) < 5 || name == "" || strings.ContainsFunc(name, unicode.IsSpace) || strings.Contains(name, "+") {
			return bad("malformed signature")
		}
		if verified || name != k.name || !bytes.Equal(sig[:4], k.id) {
			continue
		}
		if len(sig) != 4+ed25519.SignatureSize || !ed25519.Verify(k.pub, text, sig[4:]) {
			return bad("the signature is wrong")
		}
		verified = true
	}
	if !verified {
		return bad("no signature by " + k.name)
	}
	body := strings.Split(string(text), "\n")
	if len(body) != 4 || body[0] != k.name {
		return bad("not a checkpoint of " + k.name)
	}
	size, err := strconv.ParseUint(body[1], 10, 64)
	if err != nil || size > maxInteger || strconv.FormatUint(size, 10) != body[1] {
		return bad("size")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(body[2])
	if err != nil || len(root) != sha256.Size {
		return bad("root")
	}
	return Checkpoint{size, Digest(root)}, nil
}
