package main

import (
	"bytes"
	"os"
	"testing"
)

// The table in the package is what this program writes.
func TestTableIsGenerated(t *testing.T) {
	want, err := os.ReadFile("../../gitleaks.go")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run(&got, pinned(t)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("gitleaks.go differs: go run ./gen > ../gitleaks.go")
	}
}

// pinned is the version in go.mod; a test binary has no build information of
// its dependencies.
func pinned(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := bytes.Cut(mod, []byte(gitleaks+" "))
	if !ok {
		t.Fatal("go.mod does not name gitleaks")
	}
	line, _, _ := bytes.Cut(after, []byte("\n"))
	return string(bytes.TrimSpace(line))
}
