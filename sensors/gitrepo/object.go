package gitrepo

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

var errObject = errors.New("the object cannot be read")

// Kinds of packed objects (git's pack-format).
const (
	kindCommit = 1
	kindOffset = 6 // a delta on the object at an offset before it
	kindRef    = 7 // a delta on the object of a name
)

// CommitTree is the name of a commit's tree.
func (r *Repo) CommitTree(commit string) (string, error) {
	b, err := r.commit(commit)
	if err != nil {
		return "", fmt.Errorf("read commit %.12s: %w", commit, err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	tree, ok := strings.CutPrefix(line, "tree ")
	if !ok || !isHash(tree) {
		return "", fmt.Errorf("read commit %.12s: %w", commit, errObject)
	}
	return tree, nil
}

// stores lists the object directories: the repository's own and those it borrows
// from, one level deep.
func (r *Repo) stores() []string {
	own := filepath.Join(r.Common, "objects")
	out := []string{own}
	b, err := readFile(filepath.Join(own, "info", "alternates"), maxSmall)
	if err != nil {
		return out
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || len(out) > 8 {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(own, line)
		}
		out = append(out, line)
	}
	return out
}

func (r *Repo) commit(name string) ([]byte, error) {
	if !isHash(name) {
		return nil, errObject
	}
	raw, err := hex.DecodeString(name)
	if err != nil {
		return nil, errObject
	}
	for _, store := range r.stores() {
		b, err := looseCommit(filepath.Join(store, name[:2], name[2:]))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
		packs, err := filepath.Glob(filepath.Join(escape(store), "pack", "*.idx"))
		if err != nil {
			return nil, errObject
		}
		for _, idx := range packs {
			off, found, err := lookup(idx, raw)
			if err != nil {
				return nil, err
			}
			if found {
				return packedCommit(strings.TrimSuffix(idx, ".idx")+".pack", off, len(raw))
			}
		}
	}
	return nil, fs.ErrNotExist
}

// escape keeps a directory's own special characters from being a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func looseCommit(path string) ([]byte, error) {
	b, err := readFile(path, maxObject)
	if err != nil {
		return nil, err
	}
	b, err = inflate(bytes.NewReader(b), maxObject)
	if err != nil {
		return nil, err
	}
	head, body, ok := bytes.Cut(b, []byte{0})
	if !ok || !bytes.HasPrefix(head, []byte("commit ")) {
		return nil, errObject
	}
	return body, nil
}

func inflate(r io.Reader, limit int64) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, errObject
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil || int64(len(b)) > limit {
		return nil, errObject
	}
	return b, nil
}

// lookup finds an object in a pack's index, version 2, without reading all of it.
func lookup(idx string, name []byte) (int64, bool, error) {
	f, err := os.Open(idx)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPack {
		return 0, false, errObject
	}
	var head [8 + 4*256]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !bytes.Equal(head[:8], []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}) {
		return 0, false, errObject
	}
	fan := func(i int) int64 { return int64(binary.BigEndian.Uint32(head[8+4*i:])) }
	total, lo := fan(255), int64(0)
	if name[0] > 0 {
		lo = fan(int(name[0]) - 1)
	}
	hi := fan(int(name[0]))
	if lo > hi || hi > total {
		return 0, false, errObject
	}
	size := int64(len(name))
	names := make([]byte, (hi-lo)*size)
	if _, err := f.ReadAt(names, int64(len(head))+lo*size); err != nil {
		return 0, false, errObject
	}
	i := sort.Search(int(hi-lo), func(i int) bool { return bytes.Compare(names[int64(i)*size:int64(i+1)*size], name) >= 0 })
	if int64(i) == hi-lo || !bytes.Equal(names[int64(i)*size:int64(i+1)*size], name) {
		return 0, false, nil
	}
	at := int64(len(head)) + total*size + total*4 // after the names come checksums
	var four [4]byte
	if _, err := f.ReadAt(four[:], at+(lo+int64(i))*4); err != nil {
		return 0, false, errObject
	}
	off := binary.BigEndian.Uint32(four[:])
	if off&0x80000000 == 0 {
		return int64(off), true, nil
	}
	var eight [8]byte
	if _, err := f.ReadAt(eight[:], at+total*4+int64(off&0x7fffffff)*8); err != nil {
		return 0, false, errObject
	}
	return int64(binary.BigEndian.Uint64(eight[:]) & (1<<63 - 1)), true, nil
}

func packedCommit(path string, off int64, nameSize int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kind, b, err := packed(f, off, nameSize, 0)
	if err != nil {
		return nil, err
	}
	if kind != kindCommit {
		return nil, errObject
	}
	return b, nil
}

// maxChain bounds a chain of deltas; git makes none deeper than 4095.
const maxChain = 64

func packed(f *os.File, off int64, nameSize, depth int) (int, []byte, error) {
	if depth > maxChain {
		return 0, nil, errObject
	}
	r := io.NewSectionReader(f, off, 1<<40)
	head := make([]byte, 64)
	n, err := r.Read(head)
	if err != nil && !errors.Is(err, io.EOF) || n < 2 { // the last object lies nearer to the end than that
		return 0, nil, errObject
	}
	head = head[:n]
	kind, at := int(head[0]>>4&7), 1
	for c := head[0]; c&0x80 != 0; at++ {
		if at >= len(head) {
			return 0, nil, errObject
		}
		c = head[at]
	}
	base := int64(0)
	switch kind {
	case kindCommit, kindTree, kindBlob:
	case kindOffset:
		d, n := uvarint(head[at:])
		if n == 0 || d == 0 || int64(d) >= off {
			return 0, nil, errObject
		}
		at, base = at+n, off-int64(d)
	case kindRef:
		if at+nameSize > len(head) {
			return 0, nil, errObject
		}
		found := false
		if base, found, err = lookup(strings.TrimSuffix(f.Name(), ".pack")+".idx", head[at:at+nameSize]); err != nil || !found {
			return 0, nil, errObject
		}
		at += nameSize
	default:
		return 0, nil, errObject
	}
	b, err := inflate(io.NewSectionReader(f, off+int64(at), 1<<40), maxObject)
	if err != nil || base == 0 {
		return kind, b, err
	}
	kind, from, err := packed(f, base, nameSize, depth+1)
	if err != nil {
		return 0, nil, err
	}
	b, err = patch(from, b)
	return kind, b, err
}

// patch applies a delta: copies from the base, and bytes of its own.
func patch(base, delta []byte) ([]byte, error) {
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(delta)
		if n <= 0 {
			return 0, false
		}
		delta = delta[n:]
		return v, true
	}
	from, ok := number()
	to, ok2 := number()
	if !ok || !ok2 || from != uint64(len(base)) || to > maxObject {
		return nil, errObject
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return nil, errObject
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var off, size uint32
		for i := range 7 {
			if op&(1<<i) == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, errObject
			}
			if i < 4 {
				off |= uint32(delta[0]) << (8 * i)
			} else {
				size |= uint32(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if size == 0 {
			size = 0x10000
		}
		if uint64(off)+uint64(size) > uint64(len(base)) || uint64(len(out))+uint64(size) > to {
			return nil, errObject
		}
		out = append(out, base[off:off+size]...)
	}
	if uint64(len(out)) != to {
		return nil, errObject
	}
	return out, nil
}
