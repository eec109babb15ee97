package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"golang.org/x/mod/sumdb/note"
)

// Problem is one thing that is not as it must be. Seq is the first entry that it
// concerns, File where it stands.
type Problem struct {
	Seq  uint64 `json:"seq"`
	File string `json:"file"`
	What string `json:"what"`
}

// Report is what Check found.
type Report struct {
	Origin      string    `json:"origin"`
	Keys        []string  `json:"keys"`              // in note's form, oldest first
	Rotated     []uint64  `json:"rotated,omitempty"` // the entries that announced all but the first
	Size        uint64    `json:"size"`
	Root        string    `json:"root"` // hex, of the entries as they stand
	Tiles       uint64    `json:"tiles"`
	Checkpoints uint64    `json:"checkpoints"`
	Blobs       uint64    `json:"blobs"`
	Forgotten   uint64    `json:"forgotten"` // blobs that retention or a person took
	Count       int       `json:"count"`     // of all problems
	Problems    []Problem `json:"problems"`
}

// OK reports whether nothing was found.
func (r Report) OK() bool { return r.Count == 0 }

// First returns the problem with the lowest sequence number.
func (r Report) First() (Problem, bool) {
	if len(r.Problems) == 0 {
		return Problem{}, false
	}
	return slices.MinFunc(r.Problems, func(a, b Problem) int {
		switch {
		case a.Seq < b.Seq:
			return -1
		case a.Seq > b.Seq:
			return 1
		}
		return 0
	}), true
}

// Options of Check. What the callbacks are given is only valid during the call,
// and not yet known to be sound: only the report says so, at the end.
type Options struct {
	Key        string   // the public key that must have signed, in note's form; empty = whatever the export brings
	Outside    [][]byte // signed checkpoints kept elsewhere: the log must contain each
	Progress   func(done, total uint64)
	Checkpoint func(size uint64, signed []byte) error
	Entry      func(seq uint64, raw []byte) error
	Blob       func(sum [32]byte, content []byte) error
}

const (
	problemsMax = 100
	// checkpointEvery: one checkpoint is kept near each multiple, FORMAT.md.
	checkpointEvery = 1024
)

// Check reads an archive once, from front to back, and holds all of it against
// itself: the keys, the signatures, each entry's form and link, both trees, each
// blob, and that no file is missing or too many. The error is for a check that
// could not be made; what a check found is in the report.
func Check(ctx context.Context, r Reader, o Options) (Report, error) {
	c := &checker{ctx: ctx, r: r, o: o, refs: map[[32]byte]uint64{}, struck: map[[32]byte]bool{}, blobs: map[[32]byte]bool{}}
	c.rep.Problems, c.rep.Keys = []Problem{}, []string{}
	err := c.run()
	if errors.Is(err, errStop) {
		err = nil
	}
	if err != nil {
		return c.rep, fmt.Errorf("check export: %w", err)
	}
	return c.rep, nil
}

// errStop ends a check whose rest cannot be read or would only repeat a problem.
var errStop = errors.New("stop")

type checker struct {
	ctx  context.Context
	r    Reader
	o    Options
	rep  Report
	pend *File
	end  bool

	pubs   []ed25519.PublicKey // as the file of keys lists them
	keys   chain.Keys          // of them, those that the entries so far announced
	size   uint64
	tree   chain.Tree
	prev   chain.Digest
	linked bool // prev is known
	cur    leaf // entry that waits for the next one's opinion
	points []point
	higher [8][]chain.Digest // by tile level, complete subtrees
	refs   map[[32]byte]uint64
	struck map[[32]byte]bool // named once, then forgotten by a request.forgotten
	blobs  map[[32]byte]bool
	pruned *uint64
}

type point struct {
	chain.Checkpoint
	file string
	by   ed25519.PublicKey
}

// leaf is an entry with its hash as the tile of level 0 has it.
type leaf struct {
	seq   uint64
	raw   []byte // nil: cannot be read, and that was said
	tile  *chain.Digest
	file  string
	entry chain.Entry
	err   error
	valid bool
}

