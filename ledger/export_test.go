package ledger

import "go.etcd.io/bbolt"

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
		return nil
	})
	return kind
}

// LimitSize plays a full disk: the file may not grow beyond n bytes, 0 = no limit.
func LimitSize(l *Ledger, n int) { l.db.MaxSize = n }
