package sensors

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity changes whenever a file's content may have changed. The change time
// counts too: unlike the modification time, no program can set it back.
func identity(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}
