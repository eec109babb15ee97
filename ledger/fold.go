package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// foldVersion rises when the fold buckets of an older file must be rebuilt.
// Version 2 ends the answers behind a withdrawn fact and has knowledge; version 3
// keeps the changes that no block has told yet, and gives a fact one successor;
// version 4 has API keys and sealed upstream keys; version 5 lets answers be taken
// back.
const foldVersion = 5

// state is what a fold reads and writes: get, put and delete by exact key, no
// scan, so that a file and a map serve alike. A value got is valid until the
// next call; a key that was given may change after it, a value may not.
type state interface {
	get(b bucket, key []byte) []byte
	put(b bucket, key, value []byte) error
	del(b bucket, key []byte) error
}

// fold turns entries into facts, holds, turns and models. It is total: a body
// that it cannot apply changes nothing, so that any chain that verifies can be
// folded again. It reads no clock; time is the entry's ts.
type fold struct {
	s     state
	turns map[string]*TurnRow // rows of this batch, written by flush
	order []string            // of turns, so that flush is deterministic
	known map[string]TurnRow  // rows as they are stored, of turns that are under way; nil = none
	key   []byte              // room for a key
}

func newFold(s state) *fold { return &fold{s: s, turns: map[string]*TurnRow{}} }

// decodeBody returns the value that the fold reads for this kind, nil for kinds
// that it does not read.
func decodeBody(kind string, body []byte) (lemma.Body, error) {
	switch lemma.Kind(kind) {
	case lemma.KTurnOpened:
		return decodeAs[lemma.TurnOpened](body)
	case lemma.KTurnClassified:
		return decodeAs[lemma.TurnClassified](body)
	case lemma.KTurnInjected:
		return decodeAs[lemma.TurnInjected](body)
	case lemma.KTurnDeclared:
		return decodeAs[lemma.TurnDeclared](body)
	case lemma.KTurnUndeclared:
		return decodeAs[lemma.TurnUndeclared](body)
	case lemma.KGateDecided:
		return decodeAs[lemma.GateDecided](body)
	case lemma.KActionDecided:
		return decodeAs[lemma.ActionDecided](body)
	case lemma.KTurnClosed:
		return decodeAs[lemma.TurnClosed](body)
	case lemma.KFactWritten:
		return decodeAs[lemma.FactWritten](body)
	case lemma.KFactContradicted:
		return decodeAs[lemma.FactContradicted](body)
	case lemma.KFactInvalidated:
		return decodeAs[lemma.FactInvalidated](body)
	case lemma.KFactExpired:
		return decodeAs[lemma.FactExpired](body)
	case lemma.KHoldOpened:
		return decodeAs[lemma.HoldOpened](body)
	case lemma.KHoldAnswered:
		return decodeAs[lemma.HoldAnsweredBody](body)
	case lemma.KAnswerRevoked:
		return decodeAs[lemma.AnswerRevoked](body)
	case lemma.KHoldExpired:
		return decodeAs[lemma.HoldExpiredBody](body)
	case lemma.KHoldCancelled:
		return decodeAs[lemma.HoldCancelledBody](body)
	case lemma.KKnowledgeChanged:
		return decodeAs[lemma.KnowledgeChanged](body)
	case lemma.KKeyCreated:
		return decodeAs[lemma.KeyCreated](body)
	case lemma.KKeyRevoked:
		return decodeAs[lemma.KeyRevoked](body)
	case lemma.KKeySealed:
		return decodeAs[lemma.KeySealed](body)
	case lemma.KChainRecovered:
		return decodeAs[lemma.ChainRecovered](body)
	case lemma.KBlobForgotten:
		return decodeAs[lemma.BlobForgotten](body)
	}
	return nil, nil
}

// decodeAs unmarshals and checks what the fold needs of a body.
func decodeAs[T lemma.Body](body []byte) (lemma.Body, error) {
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", v.Kind(), err)
	}
	id := ""
	switch b := any(v).(type) {
	case lemma.FactWritten:
		id = b.Fact.ID
	case lemma.HoldOpened:
		id = b.Hold.ID
	case lemma.KnowledgeChanged:
		id = b.Knowledge.ID
	case lemma.KeyCreated:
		id = b.ID
	default:
		return v, nil
	}
	if !validID(id) {
		return nil, fmt.Errorf("decode %s: id %.80q", v.Kind(), id)
	}
	return v, nil
}

// apply folds one entry; value is what decodeBody gave for it.
func (f *fold) apply(e chain.Entry, value lemma.Body) error {
	if err := f.refs(e); err != nil {
		return err
	}
	if err := f.turn(e, value); err != nil {
		return err
	}
	switch b := value.(type) {
	case lemma.TurnInjected:
		return f.deltasTold(b.Deltas)
	case lemma.FactWritten:
		return f.factWritten(b.Fact)
	case lemma.FactContradicted:
		return f.factContradicted(b)
	case lemma.FactInvalidated:
		return f.factWithdrawn(e, b.Fact)
	case lemma.FactExpired:
		return f.factExpired(b)
	case lemma.KnowledgeChanged:
		return f.knowledgeChanged(b)
	case lemma.KeyCreated:
		return f.keyCreated(b)
	case lemma.KeyRevoked:
		return f.keyRevoked(e, b)
	case lemma.KeySealed:
		return f.keySealed(b)
	case lemma.HoldOpened:
		return f.holdOpened(b.Hold)
	case lemma.HoldAnsweredBody:
		return f.holdAnswered(e, b)
	case lemma.AnswerRevoked:
		return f.answerRevoked(e, b)
	case lemma.ActionDecided:
		return f.approvalUsed(e, b)
	case lemma.HoldExpiredBody:
		return f.holdEnds(b.Hold, lemma.HoldExpired)
	case lemma.HoldCancelledBody:
		return f.holdEnds(b.Hold, lemma.HoldCancelled)
	}
	return nil
}

