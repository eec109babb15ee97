package chain

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// InclusionProof is the path from leaf n to the root of a tree of size leaves,
// the leaf's sibling first (RFC 6962, 2.1.1). node reads complete subtrees.
func InclusionProof(size, n uint64, node func(level int, n uint64) (Digest, error)) ([]Digest, error) {
	if n >= size || size > maxInteger {
		return nil, fmt.Errorf("prove leaf %d of %d: %w", n, size, ErrFormat)
	}
	path, err := tlog.ProveRecord(int64(size), int64(n), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			h, err := node(NodeAt(uint64(x)))
			if err != nil {
				return nil, err
			}
			out[i] = h
		}
		return out, nil
	}))
	if err != nil {
		return nil, fmt.Errorf("prove leaf %d of %d: %w", n, size, err)
	}
	out := make([]Digest, len(path))
	for i, h := range path {
		out[i] = h
	}
	return out, nil
}

// CheckInclusion says whether path leads from leaf n to the root that a
// checkpoint is over.
func CheckInclusion(path []Digest, c Checkpoint, n uint64, leaf Digest) error {
	if n >= c.Size || c.Size > maxInteger {
		return fmt.Errorf("check proof: %w: leaf %d of %d", ErrFormat, n, c.Size)
	}
	p := make(tlog.RecordProof, len(path))
	for i, h := range path {
		p[i] = h
	}
	if err := tlog.CheckRecord(p, int64(c.Size), c.Root, int64(n), leaf); err != nil {
		return fmt.Errorf("check proof: %w: it does not lead to the checkpoint's root", ErrFormat)
	}
	return nil
}
