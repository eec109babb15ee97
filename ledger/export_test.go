package ledger

import (
	"encoding/binary"
	"os"

	"go.etcd.io/bbolt"
)

// UsedBytes is the part of the file that holds pages in use.
func UsedBytes(path string) (int64, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var n int64
	err = db.View(func(tx *bbolt.Tx) error {
		n = tx.Size() - int64(db.Stats().FreePageN+db.Stats().PendingPageN)*int64(db.Info().PageSize)
		return nil
	})
	return n, err
}

// PageType says what bbolt keeps on the page of this byte.
func PageType(path string, at int) (kind string) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	_ = db.View(func(tx *bbolt.Tx) error {
		p, err := tx.Page(at / db.Info().PageSize)
		if err != nil || p == nil {
			kind = "none"
			return err
		}
		kind = p.Type
		if kind == "leaf" && !counts(path, at, db.Info().PageSize) {
			kind = "unused"
		}
		return nil
	})
	return kind
}

// counts reports whether bbolt reads all of the byte at: of an element's flags it
// knows one bit, and behind the last element stands what the page held before.
func counts(path string, at, pageSize int) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return true
	}
	const header, element = 16, 16
	page := data[at/pageSize*pageSize:]
	off, n := at%pageSize, int(binary.LittleEndian.Uint16(page[10:]))
	if off >= header && off < header+n*element {
		return (off-header)%element >= 4
	}
	end := header
	if header+n*element > len(page) {
		return true
	}
	for i := range n {
		e := page[header+i*element:]
		end = max(end, header+i*element+int(binary.LittleEndian.Uint32(e[4:])+binary.LittleEndian.Uint32(e[8:])+binary.LittleEndian.Uint32(e[12:])))
	}
	return off < end
}

// LimitSize plays a full disk: the file may not grow beyond n bytes, 0 = no limit.
func LimitSize(l *Ledger, n int) { l.db.MaxSize = n }

// Overtake gives the file an entry that its writer knows nothing of, as a commit
// does that failed after its pages were written.
func Overtake(l *Ledger) error {
	return l.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketNames[bChain]).Put(u64(l.Head().Size), []byte("{}"))
	})
}
