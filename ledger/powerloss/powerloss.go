// Package powerloss records what a program asks of a disk and makes the files
// that a power cut could have left at any moment of it. A process that is killed
// loses nothing that it wrote, so only this shows a sync that is missing.
//
// The model is what POSIX promises and no file system's kindness. A write or a
// change of size is durable once a later fsync or fdatasync of the same file has
// returned; until then any of its sectors may be there or not, in any order. A
// name (created, linked, renamed, removed) is durable once its directory was
// synced; until then the first few changes of a directory may be there.
//
// It is for tests. It judges nothing: whoever uses it opens what is left.
package powerloss

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Sector is the largest piece that a disk writes whole.
const Sector = 4 << 10

// kind of a recorded event.
type kind int

const (
	kWrite  kind = 1 // data at off
	kResize kind = 2 // off is the new size
	kSync   kind = 3 // returned; it covers the events of its file before from
	kName   kind = 4 // path got file; file 0: path was removed
	kRename kind = 5 // path took the file of was, which is gone
	kMark   kind = 6 // data went to standard output
)

// event is one call that succeeded, in the order of their returns; a mark counts
// from the moment of its call.
type event struct {
	kind kind
	file uint64 // numbered as they come to be; of a sync, a directory, too
	path string // of names, absolute; of a sync, what was synced
	was  string
	data []byte
	off  int64 // of a name, -1 for a directory
	from int   // of a sync: how many events there were when it was called
	lost bool  // of a sync: it does nothing
}

// Recording is what one process did to the files below one directory, which was
// empty before.
type Recording struct {
	root   string
	events []event
}

// rootFile is the number of the directory itself; other files count on from it.
const rootFile = 1

// ErrTrace: no process can be traced here.
var ErrTrace = errors.New("processes cannot be traced here")

// Writes is how many writes and changes of size were recorded.
func (r *Recording) Writes() int {
	n := 0
	for _, e := range r.events {
		if e.kind == kWrite || e.kind == kResize {
			n++
		}
	}
	return n
}

// Cuts are the moments worth looking at, as numbers of events that have returned:
// just before each sync does its work, when most hangs in the air, and the end.
func (r *Recording) Cuts() []int {
	var cuts []int
	for i, e := range r.events {
		if e.kind == kSync {
			cuts = append(cuts, i)
		}
	}
	return append(cuts, len(r.events))
}

// Marks is what the process had said on standard output by then.
func (r *Recording) Marks(cut int) []byte {
	var out []byte
	for _, e := range r.events[:cut] {
		if e.kind == kMark {
			out = append(out, e.data...)
		}
	}
	return out
}

// WithoutSyncs is the same run by a program that lacks the syncs for which drop
// says so: the n-th, from 0, of the file or directory with this path below root
// ("." is root). Cuts stay where they are.
func (r *Recording) WithoutSyncs(drop func(path string, n int) bool) *Recording {
	out := &Recording{root: r.root, events: slices.Clone(r.events)}
	seen := map[string]int{}
	for i := range out.events {
		if e := &out.events[i]; e.kind == kSync {
			e.lost = drop(e.path, seen[e.path])
			seen[e.path]++
		}
	}
	return out
}

// Survival says what remains of that which no sync has made durable.
type Survival int

const (
	Nothing Survival = 0
	All     Survival = 1
	First   Survival = 2 // the first of it, as far as chance has it
	Last    Survival = 3 // the last of it
	Some    Survival = 4 // each sector as chance has it
)

// Survivals are all kinds of survival.
var Survivals = []Survival{Nothing, All, First, Last, Some}

func (s Survival) String() string {
	return [...]string{"nothing", "all", "first", "last", "some"}[s]
}

// content is a file as sparse sectors of size bytes each.
type content struct {
	sectors map[int64][]byte
	size    int64
}

func (c *content) write(off int64, data []byte) {
	for len(data) > 0 {
		at, start := off/Sector, off%Sector
		n := min(int64(len(data)), Sector-start)
		old := make([]byte, Sector)
		copy(old, c.sectors[at])
		copy(old[start:], data[:n])
		c.sectors[at] = old
		off, data = off+n, data[n:]
	}
	c.size = max(c.size, off)
}

func (c *content) resize(size int64) {
	if size < c.size {
		maps.DeleteFunc(c.sectors, func(at int64, _ []byte) bool { return at*Sector >= size })
		if last, ok := c.sectors[size/Sector]; ok {
			whole := make([]byte, Sector)
			copy(whole, last[:size%Sector])
			c.sectors[size/Sector] = whole
		}
	}
	c.size = size
}

