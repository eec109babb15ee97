package ipc

import (
	"context"
	"net/http"
	"net/url"
)

// KeyRotation says which key signs the log from here on.
type KeyRotation struct {
	Seq uint64 `json:"seq"` // of the entry that announced it
	Key string `json:"key"` // as note tools take it
}

// APIKey is a key to the proxy, without its secret.
type APIKey struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	Upstreams []string `json:"upstreams"` // empty = all
	Projects  []string `json:"projects"`  // empty = all
	UID       *int     `json:"uid,omitempty"`
	PerMinute int      `json:"per_minute,omitempty"` // requests, 0 = any number
	PerDay    int      `json:"per_day,omitempty"`    // requests of a day in UTC, 0 = any number
	Today     int      `json:"today,omitempty"`      // requests so far, where a day is bounded
	CreatedAt string   `json:"created_at"`
	ExpiresAt string   `json:"expires_at"`
	RevokedAt string   `json:"revoked_at,omitempty"`
	UsedAt    string   `json:"used_at,omitempty"` // last, as far as it was kept
	State     string   `json:"state"`             // usable | expired | revoked
}

// KeyRequest asks for a key. No expiry is 90 days.
type KeyRequest struct {
	Name           string   `json:"name"`
	Scopes         []string `json:"scopes"`
	Upstreams      []string `json:"upstreams,omitempty"`
	Projects       []string `json:"projects,omitempty"`
	UID            *int     `json:"uid,omitempty"`
	PerMinute      int      `json:"per_minute,omitempty"`
	PerDay         int      `json:"per_day,omitempty"`
	ExpiresSeconds int64    `json:"expires_seconds,omitempty"`
}

// NewAPIKey is a key with its secret, which is told this once.
type NewAPIKey struct {
	APIKey
	Secret string `json:"secret"`
}

// SealedKey is an upstream key that the ledger keeps encrypted.
type SealedKey struct {
	Name      string `json:"name"`
	SealedAt  string `json:"sealed_at"`
	Recipient string `json:"recipient"` // of age
	UsedBy    string `json:"used_by"`   // upstreams, "" = none yet
}

// SealRequest gives an upstream key to keep.
type SealRequest struct {
	Secret string `json:"secret"`
}

// RotateLogKey gives the log its next key; a person's call.
func (c *Client) RotateLogKey(ctx context.Context) (KeyRotation, error) {
	return call[KeyRotation](ctx, c, http.MethodPost, "/v1/audit/rotate-key", nil, struct{}{})
}

// APIKeys lists the keys to the proxy.
func (c *Client) APIKeys(ctx context.Context) (List[APIKey], error) {
	return get[List[APIKey]](ctx, c, "/v1/keys", nil)
}

// CreateAPIKey makes one; a person's call.
func (c *Client) CreateAPIKey(ctx context.Context, k KeyRequest) (NewAPIKey, error) {
	return call[NewAPIKey](ctx, c, http.MethodPost, "/v1/keys", nil, k)
}

// RevokeAPIKey ends one; a person's call.
func (c *Client) RevokeAPIKey(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, nil)
	return err
}

// SealedKeys lists the upstream keys that the ledger keeps.
func (c *Client) SealedKeys(ctx context.Context) (List[SealedKey], error) {
	return get[List[SealedKey]](ctx, c, "/v1/upstream-keys", nil)
}

// MaySeal asks whether the caller may give and take upstream keys, before it
// has read any; a person's call. The same process may then seal while it cannot
// be looked into.
func (c *Client) MaySeal(ctx context.Context) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/upstream-keys", nil, struct{}{})
	return err
}

// SealKey keeps an upstream key; a person's call.
func (c *Client) SealKey(ctx context.Context, name string, k SealRequest) (SealedKey, error) {
	return call[SealedKey](ctx, c, http.MethodPut, "/v1/upstream-keys/"+url.PathEscape(name), nil, k)
}

// ForgetKey forgets one; a person's call.
func (c *Client) ForgetKey(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/upstream-keys/"+url.PathEscape(name), nil, nil)
	return err
}
