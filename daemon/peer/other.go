//go:build !linux

package peer

import (
	"net"
	"net/netip"

	"gettier.dev/gettierd/ledger/lemma"
)

// Finder keeps the order in which to look for processes.
type Finder struct{}

// TCP is not built for this system.
func (*Finder) TCP(_, _ netip.AddrPort) (Process, error) { return Process{}, ErrUnsupported }

// TCP is not built for this system.
func TCP(_, _ netip.AddrPort) (Process, error) { return Process{}, ErrUnsupported }

// Unix is not built for this system.
func Unix(_ *net.UnixConn) (Process, error) { return Process{}, ErrUnsupported }

// Find is not built for this system.
func Find(_ int) (Process, error) { return Process{}, ErrUnsupported }

// Again is not built for this system.
func Again(Process) (Process, error) { return Process{}, ErrUnsupported }

// Leader is not built for this system.
func Leader(Process) (Process, bool) { return Process{}, false }

// Env is not built for this system.
func (Process) Env(string) (string, bool) { return "", false }

// Args is not built for this system.
func (Process) Args() []string { return nil }

// Name is not built for this system.
func (Process) Name() string { return "" }

// Alive is not built for this system.
func (Process) Alive() bool { return false }

// SameFiles is not built for this system.
func (Process) SameFiles() bool { return false }

// Chain is not built for this system.
func (Process) Chain() []Process { return nil }

// Person is not built for this system.
func Chat(Process) (lemma.Answerer, error) {
	return lemma.Answerer{}, &Refusal{Why: "processes cannot be looked up on this system"}
}

// Person is not built here.
func Person(Process, uint64) (lemma.Answerer, error) {
	return lemma.Answerer{}, &Refusal{Why: "who calls cannot be seen on this system"}
}
