package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// relayEnv makes the test binary a relay instead of a test run.
const relayEnv = "GETTIER_E2E_RELAY"

func TestMain(m *testing.M) {
	if os.Getenv(relayEnv) != "" {
		os.Exit(relay())
	}
	if role := os.Getenv(benchEnv); role != "" {
		os.Exit(benchRole(role))
	}
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked { // these tests wait for processes and timers far more than they compute
		if err := flag.Set("test.parallel", "5"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir) // a temporary directory: nobody misses what stays
	}
	os.Exit(code)
}

// builtDir is where the binaries under test are.
var builtDir string

// build makes both binaries, with the flags of a plain build so that its cache
// serves, and a copy of this test binary that any user may run.
var build = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "gettier-e2e-bin-")
	if err != nil {
		return err
	}
	builtDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"gettier.dev/gettierd/daemon/gettierd", "gettier.dev/gettierd/tui/gettier").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "relay"), data, 0o755)
})

// binary is the path of a built program: gettierd, gettier or relay.
func binary(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the programs are not built")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here to build the programs with")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(builtDir, name)
}

// relay stands in for an agent: what a test sends to it goes to the daemon byte
// for byte from this process, whose working directory and user the daemon sees.
// Each line on standard input names the daemon's address from then on
// (tcp:HOST:PORT or unix:PATH); it ends with its input.
func relay() int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ln.Addr())
	var target atomic.Value
	target.Store("")
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go carry(c.(*net.TCPConn), target.Load().(string))
		}
	}()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		target.Store(in.Text())
		fmt.Println("ok")
	}
	return 0
}

// halfCloser is a connection that can end its sending side alone.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// carry copies both ways. When the client leaves, the daemon sees it at once;
// when the daemon ends, all that it said arrives first.
func carry(client *net.TCPConn, target string) {
	defer client.Close()
	network, addr, _ := strings.Cut(target, ":")
	c, err := net.Dial(network, addr)
	if err != nil {
		return
	}
	defer c.Close()
	server := c.(halfCloser)
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = io.Copy(client, server) // either end may go first
		_ = client.CloseWrite()
	}()
	if _, err := io.Copy(server, client); err != nil {
		<-said // the daemon takes no more, but what it said arrives
	}
}
