package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"github.com/go-json-experiment/json/jsontext"
	"go.etcd.io/bbolt"
)

const (
	// tenant of a log that serves one person's machine.
	tenant = "local"
	// maxDrafts bounds one atomic group, so that a checkpoint falls near every
	// multiple of checkpointEvery.
	maxDrafts = 256
	// maxBlob bounds one blob before compression.
	maxBlob = 64 << 20
)

// Draft is an entry to be: the turn it belongs to, its body, and the blobs that
// the body names by SHA-256. Blobs come already redacted.
type Draft struct {
	Turn  string
	Body  lemma.Body
	Blobs [][]byte
}

// Receipt tells where a group of drafts stands: sequence numbers First to Last,
// and the size and root of the chain after the commit that made them durable.
type Receipt struct {
	First, Last uint64
	Size        uint64
	Root        [32]byte
	TS          string
}

// group is what a producer hands to the writer.
type group struct {
	items   []item
	one     [1]item // room for the items of nearly every group
	blobs   []packed
	forget  [][32]byte // blobs to drop when nothing newer names them; the items say up to where
	through uint64
	drop    [][32]byte         // blobs that its item says are gone
	next    ed25519.PrivateKey // the log's next key: the one item is made where it stands
	by      string             // who asked for it
	receipt Receipt
	err     error
	done    chan struct{} // closed after receipt or err is set
	result  chan error    // set for Go
}

// item is a draft made ready outside the writer: canonical, redacted, decoded.
type item struct {
	kind, turn string
	body       []byte
	value      lemma.Body // what the fold reads; nil for kinds without a fold
}

type packed struct {
	sum  [32]byte
	data []byte
}

func (g *group) finish(r Receipt, err error) {
	g.receipt, g.err = r, err
	close(g.done)
	if g.result != nil {
		g.result <- err
	}
}

// prepare does everything that needs no place in the chain, in the producer's
// goroutine.
func (l *Ledger) prepare(drafts []Draft) (*group, error) {
	if l.opt.ReadOnly {
		return nil, ErrReadOnly
	}
	if len(drafts) == 0 || len(drafts) > maxDrafts {
		return nil, fmt.Errorf("append %d drafts: %w: 1 to %d at a time", len(drafts), ErrDraft, maxDrafts)
	}
	g := &group{done: make(chan struct{})}
	if g.items = g.one[:0]; len(drafts) > 1 {
		g.items = make([]item, 0, len(drafts))
	}
	for _, d := range drafts {
		if d.Body == nil {
			return nil, fmt.Errorf("append: %w: no body", ErrDraft)
		}
		it, err := ready(d.Turn, d.Body)
		if err != nil {
			return nil, err
		}
		var hits []Hit
		if l.opt.Redact != nil {
			if it.body, hits, err = redactBody(it.body, l.opt.Redact); err != nil {
				return nil, fmt.Errorf("append %s: %w", it.kind, err)
			}
		}
		if len(hits) > 0 {
			if it.value, err = decodeBody(it.kind, it.body); err != nil {
				return nil, fmt.Errorf("append %s: %w", it.kind, err)
			}
		}
		if n := len(it.body) + chain.Overhead(it.kind, tenant, it.turn); n > chain.MaxEntry {
			return nil, fmt.Errorf("append %s: %w: up to %d bytes, at most %d fit", it.kind, ErrTooLarge, n, chain.MaxEntry)
		}
		g.items = append(g.items, it)
		for _, h := range hits {
			note, err := ready(d.Turn, lemma.RedactionApplied{Contract: lemma.Contract, Where: it.kind, Rule: h.Rule, Count: h.Count})
			if err != nil {
				return nil, err
			}
			g.items = append(g.items, note)
		}
		for _, b := range d.Blobs {
			if len(b) > maxBlob {
				return nil, fmt.Errorf("append %s: %w: blob of %d bytes, at most %d", it.kind, ErrDraft, len(b), maxBlob)
			}
			p := packed{sum: sha256.Sum256(b)}
			if !slices.ContainsFunc(g.blobs, func(q packed) bool { return q.sum == p.sum }) {
				p.data = l.cod.pack(b)
				g.blobs = append(g.blobs, p)
			}
		}
	}
	if err := l.haveBlobs(g); err != nil {
		return nil, err
	}
	return g, nil
}