func (c *checker) problem(seq uint64, file, format string, args ...any) {
	c.rep.Count++
	if len(c.rep.Problems) < problemsMax {
		c.rep.Problems = append(c.rep.Problems, Problem{seq, file, fmt.Sprintf(format, args...)})
	}
}

// next is the file to come, whatever it is; nil at the end. about and seq say
// what was expected, for an archive that cannot be read on.
func (c *checker) next(about string, seq uint64) (*File, error) {
	if c.pend != nil || c.end {
		return c.pend, nil
	}
	f, err := c.r.Next()
	switch {
	case errors.Is(err, io.EOF):
		c.end = true
	case errors.Is(err, ErrFormat):
		c.problem(seq, about, "%v", err)
		return nil, errStop
	case err != nil:
		return nil, err
	}
	c.pend = f
	return f, nil
}

// take is the content of the file of this name, nil when it is missing, too
// large or of another size, which is a problem.
func (c *checker) take(name string, size int64, atMost int64) ([]byte, error) {
	f, err := c.find(name)
	if err != nil || f == nil {
		return nil, err
	}
	seq := placeOf(name).seqOf()
	if size >= 0 && f.Size != size || f.Size > atMost {
		c.problem(seq, name, "it has %d bytes", f.Size)
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(f, atMost+1))
	if errors.Is(err, ErrFormat) {
		c.problem(seq, name, "%v", err)
		return nil, errStop
	}
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != f.Size {
		c.problem(seq, name, "it changed while it was read")
		return nil, nil
	}
	return b, nil
}

func (c *checker) find(name string) (*File, error) {
	at := placeOf(name)
	for {
		f, err := c.next(name, at.seqOf())
		if err != nil {
			return nil, err
		}
		if f != nil && f.Name == name {
			c.pend = nil
			return f, nil
		}
		if f == nil || placeOf(f.Name).compare(at) > 0 {
			c.problem(at.seqOf(), name, "the file is missing")
			return nil, nil
		}
		c.problem(placeOf(f.Name).seqOf(), f.Name, "the file does not belong to this log")
		c.pend = nil
	}
}

func (c *checker) run() error {
	if err := c.readKeys(); err != nil {
		return err
	}
	if err := c.readCheckpoints(); err != nil {
		return err
	}
	for n := range Tiles(c.size, 0) {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.bundle(n); err != nil {
			return err
		}
		if c.o.Progress != nil {
			c.o.Progress(min(c.size, (n+1)*Width), c.size)
		}
	}
	if err := c.settle(nil); err != nil {
		return err
	}
	root := c.tree.Root()
	c.rep.Size, c.rep.Root = c.tree.Size(), hex.EncodeToString(root[:])
	c.announced()
	if err := c.tiles(); err != nil {
		return err
	}
	if err := c.readBlobs(); err != nil {
		return err
	}
	c.missingBlobs()
	return nil
}

func (c *checker) readKeys() error {
	b, err := c.take(NameKeys, -1, maxSmall)
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != "" {
		c.problem(0, NameKeys, "no line with a key")
		return errStop
	}
	for _, line := range lines[:len(lines)-1] {
		origin, pub, err := ParseKey(line)
		if len(c.pubs) == 0 {
			c.rep.Origin = origin
		}
		switch {
		case err != nil:
		case len(c.pubs) == chain.MaxKeys:
			err = fmt.Errorf("%w: more than %d keys", ErrFormat, chain.MaxKeys)
		case origin != c.rep.Origin, len(c.pubs) == 0 && origin != chain.Origin(pub):
			err = fmt.Errorf("%w: the key has another log's name", ErrFormat)
		case slices.Contains(c.rep.Keys, line):
			err = fmt.Errorf("%w: a key stands there twice", ErrFormat)
		}
		if err != nil {
			c.problem(0, NameKeys, "%v", err)
			return errStop
		}
		c.pubs, c.rep.Keys = append(c.pubs, pub), append(c.rep.Keys, line)
	}
	c.keys = chain.NewKeys(c.pubs[0])
	if c.o.Key != "" && !slices.Contains(c.rep.Keys, c.o.Key) {
		c.problem(0, NameKeys, "the log is of %s, not of the key that was asked for", c.rep.Origin)
	}
	return nil
}

