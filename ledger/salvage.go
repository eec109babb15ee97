package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
)

// Prefix is the longest run of entries from the first on that a signed checkpoint
// vouches for.
type Prefix struct {
	Size   uint64 `json:"size"`
	Root   string `json:"root,omitempty"`
	LastTS string `json:"last_ts,omitempty"` // time of its newest entry
	Linked uint64 `json:"linked"`            // entries that are linked in an unbroken row; those after Size have no signature
}

// FindPrefix looks for what can still be proved of a wrecked ledger file. It
// reads the pages one by one and trusts nothing of the tree over them, so no
// file can hurt it. A nil key takes any: then the prefix has no size.
func FindPrefix(ctx context.Context, path string, key ed25519.PublicKey) (Prefix, error) {
	f, err := os.Open(path)
	if err != nil {
		return Prefix{}, fmt.Errorf("search ledger: %w", err)
	}
	defer f.Close()
	w := newWreck(f, nil)
	if key != nil {
		w.ours = append(w.ours, key)
	}
	if err := w.scan(ctx); err != nil {
		return Prefix{}, fmt.Errorf("search ledger: %w", err)
	}
	p, _, err := w.prefix(ctx)
	if err != nil {
		return Prefix{}, fmt.Errorf("search ledger: %w", err)
	}
	return p, nil
}

// piece is a value somewhere in the file.
type piece struct {
	at  int64
	len uint32
}

// wreck is a ledger file as a heap of pages.
type wreck struct {
	f       *os.File
	ours    []ed25519.PublicKey // one of which must be among the log's
	entries map[uint64][]piece  // by sequence number; a freed page may hold others
	blobs   map[[32]byte][]piece
	// struck are the blobs that an entry says were forgotten, and the last that does:
	// also one that nothing proves keeps them from coming back.
	struck  map[[32]byte]uint64
	forgot  []lemma.RequestForgotten // by entries of this form, proved or not
	notes   map[uint64][][]byte      // what may be checkpoints, by size; who signed them is known along the walk
	outside *outside
}

func newWreck(f *os.File, ours []ed25519.PublicKey) *wreck {
	return &wreck{f: f, ours: ours, entries: map[uint64][]piece{}, blobs: map[[32]byte][]piece{}, struck: map[[32]byte]uint64{}, notes: map[uint64][][]byte{}}
}

const (
	pageHeader  = 16
	leafElement = 16
	leafFlag    = 0x02
	bucketFlag  = 0x01 // of an element whose value is a bucket
	// bucketHeader is the root page (0: the page follows) and a sequence number.
	bucketHeader = 16
	// pieceMax bounds a value that is read back: a blob, packed, and a little.
	pieceMax = maxBlob + 1<<20
	// noteMax bounds a checkpoint in bytes; ours have about 250.
	noteMax = 1 << 10
	// forgotMax bounds the requests that a restore forgets again.
	forgotMax = 1 << 16
)

