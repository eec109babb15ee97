package ledger

import (
	"fmt"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"go.etcd.io/bbolt"
)

// Proof proves that entry seq is in the log, as a C2SP tlog-proof under the
// newest checkpoint. Its extra data is the entry itself, so that the file needs
// nothing beside it but the log's public key.
func (l *Ledger) Proof(seq uint64) ([]byte, error) {
	t := l.tip.Load()
	if seq >= t.head.Size || t.checkpoint == nil {
		return nil, fmt.Errorf("prove entry %d of %d: %w", seq, t.head.Size, ErrNotFound)
	}
	var p archive.Proof
	err := l.view(func(tx *bbolt.Tx) error {
		raw := tx.Bucket(bucketNames[bChain]).Get(u64(seq))
		if raw == nil {
			return fmt.Errorf("prove entry %d: %w", seq, ErrNotFound)
		}
		path, err := chain.InclusionProof(t.head.Size, seq, nodes(tx))
		p = archive.Proof{Entry: append([]byte(nil), raw...), Index: seq, Path: path, Checkpoint: t.checkpoint}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.Marshal(), nil
}

// RootAt is the root over the first size entries, from the stored tree.
func (l *Ledger) RootAt(size uint64) (root chain.Digest, err error) {
	if have := l.Head().Size; size > have {
		return root, fmt.Errorf("root of %d entries of %d: %w", size, have, ErrNotFound)
	}
	err = l.view(func(tx *bbolt.Tx) error {
		t, err := chain.LoadTree(size, nodes(tx))
		if err == nil {
			root = t.Root()
		}
		return err
	})
	return root, err
}
