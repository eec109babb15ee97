package chain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint says that a log with this origin had Size entries under Root. As
// text (C2SP tlog-checkpoint) it has three lines: origin, size, root in base64.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   Digest
}

// Origin names the log whose first public key this is. It is the checkpoint's
// first line and the name of the keys that sign it.
func Origin(pub ed25519.PublicKey) string {
	sum := sha256.Sum256(pub)
	return "gettier.dev/log/" + hex.EncodeToString(sum[:8])
}

// IsOrigin reports whether a text is spelled as Origin spells.
func IsOrigin(s string) bool {
	digits, ok := strings.CutPrefix(s, "gettier.dev/log/")
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Text is what is signed.
func (c Checkpoint) Text() string {
	return c.Origin + "\n" + strconv.FormatUint(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
}

// ParseCheckpoint reads the three lines and nothing else.
func ParseCheckpoint(text string) (Checkpoint, error) {
	bad := func(what string) (Checkpoint, error) {
		return Checkpoint{}, fmt.Errorf("parse checkpoint: %w: %s", ErrFormat, what)
	}
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return bad("not three lines")
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] || size > maxInteger {
		return bad("size")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != sha256.Size {
		return bad("root")
	}
	if lines[0] == "" {
		return bad("origin")
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: Digest(root)}, nil
}

// SignCheckpoint returns c as a C2SP signed note under the log's key.
func SignCheckpoint(c Checkpoint, key ed25519.PrivateKey) ([]byte, error) {
	s := signer{name: c.Origin, key: key}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint: %w", err)
	}
	return signed, nil
}

// OpenCheckpoint reads a signed checkpoint of the log that pub named. A note
// without a valid signature by that key, or of another origin, is refused.
func OpenCheckpoint(signed []byte, pub ed25519.PublicKey) (Checkpoint, error) {
	return OpenCheckpointOf(signed, Origin(pub), pub)
}

// OpenCheckpointOf reads a checkpoint of the log of this origin, signed by pub.
func OpenCheckpointOf(signed []byte, origin string, pub ed25519.PublicKey) (Checkpoint, error) {
	v := verifier{name: origin, pub: pub}
	n, err := note.Open(signed, note.VerifierList(v))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w: %w", ErrFormat, err)
	}
	for _, sigs := range [][]note.Signature{n.Sigs, n.UnverifiedSigs} {
		for _, s := range sigs {
			// note lets unused bits of the last character vary; one log, one spelling.
			if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
				return Checkpoint{}, fmt.Errorf("open checkpoint: %w: signature encoding", ErrFormat)
			}
		}
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Origin != v.name {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w: origin %q is not this log's", ErrFormat, c.Origin)
	}
	return c, nil
}

// VerifierKey is a log's first public key in the form that note tools take.
func VerifierKey(pub ed25519.PublicKey) (string, error) {
	k, err := note.NewEd25519VerifierKey(Origin(pub), pub)
	if err != nil {
		return "", fmt.Errorf("encode verifier key: %w", err)
	}
	return k, nil
}

// keyHash is note's key id: the first four bytes of
// SHA-256(name ‖ "\n" ‖ algorithm 1 ‖ public key).
func keyHash(name string, pub ed25519.PublicKey) uint32 {
	h := sha256.New()
	h.Write([]byte(name + "\n\x01"))
	h.Write(pub)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

type signer struct {
	name string
	key  ed25519.PrivateKey
}

func (s signer) Name() string { return s.name }
func (s signer) KeyHash() uint32 {
	return keyHash(s.name, s.key.Public().(ed25519.PublicKey))
}
func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

type verifier struct {
	name string
	pub  ed25519.PublicKey
}

func (v verifier) Name() string    { return v.name }
func (v verifier) KeyHash() uint32 { return keyHash(v.name, v.pub) }
func (v verifier) Verify(msg, sig []byte) bool {
	return len(v.pub) == ed25519.PublicKeySize && ed25519.Verify(v.pub, msg, sig)
}
