package ipc

import (
	"context"
	"net/http"
	"net/url"
)

// Forgotten says what was dropped of a turn.
type Forgotten struct {
	Turn  string `json:"turn"`
	Blobs int    `json:"blobs"`
	Bytes int64  `json:"bytes"` // as they were stored
}

// ForgetTurn drops the request that was kept of a turn; a person's call.
func (c *Client) ForgetTurn(ctx context.Context, id string) (Forgotten, error) {
	return call[Forgotten](ctx, c, http.MethodPost, "/v1/turns/"+url.PathEscape(id)+"/forget", nil, struct{}{})
}
