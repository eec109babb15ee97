package ipcserver_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/archive"
)

// TestAuditExport reads a whole log over the socket and checks it; one that is
// cut off on the way is an error, whatever has arrived.
func TestAuditExport(t *testing.T) {
	b := ipctest.New()
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	defer c.Close()
	var tar bytes.Buffer
	if err := c.Export(t.Context(), &tar); err != nil {
		t.Fatal(err)
	}
	r, err := archive.Check(context.Background(), archive.Stream(&tar), archive.Options{})
	if err != nil || !r.OK() || r.Size != 1 {
		t.Fatalf("%v %+v", err, r)
	}
	keys, err := c.AuditKeys(t.Context())
	if err != nil || string(keys) != r.Keys[0]+"\n" {
		t.Fatalf("%q %v", keys, err)
	}
	file, err := c.Proof(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := archive.ParseProof(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, cp, err := p.Check(r.Keys[0]); err != nil || cp.Size != 1 {
		t.Fatalf("%v %+v", err, cp)
	}
	if _, err := c.Proof(t.Context(), 9); !isStatus(err, 404) {
		t.Fatalf("a proof of nothing: %v", err)
	}

	b.Broken = errors.New("the disk is gone")
	if err := c.Export(t.Context(), &tar); err == nil {
		t.Fatal("an export that was cut off counts as whole")
	}
}
