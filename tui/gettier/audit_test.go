package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc/ipctest"
)

// TestAuditFiles takes a log through every form that it has: exported from the
// daemon, checked by both, imported, checked as a file, exported from the file.
func TestAuditFiles(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	t.Chdir(t.TempDir())
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := w.gettier(args...)
		if code != want {
			t.Fatalf("gettier %s: exit %d\n%s\n%s", strings.Join(args, " "), code, out, errs)
		}
		return out + errs
	}
	run(exitOK, "audit", "export", "-o", "log.tar")
	run(exitOK, "audit", "export", "-o", "log")
	run(exitRefused, "audit", "export", "-o", "log.tar")
	run(exitRefused, "audit", "export", "-o", "log")
	run(exitUsage, "audit", "export", "-o", "no/such/place")
	run(exitOK, "audit", "checkpoint", "-o", "out")
	run(exitRefused, "audit", "checkpoint", "-o", "out")
	key := strings.TrimSpace(run(exitOK, "audit", "checkpoint", "--keys"))
	run(exitOK, "audit", "proof", "0", "-o", "p.tlog-proof")
	run(exitUsage, "audit", "proof", "x")
	run(exitUsage, "audit", "proof", "7")
	run(exitOK, "audit", "import", "log", "-o", "copy.db")
	run(exitRefused, "audit", "import", "log", "-o", "copy.db")
	run(exitOK, "audit", "export", "--ledger", "copy.db", "-o", "again.tar")
	if a, b := readFile(t, "log.tar"), readFile(t, "again.tar"); !bytes.Equal(a, b) {
		t.Error("the imported ledger exports other bytes")
	}
	other := strings.Replace(key, "+", "0+", 1)
	for _, path := range []string{"log", "log.tar", "copy.db", "p.tlog-proof"} {
		for _, more := range [][]string{nil, {"--independent"}, {"--key", key}, {"--independent", "--key", key}} {
			run(exitOK, append([]string{"audit", "verify", path}, more...)...)
		}
		for _, more := range [][]string{{"--key", other}, {"--independent", "--key", other}} {
			run(exitFound, append([]string{"audit", "verify", path}, more...)...)
		}
	}
	run(exitUsage, "audit", "verify", "out")
	run(exitUsage, "audit", "verify", "nothing")

	// One byte of each copy.
	tar := readFile(t, "log.tar")
	tar[bytes.Index(tar, []byte(`"version":"test"`))+12] ^= 1
	writeFile(t, "log.tar", tar)
	// Pages that are free now may hold it, too.
	db := bytes.ReplaceAll(readFile(t, "copy.db"), []byte(`"version":"test"`), []byte(`"version":"tesu"`))
	writeFile(t, "copy.db", db)
	proof := readFile(t, "p.tlog-proof")
	proof[60] ^= 1
	writeFile(t, "p.tlog-proof", proof)
	for _, path := range []string{"log.tar", "copy.db"} {
		for _, more := range [][]string{nil, {"--independent"}} {
			out := run(exitFound, append([]string{"audit", "verify", path, "--json"}, more...)...)
			var c check
			if err := json.Unmarshal([]byte(out), &c); err != nil || c.OK || c.BadSeq != 0 || c.What == "" || c.Independent != (more != nil) {
				t.Errorf("%s %v: %v %s", path, more, err, out)
			}
		}
	}
	run(exitFound, "audit", "verify", "p.tlog-proof")
	run(exitFound, "audit", "verify", "p.tlog-proof", "--independent")
	if out := run(exitFound, "audit", "import", "log.tar", "-o", "new.db"); !strings.Contains(out, "nothing was written") {
		t.Error(out)
	}
	if left, err := filepath.Glob("*new.db*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if left, err := filepath.Glob(".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestAuditExportCutOff leaves nothing where the export should have been.
func TestAuditExportCutOff(t *testing.T) {
	w := newWorld(t, ipctest.Anyone)
	t.Chdir(t.TempDir())
	w.b.Broken = os.ErrClosed
	for _, target := range []string{"x", "x.tar"} {
		if code, out, _ := w.gettier("audit", "export", "-o", target); code == exitOK {
			t.Errorf("%s: %s", target, out)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
