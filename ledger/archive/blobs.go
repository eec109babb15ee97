package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"gettier.dev/gettierd/ledger/chain"
)

// Refs calls fn for each blob that a body names: 64 lower-case hex digits in a member
// whose name ends in _blob. The body is canonical.
func Refs(body []byte, fn func(sum [32]byte)) {
	mark := []byte(`_blob":"`)
	for {
		i := bytes.Index(body, mark)
		if i < 0 {
			return
		}
		body = body[i+len(mark):]
		end := bytes.IndexByte(body, '"')
		var sum [32]byte
		if end == 2*len(sum) && lower(body[:end]) {
			if _, err := hex.Decode(sum[:], body[:end]); err == nil {
				fn(sum)
			}
		}
	}
}

// Forgotten lists the blobs that a request.forgotten says are gone, nothing for
// other kinds. A list with anything else in it than 64 lower-case hex digits
// says nothing.
func Forgotten(e chain.Entry) [][32]byte {
	if e.Kind != "request.forgotten" {
		return nil
	}
	var b map[string]json.RawMessage // a struct would take a member "Sums", too
	var list []string
	if json.Unmarshal(e.Body, &b) != nil || json.Unmarshal(b["sums"], &list) != nil {
		return nil
	}
	sums := make([][32]byte, len(list))
	for i, s := range list {
		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != len(sums[i]) || hex.EncodeToString(raw) != s {
			return nil
		}
		sums[i] = [32]byte(raw)
	}
	return sums
}

// Through is the sequence number up to which a blob.forgotten says that blobs may
// be gone; false for other kinds, and for one that says nothing.
func Through(e chain.Entry) (uint64, bool) {
	if e.Kind != "blob.forgotten" {
		return 0, false
	}
	var b map[string]json.RawMessage // a struct would take a member "Through", too, and nothing for 0
	if json.Unmarshal(e.Body, &b) != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b["through"]), 10, 64)
	return n, err == nil && n < e.Seq
}

// lower reports that no letter is upper case.
func lower(s []byte) bool { return !bytes.ContainsAny(s, "ABCDEF") }

// note remembers which blobs an entry names, and up to where they may be gone.
func (c *checker) note(l leaf) {
	Refs(l.entry.Body, func(sum [32]byte) {
		c.refs[sum] = l.seq
		delete(c.struck, sum)
	})
	if l.entry.Kind == chain.KindRotated {
		c.rotate(l)
	}
	for _, sum := range Forgotten(l.entry) {
		if _, named := c.refs[sum]; named {
			delete(c.refs, sum)
			c.struck[sum] = true
		}
	}
	if n, ok := Through(l.entry); ok && (c.pruned == nil || n >= *c.pruned) {
		c.pruned = &n
	}
}

func (c *checker) readBlobs() error {
	due := slices.SortedFunc(maps.Keys(c.refs), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		// What cannot be read is about the next blob that there should be.
		about, seq := NameCheckpoint, max(c.size, 1)-1
		if len(due) > 0 {
			about, seq = BlobName(due[0]), c.refs[due[0]]
		}
		f, err := c.next(about, seq)
		if err != nil || f == nil {
			return err
		}
		name := f.Name
		p := placeOf(name)
		if p.class != classBlobs {
			c.problem(p.seqOf(), name, "the file does not belong to this log")
			c.pend = nil
			continue
		}
		raw, _ := hex.DecodeString(p.sum) // placeOf has looked
		sum := [32]byte(raw)
		for len(due) > 0 && bytes.Compare(due[0][:], sum[:]) <= 0 {
			due = due[1:]
		}
		last, named := c.refs[sum]
		before := c.rep.Count
		content, err := c.take(name, -1, MaxBlob)
		for i := before; i < min(c.rep.Count, len(c.rep.Problems)); i++ {
			c.rep.Problems[i].Seq = last
		}
		if err != nil {
			return err
		}
		if content == nil && f.Size > 0 {
			continue
		}
		c.rep.Blobs++
		c.blobs[sum] = true
		switch {
		case !named:
			c.problem(max(c.size, 1)-1, name, "no entry names this blob")
		case sha256.Sum256(content) != sum:
			c.problem(last, name, "the blob holds other bytes; entry %d names it", last)
		case c.o.Blob != nil:
			if err := c.o.Blob(sum, content); err != nil {
				return err
			}
		}
	}
}

// missingBlobs looks for each blob that an entry names.
func (c *checker) missingBlobs() {
	type ref struct {
		seq uint64
		sum [32]byte
	}
	var gone []ref
	c.rep.Forgotten += uint64(len(c.struck))
	for sum, last := range c.refs {
		switch {
		case c.blobs[sum]:
		case c.pruned != nil && last <= *c.pruned:
			c.rep.Forgotten++
		default:
			gone = append(gone, ref{last, sum})
		}
	}
	slices.SortFunc(gone, func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), bytes.Compare(a.sum[:], b.sum[:]))
	})
	for _, g := range gone {
		c.problem(g.seq, BlobName(g.sum), "the blob is missing; entry %d names it", g.seq)
	}
}
