// Package watch tells when the content of files has settled. Editors and
// deployment tools write in many ways (in place, by rename, through links), so
// events only say that something may have happened: the content is read, and
// reported once two readings some time apart are equal.
//
// What a file means, and whether it is any good, belongs to the caller.
package watch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// DefaultDebounce is longer than the gaps between an editor's steps of one
	// save.
	DefaultDebounce = 150 * time.Millisecond
	// DefaultGap lies between the two readings that have to be equal.
	DefaultGap = 50 * time.Millisecond
	// DefaultEmptied is how long a file that had a content has to be empty before
	// that is told: many programs empty it first and write then.
	DefaultEmptied = time.Second
	// DefaultPoll finds what events did not tell: network file systems, no
	// inotify left, a directory that came later.
	DefaultPoll = 5 * time.Second
	// maxDelay is how many debounce times a look may be put off by further events.
	maxDelay = 4
	// DefaultMaxBytes is the largest file that is read.
	DefaultMaxBytes = 4 << 20
)

// Options have a default for each zero value.
type Options struct {
	Debounce time.Duration
	Gap      time.Duration
	Emptied  time.Duration
	Poll     time.Duration
	MaxBytes int64
	PollOnly bool // no file events, only polling
}

// Content is a settled reading. A file that is not there has Exists false; one
// that cannot be read has Err.
type Content struct {
	Path   string
	Exists bool
	Data   []byte
	Sum    [sha256.Size]byte // of Data
	Err    error
}

// Watcher follows a set of paths. The zero value is not usable, see New.
type Watcher struct {
	o    Options
	wake chan struct{} // capacity 1: a wake-up that waits stands for all later ones

	mu    sync.Mutex
	paths []string
	force bool
	fault error // why events are missing
}

// New makes a watcher; Run drives it.
func New(o Options) *Watcher {
	o.Debounce = cmp.Or(o.Debounce, DefaultDebounce)
	o.Gap = cmp.Or(o.Gap, DefaultGap)
	o.Emptied = cmp.Or(o.Emptied, DefaultEmptied)
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	return &Watcher{o: o, wake: make(chan struct{}, 1)}
}

// Set replaces the paths. A path that is new is reported once at first, with
// what it holds then; so who loads a file before Run compares sums. A path that
// was dropped and comes back is new again.
func (w *Watcher) Set(paths ...string) {
	w.mu.Lock()
	w.paths = slices.Clone(paths)
	w.mu.Unlock()
	w.nudge()
}

// Poke makes the watcher look now and report every path again, changed or not.
func (w *Watcher) Poke() {
	w.mu.Lock()
	w.force = true
	w.mu.Unlock()
	w.nudge()
}

// Degraded returns why changes are found by polling only, or nil.
func (w *Watcher) Degraded() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

func (w *Watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// reading is what two looks are compared by. The stat is part of it: a file
// that is being written in place changes its times before its content shows.
type reading struct {
	exists bool
	size   int64
	mtime  time.Time
	inode  uint64
	sum    [sha256.Size]byte
	err    string
}

// same compares content only: a touched file is no news.
func (r reading) same(o reading) bool {
	return r.exists == o.exists && r.sum == o.sum && r.err == o.err
}

type tracked struct {
	told      *reading // what was reported last
	candidate *reading // read once, waiting for its confirmation
	since     time.Time
}

// emptied reports whether r is what a program leaves between emptying a file and
// writing it.
func (t *tracked) emptied(r reading) bool {
	return r.exists && r.err == "" && r.size == 0 && t.told != nil && t.told.size > 0
}

// Run reports settled contents until ctx ends, one at a time and in the
// goroutine that called it. It returns ctx's error.
func (w *Watcher) Run(ctx context.Context, settled func(Content)) error {
	var events <-chan fsnotify.Event
	var faults <-chan error
	var dirs *directories
	if !w.o.PollOnly {
		n, err := fsnotify.NewWatcher()
		if err != nil {
			w.degrade(fmt.Errorf("watch files: %w", err))
		} else {
			defer func() { _ = n.Close() }() // nothing depends on it any more
			events, faults = n.Events, n.Errors
			dirs = &directories{n: n, held: make(map[string]bool), bases: make(map[string]bool)}
		}
	}
	poll := time.NewTicker(w.o.Poll)
	defer poll.Stop()
	timer := time.NewTimer(0) // the first look is at once
	defer timer.Stop()
	files := make(map[string]*tracked)
	var first time.Time // of the events that wait for a look
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if dirs.others(ev) {
				continue
			}
			if first.IsZero() {
				first = time.Now()
			}
			// A directory in which something happens all the time must not put
			// the look off for ever.
			timer.Reset(max(0, min(w.o.Debounce, maxDelay*w.o.Debounce-time.Since(first))))
			continue
		case err, ok := <-faults:
			if !ok {
				faults = nil
				continue
			}
			// An overflow of the queue means that something was missed.
			w.degrade(fmt.Errorf("watch files: %w", err))
			timer.Reset(w.o.Debounce)
			continue
		case <-w.wake:
		case <-poll.C:
		case <-timer.C:
		}
		first = time.Time{}
		if w.look(files, dirs, settled) {
			timer.Reset(w.o.Gap)
		}
	}
}

