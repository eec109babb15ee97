package ledger

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"gettier.dev/gettierd/ledger/chain"
	"go.etcd.io/bbolt"
)

// problemsMax bounds the problems that a report lists; it counts them all.
const problemsMax = 100

// Problem is one thing that is not as it must be. Seq is the first entry that it
// concerns.
type Problem struct {
	Seq   uint64 `json:"seq"`
	Where string `json:"where"` // chain | tree | checkpoint | blob | fold | meta
	What  string `json:"what"`
}

// Report is what Verify found.
type Report struct {
	Origin      string    `json:"origin"`
	Size        uint64    `json:"size"`
	Root        string    `json:"root"` // hex
	Nodes       uint64    `json:"nodes"`
	Checkpoints uint64    `json:"checkpoints"`
	Blobs       uint64    `json:"blobs"`
	Forgotten   uint64    `json:"forgotten"` // blobs that retention or a person took
	Folded      uint64    `json:"folded"`    // rows of the folds that were compared
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

// Verify checks the whole ledger as of now: the links and canonical form of
// every entry, the tree over them, every checkpoint and its signature, every
// blob against its hash, and the folds against a second fold of the chain.
// Appends go on meanwhile. The error is for a check that could not be made;
// what a check found is in the report. progress may be nil.
func (l *Ledger) Verify(ctx context.Context, progress func(done, total uint64)) (Report, error) {
	v := &verifier{l: l, ctx: ctx, mem: newMemState(), struck: map[[32]byte]bool{}, tree: new(chain.Tree), keys: chain.NewKeys(l.pub), total: l.Head().Size, progress: progress}
	v.fold = newFold(v.mem)
	v.r.Origin, v.r.Problems = l.Head().Origin, []Problem{}
	if err := v.run(); err != nil {
		return v.r, fmt.Errorf("verify ledger: %w", err)
	}
	return v.r, nil
}

type verifier struct {
	l         *Ledger
	ctx       context.Context
	r         Report
	mem       *memState
	fold      *fold
	tree      *chain.Tree
	at        uint64       // entries checked
	turns     uint64       // of them, those that belong to a turn
	unflushed uint64       // of them, those whose turns still stand in the fold
	prev      chain.Digest // hash of entry at-1
	broken    bool         // entry at-1 could not be read: nothing to link to
	keys      chain.Keys   // that the entries so far announced
	points    []point      // in order of size
	passed    int          // points up to at
	nodes     []chain.Node // stored ones that differ
	struck    map[[32]byte]bool
	total     uint64
	progress  func(done, total uint64)
}

func (v *verifier) problem(seq uint64, where, format string, args ...any) {
	v.r.Count++
	if len(v.r.Problems) < problemsMax {
		v.r.Problems = append(v.r.Problems, Problem{seq, where, fmt.Sprintf(format, args...)})
	}
}

// step runs one short read. A page that bbolt cannot read is a problem, not the
// end of the check; ok is false then.
func (v *verifier) step(where string, fn func(tx *bbolt.Tx) error) (ok bool, err error) {
	if err := v.ctx.Err(); err != nil {
		return false, err
	}
	err = v.l.view(fn)
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, chain.ErrFormat) {
		return false, err
	}
	if err != nil {
		v.problem(v.at, where, "%v", err)
		return false, nil
	}
	return true, nil
}

func (v *verifier) run() error {
	if _, err := v.step("meta", v.readMeta); err != nil {
		return err
	}
	if _, err := v.step("checkpoint", v.readCheckpoints); err != nil {
		return err
	}
	for v.at < v.total {
		before := v.at
		ok, err := v.step("chain", func(tx *bbolt.Tx) error { return v.entries(tx, min(v.total, v.at+sliceEntries)) })
		if err != nil {
			return err
		}
		if v.progress != nil {
			v.progress(v.at, v.total)
		}
		if !ok || v.at == before {
			break
		}
	}
	v.r.Size = v.tree.Size()
	root := v.tree.Root()
	v.r.Root = fmt.Sprintf("%x", root[:])
	v.coverage()
	v.badNodes()
	if v.r.Count > 0 {
		// Folds and blobs of a chain that is not whole would only repeat it.
		return nil
	}
	if err := v.flush(); err != nil {
		return err
	}
	if err := v.blobs(); err != nil {
		return err
	}
	if err := v.folds(); err != nil {
		return err
	}
	v.r.Forgotten += uint64(len(v.struck))
	_, err := v.step("meta", v.rotations)
	return err
}

