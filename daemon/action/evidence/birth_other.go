//go:build !linux

package evidence

import (
	"io/fs"
	"time"
)

// birth is not looked up on this system: what is young is not known to be.
func birth(string) (time.Time, bool) { return time.Time{}, false }

// deviceOf: where a file system begins is not known here, so nothing is vouched for.
func deviceOf(fs.FileInfo) (uint64, bool) { return 0, false }

// changed is when a file's content changed last, as the file says.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
