package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// Keys are the keys that signed this log, and from which size on each did.
func (l *Ledger) Keys() chain.Keys { return l.tip.Load().keys }

// PublicKey is the key that signs the log now.
func (l *Ledger) PublicKey() ed25519.PublicKey { return l.Keys().Newest() }

// VerifierKeys are the public keys of this log, a line each in the form that note
// tools take, oldest first. The last one signed the newest checkpoint.
func (l *Ledger) VerifierKeys() ([]byte, error) { return verifierLines(l.Keys()) }

func verifierLines(k chain.Keys) ([]byte, error) {
	lines, err := k.Verifiers()
	if err != nil {
		return nil, err
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// RotateKey records that next signs from here on, and signs with it from the
// checkpoint on that covers the record. The caller keeps next where it will find
// it again before it calls, and destroys the old key only after this returned
// without an error: until then either may be the one that the log wants
// (Options.Key, Options.NextKey). by says who asked.
func (l *Ledger) RotateKey(ctx context.Context, next ed25519.PrivateKey, by string) (Receipt, error) {
	if l.opt.ReadOnly {
		return Receipt{}, ErrReadOnly
	}
	if len(next) != ed25519.PrivateKeySize {
		return Receipt{}, fmt.Errorf("rotate key: %w: it is no Ed25519 key", ErrDraft)
	}
	g := &group{done: make(chan struct{}), items: []item{{kind: chain.KindRotated}}, next: next, by: by}
	r, err := l.submit(ctx, g)
	if err != nil {
		return r, fmt.Errorf("rotate key: %w", err)
	}
	return r, nil
}

// rotation is the entry that gives the log its next key, made where it stands:
// both keys sign how many entries are before it, and their root.
func rotation(size uint64, root chain.Digest, keys chain.Keys, before, after ed25519.PrivateKey, by string) (item, chain.Keys, error) {
	r := chain.SignRotation(keys.Origin(), size, root, before, after)
	it, err := ready("", lemma.KeyRotated{
		Contract: lemma.Contract, Origin: r.Origin, Old: hex.EncodeToString(r.Old), New: hex.EncodeToString(r.New),
		ByOld: base64.StdEncoding.EncodeToString(r.ByOld), ByNew: base64.StdEncoding.EncodeToString(r.ByNew), By: by,
	})
	if err != nil {
		return it, keys, err
	}
	// As every reader will take it.
	keys, err = keys.RotateBody(size, root, it.body)
	return it, keys, err
}

// readKeys reads whose log a file is: the key that named it, and each that an
// entry announced. Every announcement is checked; meta only says where they are.
func readKeys(tx *bbolt.Tx) (chain.Keys, error) {
	meta := tx.Bucket(bucketNames[bMeta])
	keys := chain.NewKeys(meta.Get(metaKey))
	for at := meta.Get(metaRotated); len(at) > 0; at = at[8:] {
		if len(at)%8 != 0 {
			return keys, fmt.Errorf("%w: the places of its keys", ErrDamaged)
		}
		seq := binary.BigEndian.Uint64(at)
		e, err := decodeAt(seq, tx.Bucket(bucketNames[bChain]).Get(u64(seq)))
		if err != nil {
			return keys, err
		}
		before, err := chain.LoadTree(seq, nodes(tx))
		if err != nil {
			return keys, err
		}
		if e.Kind != chain.KindRotated {
			return keys, fmt.Errorf("%w: entry %d announces no key", ErrDamaged, seq)
		}
		if keys, err = keys.RotateBody(seq, before.Root(), e.Body); err != nil {
			return keys, fmt.Errorf("%w: entry %d: %w", ErrDamaged, seq, err)
		}
	}
	return keys, nil
}

// putRotations writes where the keys of a log were announced.
func putRotations(keys chain.Keys) []byte {
	var at []byte
	for _, seq := range keys.Rotations() {
		at = binary.BigEndian.AppendUint64(at, seq)
	}
	return at
}

// sign finds among our keys the one that the log wants.
func (l *Ledger) sign(keys chain.Keys, outside *outside, size uint64) error {
	want := keys.Newest()
	var ours ed25519.PublicKey
	for _, key := range []ed25519.PrivateKey{l.opt.Key, l.opt.NextKey} {
		if len(key) != ed25519.PrivateKeySize {
			continue
		}
		pub := key.Public().(ed25519.PublicKey)
		if want.Equal(pub) {
			l.w.key = key
			return nil
		}
		if ours == nil {
			ours = pub
		}
	}
	if ours == nil {
		ours = l.opt.PublicKey
	}
	switch {
	case l.opt.ReadOnly && (ours == nil || keys.Has(ours)):
		return nil
	case outside != nil && outside.Origin == keys.Origin() && outside.by(ours) && outside.Size <= size:
		return fmt.Errorf("%w: it does not say where the key that signs it was announced", ErrDamaged)
	case outside != nil && outside.Origin == keys.Origin() && outside.by(ours):
		return fmt.Errorf("%w: it is from before its key was changed, and the key of then is gone", ErrRolledBack)
	}
	return fmt.Errorf("%w: of %s, signed by %x, not by %x", ErrWrongKey, keys.Origin(), []byte(want), []byte(ours))
}

// outside is the checkpoint kept outside the file: what it says, and the note.
type outside struct {
	chain.Checkpoint
	path   string
	signed []byte
}

// readOutside returns the checkpoint kept outside the file, nil when there is
// none. Who signed it is not yet known.
func readOutside(path string) (*outside, error) {
	if path == "" {
		return nil, nil
	}
	signed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(signed) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := chain.Unverified(signed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrWrongKey, err)
	}
	return &outside{c, path, signed}, nil
}

// by reports whether this key signed it, under whatever origin.
func (o *outside) by(pub ed25519.PublicKey) bool {
	_, err := chain.OpenCheckpointOf(o.signed, o.Origin, pub)
	return err == nil
}

// of is an error unless the log of these keys signed it.
func (o *outside) of(keys chain.Keys) error {
	if _, err := keys.Open(o.signed); err != nil {
		return fmt.Errorf("%s: %w: %w", o.path, ErrWrongKey, err)
	}
	return nil
}

// point is a checkpoint and the key that signed it.
type point struct {
	chain.Checkpoint
	by ed25519.PublicKey
}

// rotate takes the key that an entry announces; the tree ends before it.
func (v *verifier) rotate(e chain.Entry) {
	keys, err := v.keys.RotateBody(e.Seq, v.tree.Root(), e.Body)
	if err != nil {
		v.problem(e.Seq, "chain", "%v", err)
	}
	v.keys = keys
}

// turn looks whether it was that key's turn to sign. Where something else is
// wrong, the announcement may be what is missing.
func (v *verifier) turn(p point) {
	if p.Size == v.at && v.r.Count == 0 && !v.keys.At(v.at).Equal(p.by) {
		v.problem(v.at-1, "checkpoint", "of size %d is signed by a key whose turn it was not", v.at)
	}
}

// rotations compares where meta says that keys were announced with the entries.
func (v *verifier) rotations(tx *bbolt.Tx) error {
	if err := v.catchUp(tx); err != nil {
		return err
	}
	if got := tx.Bucket(bucketNames[bMeta]).Get(metaRotated); !bytes.Equal(got, putRotations(v.keys)) {
		v.problem(0, "meta", "keys were announced by entries %v, not as it says", v.keys.Rotations())
	}
	return nil
}

// openAny opens a checkpoint by whichever key of the log signed it.
func openAny(signed []byte, keys chain.Keys) (cp chain.Checkpoint, by ed25519.PublicKey, err error) {
	if cp, err = keys.Open(signed); err == nil {
		return cp, keys.At(cp.Size), nil
	}
	for _, pub := range keys.All() {
		if cp, err := chain.OpenCheckpointOf(signed, keys.Origin(), pub); err == nil {
			return cp, pub, nil
		}
	}
	return cp, nil, err
}