// readMeta checks what the file says of itself.
func (v *verifier) readMeta(tx *bbolt.Tx) error {
	if _, err := v.l.checkMeta(tx); err != nil {
		return err
	}
	meta := tx.Bucket(bucketNames[bMeta])
	if got := meta.Get(metaTenant); string(got) != tenant {
		v.problem(0, "meta", "tenant is %.80q", got)
	}
	return eachKey(tx, bMeta, func(k []byte) {
		switch string(k) {
		case string(metaFormat), string(metaTenant), string(metaKey), string(metaFold), string(metaClosed), string(metaDirty), string(metaRotated):
		default:
			v.problem(0, "meta", "unknown key %.80q", k)
		}
	})
}

// badNodes reports stored nodes that differ although every entry below them is
// sound; where one is not, the node only repeats it.
func (v *verifier) badNodes() {
	for _, n := range v.nodes {
		from, to := n.N<<n.Level, (n.N+1)<<n.Level
		if !slices.ContainsFunc(v.r.Problems, func(p Problem) bool { return p.Seq >= from && p.Seq < to }) {
			v.problem(from, "tree", "node %d of level %d is not the hash of its entries", n.N, n.Level)
		}
	}
}

// readCheckpoints opens every checkpoint up to total; the tree walk compares them.
func (v *verifier) readCheckpoints(tx *bbolt.Tx) error {
	c := tx.Bucket(bucketNames[bCheckpoints]).Cursor()
	// The newest entry of this moment: the walk ends where its checkpoint stands.
	size, err := sizeOf(tx)
	if err != nil {
		return err
	}
	v.total = size
	keys, err := readKeys(tx)
	if err != nil {
		return err
	}
	for k, signed := c.First(); k != nil; k, signed = c.Next() {
		n, ok := fromU64(k)
		if !ok || n == 0 || n > size {
			v.problem(min(n, size), "checkpoint", "key %x names no size of this chain", k)
			continue
		}
		cp, by, err := openAny(signed, keys)
		if err != nil {
			v.problem(n-1, "checkpoint", "of size %d: %v", n, err)
			continue
		}
		if cp.Size != n {
			v.problem(n-1, "checkpoint", "of size %d stands under %d", cp.Size, n)
			continue
		}
		v.points = append(v.points, point{cp, by})
		v.r.Checkpoints++
	}
	return nil
}

// coverage looks for checkpoints that must be there: the newest, and one near
// each multiple of checkpointEvery.
func (v *verifier) coverage() {
	has := func(from, to uint64) bool {
		return slices.ContainsFunc(v.points, func(c point) bool { return c.Size >= from && c.Size < to })
	}
	size := v.total
	if size > 0 && !has(size, size+1) {
		v.problem(size-1, "checkpoint", "none over the newest entry")
	}
	for n := uint64(checkpointEvery); n+checkpointEvery <= size; n += checkpointEvery {
		if !has(n, n+checkpointEvery) {
			v.problem(n, "checkpoint", "none between %d and %d", n, n+checkpointEvery)
		}
	}
}

// flushEvery bounds the turns that wait in the fold. Flushing them is most of
// what folding costs, and a turn's entries lie close together.
const flushEvery = 1 << 16

