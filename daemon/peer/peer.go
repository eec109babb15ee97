// Package peer finds out who is at the other end of a local connection: which
// process, where it runs, and whether a person at a terminal stands behind it.
// It looks at the kernel's view only, never at what the peer says of itself,
// and keeps nothing between connections but the order in which to look.
//
// What the answer is good for (scope, principal, who may answer holds) is the
// caller's business.
package peer

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart. ErrUnknown is wrapped by every failure to
// name a process.
var (
	// ErrUnknown: the process cannot be named.
	ErrUnknown = errors.New("peer is unknown")
	// ErrRemote: the other end is not on this machine.
	ErrRemote = fmt.Errorf("%w: it is not on this machine", ErrUnknown)
	// ErrOtherUser: the connection belongs to another user, whose processes
	// cannot be looked into. Process.UID is set.
	ErrOtherUser = fmt.Errorf("%w: it belongs to another user", ErrUnknown)
	// ErrUnsupported: this system has no way that is built here.
	ErrUnsupported = fmt.Errorf("%w: not built for this system", ErrUnknown)
)

// Process is a process as it was when it was looked at. PID and Start together
// name it for ever; all methods read anew and fail once it is gone.
type Process struct {
	PID   int
	UID   int    // real user of the process, or owner of the socket
	Start uint64 // clock ticks since boot
	Exe   string // absolute; "" where it may not be read
	Cwd   string // absolute; "" where it may not be read
}

// Same reports whether both are one process.
func (p Process) Same(q Process) bool { return p.PID == q.PID && p.Start == q.Start && p.PID != 0 }

func (p Process) String() string { return fmt.Sprintf("%d:%d", p.PID, p.Start) }

// Refusal says why a peer does not count as a person, and how to do it right.
type Refusal struct {
	Why  string
	Hint string
}

func (r *Refusal) Error() string {
	if r.Hint == "" {
		return "not a person's call: " + r.Why
	}
	return "not a person's call: " + r.Why + "; " + r.Hint
}
