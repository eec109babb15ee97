// Package verify is a second verifier of exported logs. It was written from
// ../FORMAT.md, uses the standard library alone and imports nothing of ours, so
// that a mistake in the first one is not repeated here: its own canonical JSON,
// Merkle tree, notes, tar. It opens no database and trusts no other program.
package verify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Problem is one thing that does not hold. Seq is the first entry that it
// concerns, File where it stands.
type Problem struct {
	Seq  uint64 `json:"seq"`
	File string `json:"file"`
	What string `json:"what"`
}

// Report is what a check found.
type Report struct {
	Origin      string    `json:"origin"`
	Size        uint64    `json:"size"`
	Root        string    `json:"root"` // hex, of the entries as they stand
	Tiles       uint64    `json:"tiles"`
	Checkpoints uint64    `json:"checkpoints"`
	Blobs       uint64    `json:"blobs"`
	Forgotten   uint64    `json:"forgotten"`
	Count       int       `json:"count"`
	Problems    []Problem `json:"problems"` // the first hundred
}

// First is the problem with the lowest sequence number, nil when there is none.
func (r Report) First() *Problem {
	var first *Problem
	for i := range r.Problems {
		if p := &r.Problems[i]; first == nil || p.Seq < first.Seq {
			first = p
		}
	}
	return first
}

// Options of a check.
type Options struct {
	Key      string                   // the key that must have signed, as note tools write it; empty = the export's own
	Outside  [][]byte                 // signed checkpoints kept elsewhere, each of which the log must contain
	Progress func(done, total uint64) // may be nil
}

// Path checks an export: a directory, or a file that holds a tar. The error is
// for a check that could not be made.
func Path(ctx context.Context, path string, o Options) (Report, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Report{}, fmt.Errorf("verify export: %w", err)
	}
	if st.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return Report{}, fmt.Errorf("verify export: %w", err)
		}
		defer root.Close()
		return check(ctx, &folder{root: root, asked: map[string]bool{}}, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("verify export: %w", err)
	}
	defer f.Close()
	return Stream(ctx, f, o)
}

// Stream checks a tar as it arrives.
func Stream(ctx context.Context, r io.Reader, o Options) (Report, error) {
	return check(ctx, &tape{in: bufio.NewReaderSize(r, 1<<16)}, o)
}

const (
	small   = 64 << 10
	keptMax = 1 << 30
	blobMax = 64 << 20
)

// audit is one check.
type audit struct {
	ctx    context.Context
	in     container
	o      Options
	r      Report
	keys   []Key
	since  []uint64 // of each key that the entries so far announced, the smallest checkpoint that it signs
	size   uint64
	points map[uint64][]mark
	head   Checkpoint
	tree   tree
	before struct { // the entry before the one that is judged
		hash  Digest
		known bool
	}
	names  map[Digest]uint64 // blob → newest entry that names it
	erased map[Digest]bool   // blobs that were named and then forgotten by name
	spared uint64            // blobs of entries below this may be gone
}

type mark struct {
	root Digest
	file string
	key  int // which one signed
}

var errEnd = errors.New("nothing more can be checked")

func check(ctx context.Context, in container, o Options) (Report, error) {
	a := &audit{ctx: ctx, in: in, o: o, points: map[uint64][]mark{}, names: map[Digest]uint64{}, erased: map[Digest]bool{}}
	a.r.Problems = []Problem{}
	for _, step := range []func() error{a.readKeys, a.readHead, a.readKept, a.outside, a.entries, a.allKeys, a.upperTiles, a.blobs, a.leftover} {
		if err := step(); errors.Is(err, errEnd) {
			break
		} else if err != nil {
			return a.r, fmt.Errorf("verify export: %w", err)
		}
	}
	return a.r, nil
}

func (a *audit) say(seq uint64, file, format string, args ...any) {
	if a.r.Count++; a.r.Count <= 100 {
		a.r.Problems = append(a.r.Problems, Problem{seq, file, fmt.Sprintf(format, args...)})
	}
}

// file reads a file that must be there; nil when it is not, which was said.
// What breaks the container ends the check.
func (a *audit) file(seq uint64, name string, size, atMost int64) ([]byte, error) {
	if err := a.ctx.Err(); err != nil {
		return nil, err
	}
	b, err := a.in.get(name, atMost)
	switch {
	case errors.Is(err, errAbsent):
		a.say(seq, name, "%v", err)
		return nil, nil
	case errors.Is(err, errFile):
		a.say(seq, name, "%v", err)
		return nil, errEnd
	case err != nil:
		return nil, err
	}
	if size >= 0 && int64(len(b)) != size {
		a.say(seq, name, "it has %d bytes, not %d", len(b), size)
		return nil, nil
	}
	return b, nil
}