// look reads every path once and reports those that settled. It returns
// whether some wait for a second reading.
func (w *Watcher) look(files map[string]*tracked, dirs *directories, settled func(Content)) (again bool) {
	w.mu.Lock()
	paths, force := w.paths, w.force
	w.force = false
	w.mu.Unlock()
	for p := range files {
		if !slices.Contains(paths, p) {
			delete(files, p)
		}
	}
	if dirs != nil {
		if err := dirs.follow(paths); err != nil {
			w.degrade(err)
		}
	}
	for _, p := range paths {
		t := files[p]
		if t == nil {
			t = new(tracked)
			files[p] = t
		}
		if force {
			t.told = nil
		}
		r, c := w.read(p)
		switch {
		case t.told != nil && t.told.same(r):
			t.candidate = nil
		case t.candidate != nil && *t.candidate == r && t.emptied(r) && time.Since(t.since) < w.o.Emptied:
			again = true
		case t.candidate != nil && *t.candidate == r:
			t.told, t.candidate = &r, nil
			settled(c)
		default:
			t.candidate, t.since = &r, time.Now()
			again = true
		}
	}
	return again
}

func (w *Watcher) read(path string) (reading, Content) {
	c := Content{Path: path}
	fail := func(err error) (reading, Content) {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return reading{}, c
		}
		c.Exists, c.Err = true, fmt.Errorf("read file: %w", err)
		return reading{exists: true, err: err.Error()}, c
	}
	// A pipe or a device must not block the watcher.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(fmt.Errorf("%s is no regular file", path))
	}
	data, err := io.ReadAll(io.LimitReader(f, w.o.MaxBytes+1))
	if err != nil {
		return fail(err)
	}
	if int64(len(data)) > w.o.MaxBytes {
		return fail(fmt.Errorf("%s is larger than %d bytes", path, w.o.MaxBytes))
	}
	c.Exists, c.Data, c.Sum = true, data, sha256.Sum256(data)
	r := reading{exists: true, size: info.Size(), mtime: info.ModTime(), sum: c.Sum}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		r.inode = st.Ino
	}
	return r, c
}

func (w *Watcher) degrade(err error) {
	w.mu.Lock()
	w.fault = err
	w.mu.Unlock()
}

// directories keeps the set of watched directories. Directories rather than
// files: a watch on a file dies with the file at the first atomic rename.
type directories struct {
	n     *fsnotify.Watcher
	held  map[string]bool
	bases map[string]bool // last elements of the paths and of what they resolve to
}

// others reports an event that is about another file of a watched directory. A
// write names the file that it is about; after a rename, a creation or a removal
// the name says little, since links may be what was turned.
func (d *directories) others(ev fsnotify.Event) bool {
	return ev.Op&^(fsnotify.Write|fsnotify.Chmod) == 0 && !d.bases[filepath.Base(ev.Name)]
}

// follow watches the directory of each path and that of what it resolves to.
// Where the directory is not there yet, its nearest parent stands in.
func (d *directories) follow(paths []string) error {
	want := make(map[string]bool)
	clear(d.bases)
	for _, p := range paths {
		want[nearestDir(filepath.Dir(p))] = true
		d.bases[filepath.Base(p)] = true
		if real, err := filepath.EvalSymlinks(p); err == nil {
			want[filepath.Dir(real)] = true
			d.bases[filepath.Base(real)] = true
		}
	}
	var errs []error
	for dir := range d.held {
		if !want[dir] {
			delete(d.held, dir)
			if err := d.n.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				errs = append(errs, fmt.Errorf("stop watching %s: %w", dir, err))
			}
		}
	}
	// Add is repeated for those that are held: a directory that was replaced
	// has lost its watch, and adding twice changes nothing.
	for dir := range want {
		if err := d.n.Add(dir); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", dir, err))
			continue
		}
		d.held[dir] = true
	}
	return errors.Join(errs...)
}

func nearestDir(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}
