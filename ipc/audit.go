package ipc

import (
	"context"
	"errors"
	"io"
	"strconv"
)

// Export copies the whole log to w, as one tar that package archive and
// ledger/FORMAT.md describe. An error means that what w got is not whole.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	return c.file(ctx, "/v1/audit/export", w)
}

// Backup copies the ledger's file as of now to w. An error means that what w got
// is not whole.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	return c.file(ctx, "/v1/ledger/backup", w)
}

// LedgerSize reads what the ledger takes of the disk.
func (c *Client) LedgerSize(ctx context.Context) (LedgerSize, error) {
	return get[LedgerSize](ctx, c, "/v1/ledger/size", nil)
}

func (c *Client) file(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, "GET", path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, &body{r: resp.Body, c: c, ctx: ctx}); err != nil {
		return err
	}
	return nil
}

// body tells a connection that was lost from a target that cannot be written.
type body struct {
	r   io.Reader
	c   *Client
	ctx context.Context
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.c.lost(b.ctx, err)
	}
	return n, err
}

// Proof reads the proof that an entry is in the log.
func (c *Client) Proof(ctx context.Context, seq uint64) ([]byte, error) {
	return c.bytes(ctx, "/v1/audit/"+strconv.FormatUint(seq, 10)+"/proof")
}

// AuditKeys reads the log's public keys, a line each in the form of note tools.
func (c *Client) AuditKeys(ctx context.Context) ([]byte, error) {
	return c.bytes(ctx, "/v1/audit/keys")
}
