package main

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/note"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// store is a place that records are put in. add returns when record i is
// durable; it is called from many producers at once.
type store struct {
	name  string
	add   func(i uint64) error
	close func() error
}

// recordSize is what one of our entries takes as bytes, so that all write the same.
const recordSize = 1024

// group collects what waits and hands it over together: group commit for stores
// that have none of their own.
type group struct {
	mu   sync.Mutex
	wait []chan error
	bell chan struct{} // capacity 1: a ring that nobody heard yet
	done chan struct{}
}

// newGroup runs commit for n waiting records at a time, until close.
func newGroup(commit func(n int) error) *group {
	g := &group{bell: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(g.done)
		for range g.bell {
			g.mu.Lock()
			wait := g.wait
			g.wait = nil
			g.mu.Unlock()
			if len(wait) == 0 {
				continue
			}
			err := commit(len(wait))
			for _, w := range wait {
				w <- err
			}
		}
	}()
	return g
}

func (g *group) add(uint64) error {
	w := make(chan error, 1) // one answer, so that the committer never waits
	g.mu.Lock()
	g.wait = append(g.wait, w)
	g.mu.Unlock()
	select {
	case g.bell <- struct{}{}:
	default:
	}
	return <-w
}

func (g *group) close() {
	close(g.bell)
	<-g.done
}

// openRaw is the measure: framed records appended to a plain file, one fdatasync
// for all that wait.
func openRaw(dir string) (store, error) {
	f, err := os.Create(filepath.Join(dir, "raw.log"))
	if err != nil {
		return store{}, err
	}
	record := binary.BigEndian.AppendUint32(nil, recordSize)
	record = append(record, make([]byte, recordSize)...)
	var buf []byte
	g := newGroup(func(n int) error {
		buf = buf[:0]
		for range n {
			buf = append(buf, record...)
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
		return syscall.Fdatasync(int(f.Fd()))
	})
	return store{"raw append + fdatasync", g.add, func() error { g.close(); return f.Close() }}, nil
}

// openOurs is the ledger; with fold, entries belong to turns.
func openOurs(dir string, fold bool) (store, error) {
	name := "ledger"
	if fold {
		name = "ledger, with fold"
	}
	l, err := openLedger(dir)
	if err != nil {
		return store{}, err
	}
	body := filler(false)
	var n atomic.Uint64 // records of all slices: no turn begins twice
	return store{name, func(uint64) error {
		d := ledger.Draft{Body: body}
		if fold {
			i := n.Add(1) - 1
			d = turned(i/(turns*laps)*turns+i%turns, i/turns%laps)
		}
		_, err := l.Append(context.Background(), d)
		return err
	}, l.Close}, nil
}

// Of so many turns entries come in turn, and a turn has so many: the first opens
// it, the last closes it.
const (
	turns = 64
	laps  = 25
)

// turned is entry lap of a turn, of about recordSize bytes.
func turned(turn, lap uint64) ledger.Draft {
	d := ledger.Draft{Turn: turnID(turn), Body: filler(true)}
	switch lap {
	case 0:
		d = opened(turn)
		b := d.Body.(lemma.TurnOpened)
		b.Reasons = []string{openedPad}
		d.Body = b
	case laps - 1:
		b := lemma.TurnClosed{Contract: lemma.Contract, Status: 200, Decision: lemma.DecReleased}
		b.Error = closedPad
		d.Body = b
	}
	return d
}

var openedPad, closedPad = padding(opened(0).Body), padding(lemma.TurnClosed{Contract: lemma.Contract, Status: 200, Decision: lemma.DecReleased})

// padding makes up what a body lacks to be as long as a filler.
func padding(b lemma.Body) string {
	return strings.Repeat("x", len(marshal(filler(true)))-len(marshal(b)))
}

func marshal(b lemma.Body) []byte {
	out, err := json.Marshal(b)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return out
}

func turnID(i uint64) string { return fmt.Sprintf("t_%06d", i) }

func opened(i uint64) ledger.Draft {
	return ledger.Draft{Turn: turnID(i), Body: lemma.TurnOpened{Contract: lemma.Contract, Conversation: fmt.Sprint("c", i), Model: "m", Upstream: "u", Scope: "p", Prompt: "why does the edge refuse large uploads?"}}
}

// filler is a body that makes an entry of recordSize bytes.
func filler(fold bool) lemma.Body {
	around := 236
	if fold {
		around += len(`,"turn":"t_000000"`)
	}
	return lemma.StateLost{Contract: lemma.Contract, Reason: strings.Repeat("x", recordSize-around-len(`{"contract":"0.9","reason":""}`))}
}

func openLedger(dir string) (*ledger.Ledger, error) {
	return ledger.Open(filepath.Join(dir, "ledger.db"), ledger.Options{
		Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), CheckpointFile: filepath.Join(dir, "keys", "checkpoint"), Version: "bench",
	})
}

