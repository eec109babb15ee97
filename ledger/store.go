package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

// bucket names one of the file's top-level buckets.
type bucket int

const (
	bMeta bucket = iota
	bChain
	bTree
	bCheckpoints
	bBlobs
	bFacts
	bFactsByKey
	bFactsByScope
	bFactsByExpiry
	bHolds
	bHoldsByState
	bAnswers
	bTurns
	bTurnsOpen
	bTurnEntries
	bConversations
	bBlocks
	bModels
	bBlobRefs
	bState
	bKnowledge
	bDeltas
	bAPIKeys
	bUpstreamKeys
	bucketCount
)

var bucketNames = [bucketCount][]byte{
	bMeta: []byte("meta"), bChain: []byte("chain"), bTree: []byte("tree"), bCheckpoints: []byte("checkpoints"), bBlobs: []byte("blobs"),
	bFacts: []byte("facts"), bFactsByKey: []byte("facts_by_key"), bFactsByScope: []byte("facts_by_scope"), bFactsByExpiry: []byte("facts_by_expiry"),
	bHolds: []byte("holds"), bHoldsByState: []byte("holds_by_state"), bAnswers: []byte("answers"),
	bTurns: []byte("turns"), bTurnsOpen: []byte("turns_open"), bTurnEntries: []byte("turn_entries"), bConversations: []byte("conversations"), bBlocks: []byte("blocks"),
	bModels: []byte("models"), bBlobRefs: []byte("blob_refs"), bState: []byte("state"),
	bKnowledge: []byte("knowledge"), bDeltas: []byte("deltas"),
	bAPIKeys: []byte("api_keys"), bUpstreamKeys: []byte("upstream_keys"),
}

// firstFold is the first bucket that a refold can rebuild from the chain. Files
// of fold 1 end with lastOfFold1.
const (
	firstFold   = bFacts
	lastOfFold1 = bState
)

func (b bucket) String() string { return string(bucketNames[b]) }

// Keys of the meta bucket.
var (
	metaFormat  = []byte("format") // 8 bytes big-endian
	metaTenant  = []byte("tenant")
	metaKey     = []byte("key")     // 32 bytes, the log's first public key
	metaFold    = []byte("fold")    // 8 bytes big-endian, version of the fold that wrote the fold buckets
	metaRotated = []byte("rotated") // sequence numbers of the entries that announced a key, 8 bytes each; absent without
	metaClosed  = []byte("closed")  // 8 bytes big-endian, size at the last clean close
	metaDirty   = []byte("dirty")   // present while a writer has the file
)

const (
	pageSize = 16 << 10
	// storedLevel is the lowest level of the tree that is stored. Leaves are the
	// entries' own hashes and level 1 is one step from them, so storing both
	// would cost 84 bytes an entry and tell nothing new.
	storedLevel = 2
)

func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func fromU64(b []byte) (uint64, bool) {
	if len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// partMax is the longest text that stands in a key as it is.
const partMax = 512

// part appends a length-prefixed text to a key, so that no text can run into the
// next part. A text longer than partMax stands as its SHA-256 under length 0xffff.
func part(key []byte, s string) []byte {
	if len(s) > partMax {
		sum := sha256.Sum256([]byte(s))
		return append(append(key, 0xff, 0xff), sum[:]...)
	}
	return append(binary.BigEndian.AppendUint16(key, uint16(len(s))), s...)
}

// validID reports whether s may be an id: the chain's own rule for turns.
func validID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// guard runs fn and turns a panic into ErrDamaged: bbolt panics on pages that
// cannot be, and touching a mapped page that is gone faults.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return fn()
}

// view runs a read transaction. fn must be short: an open read keeps the writer
// from growing the map.
func (l *Ledger) view(fn func(tx *bbolt.Tx) error) error {
	err := guard(func() error { return l.db.View(fn) })
	if errors.Is(err, bolterr.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// sizeOf is the number of entries that tx sees.
func sizeOf(tx *bbolt.Tx) (uint64, error) {
	k, _ := tx.Bucket(bucketNames[bChain]).Cursor().Last()
	if k == nil {
		return 0, nil
	}
	seq, ok := fromU64(k)
	if !ok || seq > chain.MaxSeq {
		return 0, fmt.Errorf("%w: chain key %x", ErrDamaged, k)
	}
	return seq + 1, nil
}

// nodes reads the tree that tx sees; the levels that are not stored are hashed
// from the entries.
func nodes(tx *bbolt.Tx) func(level int, n uint64) (chain.Digest, error) {
	entries, tree := tx.Bucket(bucketNames[bChain]), tx.Bucket(bucketNames[bTree])
	var node func(level int, n uint64) (chain.Digest, error)
	node = func(level int, n uint64) (chain.Digest, error) {
		switch {
		case level == 0:
			raw := entries.Get(u64(n))
			if raw == nil {
				return chain.Digest{}, fmt.Errorf("%w: entry %d is missing", ErrDamaged, n)
			}
			return chain.Hash(raw), nil
		case level < storedLevel:
			left, err := node(level-1, 2*n)
			if err != nil {
				return chain.Digest{}, err
			}
			right, err := node(level-1, 2*n+1)
			if err != nil {
				return chain.Digest{}, err
			}
			return chain.NodeHash(left, right), nil
		}
		v := tree.Get(u64(chain.NodeIndex(level, n)))
		if len(v) != 32 {
			return chain.Digest{}, fmt.Errorf("%w: tree node %d of level %d is missing", ErrDamaged, n, level)
		}
		return chain.Digest(v), nil
	}
	return node
}

// codec packs blobs. Both halves are safe for concurrent use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec() (codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		return codec{}, fmt.Errorf("make blob codec: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlob))
	if err != nil {
		return codec{}, fmt.Errorf("make blob codec: %w", err)
	}
	return codec{enc, dec}, nil
}

func (c codec) pack(b []byte) []byte { return c.enc.EncodeAll(b, nil) }

// unpack returns the blob of this sum, or ErrDamaged when data is something else.
func (c codec) unpack(sum [32]byte, data []byte) ([]byte, error) {
	b, err := c.dec.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: blob %x: %w", ErrDamaged, sum, err)
	}
	if sha256.Sum256(b) != sum {
		return nil, fmt.Errorf("%w: blob %x holds other bytes", ErrDamaged, sum)
	}
	return b, nil
}

// parseSum reads a hash as bodies spell it.
func parseSum(s string) ([32]byte, bool) {
	var sum [32]byte
	if len(s) != 64 || strings.ContainsAny(s, "ABCDEF") {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(s))
	return sum, err == nil
}
