package gitrepo

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags open a file for reading and never wait for the other end of a pipe.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

func fileInfo(path string) (fs.FileInfo, error) { return os.Lstat(path) }
