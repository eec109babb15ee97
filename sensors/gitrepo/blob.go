package gitrepo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Kinds of objects that a commit's files are found by.
const (
	kindTree = 2
	kindBlob = 3
)

// File reads a file as a commit has it; fs.ErrNotExist when the commit has no
// plain file of that path. The path has slashes and begins at the top.
func (r *Repo) File(commit, path string) ([]byte, error) {
	tree, err := r.CommitTree(commit)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(path, "/")
	for i, name := range parts {
		body, err := r.object(tree, "tree", kindTree)
		if err != nil {
			return nil, fmt.Errorf("read tree %.12s: %w", tree, err)
		}
		mode, hash, ok := treeEntry(body, name, len(tree)/2)
		last := i == len(parts)-1
		switch {
		case !ok, last && !strings.HasPrefix(mode, "100"), !last && mode != "40000":
			return nil, fs.ErrNotExist
		case last:
			b, err := r.object(hash, "blob", kindBlob)
			if err != nil {
				return nil, fmt.Errorf("read blob %.12s: %w", hash, err)
			}
			return b, nil
		}
		tree = hash
	}
	return nil, fs.ErrNotExist
}

// treeEntry finds a name in a tree: "mode name NUL hash" again and again.
func treeEntry(body []byte, name string, hashSize int) (mode, hash string, ok bool) {
	for len(body) > 0 {
		head, rest, found := bytes.Cut(body, []byte{0})
		if !found || len(rest) < hashSize {
			return "", "", false
		}
		m, n, found := strings.Cut(string(head), " ")
		if found && n == name {
			return m, hex.EncodeToString(rest[:hashSize]), true
		}
		body = rest[hashSize:]
	}
	return "", "", false
}

// object reads one object of a kind, loose or packed.
func (r *Repo) object(name, kind string, packedKind int) ([]byte, error) {
	if !isHash(name) {
		return nil, errObject
	}
	raw, err := hex.DecodeString(name)
	if err != nil {
		return nil, errObject
	}
	for _, store := range r.stores() {
		b, err := readFile(filepath.Join(store, name[:2], name[2:]), maxObject)
		if err == nil {
			if b, err = inflate(bytes.NewReader(b), maxObject); err != nil {
				return nil, err
			}
			head, body, ok := bytes.Cut(b, []byte{0})
			if !ok || !bytes.HasPrefix(head, []byte(kind+" ")) {
				return nil, errObject
			}
			return body, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
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
				return packedObject(strings.TrimSuffix(idx, ".idx")+".pack", off, len(raw), packedKind)
			}
		}
	}
	return nil, fs.ErrNotExist
}

func packedObject(path string, off int64, nameSize, want int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	kind, b, err := packed(f, off, nameSize, 0)
	if err != nil {
		return nil, err
	}
	if kind != want {
		return nil, errObject
	}
	return b, nil
}
