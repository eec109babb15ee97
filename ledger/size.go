package ledger

import (
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// BucketSize is what one bucket takes of the file.
type BucketSize struct {
	Name  string
	Keys  int
	Bytes int64 // of its pages, whole
}

// Size is what the ledger takes of the disk.
type Size struct {
	File    int64 // bytes, with the room that was taken ahead
	Entries uint64
	Day     uint64 // entries of the 24 hours before now
	Buckets []BucketSize
}

// Used is the sum of the buckets.
func (s Size) Used() (n int64) {
	for _, b := range s.Buckets {
		n += b.Bytes
	}
	return n
}

// PerDay is how many bytes a day adds that is like the last one: its share of the
// entries, taken of all that is there.
func (s Size) PerDay() int64 {
	if s.Entries == 0 {
		return 0
	}
	return int64(float64(s.Used()) / float64(s.Entries) * float64(s.Day))
}

// Size counts pages and reads each once, in one transaction a bucket: about 50 ms
// for a million entries.
func (l *Ledger) Size(now time.Time) (s Size, err error) {
	st, err := os.Stat(l.db.Path())
	if err != nil {
		return s, fmt.Errorf("measure ledger: %w", err)
	}
	s.File, s.Entries = st.Size(), l.Head().Size
	for b := range bucketCount {
		err := l.view(func(tx *bbolt.Tx) error {
			if bk := tx.Bucket(bucketNames[b]); bk != nil {
				n := bk.Stats()
				bytes := int64(n.BranchAlloc) + int64(n.LeafAlloc)
				if n.InlineBucketN > 0 {
					bytes += int64(n.InlineBucketInuse)
				}
				s.Buckets = append(s.Buckets, BucketSize{Name: b.String(), Keys: n.KeyN, Bytes: bytes})
			}
			return nil
		})
		if err != nil {
			return s, fmt.Errorf("measure ledger: %w", err)
		}
	}
	first, err := l.firstAt(now.Add(-24 * time.Hour))
	if err != nil {
		return s, fmt.Errorf("measure ledger: %w", err)
	}
	s.Day = s.Entries - min(first, s.Entries)
	return s, nil
}
