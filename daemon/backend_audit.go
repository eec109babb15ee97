package daemon

import (
	"context"
	"io"
)

func (b backend) Export(ctx context.Context, w io.Writer) error {
	_, err := b.d.ledger.Export(ctx, w, nil)
	return known(err)
}

func (b backend) Proof(_ context.Context, seq uint64) ([]byte, error) {
	out, err := b.d.ledger.Proof(seq)
	return out, known(err)
}

func (b backend) AuditKeys(context.Context) ([]byte, error) { return b.d.ledger.VerifierKeys() }
