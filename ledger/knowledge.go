package ledger

import (
	"encoding/json"
	"slices"

	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// KnowledgeMax bounds the pieces of knowledge that are kept at once; a turn ranks
// all of its scope, and a person reads them as one page.
const KnowledgeMax = 1000

// knowledgeChanged keeps what now holds. A change of something unknown adds it:
// a fold is total.
func (f *fold) knowledgeChanged(b lemma.KnowledgeChanged) error {
	if b.Op == lemma.KnowledgeRemoved {
		return f.s.del(bKnowledge, []byte(b.Knowledge.ID))
	}
	if b.Knowledge.Check() != nil {
		return nil
	}
	return putJSON(f.s, bKnowledge, []byte(b.Knowledge.ID), b.Knowledge)
}

// Knowledge lists what a person keeps for these scopes, all when there are none,
// in order of age. AsOf is the newest entry that the list has seen.
func (l *Ledger) Knowledge(scopes ...string) (Page[lemma.Knowledge], error) {
	page := Page[lemma.Knowledge]{Items: []lemma.Knowledge{}}
	err := l.view(func(tx *bbolt.Tx) error {
		size, err := sizeOf(tx)
		if err != nil {
			return err
		}
		page.AsOf = max(size, 1) - 1
		b := tx.Bucket(bucketNames[bKnowledge])
		if b == nil {
			return nil // a file of an older fold, opened for reading
		}
		c := b.Cursor()
		for k, raw := c.First(); k != nil && len(page.Items) < KnowledgeMax; k, raw = c.Next() {
			var v lemma.Knowledge
			if json.Unmarshal(raw, &v) == nil && (len(scopes) == 0 || slices.Contains(scopes, v.Scope)) {
				page.Items = append(page.Items, v)
			}
		}
		return nil
	})
	return page, err
}

// KnowledgeBy returns one piece of knowledge, or ErrNotFound.
func (l *Ledger) KnowledgeBy(id string) (lemma.Knowledge, error) {
	return one[lemma.Knowledge](l, bKnowledge, []byte(id))
}
