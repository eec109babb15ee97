package verify

import "crypto/sha256"

// parent is SHA-256(0x01 ‖ left ‖ right).
func parent(left, right Digest) (sum Digest) {
	h := sha256.New()
	h.Write([]byte{1})
	h.Write(left[:])
	h.Write(right[:])
	h.Sum(sum[:0])
	return sum
}

// Root is the Merkle tree hash of leaf hashes as RFC 6962, 2.1 defines it.
func Root(leaves []Digest) Digest {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	default:
		k := 1
		for 2*k < n {
			k *= 2
		}
		return parent(Root(leaves[:k]), Root(leaves[k:]))
	}
}

// tree keeps, for each level that tiles have, the roots of complete subtrees of
// 256^level leaves.
type tree struct {
	size   uint64
	levels [8][]Digest // level 0 holds the leaves that no complete tile covers yet
}

// full counts the complete subtrees of a level so far.
func (t *tree) full(level int) uint64 { return t.size >> (8 * level) }

func (t *tree) add(leaf Digest) {
	t.levels[0] = append(t.levels[0], leaf)
	t.size++
	for level := 0; level+1 < len(t.levels) && t.size%(1<<(8*(level+1))) == 0; level++ {
		row := t.levels[level]
		top := Root(row[len(row)-256:])
		if level == 0 {
			t.levels[0] = t.levels[0][:0]
		}
		t.levels[level+1] = append(t.levels[level+1], top)
	}
}

// root folds what is not complete, from the leaves upwards.
func (t *tree) root(more ...Digest) Digest {
	var right []Digest // at most one: the hash of everything to the right
	row := append(append([]Digest(nil), t.levels[0]...), more...)
	for level := 0; ; level++ {
		if len(row)+len(right) > 0 {
			right = []Digest{mth(row, right)}
		}
		if level+1 == len(t.levels) {
			break
		}
		next := t.levels[level+1]
		row = next[len(next)&^255:]
		if level+2 == len(t.levels) {
			row = next
		}
	}
	if len(right) == 0 {
		return sha256.Sum256(nil)
	}
	return right[0]
}

// mth is the hash of complete subtrees of one size with a smaller rest behind
// them. RFC 6962 splits at the largest power of two below the number of leaves,
// which a smaller rest does not move unless the complete ones are a power of
// two themselves.
func mth(row, rest []Digest) Digest {
	if len(rest) == 0 {
		return Root(row)
	}
	if len(row) == 0 {
		return rest[0]
	}
	k := 1
	for 2*k <= len(row) {
		k *= 2
	}
	return parent(Root(row[:k]), mth(row[k:], rest))
}

// RootFromProof walks an inclusion proof (RFC 9162, 2.1.3.2) from leaf n up to
// the root of a tree of size leaves; ok is false when its length does not fit.
func RootFromProof(path []Digest, size, n uint64, leaf Digest) (root Digest, ok bool) {
	if n >= size {
		return root, false
	}
	fn, sn, r := n, size-1, leaf
	for _, p := range path {
		if sn == 0 {
			return root, false
		}
		if fn&1 == 1 || fn == sn {
			r = parent(p, r)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			r = parent(r, p)
		}
		fn, sn = fn>>1, sn>>1
	}
	return r, sn == 0
}