// scan finds every leaf page that says where it is, and what lies on it.
func (w *wreck) scan(ctx context.Context) error {
	st, err := w.f.Stat()
	if err != nil {
		return err
	}
	buf := make([]byte, pageSize)
	for id := int64(2); id*pageSize < st.Size(); id++ {
		if id%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := w.f.ReadAt(buf, id*pageSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		page := buf[:n]
		if n < pageHeader || binary.NativeEndian.Uint64(page) != uint64(id) {
			continue
		}
		// A value larger than a page goes on in the pages behind it.
		if more := int64(binary.NativeEndian.Uint32(page[12:])); more > 0 && more < pieceMax/pageSize {
			whole := make([]byte, min((more+1)*pageSize, st.Size()-id*pageSize))
			if _, err := w.f.ReadAt(whole, id*pageSize); err != nil {
				return err
			}
			page = whole
		}
		w.page(id*pageSize, page, 0)
	}
	return nil
}

// page reads one leaf page that starts at this place of the file. All its numbers
// are foreign. A small bucket lies within the page of the bucket that holds it.
func (w *wreck) page(at int64, b []byte, depth int) {
	if len(b) < pageHeader || binary.NativeEndian.Uint16(b[8:]) != leafFlag {
		return
	}
	for i := range int(binary.NativeEndian.Uint16(b[10:])) {
		start := pageHeader + i*leafElement
		if start+leafElement > len(b) {
			return
		}
		e := b[start:]
		key := int64(start) + int64(binary.NativeEndian.Uint32(e[4:]))
		value := key + int64(binary.NativeEndian.Uint32(e[8:]))
		end := value + int64(binary.NativeEndian.Uint32(e[12:]))
		if end > int64(len(b)) {
			continue
		}
		switch flags := binary.NativeEndian.Uint32(e); {
		case flags == 0:
			w.found(b[key:value], piece{at + value, uint32(end - value)})
		case flags == bucketFlag && depth == 0 && end-value > bucketHeader && binary.NativeEndian.Uint64(b[value:]) == 0:
			w.page(at+value+bucketHeader, b[value+bucketHeader:end], depth+1)
		}
	}
}

func (w *wreck) found(key []byte, p piece) {
	if p.len > pieceMax || len(key) != 8 && len(key) != 32 {
		return
	}
	if len(key) == 32 {
		if sum := [32]byte(key); len(w.blobs[sum]) < 4 {
			w.blobs[sum] = append(w.blobs[sum], p)
		}
		return
	}
	n := binary.BigEndian.Uint64(key)
	if p.len > chain.MaxEntry || n > chain.MaxSeq {
		return
	}
	raw, err := w.read(p)
	switch {
	case err != nil:
	case bytes.HasPrefix(raw, []byte(`{"body":`)):
		if len(w.entries[n]) < 8 {
			w.entries[n] = append(w.entries[n], p)
		}
		w.strike(n, raw)
	case bytes.HasPrefix(raw, []byte("gettier.dev/log/")):
		if cp, err := chain.Unverified(raw); err == nil && cp.Size == n && len(w.notes[n]) < 4 && len(raw) <= noteMax {
			w.notes[n] = append(w.notes[n], raw)
		}
	}
}

// strike notes what an entry says was forgotten.
func (w *wreck) strike(n uint64, raw []byte) {
	if !bytes.Contains(raw, []byte(`"kind":"`+string(lemma.KRequestForgotten)+`"`)) {
		return
	}
	e, err := decodeAt(n, raw)
	if err != nil {
		return
	}
	for _, sum := range archive.Forgotten(e) {
		w.struck[sum] = max(w.struck[sum], n)
	}
	var b lemma.RequestForgotten
	if json.Unmarshal(e.Body, &b) == nil && len(w.forgot) < forgotMax {
		w.forgot = append(w.forgot, b)
	}
}

func (w *wreck) read(p piece) ([]byte, error) {
	raw := make([]byte, p.len)
	_, err := w.f.ReadAt(raw, p.at)
	return raw, err
}

// prefix walks the entries along their links and finds the newest point that a
// key of the log has signed, and who signed until there. Of a log that was never
// one of our keys' nothing is proved.
func (w *wreck) prefix(ctx context.Context) (p Prefix, keys chain.Keys, err error) {
	tree := new(chain.Tree)
	var now chain.Keys
	p.Linked, err = w.walk(ctx, chain.MaxSeq, func(e chain.Entry, raw []byte) error {
		now = follow(now, e, tree)
		tree.Append(chain.Hash(raw), nil)
		if now.Len() == 0 || !slices.ContainsFunc(w.ours, now.Has) {
			return nil
		}
		if root, _, ok := w.vouched(tree, now); ok {
			p.Size, p.Root, p.LastTS, keys = tree.Size(), fmt.Sprintf("%x", root[:]), e.TS, now
		}
		return nil
	})
	return p, keys, err
}

// follow takes the keys that an entry announces: the first entry the one that
// names the log. An announcement that does not hold announces nothing.
func follow(keys chain.Keys, e chain.Entry, before *chain.Tree) chain.Keys {
	switch {
	case e.Seq == 0:
		var b lemma.ChainOpened
		if json.Unmarshal(e.Body, &b) == nil {
			if pub, err := hex.DecodeString(b.LogKey); err == nil && len(pub) == ed25519.PublicKeySize {
				return chain.NewKeys(pub)
			}
		}
	case e.Kind == chain.KindRotated && keys.Len() > 0:
		if next, err := keys.RotateBody(e.Seq, before.Root(), e.Body); err == nil {
			return next
		}
	}
	return keys
}

// walk hands over entries from the first on while each follows the one before.
func (w *wreck) walk(ctx context.Context, stop uint64, fn func(e chain.Entry, raw []byte) error) (n uint64, err error) {
	prev := chain.ZeroPrev
	for ; n < stop; n++ {
		if n%sliceEntries == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		raw, e := w.next(n, prev)
		if raw == nil {
			return n, nil
		}
		if err := fn(e, raw); err != nil {
			return n, err
		}
		prev = chain.Link(chain.Hash(raw))
	}
	return n, nil
}

// vouched returns the tree's root and the note by which the log's key of this
// size signed it.
func (w *wreck) vouched(tree *chain.Tree, keys chain.Keys) (root chain.Digest, signed []byte, ok bool) {
	notes := w.notes[tree.Size()]
	if w.outside != nil && w.outside.Size == tree.Size() {
		notes = append(slices.Clone(notes), w.outside.signed)
	}
	if len(notes) == 0 {
		return root, nil, false
	}
	root = tree.Root()
	for _, n := range notes {
		if cp, err := keys.Open(n); err == nil && cp.Size == tree.Size() && cp.Root == root {
			return root, n, true
		}
	}
	return root, nil, false
}

// next is the entry of this number that follows the one before.
func (w *wreck) next(seq uint64, prev string) ([]byte, chain.Entry) {
	for _, p := range w.entries[seq] {
		raw, err := w.read(p)
		if err != nil {
			continue
		}
		if e, err := decodeAt(seq, raw); err == nil && e.Prev == prev {
			return raw, e
		}
	}
	return nil, chain.Entry{}
}

// Repair makes a new ledger of the prefix that FindPrefix finds and gives it the
// damaged one's place; that one is moved aside. It records what it did.
func Repair(ctx context.Context, path string, o Options) (Replaced, Prefix, error) {
	r, p, err := repair(ctx, path, o)
	if err != nil {
		return r, p, fmt.Errorf("repair ledger: %w", err)
	}
	return r, p, nil
}

func repair(ctx context.Context, path string, o Options) (r Replaced, p Prefix, err error) {
	release, err := alone(path)
	if err != nil {
		return r, p, err
	}
	defer release()
	f, err := os.Open(path)
	if err != nil {
		return r, p, err
	}
	defer f.Close()
	w := newWreck(f, o.publics())
	if r.Had, err = seenOutside(o); err != nil {
		return r, p, err
	}
	if w.outside, err = readOutside(o.CheckpointFile); err != nil {
		return r, p, err
	}
	if err := w.scan(ctx); err != nil {
		return r, p, err
	}
	beside := path + ".repair"
	if err := ignoreMissing(os.Remove(beside)); err != nil {
		return r, p, err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(beside))) }()
	p, keys, err := w.prefix(ctx)
	if err != nil {
		return r, p, err
	}
	if p.Size == 0 {
		return r, p, fmt.Errorf("%w: no entry of it can be proved", ErrDamaged)
	}
	key := o.Key
	if len(o.NextKey) == ed25519.PrivateKeySize && keys.Newest().Equal(o.NextKey.Public()) {
		key = o.NextKey
	}
	if !keys.Newest().Equal(key.Public()) {
		return r, p, fmt.Errorf("%w: only %d entries can be proved, and the key that signed them was replaced since", ErrDamaged, p.Size)
	}
	lost, err := w.write(ctx, beside, p.Size, keys, key)
	if err != nil {
		return r, p, err
	}
	why := []Draft{{Body: lemma.StateLost{Contract: lemma.Contract, Reason: fmt.Sprintf(
		"the file was damaged; %d entries were proved and kept, %d were linked, %d had been seen", p.Size, p.Linked, r.Had)}}}
	if lost > 0 {
		why = append(why, Draft{Body: lemma.BlobForgotten{Contract: lemma.Contract, Through: p.Size - 1, Blobs: lost, Reason: "damaged"}})
	}
	err = takePlace(ctx, beside, path, why, nil, o, &r)
	return r, p, err
}

