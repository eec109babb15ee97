package ipc_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/ledger/lemma"
)

// A client that was given its connection uses it for every call and makes no
// other, whatever happens to it.
func TestOver(t *testing.T) {
	path := ipctest.Socket(t)
	b := ipctest.New()
	b.HoldRows = []lemma.Hold{{ID: "h_1", State: lemma.HoldOpen, Items: []lemma.HoldItem{{ID: "1"}}}}
	stop := ipctest.Serve(t, path, ipcserver.Options{Backend: b, Kept: true, Person: func(*net.UnixConn) (lemma.Answerer, error) {
		return lemma.Answerer{Via: "harness"}, nil
	}})
	given := func() *ipc.Client {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c := ipc.Over(conn, "tui")
		t.Cleanup(c.Close)
		return c
	}
	c := given()
	var wg sync.WaitGroup
	for range 8 { // at once, over the one connection
		wg.Go(func() {
			if _, err := c.Status(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var p *ipc.Problem
	if _, err := c.Fact(t.Context(), "f_x"); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("a refusal: %v", err)
	}
	h, err := c.AnswerHold(t.Context(), "h_1", ipc.HoldAnswer{Items: []ipc.ItemAnswer{{Item: "1", Answer: lemma.AnswerWaive, Text: "no"}}})
	if err != nil || h.Items[0].Answer == nil || h.Items[0].Answer.By.Via != "harness" {
		t.Errorf("answer %+v, %v", h, err)
	}

	off, cancel := context.WithCancel(t.Context())
	cancel()
	called := given()
	if _, err := called.Status(off); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	called.Close()

	stop()
	var u *ipc.Unreachable
	for range 2 {
		if _, err := c.Status(t.Context()); !errors.As(err, &u) {
			t.Errorf("after the server's end: %v", err)
		}
	}
	c.Close()
	fresh := ipctest.Socket(t)
	ipctest.Serve(t, fresh, ipcserver.Options{Backend: b})
	if _, err := c.Status(t.Context()); !errors.As(err, &u) || u.Path == fresh {
		t.Errorf("after Close: %v", err)
	}
}