func (a *audit) readKeys() error {
	b, err := a.file(0, "keys", -1, small)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(b), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != "" {
		a.say(0, "keys", "no line with a key")
		return errEnd
	}
	asked := a.o.Key == ""
	for _, line := range lines[:len(lines)-1] {
		k, err := ParseKey(strings.TrimSuffix(line, "\n"))
		switch {
		case err != nil:
		case len(a.keys) == 0 && !k.first(), len(a.keys) > 0 && k.name != a.keys[0].name:
			err = fmt.Errorf("%w: the key has another log's name", ErrNote)
		case len(a.keys) == keysMax:
			err = fmt.Errorf("%w: more than %d keys", ErrNote, keysMax)
		case slices.ContainsFunc(a.keys, func(o Key) bool { return bytes.Equal(o.pub, k.pub) }):
			err = fmt.Errorf("%w: a key stands there twice", ErrNote)
		}
		if err != nil {
			a.say(0, "keys", "%v", err)
			return errEnd
		}
		a.keys = append(a.keys, k)
		asked = asked || k.String() == a.o.Key
	}
	a.since = []uint64{0}
	if a.r.Origin = a.keys[0].Name(); !asked {
		a.say(0, "keys", "this is the log of %s, not of the key that was asked for", a.r.Origin)
	}
	return nil
}

// open finds which of the listed keys signed. Whose turn it was the entries tell.
func (a *audit) open(signed []byte) (c Checkpoint, key int, err error) {
	for key, k := range a.keys {
		if c, err = OpenCheckpoint(signed, k); err == nil {
			return c, key, nil
		}
	}
	return c, 0, err
}

func (a *audit) readHead() error {
	b, err := a.file(0, "checkpoint", -1, small)
	if err != nil {
		return err
	}
	c, key, err := a.open(b)
	if err != nil {
		a.say(0, "checkpoint", "%v", err)
		return errEnd
	}
	a.head, a.size = c, c.Size
	a.points[c.Size] = []mark{{c.Root, "checkpoint", key}}
	a.r.Checkpoints = 1
	return nil
}

// readKept reads the checkpoints of before: each note ends where the second
// empty line is.
func (a *audit) readKept() error {
	const name = "checkpoints"
	b, err := a.file(0, name, -1, keptMax)
	if err != nil {
		return err
	}
	last := uint64(0)
	var sizes []uint64
	for len(b) > 0 {
		text, rest, ok1 := bytes.Cut(b, []byte("\n\n"))
		sigs, rest, ok2 := bytes.Cut(rest, []byte("\n\n"))
		if !ok1 || !ok2 {
			a.say(last, name, "it is cut off after the checkpoint of %d", last)
			break
		}
		c, key, err := a.open(slices.Concat(text, []byte("\n\n"), sigs, []byte("\n")))
		b = rest
		switch {
		case err != nil:
			a.say(last, name, "after the checkpoint of %d: %v", last, err)
		case c.Size <= last || c.Size >= a.size:
			a.say(last, name, "a checkpoint of %d after one of %d", c.Size, last)
		default:
			last = c.Size
			sizes = append(sizes, c.Size)
			a.points[c.Size] = []mark{{c.Root, name, key}}
			a.r.Checkpoints++
		}
	}
	sizes = append(sizes, a.size)
	for n := uint64(1024); n+1024 <= a.size; n += 1024 {
		if i, _ := slices.BinarySearch(sizes, n); i == len(sizes) || sizes[i] >= n+1024 {
			a.say(n, name, "none between %d and %d", n, n+1024)
		}
	}
	return nil
}

func (a *audit) outside() error {
	for i, signed := range a.o.Outside {
		c, key, err := a.open(signed)
		switch {
		case err != nil:
			a.say(0, "checkpoint", "outside checkpoint %d: %v", i+1, err)
		case c.Size > a.size:
			a.say(a.size, "checkpoint", "the log had %d entries when checkpoint %d was kept outside", c.Size, i+1)
		default:
			a.points[c.Size] = append(a.points[c.Size], mark{c.Root, "outside", key})
		}
	}
	return nil
}

// record is an entry of a bundle beside its hash of the tile.
type record struct {
	seq    uint64
	bundle string
	tile   string
	raw    []byte
	listed *Digest
	entry  Entry
	err    error
}

