package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// pair is a connected pair of unix sockets: our end, and the number of the
// descriptor that a daemon is given.
func pair(t *testing.T) (net.Conn, int) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "ours")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, fds[1]
}

// home is a place for everything that a daemon writes; short, for the socket.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start runs a daemon in dir until the test ends or stop is called.
func start(t *testing.T, dir string, more ...string) (socket string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1) // read once, by stop
	socket = filepath.Join(dir, "run", "d.sock")
	args := append([]string{"--state", filepath.Join(dir, "state"), "--config", filepath.Join(dir, "gettierd.yaml"), "--socket", socket, "--proxy-port", "0"}, more...)
	go func() {
		done <- run(ctx, args, []string{"HOME=" + dir}, in, &errs)
		in.Close()
	}()
	var ready struct{ Ready bool }
	if err := json.NewDecoder(out).Decode(&ready); err != nil || !ready.Ready {
		cancel()
		t.Fatalf("exit %d, not ready: %v %s", <-done, err, errs.String())
	}
	go io.Copy(io.Discard, out)
	stopped := false
	stop = func() int {
		if stopped {
			return 0
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { stop() })
	return socket, stop
}

// The way in over a descriptor is for a state of its own that is new.
func TestAnswerFDRefusals(t *testing.T) {
	dir := home(t)
	_, stop := start(t, dir)
	if code := stop(); code != exitOK {
		t.Fatalf("exit %d", code)
	}
	state := filepath.Join(dir, "state")
	if _, err := os.Stat(filepath.Join(state, "ledger.db")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(state, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	other := home(t)
	elsewhere := filepath.Join(other, "gettierd.yaml")
	if err := os.WriteFile(elsewhere, []byte("version: 1\nledger:\n  path: "+filepath.Join(state, "ledger.db")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	filed, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		fd   int // 0 = a socket
		says string
	}{
		{"an existing state", []string{"--state", state}, 0, "not new"},
		{"no state", nil, 0, "it goes with --state"},
		{"the usual state, named", []string{"--state", ""}, 0, "it goes with --state"},
		{"another state's ledger", []string{"--state", filepath.Join(other, "state"), "--config", elsewhere}, 0, "is there already"},
		{"a file", []string{"--state", filepath.Join(other, "state2")}, filed, "--answer-fd"},
		{"nothing open", []string{"--state", filepath.Join(other, "state3")}, 999, "--answer-fd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, fd := pair(t)
			if c.fd != 0 {
				syscall.Close(fd)
				fd = c.fd
			}
			var errs bytes.Buffer
			args := append([]string{"--answer-fd", strconv.Itoa(fd), "--proxy-port", "0", "--socket", filepath.Join(other, "run", "d.sock")}, c.args...)
			code := run(t.Context(), args, []string{"HOME=" + other}, io.Discard, &errs)
			if code != exitUsage && code != exitInternal || !strings.Contains(errs.String(), c.says) {
				t.Errorf("exit %d, says %q, want %q", code, errs.String(), c.says)
			}
			if c.fd == 0 && code == exitUsage {
				syscall.Close(fd) // refused before it was taken over
			}
			client := ipc.Over(ours, "harness")
			defer client.Close()
			if c.fd == 0 && code == exitUsage {
				if _, err := client.Status(t.Context()); err == nil {
					t.Error("somebody answers at the other end")
				}
			}
		})
	}
	after, err := os.ReadFile(filepath.Join(state, "ledger.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the ledger was written to (%v)", err)
	}
}

// Over the descriptor holds are answered and nothing else that is a person's,
// and the socket knows of no such right.
func TestAnswerFD(t *testing.T) {
	dir := home(t)
	ours, fd := pair(t)
	socket, _ := start(t, dir, "--answer-fd", strconv.Itoa(fd))
	given := ipc.Over(ours, "harness")
	defer given.Close()
	if _, err := given.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := func(err error) int {
		var p *ipc.Problem
		if errors.As(err, &p) {
			return p.Status
		}
		return 0
	}
	answer := ipc.HoldAnswer{Items: []ipc.ItemAnswer{{Item: "1", Answer: lemma.AnswerConfirm}}}
	if _, err := given.AnswerHold(t.Context(), "h_none", answer); status(err) != 404 {
		t.Errorf("an answer over the descriptor: %v", err)
	}
	byPath := ipc.New(socket, "harness")
	defer byPath.Close()
	ways := map[string]*ipc.Client{"descriptor": given, "socket": byPath}
	if tty, err := os.Open("/dev/tty"); err == nil { // whoever runs this test in a terminal may be a person
		tty.Close()
		delete(ways, "socket")
	} else if _, err := byPath.AnswerHold(t.Context(), "h_none", answer); status(err) != 403 {
		t.Errorf("an answer over the socket: %v", err)
	}
	for name, c := range ways {
		for call, err := range map[string]error{
			"tell":    second(c.Tell(t.Context(), ipc.Tell{Scope: "host", Claim: "the sky is green"})),
			"project": second(c.AddProject(t.Context(), ipc.Project{Root: dir})),
			"remove":  c.RemoveProject(t.Context(), "shop"),
			"approve": second(c.ApproveSensors(t.Context(), ipc.SensorApproval{Sensors: []ipc.SensorPin{{Qualified: "user/a", Hash: "00"}}})),
			"config":  second(c.ApproveConfig(t.Context(), ipc.ConfigApproval{Hash: "00"})),
			"draft":   second(c.TrySensor(t.Context(), "user/a", ipc.SensorTry{Draft: true})),
			"turn":    second(c.ForgetTurn(t.Context(), "t_x")),
			"forget":  second(c.InvalidateFact(t.Context(), "f_x", ipc.Invalidation{Reason: "no"})),
		} {
			if status(err) != 403 {
				t.Errorf("%s over the %s: %v", call, name, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
