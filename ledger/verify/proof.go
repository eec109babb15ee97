package verify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrProof is wrapped by every refusal of a proof.
var ErrProof = errors.New("not a proof")

// Proof checks a C2SP tlog-proof whose extra data is the entry, against the
// log's key as note tools write it. It returns the entry and the checkpoint
// that it stands under.
func Proof(file []byte, key string) (Entry, Checkpoint, error) {
	bad := func(what string) (Entry, Checkpoint, error) {
		return Entry{}, Checkpoint{}, fmt.Errorf("%w: %s", ErrProof, what)
	}
	k, err := ParseKey(key)
	if err != nil {
		return Entry{}, Checkpoint{}, err
	}
	if len(file) > 256<<10 {
		return bad("too large")
	}
	head, signed, ok := strings.Cut(string(file), "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return bad("its first line")
	}
	decode := func(s string) ([]byte, bool) {
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		return b, err == nil && base64.StdEncoding.EncodeToString(b) == s
	}
	extra, ok1 := strings.CutPrefix(lines[1], "extra ")
	raw, ok2 := decode(extra)
	digits, ok3 := strings.CutPrefix(lines[2], "index ")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok1 || !ok2 || !ok3 || err != nil || strconv.FormatUint(n, 10) != digits {
		return bad("its extra data or index")
	}
	var path []Digest
	for _, l := range lines[3:] {
		h, ok := decode(l)
		if !ok || len(h) != len(Digest{}) {
			return bad("a hash")
		}
		path = append(path, Digest(h))
	}
	c, err := OpenCheckpoint([]byte(signed), k)
	if err != nil {
		return Entry{}, c, err
	}
	e, err := ParseEntry(raw)
	if err != nil {
		return e, c, err
	}
	if root, ok := RootFromProof(path, c.Size, n, LeafHash(raw)); e.Seq != n || !ok || root != c.Root {
		return bad("it does not lead from this entry to the checkpoint's root")
	}
	return e, c, nil
}
