package ledger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// ErrNotKept says that there is no request to forget.
var ErrNotKept = errors.New("no request is kept")

// ForgetRequest drops the request that was kept for a turn, and records who had
// it done. The entry that named it stays, and with it the hash. bytes is what
// the blob took in the file. It fails with ErrNotFound when there is no such
// turn, with ErrNotKept when it has no request or has it no more. Exports and
// backups of before hold it still, and the file's free pages do until they are
// written over.
func (l *Ledger) ForgetRequest(ctx context.Context, turn string, by lemma.Answerer) (blobs int, bytes int64, err error) {
	sum, size, err := l.requestOf(turn)
	if err != nil {
		return 0, 0, fmt.Errorf("forget request: %w", err)
	}
	it, err := ready(turn, lemma.RequestForgotten{Contract: lemma.Contract, Turn: turn, Sums: []string{hex.EncodeToString(sum[:])}, Bytes: size, By: by})
	if err != nil {
		return 0, 0, err
	}
	g := &group{done: make(chan struct{}), items: []item{it}, drop: [][32]byte{sum}}
	if _, err := l.submit(ctx, g); err != nil {
		return 0, 0, fmt.Errorf("forget request: %w", err)
	}
	return 1, size, nil
}

// forgottenIn reads which requests were forgotten in a ledger file, sound or
// damaged: none when there is no file.
func forgottenIn(ctx context.Context, path string) ([]lemma.RequestForgotten, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search the old ledger for what was forgotten: %w", err)
	}
	defer f.Close()
	w := newWreck(f, nil)
	if err := w.scan(ctx); err != nil {
		return nil, fmt.Errorf("search the old ledger for what was forgotten: %w", err)
	}
	return w.forgot, nil
}

// forgetAgain drops the requests that a restored ledger brought back. One that it
// never had, or no longer has, is none of them.
func (l *Ledger) forgetAgain(ctx context.Context, forgot []lemma.RequestForgotten) (n int, err error) {
	for _, f := range forgot {
		blobs, _, err := l.ForgetRequest(ctx, f.Turn, f.By)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrNotKept) {
			return n, err
		}
		n += blobs
	}
	return n, nil
}

// requestOf finds the blob of a turn's request, and its size in the file.
func (l *Ledger) requestOf(turn string) (sum [32]byte, size int64, err error) {
	entries, err := l.TurnEntries(turn)
	if err != nil {
		return sum, 0, err
	}
	i := slices.IndexFunc(entries, func(e chain.Entry) bool { return e.Kind == string(lemma.KTurnOpened) })
	if i < 0 {
		return sum, 0, fmt.Errorf("%w: turn %.80q", ErrNotFound, turn)
	}
	var b lemma.TurnOpened
	if err := json.Unmarshal(entries[i].Body, &b); err != nil {
		return sum, 0, fmt.Errorf("read entry %d: %w", entries[i].Seq, err)
	}
	sum, ok := parseSum(b.RequestBlob)
	if !ok {
		return sum, 0, fmt.Errorf("%w for turn %s", ErrNotKept, turn)
	}
	err = l.view(func(tx *bbolt.Tx) error {
		s := newTxState(tx)
		data := s.get(bBlobs, sum[:])
		switch {
		case s.get(bBlobRefs, sum[:]) == nil:
			return fmt.Errorf("%w for turn %s any more: it was forgotten already", ErrNotKept, turn)
		case data == nil:
			return fmt.Errorf("%w for turn %s any more: ledger.retain is over", ErrNotKept, turn)
		}
		size = int64(len(data))
		return nil
	})
	return sum, size, err
}

// drop runs in the append transaction behind the fold, which has struck the
// blobs from the record of what entries name.
func drop(s state, sums [][32]byte) error {
	for _, sum := range sums {
		if s.get(bBlobRefs, sum[:]) != nil {
			continue
		}
		if err := s.del(bBlobs, sum[:]); err != nil {
			return err
		}
	}
	return nil
}

// strike counts the blobs that were named and then forgotten by name.
func (v *verifier) strike(e chain.Entry) {
	for _, sum := range blobRefs(e.Body) {
		delete(v.struck, sum)
	}
	for _, sum := range archive.Forgotten(e) {
		if v.mem.get(bBlobRefs, sum[:]) != nil {
			v.struck[sum] = true
		}
	}
}
