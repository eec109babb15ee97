// Package apikey is gettierd's own keys, by which somebody who is not the user at
// this machine may use the proxy: how one is made, found in a request and held
// against what is known of it (design 13.13, 13.9). A key is kept as its SHA-256.
// It never answers, approves or operates anything. Who may make one, and where
// they are recorded, is ruled elsewhere.
package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Prefix begins each key, so that one which leaks is recognised.
const Prefix = "gt_live_"

// Header carries a key beside the client's own credential.
const Header = "X-Gettier-Key"

// Scopes that a key may have. Proxy lets it through; facts puts what this machine
// knows into its requests.
const (
	ScopeProxy = "proxy"
	ScopeFacts = "facts"
)

// Scopes are all of them.
var Scopes = []string{ScopeProxy, ScopeFacts}

const (
	// DefaultLife of a key, MaxLife the longest that may be asked for.
	DefaultLife = 90 * 24 * time.Hour
	MaxLife     = 366 * 24 * time.Hour
	// Max bounds the keys that are kept, revoked ones included.
	Max = 1000
	// secretSize is 32 random bytes in base64url, without padding.
	secretSize = 43
)

// New makes a key from 32 bytes of entropy.
func New(entropy io.Reader) (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(entropy, b[:]); err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	return Prefix + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// Sum is what is kept of a key, in hex.
func Sum(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Given is a key as a request brought it.
type Given struct {
	Secret string
	// Instead is set where it stood in the place of the client's own credential:
	// then there is none to forward.
	Instead bool
}

// From finds the key in a request's headers. ok is false when it brings none; a
// request that brings two different ones brings a key that nobody has.
func From(h http.Header) (g Given, ok bool) {
	add := func(s string, instead bool) {
		switch {
		case !ok:
			g, ok = Given{s, instead}, true
		case g.Secret != s:
			g.Secret = ""
			fallthrough
		default:
			g.Instead = g.Instead || instead
		}
	}
	for _, v := range h.Values(Header) {
		add(strings.TrimSpace(v), false)
	}
	for _, v := range h.Values("Authorization") {
		// The scheme's case is free (RFC 9110, 11.1).
		if scheme, token, _ := strings.Cut(strings.TrimSpace(v), " "); strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(strings.TrimSpace(token), Prefix) {
			add(strings.TrimSpace(token), true)
		}
	}
	for _, v := range h.Values("X-Api-Key") {
		if strings.HasPrefix(strings.TrimSpace(v), Prefix) {
			add(strings.TrimSpace(v), true)
		}
	}
	return g, ok
}

// Key is what is known of one.
type Key struct {
	ID        string
	Name      string
	SHA256    string // hex
	Scopes    []string
	Upstreams []string // empty = all
	Projects  []string // empty = all
	UID       *int     // of the peer, nil = any, also one that cannot be told
	PerMinute int      // requests, 0 = any number
	PerDay    int      // requests of a day in UTC, 0 = any number
	Expires   time.Time
	Revoked   bool
}

// Has reports whether the key has a scope.
func (k Key) Has(scope string) bool { return slices.Contains(k.Scopes, scope) }

// Why a key does not count. ErrUnknown, ErrExpired and ErrRevoked say that nobody
// was let in (401), ErrScope that somebody may not do this (403).
var (
	ErrUnknown = errors.New("this gettier key is not known here")
	ErrExpired = errors.New("this gettier key has expired")
	ErrRevoked = errors.New("this gettier key was revoked")
	ErrScope   = errors.New("this gettier key may not do this")
)

// Book holds the keys of an installation and when each was last used. The zero
// value knows none.
type Book struct {
	mu   sync.RWMutex
	keys []entry
	used map[string]Use
}

// Use is how a key was used: when last, and how many requests of that day (UTC)
// were counted.
type Use struct {
	At       time.Time `json:"at"`
	Requests int       `json:"requests,omitempty"`
}

// on is the number of requests on the day of now.
func (u Use) on(now time.Time) int {
	if u.At.UTC().Truncate(day).Equal(now.UTC().Truncate(day)) {
		return u.Requests
	}
	return 0
}

// day in UTC: Truncate cuts at midnight, since the zero time is one.
const day = 24 * time.Hour

type entry struct {
	sum [sha256.Size]byte
	key Key
}

// Set replaces what is known. A key whose sum is none is left out.
func (b *Book) Set(keys []Key) {
	list := make([]entry, 0, len(keys))
	for _, k := range keys {
		sum, err := hex.DecodeString(k.SHA256)
		if err != nil || len(sum) != sha256.Size {
			continue
		}
		list = append(list, entry{[sha256.Size]byte(sum), k})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = list
}

// Usable is the number of keys that count at this time.
func (b *Book) Usable(now time.Time) (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, e := range b.keys {
		if !e.key.Revoked && now.Before(e.key.Expires) {
			n++
		}
	}
	return n
}

// Check finds the key of a secret and whether it counts for this peer; uid is
// negative where it is not known. Every key is compared, each in constant time.
func (b *Book) Check(secret string, now time.Time, uid int) (Key, error) {
	sum := sha256.Sum256([]byte(secret))
	b.mu.RLock()
	found := -1
	for i := range b.keys {
		if subtle.ConstantTimeCompare(b.keys[i].sum[:], sum[:]) == 1 {
			found = i
		}
	}
	var k Key
	if found >= 0 {
		k = b.keys[found].key
	}
	b.mu.RUnlock()
	switch {
	case found < 0 || len(secret) != len(Prefix)+secretSize:
		return Key{}, ErrUnknown
	case k.Revoked:
		return k, ErrRevoked
	case !now.Before(k.Expires):
		return k, ErrExpired
	case !k.Has(ScopeProxy):
		return k, fmt.Errorf("%w: it lacks the scope %s", ErrScope, ScopeProxy)
	case k.UID != nil && *k.UID != uid:
		return k, fmt.Errorf("%w: it is another user's", ErrScope)
	}
	return k, nil
}

// Spend counts a request of a key. When its day has no more, nothing is counted
// and wait says how long it lasts.
func (b *Book) Spend(k Key, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used == nil {
		b.used = map[string]Use{}
	}
	u := b.used[k.ID]
	n := u.on(now)
	if k.PerDay > 0 && n >= k.PerDay {
		return now.UTC().Truncate(day).Add(day).Sub(now)
	}
	if u.At.Before(now) {
		u.At = now
	}
	u.Requests = n + 1
	b.used[k.ID] = u
	return 0
}

// Reaches is an error unless the key may be used for this upstream, and for one
// of these projects; empty names are of no project.
func (k Key) Reaches(upstream string, projects ...string) error {
	if len(k.Upstreams) > 0 && !slices.Contains(k.Upstreams, upstream) {
		return fmt.Errorf("%w: it is not for the upstream %q", ErrScope, upstream)
	}
	if len(k.Projects) > 0 && !slices.ContainsFunc(projects, func(p string) bool { return p != "" && slices.Contains(k.Projects, p) }) {
		return fmt.Errorf("%w: it is for %s only, and this request is of none of them", ErrScope, strings.Join(k.Projects, ", "))
	}
	return nil
}

// Used is how a key was used, as far as it is known at this time.
func (b *Book) Used(id string, now time.Time) Use {
	b.mu.RLock()
	defer b.mu.RUnlock()
	u := b.used[id]
	u.Requests = u.on(now)
	return u
}

// Uses are those of all keys, a copy.
func (b *Book) Uses() map[string]Use {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return maps.Clone(b.used)
}

// Recall takes uses of before.
func (b *Book) Recall(uses map[string]Use) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used == nil {
		b.used = map[string]Use{}
	}
	for id, u := range uses {
		if u.At.After(b.used[id].At) {
			b.used[id] = u
		}
	}
}