// entries checks entries up to stop: key, form, link, tree, checkpoint, and folds them.
func (v *verifier) entries(tx *bbolt.Tx, stop uint64) error {
	stored := tx.Bucket(bucketNames[bTree]).Cursor()
	var nodeKey, nodeHash []byte // where stored stands
	c := tx.Bucket(bucketNames[bChain]).Cursor()
	k, raw := c.Seek(u64(v.at))
	for v.at < stop {
		seq := v.at
		if got, ok := fromU64(k); !ok || got != seq {
			v.problem(seq, "chain", "entry is missing")
			v.at = stop // nothing behind a hole can be placed in the tree
			v.total = stop
			return fmt.Errorf("%w: entries after %d cannot be placed", ErrDamaged, seq)
		}
		leaf := chain.Hash(raw)
		e, err := decodeAt(seq, raw)
		nextKey, nextRaw := c.Next()
		switch {
		case err != nil:
			v.problem(seq, "chain", "%v", err)
		case seq > 0 && !v.broken && !linksTo(e, &v.prev):
			v.problem(v.culprit(e, leaf, nextRaw), "chain", "entry was changed: entry %d links to other bytes", seq)
		}
		v.broken = err != nil
		v.prev = leaf
		if err == nil && e.Kind == chain.KindRotated {
			v.rotate(e)
		}
		v.tree.Append(leaf, func(n chain.Node) {
			if n.Level < storedLevel {
				return
			}
			v.r.Nodes++
			// Nodes are numbered in the order in which entries complete them.
			at := n.Index()
			if nodeKey, nodeHash = stored.Next(); !isU64(nodeKey, at) {
				nodeKey, nodeHash = stored.Seek(u64(at))
			}
			if (!isU64(nodeKey, at) || !bytes.Equal(nodeHash, n.Hash[:])) && len(v.nodes) < problemsMax {
				v.nodes = append(v.nodes, n)
			}
		})
		v.at++
		v.point()
		if err == nil {
			value, _ := decodeBody(e.Kind, e.Body)
			v.strike(e)
			if err := v.fold.apply(e, value); err != nil {
				return err
			}
			if e.Turn != "" {
				v.turns++
			}
			if v.unflushed++; v.unflushed >= flushEvery {
				if err := v.flush(); err != nil {
					return err
				}
			}
		}
		k, raw = nextKey, nextRaw
	}
	return nil
}

func (v *verifier) flush() error {
	v.unflushed = 0
	_, err := v.fold.flush()
	return err
}

// isU64 reports whether key is u64(want).
func isU64(key []byte, want uint64) bool {
	got, ok := fromU64(key)
	return ok && got == want
}

// linksTo reports whether e's prev is the link to prev.
func linksTo(e chain.Entry, prev *chain.Digest) bool {
	var link [2 * len(prev)]byte
	hex.Encode(link[:], prev[:])
	return e.Prev == string(link[:])
}

// culprit says which of two entries was changed when e does not link to the one
// before it. The entry after e vouches for e; for the newest entry the
// checkpoint does: mended, does it fit?
func (v *verifier) culprit(e chain.Entry, leaf chain.Digest, nextRaw []byte) uint64 {
	if nextRaw != nil {
		if next, err := chain.Decode(nextRaw); err == nil && next.Prev == chain.Link(leaf) {
			return e.Seq - 1
		}
		return e.Seq
	}
	e.Prev = chain.Link(v.prev)
	raw, err := chain.AppendEntry(nil, e)
	if err != nil {
		return e.Seq
	}
	mended := v.tree.Clone()
	mended.Append(chain.Hash(raw), nil)
	if n := len(v.points); n > 0 && v.points[n-1].Size == e.Seq+1 && v.points[n-1].Root == mended.Root() {
		return e.Seq
	}
	return e.Seq - 1
}

// point compares the checkpoint of this size, if there is one.
func (v *verifier) point() {
	for v.passed < len(v.points) && v.points[v.passed].Size < v.at {
		v.passed++
	}
	if v.passed < len(v.points) && v.points[v.passed].Size == v.at && v.points[v.passed].Root != v.tree.Root() {
		// All earlier entries are vouched for by the one after them, so it is the
		// last one, unless links were forged along.
		v.problem(v.at-1, "checkpoint", "of size %d is over other entries", v.at)
	} else if v.passed < len(v.points) {
		v.turn(v.points[v.passed])
	}
}

