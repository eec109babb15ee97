package ledger

import (
	"encoding/json"
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// GrantsMax bounds the API keys, and the sealed upstream keys, that are listed.
const GrantsMax = 1000

// APIKey is a key that was created, and whether it was revoked.
type APIKey struct {
	lemma.KeyCreated
	RevokedAt string `json:"revoked_at,omitempty"`
	RevokedBy string `json:"revoked_by,omitempty"`
}

// upstreamKey begins the id by which a KeyRevoked names a sealed upstream key.
const upstreamKey = "upstream:"

// SealedID is the id by which a KeyRevoked forgets the sealed key of a name.
func SealedID(name string) string { return upstreamKey + name }

// keyCreated makes a key known. An id that is taken stays the first one's: else a
// revoked key could be made anew.
func (f *fold) keyCreated(b lemma.KeyCreated) error {
	if f.s.get(bAPIKeys, []byte(b.ID)) != nil {
		return nil
	}
	return putJSON(f.s, bAPIKeys, []byte(b.ID), APIKey{KeyCreated: b})
}

// keyRevoked ends a key; one that is unknown, or ended before, stays as it is.
func (f *fold) keyRevoked(e chain.Entry, b lemma.KeyRevoked) error {
	if name, ok := strings.CutPrefix(b.ID, upstreamKey); ok {
		if name == "" || len(name) > partMax {
			return nil
		}
		return f.s.del(bUpstreamKeys, []byte(name))
	}
	if !validID(b.ID) {
		return nil
	}
	k, ok := getJSON[APIKey](f.s, bAPIKeys, []byte(b.ID))
	if !ok || k.RevokedAt != "" {
		return nil
	}
	k.RevokedAt, k.RevokedBy = e.TS, b.By
	return putJSON(f.s, bAPIKeys, []byte(b.ID), k)
}

// keySealed keeps the newest of a name. A name that fits no bucket's key is none.
func (f *fold) keySealed(b lemma.KeySealed) error {
	if b.Name == "" || len(b.Name) > partMax {
		return nil
	}
	return putJSON(f.s, bUpstreamKeys, []byte(b.Name), b)
}

// APIKeys lists the keys that were ever created, oldest first.
func (l *Ledger) APIKeys() (Page[APIKey], error) {
	page, err := grants[APIKey](l, bAPIKeys)
	slices.SortStableFunc(page.Items, func(a, b APIKey) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	return page, err
}

// APIKey returns one key, or ErrNotFound.
func (l *Ledger) APIKey(id string) (APIKey, error) { return one[APIKey](l, bAPIKeys, []byte(id)) }

// SealedKeys lists the upstream keys that are kept encrypted, by name.
func (l *Ledger) SealedKeys() (Page[lemma.KeySealed], error) {
	return grants[lemma.KeySealed](l, bUpstreamKeys)
}

// SealedKey returns the newest sealed key of a name, or ErrNotFound.
func (l *Ledger) SealedKey(name string) (lemma.KeySealed, error) {
	return one[lemma.KeySealed](l, bUpstreamKeys, []byte(name))
}

func grants[T any](l *Ledger, b bucket) (Page[T], error) {
	page := Page[T]{Items: []T{}}
	err := l.view(func(tx *bbolt.Tx) error {
		size, err := sizeOf(tx)
		if err != nil {
			return err
		}
		page.AsOf = max(size, 1) - 1
		rows := tx.Bucket(bucketNames[b])
		if rows == nil {
			return nil // a file of an older fold, opened for reading
		}
		c := rows.Cursor()
		for k, raw := c.First(); k != nil && len(page.Items) < GrantsMax; k, raw = c.Next() {
			var v T
			if json.Unmarshal(raw, &v) == nil {
				page.Items = append(page.Items, v)
			}
		}
		return nil
	})
	return page, err
}
