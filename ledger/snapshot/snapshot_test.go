package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gettier.dev/gettierd/ledger/snapshot"
)

func TestDir(t *testing.T) {
	const origin = "gettier.dev/log/0011223344556677"
	d := snapshot.Dir(filepath.Join(t.TempDir(), "new", "place"))
	if b, n, err := d.Newest(origin); b != nil || n != 0 || err != nil {
		t.Fatal(b, n, err)
	}
	for _, size := range []uint64{9, 10, 100} {
		if err := d.Put(origin, size, []byte{byte(size)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put("gettier.dev/log/ff11223344556677", 5000, []byte("another log's")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(d), "0011223344556677-9.checkpoint"), []byte("not our spelling"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, n, err := d.Newest(origin)
	if string(b) != "d" || n != 100 || err != nil {
		t.Fatal(b, n, err)
	}
	if err := d.Put(origin, 100, []byte("d")); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	if err := d.Put(origin, 10, []byte("rewritten")); !errors.Is(err, snapshot.ErrForked) {
		t.Fatalf("another checkpoint of the same size: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(string(d), ".new-*")); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	// A link must not lead the reader elsewhere.
	if err := os.Symlink("/dev/zero", filepath.Join(string(d), snapshot.Name(origin, 200))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Newest(origin); err == nil {
		t.Fatal("a link was read")
	}
}
