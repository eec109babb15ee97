package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/archive"
)

// TestForeign has other people's programs check an export with three levels of
// tiles, and the same export with one byte changed. The program is built from
// archive/testdata/foreign; GETTIER_TLOG_FOREIGN names it.
func TestForeign(t *testing.T) {
	tool := os.Getenv("GETTIER_TLOG_FOREIGN")
	if tool == "" {
		t.Skip("GETTIER_TLOG_FOREIGN names no program; build it from ledger/archive/testdata/foreign")
	}
	const size = 70_001
	l := grown(t, size-1)
	rotate(t, l, laterKey(1)) // the newest checkpoint is another key's than those before
	dir := filepath.Join(t.TempDir(), "x")
	if err := archive.Unpack(context.Background(), bytes.NewReader(exported(t, l)), dir); err != nil {
		t.Fatal(err)
	}
	args := []string{dir}
	for _, seq := range []uint64{0, 65535, 65536, size - 1} {
		p, err := l.Proof(seq)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), fmt.Sprintf("%d.tlog-proof", seq))
		if err := os.WriteFile(name, p, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		return string(out), err
	}
	out, err := run(args...)
	if want := fmt.Sprintf("ok: %d entries, ", size); err != nil || !strings.Contains(out, want) || !strings.Contains(out, "4 proof files") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{"tile/entries/137", "tile/0/137", "tile/1/001.p/17", "tile/2/000.p/1", "checkpoint", "checkpoints", "keys"} {
		name := filepath.Join(dir, file)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(dir); err == nil || !strings.Contains(out, "refused:") {
			t.Errorf("%s with a changed byte passes: %v\n%s", file, err, out)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