// ParseKey reads a key of one of our logs in note's form. A log keeps its first
// key's name, so that name need not be this key's own.
func ParseKey(line string) (origin string, pub ed25519.PublicKey, err error) {
	v, err := note.NewVerifier(line)
	if err != nil {
		return "", nil, fmt.Errorf("%w: no key of note's form", ErrFormat)
	}
	parts := strings.SplitN(line, "+", 3)
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return "", nil, fmt.Errorf("%w: no Ed25519 key", ErrFormat)
	}
	if !chain.IsOrigin(v.Name()) {
		return "", nil, fmt.Errorf("%w: the key has no log's name", ErrFormat)
	}
	pub = raw[1:]
	if want, err := note.NewEd25519VerifierKey(v.Name(), pub); err != nil || want != line {
		return "", nil, fmt.Errorf("%w: the key is spelled another way", ErrFormat)
	}
	return v.Name(), pub, nil
}

// open takes a checkpoint that any of the listed keys signed. Whether it was that
// key's turn is known when the entries before it are.
func (c *checker) open(signed []byte) (cp chain.Checkpoint, by ed25519.PublicKey, err error) {
	for _, pub := range c.pubs {
		if cp, err = chain.OpenCheckpointOf(signed, c.rep.Origin, pub); err == nil {
			return cp, pub, nil
		}
	}
	return cp, nil, err
}

// announced looks whether the entries announced all the keys that are listed.
// Where an entry is wrong, that only repeats it.
func (c *checker) announced() {
	c.rep.Rotated = c.keys.Rotations()
	if n := c.keys.Len(); n < len(c.pubs) && c.rep.Count == 0 {
		c.problem(0, NameKeys, "%d keys are listed, the entries announce %d", len(c.pubs), n)
	}
}

// rotate takes the key that an entry announces.
func (c *checker) rotate(l leaf) {
	next, err := c.keys.RotateBody(l.seq, c.tree.Root(), l.entry.Body)
	if n := c.keys.Len(); err == nil && (n == len(c.pubs) || !next.Newest().Equal(c.pubs[n])) {
		err = errors.New("it announces a key that is not listed next")
	}
	if err != nil {
		c.problem(l.seq, l.file, "entry %d: %v", l.seq, err)
		return
	}
	c.keys = next
}

func (c *checker) readCheckpoints() error {
	signed, err := c.take(NameCheckpoint, -1, maxSmall)
	if err != nil {
		return err
	}
	head, by, err := c.open(signed)
	if err != nil {
		c.problem(0, NameCheckpoint, "%v", err)
		return errStop // nothing says how many files there must be
	}
	c.size = head.Size
	f, err := c.find(NameCheckpoints)
	if err != nil {
		return err
	}
	if f != nil {
		if err := c.kept(f); err != nil {
			return err
		}
	}
	c.points = append(c.points, point{head, NameCheckpoint, by})
	for n := uint64(checkpointEvery); n+checkpointEvery <= c.size; n += checkpointEvery {
		if !slices.ContainsFunc(c.points, func(p point) bool { return p.Size >= n && p.Size < n+checkpointEvery }) {
			c.problem(n, NameCheckpoints, "none between %d and %d", n, n+checkpointEvery)
		}
	}
	c.rep.Checkpoints = uint64(len(c.points))
	for i, signed := range c.o.Outside {
		cp, by, err := c.open(signed)
		switch {
		case err != nil:
			c.problem(0, NameCheckpoint, "outside checkpoint %d: %v", i+1, err)
		case cp.Size > c.size:
			c.problem(c.size, NameCheckpoint, "checkpoint %d, kept outside, is of %d entries: this copy is older, or the log was cut", i+1, cp.Size)
		default:
			c.points = append(c.points, point{cp, "outside", by})
		}
	}
	slices.SortStableFunc(c.points, func(a, b point) int {
		switch {
		case a.Size < b.Size:
			return -1
		case a.Size > b.Size:
			return 1
		}
		return 0
	})
	if c.o.Checkpoint != nil && c.size > 0 {
		return c.o.Checkpoint(c.size, signed)
	}
	return nil
}

