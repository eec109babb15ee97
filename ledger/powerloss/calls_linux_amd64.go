package powerloss

import "golang.org/x/sys/unix"

// oldCalls change names by path alone. Go does not use them here.
var oldCalls = map[int]bool{
	unix.SYS_CREAT: true, unix.SYS_MKDIR: true, unix.SYS_RMDIR: true, unix.SYS_RENAME: true, unix.SYS_LINK: true, unix.SYS_UNLINK: true,
	unix.SYS_TRUNCATE: true,
}
