package daemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
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

// Backup makes the copy in a file of its own beside the ledger, which nobody else
// can see, and sends that: a client may be slow, a transaction must not be.
func (b backend) Backup(ctx context.Context, w io.Writer) error {
	l, path := b.d.ledger, b.d.conf.layout().Ledger
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("copy ledger: %w", err)
	}
	if room, err := l.Room(); err == nil && room < uint64(st.Size())+littleRoom {
		return fmt.Errorf("%w: a copy of %d MB would fill the ledger's disk, which has room for %d MB", ipcserver.ErrRefused, st.Size()/1e6, room/1e6)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return fmt.Errorf("copy ledger: %w", err)
	}
	defer f.Close() // it was read: nothing to lose
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("copy ledger: %w", err)
	}
	if _, err := l.Snapshot(ctx, f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("copy ledger: %w", err)
	}
	_, err = io.Copy(w, f)
	return err
}

func (b backend) LedgerSize(context.Context) (ipc.LedgerSize, error) {
	n, err := b.d.ledger.Size(b.d.o.Now())
	if err != nil {
		return ipc.LedgerSize{}, err
	}
	room, err := b.d.ledger.Room()
	if err != nil {
		return ipc.LedgerSize{}, err
	}
	out := ipc.LedgerSize{
		File: b.d.conf.layout().Ledger, Bytes: n.File, Used: n.Used(), Entries: n.Entries, Day: n.Day, PerDay: n.PerDay(), Room: room, Buckets: []ipc.BucketSize{},
	}
	for _, k := range n.Buckets {
		out.Buckets = append(out.Buckets, ipc.BucketSize{Name: k.Name, Keys: k.Keys, Bytes: k.Bytes})
	}
	return out, nil
}
