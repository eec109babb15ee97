package daemon

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gettier.dev/gettierd/ledger/powerloss"
)

const keyDir = "DAEMON_KEY_DIR"

// TestKeyOutlastsPower: a key that was used is there after a power cut, and one
// that was not yet never looks broken.
func TestKeyOutlastsPower(t *testing.T) {
	if dir := os.Getenv(keyDir); dir != "" { // the process that is cut off
		b, err := secret(filepath.Join(dir, "keys", "log"), 32, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("key %x\n", b)
		return
	}
	root := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKeyOutlastsPower$")
	cmd.Env = append(os.Environ(), keyDir+"="+root)
	rec, err := powerloss.Record(t.Context(), cmd, root)
	if errors.Is(err, powerloss.ErrTrace) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	rng, n := mathrand.New(mathrand.NewPCG(1, 1)), 0
	tried := func(rec *powerloss.Recording) error {
		for _, cut := range rec.Cuts() {
			for _, how := range append(powerloss.Survivals, powerloss.Some, powerloss.Some) {
				n++
				dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
				if err := rec.Leave(dir, cut, how, rng); err != nil {
					t.Fatal(err)
				}
				got, err := secret(filepath.Join(dir, "keys", "log"), 32, rand.Reader)
				if err != nil {
					return err
				}
				if used := rec.Marks(cut); len(used) > 0 && !bytes.Contains(used, fmt.Appendf(nil, "key %x\n", got)) {
					return fmt.Errorf("after cut %d with %s of the rest the key is another", cut, how)
				}
			}
		}
		return nil
	}
	if err := tried(rec); err != nil {
		t.Error(err)
	}
	if err := tried(rec.WithoutSyncs(func(string, int) bool { return true })); err == nil {
		t.Error("without a sync nothing was lost: this test sees nothing")
	}
}
