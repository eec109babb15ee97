package ipctest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
)

// log is a real log of one entry: what is exported must be something that a
// client can check. Its chain is not the Backend's own.
var log = sync.OnceValues(func() (l realLog, err error) {
	dir, err := os.MkdirTemp("", "gt")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(dir)
	led, err := ledger.Open(filepath.Join(dir, "ledger.db"), ledger.Options{
		Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), MmapSize: 1 << 20, Version: "test",
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		return l, err
	}
	var tar bytes.Buffer
	_, err = led.Export(context.Background(), &tar, nil)
	proof, perr := led.Proof(0)
	keys, kerr := led.VerifierKeys()
	if err := errors.Join(err, perr, kerr, led.Close()); err != nil {
		return l, err
	}
	file, err := os.ReadFile(filepath.Join(dir, "ledger.db"))
	return realLog{tar.Bytes(), proof, keys, file}, err
})

type realLog struct{ tar, proof, keys, file []byte }

func (b *Backend) Export(_ context.Context, w io.Writer) error {
	l, err := log()
	if err != nil {
		return err
	}
	if _, err := w.Write(l.tar[:999]); err != nil {
		return err
	}
	if b.Broken != nil {
		return b.Broken
	}
	_, err = w.Write(l.tar[999:])
	return err
}

func (b *Backend) Proof(_ context.Context, seq uint64) ([]byte, error) {
	l, err := log()
	if err == nil && seq > 0 {
		err = fmt.Errorf("entry %d: %w", seq, ipcserver.ErrNotFound)
	}
	return l.proof, errors.Join(err, b.Broken)
}

func (b *Backend) AuditKeys(context.Context) ([]byte, error) {
	l, err := log()
	return l.keys, errors.Join(err, b.Broken)
}

// Backup writes the file of a log of one entry; Broken cuts it short.
func (b *Backend) Backup(_ context.Context, w io.Writer) error {
	l, err := log()
	if err != nil {
		return err
	}
	if _, err := w.Write(l.file[:999]); err != nil {
		return err
	}
	if b.Broken != nil {
		return b.Broken
	}
	_, err = w.Write(l.file[999:])
	return err
}

// LedgerSize is that of no ledger in particular.
func (b *Backend) LedgerSize(context.Context) (ipc.LedgerSize, error) {
	return ipc.LedgerSize{
		File: "/home/x/ledger.db", Bytes: 16 << 20, Used: 1 << 20, Entries: 1000, Day: 500, PerDay: 512 << 10, Room: 1 << 30,
		Buckets: []ipc.BucketSize{{Name: "chain", Keys: 1000, Bytes: 900 << 10}, {Name: "facts", Bytes: 0}, {Name: "blobs", Keys: 9, Bytes: 124 << 10}},
	}, nil
}
