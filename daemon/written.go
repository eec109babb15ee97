package daemon

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/evidence"
	"gettier.dev/gettierd/daemon/action/shell"
)

// Bounds of what is remembered of files that agents write.
const (
	maxWritten     = 512 // files
	maxWrittenText = 64 << 10
	maxEdits       = 16 // texts of one file
)

// written remembers the texts that calls put into files, so that a script counts as
// what it will be when it runs: a call that writes and one that runs may stand in the
// same answer, and are ruled on before either has happened. Once the file changes on
// the disk, what lies there counts. The oldest is forgotten.
type written struct {
	mu    sync.Mutex
	order []string
	files map[string]*pending // by absolute path, links not followed
}

// pending is what a file will hold: a whole text, and what edits put into it.
type pending struct {
	texts []string
	at    time.Time // of the last call
}

// take remembers what an action writes.
func (w *written) take(cwd string, a shell.Action, now time.Time) {
	dir := cwd
	if a.Dir != "" {
		dir = a.Dir
	}
	for _, f := range a.Shell.Wrote {
		w.put(dir, f.Path, f.Text, true, now)
	}
	for _, e := range a.Edits {
		if e.New != "" && !e.Removed {
			w.put(dir, e.Path, e.New, e.Whole, now)
		}
	}
}

func (w *written) put(cwd, path, text string, whole bool, now time.Time) {
	if path = absolute(cwd, path); path == "" || text == "" {
		return
	}
	if len(text) > maxWrittenText {
		text = text[:maxWrittenText]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == nil {
		w.files = map[string]*pending{}
	}
	p := w.files[path]
	if p == nil {
		if len(w.order) >= maxWritten {
			delete(w.files, w.order[0])
			w.order = w.order[1:]
		}
		p = &pending{}
		w.order, w.files[path] = append(w.order, path), p
	}
	if whole {
		p.texts = nil
	}
	if p.texts, p.at = append(p.texts, text), now; len(p.texts) > maxEdits {
		p.texts = p.texts[1:]
	}
}

// of are the texts of a file that changed on the disk last, zero for never.
func (w *written) of(cwd, path string, changed time.Time) []string {
	path = absolute(cwd, path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.files[path]; p != nil && changed.Before(p.at) {
		return slices.Clone(p.texts)
	}
	return nil
}

func absolute(cwd, path string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case path == "" || !filepath.IsAbs(cwd) || strings.ContainsAny(path[:1], "~$"):
		return ""
	}
	return filepath.Join(cwd, path)
}

// scripts is the disk, and what is about to be written to it.
type scripts struct {
	evidence.Disk
	written *written
}

var _ action.Disk = scripts{}

// Script is what lies on the disk and what calls put there that may not have run yet.
func (s scripts) Script(cwd, path string) []string {
	return append(s.Disk.Script(cwd, path), s.written.of(cwd, path, s.ChangedAt(cwd, path))...)
}

// maxSessions bounds how many actors have a beginning of their own.
const maxSessions = 4096

// sessions remembers when each actor was first heard of: a script of an earlier task in
// the same session is the session's still. More actors than that share the earliest
// beginning.
type sessions struct {
	mu    sync.Mutex
	first map[string]time.Time
	least time.Time
}

// began is when an actor's session began, as far as is known: with its first task, or
// its first action where that is of none.
func (s *sessions) began(actor string, task, now time.Time) time.Time {
	if task.IsZero() || now.Before(task) {
		task = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.least.IsZero() || task.Before(s.least) {
		s.least = task
	}
	first, known := s.first[actor]
	switch {
	case known && !task.Before(first):
		return first
	case !known && len(s.first) >= maxSessions:
		return s.least
	case s.first == nil:
		s.first = map[string]time.Time{}
	}
	s.first[actor] = task
	return task
}