// write makes a ledger file of the first size entries: them, the tree, checkpoints,
// the blobs that are whole, and the folds. Ed25519 signs the same bytes the same
// way, so the checkpoints are those that stood there; those of an earlier key are
// the ones that are left. It returns how many blobs are gone that were not
// forgotten before.
func (w *wreck) write(ctx context.Context, path string, size uint64, keys chain.Keys, key ed25519.PrivateKey) (lost int, err error) {
	cod, err := newCodec()
	if err != nil {
		return 0, err
	}
	db, err := openFile(path, Options{LockWait: DefaultLockWait, MmapSize: DefaultMmapSize})
	if err != nil {
		return 0, err
	}
	l := &Ledger{db: db, pub: keys.First(), cod: cod}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := l.create(); err != nil {
		return 0, err
	}
	in := &importing{db: db}
	defer in.rollback()
	tree := new(chain.Tree)
	blobs := map[[32]byte]bool{}
	n, err := w.walk(ctx, size, func(e chain.Entry, raw []byte) error {
		if err := in.put(bChain, u64(e.Seq), raw); err != nil {
			return err
		}
		var bad error
		tree.Append(chain.Hash(raw), func(n chain.Node) {
			if n.Level >= storedLevel && bad == nil {
				bad = in.put(bTree, u64(n.Index()), n.Hash[:])
			}
		})
		if bad != nil {
			return bad
		}
		for _, sum := range blobRefs(e.Body) {
			blobs[sum] = true
		}
		for _, sum := range archive.Forgotten(e) {
			delete(blobs, sum)
		}
		at := tree.Size()
		_, signed, have := w.vouched(tree, keys)
		if old := !keys.Newest().Equal(keys.At(at)); old && !have || !old && at%checkpointEvery != 0 && at != size {
			return nil
		} else if !old {
			var err error
			if signed, err = chain.SignCheckpoint(chain.Checkpoint{Origin: keys.Origin(), Size: at, Root: tree.Root()}, key); err != nil {
				return err
			}
		}
		return in.put(bCheckpoints, u64(tree.Size()), signed)
	})
	if err != nil {
		return 0, err
	}
	if n != size {
		return 0, fmt.Errorf("%w: it changed while it was read", ErrDamaged)
	}
	for sum := range blobs {
		data := w.blob(cod, sum)
		if w.struck[sum] >= size {
			data = nil // forgotten behind what is proved
		}
		if data == nil {
			lost++
			continue
		}
		if err := in.put(bBlobs, sum[:], data); err != nil {
			return 0, err
		}
	}
	if err := in.put(bMeta, metaClosed, u64(size)); err != nil {
		return 0, err
	}
	if at := putRotations(keys); len(at) > 0 {
		if err := in.put(bMeta, metaRotated, at); err != nil {
			return 0, err
		}
	}
	if err := in.commit(); err != nil {
		return 0, err
	}
	_, err = l.rebuild(ctx)
	return lost, err
}

// blob returns the packed bytes of a blob that unpacks to its hash, else nil.
func (w *wreck) blob(cod codec, sum [32]byte) []byte {
	for _, p := range w.blobs[sum] {
		data, err := w.read(p)
		if err != nil {
			continue
		}
		if _, err := cod.unpack(sum, data); err == nil {
			return data
		}
	}
	return nil
}
