// Command foreign checks an export with other people's programs: tessera's fsck
// over the tiles, transparency-dev/merkle over inclusion proofs that tessera
// makes from them, over those that gettierd made, and over the way from each
// older checkpoint to the newest.
//
//	foreign EXPORT-DIRECTORY [PROOF…]
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "foreign EXPORT-DIRECTORY [PROOF…]")
		os.Exit(2)
	}
	if err := check(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Printf("refused: %.300s\n", err.Error()) // fsck prints whole tiles
		os.Exit(1)
	}
}

func check(ctx context.Context, dir string, proofs []string) error {
	keys, err := os.ReadFile(filepath.Join(dir, "keys"))
	if err != nil {
		return err
	}
	// The last key signed the newest checkpoint, earlier ones what is before it.
	var all []note.Verifier
	for line := range strings.Lines(string(keys)) {
		v, err := note.NewVerifier(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return errors.New("no keys")
	}
	v := all[len(all)-1]
	files := &client.FileFetcher{Root: dir}
	head, _, _, err := client.FetchCheckpoint(ctx, files.ReadCheckpoint, v, v.Name())
	if err != nil {
		return err
	}
	// fsck waits for ever when a worker has found something and its queue, which
	// has room for N, is full: give it room for all tiles.
	if err := fsck.New(v.Name(), v, files, leaves, fsck.Opts{N: uint(head.Size/100 + 16)}).Check(ctx); err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	build, err := client.NewProofBuilder(ctx, head.Size, files.ReadTile)
	if err != nil {
		return err
	}
	hasher := rfc6962.DefaultHasher
	inclusions := 0
	for i := uint64(0); i < head.Size; i += max(1, head.Size/97) {
		data, err := client.GetEntryBundle(ctx, files.ReadEntryBundle, i/256, head.Size)
		if err != nil {
			return err
		}
		path, err := build.InclusionProof(ctx, i)
		if err != nil {
			return err
		}
		if err := proof.VerifyInclusion(hasher, i, head.Size, hasher.HashLeaf(data.Entries[i%256]), path, head.Hash); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		inclusions++
	}
	older, err := consistent(ctx, dir, all, head, build)
	if err != nil {
		return err
	}
	for _, name := range proofs {
		if err := own(name, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Printf("ok: %d entries, %d inclusion proofs, %d older checkpoints, %d proof files\n", head.Size, inclusions, older, len(proofs))
	return nil
}

func leaves(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	out := make([][]byte, len(b.Entries))
	for i, e := range b.Entries {
		out[i] = rfc6962.DefaultHasher.HashLeaf(e)
	}
	return out, nil
}

// consistent proves that the log only grew since each kept checkpoint.
func consistent(ctx context.Context, dir string, all []note.Verifier, head *log.Checkpoint, build *client.ProofBuilder) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoints"))
	if err != nil {
		return 0, err
	}
	n := 0
	for len(raw) > 0 {
		text, rest, _ := bytes.Cut(raw, []byte("\n\n"))
		sigs, rest, ok := bytes.Cut(rest, []byte("\n\n"))
		if !ok {
			return n, errors.New("checkpoints: cut off")
		}
		raw = rest
		var cp *log.Checkpoint
		for _, v := range all {
			if cp, _, _, err = log.ParseCheckpoint(fmt.Appendf(nil, "%s\n\n%s\n", text, sigs), v.Name(), v); err == nil {
				break
			}
		}
		if err != nil {
			return n, err
		}
		path, err := build.ConsistencyProof(ctx, cp.Size, head.Size)
		if err != nil {
			return n, err
		}
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, cp.Size, head.Size, path, cp.Hash, head.Hash); err != nil {
			return n, fmt.Errorf("checkpoint of %d: %w", cp.Size, err)
		}
		n++
	}
	return n, nil
}

// own checks a C2SP tlog-proof whose extra data is the entry.
func own(name string, v note.Verifier) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, signed, _ := strings.Cut(string(raw), "\n\n")
	lines := strings.Split(head, "\n")
	if len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return errors.New("no tlog-proof")
	}
	entry, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(lines[1], "extra "))
	if err != nil {
		return err
	}
	index, err := strconv.ParseUint(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return err
	}
	var path [][]byte
	for _, l := range lines[3:] {
		h, err := base64.StdEncoding.DecodeString(l)
		if err != nil {
			return err
		}
		path = append(path, h)
	}
	cp, _, _, err := log.ParseCheckpoint([]byte(signed), v.Name(), v)
	if err != nil {
		return err
	}
	return proof.VerifyInclusion(rfc6962.DefaultHasher, index, cp.Size, rfc6962.DefaultHasher.HashLeaf(entry), path, cp.Hash)
}
