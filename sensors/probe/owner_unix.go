//go:build unix

package probe

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user that a file belongs to, -1 when that cannot be told.
func ownerOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