// kept reads the notes of NameCheckpoints, each with one empty line behind it.
func (c *checker) kept(f *File) error {
	in := bufio.NewReaderSize(f, maxSmall)
	var last uint64
	for {
		var signed []byte
		blank := 0
		for blank < 2 {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 && len(signed) == 0 {
				return nil
			}
			if errors.Is(err, ErrFormat) {
				c.problem(0, NameCheckpoints, "%v", err)
				return errStop
			}
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			if err != nil || len(signed)+len(line) > maxSmall {
				c.problem(last, NameCheckpoints, "it is cut off after the checkpoint of %d", last)
				_, err := io.Copy(io.Discard, in)
				return err
			}
			if string(line) == "\n" {
				if blank++; blank == 2 {
					break
				}
			}
			signed = append(signed, line...)
		}
		cp, by, err := c.open(signed)
		if err != nil {
			c.problem(last, NameCheckpoints, "after the checkpoint of %d: %v", last, err)
			continue
		}
		if cp.Size <= last || cp.Size >= c.size {
			c.problem(last, NameCheckpoints, "a checkpoint of %d after one of %d", cp.Size, last)
			continue
		}
		last = cp.Size
		c.points = append(c.points, point{cp, NameCheckpoints, by})
		if c.o.Checkpoint != nil {
			if err := c.o.Checkpoint(cp.Size, signed); err != nil {
				return err
			}
		}
	}
}

// bundle reads 256 entries and the tile with their hashes.
func (c *checker) bundle(n uint64) error {
	width := WidthAt(c.size, 0, n)
	name := BundleName(n, width)
	data, err := c.take(name, -1, maxBundle)
	if err != nil {
		return err
	}
	unread := data == nil
	tile, err := c.take(TileName(0, n, width), int64(width)*sha256.Size, maxBundle)
	if err != nil {
		return err
	}
	c.rep.Tiles++
	for i := range width {
		l := leaf{seq: n*Width + uint64(i), file: name, valid: true}
		if tile != nil {
			l.tile = (*chain.Digest)(tile[i*sha256.Size:])
		}
		if !unread {
			if k := lengthOf(data); k >= 0 {
				l.raw, data = data[2:2+k], data[2+k:]
			} else {
				c.problem(l.seq, name, "entry %d runs beyond the bundle", l.seq)
				unread, data = true, nil
			}
		}
		if err := c.settle(&l); err != nil {
			return err
		}
	}
	if len(data) > 0 {
		c.problem(n*Width+uint64(width)-1, name, "%d bytes after the last entry", len(data))
	}
	return nil
}

func lengthOf(data []byte) int {
	if len(data) < 2 {
		return -1
	}
	if k := int(data[0])<<8 | int(data[1]); k <= len(data)-2 {
		return k
	}
	return -1
}

// settle judges the entry that waits, now that the next one is known, and lets
// next wait. The next entry's link is what tells a changed entry from a changed
// hash.
func (c *checker) settle(next *leaf) error {
	if next != nil && next.raw != nil {
		if next.entry, next.err = chain.Decode(next.raw); next.err == nil && next.entry.Seq != next.seq {
			next.err = fmt.Errorf("%w: it says %d", chain.ErrFormat, next.entry.Seq)
		}
	}
	cur := c.cur
	c.cur = leaf{}
	if next != nil {
		c.cur = *next
	}
	if !cur.valid {
		return nil
	}
	before := c.rep.Count
	hash, known := c.judge(cur, next)
	if cur.raw != nil && cur.err == nil {
		c.link(cur, next, hash, before != c.rep.Count)
		c.note(cur)
		if c.o.Entry != nil {
			if err := c.o.Entry(cur.seq, cur.raw); err != nil {
				return err
			}
		}
	}
	c.prev, c.linked = hash, known
	c.tree.Append(hash, func(n chain.Node) {
		if n.Level > 0 && n.Level%8 == 0 {
			c.higher[n.Level/8] = append(c.higher[n.Level/8], n.Hash)
		}
	})
	for len(c.points) > 0 && c.points[0].Size <= c.tree.Size() {
		if p := c.points[0]; p.Size == c.tree.Size() && p.Root != c.tree.Root() {
			c.problem(max(p.Size, 1)-1, p.file, "the checkpoint of %d is over other entries", p.Size)
		} else if p.Size == c.tree.Size() && !c.keys.At(p.Size).Equal(p.by) && c.rep.Count == 0 {
			c.problem(max(p.Size, 1)-1, p.file, "the checkpoint of %d is signed by a key whose turn it was not", p.Size)
		}
		c.points = c.points[1:]
	}
	return nil
}