// openSQLite is one connection in WAL mode with synchronous=FULL and group commit.
func openSQLite(dir string) (store, error) {
	c, err := sqlite.OpenConn(filepath.Join(dir, "sqlite.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return store{}, err
	}
	for _, q := range []string{"PRAGMA synchronous=FULL", "CREATE TABLE log (seq INTEGER PRIMARY KEY, entry BLOB NOT NULL)"} {
		if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
			return store{}, err
		}
	}
	record := make([]byte, recordSize)
	g := newGroup(func(n int) (err error) {
		end, err := sqlitex.ImmediateTransaction(c)
		if err != nil {
			return err
		}
		defer end(&err)
		q, err := c.Prepare("INSERT INTO log (entry) VALUES (?)")
		if err != nil {
			return err
		}
		for range n {
			q.BindBytes(1, record)
			if _, err := q.Step(); err != nil {
				return err
			}
			if err := q.Reset(); err != nil {
				return err
			}
		}
		return nil
	})
	return store{"SQLite WAL FULL, group commit", g.add, func() error { g.close(); return c.Close() }}, nil
}

// openBolt is bbolt as it comes: a transaction for each record, or its own Batch.
func openBolt(dir string, batch bool) (store, error) {
	name, file := "bbolt, one transaction each", "bolt.db"
	if batch {
		name, file = "bbolt, DB.Batch", "batch.db"
	}
	db, err := bbolt.Open(filepath.Join(dir, file), 0o600, nil)
	if err != nil {
		return store{}, err
	}
	bucket := []byte("log")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		return store{}, err
	}
	record := make([]byte, recordSize)
	put := func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		seq, err := b.NextSequence()
		if err != nil {
			return err
		}
		return b.Put(binary.BigEndian.AppendUint64(nil, seq), record)
	}
	run := db.Update
	if batch {
		run = db.Batch
	}
	return store{name, func(uint64) error { return run(put) }, db.Close}, nil
}

// openTessera is a tlog-tiles log on a POSIX file system. Its add returns with
// the entry's index, which it gives once the entry is integrated on disk.
func openTessera(dir string) (store, error) {
	ctx, stop := context.WithCancel(context.Background())
	driver, err := posix.New(ctx, posix.Config{Path: filepath.Join(dir, "tessera")})
	if err != nil {
		stop()
		return store{}, err
	}
	secret, _, err := note.GenerateKey(nil, "gettier.dev/bench")
	if err != nil {
		stop()
		return store{}, err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		stop()
		return store{}, err
	}
	a, shutdown, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithBatching(512, time.Millisecond).WithCheckpointInterval(time.Second))
	if err != nil {
		stop()
		return store{}, err
	}
	return store{"tessera POSIX", func(i uint64) error {
		// It takes equal entries for one only when told to; make them differ anyway.
		record := make([]byte, recordSize)
		binary.BigEndian.PutUint64(record, i)
		_, err := a.Add(ctx, tessera.NewEntry(record))()
		return err
	}, func() error { defer stop(); return shutdown(ctx) }}, nil
}