// blobs reads every blob, and looks for each that an entry names.
func (v *verifier) blobs() error {
	var after []byte
	for done := false; !done; {
		_, err := v.step("blob", func(tx *bbolt.Tx) error {
			done = true
			c := tx.Bucket(bucketNames[bBlobs]).Cursor()
			k, data := c.Seek(after)
			for total := 0; k != nil; k, data = c.Next() {
				if total += len(data); total > 1<<20 {
					after, done = append([]byte(nil), k...), false
					return nil
				}
				v.r.Blobs++
				if len(k) != 32 {
					v.problem(0, "blob", "key %x is no hash", k)
				} else if _, err := v.l.cod.unpack([32]byte(k), data); err != nil {
					seq, _ := fromU64(v.mem.get(bBlobRefs, k))
					v.problem(seq, "blob", "%v", err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, chunk := range chunks(v.mem.keys(bBlobRefs)) {
		_, err := v.step("blob", func(tx *bbolt.Tx) error {
			// What was forgotten since the walk has its entry since then, too.
			if err := v.catchUp(tx); err != nil {
				return err
			}
			pruned, some := fromU64(v.mem.get(bState, statePruned))
			blobs := tx.Bucket(bucketNames[bBlobs])
			for _, sum := range chunk {
				if blobs.Get([]byte(sum)) != nil {
					continue
				}
				last, named := fromU64(v.mem.get(bBlobRefs, []byte(sum)))
				if !named {
					continue
				}
				if !some || last > pruned {
					v.problem(last, "blob", "%x is missing", sum)
				} else {
					v.r.Forgotten++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// folds compares the fold buckets with the refold, both ways. Before each slice
// the refold is brought up to the entries that the slice's transaction sees, so
// that appends of the meantime are no differences.
func (v *verifier) folds() error {
	walked, wanted, rows := v.at, v.turns, uint64(0)
	for b := firstFold; b < v.folded(); b++ {
		var after, last []byte
		for done := false; !done; {
			_, err := v.step("fold", func(tx *bbolt.Tx) error {
				done = true
				if err := v.catchUp(tx); err != nil {
					return err
				}
				c := tx.Bucket(bucketNames[b]).Cursor()
				k, got := c.Seek(after)
				for n := 0; k != nil; k, got = c.Next() {
					if n++; n > scanMax {
						after, done = append([]byte(nil), k...), false
						return nil
					}
					v.r.Folded++
					if b == bTurnEntries {
						// A damaged page may hold a key twice, and then count for two.
						if !v.mem.inTurn(k) || len(got) > 0 || bytes.Compare(last, k) >= 0 {
							v.problem(0, "fold", "%s holds %.80q, which no entry wrote", b, k)
						} else if seq, _ := fromU64(k[len(k)-8:]); seq < walked {
							rows++
						}
						last = append(last[:0], k...)
						continue
					}
					if want := v.mem.get(b, k); want == nil {
						v.problem(v.rowSeq(k), "fold", "%s holds %.80q, which no entry wrote", b, k)
					} else if !bytes.Equal(got, want) {
						v.problem(v.rowSeq(k), "fold", "%s %.80q is not what the entries say", b, k)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		// Each row of turn_entries is right and no two have the same entry, so none
		// is lacking when they are as many as the entries.
		if b == bTurnEntries && rows != wanted {
			if err := v.lackingTurns(walked); err != nil {
				return err
			}
		}
		for _, chunk := range chunks(v.mem.keys(b)) {
			_, err := v.step("fold", func(tx *bbolt.Tx) error {
				if err := v.catchUp(tx); err != nil {
					return err
				}
				have := tx.Bucket(bucketNames[b])
				for _, k := range chunk {
					if v.mem.get(b, []byte(k)) != nil && have.Get([]byte(k)) == nil {
						v.problem(v.rowSeq([]byte(k)), "fold", "%s lacks %.80q", b, k)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// folded is the end of the buckets to compare. A file that was only opened for
// reading may hold the folds of an older version: those are made again at the
// next start, and what they lack is no fault.
func (v *verifier) folded() bucket {
	old := false
	_ = v.l.view(func(tx *bbolt.Tx) (err error) { // readMeta has reported what it found
		old, err = v.l.checkMeta(tx)
		return err
	})
	if old {
		return firstFold
	}
	return bucketCount
}

// lackingTurns names the entries below size that turn_entries lacks.
func (v *verifier) lackingTurns(size uint64) error {
	for at := uint64(0); at < size; {
		_, err := v.step("fold", func(tx *bbolt.Tx) error {
			turns := tx.Bucket(bucketNames[bTurnEntries])
			c := tx.Bucket(bucketNames[bChain]).Cursor()
			k, raw := c.Seek(u64(at))
			for stop := min(size, at+sliceEntries); at < stop; at++ {
				if !isU64(k, at) {
					return fmt.Errorf("%w: entry %d is missing", ErrDamaged, at)
				}
				e, err := decodeAt(at, raw)
				if err != nil {
					return err
				}
				if e.Turn != "" && turns.Get(turnEntryKey(e.Turn, at)) == nil {
					v.problem(at, "fold", "%s lacks the entry", bTurnEntries)
				}
				k, raw = c.Next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// catchUp checks and folds what was appended since.
func (v *verifier) catchUp(tx *bbolt.Tx) error {
	size, err := sizeOf(tx)
	if err != nil {
		return err
	}
	if v.at == size {
		return nil
	}
	if err := v.entries(tx, size); err != nil {
		return err
	}
	return v.flush()
}

// rowSeq is the first entry of the turn whose row this is, if it is one.
func (v *verifier) rowSeq(key []byte) uint64 {
	if r, ok := getJSON[TurnRow](v.mem, bTurns, key); ok {
		return r.First
	}
	return 0
}

func chunks(keys []string) [][]string {
	return slices.Collect(slices.Chunk(keys, scanMax))
}

// memState is the fold's state in maps. Of turn_entries, which holds a row for
// each entry, it keeps eight bytes a row, and no key of it is listed: whoever
// compares it counts its rows.
type memState struct {
	m    [bucketCount]map[string][]byte
	seed maphash.Seed
	turn []uint64 // by sequence number: hash of the entry's turn, 0 for none
}

func newMemState() *memState {
	s := &memState{seed: maphash.MakeSeed()}
	for b := range s.m {
		s.m[b] = map[string][]byte{}
	}
	return s
}

func (s *memState) get(b bucket, key []byte) []byte {
	if b == bTurnEntries {
		if s.inTurn(key) {
			return []byte{}
		}
		return nil
	}
	return s.m[b][string(key)]
}

// inTurn reports whether a row of turn_entries was written.
func (s *memState) inTurn(key []byte) bool {
	n := len(key) - 8
	if n <= 0 {
		return false
	}
	seq, _ := fromU64(key[n:])
	return seq < uint64(len(s.turn)) && s.turn[seq] == s.hash(key[:n])
}

// hash of a turn's part of the key, never 0.
func (s *memState) hash(turn []byte) uint64 { return max(maphash.Bytes(s.seed, turn), 1) }

func (s *memState) put(b bucket, key, value []byte) error {
	if b != bTurnEntries {
		s.m[b][string(key)] = append([]byte{}, value...)
		return nil
	}
	n := len(key) - 8
	seq, _ := fromU64(key[n:])
	for uint64(len(s.turn)) <= seq {
		s.turn = append(s.turn, 0)
	}
	s.turn[seq] = s.hash(key[:n])
	return nil
}

func (s *memState) del(b bucket, key []byte) error {
	delete(s.m[b], string(key))
	return nil
}

func (s *memState) keys(b bucket) []string {
	keys := make([]string, 0, len(s.m[b]))
	for k := range s.m[b] {
		keys = append(keys, k)
	}
	return keys
}
