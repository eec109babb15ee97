package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

func factKey(scope, subject, key string) []byte {
	return part(part(part(nil, scope), subject), key)
}

func factScopeKey(f lemma.Fact) []byte {
	return append(part(part(nil, f.Scope), string(f.Status)), f.ID...)
}

// factExpiryKey is empty for a fact that does not expire.
func factExpiryKey(f lemma.Fact) []byte {
	if f.ExpiresAt == nil || f.Status != lemma.StatusActive {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, *f.ExpiresAt)
	if err != nil || t.Unix() < 0 {
		return nil
	}
	return append(u64(uint64(t.Unix()))[:8:8], f.ID...)
}

// putFact replaces old (nil when the id is new) by f in the bucket and its indexes.
func (f *fold) putFact(old *lemma.Fact, v lemma.Fact) error {
	if old != nil {
		if err := f.s.del(bFactsByScope, factScopeKey(*old)); err != nil {
			return err
		}
		if k := factExpiryKey(*old); k != nil {
			if err := f.s.del(bFactsByExpiry, k); err != nil {
				return err
			}
		}
	}
	if err := putJSON(f.s, bFacts, []byte(v.ID), v); err != nil {
		return err
	}
	if err := f.s.put(bFactsByScope, factScopeKey(v), []byte{}); err != nil {
		return err
	}
	if k := factExpiryKey(v); k != nil {
		return f.s.put(bFactsByExpiry, k, []byte{})
	}
	return nil
}

// factWritten adds a fact. Another active fact of the same identity gives way:
// contradicted when the value differs inside its ttl, stale otherwise; either
// way it points at its successor.
func (f *fold) factWritten(v lemma.Fact) error {
	if v.Status == "" {
		v.Status = lemma.StatusActive
	}
	// A ttl without an end would be a fact that never goes stale.
	if v.ExpiresAt == nil && v.TTLSeconds != nil {
		if t, err := time.Parse(time.RFC3339Nano, v.CreatedAt); err == nil {
			at := lemma.Time(t.Add(time.Duration(*v.TTLSeconds) * time.Second))
			v.ExpiresAt = &at
		}
	}
	identity := factKey(v.Scope, v.Subject, v.Key)
	if v.Status == lemma.StatusActive {
		if id := string(f.s.get(bFactsByKey, identity)); id != "" && id != v.ID {
			if old, ok := f.factNow(id, identity); ok && (old.Status == lemma.StatusActive || old.Status == lemma.StatusStale) {
				next := old
				next.SupersededBy = &v.ID
				if old.Status == lemma.StatusActive {
					next.Status = lemma.StatusStale
					if old.Value != v.Value && !expiredAt(old, v.CreatedAt) {
						next.Status = lemma.StatusContradicted
					}
				}
				if err := f.putFact(&old, next); err != nil {
					return err
				}
				if err := f.s.del(bDeltas, []byte(old.ID)); err != nil {
					return err
				}
			}
		}
		if err := f.s.put(bFactsByKey, identity, []byte(v.ID)); err != nil {
			return err
		}
	}
	if old, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(v.ID)); ok {
		return f.putFact(&old, v)
	}
	return f.putFact(nil, v)
}

// factNow returns the fact of this id while it still is one of this identity: an
// entry may have written the id again for something else.
func (f *fold) factNow(id string, identity []byte) (lemma.Fact, bool) {
	v, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(id))
	return v, ok && bytes.Equal(factKey(v.Scope, v.Subject, v.Key), identity)
}

// expiredAt compares two times as the chain spells them; unreadable ones do not expire.
func expiredAt(v lemma.Fact, at string) bool {
	if v.ExpiresAt == nil {
		return false
	}
	end, err1 := time.Parse(time.RFC3339Nano, *v.ExpiresAt)
	now, err2 := time.Parse(time.RFC3339Nano, at)
	return err1 == nil && err2 == nil && !now.Before(end)
}

func (f *fold) factEnds(id string, status lemma.FactStatus, by string) error {
	old, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(id))
	if !ok {
		return nil
	}
	next := old
	next.Status = status
	if by != "" && by != id {
		next.SupersededBy = &by
	}
	if err := f.putFact(&old, next); err != nil {
		return err
	}
	// What replaced it is no longer news once it is gone itself.
	return f.s.del(bDeltas, []byte(id))
}

// factContradicted ends a fact by another. A fact has one successor and one
// change to tell: whoever comes later, or after a person withdrew it, changes
// nothing.
func (f *fold) factContradicted(b lemma.FactContradicted) error {
	old, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(b.Fact))
	if !ok || old.Status == lemma.StatusInvalidated || (old.SupersededBy != nil && *old.SupersededBy != b.By) {
		return nil
	}
	if err := f.factEnds(b.Fact, lemma.StatusContradicted, b.By); err != nil || b.Delta == "" || b.By == b.Fact {
		return err
	}
	by, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(b.By))
	if !ok || by.Status != lemma.StatusActive {
		return nil
	}
	waiting, _ := getJSON[[]toTell](f.s, bDeltas, []byte(b.By))
	if len(waiting) >= deltasMax || slices.ContainsFunc(waiting, func(t toTell) bool { return t.Fact == b.Fact }) {
		return nil
	}
	return putJSON(f.s, bDeltas, []byte(b.By), append(waiting, toTell{Fact: b.Fact, Text: b.Delta}))
}

// deltasMax bounds the changes that one fact brings.
const deltasMax = 16

// toTell is one change that no block has told.
type toTell struct {
	Fact string `json:"fact"` // that ended
	Text string `json:"text"`
}

