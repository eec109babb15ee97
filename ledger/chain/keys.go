package chain

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// KindRotated is the kind of an entry that gives a log its next key.
const KindRotated = "key.rotated"

// MaxKeys bounds the keys of one log: more than one a week for four years.
const MaxKeys = 256

// Keys is whose signature counts at which size of a log. The log's origin is
// that of its first key for life; a later key signs under the same name, from the
// checkpoint on that first covers the entry which announced it. The zero value
// has no key. Values do not change: Rotate returns another.
type Keys struct {
	list []signing
}

// signing is a key and the smallest checkpoint that it signs.
type signing struct {
	pub  ed25519.PublicKey
	from uint64
}

// NewKeys is a log that was never given another key.
func NewKeys(first ed25519.PublicKey) Keys {
	return Keys{[]signing{{slices.Clone(first), 0}}}
}

// Origin names the log.
func (k Keys) Origin() string { return Origin(k.list[0].pub) }

// First is the key that named the log.
func (k Keys) First() ed25519.PublicKey { return slices.Clone(k.list[0].pub) }

// Newest is the key that signs now.
func (k Keys) Newest() ed25519.PublicKey { return slices.Clone(k.list[len(k.list)-1].pub) }

// All are the log's keys, oldest first.
func (k Keys) All() []ed25519.PublicKey {
	out := make([]ed25519.PublicKey, len(k.list))
	for i, s := range k.list {
		out[i] = slices.Clone(s.pub)
	}
	return out
}

// Len is the number of keys.
func (k Keys) Len() int { return len(k.list) }

// At is the key that signs the checkpoint of this size.
func (k Keys) At(size uint64) ed25519.PublicKey {
	i := len(k.list) - 1
	for i > 0 && k.list[i].from > size {
		i--
	}
	return k.list[i].pub
}

// Has reports whether pub is one of the log's keys.
func (k Keys) Has(pub ed25519.PublicKey) bool {
	return slices.ContainsFunc(k.list, func(s signing) bool { return bytes.Equal(s.pub, pub) })
}

// Rotations are the sequence numbers of the entries that announced keys.
func (k Keys) Rotations() []uint64 {
	out := []uint64{}
	for _, s := range k.list[1:] {
		out = append(out, s.from-1)
	}
	return out
}

// Verifiers are the keys in the form that note tools take, oldest first.
func (k Keys) Verifiers() ([]string, error) {
	var out []string
	for _, s := range k.list {
		line, err := note.NewEd25519VerifierKey(k.Origin(), s.pub)
		if err != nil {
			return nil, fmt.Errorf("encode verifier key: %w", err)
		}
		out = append(out, line)
	}
	return out, nil
}

// Open reads a signed checkpoint of this log. The key that signs that size must
// have signed it, and no other will do.
func (k Keys) Open(signed []byte) (Checkpoint, error) {
	c, err := Unverified(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	return OpenCheckpointOf(signed, k.Origin(), k.At(c.Size))
}

// Unverified reads what a signed checkpoint says, whoever signed it.
func Unverified(signed []byte) (Checkpoint, error) {
	at := bytes.LastIndex(signed, []byte("\n\n"))
	if at < 0 {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w: no signature", ErrFormat)
	}
	return ParseCheckpoint(string(signed[:at+1]))
}

// Rotation is the body of an entry that gives a log its next key. Both keys sign
// Text: the old one says who follows it, and over which log; the new one that its
// holder wants to.
type Rotation struct {
	Origin       string
	Old, New     ed25519.PublicKey
	ByOld, ByNew []byte // signatures
}

// rotationText is what both keys sign. Size and root are the log's before the
// entry, so that a statement holds at one place of one log only.
func rotationText(origin string, size uint64, root Digest, before, after ed25519.PublicKey) []byte {
	return fmt.Appendf(nil, "gettier.dev/log-key-rotation/v1\n%s\n%d\n%s\n%x\n%x\n",
		origin, size, base64.StdEncoding.EncodeToString(root[:]), []byte(before), []byte(after))
}

// SignRotation makes the statement that entry size, over root, carries.
func SignRotation(origin string, size uint64, root Digest, before, after ed25519.PrivateKey) Rotation {
	r := Rotation{Origin: origin, Old: before.Public().(ed25519.PublicKey), New: after.Public().(ed25519.PublicKey)}
	text := rotationText(origin, size, root, r.Old, r.New)
	r.ByOld, r.ByNew = ed25519.Sign(before, text), ed25519.Sign(after, text)
	return r
}

// ParseRotation reads the body of a KindRotated entry: keys in hex, signatures in
// base64. Names count as they are spelled, unlike with encoding/json's structs.
func ParseRotation(body []byte) (Rotation, error) {
	bad := func(what string) (Rotation, error) {
		return Rotation{}, fmt.Errorf("read key rotation: %w: %s", ErrFormat, what)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return bad("its body")
	}
	text := func(name string) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil {
			return ""
		}
		return s
	}
	key := func(name string) ed25519.PublicKey {
		s := text(name)
		k, err := hex.DecodeString(s)
		if err != nil || len(k) != ed25519.PublicKeySize || strings.ToLower(s) != s {
			return nil
		}
		return k
	}
	sig := func(name string) []byte {
		s := text(name)
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil || len(b) != ed25519.SignatureSize || len(s) != base64.StdEncoding.EncodedLen(len(b)) {
			return nil
		}
		return b
	}
	r := Rotation{Origin: text("origin"), Old: key("old"), New: key("new"), ByOld: sig("by_old"), ByNew: sig("by_new")}
	if r.Old == nil || r.New == nil {
		return bad("a key")
	}
	if r.ByOld == nil || r.ByNew == nil {
		return bad("a signature")
	}
	return r, nil
}

// Rotate takes the key that entry seq announces. root is the log's over the seq
// entries before it.
func (k Keys) Rotate(seq uint64, root Digest, r Rotation) (Keys, error) {
	bad := func(what string) (Keys, error) {
		return k, fmt.Errorf("rotate key: %w: %s", ErrFormat, what)
	}
	text := rotationText(r.Origin, seq, root, r.Old, r.New)
	switch {
	case r.Origin != k.Origin():
		return bad("it is another log's")
	case !bytes.Equal(r.Old, k.list[len(k.list)-1].pub):
		return bad("the old key did not sign until here")
	case k.Has(r.New):
		return bad("the new key was this log's before")
	case len(k.list) >= MaxKeys:
		return bad("too many keys")
	case !ed25519.Verify(r.Old, text, r.ByOld):
		return bad("the old key has not signed it")
	case !ed25519.Verify(r.New, text, r.ByNew):
		return bad("the new key has not signed it")
	}
	return Keys{append(slices.Clone(k.list), signing{slices.Clone(r.New), seq + 1})}, nil
}

// RotateBody is Rotate with the entry's body.
func (k Keys) RotateBody(seq uint64, root Digest, body []byte) (Keys, error) {
	r, err := ParseRotation(body)
	if err != nil {
		return k, err
	}
	return k.Rotate(seq, root, r)
}
