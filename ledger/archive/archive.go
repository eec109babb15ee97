// Package archive is a log as files that need no database: C2SP tlog-tiles
// (entry bundles, hash tiles, a checkpoint) and beside them the kept
// checkpoints, the blobs and the public keys; as a directory or as one tar. It
// names, packs, unpacks and checks such files. It never opens a ledger and
// never writes one: what a log holds comes in as bytes. ../FORMAT.md gives the
// layout byte by byte.
package archive

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// Width is the number of hashes of a full tile, and of entries of a full bundle.
	Width = 256
	// MaxBlob bounds one blob in bytes.
	MaxBlob = 64 << 20
	// NameKeys, NameCheckpoint and NameCheckpoints are the three files that a log
	// has once.
	NameKeys        = "keys"
	NameCheckpoint  = "checkpoint"
	NameCheckpoints = "checkpoints"

	maxSmall  = 64 << 10 // bytes of keys and of one checkpoint
	maxBundle = Width * (2 + 65535)
)

// ErrFormat is wrapped by every refusal of files that are no archive of ours.
var ErrFormat = errors.New("not an export")

// place is where a file stands in the one order of an archive.
type place struct {
	class int
	n     uint64
	sub   int
	sum   string
}

const (
	classUnknown = iota
	classKeys
	classCheckpoint
	classCheckpoints
	classLeaves // bundle and tile of level 0, by index
	classTiles  // higher levels
	classBlobs
)

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.class, q.class), cmp.Compare(p.n, q.n), cmp.Compare(p.sub, q.sub), cmp.Compare(p.sum, q.sum))
}

// BundleName is the file of the n-th entry bundle. A width below Width makes it partial.
func BundleName(n uint64, width int) string { return "tile/entries/" + index(n) + partial(width) }

// TileName is the file of the n-th hash tile of a level.
func TileName(level int, n uint64, width int) string {
	return "tile/" + strconv.Itoa(level) + "/" + index(n) + partial(width)
}

// BlobName is the file of a blob.
func BlobName(sum [32]byte) string { return "blobs/" + hex.EncodeToString(sum[:]) }

// index spells n in groups of three digits, all but the last behind an x.
func index(n uint64) string {
	s := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		s = fmt.Sprintf("x%03d/%s", n%1000, s)
	}
	return s
}

func partial(width int) string {
	if width == Width {
		return ""
	}
	return ".p/" + strconv.Itoa(width)
}

// WidthAt is the width of tile n of a level in a tree of size entries.
func WidthAt(size uint64, level int, n uint64) int {
	return int(min(Width, size>>(8*level)-n*Width))
}

// Tiles is the number of tiles of a level, partial one counted in.
func Tiles(size uint64, level int) uint64 { return (size>>(8*level) + Width - 1) / Width }

// placeOf finds where a name stands; class is classUnknown for a name that is
// not spelled exactly as this package spells it.
func placeOf(name string) place {
	switch name {
	case NameKeys:
		return place{class: classKeys}
	case NameCheckpoint:
		return place{class: classCheckpoint}
	case NameCheckpoints:
		return place{class: classCheckpoints}
	}
	if sum, ok := strings.CutPrefix(name, "blobs/"); ok {
		if len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == "" {
			return place{class: classBlobs, sum: sum}
		}
		return place{}
	}
	rest, ok := strings.CutPrefix(name, "tile/")
	if !ok {
		return place{}
	}
	kind, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return place{}
	}
	width := Width
	if head, w, some := strings.Cut(rest, ".p/"); some {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n >= Width || strconv.Itoa(n) != w {
			return place{}
		}
		rest, width = head, n
	}
	n, ok := parseIndex(rest)
	if !ok {
		return place{}
	}
	if kind == "entries" {
		return place{class: classLeaves, n: n}
	}
	level, err := strconv.Atoi(kind)
	if err != nil || level < 0 || level > 7 || TileName(level, n, width) != name {
		return place{}
	}
	if level == 0 {
		return place{class: classLeaves, n: n, sub: 1}
	}
	return place{class: classTiles, n: uint64(level), sub: int(n)}
}

func parseIndex(s string) (uint64, bool) {
	var n uint64
	for part := range strings.SplitSeq(strings.ReplaceAll(s, "x", ""), "/") {
		d, err := strconv.ParseUint(part, 10, 16)
		if err != nil || len(part) != 3 || n > 1<<53 {
			return 0, false
		}
		n = n*1000 + d
	}
	return n, index(n) == s
}

// seqOf is the first entry that a file is about.
func (p place) seqOf() uint64 {
	switch p.class {
	case classLeaves:
		return p.n * Width
	case classTiles:
		return uint64(p.sub) << (8 * (p.n + 1))
	}
	return 0
}
