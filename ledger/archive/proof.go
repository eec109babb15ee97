package archive

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
)

// proofLine is the first line of a C2SP tlog-proof.
const proofLine = "c2sp.org/tlog-proof@v1"

// maxProof bounds a proof file in bytes: an entry in base64, 53 hashes, a note.
const maxProof = 256 << 10

// Proof is a C2SP tlog-proof. Entry stands in its extra data.
type Proof struct {
	Entry      []byte
	Index      uint64
	Path       []chain.Digest // the leaf's sibling first
	Checkpoint []byte         // signed
}

// Marshal is the proof's file.
func (p Proof) Marshal() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofLine, base64.StdEncoding.EncodeToString(p.Entry), p.Index)
	for _, h := range p.Path {
		fmt.Fprintf(&b, "%s\n", base64.StdEncoding.EncodeToString(h[:]))
	}
	b.WriteString("\n")
	b.Write(p.Checkpoint)
	return b.Bytes()
}

// IsProof reports whether a file begins as a proof does.
func IsProof(b []byte) bool { return bytes.HasPrefix(b, []byte(proofLine+"\n")) }

// ParseProof reads a proof file with an entry in it.
func ParseProof(b []byte) (Proof, error) {
	bad := func(what string) (Proof, error) {
		return Proof{}, fmt.Errorf("read proof: %w: %s", ErrFormat, what)
	}
	if len(b) > maxProof {
		return bad("too large")
	}
	head, note, ok := strings.Cut(string(b), "\n\n")
	if !ok {
		return bad("no checkpoint")
	}
	lines := strings.Split(head, "\n")
	if len(lines) < 3 || lines[0] != proofLine {
		return bad("no tlog-proof@v1 with extra data")
	}
	var p Proof
	extra, ok := strings.CutPrefix(lines[1], "extra ")
	entry, err := base64.StdEncoding.Strict().DecodeString(extra)
	if !ok || err != nil || strings.Contains(extra, "\r") {
		return bad("no entry in its extra data")
	}
	p.Entry = entry
	index, ok := strings.CutPrefix(lines[2], "index ")
	n, err := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil || strconv.FormatUint(n, 10) != index {
		return bad("index")
	}
	p.Index = n
	for _, l := range lines[3:] {
		h, err := base64.StdEncoding.Strict().DecodeString(l)
		if err != nil || len(h) != len(chain.Digest{}) || len(l) != 44 {
			return bad("hash")
		}
		p.Path = append(p.Path, chain.Digest(h))
	}
	p.Checkpoint = []byte(note)
	return p, nil
}

// Check holds the proof against the log's key, in note's form. It returns the
// entry and the checkpoint under which it stands.
func (p Proof) Check(key string) (chain.Entry, chain.Checkpoint, error) {
	origin, pub, err := ParseKey(key)
	if err != nil {
		return chain.Entry{}, chain.Checkpoint{}, fmt.Errorf("check proof: %w", err)
	}
	cp, err := chain.OpenCheckpointOf(p.Checkpoint, origin, pub)
	if err != nil {
		return chain.Entry{}, cp, fmt.Errorf("check proof: %w", err)
	}
	e, err := chain.Decode(p.Entry)
	if err == nil && e.Seq != p.Index {
		err = fmt.Errorf("%w: the entry is %d, the proof of %d", ErrFormat, e.Seq, p.Index)
	}
	if err != nil {
		return e, cp, fmt.Errorf("check proof: %w", err)
	}
	return e, cp, chain.CheckInclusion(p.Path, cp, p.Index, chain.Hash(p.Entry))
}