func (r *record) linksTo(h Digest) bool {
	return r != nil && r.raw != nil && r.err == nil && r.entry.Prev == hex.EncodeToString(h[:])
}

// entries walks bundles and level 0, one record behind, so that each record is
// judged with the next one known.
func (a *audit) entries() error {
	var waiting *record
	for first := uint64(0); first < a.size; first += 256 {
		width := int(min(256, a.size-first))
		bundle, tile := tileName("entries", first/256, width), tileName("0", first/256, width)
		data, err := a.file(first, bundle, -1, 256*(2+maxEntry))
		if err != nil {
			return err
		}
		hashes, err := a.file(first, tile, int64(32*width), small)
		if err != nil {
			return err
		}
		a.r.Tiles++
		whole := data != nil
		for i := range width {
			r := &record{seq: first + uint64(i), bundle: bundle, tile: tile}
			if hashes != nil {
				r.listed = (*Digest)(hashes[32*i:])
			}
			if whole {
				if whole = len(data) >= 2 && int(data[0])<<8+int(data[1]) <= len(data)-2; whole {
					n := int(data[0])<<8 + int(data[1])
					r.raw, data = data[2:2+n], data[2+n:]
					if r.entry, r.err = ParseEntry(r.raw); r.err == nil && r.entry.Seq != r.seq {
						r.err = fmt.Errorf("%w: it says %d", ErrEntry, r.entry.Seq)
					}
				} else {
					a.say(r.seq, bundle, "entry %d runs beyond the bundle", r.seq)
					data = nil
				}
			}
			a.judge(waiting, r)
			waiting = r
		}
		if len(data) > 0 {
			a.say(first+uint64(width)-1, bundle, "%d bytes after the last entry", len(data))
		}
		if a.o.Progress != nil {
			a.o.Progress(first+uint64(width), a.size)
		}
	}
	a.judge(waiting, nil)
	root := a.tree.root()
	a.r.Size, a.r.Root = a.tree.size, hex.EncodeToString(root[:])
	if a.size == 0 && root != a.head.Root {
		a.say(0, "checkpoint", "the root of nothing is another")
	}
	return nil
}

// judge says what is wrong with r, and takes it into the tree. Three witnesses
// speak of a record's hash: its bytes, the tile, and the next record's link, or
// the signed root where there is no next one.
func (a *audit) judge(r, next *record) {
	if r == nil {
		return
	}
	said := a.r.Count
	hash, known := Digest{}, true
	switch own := LeafHash(r.raw); {
	case r.raw == nil && r.listed == nil:
		known = false
	case r.raw == nil:
		hash = *r.listed
	case r.listed == nil || *r.listed == own:
		if hash = own; r.err != nil {
			a.say(r.seq, r.bundle, "entry %d: %v", r.seq, r.err)
		}
	case next.linksTo(own) || next == nil && a.tree.root(own) == a.head.Root:
		hash = own
		a.say(r.seq, r.tile, "the tile's hash of entry %d was changed", r.seq)
	default:
		hash = *r.listed
		why := ""
		if r.err != nil {
			why = ": " + r.err.Error()
		}
		a.say(r.seq, r.bundle, "entry %d is not what its hash in the tile says%s", r.seq, why)
	}
	if r.raw != nil && r.err == nil {
		if a.r.Count == said && a.before.known && r.seq > 0 && r.entry.Prev != hex.EncodeToString(a.before.hash[:]) {
			a.brokenLink(r, next, hash)
		}
		a.note(r)
	}
	a.before.hash, a.before.known = hash, known
	a.tree.add(hash)
	if marks := a.points[a.tree.size]; marks != nil {
		root := a.tree.root()
		for _, m := range marks {
			if m.root != root {
				a.say(r.seq, m.file, "the checkpoint of %d is over other entries", a.tree.size)
			} else if a.r.Count == 0 && m.key != a.signer(a.tree.size) {
				a.say(r.seq, m.file, "the checkpoint of %d is signed by key %d, whose turn it was not", a.tree.size, m.key+1)
			}
		}
	}
}

