package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// rawLog is what the ledger is measured against: length-framed records in a
// plain file, one fdatasync for all that wait at the moment.
type rawLog struct {
	f    *os.File
	mu   sync.Mutex
	buf  []byte
	wait []chan struct{}
	bell chan struct{}
	done chan struct{}
}

func newRawLog(b *testing.B) *rawLog {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw.log"))
	if err != nil {
		b.Fatal(err)
	}
	r := &rawLog{f: f, bell: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for range r.bell {
			r.mu.Lock()
			buf, wait := r.buf, r.wait
			r.buf, r.wait = nil, nil
			r.mu.Unlock()
			if len(wait) == 0 {
				continue
			}
			if _, err := f.Write(buf); err != nil {
				b.Error(err)
			}
			if err := syscall.Fdatasync(int(f.Fd())); err != nil {
				b.Error(err)
			}
			for _, w := range wait {
				close(w)
			}
		}
	}()
	return r
}

func (r *rawLog) append(rec []byte) {
	w := make(chan struct{})
	r.mu.Lock()
	r.buf = append(binary.BigEndian.AppendUint32(r.buf, uint32(len(rec))), rec...)
	r.wait = append(r.wait, w)
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
	<-w
}

func (r *rawLog) close() {
	close(r.bell)
	<-r.done
	r.f.Close()
}

// produce runs n calls of add from p producers and returns calls per second.
func produce(p, n int, add func(i int)) float64 {
	var wg sync.WaitGroup
	start := time.Now()
	for w := range p {
		wg.Go(func() {
			for i := w; i < n; i += p {
				add(i)
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkAppend compares durable appends of 1 KiB entries with rawLog in the
// same run, interleaved so that a slow moment of the disk hits both. The ratio
// is the number to look at. With fold: each entry belongs to a turn.
func BenchmarkAppend(b *testing.B) {
	for _, fold := range []bool{false, true} {
		for _, producers := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("fold=%t/producers=%d", fold, producers), func(b *testing.B) {
				bb := newBench(b)
				bb.opt.MmapSize = 1 << 30
				bb.opt.Now = time.Now
				l := bb.open(b)
				raw := newRawLog(b)
				defer raw.close()
				body := lemma.StateLost{Contract: lemma.Contract, Reason: strings.Repeat("x", 1024-220)}
				if fold {
					for i := range 64 {
						add(b, l, ledger.Draft{Turn: fmt.Sprintf("t_%d", i), Body: opened(fmt.Sprint("c", i))})
					}
				}
				record := make([]byte, 1060-4)
				var ours, theirs []float64
				const rounds = 5
				b.ResetTimer()
				for range rounds {
					n := max(b.N/rounds, producers)
					theirs = append(theirs, produce(producers, n, func(int) { raw.append(record) }))
					ours = append(ours, produce(producers, n, func(i int) {
						d := ledger.Draft{Body: body}
						if fold {
							d.Turn = fmt.Sprintf("t_%d", i%64)
						}
						if _, err := l.Append(context.Background(), d); err != nil {
							b.Error(err)
						}
					}))
				}
				b.StopTimer()
				size := l.Head().Size
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(mean(ours), "entries/s")
				b.ReportMetric(mean(theirs), "raw/s")
				b.ReportMetric(mean(ours)/mean(theirs), "ratio")
				if st, err := os.Stat(bb.path()); err == nil && size > 10000 {
					b.ReportMetric(float64(used(b, bb.path(), st.Size()))/float64(size), "bytes/entry")
				}
			})
		}
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func used(b *testing.B, path string, whole int64) int64 {
	n, err := ledger.UsedBytes(path)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkVerify reports entries per second of a whole Verify: with
// re-canonicalisation, tree and refold. plain is SHA-256 over the same bytes.
func BenchmarkVerify(b *testing.B) {
	bb := newBench(b)
	bb.opt.MmapSize = 1 << 30
	l := bb.open(b)
	const n = 50000
	drafts := make([]ledger.Draft, 250)
	for i := range n / len(drafts) {
		for j := range drafts {
			drafts[j] = ledger.Draft{Turn: fmt.Sprintf("t_%d", i*10+j%10), Body: lemma.StateLost{Contract: lemma.Contract, Reason: strings.Repeat("x", 700)}}
		}
		add(b, l, drafts...)
	}
	b.ResetTimer()
	for b.Loop() {
		if r, err := l.Verify(context.Background(), nil); err != nil || !r.OK() {
			b.Fatalf("%+v, %v", r, err)
		}
	}
	b.ReportMetric(float64(l.Head().Size)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	buf := make([]byte, 1000)
	start := time.Now()
	for range n {
		sha256.Sum256(buf)
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "plain/s")
}

// BenchmarkOpen opens a ledger of 200,000 entries, warm, after a clean close.
func BenchmarkOpen(b *testing.B) {
	bb := newBench(b)
	bb.opt.MmapSize = 1 << 30
	l := bb.open(b)
	drafts := make([]ledger.Draft, 250)
	for range 800 {
		for j := range drafts {
			drafts[j] = note(strings.Repeat("x", 700))
		}
		add(b, l, drafts...)
	}
	for b.Loop() {
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		var err error
		if l, err = ledger.Open(bb.path(), bb.opt); err != nil {
			b.Fatal(err)
		}
	}
	l.Close()
}