// Leave makes below dir, which is empty, what a cut could have left.
func (r *Recording) Leave(dir string, cut int, how Survival, rng *rand.Rand) error {
	durable := r.durable(cut)
	files := map[uint64]*content{}
	names := map[string]uint64{r.root: rootFile}
	var loose []func()             // pieces of writes without a sync
	moves := map[string][]func(){} // changes of names by directory, the same
	for i, e := range r.events[:cut] {
		switch e.kind {
		case kWrite, kResize:
			c := files[e.file]
			if c == nil {
				c = &content{sectors: map[int64][]byte{}}
				files[e.file] = c
			}
			switch {
			case e.kind == kResize && durable[i]:
				c.resize(e.off)
			case e.kind == kResize:
				loose = append(loose, func() { c.resize(e.off) })
			case durable[i]:
				c.write(e.off, e.data)
			default:
				for off, data := e.off, e.data; len(data) > 0; {
					n := min(int64(len(data)), Sector-off%Sector)
					piece, at := data[:n], off
					loose = append(loose, func() { c.write(at, piece) })
					off, data = off+n, data[n:]
				}
			}
		case kName, kRename:
			apply := func() {
				file := e.file
				if e.kind == kRename {
					file = names[e.was]
					delete(names, e.was)
				}
				if file == 0 {
					delete(names, e.path)
					return
				}
				names[e.path] = file
			}
			if durable[i] {
				apply()
				continue
			}
			d := filepath.Dir(e.path)
			moves[d] = append(moves[d], apply)
		}
	}
	for i, keep := range how.choose(len(loose), rng) {
		if keep {
			loose[i]()
		}
	}
	for _, d := range slices.Sorted(maps.Keys(moves)) {
		n := len(moves[d])
		switch how {
		case Nothing:
			n = 0
		case First, Last, Some:
			n = rng.IntN(n + 1)
		}
		for _, apply := range moves[d][:n] {
			apply()
		}
	}
	return r.put(dir, names, files)
}

// choose says for each of n pieces whether it remains.
func (s Survival) choose(n int, rng *rand.Rand) []bool {
	keep := make([]bool, n)
	from, to := 0, n
	switch s {
	case Nothing:
		to = 0
	case First:
		to = rng.IntN(n + 1)
	case Last:
		from = rng.IntN(n + 1)
	case Some:
		odds := rng.Float64()
		for i := range keep {
			keep[i] = rng.Float64() < odds
		}
		return keep
	}
	for i := from; i < to; i++ {
		keep[i] = true
	}
	return keep
}

// durable says for each event before cut whether a sync has made it last.
func (r *Recording) durable(cut int) []bool {
	covered := map[uint64]int{} // by file: events before this one are durable
	named := map[string]int{}   // by directory
	for _, e := range r.events[:cut] {
		if e.kind == kSync && !e.lost {
			covered[e.file] = max(covered[e.file], e.from)
			named[filepath.Join(r.root, e.path)] = covered[e.file]
		}
	}
	out := make([]bool, cut)
	for i, e := range r.events[:cut] {
		switch e.kind {
		case kWrite, kResize:
			out[i] = i < covered[e.file]
		case kName, kRename:
			out[i] = i < named[filepath.Dir(e.path)]
		}
	}
	return out
}

// put makes the files that can be reached. One that was never written to is a
// directory or empty; which it is, the names below it say.
func (r *Recording) put(dir string, names map[string]uint64, files map[uint64]*content) error {
	paths := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(a, b) })
	for _, path := range paths {
		rel, err := filepath.Rel(r.root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if _, err := os.Stat(filepath.Dir(to)); rel != "." && errors.Is(err, os.ErrNotExist) {
			continue // its directory is lost, and it with it
		}
		if r.directory(names[path]) {
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := files[names[path]].put(to); err != nil {
			return fmt.Errorf("leave %s: %w", rel, err)
		}
	}
	return nil
}

func (r *Recording) directory(file uint64) bool {
	return file == rootFile || slices.ContainsFunc(r.events, func(e event) bool { return e.kind == kName && e.file == file && e.off < 0 })
}

func (c *content) put(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if c != nil {
		for at, data := range c.sectors {
			if _, werr := f.WriteAt(data, at*Sector); werr != nil {
				err = werr
			}
		}
		err = errors.Join(err, f.Truncate(c.size))
	}
	return errors.Join(err, f.Close())
}