// flush writes the turns that apply touched, and returns them.
func (f *fold) flush() (map[string]*TurnRow, error) {
	for _, id := range f.order {
		if err := putJSON(f.s, bTurns, []byte(id), f.turns[id]); err != nil {
			return nil, err
		}
	}
	rows := f.turns
	f.order, f.turns = f.order[:0], map[string]*TurnRow{}
	return rows, nil
}

// statePruned holds the sequence number up to which blobs may be gone.
var statePruned = []byte("pruned")

// refs notes for each blob that the entry names that it does, strikes those that
// it says were forgotten, and keeps up to where blobs may be gone. Blobs are found by the form that all bodies give them: a member whose name ends in _blob.
func (f *fold) refs(e chain.Entry) error {
	for _, sum := range blobRefs(e.Body) {
		if err := f.s.put(bBlobRefs, sum[:], u64(e.Seq)); err != nil {
			return err
		}
	}
	for _, sum := range archive.Forgotten(e) {
		if err := f.s.del(bBlobRefs, sum[:]); err != nil {
			return err
		}
	}
	if n, ok := archive.Through(e); ok {
		if old, _ := fromU64(f.s.get(bState, statePruned)); n >= old {
			return f.s.put(bState, statePruned, u64(n))
		}
	}
	return nil
}

// blobRefs lists the blobs that a canonical body names. Within a string the
// quotes of the pattern would be escaped, so text cannot imitate it.
func blobRefs(body []byte) (sums [][32]byte) {
	mark := []byte(`_blob":"`)
	for {
		i := bytes.Index(body, mark)
		if i < 0 {
			return sums
		}
		body = body[i+len(mark):]
		end := bytes.IndexByte(body, '"')
		if end < 0 {
			return sums
		}
		if sum, ok := parseSum(string(body[:end])); ok && !slices.Contains(sums, sum) {
			sums = append(sums, sum)
		}
	}
}

// putJSON stores v as canonical JSON.
func putJSON(s state, b bucket, key []byte, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("fold %s: %w", b, err)
	}
	if !chain.IsCanonical(plain) {
		if plain, err = chain.Canonical(plain); err != nil {
			return fmt.Errorf("fold %s: %w", b, err)
		}
	}
	return s.put(b, key, plain)
}

// getJSON reads a stored value; ok is false when there is none. A value that
// does not parse counts as none: Verify names it.
func getJSON[T any](s state, b bucket, key []byte) (v T, ok bool) {
	raw := s.get(b, key)
	if raw == nil || json.Unmarshal(raw, &v) != nil {
		var zero T
		return zero, false
	}
	return v, true
}

// txState is the fold's state in a bbolt transaction.
type txState struct {
	tx      *bbolt.Tx
	buckets [bucketCount]*bbolt.Bucket
	num     [8]byte // room for a key that is a number
}

func newTxState(tx *bbolt.Tx) *txState { return &txState{tx: tx} }

func (s *txState) bucket(b bucket) *bbolt.Bucket {
	if s.buckets[b] == nil {
		s.buckets[b] = s.tx.Bucket(bucketNames[b])
		// Keys of these only ever grow, so half-full pages would stay half full.
		// bbolt forgets the setting with the handle.
		switch b {
		case bChain, bTree, bCheckpoints:
			s.buckets[b].FillPercent = 1
		case bTurns, bTurnEntries, bConversations:
			// Ids of turns rise with time, so their rows come nearly in order.
			s.buckets[b].FillPercent = 0.9
		}
	}
	return s.buckets[b]
}

func (s *txState) get(b bucket, key []byte) []byte { return s.bucket(b).Get(key) }
func (s *txState) put(b bucket, key, value []byte) error {
	if err := s.bucket(b).Put(key, value); err != nil {
		return fmt.Errorf("write %s: %w", b, err)
	}
	return nil
}

// putAt is put under a number.
func (s *txState) putAt(b bucket, at uint64, value []byte) error {
	return s.put(b, binary.BigEndian.AppendUint64(s.num[:0], at), value)
}

func (s *txState) del(b bucket, key []byte) error {
	if err := s.bucket(b).Delete(key); err != nil {
		return fmt.Errorf("delete from %s: %w", b, err)
	}
	return nil
}

// grow appends a leaf and stores the nodes that it completes.
func (s *txState) grow(tree *chain.Tree, leaf chain.Digest) (err error) {
	tree.Append(leaf, func(n chain.Node) {
		if n.Level >= storedLevel && err == nil {
			err = s.putAt(bTree, n.Index(), append([]byte(nil), n.Hash[:]...))
		}
	})
	return err
}