// deltasTold: a block has them, under the ids of the facts that brought them.
func (f *fold) deltasTold(ids []string) error {
	for _, id := range ids {
		if err := f.s.del(bDeltas, []byte(id)); err != nil {
			return err
		}
	}
	return nil
}

// factWithdrawn ends a fact, and with a told one the answers that say the same:
// whoever takes a sentence back does not want it to settle the claim for the rest
// of the day through the hold in which it was said.
func (f *fold) factWithdrawn(e chain.Entry, id string) error {
	old, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(id))
	if !ok {
		return nil
	}
	if old.Provenance == lemma.Told && old.Key != "" {
		if err := f.s.put(bAnswers, answersEnd(old.Scope, old.Key), u64(e.Seq)); err != nil {
			return err
		}
	}
	return f.factEnds(id, lemma.StatusInvalidated, "")
}

// factExpired turns a fact stale, unless it was refreshed since the sweep saw it.
func (f *fold) factExpired(b lemma.FactExpired) error {
	old, ok := getJSON[lemma.Fact](f.s, bFacts, []byte(b.Fact))
	if !ok || old.Status != lemma.StatusActive {
		return nil
	}
	if b.ExpiresAt != "" && (old.ExpiresAt == nil || *old.ExpiresAt != b.ExpiresAt) {
		return nil
	}
	return f.factEnds(b.Fact, lemma.StatusStale, "")
}

// FactFilter chooses facts. Empty members choose all. Text is sought in claim,
// key, value and subject, whatever its case. A zero At does not ask about
// expiry; otherwise active facts whose ttl had run out by then are left out,
// swept or not.
type FactFilter struct {
	Scope      []string
	Status     lemma.FactStatus
	Provenance lemma.Provenance
	Text       string
	At         time.Time
	Limit      int    // DefaultLimit when 0, at most MaxLimit
	Cursor     string // Page.Next of the page before
}

// Facts lists facts, newest first.
func (l *Ledger) Facts(q FactFilter) (Page[lemma.Fact], error) {
	text, at := strings.ToLower(q.Text), lemma.Time(q.At)
	keep := func(raw []byte) (v lemma.Fact, ok bool) {
		if json.Unmarshal(raw, &v) != nil {
			return v, false
		}
		return v, (q.Status == "" || v.Status == q.Status) &&
			(q.Provenance == "" || v.Provenance == q.Provenance) &&
			(q.At.IsZero() || v.Status != lemma.StatusActive || !expiredAt(v, at)) &&
			(text == "" || strings.Contains(strings.ToLower(v.Claim+"\n"+v.Key+"\n"+v.Value+"\n"+v.Subject), text))
	}
	if len(q.Scope) == 0 {
		return list(l, bFacts, bFacts, [][]byte{nil}, q.Limit, q.Cursor, keep)
	}
	statuses := []lemma.FactStatus{q.Status}
	if q.Status == "" {
		statuses = []lemma.FactStatus{lemma.StatusActive, lemma.StatusStale, lemma.StatusContradicted, lemma.StatusInvalidated}
	}
	var prefixes [][]byte
	for _, scope := range q.Scope {
		for _, st := range statuses {
			prefixes = append(prefixes, part(part(nil, scope), string(st)))
		}
	}
	return list(l, bFactsByScope, bFacts, prefixes, q.Limit, q.Cursor, keep)
}

// Fact returns one fact, or ErrNotFound.
func (l *Ledger) Fact(id string) (lemma.Fact, error) { return one[lemma.Fact](l, bFacts, []byte(id)) }

// FactBy returns the active fact of an identity. Its ttl may have run out since
// the last sweep: the caller compares ExpiresAt with its own clock.
func (l *Ledger) FactBy(scope, subject, key string) (v lemma.Fact, ok bool) {
	_ = l.view(func(tx *bbolt.Tx) error {
		f := newFold(newTxState(tx))
		identity := factKey(scope, subject, key)
		if id := f.s.get(bFactsByKey, identity); id != nil {
			v, ok = f.factNow(string(id), identity)
		}
		return nil
	})
	if v.Status != lemma.StatusActive {
		return lemma.Fact{}, false
	}
	return v, ok
}

// Delta is what a fact changed, as long as no block has told it: Fact is what
// holds now, Old what it replaced, Text the change in words.
type Delta struct {
	Fact, Old lemma.Fact
	Text      string
}

// Deltas lists the untold changes of these scopes whose facts are active at this
// time, in the order of their ids.
func (l *Ledger) Deltas(scopes []string, at time.Time) ([]Delta, error) {
	var out []Delta
	now := lemma.Time(at)
	err := l.view(func(tx *bbolt.Tx) error {
		s := newTxState(tx)
		if s.bucket(bDeltas) == nil {
			return nil // a file of an older fold, opened for reading
		}
		c := s.bucket(bDeltas).Cursor()
		for id, raw := c.First(); id != nil && len(out) < MaxLimit; id, raw = c.Next() {
			v, ok := getJSON[lemma.Fact](s, bFacts, id)
			if !ok || v.Status != lemma.StatusActive || expiredAt(v, now) || !slices.Contains(scopes, v.Scope) {
				continue
			}
			var waiting []toTell
			if json.Unmarshal(raw, &waiting) != nil {
				continue
			}
			for _, w := range waiting {
				if old, ok := getJSON[lemma.Fact](s, bFacts, []byte(w.Fact)); ok {
					out = append(out, Delta{Fact: v, Old: old, Text: w.Text})
				}
			}
		}
		return nil
	})
	return out, err
}
