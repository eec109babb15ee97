package confine

import (
	"strings"
	"syscall"
	"unsafe"
)

// From the kernel's headers, the same on every architecture that Go has; the
// standard library does not name them.
const (
	landlockCreateRuleset = 444
	landlockAddRule       = 445
	landlockRestrictSelf  = 446
	landlockVersion       = 1 // flag of create_ruleset: tell the version
	landlockPathBeneath   = 1

	fsWriteFile = 1 << 1
	fsMakeAll   = 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 // remove and make of every kind
	fsRefer     = 1 << 13
	fsTruncate  = 1 << 14

	netBindTCP    = 1 << 0
	netConnectTCP = 1 << 1
	scopeAbstract = 1 << 0
	scopeSignal   = 1 << 1

	oPath = 0x200000
)

// readOnly takes the rights to make, empty, rename and remove files from this
// thread, and to write to any but those under dir and Appendable, and to the
// devices that lead nowhere. Reading and running stay as they were. own is memory
// of the sensor's own, where everything is allowed, or "". Where the kernel can,
// processes and abstract sockets outside cannot be reached either, and without
// tcp no TCP connection is made.
func readOnly(dir, own string, tcp bool) (withoutTCP bool, err error) {
	abi, _, errno := syscall.Syscall(landlockCreateRuleset, 0, 0, landlockVersion)
	if errno != 0 {
		return false, errno
	}
	rights := uint64(fsWriteFile | fsMakeAll)
	attr := ruleset{}
	size := unsafe.Sizeof(attr.fs)
	if abi >= 4 && !tcp {
		attr.net = netBindTCP | netConnectTCP
		size += unsafe.Sizeof(attr.net)
	}
	if abi >= 6 {
		attr.scoped = scopeAbstract | scopeSignal
		size = unsafe.Sizeof(attr)
	}
	if abi >= 2 {
		rights |= fsRefer
	}
	if abi >= 3 {
		rights |= fsTruncate
	}
	attr.fs = rights
	set, _, errno := syscall.Syscall(landlockCreateRuleset, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return false, errno
	}
	defer syscall.Close(int(set))
	if dir == "/" {
		dir = "" // it is above everything
	}
	open := append([]string{own, dir}, Appendable[:]...)
	for _, path := range append(open, "/dev/null", "/dev/zero", "/dev/full", "/dev/tty") {
		if path == "" {
			continue
		}
		fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue // it is not there to be written to
		}
		rule := beneath{rights: fsWriteFile, parent: int32(fd)}
		switch {
		case path == own:
			rule.rights = rights
		case abi >= 3 && strings.HasPrefix(path, "/dev/"):
			rule.rights |= fsTruncate
		}
		_, _, errno := syscall.Syscall6(landlockAddRule, set, landlockPathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		syscall.Close(fd)
		if errno != 0 {
			return false, errno
		}
	}
	if _, _, errno := syscall.Syscall(landlockRestrictSelf, set, 0, 0); errno != 0 {
		return false, errno
	}
	return attr.net != 0, nil
}

// ruleset is struct landlock_ruleset_attr; older kernels know a shorter one.
type ruleset struct{ fs, net, scoped uint64 }

// beneath is struct landlock_path_beneath_attr, which is packed: 12 bytes, of
// which this one has 4 more behind.
type beneath struct {
	rights uint64
	parent int32
}
