package peer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func pair(t testing.TB, network, addr string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skip("cannot listen:", err)
	}
	defer l.Close()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		got <- c
	}()
	client, err = net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, ok := <-got
	if !ok {
		t.Fatal("nothing was accepted")
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func ends(c net.Conn) (local, remote netip.AddrPort) {
	return c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
}

func TestTCPFindsOurselves(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			_, server := pair(t, "tcp", addr)
			p, err := TCP(ends(server))
			if err != nil {
				t.Fatal(err)
			}
			checkSelf(t, p)
		})
	}
}

func checkSelf(t *testing.T, p Process) {
	t.Helper()
	cwd, _ := os.Getwd()
	exe, _ := os.Executable()
	if p.PID != os.Getpid() || p.UID != os.Getuid() || p.Cwd != cwd || p.Exe != exe || p.Start == 0 {
		t.Errorf("got %+v", p)
	}
	if !p.Alive() {
		t.Error("we are not alive")
	}
	if chain := p.Chain(); len(chain) == 0 || chain[0].PID != os.Getppid() {
		t.Errorf("chain %v", chain)
	}
}

func TestTCPTableAgrees(t *testing.T) {
	_, server := pair(t, "tcp", "127.0.0.1:0")
	local, remote := ends(server)
	a, err := diag(remote, local)
	if err != nil {
		t.Skip("no netlink here:", err)
	}
	b, err := fromTable(remote, local)
	if err != nil || a != b {
		t.Errorf("netlink %v, table %v, %v", a, b, err)
	}
}

func TestTCPOfNobody(t *testing.T) {
	_, err := TCP(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	if !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	_, err = TCP(netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.7:2"))
	if !errors.Is(err, ErrRemote) {
		t.Error(err)
	}
}

func TestUnixFindsOurselves(t *testing.T) {
	_, server := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	p, err := Unix(server.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	checkSelf(t, p)
}

func BenchmarkTCP(b *testing.B) {
	_, server := pair(b, "tcp", "127.0.0.1:0")
	local, remote := ends(server)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if _, err := TCP(local, remote); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		f := new(Finder)
		for b.Loop() {
			if _, err := f.TCP(local, remote); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestTCPOfTheOneWhoOpenedIt: a child that inherits a socket is not its peer.
func TestTCPOfTheOneWhoOpenedIt(t *testing.T) {
	client, server := pair(t, "tcp", "127.0.0.1:0")
	f, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Skipf("no child can be started: %v", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	finder := &Finder{recent: []int{cmd.Process.Pid}} // the child is looked at first
	local, remote := ends(server)
	p, err := finder.TCP(local, remote)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != os.Getpid() {
		t.Errorf("the peer is %d, we are %d and the child %d", p.PID, os.Getpid(), cmd.Process.Pid)
	}
}
