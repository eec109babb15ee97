package gitrepo

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one file of the index.
type Entry struct {
	Path  string
	Mode  uint32 // 0100644, 0100755, 0120000, 0160000
	Hash  string // of its blob, hexadecimal
	Size  uint32
	Mtime time.Time
	Stage int // 0, or 1 to 3 in a conflict
	// Assume is set by update-index --assume-unchanged, Skip by a sparse
	// checkout, Intent by add -N.
	Assume, Skip, Intent bool
}

// Index is what the next commit would hold.
type Index struct {
	Entries []Entry
	Written time.Time
	SHA256  bool // names are SHA-256, not SHA-1
	Sparse  bool // directories stand for their files
}

var errIndex = errors.New("the index cannot be read")

// Index reads the index; a repository without one has an empty index.
func (r *Repo) Index() (*Index, error) {
	path := filepath.Join(r.Dir, "index")
	b, err := readFile(path, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	cfg, err := r.Config()
	if err != nil {
		return nil, err
	}
	x, err := ParseIndex(b, cfg.Get("extensions.objectformat") == "sha256")
	if err != nil {
		return nil, err
	}
	if info, err := fileInfo(path); err == nil {
		x.Written = info.ModTime()
	}
	return x, nil
}

// ParseIndex reads an index of version 2, 3 or 4 (git's index-format). The
// checksum is compared, since half an index is worse than none; one of zeros
// means that the writer left it out.
func ParseIndex(b []byte, sha256Names bool) (*Index, error) {
	size := sha1.Size
	if sha256Names {
		size = sha256.Size
	}
	if len(b) < 12+size || string(b[:4]) != "DIRC" {
		return nil, fmt.Errorf("read index: %w", errIndex)
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("read index: version %d is not known: %w", version, errIndex)
	}
	end := len(b) - size
	if sum := b[end:]; !bytes.Equal(sum, make([]byte, size)) {
		h := newHash(sha256Names)
		h.Write(b[:end])
		if !bytes.Equal(h.Sum(nil), sum) {
			return nil, fmt.Errorf("read index: its checksum is wrong: %w", errIndex)
		}
	}
	x := &Index{SHA256: sha256Names}
	// An entry takes at least 62 bytes, so a count is not believed beyond that.
	if int64(count) > int64(end)/int64(40+size+2) {
		return nil, fmt.Errorf("read index: %w", errIndex)
	}
	x.Entries = make([]Entry, 0, count)
	at, previous := 12, ""
	for range count {
		e, next, err := entry(b[:end], at, size, version, previous)
		if err != nil {
			return nil, err
		}
		if e.Mode == 0o40000 {
			x.Sparse = true
		}
		x.Entries = append(x.Entries, e)
		at, previous = next, e.Path
	}
	for at+8 <= end { // extensions: only one in lower case changes what entries mean
		name, n := string(b[at:at+4]), int(binary.BigEndian.Uint32(b[at+4:]))
		if n < 0 || n > end-at-8 {
			return nil, fmt.Errorf("read index: %w", errIndex)
		}
		switch {
		case name == "sdir":
			x.Sparse = true
		case name[0] >= 'a': // link: a split index, whose other half stands elsewhere
			return nil, fmt.Errorf("read index: the extension %q is not read here: %w", name, errIndex)
		}
		at += 8 + n
	}
	return x, nil
}

func entry(b []byte, at, size int, version uint32, previous string) (Entry, int, error) {
	bad := fmt.Errorf("read index: %w", errIndex)
	fixed := 40 + size + 2
	if at+fixed > len(b) {
		return Entry{}, 0, bad
	}
	u := func(off int) uint32 { return binary.BigEndian.Uint32(b[at+off:]) }
	e := Entry{
		Mtime: time.Unix(int64(u(8)), int64(u(12))), Mode: u(24), Size: u(36),
		Hash: hex.EncodeToString(b[at+40 : at+40+size]),
	}
	flags := binary.BigEndian.Uint16(b[at+40+size:])
	e.Stage, e.Assume = int(flags>>12&3), flags&0x8000 != 0
	p := at + fixed
	if flags&0x4000 != 0 {
		if version < 3 || p+2 > len(b) {
			return Entry{}, 0, bad
		}
		more := binary.BigEndian.Uint16(b[p:])
		e.Skip, e.Intent = more&0x4000 != 0, more&0x2000 != 0
		p += 2
	}
	if version == 4 {
		strip, n := uvarint(b[p:])
		if n == 0 || strip > uint64(len(previous)) {
			return Entry{}, 0, bad
		}
		p += n
		end := bytes.IndexByte(b[p:], 0)
		if end < 0 {
			return Entry{}, 0, bad
		}
		e.Path = previous[:len(previous)-int(strip)] + string(b[p:p+end])
		p += end + 1
	} else {
		end := bytes.IndexByte(b[p:], 0)
		if end < 0 {
			return Entry{}, 0, bad
		}
		e.Path = string(b[p : p+end])
		p += end
		p = at + (p-at+8)/8*8 // padded with NULs to a multiple of eight
	}
	if e.Path == "" || len(e.Path) > 4096 || p > len(b) {
		return Entry{}, 0, bad
	}
	return e, p, nil
}

// uvarint reads git's offset encoding, in which each further byte adds one.
func uvarint(b []byte) (uint64, int) {
	var v uint64
	for i, c := range b {
		if i == 9 {
			break
		}
		v |= uint64(c & 0x7f)
		if c&0x80 == 0 {
			return v, i + 1
		}
		v = (v + 1) << 7
	}
	return 0, 0
}

func newHash(sha256Names bool) hash.Hash {
	if sha256Names {
		return sha256.New()
	}
	return sha1.New()
}

// objectName is the name of an object with this content.
func objectName(sha256Names bool, kind string, content []byte) string {
	h := newHash(sha256Names)
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Tree is the name of the tree that a commit of this index would have. ok is
// false when the index has conflicts or stands for files it does not list.
func (x *Index) Tree() (name string, ok bool) {
	if x.Sparse {
		return "", false
	}
	for _, e := range x.Entries {
		if e.Stage != 0 {
			return "", false
		}
	}
	return x.tree(x.Entries, "", 0)
}

// maxTreeDepth bounds how deep directories are nested.
const maxTreeDepth = 200

func (x *Index) tree(entries []Entry, prefix string, depth int) (string, bool) {
	if depth > maxTreeDepth {
		return "", false
	}
	type item struct {
		sort, name, hash string
		mode             uint32
	}
	var items []item
	for i := 0; i < len(entries); {
		rest := entries[i].Path[len(prefix):]
		dir, _, nested := strings.Cut(rest, "/")
		if !nested {
			if !entries[i].Intent { // add -N puts nothing into a commit
				items = append(items, item{rest, rest, entries[i].Hash, entries[i].Mode})
			}
			i++
			continue
		}
		j := i
		for j < len(entries) && strings.HasPrefix(entries[j].Path, prefix+dir+"/") {
			j++
		}
		sub, ok := x.tree(entries[i:j], prefix+dir+"/", depth+1)
		if !ok {
			return "", false
		}
		if sub != "" {
			items = append(items, item{dir + "/", dir, sub, 0o40000})
		}
		i = j
	}
	if len(items) == 0 && depth > 0 {
		return "", true
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.sort, b.sort) })
	var content bytes.Buffer
	for _, it := range items {
		raw, err := hex.DecodeString(it.hash)
		if err != nil {
			return "", false
		}
		fmt.Fprintf(&content, "%o %s\x00", it.mode, it.name)
		content.Write(raw)
	}
	return objectName(x.SHA256, "tree", content.Bytes()), true
}

// Find looks a path up; several entries of one path are a conflict.
func (x *Index) Find(path string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(x.Entries, path, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
	if !ok {
		return Entry{}, false
	}
	return x.Entries[i], true
}

// Holds reports whether any file below a directory is tracked.
func (x *Index) Holds(dir string) bool {
	i, _ := slices.BinarySearchFunc(x.Entries, dir+"/", func(e Entry, p string) int { return strings.Compare(e.Path, p) })
	return i < len(x.Entries) && strings.HasPrefix(x.Entries[i].Path, dir+"/")
}