// brokenLink: either r or the record before it was changed. If what follows
// vouches for r, it was the one before.
func (a *audit) brokenLink(r, next *record, hash Digest) {
	if next == nil {
		// The newest: with its link mended, does it stand under the signed root?
		link := []byte(`"prev":"` + r.entry.Prev + `"`)
		at := bytes.LastIndex(r.raw, link)
		mended := slices.Concat(r.raw[:at], []byte(`"prev":"`+hex.EncodeToString(a.before.hash[:])+`"`), r.raw[at+len(link):])
		if a.tree.root(LeafHash(mended)) == a.head.Root {
			a.say(r.seq, r.bundle, "entry %d does not link to entry %d", r.seq, r.seq-1)
			return
		}
	} else if !next.linksTo(hash) {
		a.say(r.seq, r.bundle, "entry %d does not link to entry %d", r.seq, r.seq-1)
		return
	}
	n := (r.seq - 1) / 256
	a.say(r.seq-1, tileName("entries", n, int(min(256, a.size-256*n))), "entry %d was changed: entry %d links to other bytes", r.seq-1, r.seq)
}

func (a *audit) note(r *record) {
	if r.entry.Kind == "key.rotated" {
		a.nextKey(r)
	}
	for _, sum := range blobsOf(r.entry.Body) {
		a.names[sum] = r.seq
		delete(a.erased, sum)
	}
	if r.entry.Kind == "request.forgotten" {
		for _, sum := range listed(r.entry.Body) {
			if _, named := a.names[sum]; named {
				delete(a.names, sum)
				a.erased[sum] = true
			}
		}
	}
	if r.entry.Kind == "blob.forgotten" {
		if n, ok := forgotten(r.entry.Body); ok && n < r.seq && n+1 >= a.spared {
			a.spared = n + 1
		}
	}
}

// upperTiles compares levels 1 and up. A hash above an entry that is wrong
// already only repeats it.
func (a *audit) upperTiles() error {
	for level := 1; level < 8 && a.tree.full(level) > 0; level++ {
		have := a.tree.levels[level]
		for first := uint64(0); first < uint64(len(have)); first += 256 {
			width := int(min(256, uint64(len(have))-first))
			name := tileName(strconv.Itoa(level), first/256, width)
			tile, err := a.file(first<<(8*level), name, int64(32*width), small)
			if err != nil {
				return err
			}
			a.r.Tiles++
			for i := 0; tile != nil && i < width; i++ {
				from := (first + uint64(i)) << (8 * level)
				to := from + 1<<(8*level)
				known := slices.ContainsFunc(a.r.Problems, func(p Problem) bool { return from <= p.Seq && p.Seq < to })
				if Digest(tile[32*i:32*i+32]) != have[first+uint64(i)] && !known {
					a.say(from, name, "hash %d is not the one of entries %d to %d", i, from, to-1)
				}
			}
		}
	}
	return nil
}

func (a *audit) blobs() error {
	// In order of their names: what stands next is known.
	a.r.Forgotten = uint64(len(a.erased))
	due := make([]string, 0, len(a.names))
	seq := make(map[string]uint64, len(a.names))
	for sum, at := range a.names {
		name := "blobs/" + hex.EncodeToString(sum[:])
		due, seq[name] = append(due, name), at
	}
	sort.Strings(due)
	for {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		name, content, err := a.in.blob(blobMax)
		if name == "" && err == nil {
			break
		}
		about := name
		if about == "" && len(due) > 0 {
			about = due[0]
		}
		at, named := seq[about]
		if about == "" {
			at = max(a.size, 1) - 1
		}
		if errors.Is(err, errFile) {
			a.say(at, about, "%v", err)
			return errEnd
		}
		if err != nil {
			return err
		}
		for len(due) > 0 && due[0] < name {
			a.gone(due[0], seq[due[0]])
			due = due[1:]
		}
		if len(due) > 0 && due[0] == name {
			due = due[1:]
		}
		a.r.Blobs++
		sum := sha256.Sum256(content)
		if !named {
			a.say(max(a.size, 1)-1, name, "no entry names this blob")
		} else if "blobs/"+hex.EncodeToString(sum[:]) != name {
			a.say(at, name, "the blob holds other bytes; entry %d names it", at)
		}
	}
	for _, name := range due {
		a.gone(name, seq[name])
	}
	return nil
}

// gone: a blob is not there. An entry may have said so.
func (a *audit) gone(name string, at uint64) {
	if at < a.spared {
		a.r.Forgotten++
		return
	}
	a.say(at, name, "the blob is missing; entry %d names it", at)
}

func (a *audit) leftover() error {
	names, err := a.in.rest()
	if errors.Is(err, errFile) {
		a.say(max(a.size, 1)-1, "", "%v", err)
		return nil
	}
	for _, name := range names {
		a.say(0, name, "the file does not belong to this log")
	}
	return err
}
