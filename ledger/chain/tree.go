package chain

import (
	"crypto/sha256"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Tree is the right edge of a Merkle tree (RFC 6962): the roots of its complete
// subtrees, largest first. It grows in place, one leaf at a time, and needs no
// stored node to do so. The zero value is the empty tree.
type Tree struct {
	size  uint64
	peaks []Digest
}

// Node is a complete subtree: the n-th of 2^Level leaves.
type Node struct {
	Level int
	N     uint64
	Hash  Digest
}

// Index is the node's place in the dense numbering of golang.org/x/mod/sumdb/tlog.
func (n Node) Index() uint64 { return NodeIndex(n.Level, n.N) }

// NodeIndex numbers the n-th node of a level as tlog does.
func NodeIndex(level int, n uint64) uint64 { return uint64(tlog.StoredHashIndex(level, int64(n))) }

// NodeAt is the inverse of NodeIndex. Index must be below 2^62.
func NodeAt(index uint64) (level int, n uint64) {
	l, m := tlog.SplitStoredHashIndex(int64(index))
	return l, uint64(m)
}

// NodeHash is SHA-256(0x01 ‖ left ‖ right).
func NodeHash(left, right Digest) Digest { return tlog.NodeHash(left, right) }

// Size is the number of leaves.
func (t *Tree) Size() uint64 { return t.size }

// Clone returns a tree that grows independently.
func (t *Tree) Clone() *Tree {
	return &Tree{size: t.size, peaks: append([]Digest(nil), t.peaks...)}
}

// Append adds a leaf and calls done for the leaf and then for every subtree that
// it completes, upwards. done may be nil.
func (t *Tree) Append(leaf Digest, done func(Node)) {
	node := Node{Level: 0, N: t.size, Hash: leaf}
	if done != nil {
		done(node)
	}
	// Each trailing one bit of the old size is a peak that now gets its partner.
	for s := t.size; s&1 == 1; s >>= 1 {
		last := len(t.peaks) - 1
		node = Node{Level: node.Level + 1, N: node.N >> 1, Hash: NodeHash(t.peaks[last], node.Hash)}
		t.peaks = t.peaks[:last]
		if done != nil {
			done(node)
		}
	}
	t.peaks = append(t.peaks, node.Hash)
	t.size++
}

// Root is the tree's hash; that of the empty tree is SHA-256 of nothing.
func (t *Tree) Root() Digest {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	last := len(t.peaks) - 1
	root := t.peaks[last]
	for i := last - 1; i >= 0; i-- {
		root = NodeHash(t.peaks[i], root)
	}
	return root
}

// LoadTree rebuilds the right edge of a tree of this size from its nodes: it
// reads one node per one bit of size.
func LoadTree(size uint64, node func(level int, n uint64) (Digest, error)) (*Tree, error) {
	t := &Tree{size: size}
	var before uint64
	for level := bits.Len64(size) - 1; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		h, err := node(level, before>>level)
		if err != nil {
			return nil, fmt.Errorf("load tree of %d: %w", size, err)
		}
		t.peaks = append(t.peaks, h)
		before += 1 << level
	}
	return t, nil
}
