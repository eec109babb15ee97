package ipctest

import (
	"context"
	"fmt"
	"slices"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
)

// RotateLogKey pretends.
func (b *Backend) RotateLogKey(context.Context, lemma.Answerer) (ipc.KeyRotation, error) {
	return ipc.KeyRotation{Seq: 7, Key: "gettier.dev/log/0011223344556677+00000000+AQ=="}, b.Broken
}

// APIKeys lists what was created.
func (b *Backend) APIKeys(context.Context) (ipc.List[ipc.APIKey], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ipc.List[ipc.APIKey]{AsOfSeq: b.head(), Items: slices.Clone(b.keys)}, b.Broken
}

// CreateAPIKey makes one with a secret that is none.
func (b *Backend) CreateAPIKey(_ context.Context, k ipc.KeyRequest, _ lemma.Answerer) (ipc.NewAPIKey, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	made := ipc.APIKey{ID: fmt.Sprintf("k_%d", len(b.keys)+1), Name: k.Name, Scopes: k.Scopes, Upstreams: k.Upstreams, Projects: k.Projects, UID: k.UID,
		CreatedAt: "2026-01-02T03:04:05.000000000Z", ExpiresAt: "2026-04-02T03:04:05.000000000Z", State: "usable"}
	b.keys = append(b.keys, made)
	return ipc.NewAPIKey{APIKey: made, Secret: "gt_live_" + "example"}, b.Broken
}

// RevokeAPIKey ends one.
func (b *Backend) RevokeAPIKey(_ context.Context, id string, _ lemma.Answerer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.keys {
		if b.keys[i].ID == id || b.keys[i].Name == id {
			b.keys[i].State, b.keys[i].RevokedAt = "revoked", "2026-01-03T03:04:05.000000000Z"
			return b.Broken
		}
	}
	return fmt.Errorf("key %s: %w", id, ipcserver.ErrNotFound)
}

// SealedKeys lists what was sealed.
func (b *Backend) SealedKeys(context.Context) (ipc.List[ipc.SealedKey], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ipc.List[ipc.SealedKey]{AsOfSeq: b.head(), Items: slices.Clone(b.sealed)}, b.Broken
}

// SealKey keeps the name alone.
func (b *Backend) SealKey(_ context.Context, name, _ string, _ lemma.Answerer) (ipc.SealedKey, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := ipc.SealedKey{Name: name, SealedAt: "2026-01-02T03:04:05.000000000Z", Recipient: "age1example"}
	b.sealed = append(b.sealed, k)
	return k, b.Broken
}

// ForgetKey forgets one.
func (b *Backend) ForgetKey(_ context.Context, name string, _ lemma.Answerer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.sealed)
	if b.sealed = slices.DeleteFunc(b.sealed, func(k ipc.SealedKey) bool { return k.Name == name }); len(b.sealed) == n {
		return fmt.Errorf("upstream key %s: %w", name, ipcserver.ErrNotFound)
	}
	return b.Broken
}

// Keys gives the backend one API key and one sealed upstream key.
func (b *Backend) Keys(api, upstream string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, ipc.APIKey{ID: "k_0123456789ab", Name: api, Scopes: []string{"proxy"}, Upstreams: []string{"openai"}, Projects: []string{},
		CreatedAt: "2026-01-01T03:04:05.000000000Z", ExpiresAt: "2026-04-01T03:04:05.000000000Z", UsedAt: "2026-01-02T03:04:05.000000000Z", State: "usable"})
	b.sealed = append(b.sealed, ipc.SealedKey{Name: upstream, SealedAt: "2026-01-01T03:04:05.000000000Z", Recipient: "age1example"})
}