// haveBlobs refuses a group that names a blob which neither comes with it nor is
// stored: the entry would stand on the chain for ever, and its bytes nowhere.
func (l *Ledger) haveBlobs(g *group) error {
	for _, it := range g.items {
		for _, sum := range blobRefs(it.body) {
			if slices.ContainsFunc(g.blobs, func(p packed) bool { return p.sum == sum }) {
				continue
			}
			err := l.view(func(tx *bbolt.Tx) error {
				if newTxState(tx).get(bBlobs, sum[:]) == nil {
					return fmt.Errorf("append %s: %w: it names blob %x, which is not stored", it.kind, ErrDraft, sum)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// ready turns a body into canonical bytes and back into the value that the fold
// will read, so that folding now and refolding later see the same.
func ready(turn string, body lemma.Body) (item, error) {
	kind := string(body.Kind())
	if !slices.Contains(lemma.Kinds, body.Kind()) {
		return item{}, fmt.Errorf("append %q: %w: unknown kind", kind, ErrDraft)
	}
	if turn != "" && !validID(turn) {
		return item{}, fmt.Errorf("append %s: %w: turn id %.80q", kind, ErrDraft, turn)
	}
	plain, err := json.Marshal(body)
	if err != nil {
		return item{}, fmt.Errorf("append %s: %w", kind, err)
	}
	canon := plain
	if !chain.IsCanonical(plain) {
		if canon, err = chain.Canonical(plain); err != nil {
			return item{}, fmt.Errorf("append %s: %w", kind, err)
		}
	}
	value, err := decodeBody(kind, canon)
	if err != nil {
		return item{}, fmt.Errorf("append %s: %w: %w", kind, ErrDraft, err)
	}
	return item{kind: kind, turn: turn, body: canon, value: value}, nil
}

// inbox is the queue between producers and the writer. It is unbounded in
// length but not in fact: each waiting producer has one group in it.
type inbox struct {
	mu     sync.Mutex
	queue  []*group
	closed bool
	bell   chan struct{} // capacity 1: a ring that nobody heard yet
}

func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

func (b *inbox) put(g *group) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.queue = append(b.queue, g)
	b.mu.Unlock()
	b.ring()
	return nil
}

// withdraw takes g back unless the writer has it already.
func (b *inbox) withdraw(g *group) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, g)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return true
}

func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// take removes groups from the front while keep says so. ended reports that the
// inbox is closed and empty.
func (b *inbox) take(keep func(*group) bool) (batch []*group, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.queue) && keep(b.queue[n]) {
		n++
	}
	batch = slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	return batch, b.closed && n == 0 && len(b.queue) == 0
}

// redactMin is the shortest text that can hold a secret worth the name.
const redactMin = 8

// redactBody passes every string value of a canonical body through redact. It
// works on the decoded text, value by value: rules see what a person would see,
// and a hit can never break the JSON around it. Names are ours and stay.
func redactBody(body []byte, redact func([]byte) ([]byte, []Hit)) ([]byte, []Hit, error) {
	var (
		out   []byte // nil until something changed
		from  int    // start of what out does not hold yet
		hits  []Hit
		plain []byte
	)
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		start := i
		escaped := false
		for i++; body[i] != '"'; i++ {
			if body[i] == '\\' {
				escaped = true
				i++
			}
		}
		isName := i+1 < len(body) && body[i+1] == ':'
		text := body[start+1 : i]
		if isName || len(text) < redactMin || !escaped && machineMade(text) {
			continue
		}
		if escaped {
			var err error
			if plain, err = jsontext.AppendUnquote(plain[:0], body[start:i+1]); err != nil {
				return nil, nil, fmt.Errorf("redact body: %w", err)
			}
			text = plain
		}
		clean, found := redact(text)
		if len(found) == 0 {
			continue
		}
		out = append(out, body[from:start]...)
		var err error
		if out, err = jsontext.AppendQuote(out, strings.ToValidUTF8(string(clean), "\uFFFD")); err != nil {
			return nil, nil, fmt.Errorf("redact body: %w", err)
		}
		from = i + 1
		for _, h := range found {
			if at := slices.IndexFunc(hits, func(o Hit) bool { return o.Rule == h.Rule }); at >= 0 {
				hits[at].Count += h.Count
			} else {
				hits = append(hits, h)
			}
		}
	}
	if len(hits) == 0 {
		return body, nil, nil
	}
	canon, err := chain.Canonical(append(out, body[from:]...))
	if err != nil {
		return nil, nil, fmt.Errorf("redact body: %w", err)
	}
	return canon, hits, nil
}

// machineMade reports whether text is one of our own ids or hashes, which are
// no secrets however random they look: lower-case hex of 32 bytes, or an id.
func machineMade(text []byte) bool {
	if len(text) == 64 {
		return !slices.ContainsFunc(text, func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
	}
	return len(text) == 28 && text[1] == '_' && validID(string(text))
}