// judge picks the hash that stands in the tree for an entry, and says what is
// wrong with it. known is false when nothing tells it.
func (c *checker) judge(cur leaf, next *leaf) (hash chain.Digest, known bool) {
	if cur.raw == nil {
		if cur.tile != nil {
			return *cur.tile, true
		}
		return chain.Digest{}, false
	}
	own := chain.Hash(cur.raw)
	if cur.tile == nil || *cur.tile == own {
		if cur.err != nil {
			c.problem(cur.seq, cur.file, "entry %d: %v", cur.seq, cur.err)
		}
		return own, true
	}
	vouches := func(h chain.Digest) bool {
		if next != nil {
			return next.raw != nil && next.err == nil && next.entry.Prev == chain.Link(h)
		}
		t := c.tree.Clone()
		t.Append(h, nil)
		return len(c.points) > 0 && c.points[len(c.points)-1].Root == t.Root()
	}
	switch {
	case vouches(own):
		c.problem(cur.seq, tileOf(cur.file), "the hash of entry %d was changed", cur.seq)
		return own, true
	case cur.err != nil:
		c.problem(cur.seq, cur.file, "entry %d: %v", cur.seq, cur.err)
	case vouches(*cur.tile):
		c.problem(cur.seq, cur.file, "entry %d was changed: what follows it vouches for other bytes", cur.seq)
	default:
		c.problem(cur.seq, cur.file, "entry %d and its hash in the tile differ", cur.seq)
	}
	return *cur.tile, true
}

func tileOf(bundle string) string { return strings.Replace(bundle, "tile/entries/", "tile/0/", 1) }

// link compares an entry's link with the hash of the one before. When they
// differ, the entry after tells which of the two was changed.
func (c *checker) link(cur leaf, next *leaf, hash chain.Digest, said bool) {
	if cur.seq == 0 || !c.linked || cur.entry.Prev == chain.Link(c.prev) || said {
		return
	}
	intact := next != nil && next.raw != nil && next.err == nil && next.entry.Prev == chain.Link(hash)
	if next == nil {
		// The newest entry has none after it: mended, does the checkpoint fit?
		e := cur.entry
		e.Prev = chain.Link(c.prev)
		raw, err := chain.AppendEntry(nil, e)
		t := c.tree.Clone()
		t.Append(chain.Hash(raw), nil)
		intact = err != nil || len(c.points) == 0 || c.points[len(c.points)-1].Root != t.Root()
	}
	if intact {
		c.problem(cur.seq-1, BundleName((cur.seq-1)/Width, WidthAt(c.size, 0, (cur.seq-1)/Width)), "entry %d was changed: entry %d links to other bytes", cur.seq-1, cur.seq)
		return
	}
	c.problem(cur.seq, cur.file, "entry %d does not link to entry %d", cur.seq, cur.seq-1)
}

// tiles compares the levels above the entries' hashes.
func (c *checker) tiles() error {
	for level := 1; c.size>>(8*level) > 0; level++ {
		for n := range Tiles(c.size, level) {
			width := WidthAt(c.size, level, n)
			name := TileName(level, n, width)
			tile, err := c.take(name, int64(width)*sha256.Size, maxBundle)
			if err != nil {
				return err
			}
			c.rep.Tiles++
			for i := 0; tile != nil && i < width; i++ {
				at := n*Width + uint64(i)
				want := c.higher[level][at]
				from, to := at<<(8*level), (at+1)<<(8*level)
				if bytes.Equal(tile[i*sha256.Size:(i+1)*sha256.Size], want[:]) ||
					slices.ContainsFunc(c.rep.Problems, func(p Problem) bool { return p.Seq >= from && p.Seq < to }) {
					continue // where an entry is wrong, what is above it only repeats that
				}
				c.problem(from, name, "hash %d is not the one of entries %d to %d", i, from, to-1)
			}
		}
	}
	return nil
}
